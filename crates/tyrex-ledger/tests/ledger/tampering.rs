//! Verification detects every change of a ledger that was made outside of the program.
//!
//! Random ledgers, random tampering through raw SQL with the triggers dropped and the constraints
//! off.

use std::path::Path;

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{
    Closing, Filter, Hash, Ledger, Status, Timestamp, Trouble, Verification,
};

use crate::common::{Dice, promise};

/// Every column of every table of the ledger.
const COLUMNS: [(&str, &[&str]); 3] = [
    (
        "entries",
        &[
            "sequence",
            "id",
            "time",
            "kind",
            "model",
            "request",
            "holds_until",
            "commitment",
            "closes",
            "closed_as",
            "forgets",
            "previous",
            "hash",
        ],
    ),
    ("payloads", &["sequence", "salt", "subject", "document"]),
    ("head", &["one", "count", "hash"]),
];

/// One thing done to a ledger behind its back.
#[derive(Debug, Clone)]
enum Tampering {
    /// Another value in one column of one row.
    Edit { table: usize, column: usize, row: u64, null: bool },
    /// An entry is gone: the first, one in the middle, the last.
    Remove { row: u64 },
    /// An entry and its payload are gone.
    RemoveWithPayload { row: u64 },
    /// Personal data are gone.
    RemovePayload { row: u64 },
    /// Two entries change places.
    Swap { one: u64, other: u64 },
    /// An entry is there twice.
    Double { row: u64 },
    /// An entry is put in at the end, with the hash it must have.
    Forge,
    /// The last entries are gone.
    CutOff { keep: u64 },
    /// Personal data come back, or are made up.
    AddPayload { row: u64 },
    /// A second end.
    SecondHead,
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let edit = (0..COLUMNS.len(), any::<usize>(), any::<u64>(), prop::bool::weighted(0.2));
    prop_oneof![
        8 => edit.prop_map(|(table, column, row, null)| {
            Tampering::Edit { table, column: column % COLUMNS[table].1.len(), row, null }
        }),
        1 => any::<u64>().prop_map(|row| Tampering::Remove { row }),
        1 => any::<u64>().prop_map(|row| Tampering::RemoveWithPayload { row }),
        1 => any::<u64>().prop_map(|row| Tampering::RemovePayload { row }),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(one, other)| Tampering::Swap { one, other }),
        1 => any::<u64>().prop_map(|row| Tampering::Double { row }),
        1 => Just(Tampering::Forge),
        1 => any::<u64>().prop_map(|keep| Tampering::CutOff { keep }),
        1 => any::<u64>().prop_map(|row| Tampering::AddPayload { row }),
        1 => Just(Tampering::SecondHead),
    ]
}

/// Makes a ledger: promises to few people, some closed, some forgotten.
async fn fill(file: &Path, seed: u64) {
    let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
    let mut dice = Dice(seed);
    let mut promises: Vec<_> = (0..3 + dice.below(6))
        .map(|n| promise(&format!("person {}", dice.below(4)), n as u32))
        .collect();
    promises[0].holds_until = Some(Timestamp::now());
    ledger.record(&promises).await.unwrap();
    for promise in &promises {
        if dice.below(3) == 0 {
            ledger.close(promise.id, Closing::Withdrawn).await.unwrap();
        }
    }
    if dice.below(2) == 0 {
        ledger.forget(&promises[1].subject).await.unwrap();
        ledger.record(&[promise("person 9", 9)]).await.unwrap();
    }
    ledger.database().close().await;
}

async fn raw(file: &Path) -> SqliteConnection {
    let mut connection = SqliteConnectOptions::new()
        .filename(file)
        .synchronous(SqliteSynchronous::Off)
        .foreign_keys(false)
        .pragma("ignore_check_constraints", "ON")
        .connect()
        .await
        .unwrap();
    for trigger in ["entries_are_not_edited", "entries_are_not_removed", "payloads_are_not_edited"]
    {
        execute(&mut connection, format!("DROP TRIGGER {trigger}")).await;
    }
    connection
}

