//! `roar`: the closest point that the worst model in a box of parameters accepts. Robust
//! Algorithmic Recourse of Upadhyay et al.
//!
//! Near `x'` a model's logit is a plane `w x' + b`. Over all `|dw_j| <= delta`, `|db| <= delta`
//! its least value is `w x' + b - delta (||x'||_1 + 1)`, in closed form, and so
//!
//! `min ||x' - x||  subject to  logit(x') - delta (||x'||_1 + 1) >= 0`
//!
//! Deviations. The authors fit the plane once, around the factual (by LIME for networks), and
//! weigh cost against loss; here the plane is the model's own at `x'`, where it is exact, and
//! the loss is a constraint. Where answers have to be usual and the search from the factual finds
//! none, it starts once more, from the nearest usual data point that the model accepts.

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::{Field, Logit, Reader};
use crate::counterfactual::plausible::OF_LOGITS;
use crate::counterfactual::search::neighbours::Neighbours;
use crate::counterfactual::search::{Test, min_cost};
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Prediction, Reading};
use crate::model::THRESHOLD;
use crate::seed::Seed;

use super::min_cost::ACCEPTED;
use super::{Finish, MethodSpec, ModelNeed, Protocol, ReferenceUse, Spec, conclude, unread};

/// Parameters of `roar`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Roar {
    /// The maximum change of each coefficient of the plane.
    pub delta: f64,
    /// The most steps.
    pub steps: usize,
}

impl Default for Roar {
    fn default() -> Self {
        Self { delta: 0.1, steps: 200 }
    }
}

impl Spec for Roar {
    fn title(&self) -> &'static str {
        "ROAR"
    }

    fn sentence(&self) -> &'static str {
        "The smallest change that every model with slightly other weights accepts."
    }

    fn under(&self, protocol: Protocol) -> MethodSpec {
        match protocol {
            Protocol::Product | Protocol::Paper => Self::default().into(),
            Protocol::Reference => Self { delta: 1e-3, ..Self::default() }.into(),
        }
    }

    fn needs(&self) -> ModelNeed {
        ModelNeed::Gradients
    }

    fn reference(&self) -> ReferenceUse {
        // Where answers have to be usual.
        ReferenceUse::Optional
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        if !(self.delta >= 0.0 && self.delta.is_finite()) {
            return Err(Error::param("delta", self.delta, "a number of at least 0"));
        }
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        let gauge = || Gauge::new(Prediction {}, problem.model, &unread(problem.model)?);
        Ok(Box::new(Prepared {
            problem: *problem,
            delta: self.delta,
            search: min_cost::MinCost {
                norm: problem.norm,
                steps: self.steps,
                margin: 1e-3,
                precision: min_cost::Precision::FINE,
            },
            gauge: gauge()?,
            neighbours: problem
                .is_plausible()
                .then(|| gauge().map(|gauge| Neighbours::new(problem, gauge)))
                .transpose()?,
        }))
    }
}

/// The least logit over the box.
struct WorstCase<F> {
    logit: F,
    delta: f64,
}

impl<F> WorstCase<F> {
    fn least(&self, reading: Reading, x: &[f32]) -> Reading {
        let size: f64 = x.iter().map(|&x| f64::from(x.abs())).sum();
        Reading { value: reading.value - self.delta * (size + 1.0), ..reading }
    }
}

impl<F: Field> Field for WorstCase<F> {
    fn evaluations(&self) -> u64 {
        self.logit.evaluations()
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        let reading = self.logit.read(x);
        self.least(reading, x)
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        let reading = self.logit.read_with_gradient(x, gradient)?;
        let delta = self.delta as f32;
        for (partial, &x) in gradient.iter_mut().zip(x) {
            *partial = if x == 0.0 {
                // At the kink of `|x|` both directions cost `delta`; only the remaining slope
                // counts.
                partial.signum() * (partial.abs() - delta).max(0.0)
            } else {
                *partial - delta * x.signum()
            };
        }
        Ok(self.least(reading, x))
    }
}

struct Prepared<'a> {
    problem: Problem<'a>,
    delta: f64,
    search: min_cost::MinCost,
    gauge: Gauge<'a>,
    /// The start of a second search for usual answers.
    neighbours: Option<Neighbours<'a>>,
}

/// The most data points that are tried as that start, nearest first: moved into the feasible set,
/// not every one of them is accepted and usual.
const STARTS: usize = 50;

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let field = WorstCase { logit: Logit(Reader::new(&self.gauge)), delta: self.delta };
        let mut field = self.problem.usual(field, OF_LOGITS);
        let mut best = self.search.search(&mut field, factual, ACCEPTED, factual.point, meter)?;
        if let Some(neighbours) = &self.neighbours
            && !best.as_ref().is_some_and(|best| ACCEPTED.passes(best.reading))
        {
            let (factual, norm) = (factual.relaxed(), self.problem.norm);
            let near = Test { threshold: f64::from(THRESHOLD) };
            if let Some(start) = neighbours.nearest(&factual, norm, near, STARTS, meter) {
                let start = &start.point;
                let again = self.search.search(&mut field, &factual, ACCEPTED, start, meter)?;
                best = again.or(best);
            }
        }
        conclude(&self.problem, factual, &mut field, ACCEPTED, best, Finish::Trim, meter)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::action::FeasibleSet;
    use crate::counterfactual::{Budget, Norm, find_all};
    use crate::model::Mlp;
    use crate::points::Points;

    /// One column decides; many are at 0 with weights below `delta`, and moving them lowers the
    /// value. The worst case `z - delta (|z| + 1) >= 0` needs `z = delta / (1 - delta)`.
    #[test]
    fn columns_that_the_worst_model_turns_around_stay() {
        let mut weights = vec![0.05; 41];
        weights[0] = 1.0;
        let model = Mlp::linear(weights, 0.0).unwrap();
        let mut point = vec![0.0; 41];
        point[0] = -1.0;
        let (data, set) = (Points::new(41), FeasibleSet::everywhere(41));
        for norm in [Norm::L1, Norm::L2] {
            let problem = Problem::new(&model, norm, &data).unwrap();
            let method = Roar::default().prepare(&problem, Seed(0)).unwrap();
            let factuals = [Factual::new(&point, &set)];
            let go_on = |_| ControlFlow::Continue(());
            let outcomes =
                find_all(&problem, &*method, &factuals, Budget::default(), go_on).unwrap();
            let found = outcomes[0].found().expect("a linear model has a closest point");
            assert!((found.cost - (1.0 + 0.1 / 0.9)).abs() < 5e-3, "{norm:?}: {}", found.cost);
            assert!(found.point[1..].iter().all(|&x| x == 0.0), "{norm:?}");
        }
    }
}
