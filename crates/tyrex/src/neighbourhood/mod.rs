//! The neighbourhood of a point: offsets `n_1 .. n_k`, drawn once from a seed.
//!
//! The paper draws `x_i` from `N(x, sigma^2 I)`, afresh at every step. Here the offsets are
//! drawn once and then are a value, the same for every step and every point. That makes a
//! measure a deterministic, differentiable function of `x`; what is accepted in the end is
//! tested on offsets the search never saw.

pub mod normal;
mod sensitivity;
mod symmetric;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub(crate) use symmetric::eigen;

use crate::error::{Error, Result};
use crate::file::hex;
use crate::model::Model;
use crate::points::Points;
use crate::seed::{Rng, Seed};

/// How offsets are drawn. All but the last two have the distribution `N(0, sigma^2 I)`, one
/// by one; they differ in how evenly they cover it together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Independent draws: the paper.
    #[default]
    MonteCarlo,
    /// Pairs `n, -n`: what is odd in the offset cancels.
    Antithetic,
    /// Pairs `n, -n` whose directions are orthogonal, `d` at a time, with lengths drawn
    /// independently from the chi distribution.
    Orthogonal,
    /// Owen-scrambled Sobol points through the normal quantile. With a rotation
    /// ([`Neighbourhood::rotated`]) its best coordinates lie where the model is steepest.
    Sobol,
    /// Independent draws, each coordinate conditioned on `|n_j| <= 2 sigma`: bounded, hence
    /// sub-Gaussian, as in the paper's remark on other distributions.
    TruncatedGaussian,
    /// Uniform in the ball whose coordinates have standard deviation `sigma`, that is of
    /// radius `sigma sqrt(d + 2)`.
    UniformBall,
}

/// The offsets, and what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbourhood {
    sampling: Option<Sampling>,
    sigma: f64,
    offsets: Points,
    distances: Vec<f64>,
}

/// The most offsets, and the most coordinates of all of them together: what a machine can hold
/// several of.
const MOST_SAMPLES: usize = 1 << 20;
const MOST_NUMBERS: usize = 1 << 27;

impl Neighbourhood {
    /// The most coordinates of Sobol points.
    pub const SOBOL_DIMENSIONS: usize = sobol_burley::NUM_DIMENSIONS as usize;

    /// Draws `samples` offsets of `dim` coordinates and width `sigma`.
    pub fn draw(
        sampling: Sampling,
        dim: usize,
        samples: usize,
        sigma: f64,
        seed: Seed,
    ) -> Result<Self> {
        Self::rotated(sampling, dim, samples, sigma, None, seed)
    }

    /// Draws offsets for a model. Sobol points are turned so that their first coordinates,
    /// which cover best, lie along the directions in which the network is most sensitive;
    /// the other samplings have no better coordinates, and a model that is no network has no
    /// such directions.
    pub fn for_model(
        sampling: Sampling,
        model: &dyn Model,
        samples: usize,
        sigma: f64,
        seed: Seed,
    ) -> Result<Self> {
        let rotation = match (sampling, model.network()) {
            // More coordinates than the sequence has are refused below.
            (Sampling::Sobol, Some(network)) if model.dim() <= Self::SOBOL_DIMENSIONS => {
                Some(sensitivity::directions(network))
            }
            _ => None,
        };
        Self::rotated(sampling, model.dim(), samples, sigma, rotation.as_deref(), seed)
    }

