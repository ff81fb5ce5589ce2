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
}

/// The first trust radius, in encoded columns. Scaled columns are of the order of 1.
const RADIUS: f64 = 0.25;
/// A smaller radius than this finds nothing more.
const LEAST_RADIUS: f64 = 1e-3;
/// The largest radius.
const MOST_RADIUS: f64 = 1e3;
/// An improvement below this share of the cost counts as none.
const WORTH: f64 = 2e-3;
/// So many steps in a row without an improvement end the search.
const PATIENCE: usize = 4;

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
        let mut passed = test.passes(here.at.reading);
        let mut radius = RADIUS;
        let mut idle = 0;
        for _ in 0..self.steps {
            if here.steepness() == 0.0 || radius < LEAST_RADIUS || idle >= PATIENCE {
                break;
            }
            let step = |from: &Slope| {
                let aim = test.threshold + self.margin;
                cheapest_step(self.norm, factual.point, factual.set, from, aim, radius)
            };
            let Some(mut next) = Slope::read(field, step(&here), meter)? else { break };
            if !passed {
                let rises = next.at.reading.value > here.at.reading.value;
                passed = test.passes(next.at.reading);
                if rises || passed {
                    here = next;
                    radius = (2.0 * radius).min(MOST_RADIUS);
                } else {
                    radius *= 0.25;
                }
                continue;
            }
            let worth = cost(&here.at) * (1.0 - WORTH);
            if !test.passes(next.at.reading) {
                // The surface bends: its plane at the point just read is the better one.
                let Some(second) = Slope::read(field, step(&next), meter)? else { break };
                next = second;
            }
            if test.passes(next.at.reading) && cost(&next.at) < cost(&here.at) {
                idle = if cost(&next.at) < worth { 0 } else { idle + 1 };
                here = next;
                radius = (1.5 * radius).min(MOST_RADIUS);
            } else {
                radius *= 0.4;
                idle += 1;
            }
        }
        Ok(Some(here.at))
    }
}
