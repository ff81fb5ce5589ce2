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
//! the loss is a constraint.

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::{Field, Logit, Reader};
use crate::counterfactual::search::min_cost;
use crate::counterfactual::{Answer, Factual, Meter, Method, Problem};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Measure, Reading};

use super::min_cost::ACCEPTED;
use super::{Finish, conclude, unread};

/// Parameters of `roar`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Roar {
    /// How far each coefficient of the plane may move.
    pub delta: f64,
    /// The most steps.
    pub steps: usize,
}

impl Default for Roar {
    fn default() -> Self {
        Self { delta: 0.1, steps: 200 }
    }
}

impl Roar {
    pub(super) fn prepare<'a>(&self, problem: &Problem<'a>) -> Result<Box<dyn Method + 'a>> {
        problem.differentiable("roar")?;
        if !(self.delta >= 0.0 && self.delta.is_finite()) {
            return Err(Error::param("delta", self.delta, "a number of at least 0"));
        }
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        Ok(Box::new(Prepared {
            problem: *problem,
            delta: self.delta,
            search: min_cost::MinCost {
                norm: problem.norm,
                steps: self.steps,
                margin: 1e-3,
                precision: min_cost::Precision::FINE,
            },
            gauge: Gauge::new(Measure::Prediction, problem.model, &unread(problem.model)?)?,
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
        for (partial, &x) in gradient.iter_mut().zip(x) {
            let sign = if x == 0.0 { 0.0 } else { x.signum() };
            *partial -= self.delta as f32 * sign;
        }
        Ok(self.least(reading, x))
    }
}

struct Prepared<'a> {
    problem: Problem<'a>,
    delta: f64,
    search: min_cost::MinCost,
    gauge: Gauge<'a>,
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let mut field = WorstCase { logit: Logit(Reader::new(&self.gauge)), delta: self.delta };
        let best = self.search.search(&mut field, factual, ACCEPTED, factual.point, meter)?;
        conclude(&self.problem, factual, &mut field, ACCEPTED, best, Finish::Trim, meter)
    }
}
