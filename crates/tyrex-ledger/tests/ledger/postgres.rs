//! The ledger in PostgreSQL, on a real server: `./check` starts one and names it in
//! `TYREX_POSTGRES`, and in `TYREX_POSTGRES_CONTROL` the script that can crash it.
//!
//! Without these variables every test here says that it was skipped.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tyrex_ledger::database::{self, Database};
use tyrex_ledger::ledger::{Closing, Error, Filter, Ledger, Status, Trouble, Uuid};

use crate::common::crash::{Acknowledged, recorder, stop_at};
use crate::common::postgres::Server;
use crate::common::{keep_counts, promise};

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn everything_works_as_in_sqlite() {
    let Some(server) = Server::of("everything_works_as_in_sqlite") else { return };
    run(async {
        let url = server.database("tyrex_everything").await;
        let absent = Database::open_existing(&url).await;
        assert!(matches!(absent, Err(database::Error::Empty { .. })), "{absent:?}");
        let ledger = Ledger::new(Database::open(&url).await.unwrap());
        let again = Database::open_existing(&url).await.unwrap();
        assert!(!again.address().contains("tyrex:"), "{}", again.address());
        let promises = [promise("a", 1), promise("b", 2), promise("a", 3), promise("c", 4)];
        let recorded = ledger.record(&promises).await.unwrap();
        let repeated = ledger.record(&promises).await.unwrap();
        assert!(repeated.iter().all(|one| one.already));
        assert_eq!(repeated[3].hash, recorded[3].hash);
        let mut other = promises[1].clone();
        other.document.score = 0.84;
        assert!(matches!(ledger.record(&[other]).await, Err(Error::Taken(_))));
        ledger.close(promises[1].id, Closing::Withdrawn).await.unwrap();
        let twice = ledger.close(promises[1].id, Closing::Withdrawn).await;
        assert!(matches!(twice, Err(Error::NotOpen { .. })), "{twice:?}");
        let forgotten = ledger.forget("a").await.unwrap();
        assert_eq!(forgotten.promises, [1, 3]);
        let entries = ledger.list(&Filter::default()).await.unwrap();
        let status: Vec<Status> =
            entries.iter().map(|entry| entry.promise().unwrap().status).collect();
        let expected = [Status::Forgotten, Status::Withdrawn, Status::Forgotten, Status::Open];
        assert_eq!(status, expected);
        assert_eq!(entries[3].given().unwrap().document, promises[3].document);
        let open = ledger.open_promises().await.unwrap();
        assert_eq!(open, [entries[3].clone()]);
        let by_model = Filter { model: Some(promises[3].model.clone()), ..Filter::default() };
        // Promises 1 and 4 have the same model.
        assert_eq!(ledger.list(&by_model).await.unwrap().len(), 2);
        let verification = ledger.verify(Some(&recorded[2].hash)).await.unwrap();
        assert!(verification.is_sound(), "{verification:?}");
        assert_eq!((verification.entries, verification.forgotten), (6, 2));
    });
}

