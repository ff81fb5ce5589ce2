//! The ledger's promises under other models, as a job.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tyrex::explain::{Gate, Grouping, Request};

use super::{JobEntry, Pace};
use crate::engine::error::{Error, Result};
use crate::engine::{Contender, Engine, GateQuestion};

/// Promises to audit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AuditWork {
    /// The candidates, by their ids.
    pub(crate) candidates: Vec<String>,
    pub(crate) request: Request,
    pub(crate) by: Vec<Grouping>,
    pub(crate) allow: f64,
    pub(crate) confidence: f64,
}

impl Engine {
    pub(super) async fn run_audit(&self, entry: &Arc<JobEntry>, work: &AuditWork) -> Result<()> {
        let served = work.candidates.iter().map(|id| self.model(Some(id)));
        let question = GateQuestion {
            contenders: served
                .map(|served| served.map(Contender::Served))
                .collect::<Result<_>>()?,
            gate: Gate {
                request: work.request.clone(),
                by: work.by.clone(),
                allow: work.allow,
                confidence: work.confidence,
            },
        };
        let promises = self.open_promises().await?;
        let total = 2 * promises.len() * question.contenders.len();
        entry.progress.send_modify(|job| job.total = total);
        let (own, parking, active) = (Arc::clone(entry), self.parking.clone(), self.active());
        let judged = self.pool.run_in_background(move || {
            let step = || {
                own.step();
                // The library checks one flag; two events may set it.
                if parking.is_set() || own.stop.is_set() {
                    own.halt.set();
                }
            };
            let report = question.judged(active.as_deref(), &promises, None, &own.halt, step)?;
            serde_json::to_string(&report)
                .map_err(|error| Error::Broken(format!("a report without text: {error}")))
        });
        let result = self.told(entry, 0, &Pace::new(0), judged).await?;
        self.store.set_result(&entry.id.to_string(), &result).await
    }
}
