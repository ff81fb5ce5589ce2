//! Fitting the mixture: expectation and maximisation, and the choice of its size.
//!
//! Given the responsibilities `r_nc`, the weights, the means and the levels have closed forms. The
//! loadings and the noise take one step of factor analysis: with the expected factors
//! `f_n = M^-1 W^T Psi^-1 (y_n - mu)` and the weighted covariances `C_yf`, `C_ff`,
//!
//! `W' = C_yf (M^-1 + C_ff)^-1,  psi'_j = max(ridge, S_jj - w'_j . (C_yf)_j)`
//!
//! Each step raises the log-likelihood plus the logarithms of the priors: one row for each
//! component's weight, and [`PSEUDO_ROWS`] rows with the frequencies of all rows for its levels.
//! No covariance of all numbers is formed, so a step takes `O(n c rank d)`. Rows are summed in
//! blocks of a fixed size, so the result does not depend on the number of threads.
//!
//! The number of components and the rank have the least `-2 ln L + parameters ln n`.

use std::ops::Range;

use rand::RngExt as _;
use rayon::prelude::*;

use super::component::Component;
use super::mixture::{Mixture, log_sum_exp};
use super::small::{cholesky, solve_lower, solve_upper};
use crate::seed::{Rng, Seed};

/// The coordinates of the rows that a mixture is fitted to.
pub(super) struct Sample<'a> {
    /// Row by row.
    pub(super) coordinates: &'a [f64],
    pub(super) numbers: usize,
    /// Numbers and levels.
    pub(super) width: usize,
    /// The levels of each group.
    pub(super) groups: &'a [Range<usize>],
}

/// The least noise, as a share of a number's variance: a value that many rows share has no infinite
/// density.
const RIDGE: f64 = 0.01;
/// Rows of the prior of a component's levels.
const PSEUDO_ROWS: f64 = 5.0;
/// The rank with which the number of components is chosen, the others that are tried, and the most
/// components.
const RANKS: [usize; 3] = [5, 2, 10];
const MOST_COMPONENTS: usize = 32;
/// The least rows for each component.
const LEAST_ROWS: usize = 20;
/// The most steps while sizes are compared, and of the one that is chosen; and the gains per row
/// below which they end.
const ROUGH: (usize, f64) = (25, 5e-3);
const FINE: (usize, f64) = (100, 2e-4);
/// Rows that one task sums.
const BLOCK: usize = 256;
/// The rounds that improve the first centres.
const ROUNDS: usize = 3;
/// Numbers farther out count as this far from a centre.
const FAR: f64 = 3.0;
/// A row with a smaller share is not counted for a component.
const LEAST_SHARE: f64 = 1e-9;

/// The mixture with the best number of components, and then with the best rank.
pub(super) fn fit(sample: &Sample, seed: Seed) -> Mixture {
    let rough = sample.thinned(ROUGH_ROWS);
    let part = Sample { coordinates: &rough, ..*sample };
    let attempt = |count: usize, rank: usize| {
        let start = part.start(count, rank, seed.index(rank).index(count));
        let (mixture, likelihood) = part.climb(start, ROUGH);
        (part.criterion(&mixture, likelihood), mixture)
    };
    let mut best = attempt(1, RANKS[0].min(sample.numbers));
    let mut count = 1;
    while 2 * count <= MOST_COMPONENTS && 2 * count * LEAST_ROWS <= part.len() {
        let next = attempt(2 * count, RANKS[0].min(sample.numbers));
        if next.0 >= best.0 {
            break;
        }
        (best, count) = (next, 2 * count);
    }
    for rank in RANKS[1..].iter().filter(|rank| **rank < sample.numbers.max(RANKS[0])) {
        let next = attempt(count, *rank);
        if next.0 < best.0 {
            best = next;
        }
    }
    sample.climb(best.1, FINE).0
}

/// The rows that sizes are compared on.
const ROUGH_ROWS: usize = 3000;

/// The sums over rows of one component.
#[derive(Clone)]
struct Sums {
    weight: f64,
    y: Vec<f64>,
    squares: Vec<f64>,
    factors: Vec<f64>,
    /// `sum y f^T`, a row for each number.
    products: Vec<f64>,
    /// `sum f f^T`
    factor_products: Vec<f64>,
    levels: Vec<f64>,
}

