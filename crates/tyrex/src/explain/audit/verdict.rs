//! The report of the gate: one document for the command line, the service and Python.

use serde::{Deserialize, Serialize};

use super::updates::Updates;
use super::{RepairPart, RepairSummary, Values, WrittenPromise};
use crate::counterfactual::Reason;
use crate::error::{Error, Result};
use crate::explain::{Costs, FeatureChange, PromisedProbability, Request, ShownPromise};
use crate::statistics::{Proportion, mean};

/// The results of all candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GateReport {
    /// The version of this document.
    pub format_version: u32,
    /// Whether a candidate may be deployed.
    pub verdict: GateVerdict,
    /// The share of promises that may be broken.
    pub allow: f64,
    /// The confidence of the intervals and of the test of groups.
    pub confidence: f64,
    /// The request for repairs.
    pub request: Request,
    /// The candidates, the best first.
    pub candidates: Vec<JudgedCandidate>,
    /// The candidates as successive updates, in the order in which they were given; absent without
    /// promises, and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<Updates>,
    /// The promises, as recorded.
    pub promises: Vec<WrittenPromise>,
    /// The part of the broken promises that has repairs, if it is not all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<RepairPart>,
}

/// Whether a candidate may be deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GateVerdict {
    /// Whether the best candidate breaks no more than is allowed.
    pub passes: bool,
    /// The best candidate.
    pub best: String,
    /// All candidates that break no more than is allowed, the best first.
    pub passing: Vec<String>,
    /// The decision in words.
    pub sentence: String,
}

/// The result of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JudgedCandidate {
    /// Its rank, from 1: by promises kept, then by mean stability, then by name.
    pub rank: usize,
    /// Its name.
    pub name: String,
    /// The fingerprint of the model's weights.
    pub fingerprint: String,
    /// The SHA-256 of what else decides the score of a row: the encoder and the promised outcome.
    #[serde(default)]
    pub encoding: String,
    /// An earlier candidate that is the same model.
    pub same_as: Option<String>,
    /// Whether it breaks no more than is allowed.
    pub passes: bool,
    /// The number of promises that it keeps.
    pub tally: Tally,
    /// The mean `R^` of the advised rows.
    pub mean_stability: Option<f64>,
    /// Repairs for people who have followed the advice.
    pub from_promised: RepairSummary,
    /// Repairs for people who have not followed it yet.
    pub from_factual: RepairSummary,
    /// How its repairs were searched for.
    pub search: RepairSearch,
    /// Its features, in their order.
    pub features: Vec<String>,
    /// Features of the promises that are not inputs of the model.
    pub ignored: Vec<String>,
    /// The promises in groups.
    pub groups: Vec<GroupTable>,
    /// The promises, in their order.
    pub promises: Vec<JudgedPromise>,
}

impl JudgedCandidate {
    /// Whether both give every row the same score.
    pub(super) fn is_model_of(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.encoding == other.encoding
    }
}

/// The number of kept promises.
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
    /// Clopper and Pearson's interval for the share in the population that the promises are drawn
    /// from.
    pub interval: (f64, f64),
    /// The promises that state a probability, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
}

/// Promises that state a probability: the probability beside the share kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Stated {
    /// The number of these promises.
    pub promises: usize,
    /// Those that are kept.
    pub kept: usize,
    /// `kept / promises`
    pub share_kept: f64,
    /// The mean of the promised probabilities. Each is a lower bound at its confidence.
    pub mean_probability: f64,
    /// The mean of the predictive probabilities.
    pub mean_predictive: f64,
}

impl Stated {
    fn of(promises: &[(PromiseStatus, PromisedProbability)]) -> Option<Self> {
        let kept = promises.iter().filter(|(status, _)| *status == PromiseStatus::Kept).count();
        let mean = |number: fn(&PromisedProbability) -> f64| {
            mean(&promises.iter().map(|(_, promised)| number(promised)).collect::<Vec<_>>())
        };
        Some(Self {
            promises: promises.len(),
            kept,
            mean_probability: mean(|promised| promised.probability)?,
            mean_predictive: mean(|promised| promised.predictive)?,
            share_kept: kept as f64 / promises.len() as f64,
        })
    }
}

