//! The largest slope among samples: an estimate from below, never a bound.

use super::{LipschitzBound, Region, Soundness};
use crate::model::{DifferentiableModel, Model};
use crate::neighbourhood::Neighbourhood;
use crate::points::Points;

/// The paper's estimate, `max_i |m(x) - m(x_i)| / ||x - x_i||`.
pub fn sampled_slopes(model: &dyn Model, x: &[f32], cloud: &Neighbourhood) -> LipschitzBound {
    let mut points = cloud.around(x);
    points.push(x);
    let scores = model.score(&points);
    let (centre, neighbours) = scores.split_last().map_or((0.0, &[][..]), |(c, n)| (*c, n));
    let slopes = neighbours.iter().zip(cloud.distances());
    let slopes = slopes.map(|(score, distance)| f64::from((centre - score).abs()) / distance);
    estimate(slopes, cloud)
}

/// `max_i ||dm/dx (x_i)||`: the limit of the slopes between ever closer points.
pub fn sampled_gradients(
    model: &dyn DifferentiableModel,
    x: &[f32],
    cloud: &Neighbourhood,
) -> LipschitzBound {
    let mut points: Points = cloud.around(x);
    points.push(x);
    let (_, gradients) = model.score_and_gradient(&points);
    let norms =
        gradients.rows().map(|g| g.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt());
    estimate(norms, cloud)
}

fn estimate(slopes: impl Iterator<Item = f64>, cloud: &Neighbourhood) -> LipschitzBound {
    let radius = cloud.distances().iter().copied().fold(0.0, f64::max);
    LipschitzBound {
        value: slopes.fold(0.0, f64::max),
        region: Region::Ball { radius },
        soundness: Soundness::Estimate,
    }
}
