//! Do old promises hold under a new model?
//!
//! Advice is a promise: become this row, and you will be accepted. The explainer of the model
//! that comes next says which promises it keeps, and what would repair the others.

mod gate;
mod group;
mod repair;
mod table;
mod verdict;
mod written;

use serde::{Deserialize, Serialize};

pub use gate::{Candidate, Gate};
pub use group::Grouping;
pub use verdict::{
    GateReport, GateVerdict, Group, GroupTable, JudgedCandidate, JudgedPromise, PromiseRepairs,
    PromiseStatus, Repair, RepairSearch, Tally,
};
pub use written::{Values, WrittenPromise};

use super::{Advice, Applicant, Explainer, Request};
use crate::counterfactual::{Protocol, Reason};
use crate::data::Row;
use crate::error::{Error, Result};
use crate::points::Points;
use crate::statistics::mean;

/// Advice that was given.
#[derive(Debug, Clone, PartialEq)]
struct Promise {
    /// The row of the person, in the table they came from.
    row: usize,
    /// The person as they were, where that is known.
    factual: Option<Row>,
    /// What they were advised to become.
    advised: Row,
}

/// What a new model makes of a promise.
#[derive(Debug, Clone, PartialEq)]
struct AuditedPromise {
    /// The person as they were, and what the new model says of that.
    factual: Option<Applicant>,
    /// What was advised, and what the new model says of it.
    promised: Applicant,
    /// `R^` of what was advised.
    stability: f64,
    /// What would repair the promise; `None` if it is kept.
    repairs: Option<Repairs>,
}

/// What would repair a broken promise: the request's advice from either row.
#[derive(Debug, Clone, PartialEq)]
struct Repairs {
    /// For the person who has done what was advised.
    from_promised: Advice,
    /// For the person who has done nothing yet.
    from_factual: Option<Advice>,
}

impl AuditedPromise {
    /// Whether the new model accepts what was advised: `m(x') >= 0.5`.
    fn is_kept(&self) -> bool {
        !self.promised.is_rejected()
    }
}

impl Explainer {
    /// Which promises are kept, and the stability there; no repairs yet.
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

    /// Rows of promises, and what the model says of them.
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
                if !score.is_finite() {
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

/// What repairs cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RepairSummary {
    /// The broken promises with a repair.
    pub found: usize,
    /// Those where the model accepts the person as they are. From what was promised there are
    /// none, or the promise would be kept.
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
