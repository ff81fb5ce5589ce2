//! `trex-o`: the cheapest point that passes the test.
//!
//! `min ||x' - x||  subject to  R^(x') >= tau`
//!
//! It starts at the answer of `trex-i` and then accepts only cheaper points that pass, so it never
//! costs more. If `trex-i` finds nothing, it starts from the base.

use serde::{Deserialize, Serialize};

use crate::counterfactual::judge::{Judge, Judged};
use crate::counterfactual::search::cells::Care;
use crate::counterfactual::search::{Candidate, min_cost};
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem, Robustness};
use crate::error::{Error, Result};
use crate::seed::Seed;

use super::trex_i::{Climber, TrexI};
use super::{
    MethodSpec, ModelNeed, Protocol, ReferenceUse, Spec, base, converged, found, not_found,
};

/// Parameters of `trex-o`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TrexO {
    /// The method that finds the start, with the test to pass.
    pub start: TrexI,
    /// The most steps from there.
    pub steps: usize,
}

impl Default for TrexO {
    fn default() -> Self {
        Self { start: TrexI::default(), steps: 60 }
    }
}

/// The margin of a step above the threshold: absolute, and as a maximum share of the distance from
/// the threshold to 1.
const MARGIN: f64 = 2e-3;
const MARGIN_SHARE: f64 = 0.05;

impl Spec for TrexO {
    fn title(&self) -> &'static str {
        "T-Rex:O"
    }

    fn sentence(&self) -> &'static str {
        "The cheapest change whose answer is stable around it."
    }

    /// It is not in the paper, so under every protocol it finds its start with the adaptive step,
    /// the rescue and its own draws.
    fn under(&self, protocol: Protocol) -> MethodSpec {
        let search = Robustness::default().search;
        let robustness = Robustness { search, ..Robustness::under(protocol) };
        let base = Box::new(base(protocol));
        Self { start: TrexI { base, robustness, ..TrexI::default() }, ..Self::default() }.into()
    }

    fn needs(&self) -> ModelNeed {
        self.start.needs()
    }

    fn reference(&self) -> ReferenceUse {
        self.start.reference()
    }

    fn robustness(&self) -> Option<&Robustness> {
        self.start.robustness()
    }

    fn robustness_mut(&mut self) -> Option<&mut Robustness> {
        self.start.robustness_mut()
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>> {
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        Ok(Box::new(Prepared {
            climber: self.start.climber(problem, seed)?,
            // The point of the ascent depends on the draws of its own tests.
            judge: Judge::new(&self.start.robustness, problem, seed.derive("trex-o"))?,
            search: min_cost::MinCost {
                norm: problem.norm,
                steps: self.steps,
                margin: MARGIN.min(MARGIN_SHARE * (1.0 - self.start.robustness.tau)),
                precision: min_cost::Precision::COARSE,
            },
        }))
    }
}

struct Prepared<'a> {
    climber: Climber<'a>,
    judge: Judge<'a>,
    search: min_cost::MinCost,
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let problem = &self.climber.problem;
        let base = match self.climber.start(factual, meter)? {
            Ok(base) => base,
            Err(answer) => return Ok(answer),
        };
        let at_base = meter.path.mark();
        let (start, reached) = match self.climber.climb(factual, &base, meter)? {
            Judged::Passed(candidate) => (candidate.point.clone(), Ok(candidate)),
            Judged::Failed(best, reason) => {
                meter.path.cut(at_base);
                (base, Err((best, reason)))
            }
        };
        let at_start = meter.path.mark();
        let cheapest = match &self.climber.cells {
            Some(cells) => {
                let how = (cells, self.search.steps, Care::Full);
                let starts = [&*start, factual.point];
                self.judge.judge_cells(factual, problem.norm, how, &starts, meter)?
            }
            None => self.judge.judge(
                factual,
                problem.norm,
                &start,
                meter,
                |field, test, start, meter| self.search.search(field, factual, test, start, meter),
            )?,
        };
        let cost = |c: &Candidate| factual.cost(problem.norm, &c.point);
        Ok(match (cheapest, reached) {
            (Judged::Passed(cheap), Ok(start)) if cost(&cheap) < cost(&start) => {
                found(problem, factual, cheap, converged(meter))
            }
            (_, Ok(start)) => {
                meter.path.cut(at_start);
                found(problem, factual, start, converged(meter))
            }
            (Judged::Passed(best), Err(_)) => found(problem, factual, best, converged(meter)),
            (Judged::Failed(..), Err((best, reason))) => not_found(problem, factual, best, reason),
        })
    }
}
