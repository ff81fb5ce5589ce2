//! Owen-scrambled Sobol points through the normal quantile.

use rand::RngExt as _;

use super::Draw;
use crate::error::{Error, Result};
use crate::neighbourhood::normal;
use crate::seed::Rng;

/// The most coordinates of Sobol points.
const DIMENSIONS: usize = sobol_burley::NUM_DIMENSIONS as usize;

pub(super) struct Sobol;

impl Draw for Sobol {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        let seed: u32 = rng.random();
        if dim > DIMENSIONS || samples > 1 << 16 {
            return Err(Error::param(
                "sampling",
                format!("sobol with {dim} coordinates and {samples} samples"),
                format!("at most {DIMENSIONS} coordinates and 65536 samples; use orthogonal"),
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

    fn most_coordinates(&self) -> usize {
        DIMENSIONS
    }

    fn has_best_coordinates(&self) -> bool {
        true
    }
}
