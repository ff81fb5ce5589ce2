//! `trex-e`: the cheapest point that retrained models accept.
//!
//! `min ||x' - x||  subject to  z(x') >= c,  CVaR_a(z_1(x') .. z_S(x')) >= c`
//!
//! with `z` the logit of the model in use, `z_s` those of `S` search models, `CVaR_a` the mean of
//! the lowest share `a` of them ([`Tail`]) and `c` the margin. It asks for the promise itself,
//! acceptance by the next model, where `trex-o` asks for the stability of one model. The search
//! models must come from the change that is promised for, and no certificate may rest on them.

use serde::{Deserialize, Serialize};

use crate::counterfactual::search::{Candidate, Test, min_cost};
use crate::counterfactual::tail::Tail;
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem};
use crate::error::{Error, Result};
use crate::model::Committee;
use crate::points::Points;
use crate::seed::Seed;

use super::{Finish, MethodSpec, Named, Protocol, ReferenceUse, Spec, conclude};

/// Parameters of `trex-e`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TrexE {
    /// The share `a` of search models in the tail.
    pub tail: f64,
    /// The least logit `c` of the model in use and of the tail.
    pub margin: f64,
    /// The most steps from each start.
    pub steps: usize,
}

impl Default for TrexE {
    fn default() -> Self {
        Self { tail: 0.1, margin: 0.0, steps: 100 }
    }
}

/// The most data points that are tried as a start, nearest first.
const STARTS: usize = 10;
/// The margin of a step above the threshold, as a logit.
const STEP_MARGIN: f64 = 1e-3;

impl Named for TrexE {
    const NAME: &'static str = "trex-e";
}

impl Spec for TrexE {
    fn title(&self) -> &'static str {
        "T-Rex:E"
    }

    fn sentence(&self) -> &'static str {
        "The cheapest change that models retrained for the search accept."
    }

    fn under(&self, _: Protocol) -> MethodSpec {
        Self::default().into()
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Optional
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        if !(self.tail > 0.0 && self.tail <= 1.0) {
            return Err(Error::param("tail", self.tail, "a number above 0 and at most 1"));
        }
        if !self.margin.is_finite() {
            return Err(Error::param("margin", self.margin, "a finite logit"));
        }
        let Some(committee) = problem.committee else {
            return Err(Error::param(
                "method",
                Self::NAME,
                "models retrained for the search, which this problem does not have",
            ));
        };
        if !committee.is_differentiable() {
            let problem = "trex-e needs search models with gradients";
            return Err(Error::InvalidModel(problem.to_owned()));
        }
        Ok(Box::new(Prepared {
            problem: *problem,
            committee,
            tail: self.tail,
            test: Test { threshold: self.margin },
            search: min_cost::MinCost {
                norm: problem.norm,
                steps: self.steps,
                margin: STEP_MARGIN,
                precision: min_cost::Precision::COARSE,
            },
            starts: passing(committee, self.tail, self.margin, problem.data),
        }))
    }
}

struct Prepared<'a> {
    problem: Problem<'a>,
    committee: &'a Committee,
    tail: f64,
    test: Test,
    search: min_cost::MinCost,
    /// The data points that pass the test.
    starts: Vec<usize>,
}

/// The data points whose tail and logit are at least the margin.
fn passing(committee: &Committee, tail: f64, margin: f64, data: &Points) -> Vec<usize> {
    let logits = committee.logits_of(data);
    let mut field = Tail::new(committee, tail);
    let value = |index: usize| {
        let of_models: Vec<f32> = logits.iter().map(|of_model| of_model[index]).collect();
        field.value(&of_models)
    };
    (0..data.len()).map(value).enumerate().filter(|(_, v)| *v >= margin).map(|(i, _)| i).collect()
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let norm = self.problem.norm;
        let mut field = Tail::new(self.committee, self.tail);
        let cost = |candidate: &Candidate| norm.distance(&candidate.point, factual.point);
        let passes = |candidate: &Candidate| self.test.passes(candidate.reading);
        let origin = meter.path.mark();
        let mut best = self.search.search(&mut field, factual, self.test, factual.point, meter)?;
        let reached = best.as_ref().filter(|best| passes(best)).map_or(f64::INFINITY, cost);
        // A slope may lead away from the cheapest point, or end below the margin.
        if let Some(start) = self.nearest(&mut field, factual, reached, meter) {
            let first = meter.path.cut(origin);
            let again = self.search.search(&mut field, factual, self.test, &start, meter)?;
            let again = again.filter(|found| passes(found) && cost(found) < reached);
            if again.is_none() {
                meter.path.cut(origin);
                meter.path.follow(&first);
            }
            best = again.or(best);
        }
        conclude(&self.problem, factual, &mut field, self.test, best, Finish::Trim, meter)
    }
}

impl Prepared<'_> {
    /// The nearest data point that passes in the feasible set and costs less than `most`.
    fn nearest(
        &self,
        field: &mut Tail<'_>,
        factual: &Factual,
        most: f64,
        meter: &mut Meter,
    ) -> Option<Vec<f32>> {
        let (norm, data) = (self.problem.norm, self.problem.data);
        let near = |&index: &usize| {
            let mut point = data.row(index).to_vec();
            factual.set.project(&mut point);
            let cost = norm.distance(&point, factual.point);
            (cost < most).then_some((cost, index, point))
        };
        let mut near: Vec<(f64, usize, Vec<f32>)> = self.starts.iter().filter_map(near).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let passes = |point: &Vec<f32>| {
            meter.read(field, point).is_some_and(|reading| self.test.passes(reading))
        };
        near.into_iter().take(STARTS).map(|(.., point)| point).find(passes)
    }
}
