//! Mahalanobis' distance: how many standard deviations from the centre of the data.

use rayon::prelude::*;

use super::{check_points, check_training};
use crate::error::Result;
use crate::neighbourhood::eigen;
use crate::points::Points;

/// Directions with less than this share of the largest variance do not vary.
const NO_VARIANCE: f64 = 1e-10;

/// `sqrt( (x - mu)^T S^+ (x - mu) )` with the training points' mean `mu` and covariance
/// `S = 1/n sum_i (x_i - mu)(x_i - mu)^T`, and `S^+` its pseudo-inverse.
///
/// The columns of a one-hot group sum to one, so `S` has directions without variance and no
/// inverse. The pseudo-inverse leaves these directions out: it measures along those in which the
/// data vary, as scikit-learn's `EmpiricalCovariance` does (which gives the square). The distance
/// along the other directions has no number of standard deviations; its length is reported
/// separately.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mahalanobis {
    mean: Vec<f64>,
    /// Eigenvectors, row by row, each divided by its standard deviation.
    whitened: Vec<f64>,
    /// The eigenvectors along which the data do not vary.
    flat: Vec<f64>,
}

/// The position of a point relative to the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Offset {
    /// Mahalanobis' distance, within the directions in which the data vary.
    pub(super) distance: f64,
    /// The Euclidean length across the other directions.
    pub(super) outside: f64,
}

impl Mahalanobis {
    /// The training points' mean and covariance.
    pub(super) fn fit(training: &Points) -> Result<Self> {
        check_training(training, 2)?;
        let dim = training.dim();
        let n = training.len() as f64;
        let mean: Vec<f64> = (0..dim)
            .map(|column| training.rows().map(|row| f64::from(row[column])).sum::<f64>() / n)
            .collect();
        let mut covariance = vec![0.0; dim * dim];
        let mut gap = vec![0.0; dim];
        for row in training.rows() {
            for ((gap, &x), mean) in gap.iter_mut().zip(row).zip(&mean) {
                *gap = f64::from(x) - mean;
            }
            for (sums, &a) in covariance.chunks_exact_mut(dim).zip(&gap) {
                for (sum, b) in sums.iter_mut().zip(&gap) {
                    *sum += a * b;
                }
            }
        }
        for value in &mut covariance {
            *value /= n;
        }
        let eigen = eigen(covariance, dim);
        let least = NO_VARIANCE * eigen.values.first().copied().unwrap_or(0.0);
        let (mut whitened, mut flat) = (Vec::new(), Vec::new());
        for (direction, &variance) in eigen.vectors.chunks_exact(dim).zip(&eigen.values) {
            if variance > least {
                let deviation = variance.sqrt();
                whitened.extend(direction.iter().map(|x| x / deviation));
            } else {
                flat.extend_from_slice(direction);
            }
        }
        Ok(Self { mean, whitened, flat })
    }

    /// The number of directions in which the training points vary.
    #[cfg(test)]
    pub(super) fn rank(&self) -> usize {
        self.whitened.len() / self.mean.len()
    }

    /// The position of every point.
    pub(super) fn of(&self, points: &Points) -> Result<Vec<Offset>> {
        let dim = self.mean.len();
        check_points(points, dim)?;
        let length = |directions: &[f64], gap: &[f64]| {
            let along = directions
                .chunks_exact(dim)
                .map(|direction| direction.iter().zip(gap).map(|(a, b)| a * b).sum::<f64>());
            along.map(|step| step * step).sum::<f64>().sqrt()
        };
        let offset = |point: &[f32]| {
            let gap: Vec<f64> =
                point.iter().zip(&self.mean).map(|(&x, mean)| f64::from(x) - mean).collect();
            Offset { distance: length(&self.whitened, &gap), outside: length(&self.flat, &gap) }
        };
        Ok(points.as_slice().par_chunks(dim).map(offset).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_centre_one_deviation_away_and_outside() {
        // Deviations 3 and 1 along the first two axes, none along the third.
        let corners = vec![3.0, 1.0, 5.0, 3.0, -1.0, 5.0, -3.0, 1.0, 5.0, -3.0, -1.0, 5.0];
        let model = Mahalanobis::fit(&Points::from_rows(3, corners).unwrap()).unwrap();
        assert_eq!(model.rank(), 2);
        for (point, distance, outside) in [
            ([0.0, 0.0, 5.0], 0.0, 0.0),
            ([3.0, 0.0, 5.0], 1.0, 0.0),
            ([3.0, 1.0, 5.0], 2.0_f64.sqrt(), 0.0),
            ([0.0, 4.0, 7.0], 4.0, 2.0),
        ] {
            let got = model.of(&Points::from_rows(3, point.to_vec()).unwrap()).unwrap()[0];
            assert!((got.distance - distance).abs() < 1e-12, "{got:?}");
            assert!((got.outside - outside).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn points_that_do_not_vary_have_only_an_outside() {
        let model = Mahalanobis::fit(&Points::from_rows(2, vec![1.0; 6]).unwrap()).unwrap();
        assert_eq!(model.rank(), 0);
        let got = model.of(&Points::from_rows(2, vec![4.0, 5.0]).unwrap()).unwrap()[0];
        assert_eq!(got, Offset { distance: 0.0, outside: 5.0 });
    }
}
