//! The density of the training points, smoothed.

use std::f64::consts::PI;

use rayon::prelude::*;

use super::{check_points, check_training};
use crate::error::{Error, Result};
use crate::model::panels::Panels;
use crate::points::Points;

/// `exp` of less than this, ten million times, is below the last digit of 1.
const NEGLIGIBLE: f64 = -60.0;

/// `ln p(x) = ln( 1/n sum_i exp(-||x - x_i||^2 / (2 h^2)) ) - d/2 ln(2 pi h^2)`: a Gaussian of
/// width `h` on every training point, as scikit-learn's `KernelDensity`.
///
/// Scott's rule for the width is `h = s n^(-1/(d + 4))`, with `s^2` the mean of the columns'
/// variances. scikit-learn omits `s`, so its width does not depend on the scale of the data.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Density {
    panels: Panels,
    dim: usize,
    count: usize,
    bandwidth: f64,
}

impl Density {
    /// The density with Scott's width.
    pub(super) fn fit(training: &Points) -> Result<Self> {
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
    pub(crate) fn with_bandwidth(training: &Points, bandwidth: f64) -> Result<Self> {
        check_training(training, 1)?;
        // Squares of distances over squares of widths stay finite.
        if !(1e-100..=1e100).contains(&bandwidth) {
            return Err(Error::param("bandwidth", bandwidth, "a number from 1e-100 to 1e100"));
        }
        let panels = Panels::new(training);
        Ok(Self { panels, dim: training.dim(), count: training.len(), bandwidth })
    }

    /// The width `h`.
    #[cfg(test)]
    pub(super) fn bandwidth(&self) -> f64 {
        self.bandwidth
    }

    /// `ln p(x)` of every point.
    pub(super) fn logarithms(&self, points: &Points) -> Result<Vec<f64>> {
        check_points(points, self.dim)?;
        let n = self.count as f64;
        let h = self.bandwidth;
        let volume = self.dim as f64 * (0.5 * libm::log(2.0 * PI) + libm::log(h));
        let logarithm = |point: &[f32]| {
            let squares = self.panels.all_squares(point);
            // The largest term is taken out, so that the sum is at least 1.
            let nearest = squares.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let exponents =
                squares.iter().flatten().map(|square| 0.5 * (nearest - square) / (h * h));
            // The sum of the omitted terms is below its last digit.
            let sum: f64 = exponents.filter(|exponent| *exponent > NEGLIGIBLE).map(libm::exp).sum();
            -0.5 * nearest / (h * h) + libm::log(sum / n) - volume
        };
        Ok(points.as_slice().par_chunks(self.dim).map(logarithm).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f32]) -> Points {
        Points::from_rows(1, values.to_vec()).unwrap()
    }

    #[test]
    fn on_a_point_beside_it_and_far_away() {
        let density = Density::with_bandwidth(&line(&[0.0]), 1.0).unwrap();
        let got = density.logarithms(&line(&[0.0, 1.0, 1e4])).unwrap();
        let peak = -0.5 * (2.0 * PI).ln();
        for (got, expected) in got.iter().zip([peak, peak - 0.5, peak - 0.5e8]) {
            assert!((got - expected).abs() < 1e-12 * expected.abs(), "{got}, not {expected}");
        }
    }

    #[test]
    fn the_width_is_scotts() {
        // Variance 1, two points, one column: 2^(-1/5).
        let density = Density::fit(&line(&[3.0, 5.0])).unwrap();
        assert!((density.bandwidth() - 0.870_550_563_296_124_1).abs() < 1e-12);
    }

    #[test]
    fn it_integrates_to_one() {
        let density = Density::fit(&line(&[-1.0, 0.0, 0.5, 2.0])).unwrap();
        let step = 0.01;
        let grid: Vec<f32> = (-1000..1000_i16).map(|i| f32::from(i) * step).collect();
        let logarithms = density.logarithms(&line(&grid)).unwrap();
        let sum: f64 = logarithms.iter().map(|logarithm| logarithm.exp() * f64::from(step)).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    }
}
