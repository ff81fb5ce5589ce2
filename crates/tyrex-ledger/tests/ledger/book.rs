//! Recorded entries, and queries for them.

use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tyrex_ledger::database::{self, Database};
use tyrex_ledger::ledger::{Closing, Error, Filter, Ledger, Status, Timestamp};

use tyrex::explain::PromisedProbability;

use crate::common::promise;

pub(super) async fn ledger(folder: &tempfile::TempDir) -> Ledger {
    let file = folder.path().join("advice.db");
    Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap())
}

#[tokio::test]
async fn what_is_recorded_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let promises: Vec<_> = (0..5).map(|n| promise(&format!("person {n}"), n)).collect();
    let recorded = ledger.record(&promises).await.unwrap();
    let sequences: Vec<u64> = recorded.iter().map(|recorded| recorded.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
    let entries = ledger.list(&Filter::default()).await.unwrap();
    for ((promise, recorded), entry) in promises.iter().zip(&recorded).zip(&entries) {
        assert_eq!((entry.id, entry.sequence), (promise.id, recorded.sequence));
        assert_eq!((entry.hash, entry.time), (recorded.hash, recorded.time));
        let promised = entry.promise().unwrap();
        assert_eq!(promised.status, Status::Open);
        assert_eq!(promised.request, promise.request);
        assert_eq!(promised.model, promise.model);
        let given = entry.given().unwrap();
        assert_eq!(given.subject, promise.subject);
        assert_eq!(given.document, promise.document);
        assert_eq!(ledger.entry(promise.id).await.unwrap(), *entry);
    }
    assert_eq!(ledger.open_promises().await.unwrap(), entries);
    let verification = ledger.verify(None).await.unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!((verification.entries, verification.promises), (5, 5));
    assert_eq!(verification.head, recorded[4].hash);
}

#[tokio::test]
async fn a_promised_probability_comes_back_and_reaches_the_audit() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let (plain, mut stating) = (promise("plain", 1), promise("stating", 2));
    let probability =
        PromisedProbability { probability: 0.92, confidence: 0.95, predictive: 60.0 / 62.0 };
    stating.document.promised = Some(probability);
    ledger.record(&[plain, stating]).await.unwrap();
    let entries = ledger.open_promises().await.unwrap();
    let promised: Vec<_> = entries.iter().map(|each| each.written().unwrap().promised).collect();
    assert_eq!(promised, [None, Some(probability)]);
    // Advice without a promise is written as before.
    let documents = entries.iter().map(|each| serde_json::to_value(each).unwrap());
    let stated: Vec<_> = documents.map(|document| document["promised"].clone()).collect();
    assert_eq!(stated[0], serde_json::Value::Null);
    assert_eq!(stated[1]["probability"], 0.92);
    let table = tyrex_ledger::ledger::table(&entries).unwrap();
    let column = table.column("promised_probability").unwrap();
    assert_eq!(column.cells().collect::<Vec<_>>(), ["", "0.92"]);
    assert!(ledger.verify(None).await.unwrap().is_sound());
}

/// `old/0.1.0.db` was written by `tyrex explain --dataset german --method nn --models 0 --limit 2
/// --ledger`, before promises had a probability, and made smaller with `PRAGMA page_size = 512`.
#[tokio::test]
async fn a_ledger_without_probabilities_is_read_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    std::fs::write(&file, include_bytes!("old/0.1.0.db")).unwrap();
    let ledger = Ledger::new(Database::open_existing(file.to_str().unwrap()).await.unwrap());
    let head = "1771e1d1a700835a2b56b0685cba843f2fde6a6974c7ff9c5ff7dfa98092371b";
    let verification = ledger.verify(None).await.unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!((verification.promises, verification.head.to_string().as_str()), (2, head));
    for entry in ledger.list(&Filter::default()).await.unwrap() {
        assert_eq!(entry.written().unwrap().promised, None);
    }
    let mut next = promise("next", 3);
    let predictive = 0.9;
    next.document.promised =
        Some(PromisedProbability { probability: 0.8, confidence: 0.95, predictive });
    let recorded = ledger.record(&[next]).await.unwrap();
    assert_eq!(recorded[0].sequence, 3);
    let verification = ledger.verify(Some(&head.parse().unwrap())).await.unwrap();
    assert!(verification.is_sound() && verification.entries == 3, "{verification:?}");
}