    /// The same as [`Neighbourhood::draw`], with every offset turned by an orthogonal `dim` x `dim` matrix given row by
    /// row: the `j`-th coordinate drawn goes along its `j`-th row. Only Sobol points notice.
    pub fn rotated(
        sampling: Sampling,
        dim: usize,
        samples: usize,
        sigma: f64,
        rotation: Option<&[f64]>,
        seed: Seed,
    ) -> Result<Self> {
        if samples == 0 {
            return Err(Error::param("k", samples, "at least 1 sample"));
        }
        if dim == 0 {
            return Err(Error::param("dim", dim, "at least 1 coordinate"));
        }
        let most = MOST_SAMPLES.min(MOST_NUMBERS / dim);
        if samples > most {
            let expected = format!("at most {most} samples of {dim} coordinates");
            return Err(Error::param("k", samples, expected));
        }
        // Offsets are in single precision: beyond these they would all be 0 or infinite.
        if !(1e-30..=1e30).contains(&sigma) {
            return Err(Error::param("sigma", sigma, "a positive number from 1e-30 to 1e30"));
        }
        let mut rng = seed.derive("neighbourhood").rng();
        let mut units = match sampling {
            Sampling::MonteCarlo => independent(dim, samples, &mut rng),
            Sampling::Antithetic => mirrored(&independent(dim, samples.div_ceil(2), &mut rng), dim),
            Sampling::Orthogonal => mirrored(&orthogonal(dim, samples.div_ceil(2), &mut rng), dim),
            Sampling::Sobol => sobol(dim, samples, rng.random())?,
            Sampling::TruncatedGaussian => truncated(dim, samples, &mut rng),
            Sampling::UniformBall => ball(dim, samples, &mut rng),
        };
        units.truncate(samples * dim);
        if let Some(rotation) = rotation {
            if rotation.len() != dim * dim {
                return Err(Error::Dimension {
                    what: "numbers in a rotation".into(),
                    expected: dim * dim,
                    got: rotation.len(),
                });
            }
            rotate(&mut units, dim, rotation);
        }
        let values = units.iter().map(|unit| (unit * sigma) as f32).collect();
        let offsets = Points::from_rows(dim, values)?;
        let distances = lengths(&offsets);
        Ok(Self { sampling: Some(sampling), sigma, offsets, distances })
    }

    /// Offsets drawn elsewhere. Their `sigma` is the root mean square of their coordinates.
    pub fn given(offsets: Points) -> Result<Self> {
        let distances = lengths(&offsets);
        if distances.is_empty() {
            return Err(Error::param("k", 0, "at least 1 sample"));
        }
        if let Some(distance) = distances.iter().find(|d| !(d.is_finite() && **d > 0.0)) {
            return Err(Error::param(
                "offsets",
                format!("one of length {distance}"),
                "offsets that are finite and not zero",
            ));
        }
        let squares: f64 = distances.iter().map(|distance| distance * distance).sum();
        let sigma = (squares / offsets.as_slice().len() as f64).sqrt();
        Ok(Self { sampling: None, sigma, offsets, distances })
    }

    /// How it was drawn, if it was drawn here.
    #[must_use]
    pub fn sampling(&self) -> Option<Sampling> {
        self.sampling
    }

    /// The standard deviation of a coordinate.
    #[must_use]
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// `k`
    #[must_use]
    pub fn samples(&self) -> usize {
        self.offsets.len()
    }

    /// What tells these offsets from others, in a few letters.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for offset in self.offsets.as_slice() {
            hash.update(offset.to_le_bytes());
        }
        hex(&hash.finalize()[..16])
    }

    /// `n_1 .. n_k`
    #[must_use]
    pub fn offsets(&self) -> &Points {
        &self.offsets
    }

    /// `||n_1|| .. ||n_k||`
    #[must_use]
    pub fn distances(&self) -> &[f64] {
        &self.distances
    }

    /// `1/k sum_i ||n_i||`
    #[must_use]
    pub fn mean_distance(&self) -> f64 {
        self.distances.iter().sum::<f64>() / self.distances.len() as f64
    }

    /// `x_1 .. x_k` around a point.
    #[must_use]
    pub fn around(&self, x: &[f32]) -> Points {
        let mut points = self.offsets.clone();
        for index in 0..points.len() {
            for (value, centre) in points.row_mut(index).iter_mut().zip(x) {
                *value += centre;
            }
        }
        points
    }
}