/// Runs a statement; the number of rows it changed.
async fn execute(connection: &mut SqliteConnection, statement: String) -> u64 {
    let done = sqlx::query(AssertSqlSafe(statement.clone())).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}")).rows_affected()
}

async fn number(connection: &mut SqliteConnection, query: String) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(connection).await.unwrap()
}

/// The sequence of some row of a table.
async fn some_row(connection: &mut SqliteConnection, table: &str, row: u64) -> i64 {
    let key = if table == "head" { "one" } else { "sequence" };
    let count = number(connection, format!("SELECT count(*) FROM {table}")).await;
    let skip = row % count as u64;
    number(connection, format!("SELECT {key} FROM {table} ORDER BY {key} LIMIT 1 OFFSET {skip}"))
        .await
}

/// Does it. False if it would change nothing.
async fn tamper(connection: &mut SqliteConnection, tampering: &Tampering) -> bool {
    let last = number(connection, "SELECT max(sequence) FROM entries".to_owned()).await;
    match *tampering {
        Tampering::Edit { table, column, row, null } => {
            let (table, column) = (COLUMNS[table].0, COLUMNS[table].1[column]);
            let row = some_row(connection, table, row).await;
            let key = if table == "head" { "one" } else { "sequence" };
            let other = edited(table, column, null);
            let statement = format!(
                "UPDATE OR IGNORE {table} SET {column} = {other} \
                 WHERE {key} = {row} AND {column} IS NOT {other}"
            );
            execute(connection, statement).await == 1
        }
        Tampering::Remove { row } => {
            let row = some_row(connection, "entries", row).await;
            execute(connection, format!("DELETE FROM entries WHERE sequence = {row}")).await == 1
        }
        Tampering::RemoveWithPayload { row } => {
            let row = some_row(connection, "entries", row).await;
            execute(connection, format!("DELETE FROM payloads WHERE sequence = {row}")).await;
            execute(connection, format!("DELETE FROM entries WHERE sequence = {row}")).await == 1
        }
        Tampering::RemovePayload { row } => {
            let row = some_row(connection, "payloads", row).await;
            execute(connection, format!("DELETE FROM payloads WHERE sequence = {row}")).await == 1
        }
        Tampering::Swap { one, other } => {
            let one = some_row(connection, "entries", one).await;
            let other = some_row(connection, "entries", other).await;
            if one == other {
                return false;
            }
            // With their payloads: nothing but the order is wrong.
            for table in ["entries", "payloads"] {
                for (from, to) in [(one, -1), (other, one), (-1, other)] {
                    let statement =
                        format!("UPDATE {table} SET sequence = {to} WHERE sequence = {from}");
                    execute(connection, statement).await;
                }
            }
            true
        }
        Tampering::Double { row } => {
            let row = some_row(connection, "entries", row).await;
            let statement = format!(
                "INSERT INTO entries SELECT {last} + 1, id || 'x', time, kind, model, request, \
                 holds_until, commitment, NULL, closed_as, forgets, previous, hash \
                 FROM entries WHERE sequence = {row}"
            );
            execute(connection, statement).await == 1
        }
        Tampering::Forge => {
            let statement = format!(
                "INSERT INTO entries SELECT {last} + 1, 'forged', time, 'forgotten', NULL, NULL, \
                 NULL, NULL, NULL, NULL, '[1]', hash, zeroblob(32) \
                 FROM entries WHERE sequence = {last}"
            );
            execute(connection, statement).await;
            rehash(connection, last + 1).await;
            true
        }
        Tampering::CutOff { keep } => {
            let keep = keep as i64 % last;
            for table in ["payloads", "entries"] {
                let statement = format!("DELETE FROM {table} WHERE sequence > {keep}");
                execute(connection, statement).await;
            }
            true
        }
        Tampering::AddPayload { row } => {
            let row = some_row(connection, "entries", row).await;
            let statement = format!(
                "INSERT OR IGNORE INTO payloads VALUES ({row}, zeroblob(32), 'somebody', '{{}}')"
            );
            execute(connection, statement).await == 1
        }
        Tampering::SecondHead => {
            let statement = "INSERT INTO head SELECT 2, count, hash FROM head";
            execute(connection, statement.to_owned()).await == 1
        }
    }
}

