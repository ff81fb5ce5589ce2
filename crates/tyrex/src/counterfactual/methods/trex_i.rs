//! `trex-i`: a base counterfactual, then ascent of the measure until it passes. Algorithm 1 of the
//! paper.
//!
//! `x' <- x' + eta dR^/dx'  while  R^(x') < tau`
//!
//! The ascent may end in a local maximum below the threshold. Then the answer is the first point
//! that passes on the line from the base to the nearest data point that passes. The paper leaves
//! the start open ("any technique"); its protocol uses one start only.
//!
//! Deviations. The paper draws fresh noise at every step and returns the last point; here the noise
//! of the search is fixed, and the point returned is the one that passed the test, on draws that
//! the search did not use. A data point that is itself the answer is tested, as in `trex-nn`, on
//! the draws that chose it. The step is adaptive by default.

use serde::{Deserialize, Serialize};

use crate::counterfactual::judge::{Judge, Judged};
use crate::counterfactual::search::ascent::{Ascent, Step, first_passing};
use crate::counterfactual::search::cells::{Care, Cells};
use crate::counterfactual::search::neighbours::Neighbours;
use crate::counterfactual::search::{Candidate, Test};
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem, Robustness, Stopped};
use crate::error::{Error, Result};
use crate::seed::Seed;

use super::{MethodSpec, ModelNeed, Protocol, ReferenceUse, Spec, base, found, not_found};

/// How many times the line to a data point is halved.
const PULLS: usize = 10;
/// The data points that are tried if answers have to be usual.
const USUAL_TRIES: usize = 300;

/// Parameters of `trex-i`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TrexI {
    /// The base method.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub base: Box<MethodSpec>,
    /// The test to pass.
    pub robustness: Robustness,
    /// The step size.
    pub step: Step,
    /// The most steps.
    pub steps: usize,
    /// Whether to search towards a data point if the ascent fails.
    pub rescue: bool,
}

impl Default for TrexI {
    fn default() -> Self {
        Self {
            base: Box::new(base(Protocol::Product)),
            robustness: Robustness::default(),
            step: Step::Adaptive,
            steps: 200,
            rescue: true,
        }
    }
}

impl Spec for TrexI {
    fn title(&self) -> &'static str {
        "T-Rex:I"
    }

    fn sentence(&self) -> &'static str {
        "The smallest change first, then further until the answer is stable around it."
    }

    fn under(&self, protocol: Protocol) -> MethodSpec {
        let (step, steps) = match protocol {
            Protocol::Product => (Step::Adaptive, 200),
            Protocol::Paper => (Step::Raw(0.01), 200),
            Protocol::Reference => (Step::Unit(0.01), 20),
        };
        let base = Box::new(base(protocol));
        let rescue = protocol == Protocol::Product;
        Self { base, robustness: Robustness::under(protocol), step, steps, rescue }.into()
    }

    fn needs(&self) -> ModelNeed {
        self.base.needs().max(ModelNeed::GradientsOrTrees)
    }

    fn reference(&self) -> ReferenceUse {
        let own = if self.rescue { ReferenceUse::Optional } else { ReferenceUse::Unused };
        own.max(self.base.reference())
    }

    fn robustness(&self) -> Option<&Robustness> {
        Some(&self.robustness)
    }

    fn robustness_mut(&mut self) -> Option<&mut Robustness> {
        Some(&mut self.robustness)
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Box<dyn Method + 'a>> {
        Ok(Box::new(self.climber(problem, seed)?))
    }
}

impl TrexI {
    pub(super) fn climber<'a>(&self, problem: &Problem<'a>, seed: Seed) -> Result<Climber<'a>> {
        if let Step::Raw(rate) | Step::Unit(rate) = self.step
            && !(rate > 0.0 && rate.is_finite())
        {
            return Err(Error::param("step", rate, "a number above 0"));
        }
        let rescue = if self.rescue && !problem.data.is_empty() {
            let gauge = Judge::test(&self.robustness, problem.model, seed.derive("rescue"))?;
            Some(Neighbours::new(problem, gauge))
        } else {
            None
        };
        Ok(Climber {
            problem: *problem,
            base: self.base.prepare(problem, seed)?,
            judge: Judge::new(&self.robustness, problem, seed)?,
            ascent: Ascent { step: self.step, steps: self.steps, ball: None },
            test: Test { threshold: self.robustness.tau },
            rescue,
            cells: Cells::of(std::iter::once(problem.model))?,
        })
    }
}

/// A base method and the ascent from its answer.
pub(super) struct Climber<'a> {
    pub(super) problem: Problem<'a>,
    base: Box<dyn Method + 'a>,
    judge: Judge<'a>,
    ascent: Ascent<'static>,
    test: Test,
    rescue: Option<Neighbours<'a>>,
    /// The cells of trees.
    pub(super) cells: Option<Cells>,
}