#[tokio::test]
async fn recording_again_is_recording_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let first = promise("a", 1);
    let recorded = ledger.record(std::slice::from_ref(&first)).await.unwrap();
    assert!(!recorded[0].already);
    let again = ledger.record(&[first.clone(), promise("b", 2)]).await.unwrap();
    assert!(again[0].already && !again[1].already);
    assert_eq!((again[0].sequence, again[0].hash), (1, recorded[0].hash));
    let mut other = first.clone();
    other.subject = "c".to_owned();
    assert!(matches!(ledger.record(&[other]).await, Err(Error::Taken(id)) if id == first.id));
    assert_eq!(ledger.head().await.unwrap().count, 2);
}

#[tokio::test]
async fn a_promise_is_closed_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let promises = [promise("a", 1), promise("b", 2)];
    ledger.record(&promises).await.unwrap();
    ledger.close(promises[0].id, Closing::Fulfilled).await.unwrap();
    let entry = ledger.entry(promises[0].id).await.unwrap();
    assert_eq!(entry.promise().unwrap().status, Status::Fulfilled);
    let twice = ledger.close(promises[0].id, Closing::Withdrawn).await;
    assert!(matches!(twice, Err(Error::NotOpen { .. })), "{twice:?}");
    assert_eq!(ledger.open_promises().await.unwrap().len(), 1);
    assert!(ledger.verify(None).await.unwrap().is_sound());
}

/// All bytes of all files of the ledger: the database, its log, its index of the log.
pub(super) fn bytes(folder: &tempfile::TempDir) -> Vec<u8> {
    let files = std::fs::read_dir(folder.path()).unwrap();
    files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

pub(super) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn nothing_is_left_of_whoever_is_forgotten() {
    for others in [0, 3, 60] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = ledger(&folder).await;
        // Between those of others, so that pages are split and moved.
        for round in 0..3 {
            let mut promises: Vec<_> = (0..others).map(|n| promise("somebody else", n)).collect();
            promises.push(promise("ZEBRA-4711", 777_000 + round));
            ledger.record(&promises).await.unwrap();
        }
        let words = ["ZEBRA-4711", "777000.1", "777001.1", "778002.7"];
        let before = bytes(&folder);
        for word in words {
            assert!(holds(&before, word), "{word}: the test would find nothing");
        }
        let head = ledger.head().await.unwrap();
        let forgotten = ledger.forget("ZEBRA-4711").await.unwrap();
        assert_eq!(forgotten.promises.len(), 3);
        // The ledger is still open, with its log.
        let after = bytes(&folder);
        for word in words {
            assert!(!holds(&after, word), "{word} is left, with {others} others");
        }
        assert_eq!(holds(&after, "somebody else"), others > 0);
        let verification = ledger.verify(Some(&head.hash)).await.unwrap();
        assert!(verification.is_sound(), "{verification:?}");
        assert_eq!(verification.forgotten, 3);
        let entry = ledger.at(forgotten.promises[0]).await.unwrap();
        assert_eq!(entry.promise().unwrap().status, Status::Forgotten);
        assert!(entry.given().is_none());
        // Nothing more to forget, and nothing more is written.
        let again = ledger.forget("ZEBRA-4711").await.unwrap();
        assert_eq!((again.promises, again.hash), (Vec::new(), None));
        // Recording under the same id again does not restore erased data.
        assert_eq!(ledger.head().await.unwrap().count, head.count + 1);
    }
}

#[tokio::test]
async fn promises_expire() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let mut promises = [promise("a", 1), promise("b", 2), promise("c", 3)];
    let now = Timestamp::now();
    promises[0].holds_until = Some(now - Duration::from_secs(1));
    promises[1].holds_until = Some(now + Duration::from_secs(1000));
    ledger.record(&promises).await.unwrap();
    let open: Vec<u64> =
        ledger.open_promises().await.unwrap().iter().map(|entry| entry.sequence).collect();
    assert_eq!(open, [2, 3]);
    let expired = Filter { status: Some(Status::Expired), ..Filter::default() };
    assert_eq!(ledger.list(&expired).await.unwrap()[0].id, promises[0].id);
    ledger.close(promises[0].id, Closing::Fulfilled).await.unwrap();
    assert!(ledger.list(&expired).await.unwrap().is_empty());
}

