//! The jobs of the service, which also hold personal data.
//!
//! They are in the same database and managed by the service. Only erasure reads them here, so that
//! it works the same from every front end.

use std::collections::BTreeSet;

use serde::Deserialize;
use uuid::Uuid;

use super::append::Append;
use super::error::{Error, Result};
use crate::database::sql;

/// A job that may hold personal data.
struct Job {
    id: String,
    is_audit: bool,
    is_running: bool,
    is_finished: bool,
}

/// The subjects in the question of a job; none if it records nothing.
#[derive(Deserialize)]
struct Question {
    recording: Option<Recording>,
}

#[derive(Deserialize)]
struct Recording {
    subjects: Vec<String>,
}

impl Append {
    /// Removes the finished jobs that hold a subject: advice that was recorded for it, and audits
    /// of its promises, which are named by their ids. Fails if such a job is not finished. Returns
    /// the removed ones.
    pub(super) async fn forget_in_jobs(
        &mut self,
        subject: &str,
        promises: &[String],
    ) -> Result<BTreeSet<Uuid>> {
        let mut removed = BTreeSet::new();
        for job in self.jobs().await? {
            // A running audit may have read the promises already. A waiting one will not find them.
            let reads = job.is_audit && job.is_running && !promises.is_empty();
            if !reads && !self.holds(&job, subject, promises).await? {
                continue;
            }
            if !job.is_finished {
                return Err(Error::Unfinished { job: job.id });
            }
            sql!(execute in self.transaction; "DELETE FROM jobs WHERE id = $1", &job.id)?;
            removed.extend(Uuid::parse_str(&job.id));
        }
        Ok(removed)
    }

    /// The jobs that may hold personal data, locked until the transaction ends.
    async fn jobs(&mut self) -> Result<Vec<Job>> {
        if self.transaction.is_postgres() {
            // SQLite allows only one writer anyway.
            sql!(execute in self.transaction; "LOCK TABLE jobs IN SHARE ROW EXCLUSIVE MODE")?;
        }
        let jobs: Vec<(String, String, String, Option<String>)> = sql!(fetch_all in self.transaction;
            "SELECT id, kind, state, finished FROM jobs WHERE kind IN ('explain', 'audit') \
             ORDER BY id")?;
        let job = |(id, kind, state, finished): (String, String, String, Option<String>)| Job {
            id,
            is_audit: kind == "audit",
            is_running: state == "running",
            is_finished: finished.is_some(),
        };
        Ok(jobs.into_iter().map(job).collect())
    }

    /// Whether a job holds a subject, or one of its promises.
    async fn holds(&mut self, job: &Job, subject: &str, promises: &[String]) -> Result<bool> {
        let text = if job.is_audit {
            "SELECT result FROM jobs WHERE id = $1"
        } else {
            "SELECT question FROM jobs WHERE id = $1"
        };
        let text: Option<String> = sql!(one_value in self.transaction; text, &job.id)?;
        let text = text.unwrap_or_default();
        if job.is_audit {
            // A random id does not appear in a text by chance.
            return Ok(promises.iter().any(|id| text.contains(id)));
        }
        let recording = serde_json::from_str(&text).ok().and_then(|it: Question| it.recording);
        Ok(recording.is_some_and(|it| it.subjects.iter().any(|own| own == subject)))
    }
}
