//! Forgetting a subject removes it from the service's jobs too.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use tyrex_ledger::ledger::{Error, Ledger, Uuid};

use crate::book::{bytes, holds, ledger};
use crate::common::promise;

/// A job as the service keeps it; its id.
async fn job(
    connection: &mut SqliteConnection,
    kind: &str,
    state: &str,
    question: &str,
    result: &str,
) -> Uuid {
    let id = Uuid::now_v7();
    let finished = ["done", "failed", "cancelled"].contains(&state).then_some("2026-11-16T00:00Z");
    sqlx::query(
        "INSERT INTO jobs (id, kind, state, model, question, total, created, finished, result) \
         VALUES ($1, $2, $3, 'german', $4, 1, '2026-11-16T00:00:00Z', $5, $6)",
    )
    .bind(id.to_string())
    .bind(kind)
    .bind(state)
    .bind(question)
    .bind(finished)
    .bind(result)
    .execute(&mut *connection)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO job_rows (job, number, document, cells) VALUES ($1, 0, 'row of ' || $1, '[]')",
    )
    .bind(id.to_string())
    .execute(connection)
    .await
    .unwrap();
    id
}

/// A question that names a subject.
fn advice_for(subject: &str) -> String {
    serde_json::json!({"kind": "explain", "recording": {"subjects": ["x", subject]}}).to_string()
}

/// A report about promises.
fn report_of(promises: &[Uuid]) -> String {
    let promises: Vec<_> =
        promises.iter().map(|id| serde_json::json!({"name": id, "advised": {}})).collect();
    serde_json::json!({"promises": promises}).to_string()
}

async fn jobs_left(connection: &mut SqliteConnection) -> Vec<Uuid> {
    let left: Vec<String> =
        sqlx::query_scalar("SELECT id FROM jobs ORDER BY id").fetch_all(connection).await.unwrap();
    left.iter().map(|id| id.parse().unwrap()).collect()
}

async fn with_jobs(folder: &tempfile::TempDir) -> (Ledger, SqliteConnection) {
    let ledger = ledger(folder).await;
    let file = folder.path().join("advice.db");
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(true);
    (ledger, options.connect().await.unwrap())
}

#[tokio::test]
async fn finished_jobs_that_hold_a_subject_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, mut connection) = with_jobs(&folder).await;
    let promises = [promise("ZEBRA-4711", 1), promise("other", 2)];
    ledger.record(&promises).await.unwrap();
    let [own, other] = promises.map(|promise| promise.id);
    let db = &mut connection;
    let unrecorded = r#"{"kind": "explain", "recording": null}"#;
    let gone = [
        job(db, "explain", "done", &advice_for("ZEBRA-4711"), "[]").await,
        job(db, "explain", "cancelled", &advice_for("ZEBRA-4711"), "[]").await,
        job(db, "audit", "done", "{}", &report_of(&[other, own])).await,
    ];
    let left = [
        job(db, "explain", "done", &advice_for("ZEBRA-47110"), "[]").await,
        job(db, "explain", "running", &advice_for("other"), "[]").await,
        job(db, "explain", "done", unrecorded, "[]").await,
        job(db, "audit", "done", "{}", &report_of(&[other])).await,
        job(db, "audit", "queued", "{}", "").await,
        job(db, "calibrate", "running", "{}", "").await,
    ];
    let forgotten = ledger.forget("ZEBRA-4711").await.unwrap();
    assert_eq!((&forgotten.promises[..], &forgotten.jobs[..]), (&[1][..], &gone[..]));
    assert_eq!(jobs_left(db).await, left);
    connection.close().await.unwrap();
    let after = bytes(&folder);
    for id in gone {
        assert!(!holds(&after, &format!("row of {id}")), "{id} is left");
    }
    assert!(holds(&after, &format!("row of {}", left[0])), "the test would find nothing");
    assert!(!holds(&after, "\"ZEBRA-4711\""));
    assert!(ledger.verify(None).await.unwrap().is_sound());
}

#[tokio::test]
async fn whoever_is_only_in_a_job_can_be_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (ledger, mut connection) = with_jobs(&folder).await;
    let gone = job(&mut connection, "explain", "done", &advice_for("somebody"), "[]").await;
    let forgotten = ledger.forget("somebody").await.unwrap();
    assert_eq!(
        (forgotten.promises.len(), forgotten.hash, &forgotten.jobs[..]),
        (0, None, &[gone][..])
    );
    assert!(!forgotten.is_nothing());
    assert!(jobs_left(&mut connection).await.is_empty());
    assert_eq!(ledger.head().await.unwrap().count, 0);
    assert!(ledger.forget("somebody").await.unwrap().is_nothing());
}

#[tokio::test]
async fn a_job_that_is_not_finished_is_in_the_way() {
    for (kind, state, question) in [
        ("explain", "queued", advice_for("a")),
        ("explain", "parked", advice_for("a")),
        ("explain", "running", advice_for("a")),
        ("audit", "running", "{}".to_owned()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, mut connection) = with_jobs(&folder).await;
        ledger.record(&[promise("a", 1)]).await.unwrap();
        let done = job(&mut connection, "explain", "done", &advice_for("a"), "[]").await;
        let id = job(&mut connection, kind, state, &question, "").await;
        let refused = ledger.forget("a").await;
        let Err(Error::Unfinished { job }) = refused else { panic!("{kind} {state}: {refused:?}") };
        assert_eq!(job, id.to_string());
        // All or nothing.
        assert_eq!(jobs_left(&mut connection).await, [done, id]);
        assert_eq!(ledger.open_promises().await.unwrap().len(), 1);
        // A subject that is in no unfinished job can be forgotten.
        assert!(ledger.forget("b").await.unwrap().is_nothing());
    }
}