/// Another value for a column, as SQL.
fn edited(table: &str, column: &str, null: bool) -> String {
    let may_be_null = ["model", "request", "holds_until", "commitment", "closed_as", "forgets"];
    if null && may_be_null.contains(&column) {
        return "NULL".to_owned();
    }
    match (table, column) {
        (_, "sequence" | "count" | "one") => format!("{column} + 1000"),
        (_, "closes") => "coalesce(closes, 0) + 1".to_owned(),
        (_, "kind") => "CASE kind WHEN 'promise' THEN 'closed' ELSE 'promise' END".to_owned(),
        // One bit is enough.
        (_, "hash" | "previous" | "salt" | "commitment") => format!(
            "coalesce(unhex(CASE substr(hex({column}), 1, 1) WHEN '0' THEN '1' ELSE '0' END || \
             substr(hex({column}), 2)), zeroblob(32))"
        ),
        _ => format!("coalesce({column}, '') || ' '"),
    }
}

/// Gives an entry the hash that the documentation says it must have.
async fn rehash(connection: &mut SqliteConnection, sequence: i64) -> Vec<u8> {
    let hash = documented_hash(connection, sequence).await;
    sqlx::query("UPDATE entries SET hash = $1 WHERE sequence = $2")
        .bind(&hash)
        .bind(sequence)
        .execute(connection)
        .await
        .unwrap();
    hash
}

/// The formula of docs/ledger.md, written a second time.
async fn documented_hash(connection: &mut SqliteConnection, sequence: i64) -> Vec<u8> {
    let mut bytes = b"tyrex ledger entry 1".to_vec();
    for column in &COLUMNS[0].1[..12] {
        let text =
            ["id", "time", "kind", "model", "request", "holds_until", "closed_as", "forgets"];
        let field: Option<Vec<u8>> = if ["sequence", "closes"].contains(column) {
            let query = format!("SELECT {column} FROM entries WHERE sequence = {sequence}");
            let number: Option<i64> =
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut *connection).await.unwrap();
            number.map(|number| number.to_le_bytes().to_vec())
        } else {
            let cast = if text.contains(column) {
                format!("CAST({column} AS BLOB)")
            } else {
                (*column).to_owned()
            };
            let query = format!("SELECT {cast} FROM entries WHERE sequence = {sequence}");
            sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut *connection).await.unwrap()
        };
        match field {
            None => bytes.push(0),
            Some(field) => {
                bytes.push(1);
                bytes.extend((field.len() as u64).to_le_bytes());
                bytes.extend(field);
            }
        }
    }
    Sha256::digest(&bytes).to_vec()
}

