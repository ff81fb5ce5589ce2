//! The answer for one factual: found, or not found with the best effort and the reason.

use serde::{Deserialize, Serialize};

use super::budget::Effort;
use crate::data::Row;

/// A counterfactual: the exact point that passed the method's test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Counterfactual {
    /// The point, encoded.
    pub point: Vec<f32>,
    /// `m(x')`
    pub score: f32,
    /// The value of the method's measure there, in its test.
    pub value: f64,
    /// The distance from the factual, by the problem's norm.
    pub cost: f64,
    /// No answer costs less, if a proof was asked for. The answer is the cheapest if this is its
    /// cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_cost: Option<f64>,
    /// The exact row of the point, if only rows are answers; decoding the point would lose digits.
    /// It is not serialised here, since files have their own form for rows.
    #[serde(skip)]
    pub row: Option<Row>,
}

/// The result for one factual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// The work it took.
    pub effort: Effort,
    /// The time it took; the one part that differs from run to run.
    pub seconds: f64,
}

/// The answer: found or not found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Answer {
    /// A point passed the test.
    Found {
        /// The point.
        counterfactual: Counterfactual,
        /// Why the search stopped.
        stopped: Stopped,
    },
    /// No point passed the test.
    NotFound {
        /// The best point that failed, if the search had one.
        best: Option<Counterfactual>,
        /// The reason.
        reason: Reason,
    },
}

/// Why a successful search stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The method returns the first point that passes.
    Reached,
    /// No cheaper point was found.
    Converged,
    /// The budget was spent; a longer search may find a cheaper point.
    BudgetSpent,
}

/// Why no counterfactual was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The model accepts the factual already.
    AlreadyFavourable,
    /// The budget was spent before a point passed.
    BudgetSpent,
    /// No small step increases the measure, or the method's own limit of steps is reached.
    Stuck,
    /// None of the tested data points passes.
    NoCandidate,
    /// Points pass, but no row near them was found that satisfies the rules and passes.
    NoActionableRow,
    /// No point was found that passes and is as usual as asked.
    Implausible,
    /// Points pass, but models that chose the margin do not accept one of them often enough.
    PromiseOutOfReach,
    /// The search was cancelled.
    Cancelled,
}

impl Reason {
    /// The reason as written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AlreadyFavourable => "already-favourable",
            Self::BudgetSpent => "budget-spent",
            Self::Stuck => "stuck",
            Self::NoCandidate => "no-candidate",
            Self::NoActionableRow => "no-actionable-row",
            Self::Implausible => "implausible",
            Self::PromiseOutOfReach => "promise-out-of-reach",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AlreadyFavourable => "the model accepts it already",
            Self::BudgetSpent => "the budget was spent before a point passed; a larger one may find advice",
            Self::Stuck => {
                "the search found no allowed change that passes the test of the method"
            }
            Self::NoCandidate => "none of the data points that were tried passes the test",
            Self::NoActionableRow => {
                "points pass, but no row near them was found that satisfies the rules and passes"
            }
            Self::Implausible => {
                "the search found no allowed change that passes the test of the method and is as \
                 usual as asked"
            }
            Self::PromiseOutOfReach => {
                "the search found no allowed change that its models accept often enough for the promise"
            }
            Self::Cancelled => "the search was cancelled",
        })
    }
}

impl Outcome {
    /// The counterfactual, if one was found.
    pub fn found(&self) -> Option<&Counterfactual> {
        match &self.answer {
            Answer::Found { counterfactual, .. } => Some(counterfactual),
            Answer::NotFound { .. } => None,
        }
    }

    /// Whether the budget ended the search, so that a longer search may find a cheaper point.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self.answer, Answer::Found { stopped: Stopped::BudgetSpent, .. })
    }

    /// The reason, if no counterfactual was found.
    pub fn reason(&self) -> Option<Reason> {
        match &self.answer {
            Answer::Found { .. } => None,
            Answer::NotFound { reason, .. } => Some(*reason),
        }
    }
}
