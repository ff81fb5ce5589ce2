//! Recording advice as promises.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tyrex::explain::Request;
use tyrex_ledger::ledger::NewPromise;
use uuid::Uuid;

use super::error::Result;
use super::questions::Found;
use super::{Engine, Served};

/// The subjects of advice, and how long it is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// One subject for every row.
    pub(crate) subjects: Vec<String>,
    /// When the promises expire.
    pub(crate) holds_until: Option<Timestamp>,
}

impl Engine {
    /// Records the advice for some rows in the ledger and returns the ids. Rows without advice have
    /// none. The data is on disk when this returns.
    ///
    /// The ids of a job are derived from the job and the row, so that a repeated row is recorded
    /// once.
    pub(super) async fn record(
        &self,
        served: &Served,
        request: &Request,
        subjects: &[String],
        holds_until: Option<Timestamp>,
        found: &[(usize, &Found)],
        job: Option<Uuid>,
    ) -> Result<Vec<Option<Uuid>>> {
        let mut ids = Vec::with_capacity(found.len());
        let mut promises = Vec::with_capacity(found.len());
        for (&(number, found), subject) in found.iter().zip(subjects) {
            let promise = NewPromise::of(
                served.explainer(),
                &found.advice,
                found.certificate.as_ref(),
                // The service refuses questions with a promise.
                None,
                request,
                subject,
                holds_until,
            );
            ids.push(promise.map(|mut promise| {
                if let Some(job) = job {
                    promise.id = id(job, number);
                }
                let id = promise.id;
                promises.push(promise);
                id
            }));
        }
        if !promises.is_empty() {
            self.ledger.record(&promises).await?;
        }
        Ok(ids)
    }

    /// The same for a direct answer.
    pub(crate) async fn record_now(
        &self,
        served: &Served,
        request: &Request,
        recording: &Recording,
        found: &[Found],
    ) -> Result<Vec<Option<Uuid>>> {
        let numbered: Vec<(usize, &Found)> = found.iter().enumerate().collect();
        let Recording { subjects, holds_until } = recording;
        self.record(served, request, subjects, *holds_until, &numbered, None).await
    }
}

/// The id of the promise in a row of a job.
fn id(job: Uuid, number: usize) -> Uuid {
    let digest = Sha256::new()
        .chain_update(b"promise of a job")
        .chain_update(job.as_bytes())
        .chain_update((number as u64).to_le_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
