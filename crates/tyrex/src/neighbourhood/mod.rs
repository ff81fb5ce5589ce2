//! The neighbourhood of a point: offsets `n_1 .. n_k`, drawn once from a seed.
//!
//! The paper draws `x_i` from `N(x, sigma^2 I)`, afresh at every step. Here the offsets are drawn
//! once, and are the same for every step and every point. This makes a measure a deterministic,
//! differentiable function of `x`; the final test uses offsets that the search did not use.

pub(crate) mod normal;
mod sampling;
mod sensitivity;
mod symmetric;

use sha2::{Digest as _, Sha256};

pub use sampling::Sampling;
pub(crate) use symmetric::eigen;

use crate::error::{Error, Result};
use crate::file::hex;
use crate::model::Model;
use crate::points::Points;
use crate::seed::Seed;

/// The offsets, and how they were drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbourhood {
    sampling: Option<Sampling>,
    sigma: f64,
    offsets: Points,
    distances: Vec<f64>,
}

/// The maximum number of offsets, and of coordinates of all offsets together, for the sake of
/// memory.
const MOST_SAMPLES: usize = 1 << 20;
const MOST_NUMBERS: usize = 1 << 27;

impl Neighbourhood {
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

    /// Checks the number of offsets and their width, before there is a model.
    pub fn check(samples: usize, sigma: f64) -> Result<()> {
        if samples == 0 {
            return Err(Error::param("k", samples, "at least 1 sample"));
        }
        if samples > MOST_SAMPLES {
            return Err(Error::param("k", samples, format!("at most {MOST_SAMPLES} samples")));
        }
        // Offsets are in single precision: beyond these they would all be 0 or infinite.
        if !(1e-30..=1e30).contains(&sigma) {
            return Err(Error::param("sigma", sigma, "a positive number from 1e-30 to 1e30"));
        }
        Ok(())
    }

    /// Draws offsets for a model. Sobol points are turned so that their first coordinates,
    /// which cover best, lie along the directions in which the network is most sensitive;
    /// the other samplings have no better coordinates, and a model that is not a network has no
    /// such directions.
    pub fn for_model(
        sampling: Sampling,
        model: &dyn Model,
        samples: usize,
        sigma: f64,
        seed: Seed,
    ) -> Result<Self> {
        // The check below rejects too many coordinates.
        let turns = sampling.has_best_coordinates() && model.dim() <= sampling.most_coordinates();
        let rotation = model.network().filter(|_| turns).map(sensitivity::directions);
        Self::rotated(sampling, model.dim(), samples, sigma, rotation.as_deref(), seed)
    }

    /// The same as [`Neighbourhood::draw`], with every offset turned by an orthogonal `dim` x `dim`
    /// matrix given row by row: the `j`-th coordinate drawn goes along its `j`-th row. This matters
    /// only for Sobol points.
    pub fn rotated(
        sampling: Sampling,
        dim: usize,
        samples: usize,
        sigma: f64,
        rotation: Option<&[f64]>,
        seed: Seed,
    ) -> Result<Self> {
        if dim == 0 {
            return Err(Error::param("dim", dim, "at least 1 coordinate"));
        }
        let most = MOST_SAMPLES.min(MOST_NUMBERS / dim);
        if samples > most {
            let expected = format!("at most {most} samples of {dim} coordinates");
            return Err(Error::param("k", samples, expected));
        }
        Self::check(samples, sigma)?;
        let mut rng = seed.derive("neighbourhood").rng();
        let mut units = sampling.units(dim, samples, &mut rng)?;
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

    /// How it was drawn, if this crate drew it.
    pub fn sampling(&self) -> Option<Sampling> {
        self.sampling
    }

    /// The standard deviation of a coordinate.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// `k`
    pub fn samples(&self) -> usize {
        self.offsets.len()
    }

    /// A short identifier of these offsets.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for offset in self.offsets.as_slice() {
            hash.update(offset.to_le_bytes());
        }
        hex(&hash.finalize()[..16])
    }

    /// `n_1 .. n_k`
    pub fn offsets(&self) -> &Points {
        &self.offsets
    }

    /// `||n_1|| .. ||n_k||`
    pub fn distances(&self) -> &[f64] {
        &self.distances
    }

    /// `1/k sum_i ||n_i||`
    pub fn mean_distance(&self) -> f64 {
        self.distances.iter().sum::<f64>() / self.distances.len() as f64
    }

    /// `x_1 .. x_k` around a point.
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
