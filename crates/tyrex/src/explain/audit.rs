//! Audits: does advice given earlier hold under a new model?
//!
//! Advice is a promise: an applicant who becomes this row is accepted. The explainer of the next
//! model reports which promises it keeps, and how to repair the others.

mod check;
mod gate;
mod group;
mod part;
mod repair;
mod table;
mod updates;
mod verdict;
mod written;

use serde::{Deserialize, Serialize};

pub use gate::{Gate, GateCandidate};
pub use group::Grouping;
pub(super) use group::Partition;
pub use part::RepairPart;
pub use updates::{Update, Updates};
pub use verdict::{
    GateReport, GateVerdict, Group, GroupTable, JudgedCandidate, JudgedPromise, PromiseRepairs,
    PromiseStatus, Repair, RepairSearch, Stated, Tally,
};
pub use written::{Values, WrittenPromise};

use super::{Advice, Applicant, Explainer, Request};
use crate::counterfactual::{Protocol, Reason};
use crate::data::Row;
use crate::error::{Error, Result};
use crate::model::is_probability;
use crate::points::Points;
use crate::statistics::mean;

/// Advice that was given.
#[derive(Debug, Clone, PartialEq)]
struct Promise {
    /// The row of the person in the original table.
    row: usize,
    /// The original row, if known.
    factual: Option<Row>,
    /// The advised row.
    advised: Row,
}

/// The result of a promise under a new model.
#[derive(Debug, Clone, PartialEq)]
struct AuditedPromise {
    /// The original row, with its score under the new model.
    factual: Option<Applicant>,
    /// The advised row, with its score under the new model.
    promised: Applicant,
    /// `R^` of the advised row.
    stability: f64,
    /// The repairs of the promise; `None` if it is kept.
    repairs: Option<Repairs>,
}

/// The repairs of a broken promise: advice from the advised row and from the original row.
#[derive(Debug, Clone, PartialEq)]
struct Repairs {
    /// For a person who has followed the advice.
    from_promised: Advice,
    /// For a person who has not followed it yet.
    from_factual: Option<Advice>,
}

impl AuditedPromise {
    /// Whether the new model accepts the advised row: `m(x') >= 0.5`.
    fn is_kept(&self) -> bool {
        !self.promised.is_rejected()
    }
}

impl Explainer {
    /// The kept promises and their stability, without repairs.
    fn judge(&self, promises: &[Promise], request: &Request) -> Result<Vec<AuditedPromise>> {
        if request.protocol != Protocol::Product {
            return Err(Error::param(
                "protocol",
                request.protocol.name(),
                "product, since promises are rows",
            ));
        }
        let rows = promises.iter().map(|promise| (promise.row, &promise.advised));
        let promised = self.judged(rows)?;
        let points = promised.iter().map(|applicant| &*applicant.point);
        let reader = self.stability_reader(request, "audit")?;
        let stabilities = self.read_stabilities(&reader, points)?;
        let known = promises.iter().filter_map(|each| Some((each.row, each.factual.as_ref()?)));
        let mut factuals = self.judged(known)?.into_iter();
        let each = promises.iter().zip(promised).zip(stabilities);
        Ok(each
            .map(|((promise, promised), stability)| AuditedPromise {
                factual: promise.factual.as_ref().and_then(|_| factuals.next()),
                promised,
                stability,
                repairs: None,
            })
            .collect())
    }

    /// The rows of promises, with their scores.
    fn judged<'a>(
        &self,
        rows: impl Iterator<Item = (usize, &'a Row)> + Clone,
    ) -> Result<Vec<Applicant>> {
        let mut points = Points::new(self.points().dim());
        for (row, values) in rows.clone() {
            let point = self.encoder().encode(values).map_err(|error| {
                Error::InvalidModel(format!("it does not take the promise to row {row}: {error}"))
            })?;
            points.push(point.as_slice());
        }
        let scores = self.model().score(&points);
        let judged = rows.zip(points.rows()).zip(scores);
        judged
            .map(|(((row, values), point), score)| {
                if !is_probability(score) {
                    return Err(Error::InvalidModel(format!(
                        "its score of the promise to row {row} is {score}, expected a probability"
                    )));
                }
                Ok(Applicant {
                    row,
                    values: values.clone(),
                    point: point.to_vec(),
                    score,
                    label: None,
                    favourable: None,
                })
            })
            .collect()
    }
}

/// The cost of repairs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RepairSummary {
    /// The broken promises with a repair.
    pub found: usize,
    /// Those whose start the model accepts. There are none from the advised row, since then the
    /// promise would be kept.
    pub already_favourable: usize,
    /// Those whose search was cancelled.
    pub cancelled: usize,
    /// Those without a repair for another reason.
    pub not_found: usize,
    /// The mean distance of a repair that was found, in encoded space.
    pub mean_l1: Option<f64>,
    /// The same by `L2`.
    pub mean_l2: Option<f64>,
    /// The mean number of features that change.
    pub mean_changed: Option<f64>,
}

impl RepairSummary {
    fn of(repairs: &[&Advice]) -> Self {
        let because = |reason: Reason| {
            repairs.iter().filter(|repair| repair.outcome.reason() == Some(reason)).count()
        };
        let average = |number: &dyn Fn(&Advice) -> Option<f64>| {
            mean(&repairs.iter().filter_map(|repair| number(repair)).collect::<Vec<_>>())
        };
        let already_favourable = because(Reason::AlreadyFavourable);
        let cancelled = because(Reason::Cancelled);
        let found = repairs.iter().filter(|repair| repair.found().is_some()).count();
        Self {
            found,
            already_favourable,
            cancelled,
            not_found: repairs.len() - found - already_favourable - cancelled,
            mean_l1: average(&|repair| Some(repair.cost?.l1)),
            mean_l2: average(&|repair| Some(repair.cost?.l2)),
            mean_changed: average(&|repair| Some(repair.changed_count()? as f64)),
        }
    }
}