#[test]
fn finished_jobs_that_hold_a_subject_go_and_leave_nothing_in_the_tables() {
    let name = "finished_jobs_that_hold_a_subject_go_and_leave_nothing_in_the_tables";
    let Some(server) = Server::of(name) else { return };
    run(async {
        let url = server.database("tyrex_forgetting").await;
        let ledger = Ledger::new(Database::open(&url).await.unwrap());
        let own = promise("a", 1);
        ledger.record(std::slice::from_ref(&own)).await.unwrap();
        let options: PgConnectOptions = url.parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        let question = r#"{"kind": "explain", "recording": {"subjects": ["a"]}}"#;
        let report = format!(r#"{{"promises": [{{"name": "{}"}}]}}"#, own.id);
        for (kind, question, result) in [("explain", question, "[]"), ("audit", "{}", &*report)] {
            let id = Uuid::now_v7().to_string();
            sqlx::query(
                "INSERT INTO jobs (id, kind, state, model, question, total, created, finished, \
                 result) VALUES ($1, $2, 'done', 'm', $3, 1, 'then', 'then', $4)",
            )
            .bind(&id)
            .bind(kind)
            .bind(question)
            .bind(result)
            .execute(&mut connection)
            .await
            .unwrap();
            sqlx::query(
                "INSERT INTO job_rows (job, number, document, cells) VALUES ($1, 0, '{}', '[]')",
            )
            .bind(&id)
            .execute(&mut connection)
            .await
            .unwrap();
        }
        let forgotten = ledger.forget("a").await.unwrap();
        assert_eq!((forgotten.promises.len(), forgotten.jobs.len()), (1, 2));
        // Deleted rows stay in a table until it is rewritten.
        let sizes: (i64, i64, i64) = sqlx::query_as(
            "SELECT pg_relation_size('payloads'), pg_relation_size('jobs'), \
             pg_relation_size('job_rows')",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!(sizes, (0, 0, 0));
    });
}

#[test]
fn entries_cannot_be_changed_and_it_is_found_if_they_are() {
    let Some(server) = Server::of("entries_cannot_be_changed_and_it_is_found_if_they_are") else {
        return;
    };
    run(async {
        let url = server.database("tyrex_tampering").await;
        let ledger = Ledger::new(Database::open(&url).await.unwrap());
        let promises: Vec<_> = (0..6).map(|n| promise(&format!("{n}"), n)).collect();
        ledger.record(&promises).await.unwrap();
        let options: PgConnectOptions = url.parse().unwrap();
        let mut connection = options.connect().await.unwrap();
        for refused in [
            "UPDATE entries SET time = 'now' WHERE sequence = 2",
            "DELETE FROM entries WHERE sequence = 6",
            "TRUNCATE entries CASCADE",
            "UPDATE payloads SET subject = 'x' WHERE sequence = 1",
        ] {
            let error = sqlx::query(refused).execute(&mut connection).await.unwrap_err();
            assert!(error.to_string().contains("append-only"), "{refused}: {error}");
        }
        // A database can only be copied without open connections.
        connection.close().await.unwrap();
        ledger.database().close().await;
        let cases = [
            ("UPDATE entries SET model = 'x' WHERE sequence = 3", Trouble::Edited, Some(3)),
            ("DELETE FROM entries WHERE sequence = 2", Trouble::Removed, Some(2)),
            ("DELETE FROM entries WHERE sequence = 6", Trouble::Removed, Some(6)),
            (
                "UPDATE entries SET sequence = CASE sequence WHEN 4 THEN 5 ELSE 4 END \
                 WHERE sequence IN (4, 5)",
                Trouble::Reordered,
                Some(4),
            ),
            ("DELETE FROM payloads WHERE sequence = 5", Trouble::PayloadMissing, Some(5)),
            (
                "UPDATE payloads SET subject = 'x' WHERE sequence = 1",
                Trouble::PayloadChanged,
                Some(1),
            ),
            ("UPDATE head SET hash = decode(repeat('ab', 32), 'hex')", Trouble::Head, None),
        ];
        for (statement, trouble, sequence) in cases {
            let mut admin = server.connection().await;
            for copy in [
                "DROP DATABASE IF EXISTS tyrex_tampered",
                "CREATE DATABASE tyrex_tampered TEMPLATE tyrex_tampering",
            ] {
                sqlx::query(copy).execute(&mut admin).await.unwrap();
            }
            let tampered = url.replace("tyrex_tampering", "tyrex_tampered");
            let own: PgConnectOptions = tampered.parse().unwrap();
            let mut raw = own.connect().await.unwrap();
            for prepare in [
                "ALTER TABLE entries DISABLE TRIGGER USER",
                "ALTER TABLE payloads DISABLE TRIGGER USER",
                "ALTER TABLE payloads DROP CONSTRAINT payloads_sequence_fkey",
                "ALTER TABLE entries DROP CONSTRAINT entries_pkey CASCADE",
                statement,
            ] {
                sqlx::query(AssertSqlSafe(prepare)).execute(&mut raw).await.unwrap();
            }
            raw.close().await.unwrap();
            let ledger = Ledger::new(Database::open_existing(&tampered).await.unwrap());
            let problem = ledger.verify(None).await.unwrap().problem.expect(statement);
            assert_eq!((problem.trouble, problem.sequence), (trouble, sequence), "{statement}");
            ledger.database().close().await;
        }
    });
}

#[test]
fn four_writers_at_once_make_one_chain() {
    const WRITERS: u64 = 4;
    const EACH: usize = 40;
    let Some(server) = Server::of("four_writers_at_once_make_one_chain") else { return };
    let url = run(server.database("tyrex_writers"));
    let started = Instant::now();
    let children: Vec<_> =
        (0..WRITERS).map(|seed| recorder(&url, seed, Some(EACH)).spawn().unwrap()).collect();
    let mut acknowledged = Acknowledged::default();
    children.into_iter().for_each(|child| acknowledged.finish(child));
    let entries = entries(&url, &acknowledged);
    keep_counts(
        "postgres-writers",
        &format!(
            "{WRITERS} processes, {entries} entries, 0 lost, chain sound, {:.1} s",
            started.elapsed().as_secs_f64()
        ),
    );
}

#[test]
fn a_server_that_crashes_loses_nothing_and_doubles_nothing() {
    const CRASHES: usize = 4;
    const WRITERS: u64 = 3;
    let Some(server) = Server::of("a_server_that_crashes_loses_nothing_and_doubles_nothing") else {
        return;
    };
    let url = run(server.database("tyrex_crashes"));
    let folder = tempfile::tempdir().unwrap();
    let stop = folder.path().join("stop");
    let started = Instant::now();
    let children: Vec<_> = (0..WRITERS)
        .map(|seed| {
            let mut command = recorder(&url, seed, None);
            stop_at(&mut command, &stop);
            command.spawn().unwrap()
        })
        .collect();
    let mut seen = 0;
    for _ in 0..CRASHES {
        // In the middle of recording, however slow the machine is.
        seen = run(grown(&url, seen + 60));
        Server::crash();
    }
    run(grown(&url, seen + 60));
    std::fs::write(&stop, "").unwrap();
    let mut acknowledged = Acknowledged::default();
    children.into_iter().for_each(|child| acknowledged.finish(child));
    let entries = entries(&url, &acknowledged);
    keep_counts(
        "postgres-crashes",
        &format!(
            "{CRASHES} crashes of the server, {WRITERS} processes, {} promises acknowledged, 0 \
             lost, 0 doubled, {entries} entries, chain sound, {:.1} s",
            acknowledged.recorded.len(),
            started.elapsed().as_secs_f64()
        ),
    );
}

/// Waits until the ledger has so many entries; how many it has then.
async fn grown(url: &str, wanted: u64) -> u64 {
    for _ in 0..1200 {
        if let Ok(database) = Database::open_existing(url).await {
            let ledger = Ledger::new(database);
            let head = ledger.head().await;
            ledger.database().close().await;
            if let Ok(head) = head
                && head.count >= wanted
            {
                return head.count;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nobody records any more");
}

/// Checks that the ledger holds what was acknowledged and nothing else.
fn entries(url: &str, acknowledged: &Acknowledged) -> u64 {
    let entries = run(async {
        acknowledged.check(&Ledger::new(Database::open_existing(url).await.unwrap())).await
    });
    let counted =
        acknowledged.recorded.len() + acknowledged.closed.len() + acknowledged.forgotten.len();
    assert_eq!(entries as usize, counted, "every entry was acknowledged once");
    entries
}

#[test]
fn no_error_repeats_a_password() {
    let unreachable = "postgres://somebody:secret-7391@127.0.0.1:1/ledger";
    let nonsense = "postgres://somebody:secret-7391@127.0.0.1:port/ledger";
    for address in [unreachable, nonsense] {
        let error = run(Database::open(address)).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains("secret-7391"), "{said}");
    }
    let error = run(Database::open(unreachable)).unwrap_err().to_string();
    assert!(error.starts_with("postgres://somebody@127.0.0.1:1/ledger: "), "{error}");
}