impl Climber<'_> {
    /// The base's point, or the base's answer if it found none.
    pub(super) fn start(
        &self,
        factual: &Factual,
        meter: &mut Meter,
    ) -> Result<std::result::Result<Vec<f32>, Answer>> {
        // On trees the steps lead from row to row.
        let factual = if self.cells.is_some() { *factual } else { factual.relaxed() };
        Ok(match self.base.find(&factual, meter)? {
            Answer::Found { counterfactual, .. } => Ok(counterfactual.point),
            answer @ Answer::NotFound { .. } => Err(answer),
        })
    }

    /// The data points that are tried, nearest first. Few that are near are usual for the factual, and
    /// each of the others takes a test.
    fn tries(&self) -> usize {
        if self.problem.is_plausible() { USUAL_TRIES } else { usize::MAX }
    }

    /// The ascent from a point.
    pub(super) fn climb(
        &self,
        factual: &Factual,
        start: &[f32],
        meter: &mut Meter,
    ) -> Result<Judged> {
        let norm = self.problem.norm;
        let base = meter.path.mark();
        if let Some(cells) = &self.cells {
            return self.climb_cells(cells, factual, start, meter);
        }
        let climbed =
            self.judge.judge(factual, norm, start, meter, |field, test, start, meter| {
                self.ascent.climb(field, factual.set, Some(test), start, meter)
            })?;
        match (climbed, &self.rescue) {
            (Judged::Failed(best, reason), Some(data)) => {
                let climb = meter.path.cut(base);
                let rescued = self.rescue(data, factual, start, meter)?;
                meter.path.cut(base);
                if let Some(rescued) = rescued {
                    meter.path.step(&rescued.point);
                    return Ok(Judged::Passed(rescued));
                }
                meter.path.follow(&climb);
                Ok(Judged::Failed(best, reason))
            }
            (climbed, _) => Ok(climbed),
        }
    }

    /// The ascent over the cells of trees; from the nearest data point that passes, if it fails.
    fn climb_cells(
        &self,
        cells: &Cells,
        factual: &Factual,
        start: &[f32],
        meter: &mut Meter,
    ) -> Result<Judged> {
        let norm = self.problem.norm;
        let how = (cells, self.ascent.steps, Care::Single);
        let climbed = self.judge.judge_cells(factual, norm, how, &[start], meter)?;
        let (best, reason, data) = match (climbed, &self.rescue) {
            (Judged::Failed(best, reason), Some(data)) => (best, reason, data),
            (climbed, _) => return Ok(climbed),
        };
        let found = data.nearest(factual, norm, self.test, self.tries(), meter);
        let Some(neighbour) = found.filter(|found| self.test.passes(found.reading)) else {
            return Ok(Judged::Failed(best, reason));
        };
        let cost = |candidate: &Candidate| factual.cost(norm, &candidate.point);
        Ok(match self.judge.judge_cells(factual, norm, how, &[&neighbour.point], meter)? {
            Judged::Passed(nearer) if cost(&nearer) < cost(&neighbour) => Judged::Passed(nearer),
            _ => Judged::Passed(neighbour),
        })
    }

    /// The first point that passes on the line from the base to the nearest data point that
    /// does; that data point if none is found, or none that is cheaper.
    fn rescue(
        &self,
        data: &Neighbours,
        factual: &Factual,
        base: &[f32],
        meter: &mut Meter,
    ) -> Result<Option<Candidate>> {
        let norm = self.problem.norm;
        let Some(neighbour) = data.nearest(factual, norm, self.test, self.tries(), meter) else {
            return Ok(None);
        };
        if !self.test.passes(neighbour.reading) {
            return Ok(None);
        }
        let on_the_way =
            self.judge.judge(factual, norm, base, meter, |field, test, _, meter| {
                let Some(failing) = meter.read(field, base) else { return Ok(None) };
                let Some(reading) = meter.read(field, &neighbour.point) else { return Ok(None) };
                let end = Candidate::new(neighbour.point.clone(), reading);
                if !test.passes(reading) {
                    return Ok(Some(end));
                }
                let start = Candidate::new(base.to_vec(), failing);
                Ok(Some(first_passing(field, test, &start, end, PULLS, meter)))
            })?;
        let cost = |candidate: &Candidate| factual.cost(norm, &candidate.point);
        Ok(Some(match on_the_way {
            Judged::Passed(candidate) if cost(&candidate) < cost(&neighbour) => candidate,
            _ => neighbour,
        }))
    }
}

impl Method for Climber<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let start = match self.start(factual, meter)? {
            Ok(start) => start,
            Err(answer) => return Ok(answer),
        };
        Ok(match self.climb(factual, &start, meter)? {
            Judged::Passed(candidate) => found(&self.problem, factual, candidate, Stopped::Reached),
            Judged::Failed(best, reason) => not_found(&self.problem, factual, best, reason),
        })
    }
}
