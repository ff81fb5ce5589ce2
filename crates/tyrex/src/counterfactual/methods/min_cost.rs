//! `min-cost`: the closest point the model accepts. The paper's base method.
//!
//! `min ||x' - x||  subject to  m(x') >= 0.5`
//!
//! The search climbs the logit of `m`, which has a slope where `m` itself is flat. If it finds
//! nothing, or a point farther than the nearest data point that the model accepts, it restarts from
//! that data point. On trees it searches cells, from both starts.

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::{Field, Logit, Reader, logit};
use crate::counterfactual::plausible::OF_LOGITS;
use crate::counterfactual::search::cells::{Care, Cells, Density};
use crate::counterfactual::search::neighbours::Neighbours;
use crate::counterfactual::search::{Candidate, Test, min_cost};
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Prediction};
use crate::seed::Seed;

use super::{
    ElasticNet, Finish, MethodSpec, Named, Protocol, ReferenceUse, Spec, conclude, unread,
};

/// Parameters of `min-cost`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MinCost {
    /// The most steps.
    pub steps: usize,
    /// Whether to prove, on trees, that no answer is cheaper.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prove: bool,
}

impl Default for MinCost {
    fn default() -> Self {
        Self { steps: 200, prove: false }
    }
}

/// The margin above the threshold, as a logit, so that rounding cannot take a step below.
const MARGIN: f64 = 1e-3;
/// `m >= 0.5`, as a logit.
pub(super) const ACCEPTED: Test = Test { threshold: 0.0 };

impl Spec for MinCost {
    fn title(&self) -> &'static str {
        Self::NAME
    }

    fn sentence(&self) -> &'static str {
        "The smallest change that the model accepts today."
    }

    fn under(&self, protocol: Protocol) -> MethodSpec {
        match protocol {
            Protocol::Product | Protocol::Paper => Self::default().into(),
            // The method called min-cost in the authors' code.
            Protocol::Reference => ElasticNet::released().into(),
        }
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Optional
    }

    fn prove_mut(&mut self) -> Option<&mut bool> {
        Some(&mut self.prove)
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        closest(problem, self.steps, 0.5, self.prove)
    }
}

/// The search for the closest point with `m >= score`; the score is between 0 and 1.
pub(super) fn closest<'a>(
    problem: &Problem<'a>,
    steps: usize,
    score: f64,
    prove: bool,
) -> Result<Box<dyn Method + 'a>> {
    if steps == 0 {
        return Err(Error::param("steps", 0, "at least 1"));
    }
    let cells = Cells::of(std::iter::once(problem.model))?;
    if prove {
        let trees = |why: &str| format!("a model of trees that are added up: {why}");
        let expected = match &cells {
            None => Some(trees("networks have none")),
            // The density differs inside a cell, and the bound knows the score alone.
            Some(_) if problem.is_plausible() => Some(
                "no `plausible` beside it: how usual an answer is has no bound in the proof".into(),
            ),
            Some(cells) => cells.hinders_proof().map(trees),
        };
        if let Some(expected) = expected {
            return Err(Error::param("prove", true, expected));
        }
    }
    let gauge = || Gauge::new(Prediction {}, problem.model, &unread(problem.model)?);
    Ok(Box::new(Closest {
        problem: *problem,
        search: min_cost::MinCost {
            norm: problem.norm,
            steps,
            margin: MARGIN,
            precision: min_cost::Precision::FINE,
        },
        score,
        prove,
        cells,
        gauge: gauge()?,
        neighbours: Neighbours::above(problem, gauge()?, score),
    }))
}

struct Closest<'a> {
    problem: Problem<'a>,
    search: min_cost::MinCost,
    /// The least score of an answer.
    score: f64,
    prove: bool,
    cells: Option<Cells>,
    gauge: Gauge<'a>,
    neighbours: Neighbours<'a>,
}

/// The data points that are tried as a start on trees, nearest first, and for usual answers: moved
/// into the feasible set, not every one of them passes.
const STARTS: usize = 50;

/// The most data points that are tried as a row, nearest first.
const ROWS: usize = 400;

impl Closest<'_> {
    fn find_cell(&self, cells: &Cells, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let norm = self.problem.norm;
        let test = Test { threshold: logit(self.score) };
        let near = Test { threshold: self.score };
        let field = Logit(Reader::with_routes(&self.gauge, cells.routes()));
        let mut field = self.problem.usual(field, OF_LOGITS);
        let start = self.neighbours.nearest(factual, norm, near, STARTS, meter);
        let start = start.filter(|start| near.passes(start.reading));
        let starts = start.iter().map(|start| start.point.as_slice());
        let starts: Vec<&[f32]> = starts.chain([factual.point]).collect();
        let search = cells.search(factual, norm, self.search.steps, Density::SCORE);
        let mut best = search.cheapest(&mut field, test, &starts, Care::Full, meter);
        let mut least_cost = None;
        if self.prove {
            let known = best.clone().filter(|best| test.passes(best.reading));
            let test = (test, self.score);
            let proved = cells.prove(factual, norm, &mut field, test, known, meter);
            // Nothing is known where the budget was spent before.
            least_cost = Some(proved.as_ref().map_or(0.0, |proved| proved.least_cost));
            best = proved.and_then(|proved| proved.best).or(best);
        }
        let finish = Finish::Keep;
        let mut answer = conclude(&self.problem, factual, &mut field, test, best, finish, meter)?;
        if let Answer::Found { counterfactual, .. } = &mut answer {
            counterfactual.least_cost = least_cost.map(|least| least.min(counterfactual.cost));
        }
        Ok(answer)
    }
}

