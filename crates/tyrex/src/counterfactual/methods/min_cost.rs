//! `min-cost`: the closest point the model accepts. The paper's base method.
//!
//! `min ||x' - x||  subject to  m(x') >= 0.5`
//!
//! The search climbs the logit of `m`, which has a slope where `m` itself is flat. If it gets
//! nowhere, it starts again from the nearest data point the model accepts.

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::{Logit, Reader};
use crate::counterfactual::search::neighbours::Neighbours;
use crate::counterfactual::search::{Candidate, Test, min_cost};
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Measure};

use super::{Finish, conclude, unread};

/// Parameters of `min-cost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MinCost {
    /// The most steps.
    pub steps: usize,
}

impl Default for MinCost {
    fn default() -> Self {
        Self { steps: 200 }
    }
}

/// How far above a logit of 0 the search aims, so that rounding cannot take it below.
const MARGIN: f64 = 1e-3;
/// `m >= 0.5`, as a logit.
pub(super) const ACCEPTED: Test = Test { threshold: 0.0 };

impl MinCost {
    pub(super) fn prepare<'a>(&self, problem: &Problem<'a>) -> Result<Box<dyn Method + 'a>> {
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        problem.differentiable("min-cost")?;
        let gauge = || Gauge::new(Measure::Prediction, problem.model, &unread(problem.model)?);
        Ok(Box::new(Prepared {
            problem: *problem,
            search: min_cost::MinCost {
                norm: problem.norm,
                steps: self.steps,
                margin: MARGIN,
                precision: min_cost::Precision::FINE,
            },
            gauge: gauge()?,
            neighbours: Neighbours::new(problem.data, problem.model, gauge()?),
        }))
    }
}

struct Prepared<'a> {
    problem: Problem<'a>,
    search: min_cost::MinCost,
    gauge: Gauge<'a>,
    neighbours: Neighbours<'a>,
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let norm = self.problem.norm;
        let mut field = Logit(Reader::new(&self.gauge));
        let passes = |c: &Option<Candidate>| {
            c.as_ref().is_some_and(|candidate| ACCEPTED.passes(candidate.reading))
        };
        let mut best = self.search.search(&mut field, factual, ACCEPTED, factual.point, meter)?;
        if !passes(&best) && !self.neighbours.is_empty() {
            let accepted = Test { threshold: 0.5 };
            let relaxed = factual.relaxed();
            let start = self.neighbours.nearest(&relaxed, norm, accepted, 1, meter);
            if let Some(mut start) = start {
                factual.set.project(&mut start.point);
                let again =
                    self.search.search(&mut field, factual, ACCEPTED, &start.point, meter)?;
                best = again.filter(|c| ACCEPTED.passes(c.reading)).or(best);
            }
        }
        conclude(&self.problem, factual, &mut field, ACCEPTED, best, Finish::Trim, meter)
    }
}
