//! How usual a point is among the favourable rows.
//!
//! `p(x) = sum_c pi_c N(y; mu_c, W_c W_c^T + Psi_c) prod_g prod_k theta_cgk^{z_gk}`
//!
//! with the standardised numbers `y` and the indicators `z` of the levels of each group, both affine
//! functions of the columns. `W_c` has a low rank and `Psi_c` is diagonal. The indicators enter
//! `ln p` linearly, so relaxed points have gradients.
//!
//! The mixture is fitted to a part of the rows. The p-value of a point is its place among the other
//! rows, which were held out,
//!
//! `p-value(x) = (1 + #{held-out rows with p <= p(x)}) / (n + 1)`
//!
//! By exchangeability at most a share `alpha` of further favourable rows has a p-value of at most
//! `alpha`, however well the mixture fits.

mod component;
mod coordinates;
mod effect;
mod fit;
mod mixture;
mod small;

use rand::seq::SliceRandom as _;
use rayon::prelude::*;

use crate::data::Encoder;
use crate::error::{Error, Result};
use crate::model::routes::Line;
use crate::points::Points;
use crate::seed::Seed;
use coordinates::Coordinates;
use effect::Effect;
use fit::Sample;
use mixture::Mixture;

/// A density fitted to favourable rows, with the rows that were held out.
#[derive(Debug, Clone)]
pub struct Plausibility {
    coordinates: Coordinates,
    mixture: Mixture,
    dim: usize,
    /// A bound of `ln p`.
    peak: f64,
    /// `ln p` of the held-out rows, in ascending order.
    held_out: Vec<f64>,
}

/// The place of a point among held-out rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The rows that are less usual.
    pub below: usize,
    /// The rows that are as usual.
    pub equal: usize,
    /// All rows.
    pub rows: usize,
}

impl Place {
    /// `(1 + below + equal) / (rows + 1)`: the point itself counts among those that are no more
    /// usual, so the p-value is never 0.
    pub fn p_value(self) -> f64 {
        (1 + self.below + self.equal) as f64 / (self.rows + 1) as f64
    }
}

/// The least rows to fit a density to and to hold out.
pub const LEAST_ROWS: usize = 40;
/// One row of so many is held out.
const HELD_OUT: usize = 4;
/// The most rows that are fitted, and held out.
const MOST_ROWS: usize = 12_000;
const MOST_HELD_OUT: usize = 4_000;

impl Plausibility {
    /// Fits the density of an encoder's points to favourable rows.
    pub fn fit(encoder: &Encoder, rows: &Points, seed: Seed) -> Result<Self> {
        Self::with_coordinates(|fitted| Coordinates::of(encoder, fitted), rows, seed)
    }

    /// Fits the density of points whose columns are all numbers.
    pub fn fit_numbers(points: &Points, seed: Seed) -> Result<Self> {
        Self::with_coordinates(Coordinates::of_numbers, points, seed)
    }

