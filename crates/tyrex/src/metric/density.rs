//! The density of the training points, smoothed.

use std::f64::consts::PI;

use rayon::prelude::*;

use super::{check_points, check_training};
use crate::counterfactual::Norm;
use crate::error::{Error, Result};
use crate::points::Points;

/// `ln p(x) = ln( 1/n sum_i exp(-||x - x_i||^2 / (2 h^2)) ) - d/2 ln(2 pi h^2)`: a Gaussian of
/// width `h` on every training point, as scikit-learn's `KernelDensity`.
///
/// Scott's rule for the width is `h = s n^(-1/(d + 4))`, with `s^2` the mean of the columns'
/// variances. scikit-learn leaves `s` out, and then the width does not follow the data's
/// scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Density {
    points: Points,
    bandwidth: f64,
}

impl Density {
    /// The density with Scott's width.
    pub fn fit(training: &Points) -> Result<Self> {
        check_training(training, 2)?;
        let (n, dim) = (training.len() as f64, training.dim() as f64);
        let variance = |column: usize| {
            let values = || training.rows().map(|row| f64::from(row[column]));
            let mean = values().sum::<f64>() / n;
            values().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n
        };
        let total: f64 = (0..training.dim()).map(variance).sum();
        let scale = (total / dim).sqrt();
        if training.rows().all(|row| row == training.row(0)) {
            return Err(Error::param("training points", "all the same", "some that differ"));
        }
        Self::with_bandwidth(training, scale * libm::pow(n, -1.0 / (dim + 4.0)))
    }

    /// The density with a given width.
    pub fn with_bandwidth(training: &Points, bandwidth: f64) -> Result<Self> {
        check_training(training, 1)?;
        if !(bandwidth > 0.0 && bandwidth.is_finite()) {
            return Err(Error::param("bandwidth", bandwidth, "a positive number"));
        }
        Ok(Self { points: training.clone(), bandwidth })
    }

    /// The width `h`.
    #[must_use]
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }

    /// `ln p(x)` of every point.
    pub fn logarithms(&self, points: &Points) -> Result<Vec<f64>> {
        let dim = self.points.dim();
        check_points(points, dim)?;
        let n = self.points.len() as f64;
        let h = self.bandwidth;
        let volume = 0.5 * dim as f64 * libm::log(2.0 * PI) + dim as f64 * libm::log(h);
        let logarithm = |point: &[f32]| {
            let exponents: Vec<f64> = self
                .points
                .rows()
                .map(|other| {
                    let distance = Norm::L2.distance(point, other) / h;
                    -0.5 * distance * distance
                })
                .collect();
            // The largest term is taken out, so that the sum is at least 1.
            let largest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = exponents.iter().map(|exponent| libm::exp(exponent - largest)).sum();
            largest + libm::log(sum / n) - volume
        };
        Ok(points.as_slice().par_chunks(dim).map(logarithm).collect())
    }
}