async fn verify(file: &Path, head: Option<&Hash>) -> Verification {
    let database = Database::open_existing(file.to_str().unwrap()).await.unwrap();
    let ledger = Ledger::new(database);
    let verification = ledger.verify(head).await.unwrap();
    ledger.database().close().await;
    verification
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn tampering_is_found(
        seed in any::<u64>(),
        tamperings in prop::collection::vec(tampering(), 40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original.db");
        run(async {
            fill(&original, seed).await;
            let before = verify(&original, None).await;
            assert!(before.is_sound(), "{before:?}");
            for (index, tampering) in tamperings.iter().enumerate() {
                let file = folder.path().join(format!("{index}.db"));
                std::fs::copy(&original, &file).unwrap();
                let mut connection = raw(&file).await;
                let changed = tamper(&mut connection, tampering).await;
                connection.close().await.unwrap();
                let after = verify(&file, None).await;
                assert_eq!(after.is_sound(), !changed, "{tampering:?}: {after:?}");
                // The gate reads no promises from such a ledger.
                let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
                let open = ledger.open_promises().await;
                assert_eq!(open.is_ok(), !changed, "{tampering:?}: {open:?}");
                ledger.database().close().await;
                std::fs::remove_file(&file).unwrap();
            }
        });
    }
}

/// The problem and its place are named.
#[test]
fn the_first_bad_entry_is_named() {
    let cases: [(&str, Trouble, Option<u64>); 10] = [
        ("UPDATE entries SET time = time || ' ' WHERE sequence = 2", Trouble::Edited, Some(2)),
        ("UPDATE entries SET hash = zeroblob(32) WHERE sequence = 1", Trouble::Edited, Some(1)),
        ("DELETE FROM entries WHERE sequence = 1", Trouble::Removed, Some(1)),
        ("DELETE FROM entries WHERE sequence IN (2, 3)", Trouble::Removed, Some(2)),
        ("DELETE FROM entries WHERE sequence = 5", Trouble::Removed, Some(5)),
        (
            "UPDATE payloads SET document = '{}' WHERE sequence = 4",
            Trouble::PayloadChanged,
            Some(4),
        ),
        ("DELETE FROM payloads WHERE sequence = 3", Trouble::PayloadMissing, Some(3)),
        ("DELETE FROM head", Trouble::Head, None),
        ("UPDATE head SET count = 4", Trouble::Inserted, Some(5)),
        ("UPDATE head SET hash = zeroblob(32)", Trouble::Head, None),
    ];
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original.db");
    run(async {
        let ledger = Ledger::new(Database::open(original.to_str().unwrap()).await.unwrap());
        let promises: Vec<_> = (0..5).map(|n| promise(&format!("{n}"), n)).collect();
        ledger.record(&promises).await.unwrap();
        // The triggers refuse what is tried in good faith.
        let honest = SqliteConnectOptions::new().filename(&original);
        let mut honest = honest.connect().await.unwrap();
        for (statement, _, _) in &cases[..7] {
            let refused = sqlx::query(*statement).execute(&mut honest).await;
            let allowed = statement.starts_with("DELETE FROM payloads");
            assert_eq!(refused.is_ok(), allowed, "{statement}");
        }
    });
    // That deleted a payload; start again.
    let original = folder.path().join("again.db");
    run(async {
        let ledger = Ledger::new(Database::open(original.to_str().unwrap()).await.unwrap());
        let promises: Vec<_> = (0..5).map(|n| promise(&format!("{n}"), n)).collect();
        ledger.record(&promises).await.unwrap();
        ledger.database().close().await;
        for (statement, trouble, sequence) in cases {
            let file = folder.path().join("tampered.db");
            std::fs::copy(&original, &file).unwrap();
            let mut connection = raw(&file).await;
            execute(&mut connection, statement.to_owned()).await;
            connection.close().await.unwrap();
            let problem = verify(&file, None).await.problem.expect(statement);
            assert_eq!((problem.trouble, problem.sequence), (trouble, sequence), "{statement}");
        }
    });
}

/// They leave every entry as it was, and change what is read or written.
#[test]
fn definitions_of_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (index, statements) in [
        "ALTER TABLE entries ADD COLUMN status TEXT DEFAULT 'expired'",
        "ALTER TABLE entries ADD COLUMN subject TEXT DEFAULT 'nobody'",
        "CREATE TRIGGER lost BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "CREATE VIEW other AS SELECT * FROM entries",
        "CREATE INDEX other ON entries (kind)",
    ]
    .into_iter()
    .enumerate()
    {
        let file = folder.path().join(format!("{index}.db"));
        run(async {
            fill(&file, 3).await;
            let mut connection = raw(&file).await;
            execute(&mut connection, statements.to_owned()).await;
            connection.close().await.unwrap();
            let error = Database::open_existing(file.to_str().unwrap()).await.unwrap_err();
            assert!(error.to_string().contains("is not as tyrex defines it"), "{error}");
        });
    }
}

