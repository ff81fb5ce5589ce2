//! `MinCost`: the closest point with `field >= threshold`.
//!
//! Two phases with the same step (see [`levers`](super::levers)). Until a point passes, steps
//! go to the plane on which the field should be at its aim, as far as the trust radius lets
//! them. From then on the best point that passes is kept, and a step is taken only to a point
//! that passes and is cheaper: the result is never dearer than the start.

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
    /// How far above the threshold a step aims.
    pub(crate) margin: f64,
    /// When to call it the cheapest.
    pub(crate) precision: Precision,
}

/// When a search for the cheapest point is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Precision {
    /// An improvement below this share of the cost counts as none.
    worth: f64,
    /// So many steps in a row with hardly an improvement end the search.
    patience: usize,
    /// A smaller trust radius finds nothing more.
    radius: f64,
}

impl Precision {
    /// For fields that cost little to read.
    pub(crate) const FINE: Self = Self { worth: 1e-4, patience: 5, radius: 1e-5 };
    /// For fields that score a neighbourhood at every reading; ten times the work would find
    /// points less than half a percent cheaper.
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
        let cost = |candidate: &Candidate| self.norm.distance(&candidate.point, factual.point);
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
            // The surface bends away from its plane: back to it by the shortest way.
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