impl Sums {
    fn new(numbers: usize, levels: usize, rank: usize) -> Self {
        Self {
            weight: 0.0,
            y: vec![0.0; numbers],
            squares: vec![0.0; numbers],
            factors: vec![0.0; rank],
            products: vec![0.0; numbers * rank],
            factor_products: vec![0.0; rank * rank],
            levels: vec![0.0; levels],
        }
    }

    fn add_row(&mut self, share: f64, coordinates: &[f64], factors: &[f64]) {
        let (y, z) = coordinates.split_at(self.y.len());
        let rank = factors.len();
        self.weight += share;
        for (j, &y) in y.iter().enumerate() {
            let own = share * y;
            self.y[j] += own;
            self.squares[j] += own * y;
            let row = &mut self.products[j * rank..(j + 1) * rank];
            row.iter_mut().zip(factors).for_each(|(to, f)| *to += own * f);
        }
        for (i, &f) in factors.iter().enumerate() {
            let own = share * f;
            self.factors[i] += own;
            let row = &mut self.factor_products[i * rank..(i + 1) * rank];
            row.iter_mut().zip(factors).for_each(|(to, f)| *to += own * f);
        }
        self.levels.iter_mut().zip(z).for_each(|(to, z)| *to += share * z);
    }

    fn add(&mut self, other: &Self) {
        self.weight += other.weight;
        let pairs = [
            (&mut self.y, &other.y),
            (&mut self.squares, &other.squares),
            (&mut self.factors, &other.factors),
            (&mut self.products, &other.products),
            (&mut self.factor_products, &other.factor_products),
            (&mut self.levels, &other.levels),
        ];
        for (own, other) in pairs {
            own.iter_mut().zip(other).for_each(|(to, from)| *to += from);
        }
    }
}