fn lengths(offsets: &Points) -> Vec<f64> {
    offsets.rows().map(|n| n.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt()).collect()
}

fn independent(dim: usize, samples: usize, rng: &mut Rng) -> Vec<f64> {
    (0..samples * dim).map(|_| StandardNormal.sample(rng)).collect()
}

/// Each offset followed by its negative.
fn mirrored(units: &[f64], dim: usize) -> Vec<f64> {
    units
        .chunks_exact(dim)
        .flat_map(|unit| unit.iter().copied().chain(unit.iter().map(|value| -value)))
        .collect()
}

/// Orthonormal directions, `dim` at a time, each with the length of a normal vector of its own.
fn orthogonal(dim: usize, samples: usize, rng: &mut Rng) -> Vec<f64> {
    let mut units = Vec::with_capacity(samples * dim);
    while units.len() < samples * dim {
        let mut basis: Vec<Vec<f64>> = Vec::with_capacity(dim);
        while basis.len() < dim && units.len() + basis.len() * dim < samples * dim {
            let mut direction: Vec<f64> = independent(dim, 1, rng);
            // Twice, since once loses orthogonality in the last digits.
            for _ in 0..2 {
                for other in &basis {
                    let along: f64 = direction.iter().zip(other).map(|(a, b)| a * b).sum();
                    for (value, other) in direction.iter_mut().zip(other) {
                        *value -= along * other;
                    }
                }
            }
            let length = norm(&direction);
            if length > 1e-8 {
                basis.push(direction.iter().map(|value| value / length).collect());
            }
        }
        for direction in basis {
            let length = norm(&independent(dim, 1, rng));
            units.extend(direction.iter().map(|value| value * length));
        }
    }
    units
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn sobol(dim: usize, samples: usize, seed: u32) -> Result<Vec<f64>> {
    if dim > Neighbourhood::SOBOL_DIMENSIONS || samples > 1 << 16 {
        return Err(Error::param(
            "sampling",
            format!("sobol with {dim} coordinates and {samples} samples"),
            format!(
                "at most {} coordinates and 65536 samples; use orthogonal",
                Neighbourhood::SOBOL_DIMENSIONS
            ),
        ));
    }
    Ok((0..samples)
        .flat_map(|index| (0..dim).map(move |axis| (index as u32, axis as u32)))
        // A point is the lower corner of its cell of width 2^-24; its middle is never 0.
        .map(|(index, axis)| {
            let corner = f64::from(sobol_burley::sample(index, axis, seed));
            normal::quantile(corner + 0.5 / f64::from(1_u32 << 24))
        })
        .collect())
}

/// Coordinates conditioned on at most two standard deviations.
fn truncated(dim: usize, samples: usize, rng: &mut Rng) -> Vec<f64> {
    (0..samples * dim)
        .map(|_| {
            loop {
                let value: f64 = StandardNormal.sample(rng);
                if value.abs() <= 2.0 {
                    break value;
                }
            }
        })
        .collect()
}

fn ball(dim: usize, samples: usize, rng: &mut Rng) -> Vec<f64> {
    let radius = (dim as f64 + 2.0).sqrt();
    let mut units = Vec::with_capacity(samples * dim);
    for _ in 0..samples {
        let direction = independent(dim, 1, rng);
        let length = radius * rng.random::<f64>().powf(1.0 / dim as f64) / norm(&direction);
        units.extend(direction.iter().map(|value| value * length));
    }
    units
}

fn rotate(units: &mut [f64], dim: usize, rotation: &[f64]) {
    let mut turned = vec![0.0; dim];
    for unit in units.chunks_exact_mut(dim) {
        turned.fill(0.0);
        for (value, axis) in unit.iter().zip(rotation.chunks_exact(dim)) {
            for (sum, direction) in turned.iter_mut().zip(axis) {
                *sum += value * direction;
            }
        }
        unit.copy_from_slice(&turned);
    }
}
