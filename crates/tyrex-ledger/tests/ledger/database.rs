//! The database under hostile conditions: locks that others hold, and files with several names.

use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{Filter, Ledger};

use crate::common::promise;

/// Another program holds the lock for writing. Writers wait for it; nothing else does.
#[tokio::test]
async fn waiting_writers_do_not_delay_readers() {
    const WRITERS: u32 = 20;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("advice.db");
    let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
    let mut other = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let ledger = ledger.clone();
            tokio::spawn(async move { ledger.record(&[promise("somebody", number)]).await })
        })
        .collect();
    // Long enough for all of them to take connections.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reading = async {
        ledger.database().ping().await.unwrap();
        ledger.list(&Filter::default()).await.unwrap();
        ledger.verify(None).await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(5), reading).await.expect("readers do not wait");
    sqlx::query("COMMIT").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(ledger.head().await.unwrap().count, u64::from(WRITERS));
}

/// SQLite would keep one log for each name, and a second service would get a lock of its own.
#[cfg(unix)]
#[tokio::test]
async fn a_file_with_two_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let first = Database::open(file.to_str().unwrap()).await.unwrap();
    let lock = first.lock_for_service().await.unwrap();
    std::fs::hard_link(&file, &link).unwrap();
    for name in [&link, &file] {
        let name = name.to_str().unwrap();
        let expected = format!("{name}: this file has 2 names (hard links), expected one");
        assert_eq!(Database::open(name).await.unwrap_err().to_string(), expected);
        assert_eq!(Database::open_existing(name).await.unwrap_err().to_string(), expected);
    }
    std::fs::remove_file(&link).unwrap();
    // A symbolic link is another name for the same path, and shares the lock.
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let second = Database::open(link.to_str().unwrap()).await.unwrap();
    assert!(second.lock_for_service().await.is_err());
    lock.release().await;
    second.lock_for_service().await.unwrap();
}