impl Sample<'_> {
    fn len(&self) -> usize {
        self.coordinates.len() / self.width.max(1)
    }

    fn row(&self, index: usize) -> &[f64] {
        &self.coordinates[index * self.width..(index + 1) * self.width]
    }

    fn levels(&self) -> usize {
        self.width - self.numbers
    }

    /// At most `count` rows, evenly chosen.
    fn thinned(&self, count: usize) -> Vec<f64> {
        let (len, kept) = (self.len(), self.len().min(count));
        (0..kept).flat_map(|index| self.row(index * len / kept.max(1))).copied().collect()
    }

    /// The frequencies of all levels, with one more row for each.
    fn frequencies(&self) -> Vec<f64> {
        let mut counts = vec![1.0; self.levels()];
        for index in 0..self.len() {
            let levels = &self.row(index)[self.numbers..];
            counts.iter_mut().zip(levels).for_each(|(to, z)| *to += z);
        }
        for group in self.groups {
            let total: f64 = counts[group.clone()].iter().sum();
            counts[group.clone()].iter_mut().for_each(|count| *count /= total);
        }
        counts
    }

    /// Free parameters: weights, means, noise, loadings up to a rotation, and levels.
    fn parameters(&self, components: usize, rank: usize) -> f64 {
        let turns = rank * rank.saturating_sub(1) / 2;
        let levels = self.levels() - self.groups.len();
        let each = self.numbers * (2 + rank) - turns.min(self.numbers * rank) + levels;
        (components * each + components - 1) as f64
    }

    fn criterion(&self, mixture: &Mixture, log_likelihood: f64) -> f64 {
        let rank = mixture.components.first().map_or(0, |own| own.rank);
        let parameters = self.parameters(mixture.components.len(), rank);
        parameters * libm::log(self.len() as f64) - 2.0 * log_likelihood
    }

    /// Steps until the gain is small; the mixture, and its log-likelihood without the priors.
    fn climb(&self, mut mixture: Mixture, (steps, gain): (usize, f64)) -> (Mixture, f64) {
        let frequencies = self.frequencies();
        let mut last = f64::NEG_INFINITY;
        let mut likelihood = f64::NEG_INFINITY;
        for _ in 0..steps {
            let (sums, own) = self.expect(&mixture);
            let objective = own + prior(&mixture, &frequencies);
            likelihood = own;
            if objective - last < gain * self.len() as f64 {
                break;
            }
            last = objective;
            mixture = self.maximise(&mixture, &sums, &frequencies);
        }
        (mixture, likelihood)
    }

    /// The sums of every component, and the log-likelihood.
    fn expect(&self, mixture: &Mixture) -> (Vec<Sums>, f64) {
        let rank = mixture.components.first().map_or(0, |own| own.rank);
        let empty = || vec![Sums::new(self.numbers, self.levels(), rank); mixture.components.len()];
        let blocks: Vec<(Vec<Sums>, f64)> = self
            .coordinates
            .par_chunks(BLOCK * self.width.max(1))
            .map(|block| {
                let (mut sums, mut likelihood) = (empty(), 0.0);
                for row in block.chunks_exact(self.width.max(1)) {
                    let read: Vec<(f64, Vec<f64>)> =
                        mixture.components.iter().map(|own| own.value_and_factors(row)).collect();
                    let values: Vec<f64> = read.iter().map(|(value, _)| *value).collect();
                    let total = log_sum_exp(&values);
                    likelihood += total;
                    for (own, (value, factors)) in sums.iter_mut().zip(&read) {
                        let share = libm::exp(value - total);
                        if share > LEAST_SHARE {
                            own.add_row(share, row, factors);
                        }
                    }
                }
                (sums, likelihood)
            })
            .collect();
        let (mut sums, mut likelihood) = (empty(), 0.0);
        for (block, own) in &blocks {
            sums.iter_mut().zip(block).for_each(|(to, from)| to.add(from));
            likelihood += own;
        }
        (sums, likelihood)
    }

    fn maximise(&self, mixture: &Mixture, sums: &[Sums], frequencies: &[f64]) -> Mixture {
        let total = self.len() as f64 + sums.len() as f64;
        let components = mixture.components.iter().zip(sums).map(|(old, sums)| {
            let log_weight = libm::log((sums.weight + 1.0) / total);
            let log_levels = log_levels(sums, frequencies);
            if sums.weight < 1.0 {
                // Almost no row is left.
                let (mean, noise) = (old.mean.clone(), old.noise.clone());
                let loadings = old.loadings.clone();
                return Component::new(log_weight, mean, noise, loadings, old.rank, log_levels);
            }
            let (rank, n) = (old.rank, sums.weight);
            let mean: Vec<f64> = sums.y.iter().map(|sum| sum / n).collect();
            let factor_mean: Vec<f64> = sums.factors.iter().map(|sum| sum / n).collect();
            let mut gram = old.factor_covariance();
            for (i, a) in factor_mean.iter().enumerate() {
                for (j, b) in factor_mean.iter().enumerate() {
                    gram[i * rank + j] += sums.factor_products[i * rank + j] / n - a * b;
                }
            }
            cholesky(&mut gram, rank);
            let mut loadings = vec![0.0; self.numbers * rank];
            let noise = (0..self.numbers)
                .map(|j| {
                    let own = &sums.products[j * rank..(j + 1) * rank];
                    let covariance: Vec<f64> = own
                        .iter()
                        .zip(&factor_mean)
                        .map(|(sum, f)| sum / n - mean[j] * f)
                        .collect();
                    let row = &mut loadings[j * rank..(j + 1) * rank];
                    row.copy_from_slice(&covariance);
                    solve_lower(&gram, rank, row);
                    solve_upper(&gram, rank, row);
                    let explained: f64 = row.iter().zip(&covariance).map(|(w, c)| w * c).sum();
                    (sums.squares[j] / n - mean[j] * mean[j] - explained).max(RIDGE)
                })
                .collect();
            Component::new(log_weight, mean, noise, loadings, rank, log_levels)
        });
        Mixture { components: components.collect() }
    }

    /// Components around centres that are far from each other (k-means++), with loadings that are
    /// rows of each.
    fn start(&self, count: usize, rank: usize, seed: Seed) -> Mixture {
        let mut rng = seed.rng();
        let frequencies = self.frequencies();
        let mut centres = self.centres(count, &mut rng);
        let mut nearest = self.nearest(&centres);
        for _ in 0..ROUNDS {
            let mut sums = vec![(0.0, vec![0.0; self.width]); centres.len()];
            for (index, &own) in nearest.iter().enumerate() {
                sums[own].0 += 1.0;
                sums[own].1.iter_mut().zip(self.row(index)).for_each(|(to, x)| *to += x);
            }
            for (centre, (n, sum)) in centres.iter_mut().zip(sums) {
                if n > 0.0 {
                    *centre = sum.into_iter().map(|sum| sum / n).collect();
                }
            }
            nearest = self.nearest(&centres);
        }
        let mut sums = vec![Sums::new(self.numbers, self.levels(), 0); centres.len()];
        let mut members = vec![Vec::new(); centres.len()];
        for (index, &own) in nearest.iter().enumerate() {
            sums[own].add_row(1.0, self.row(index), &[]);
            members[own].push(index);
        }
        let total = (self.len() + centres.len()) as f64;
        let components = sums.iter().zip(members).map(|(sums, members)| {
            let n = sums.weight.max(1.0);
            let mean: Vec<f64> = sums.y.iter().map(|sum| sum / n).collect();
            let half = |(square, mean): (&f64, &f64)| (0.5 * (square / n - mean * mean)).max(RIDGE);
            let noise = sums.squares.iter().zip(&mean).map(half).collect();
            let mut loadings = vec![0.0; self.numbers * rank];
            for factor in 0..if members.is_empty() { 0 } else { rank } {
                let row = self.row(members[rng.random_range(0..members.len())]);
                for (j, mean) in mean.iter().enumerate() {
                    loadings[j * rank + factor] = (row[j] - mean) / (2.0 * rank as f64).sqrt();
                }
            }
            let log_weight = libm::log((sums.weight + 1.0) / total);
            let log_levels = log_levels(sums, &frequencies);
            Component::new(log_weight, mean, noise, loadings, rank, log_levels)
        });
        Mixture { components: components.collect() }
    }

    /// Rows that are drawn with probabilities proportional to their squared distance from the rows
    /// drawn before.
    fn centres(&self, count: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut centres = vec![self.row(rng.random_range(0..self.len())).to_vec()];
        let mut squares = vec![f64::INFINITY; self.len()];
        while centres.len() < count {
            let last = &centres[centres.len() - 1];
            for (index, square) in squares.iter_mut().enumerate() {
                *square = square.min(squared_distance(self.row(index), last));
            }
            let total: f64 = squares.iter().sum();
            let mut left = rng.random_range(0.0..1.0) * total;
            let drawn = squares.iter().position(|square| {
                left -= square;
                left < 0.0
            });
            let Some(drawn) = drawn else { break };
            centres.push(self.row(drawn).to_vec());
        }
        centres
    }

    fn nearest(&self, centres: &[Vec<f64>]) -> Vec<usize> {
        let of_row = |row: &[f64]| {
            let squares = centres.iter().map(|centre| squared_distance(row, centre));
            let least = |best: (usize, f64), (index, square): (usize, f64)| {
                if square < best.1 { (index, square) } else { best }
            };
            squares.enumerate().fold((0, f64::INFINITY), least).0
        };
        self.coordinates.par_chunks(self.width.max(1)).map(of_row).collect()
    }
}

/// The squared distance of two rows, without overflow.
fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).clamp(-FAR, FAR).powi(2)).sum()
}

/// The logarithms of the shares of levels, with the prior's rows.
fn log_levels(sums: &Sums, frequencies: &[f64]) -> Vec<f64> {
    let shares = sums.levels.iter().zip(frequencies);
    let total = sums.weight + PSEUDO_ROWS;
    shares.map(|(count, all)| libm::log((count + PSEUDO_ROWS * all) / total)).collect()
}

/// The logarithm of the priors, up to a constant.
fn prior(mixture: &Mixture, frequencies: &[f64]) -> f64 {
    let of_levels = mixture.components.iter().map(|own| {
        let levels = own.log_levels.iter().zip(frequencies);
        own.log_weight() + PSEUDO_ROWS * levels.map(|(log, all)| all * log).sum::<f64>()
    });
    of_levels.sum()
}

#[cfg(test)]
mod tests;