impl Closest<'_> {
    /// The nearest data point that passes as a row of the factual, made cheaper. Where both
    /// conditions bind, rounding may break either.
    fn nearest_row(
        &self,
        field: &mut dyn Field,
        factual: &Factual,
        test: Test,
        meter: &mut Meter,
    ) -> Result<Option<Answer>> {
        let (norm, near) = (self.problem.norm, Test { threshold: self.score });
        let row = self.neighbours.nearest(factual, norm, near, ROWS, meter);
        let Some(row) = row.filter(|row| near.passes(row.reading)) else { return Ok(None) };
        let Some(reading) = meter.read(field, &row.point) else { return Ok(None) };
        let row = Some(Candidate::new(row.point, reading));
        let answer = conclude(&self.problem, factual, field, test, row, Finish::Trim, meter)?;
        Ok(Some(answer).filter(|answer| matches!(answer, Answer::Found { .. })))
    }
}

impl Method for Closest<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        if let Some(cells) = &self.cells {
            return self.find_cell(cells, factual, meter);
        }
        let norm = self.problem.norm;
        let test = Test { threshold: logit(self.score) };
        let mut field = self.problem.usual(Logit(Reader::new(&self.gauge)), OF_LOGITS);
        let passing = |found: Option<Candidate>| found.filter(|c| test.passes(c.reading));
        let cost = |candidate: &Candidate| factual.cost(norm, &candidate.point);
        let origin = meter.path.mark();
        let mut best = self.search.search(&mut field, factual, test, factual.point, meter)?;
        let near = Test { threshold: self.score };
        let count = if self.problem.is_plausible() { STARTS } else { 1 };
        let start = self.neighbours.nearest(&factual.relaxed(), norm, near, count, meter);
        let reached = passing(best.clone()).map_or(f64::INFINITY, |found| cost(&found));
        if let Some(start) = start.filter(|start| cost(start) < reached) {
            let first = meter.path.cut(origin);
            let again = self.search.search(&mut field, factual, test, &start.point, meter)?;
            let again = passing(again).filter(|found| cost(found) < reached);
            if again.is_none() {
                meter.path.cut(origin);
                meter.path.follow(&first);
            }
            best = again.or(best);
        }
        let answer = conclude(&self.problem, factual, &mut field, test, best, Finish::Trim, meter)?;
        match answer {
            Answer::NotFound { .. } if self.problem.is_plausible() && !meter.is_spent() => {
                Ok(self.nearest_row(&mut field, factual, test, meter)?.unwrap_or(answer))
            }
            answer => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::action::FeasibleSet;
    use crate::counterfactual::{Budget, Norm, find_all};
    use crate::model::{Activation, Dense, Mlp, Output};
    use crate::points::Points;

    /// Downhill from 0 to the left the model accepts far out, and to the right close by, behind
    /// a dip: `z = -1 - 0.1 x + 2 max(0, x - 0.2)`.
    #[test]
    fn a_slope_that_leads_away_is_not_followed_past_the_data() {
        let dense = |weights: &[f32], bias: &[f32], activation| Dense {
            weights: weights.to_vec(),
            bias: bias.to_vec(),
            activation,
        };
        let layers = [
            dense(&[-1.0, 1.0], &[1000.0, -0.2], Activation::Relu),
            dense(&[0.1, 2.0], &[-101.0], Activation::Identity),
        ];
        let model = Mlp::new(1, &layers, Output::Sigmoid { favourable: true }).unwrap();
        let data = Points::from_rows(1, vec![0.0, 0.9, 3.0]).unwrap();
        let set = FeasibleSet::everywhere(1);
        for norm in [Norm::L1, Norm::L2] {
            let problem = Problem::new(&model, norm, &data).unwrap();
            let method = MinCost::default().prepare(&problem, Seed(0)).unwrap();
            let factuals = [Factual::new(&[0.0], &set)];
            let go_on = |_| ControlFlow::Continue(());
            let outcomes =
                find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap();
            let found = outcomes[0].found().expect("both ways lead there");
            // 0.1 x + 1 = 2 (x - 0.2), at 1.4 / 1.9.
            assert!((found.point[0] - 0.7368).abs() < 2e-3, "{norm:?}: {:?}", found.point);
        }
    }
}