/// Builds an index on another expression and lets SQLite take it for one of the ledger's: a statement
/// that uses it reads other rows, and every entry keeps its hash.
async fn exchange_index(file: &Path, index: &str, fake: &str) {
    let mut connection = raw(file).await;
    for statement in [
        format!("CREATE INDEX fake ON {fake}"),
        "PRAGMA writable_schema = ON".to_owned(),
        format!(
            "UPDATE sqlite_schema SET rootpage = \
             (SELECT rootpage FROM sqlite_schema WHERE name = 'fake') WHERE name = '{index}'"
        ),
        "DELETE FROM sqlite_schema WHERE name = 'fake'".to_owned(),
    ] {
        execute(&mut connection, statement).await;
    }
    connection.close().await.unwrap();
}

#[test]
fn an_exchanged_index_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // The closing of promise 2 seems to close promise 1; an id leads to another entry; a subject
    // seems to have no data.
    let cases = [
        ("closes", "sqlite_autoindex_entries_2", "entries (CASE sequence WHEN 3 THEN 1 END)"),
        ("ids", "sqlite_autoindex_entries_1", "entries ((SELECTED))"),
        (
            "subjects",
            "payloads_by_subject",
            "payloads (CASE sequence WHEN 1 THEN 'x' ELSE subject END)",
        ),
    ];
    for (name, index, fake) in cases {
        let file = folder.path().join(format!("{name}.db"));
        let promises = [promise("one", 1), promise("two", 2)];
        run(async {
            let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
            ledger.record(&promises).await.unwrap();
            ledger.close(promises[1].id, Closing::Withdrawn).await.unwrap();
            ledger.database().close().await;
            let swapped = format!(
                "CASE sequence WHEN 1 THEN '{}' WHEN 2 THEN '{}' ELSE id END",
                promises[1].id, promises[0].id
            );
            exchange_index(&file, index, &fake.replace("(SELECTED)", &swapped)).await;

            let database = Database::open_existing(file.to_str().unwrap()).await.unwrap();
            let ledger = Ledger::new(database);
            let problem = ledger.verify(None).await.unwrap().problem.expect(name);
            assert_eq!(problem.trouble, Trouble::Index, "{name}: {problem}");
            let error = ledger.open_promises().await.unwrap_err().to_string();
            assert!(error.contains("the database file does not fit together"), "{name}: {error}");
            let open = Filter { status: Some(Status::Open), ..Filter::default() };
            let open = ledger.list(&open).await.unwrap();
            assert_eq!(open.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [1], "{name}");
            match ledger.entry(promises[0].id).await {
                Ok(entry) => assert_eq!(entry.id, promises[0].id, "{name}"),
                Err(error) => {
                    let expected =
                        "entry 2 of the ledger is damaged: it was changed after it was written";
                    assert_eq!((name, &*error.to_string()), ("ids", expected));
                    let closed = ledger.close(promises[0].id, Closing::Withdrawn).await;
                    assert_eq!(closed.unwrap_err().to_string(), expected);
                }
            }
            // All of it goes, or an error says that it does not.
            if let Ok(forgotten) = ledger.forget("one").await {
                assert_eq!(forgotten.promises, [1], "{name}");
            }
            ledger.database().close().await;
        });
    }
}

/// A sequence far beyond the others; the search for the place of a misplaced entry went on to it.
#[test]
fn verify_ends_whatever_the_sequences_are() {
    let folder = tempfile::tempdir().unwrap();
    for (place, sequence) in
        [i64::MAX, i64::MAX - 1, i64::MIN, -1, 0, 1 << 40].into_iter().enumerate()
    {
        let file = folder.path().join(format!("{place}.db"));
        run(async {
            fill(&file, 3).await;
            let mut connection = raw(&file).await;
            let last =
                number(&mut connection, "SELECT max(sequence) FROM entries".to_owned()).await;
            for statement in [
                format!("UPDATE entries SET sequence = {sequence} WHERE sequence = {last}"),
                format!("UPDATE payloads SET sequence = {sequence} WHERE sequence = {last}"),
                format!("UPDATE head SET count = {sequence}"),
                // Not as it was written, so the search for its place begins.
                "UPDATE entries SET time = time || ' ' WHERE sequence = 1".to_owned(),
            ] {
                execute(&mut connection, statement).await;
            }
            connection.close().await.unwrap();
            let work = async { verify(&file, None).await };
            let ended = tokio::time::timeout(std::time::Duration::from_secs(20), work).await;
            let problem = ended.expect("it ends").problem.expect("a problem");
            assert_ne!(problem.trouble, Trouble::Index, "{sequence}: {problem}");
        });
    }
}

