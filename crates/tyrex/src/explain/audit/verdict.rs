//! What the gate says: one document for the command line, the service and Python.

use serde::{Deserialize, Serialize};

use super::{RepairSummary, Values, WrittenPromise};
use crate::counterfactual::Reason;
use crate::error::Result;
use crate::explain::{Costs, FeatureChange, Request};
use crate::statistics::Proportion;

/// What candidates make of promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GateReport {
    /// The version of this document.
    pub format_version: u32,
    /// Whether a candidate may follow.
    pub verdict: GateVerdict,
    /// The share of promises that may be broken.
    pub allow: f64,
    /// The confidence of the intervals and of the test of groups.
    pub confidence: f64,
    /// How repairs were asked for.
    pub request: Request,
    /// The candidates, the best first.
    pub candidates: Vec<JudgedCandidate>,
    /// The promises, as they were written down.
    pub promises: Vec<WrittenPromise>,
}

/// Whether a candidate may follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GateVerdict {
    /// Whether the best candidate breaks no more than is allowed.
    pub passes: bool,
    /// The best candidate.
    pub best: String,
    /// All candidates that break no more than is allowed, the best first.
    pub passing: Vec<String>,
    /// The same in words.
    pub sentence: String,
}

/// What one candidate makes of the promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JudgedCandidate {
    /// Its place, from 1: by promises kept, then by mean stability, then by name.
    pub rank: usize,
    /// What it is called.
    pub name: String,
    /// The name of the model that changes with its weights.
    pub fingerprint: String,
    /// An earlier candidate that is the same model.
    pub same_as: Option<String>,
    /// Whether it breaks no more than is allowed.
    pub passes: bool,
    /// How many promises it keeps.
    pub tally: Tally,
    /// The mean `R^` of what was advised.
    pub mean_stability: Option<f64>,
    /// Repairs for people who have done what was advised.
    pub from_promised: RepairSummary,
    /// Repairs for people who have done nothing yet.
    pub from_factual: RepairSummary,
    /// How its repairs were searched for.
    pub search: RepairSearch,
    /// Its features, in their order.
    pub features: Vec<String>,
    /// Features of the promises that it does not take.
    pub ignored: Vec<String>,
    /// The promises in groups.
    pub groups: Vec<GroupTable>,
    /// The promises, in their order.
    pub promises: Vec<JudgedPromise>,
}

/// How many promises are kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tally {
    /// The number of promises.
    pub promises: usize,
    /// Those that are kept.
    pub kept: usize,
    /// The others.
    pub broken: usize,
    /// Those of the others that the candidate cannot read.
    pub unreadable: usize,
    /// `kept / promises`, if there are any.
    pub share_kept: Option<f64>,
    /// Clopper and Pearson's interval: where the share lies among all promises that these are
    /// drawn from.
    pub interval: (f64, f64),
}

impl Tally {
    /// The tally of what became of some promises.
    pub(super) fn of(
        statuses: impl Iterator<Item = PromiseStatus>,
        confidence: f64,
    ) -> Result<Self> {
        let (mut promises, mut kept, mut unreadable) = (0, 0, 0);
        for status in statuses {
            promises += 1;
            kept += usize::from(status == PromiseStatus::Kept);
            unreadable += usize::from(status == PromiseStatus::Unreadable);
        }
        Ok(Self {
            promises,
            kept,
            broken: promises - kept,
            unreadable,
            share_kept: (promises > 0).then(|| kept as f64 / promises as f64),
            interval: Proportion::new(kept, promises)?.between(1.0 - confidence)?,
        })
    }

    /// The share that is broken; 0 of none.
    #[must_use]
    pub fn share_broken(&self) -> f64 {
        if self.promises == 0 { 0.0 } else { self.broken as f64 / self.promises as f64 }
    }
}

/// How repairs were searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RepairSearch {
    /// The method and its parameters; nothing if no search could be made.
    pub request: Option<Request>,
    /// What "cheapest" means, or why there was no search.
    pub sentence: String,
}

/// The promises in groups by one feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupTable {
    /// The feature.
    pub feature: String,
    /// The unit of its numbers.
    pub unit: Option<String>,
    /// The groups. Every promise is in one of them.
    pub groups: Vec<Group>,
}

/// The promises of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Group {
    /// The level, or the range.
    pub name: String,
    /// How many promises are kept.
    pub tally: Tally,
    /// Fisher's exact test, two-sided: how often chance alone sets the group and the other
    /// promises at least so far apart. Nothing if there are no promises in it, or no others.
    pub p_value: Option<f64>,
    /// The same by Holm, corrected for all groups of this document.
    pub adjusted: Option<f64>,
    /// Whether that is at most 1 - confidence: the group differs from the others beyond chance.
    pub differs: bool,
}

/// What became of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PromiseStatus {
    /// The candidate accepts what was advised.
    Kept,
    /// It does not.
    Broken,
    /// What was advised does not fit the candidate's features; that counts as broken.
    Unreadable,
}

impl PromiseStatus {
    /// The name, the same everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What a candidate makes of one promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JudgedPromise {
    /// What the promise is called.
    pub name: String,
    /// What became of it.
    pub status: PromiseStatus,
    /// Why it, or the person as they were, cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `m(x')` of what was advised.
    pub score: Option<f32>,
    /// `R^` there.
    pub stability: Option<f64>,
    /// `m(x)` of the person as they were.
    pub factual_score: Option<f32>,
    /// What was advised, in a sentence, if the promise is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// What was to change, if the promise is broken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FeatureChange>,
    /// What would repair it, if it is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<PromiseRepairs>,
}

/// What would repair a broken promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PromiseRepairs {
    /// For the person who has done what was advised.
    pub from_promised: Repair,
    /// For the person who has done nothing yet, where it is known how they were.
    pub from_factual: Option<Repair>,
}

/// The cheapest way that was found to be accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Repair {
    /// There is one.
    Found {
        /// What to do, in a sentence.
        sentence: String,
        /// What changes, in the order of the features.
        changes: Vec<FeatureChange>,
        /// The whole row after it.
        #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, crate::data::FeatureValue>))]
        counterfactual: Values,
        /// `m(x')`
        score: f32,
        /// `R^` there.
        stability: Option<f64>,
        /// The distances.
        cost: Option<Costs>,
    },
    /// There is none.
    NotFound {
        /// Why.
        reason: Reason,
        /// Why, in words.
        sentence: String,
    },
}

impl Repair {
    /// What changes, if a repair was found.
    #[must_use]
    pub fn changes(&self) -> Option<&[FeatureChange]> {
        match self {
            Self::Found { changes, .. } => Some(changes),
            Self::NotFound { .. } => None,
        }
    }
}

impl GateReport {
    /// Whether the best candidate breaks no more than is allowed.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.verdict.passes
    }
}
