//! Forgetting a person, and keeping the chain.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use uuid::Uuid;

use super::Ledger;
use super::append::{Append, retrying};
use super::chain::Hash;
use super::entry::{Kind, forgets};
use super::error::{Error, Result};
use super::promise::check_subject;
use crate::database::{self, Either, PATIENCE, on};

/// What was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forgotten {
    /// The promises whose personal data were removed, by their sequences.
    pub promises: Vec<u64>,
    /// The hash of the entry that says so; `None` if there was no such promise.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub hash: Option<Hash>,
    /// The finished jobs of the service that held the subject and were removed, by their ids.
    pub jobs: Vec<Uuid>,
}

impl Forgotten {
    /// Whether the subject was nowhere.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.promises.is_empty() && self.jobs.is_empty()
    }
}

/// The promises that were forgotten, and the entry that says so.
type Promises = (Vec<u64>, Option<Hash>);

impl Ledger {
    /// Removes everything personal about a subject, with the salts: what is left in the entries
    /// cannot even be compared with a guess. An entry that names the promises, and not the
    /// subject, is added. The service's finished jobs that hold the subject or its promises go
    /// too, in the same transaction; one that is not finished is an error, and nothing is removed.
    ///
    /// SQLite's file and its log hold nothing of it afterwards; PostgreSQL's tables neither. Its
    /// log and backups of either are not reached from here.
    pub async fn forget(&self, subject: &str) -> Result<Forgotten> {
        check_subject(subject)?;
        let own = Uuid::now_v7();
        // Of all attempts: one whose answer was lost may have happened.
        let jobs = Mutex::new(BTreeSet::new());
        let (promises, hash) = retrying(|| self.try_forget(subject, own, &jobs)).await?;
        let traces = |error: database::Error| Error::Traces { problem: error.to_string() };
        self.wipe().await.map_err(traces)?;
        let jobs = jobs.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Forgotten { promises, hash, jobs: jobs.into_iter().collect() })
    }

    async fn try_forget(
        &self,
        subject: &str,
        own: Uuid,
        jobs: &Mutex<BTreeSet<Uuid>>,
    ) -> Result<Promises> {
        let mut append = Append::begin(&self.database).await?;
        // A commit whose answer was lost.
        if let Some(present) = append.find(own).await? {
            let damaged =
                |problem| Error::Damaged { sequence: present.line.sequence as u64, problem };
            let promises = forgets(present.line.forgets.as_deref()).map_err(damaged)?;
            return Ok((promises, Some(present.line.hash())));
        }
        let found: Vec<(i64, String)> = on!(append.transaction, connection => sqlx::query_as(
            "SELECT p.sequence, e.id FROM payloads p JOIN entries e ON e.sequence = p.sequence \
             WHERE p.subject = $1 ORDER BY p.sequence",
        )
        .bind(subject)
        .fetch_all(&mut **connection)
        .await?);
        let (sequences, ids): (Vec<i64>, Vec<String>) = found.into_iter().unzip();
        let removed = append.forget_in_jobs(subject, &ids).await?;
        jobs.lock().unwrap_or_else(PoisonError::into_inner).extend(removed);
        let promises: Vec<u64> = sequences.iter().map(|&sequence| sequence as u64).collect();
        if promises.is_empty() {
            append.commit().await?;
            return Ok((promises, None));
        }
        on!(append.transaction, connection => {
            sqlx::query("DELETE FROM payloads WHERE subject = $1")
                .bind(subject)
                .execute(&mut **connection)
                .await?
                .rows_affected()
        });
        let mut line = append.line(own, Kind::Forgotten);
        line.forgets = Some(serde_json::Value::from(promises.clone()).to_string());
        let recorded = append.add(line).await?;
        append.commit().await?;
        Ok((promises, Some(recorded.hash)))
    }

    /// Takes what was deleted out of the files. Deleting alone leaves copies: SQLite's in its log
    /// and in the free room of pages, PostgreSQL's in its tables.
    async fn wipe(&self) -> database::Result<()> {
        let started = Instant::now();
        loop {
            match self.try_wipe().await {
                // SQLite does not wait by itself while somebody else empties the log, and a server
                // that went away may come back.
                Err(error)
                    if (matches!(error, database::Error::Busy) || error.is_lost_connection())
                        && started.elapsed() < PATIENCE =>
                {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                other => return other,
            }
        }
    }

    async fn try_wipe(&self) -> database::Result<()> {
        match self.database.either() {
            Either::Sqlite(pool) => {
                let mut connection = pool.acquire().await?;
                sqlx::query("VACUUM").execute(&mut *connection).await?;
                let (busy, _, _): (i64, i64, i64) =
                    sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
                        .fetch_one(&mut *connection)
                        .await?;
                if busy != 0 {
                    return Err(database::Error::Busy);
                }
            }
            #[cfg(not(feature = "postgres"))]
            Either::Postgres(never) => match *never {},
            #[cfg(feature = "postgres")]
            Either::Postgres(pool) => {
                sqlx::query("VACUUM FULL payloads, jobs, job_rows").execute(pool).await?;
            }
        }
        Ok(())
    }
}
