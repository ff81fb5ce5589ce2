//! Forgetting a person, and keeping the chain.

use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Ledger;
use super::append::{Append, retrying};
use super::chain::Hash;
use super::entry::{Kind, forgets};
use super::error::{Error, Result};
use super::promise::check_subject;
use crate::database::{self, Either, PATIENCE, on};

/// What was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Forgotten {
    /// The promises whose personal data were removed, by their sequences.
    pub promises: Vec<u64>,
    /// The hash of the entry that says so; `None` if there was nothing to forget.
    #[schema(value_type = Option<String>)]
    pub hash: Option<Hash>,
}

impl Ledger {
    /// Removes everything personal about a subject, with the salts: what is left in the entries
    /// cannot even be compared with a guess. An entry that names the promises, and not the
    /// subject, is added.
    ///
    /// SQLite's file and its log hold nothing of it afterwards; PostgreSQL's table neither. Its
    /// log and backups of either are not reached from here.
    pub async fn forget(&self, subject: &str) -> Result<Forgotten> {
        check_subject(subject)?;
        let own = Uuid::now_v7();
        let forgotten = retrying(|| self.try_forget(subject, own)).await?;
        let traces = |error: database::Error| Error::Traces { problem: error.to_string() };
        self.wipe().await.map_err(traces)?;
        Ok(forgotten)
    }

    async fn try_forget(&self, subject: &str, own: Uuid) -> Result<Forgotten> {
        let mut append = Append::begin(&self.database).await?;
        // A commit whose answer was lost.
        if let Some(present) = append.find(own).await? {
            let damaged =
                |problem| Error::Damaged { sequence: present.line.sequence as u64, problem };
            let promises = forgets(present.line.forgets.as_deref()).map_err(damaged)?;
            return Ok(Forgotten { promises, hash: Some(present.line.hash()) });
        }
        let sequences: Vec<i64> = on!(append.transaction, connection => {
            sqlx::query_scalar("SELECT sequence FROM payloads WHERE subject = $1 ORDER BY sequence")
                .bind(subject)
                .fetch_all(&mut **connection)
                .await?
        });
        let promises: Vec<u64> = sequences.iter().map(|&sequence| sequence as u64).collect();
        if promises.is_empty() {
            return Ok(Forgotten { promises, hash: None });
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
        Ok(Forgotten { promises, hash: Some(recorded.hash) })
    }

    /// Takes what was deleted out of the files. Deleting alone leaves copies: SQLite's in its log
    /// and in the free room of pages, PostgreSQL's in its table.
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
            Either::Postgres(pool) => {
                sqlx::query("VACUUM FULL payloads").execute(pool).await?;
            }
        }
        Ok(())
    }
}
