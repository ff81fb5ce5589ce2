//! `MinCost`: the closest point with `field >= threshold`.
//!
//! Two phases with the same step (see [`levers`](super::levers)). Until a point passes, steps go to
//! the plane on which the linear model reaches the aim, within the trust radius. After that the
//! best point that passes is kept, and only steps to cheaper points that pass are taken: the result
//! never costs more than the start.

use super::levers::cheapest_step;
use super::{Candidate, Slope, Test};
use crate::counterfactual::field::Field;
use crate::counterfactual::{Factual, Meter, Norm};
use crate::error::Result;

/// How long and how finely to search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MinCost {
    pub(crate) norm: Norm,
    /// The most steps.
    pub(crate) steps: usize,
    /// The margin of a step above the threshold.
    pub(crate) margin: f64,
    /// The stopping rule.
    pub(crate) precision: Precision,
}

/// When a search for the cheapest point is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precision {
    /// An improvement below this share of the cost counts as none.
    worth: f64,
    /// The number of consecutive steps without a relevant improvement that end the search.
    patience: usize,
    /// A smaller trust radius finds nothing more.
    radius: f64,
}

impl Precision {
    /// For fields that are cheap to evaluate.
    pub(crate) const FINE: Self = Self { worth: 1e-4, patience: 5, radius: 1e-5 };
    /// To find about where the answer lies.
    pub(crate) const ROUGH: Self = Self { worth: 0.05, patience: 1, radius: 0.02 };
    /// For fields that score a neighbourhood at every evaluation; ten times the work finds points
    /// less than 0.5 % cheaper.
    pub(crate) const COARSE: Self = Self { worth: 2e-3, patience: 3, radius: 1e-3 };
}

/// The first trust radius, in encoded columns. Scaled columns are of the order of 1.
const RADIUS: f64 = 0.25;
/// The largest radius.
const MOST_RADIUS: f64 = 1e3;
/// Steps back to the surface after each step along it.
const RESTORATIONS: usize = 2;

impl MinCost {
    /// The cheapest point found that passes, or the best that does not.
    pub(crate) fn search(
        &self,
        field: &mut dyn Field,
        factual: &Factual,
        test: Test,
        start: &[f32],
        meter: &mut Meter,
    ) -> Result<Option<Candidate>> {
        field.aim_at(test.threshold);
        let cost = |candidate: &Candidate| factual.cost(self.norm, &candidate.point);
        let Some(mut here) = Slope::read(field, start.to_vec(), meter)? else {
            return Ok(None);
        };
        meter.path.step(&here.at.point);
        let mut passed = test.passes(here.at.reading);
        let mut radius = RADIUS;
        let mut idle = 0;
        for _ in 0..self.steps {
            if here.steepness() == 0.0
                || radius < self.precision.radius
                || idle >= self.precision.patience
            {
                break;
            }
            let aim = test.threshold + self.margin;
            let step = cheapest_step(self.norm, factual.point, factual.set, &here, aim, radius);
            let Some(mut next) = Slope::read(field, step, meter)? else { break };
            if !passed {
                let rises = next.at.reading.value > here.at.reading.value;
                passed = test.passes(next.at.reading);
                if rises || passed {
                    here = next;
                    meter.path.step(&here.at.point);
                    radius = (2.0 * radius).min(MOST_RADIUS);
                } else {
                    radius *= 0.25;
                }
                continue;
            }
            // The surface is curved: return to it by the shortest step.
            for _ in 0..RESTORATIONS {
                if test.passes(next.at.reading) || cost(&next.at) >= cost(&here.at) {
                    break;
                }
                let from = &next.at.point;
                let back = cheapest_step(self.norm, from, factual.set, &next, aim, radius);
                let Some(restored) = Slope::read(field, back, meter)? else { break };
                next = restored;
            }
            let worth = cost(&here.at) * (1.0 - self.precision.worth);
            if test.passes(next.at.reading) && cost(&next.at) < cost(&here.at) {
                idle = if cost(&next.at) < worth { 0 } else { idle + 1 };
                here = next;
                meter.path.step(&here.at.point);
                radius = (2.0 * radius).min(MOST_RADIUS);
            } else {
                radius *= 0.5;
            }
        }
        Ok(Some(here.at))
    }
}
