//! One component of the mixture: a low-rank Gaussian with categorical factors.

use std::f64::consts::PI;
use std::ops::Range;

use super::small::{cholesky, solve_lower, solve_upper};

/// `ln pi + ln N(y; mu, W W^T + Psi) + sum_k z_k ln theta_k`, with `Psi` diagonal.
///
/// With `M = I + W^T Psi^-1 W = L L^T` and `A = L^-1 W^T Psi^-1`, Woodbury's identity gives the
/// precision `Psi^-1 - A^T A`, and the determinant lemma `ln |Psi| + 2 sum_i ln L_ii`. So a value and
/// its gradient take `O(rank d)`.
#[derive(Debug, Clone)]
pub(super) struct Component {
    /// `mu`
    pub(super) mean: Vec<f64>,
    /// The diagonal of `Psi`.
    pub(super) noise: Vec<f64>,
    /// `W`, a row of `rank` for each number.
    pub(super) loadings: Vec<f64>,
    pub(super) rank: usize,
    /// `ln theta`
    pub(super) log_levels: Vec<f64>,
    /// `A^T`, a row of `rank` for each number.
    folded: Vec<f64>,
    /// `L`
    lower: Vec<f64>,
    /// The value at `y = mu` without levels.
    peak: f64,
    /// `ln pi`
    log_weight: f64,
}

/// A component at a point.
pub(super) struct Reading {
    /// Its logarithm.
    pub(super) value: f64,
    /// `P (y - mu)` with the precision `P`, if it was asked for.
    pub(super) pull: Vec<f64>,
}

impl Component {
    /// Parameters that are positive where they have to be.
    pub(super) fn new(
        log_weight: f64,
        mean: Vec<f64>,
        noise: Vec<f64>,
        loadings: Vec<f64>,
        rank: usize,
        log_levels: Vec<f64>,
    ) -> Self {
        let mut lower = vec![0.0; rank * rank];
        for (row, psi) in rows(&loadings, rank).zip(&noise) {
            for (i, &a) in row.iter().enumerate() {
                lower[i * rank..=i * rank + i]
                    .iter_mut()
                    .zip(row)
                    .for_each(|(to, &b)| *to += a * b / psi);
            }
        }
        (0..rank).for_each(|i| lower[i * rank + i] += 1.0);
        // The matrix is the identity and a sum of squares, so its factor exists.
        cholesky(&mut lower, rank);
        let mut folded = loadings.clone();
        for (row, psi) in folded.chunks_exact_mut(rank.max(1)).zip(&noise) {
            row.iter_mut().for_each(|w| *w /= psi);
            solve_lower(&lower, rank, row);
        }
        let determinant = noise.iter().map(|&psi| libm::log(psi)).sum::<f64>()
            + (0..rank).map(|i| 2.0 * libm::log(lower[i * rank + i])).sum::<f64>();
        let peak = log_weight - 0.5 * (mean.len() as f64 * libm::log(2.0 * PI) + determinant);
        Self { mean, noise, loadings, rank, log_levels, folded, lower, peak, log_weight }
    }

    /// `ln pi`
    pub(super) fn log_weight(&self) -> f64 {
        self.log_weight
    }

    /// The largest value: at the mean, with the most frequent level of each group.
    pub(super) fn peak(&self, groups: &[Range<usize>]) -> f64 {
        let most = |group: &Range<usize>| {
            self.log_levels[group.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max)
        };
        self.peak + groups.iter().map(most).sum::<f64>()
    }

    /// `A (y - mu)`
    fn factors(&self, y: &[f64]) -> Vec<f64> {
        let mut factors = vec![0.0; self.rank];
        for ((y, mean), row) in y.iter().zip(&self.mean).zip(rows(&self.folded, self.rank)) {
            let d = y - mean;
            factors.iter_mut().zip(row).for_each(|(to, a)| *to += d * a);
        }
        factors
    }

    /// The part of the numbers: the value, and `A (y - mu)`.
    fn numbers(&self, y: &[f64]) -> (f64, Vec<f64>) {
        let factors = self.factors(y);
        let each = y.iter().zip(&self.mean).zip(&self.noise);
        let alone: f64 = each.map(|((y, mean), psi)| (y - mean) * (y - mean) / psi).sum();
        let common: f64 = factors.iter().map(|a| a * a).sum();
        (self.peak - 0.5 * (alone - common), factors)
    }

    /// The sum over levels, `sum_k z_k ln theta_k`.
    fn levels(&self, z: &[f64]) -> f64 {
        z.iter().zip(&self.log_levels).map(|(z, log)| z * log).sum()
    }

    /// The value at the coordinates of a point.
    pub(super) fn value(&self, coordinates: &[f64]) -> f64 {
        let (y, z) = coordinates.split_at(self.mean.len());
        self.numbers(y).0 + self.levels(z)
    }

    /// The value, and the expected factors `E[f | y] = M^-1 W^T Psi^-1 (y - mu)`.
    pub(super) fn value_and_factors(&self, coordinates: &[f64]) -> (f64, Vec<f64>) {
        let (y, z) = coordinates.split_at(self.mean.len());
        let (value, mut factors) = self.numbers(y);
        solve_upper(&self.lower, self.rank, &mut factors);
        (value + self.levels(z), factors)
    }

    /// The value, and `P (y - mu)`: minus its gradient with respect to the numbers.
    pub(super) fn read(&self, coordinates: &[f64]) -> Reading {
        let (y, z) = coordinates.split_at(self.mean.len());
        let (value, factors) = self.numbers(y);
        let own = y.iter().zip(&self.mean).zip(&self.noise);
        let pull = own
            .zip(rows(&self.folded, self.rank))
            .map(|(((y, mean), psi), row)| (y - mean) / psi - dot(row, &factors))
            .collect();
        Reading { value: value + self.levels(z), pull }
    }

    /// An entry of the precision `P`.
    pub(super) fn precision(&self, i: usize, j: usize) -> f64 {
        let row = |k: usize| &self.folded[k * self.rank..(k + 1) * self.rank];
        let own = if i == j { 1.0 / self.noise[i] } else { 0.0 };
        own - dot(row(i), row(j))
    }

    /// `M^-1`, the covariance of the factors at every point.
    pub(super) fn factor_covariance(&self) -> Vec<f64> {
        let mut inverse = vec![0.0; self.rank * self.rank];
        for (index, row) in inverse.chunks_exact_mut(self.rank.max(1)).enumerate() {
            row[index] = 1.0;
            solve_lower(&self.lower, self.rank, row);
            solve_upper(&self.lower, self.rank, row);
        }
        inverse
    }
}

/// The rows of a matrix with `rank` columns; empty rows if there are none.
fn rows(matrix: &[f64], rank: usize) -> impl Iterator<Item = &[f64]> {
    (0..).map(move |index| matrix.get(index * rank..(index + 1) * rank).unwrap_or_default())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
