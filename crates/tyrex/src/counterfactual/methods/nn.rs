//! `nn` and `trex-nn`: the nearest data point that the model accepts; and the nearest that
//! also passes the test of robustness, Algorithm 2 of the paper.
//!
//! Deviation from the paper: if answers are rows that satisfy rules, a data point is moved to the
//! nearest row that the factual may become, and tested there.

use serde::{Deserialize, Serialize};

use crate::counterfactual::judge::Judge;
use crate::counterfactual::search::Test;
use crate::counterfactual::search::neighbours::Neighbours;
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem, Reason, Robustness, Stopped};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Prediction};
use crate::seed::Seed;

use super::{MethodSpec, ModelNeed, Protocol, ReferenceUse, Spec, found, not_found, unread};

/// Parameters of `nn`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Nn {}

/// Parameters of `trex-nn`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TrexNn {
    /// How many of the nearest data points are tested; the paper's `K`. All if absent.
    pub neighbours: Option<usize>,
    /// The test to pass.
    pub robustness: Robustness,
}

impl Spec for Nn {
    fn title(&self) -> &'static str {
        "NN"
    }

    fn sentence(&self) -> &'static str {
        "The nearest row of the data that the model accepts."
    }

    fn under(&self, _: Protocol) -> MethodSpec {
        Self {}.into()
    }

    fn needs(&self) -> ModelNeed {
        ModelNeed::Scores
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Required
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        let gauge = Gauge::new(Prediction {}, problem.model, &unread(problem.model)?)?;
        prepared(problem, gauge, 0.5, usize::MAX)
    }
}

impl Spec for TrexNn {
    fn title(&self) -> &'static str {
        "T-Rex:NN"
    }

    fn sentence(&self) -> &'static str {
        "The nearest row of the data whose answer is stable around it."
    }

    fn under(&self, protocol: Protocol) -> MethodSpec {
        let neighbours = (protocol == Protocol::Paper).then_some(1000);
        Self { neighbours, robustness: Robustness::under(protocol) }.into()
    }

    fn needs(&self) -> ModelNeed {
        ModelNeed::Scores
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Required
    }

    fn robustness(&self) -> Option<&Robustness> {
        Some(&self.robustness)
    }

    fn robustness_mut(&mut self) -> Option<&mut Robustness> {
        Some(&mut self.robustness)
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>> {
        if self.neighbours == Some(0) {
            return Err(Error::param("neighbours", 0, "at least 1"));
        }
        let gauge = Judge::test(&self.robustness, problem.model, seed)?;
        let count = self.neighbours.unwrap_or(usize::MAX);
        prepared(problem, gauge, self.robustness.tau, count)
    }
}

fn prepared<'a>(
    problem: &Problem<'a>,
    gauge: Gauge<'a>,
    threshold: f64,
    count: usize,
) -> Result<Box<dyn Method + 'a>> {
    if problem.data.is_empty() {
        return Err(Error::param(
            "reference",
            "none",
            "rows to answer with: nn and trex-nn answer with a row of the reference",
        ));
    }
    let neighbours = Neighbours::new(problem, gauge);
    Ok(Box::new(Prepared { problem: *problem, neighbours, test: Test { threshold }, count }))
}

struct Prepared<'a> {
    problem: Problem<'a>,
    neighbours: Neighbours<'a>,
    test: Test,
    count: usize,
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let norm = self.problem.norm;
        let best = self.neighbours.nearest(factual, norm, self.test, self.count, meter);
        Ok(match best {
            Some(candidate) if self.test.passes(candidate.reading) => {
                found(&self.problem, factual, candidate, Stopped::Reached)
            }
            best => {
                let reason =
                    if meter.is_spent() { Reason::BudgetSpent } else { Reason::NoCandidate };
                not_found(&self.problem, factual, best, reason)
            }
        })
    }
}
