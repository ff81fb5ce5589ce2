//! `margin`: the closest point to which the model gives a higher score than it requires.
//!
//! `min ||x' - x||  subject to  m(x') >= s`
//!
//! It is `min-cost` with the score `s` in place of 0.5: the search climbs the logit of `m` to
//! `ln(s / (1 - s))`. A model that changes little still accepts such a point. It is the baseline of
//! the methods that look at more than the score of one point.

use serde::{Deserialize, Serialize};

use crate::counterfactual::{Method, Problem};
use crate::error::{Error, Result};
use crate::seed::Seed;

use super::{MethodSpec, Named, Protocol, ReferenceUse, Spec, min_cost};

/// Parameters of `margin`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Margin {
    /// The least score `s` of an answer: at least 0.5 and below 1.
    pub score: f64,
    /// The most steps.
    pub steps: usize,
    /// Whether to prove, on trees, that no answer is cheaper.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prove: bool,
}

impl Default for Margin {
    fn default() -> Self {
        Self { score: 0.7, steps: 200, prove: false }
    }
}

impl Spec for Margin {
    fn title(&self) -> &'static str {
        Self::NAME
    }

    fn sentence(&self) -> &'static str {
        "The smallest change to which the model gives a higher score than it requires."
    }

    fn under(&self, _: Protocol) -> MethodSpec {
        Self::default().into()
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Optional
    }

    fn prove_mut(&mut self) -> Option<&mut bool> {
        Some(&mut self.prove)
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        if !(0.5..1.0).contains(&self.score) {
            return Err(Error::param("score", self.score, "a score of at least 0.5 and below 1"));
        }
        min_cost::closest(problem, self.steps, self.score, self.prove)
    }
}