    fn with_coordinates(
        coordinates: impl FnOnce(&Points) -> Coordinates,
        rows: &Points,
        seed: Seed,
    ) -> Result<Self> {
        if rows.len() < LEAST_ROWS {
            let expected = format!("at least {LEAST_ROWS}, to fit a density to");
            return Err(Error::param("favourable rows", rows.len(), expected));
        }
        if let Some(index) = rows.rows().position(|row| !row.iter().all(|x| x.is_finite())) {
            return Err(Error::param("favourable row", index, "finite coordinates"));
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.shuffle(&mut seed.derive("held out").rng());
        let held_out = (rows.len() / HELD_OUT).min(MOST_HELD_OUT);
        let (held_out, fitted) = order.split_at(held_out);
        let fitted = rows.select(&fitted[..fitted.len().min(MOST_ROWS)]);
        let coordinates = coordinates(&fitted);
        let flat: Vec<f64> = fitted.rows().flat_map(|row| coordinates.read(row)).collect();
        let sample = Sample {
            coordinates: &flat,
            numbers: coordinates.numbers(),
            width: coordinates.len(),
            groups: coordinates.groups(),
        };
        let mixture = fit::fit(&sample, seed.derive("mixture"));
        let peak = mixture.peak(coordinates.groups()) + coordinates.log_volume();
        let mut own = Self { coordinates, mixture, dim: rows.dim(), peak, held_out: Vec::new() };
        own.held_out = own.log_densities(&rows.select(held_out));
        own.held_out.sort_by(f64::total_cmp);
        Ok(own)
    }

    /// The number of coordinates of a point.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The number of components and their rank.
    pub fn size(&self) -> (usize, usize) {
        let components = &self.mixture.components;
        (components.len(), components.first().map_or(0, |own| own.rank))
    }

    /// The number of rows that were held out.
    pub(crate) fn held_out(&self) -> usize {
        self.held_out.len()
    }

    /// `ln p(x)`
    ///
    /// # Panics
    /// If the point is of another dimension.
    pub fn log_density(&self, x: &[f32]) -> f64 {
        assert_eq!(x.len(), self.dim, "a point of another dimension");
        self.mixture.log_density(&self.coordinates.read(x)) + self.coordinates.log_volume()
    }

    /// `ln p` of every point.
    ///
    /// # Panics
    /// If the points are of another dimension.
    pub(crate) fn log_densities(&self, points: &Points) -> Vec<f64> {
        assert_eq!(points.dim(), self.dim, "the dimension of the points");
        points.as_slice().par_chunks(self.dim).map(|x| self.log_density(x)).collect()
    }

    /// `ln p(x)`, and its gradient with respect to the point.
    ///
    /// # Panics
    /// If the point or the gradient is of another dimension.
    pub fn log_density_and_gradient(&self, x: &[f32], gradient: &mut [f64]) -> f64 {
        assert_eq!((x.len(), gradient.len()), (self.dim, self.dim), "another dimension");
        let coordinates = self.coordinates.read(x);
        let mut of_coordinates = vec![0.0; coordinates.len()];
        let value = self.mixture.with_gradient(&coordinates, &mut of_coordinates);
        self.coordinates.gradient(&of_coordinates, gradient);
        value + self.coordinates.log_volume()
    }

    /// `ln p` at a point with each choice of a line.
    pub(crate) fn along(&self, x: &[f32], line: Line<'_>) -> Vec<f64> {
        let coordinates = self.coordinates.read(x);
        let readings = self.mixture.readings(&coordinates);
        let effect = Effect::of(&self.mixture, &self.coordinates, &readings, x, line);
        let volume = self.coordinates.log_volume();
        (0..line.len()).map(|choice| effect.log_density(&readings, choice) + volume).collect()
    }

    /// `ln p` at a point with each pair of choices of two lines of other columns, for those pairs
    /// that `is_asked` names; the choices of the second line follow each other.
    pub(crate) fn over(
        &self,
        x: &[f32],
        lines: [Line<'_>; 2],
        is_asked: impl Fn(usize) -> bool,
    ) -> Vec<Option<f64>> {
        let coordinates = self.coordinates.read(x);
        let readings = self.mixture.readings(&coordinates);
        let [first, second] =
            lines.map(|line| Effect::of(&self.mixture, &self.coordinates, &readings, x, line));
        let common = first.common(&second, &self.mixture);
        let volume = self.coordinates.log_volume();
        let columns = lines[1].len();
        let pairs = (0..lines[0].len() * columns).map(|index| {
            let pair = (index / columns, index % columns);
            let value = || first.log_density_of_pair(&second, &common, &readings, pair) + volume;
            is_asked(index).then(value)
        });
        pairs.collect()
    }

    /// `-sqrt(2 (c - ln p))` with a bound `c` of `ln p` that the largest density of each component
    /// gives: minus the distance from the centre in standard deviations, for a single Gaussian with
    /// its most frequent levels. About linear along rays, where `ln p` is not.
    pub(crate) fn depth(&self, log_density: f64) -> f64 {
        -(2.0 * self.below_peak(log_density)).sqrt()
    }

    /// The derivative of [`depth`](Self::depth).
    pub(crate) fn depth_slope(&self, log_density: f64) -> f64 {
        1.0 / (2.0 * self.below_peak(log_density)).sqrt()
    }

    /// At least a little, since the slope is infinite at the bound itself.
    fn below_peak(&self, log_density: f64) -> f64 {
        (self.peak - log_density).max(0.0) + 0.5
    }

    /// The place of a point among the held-out rows.
    ///
    /// # Panics
    /// If the point is of another dimension.
    pub fn place(&self, x: &[f32]) -> Place {
        let log_density = self.log_density(x);
        let below = self.held_out.partition_point(|own| *own < log_density);
        let not_above = self.held_out.partition_point(|own| *own <= log_density);
        Place { below, equal: not_above - below, rows: self.held_out.len() }
    }

    /// The p-value of a point.
    ///
    /// # Panics
    /// If the point is of another dimension.
    pub fn p_value(&self, x: &[f32]) -> f64 {
        self.place(x).p_value()
    }

    /// The least `ln p` at which the p-value is at least `alpha`.
    pub fn level(&self, alpha: f64) -> Result<f64> {
        let rows = self.held_out.len() as f64 + 1.0;
        if !(alpha < 1.0 && alpha >= 1.0 / rows) {
            let expected = format!(
                "a p-value of at least {:.2e} and below 1: the reference has {} held-out favourable \
                 rows to compare with",
                1.0 / rows,
                self.held_out.len()
            );
            return Err(Error::param("plausible", alpha, expected));
        }
        // `1 + below >= alpha (n + 1)`
        let below = ((alpha * rows - 1e-9).ceil() as usize).saturating_sub(1);
        Ok(match below {
            0 => f64::NEG_INFINITY,
            below => self.held_out[below - 1],
        })
    }
}

#[cfg(test)]
mod tests;
