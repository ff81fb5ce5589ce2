//! Independent draws.

use super::{Draw, independent};
use crate::error::Result;
use crate::seed::Rng;

pub(super) struct MonteCarlo;

impl Draw for MonteCarlo {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        Ok(independent(dim, samples, rng))
    }
}
