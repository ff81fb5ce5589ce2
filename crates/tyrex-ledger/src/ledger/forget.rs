//! Erasure of a subject's data, with an intact chain.

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
use crate::database::{self, Either, PATIENCE, sql};
use crate::new_id;

/// The result of an erasure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Forgotten {
    /// The promises whose personal data was erased, by their sequences.
    pub promises: Vec<u64>,
    /// The hash of the entry that records it; `None` if there was no such promise.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub hash: Option<Hash>,
    /// The finished jobs of the service that held the subject and were removed, by their ids.
    pub jobs: Vec<Uuid>,
}

impl Forgotten {
    /// Whether nothing was found.
    pub fn is_nothing(&self) -> bool {
        self.promises.is_empty() && self.jobs.is_empty()
    }
}

/// The erased promises, and the entry that records it.
type Promises = (Vec<u64>, Option<Hash>);

impl Ledger {
    /// Erases all personal data of a subject, with the salts: without them, the commitments in the
    /// entries cannot be compared with guesses. An entry that names the promises, and not the
    /// subject, is added. The service's finished jobs that hold the subject or its promises are
    /// removed in the same transaction; an unfinished one is an error, and nothing is removed.
    ///
    /// Afterwards neither SQLite's file and log nor PostgreSQL's tables hold the data. PostgreSQL's
    /// log and backups are not changed.
    pub async fn forget(&self, subject: &str) -> Result<Forgotten> {
        check_subject(subject)?;
        let own = new_id();
        // Collected over all attempts: one whose answer was lost may have been committed.
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
        // An earlier attempt was committed, but its answer was lost.
        if let Some(present) = append.find(own).await? {
            let damaged =
                |problem| Error::Damaged { sequence: present.line.sequence as u64, problem };
            let promises = forgets(present.line.forgets.as_deref()).map_err(damaged)?;
            return Ok((promises, Some(present.line.hash())));
        }
        // An expression, so that no index is used: one that was damaged would leave data behind.
        let found: Vec<(i64, String)> = sql!(fetch_all in append.transaction;
            "SELECT p.sequence, e.id FROM payloads p JOIN entries e ON e.sequence = p.sequence \
             WHERE p.subject || '' = $1 ORDER BY p.sequence",
            subject)?;
        let (sequences, ids): (Vec<i64>, Vec<String>) = found.into_iter().unzip();
        let removed = append.forget_in_jobs(subject, &ids).await?;
        jobs.lock().unwrap_or_else(PoisonError::into_inner).extend(removed);
        let promises: Vec<u64> = sequences.iter().map(|&sequence| sequence as u64).collect();
        if promises.is_empty() {
            append.commit().await?;
            return Ok((promises, None));
        }
        sql!(execute in append.transaction;
            "DELETE FROM payloads WHERE subject || '' = $1",
            subject)?;
        let mut line = append.line(own, Kind::Forgotten);
        line.forgets = Some(serde_json::Value::from(promises.clone()).to_string());
        let recorded = append.add(line).await?;
        append.commit().await?;
        Ok((promises, Some(recorded.hash)))
    }

    /// Removes deleted data from the files. Deleting alone leaves copies: in SQLite's log and free
    /// pages, and in PostgreSQL's tables.
    async fn wipe(&self) -> database::Result<()> {
        let started = Instant::now();
        loop {
            match self.try_wipe().await {
                // SQLite does not wait while another process empties the log, and a lost server may
                // come back.
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
        match self.database.writers().executor() {
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
