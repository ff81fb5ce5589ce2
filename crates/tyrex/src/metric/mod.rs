//! Metrics of outcomes: cost, validity under changed models, and plausibility; and of models.
//!
//! A metric of one counterfactual is a number; [`Metrics`] computes all of them for many pairs of
//! factual and counterfactual. A metric of a method is the mean of such numbers with its spread and
//! its interval: a [`Summary`]. [`Validity`] is a metric of counterfactuals under models. [`auc`]
//! and `calibration_error` are metrics of the scores of a model on labelled rows.
//!
//! `docs/metrics.md` has the formulas side by side.

mod calibration_error;
mod cost;
mod density;
mod isolation;
mod lof;
mod mahalanobis;
mod metrics;
mod neighbours;
mod summary;
#[cfg(test)]
mod tests;
mod validity;

pub use crate::auc::auc;
pub(crate) use calibration_error::calibration_error;
pub use isolation::IsolationForest;
pub use lof::LocalOutlierFactor;
pub use metrics::{MetricParams, Metrics, PointMetrics};
pub use neighbours::NeighbourIndex;
pub use summary::Summary;
pub use validity::{Validity, found_points, label_agreement};

use crate::error::{Error, Result};
use crate::points::Points;

/// Checks training points: at least `least` of them, all finite.
fn check_training(points: &Points, least: usize) -> Result<()> {
    if points.len() < least {
        let expected = format!("at least {least}");
        return Err(Error::param("training points", points.len(), expected));
    }
    check_finite("training point", points)
}

/// Checks points to evaluate: of the training points' dimension, all finite.
fn check_points(points: &Points, dim: usize) -> Result<()> {
    if points.dim() != dim {
        return Err(Error::Dimension {
            what: "coordinates of a point, as many as the training points have".into(),
            expected: dim,
            got: points.dim(),
        });
    }
    check_finite("point", points)
}

fn check_finite(name: &'static str, points: &Points) -> Result<()> {
    match points.rows().position(|point| !point.iter().all(|x| x.is_finite())) {
        None => Ok(()),
        Some(index) => Err(Error::param(name, format!("number {index}"), "finite coordinates")),
    }
}