#[test]
fn an_address_that_sqlite_would_read_otherwise_is_refused() {
    for address in ["file:advice.db", "file:advice.db?mode=memory", ":memory:", "", "sqlite://"] {
        let error = run(Database::open(address)).unwrap_err();
        assert!(
            error.to_string().contains("the address of the database cannot be read"),
            "{address}: {error}"
        );
    }
}

/// The driver of the database would panic.
#[test]
fn a_definition_that_is_not_text_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    for place in [b"forgets     TEXT".as_slice(), b"TEXT NOT NULL"] {
        let _ = std::fs::remove_file(&file);
        run(fill(&file, 5));
        let mut bytes = std::fs::read(&file).unwrap();
        let start = bytes.windows(place.len()).position(|text| text == place).unwrap();
        bytes[start + 1] = 0xff;
        std::fs::write(&file, bytes).unwrap();
        let error = run(Database::open_existing(file.to_str().unwrap())).unwrap_err();
        assert!(error.to_string().contains("malformed"), "{error}");
    }
}

/// Exchanged or edited personal data are never returned.
#[test]
fn personal_data_that_were_changed_are_not_read() {
    let swap = "UPDATE payloads SET sequence = CASE sequence WHEN 1 THEN -2 ELSE -1 END \
                WHERE sequence IN (1, 2); UPDATE payloads SET sequence = -sequence \
                WHERE sequence < 0";
    let edit = "UPDATE payloads SET document = replace(document, '0.83', '0.84') \
                WHERE sequence = 1";
    let rename = "UPDATE payloads SET subject = 'another' WHERE sequence = 1";
    let folder = tempfile::tempdir().unwrap();
    for (number, statements) in [swap, edit, rename].into_iter().enumerate() {
        let file = folder.path().join(format!("{number}.db"));
        run(async {
            let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
            let promises = [promise("one", 1), promise("two", 2)];
            ledger.record(&promises).await.unwrap();
            let mut connection = raw(&file).await;
            for statement in statements.split(';') {
                assert!(execute(&mut connection, statement.to_owned()).await > 0);
            }
            connection.close().await.unwrap();
            let expected = "entry 1 of the ledger is damaged: its personal data was changed";
            let answers = [
                ledger.list(&Filter::default()).await.map(|_| ()),
                ledger.at(1).await.map(|_| ()),
                ledger.entry(promises[0].id).await.map(|_| ()),
                ledger.open_promises().await.map(|_| ()),
            ];
            for answer in answers {
                assert_eq!(answer.unwrap_err().to_string(), expected, "{statements}");
            }
        });
    }
}

/// An entry that was edited is not read, and one that was put in closes no promise for the gate.
#[test]
fn an_edited_or_forged_entry_hides_no_promise() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    run(async {
        let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
        ledger.record(&[promise("one", 1), promise("two", 2)]).await.unwrap();
        let mut connection = raw(&file).await;
        let closing = "INSERT INTO entries SELECT 3, 'forged', time, 'closed', NULL, NULL, NULL, \
                       NULL, 1, 'withdrawn', NULL, hash, zeroblob(32) FROM entries \
                       WHERE sequence = 2";
        execute(&mut connection, closing.to_owned()).await;
        rehash(&mut connection, 3).await;
        let error = ledger.open_promises().await.unwrap_err().to_string();
        assert_eq!(error, "the ledger is damaged: entry 3 is after the end of the ledger");
        let past = "UPDATE entries SET holds_until = '2020-01-01T00:00:00.000000Z' \
                    WHERE sequence = 1";
        execute(&mut connection, past.to_owned()).await;
        connection.close().await.unwrap();
        let expected = "entry 1 of the ledger is damaged: it was changed after it was written";
        assert_eq!(ledger.at(1).await.unwrap_err().to_string(), expected);
        assert_eq!(ledger.open_promises().await.unwrap_err().to_string(), expected);
    });
}