impl Tally {
    /// The tally of promises by status, with the probability that each states.
    pub(super) fn of(
        statuses: impl Iterator<Item = (PromiseStatus, Option<PromisedProbability>)>,
        confidence: f64,
    ) -> Result<Self> {
        let (mut promises, mut kept, mut unreadable) = (0, 0, 0);
        let mut stated = Vec::new();
        for (status, promised) in statuses {
            stated.extend(promised.map(|promised| (status, promised)));
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
            stated: Stated::of(&stated),
        })
    }

    /// The same counts, with all that follows from them.
    pub(super) fn anew(&self, confidence: f64) -> Result<Self> {
        let Self { promises, kept, unreadable, stated, .. } = *self;
        let share = |stated: Stated| {
            let share_kept = stated.kept as f64 / stated.promises as f64;
            Stated { share_kept, ..stated }
        };
        Ok(Self {
            promises,
            kept,
            broken: promises.saturating_sub(kept),
            unreadable,
            share_kept: (promises > 0).then(|| kept as f64 / promises as f64),
            interval: Proportion::new(kept, promises)?.between(1.0 - confidence)?,
            stated: stated.map(share),
        })
    }

    /// The counts of the other promises, if these are some of them.
    pub(super) fn without(&self, some: &Self) -> Result<Self> {
        let rest = |all: usize, some: usize| {
            let expected = "at most as many promises as there are";
            all.checked_sub(some).ok_or_else(|| Error::param("groups", some, expected))
        };
        Ok(Self {
            promises: rest(self.promises, some.promises)?,
            kept: rest(self.kept, some.kept)?,
            ..*self
        })
    }

    /// The share that is broken; 0 of none.
    pub(crate) fn share_broken(&self) -> f64 {
        if self.promises == 0 { 0.0 } else { self.broken as f64 / self.promises as f64 }
    }
}

/// How repairs were searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RepairSearch {
    /// The method and its parameters; `None` if no search was possible.
    pub request: Option<Request>,
    /// The meaning of "cheapest", or the reason why there was no search.
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
    /// The number of kept promises.
    pub tally: Tally,
    /// The p-value of Fisher's exact test, two-sided, of the group against the other promises.
    /// `None` if either is empty.
    pub p_value: Option<f64>,
    /// The p-value with Holm's correction for all groups of this document.
    pub adjusted: Option<f64>,
    /// Whether the corrected p-value is at most 1 - confidence.
    pub differs: bool,
}

/// The status of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PromiseStatus {
    /// The candidate accepts the advised row.
    Kept,
    /// It does not.
    Broken,
    /// The advised row does not fit the candidate's features; this counts as broken.
    Unreadable,
}

impl PromiseStatus {
    /// The name, as in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The result of one promise under a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JudgedPromise {
    /// The name of the promise.
    pub name: String,
    /// Its status.
    pub status: PromiseStatus,
    /// Why the promise or the original row cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `m(x')` of the advised row.
    pub score: Option<f32>,
    /// `R^` there.
    pub stability: Option<f64>,
    /// `m(x)` of the original row.
    pub factual_score: Option<f32>,
    /// The advice as a sentence, if the promise is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The advised changes, if the promise is broken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FeatureChange>,
    /// The repairs, if it is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<PromiseRepairs>,
}

/// The repairs of a broken promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PromiseRepairs {
    /// For a person who has followed the advice.
    pub from_promised: Repair,
    /// For a person who has not followed it yet, if the original row is known.
    pub from_factual: Option<Repair>,
}

/// The cheapest repair that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Repair {
    /// A repair was found.
    Found {
        /// The repair as a sentence.
        sentence: String,
        /// The changes, in the order of the features.
        changes: Vec<FeatureChange>,
        /// The whole row after the changes.
        #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, crate::data::FeatureValue>))]
        counterfactual: Values,
        /// `m(x')`
        score: f32,
        /// `R^` there.
        stability: Option<f64>,
        /// The distances.
        cost: Option<Costs>,
        /// The judgement of retrained models of the candidate, if they were given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        promise: Option<ShownPromise>,
    },
    /// No repair was found.
    NotFound {
        /// The reason.
        reason: Reason,
        /// The reason in words.
        sentence: String,
    },
}

impl Repair {
    /// The changes, if a repair was found.
    pub fn changes(&self) -> Option<&[FeatureChange]> {
        match self {
            Self::Found { changes, .. } => Some(changes),
            Self::NotFound { .. } => None,
        }
    }
}

impl GateReport {
    /// Whether the best candidate breaks no more than is allowed.
    pub fn passes(&self) -> bool {
        self.verdict.passes
    }
}
