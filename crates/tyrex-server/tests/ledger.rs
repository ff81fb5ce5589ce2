//! The ledger in a SQLite file.

mod common;

use common::promise;
use tyrex_server::database::Database;
use tyrex_server::ledger::{Closing, Error, Filter, Ledger, Status};

async fn ledger(folder: &tempfile::TempDir) -> Ledger {
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
async fn recording_again_is_recording_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = ledger(&folder).await;
    let first = promise("a", 1);
    let recorded = ledger.record(&[first.clone()]).await.unwrap();
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