#[tokio::test]
async fn filters_and_pages() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let promises: Vec<_> = (0..9).map(|n| promise(&format!("person {}", n % 2), n)).collect();
    ledger.record(&promises).await.unwrap();
    ledger.close(promises[4].id, Closing::Withdrawn).await.unwrap();
    let sequences = async |filter: Filter| -> Vec<u64> {
        let entries = ledger.list(&filter).await.unwrap();
        entries.iter().map(|entry| entry.sequence).collect()
    };
    let all = Filter::default();
    assert_eq!(sequences(all.clone()).await, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(sequences(Filter { all_kinds: true, after: Some(8), ..all.clone() }).await, [9, 10]);
    assert_eq!(
        sequences(Filter { after: Some(2), limit: Some(3), ..all.clone() }).await,
        [3, 4, 5]
    );
    let subject = Some("person 1".to_owned());
    assert_eq!(sequences(Filter { subject, ..all.clone() }).await, [2, 4, 6, 8]);
    let model = Some(promises[0].model.clone());
    assert_eq!(sequences(Filter { model, ..all.clone() }).await, [1, 4, 7]);
    assert_eq!(sequences(Filter { status: Some(Status::Withdrawn), ..all.clone() }).await, [5]);
    let since = Some(Timestamp::now() + Duration::from_mins(1));
    assert_eq!(sequences(Filter { since, ..all }).await, [] as [u64; 0]);
}

#[tokio::test]
async fn what_is_no_ledger_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let absent = Database::open_existing(&path("absent.db")).await;
    assert!(matches!(absent, Err(database::Error::Absent { .. })), "{absent:?}");
    std::fs::write(path("text.db"), "not a database, and long enough to be looked at".repeat(99))
        .unwrap();
    for opened in
        [Database::open(&path("text.db")).await, Database::open_existing(&path("text.db")).await]
    {
        assert!(matches!(opened, Err(database::Error::NotADatabase { .. })), "{opened:?}");
    }
    std::fs::write(path("empty.db"), "").unwrap();
    let empty = Database::open_existing(&path("empty.db")).await;
    assert!(matches!(empty, Err(database::Error::Empty { .. })), "{empty:?}");
    // Another program's.
    let mut foreign = SqliteConnectOptions::new()
        .filename(path("foreign.db"))
        .create_if_missing(true)
        .connect()
        .await
        .unwrap();
    sqlx::query("CREATE TABLE recipes (name TEXT)").execute(&mut foreign).await.unwrap();
    foreign.close().await.unwrap();
    let opened = Database::open(&path("foreign.db")).await;
    assert!(matches!(opened, Err(database::Error::Foreign { .. })), "{opened:?}");
    // A later version's.
    let ledger = ledger(&folder).await;
    on_file(
        &path("advice.db"),
        "INSERT INTO tyrex_migrations SELECT 999, 'later', installed_on, \
        success, checksum, execution_time FROM tyrex_migrations WHERE version = 1",
    )
    .await;
    drop(ledger);
    let newer = Database::open(&path("advice.db")).await;
    assert!(matches!(newer, Err(database::Error::Newer { .. })), "{newer:?}");
    let folder = Database::open(&path("no/such/folder/advice.db")).await;
    assert!(matches!(folder, Err(database::Error::Unreachable { .. })), "{folder:?}");
}

async fn on_file(file: &str, statement: &'static str) {
    let mut connection = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    sqlx::query(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn subjects_are_checked_and_never_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    for subject in ["", "a\nb", "a\0b", &"x".repeat(501)] {
        let refused = ledger.record(&[promise("fine", 1), promise(subject, 2)]).await;
        let Err(error @ Error::Subject { .. }) = refused else { panic!("{refused:?}") };
        assert!(subject.is_empty() || !error.to_string().contains(subject), "{error}");
        assert!(matches!(ledger.forget(subject).await, Err(Error::Subject { .. })));
    }
    assert_eq!(ledger.head().await.unwrap().count, 0, "all or nothing");
    ledger.record(&[promise("it's \"Zoë\"; DROP TABLE entries --", 1)]).await.unwrap();
    assert!(ledger.verify(None).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_table_has_every_entry() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let promises = [promise("a", 1), promise("b", 2), promise("c", 3)];
    ledger.record(&promises).await.unwrap();
    ledger.close(promises[1].id, Closing::Fulfilled).await.unwrap();
    ledger.forget("a").await.unwrap();
    let all = Filter { all_kinds: true, ..Filter::default() };
    let table = tyrex_ledger::ledger::table(&ledger.list(&all).await.unwrap()).unwrap();
    let cells = |name: &str| -> Vec<&str> { table.column(name).unwrap().cells().collect() };
    assert_eq!(cells("kind"), ["promise", "promise", "promise", "closed", "forgotten"]);
    assert_eq!(cells("status"), ["forgotten", "fulfilled", "open", "", ""]);
    assert_eq!(cells("subject"), ["", "b", "c", "", ""]);
    assert_eq!(cells("factual.income"), ["", "2.1", "3.1", "", ""]);
    assert_eq!(cells("advised.income"), ["", "1002.7", "1003.7", "", ""]);
    assert_eq!(cells("promises"), ["", "", "", "2 fulfilled", "1"]);
}