#[test]
fn a_head_covers_the_entries_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    run(async {
        let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
        ledger.record(&[promise("one", 1), promise("two", 2)]).await.unwrap();
        let head = ledger.head().await.unwrap().hash;
        let says =
            |later: &str| format!("up to entry 2, every entry is as it was written; {later}");
        let expected = [
            says("no entry is later"),
            says("1 later entry is not covered by this head"),
            says("2 later entries are not covered by this head"),
        ];
        for (number, expected) in expected.into_iter().enumerate() {
            let verification = ledger.verify(Some(&head)).await.unwrap();
            assert_eq!((verification.covered, verification.sentence()), (Some(2), expected));
            ledger.record(&[promise("three", 3 + number as u32)]).await.unwrap();
        }
        assert_eq!(ledger.verify(None).await.unwrap().covered, None);
        let empty = ledger.verify(Some(&Hash::START)).await.unwrap();
        assert_eq!((empty.covered, empty.is_sound()), (Some(0), true));
    });
}

/// A swap is recognised as one.
#[test]
fn a_promise_whose_data_are_gone_does_not_pass_for_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    run(async {
        fill(&file, 5).await;
        let database = Database::open_existing(file.to_str().unwrap()).await.unwrap();
        let ledger = Ledger::new(database);
        let open = ledger.open_promises().await.unwrap();
        let gone = open.first().expect("an open promise").sequence;
        let mut connection = raw(&file).await;
        let delete = format!("DELETE FROM payloads WHERE sequence = {gone}");
        execute(&mut connection, delete).await;
        connection.close().await.unwrap();
        let expected = format!(
            "entry {gone} of the ledger is damaged: its personal data is missing, and no entry \
             records its erasure"
        );
        assert_eq!(ledger.open_promises().await.unwrap_err().to_string(), expected);
        assert_eq!(ledger.at(gone).await.unwrap_err().to_string(), expected);
    });
}

#[test]
fn a_reordered_entry_says_where_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    run(async {
        fill(&file, 5).await;
        let mut connection = raw(&file).await;
        tamper(&mut connection, &Tampering::Swap { one: 0, other: 2 }).await;
        connection.close().await.unwrap();
        let problem = verify(&file, None).await.problem.unwrap();
        assert_eq!((problem.trouble, problem.sequence), (Trouble::Reordered, Some(1)));
        assert_eq!(problem.sentence, "entry 1: it was written as entry 3");
    });
}

/// An attacker who rewrites the whole ledger is detected only by a head that was stored elsewhere.
#[test]
fn a_ledger_written_anew_is_found_by_a_head_noted_earlier() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    run(async {
        fill(&file, 3).await;
        let noted = verify(&file, None).await.head;
        let mut connection = raw(&file).await;
        execute(
            &mut connection,
            "UPDATE entries SET model = 'other' WHERE sequence = 2".to_owned(),
        )
        .await;
        let last = number(&mut connection, "SELECT max(sequence) FROM entries".to_owned()).await;
        let mut hash = vec![0; 32];
        for sequence in 1..=last {
            sqlx::query("UPDATE entries SET previous = $1 WHERE sequence = $2")
                .bind(&hash)
                .bind(sequence)
                .execute(&mut connection)
                .await
                .unwrap();
            hash = rehash(&mut connection, sequence).await;
        }
        sqlx::query("UPDATE head SET hash = $1")
            .bind(&hash)
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        assert!(verify(&file, None).await.is_sound());
        let problem = verify(&file, Some(&noted)).await.problem.unwrap();
        assert_eq!(problem.trouble, Trouble::Head);
        assert!(problem.sentence.contains(&noted.to_string()), "{problem}");
    });
}
