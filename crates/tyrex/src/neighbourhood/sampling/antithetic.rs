//! Pairs `n, -n`.

use super::{Draw, independent, mirrored};
use crate::error::Result;
use crate::seed::Rng;

pub(super) struct Antithetic;

impl Draw for Antithetic {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        Ok(mirrored(&independent(dim, samples.div_ceil(2), rng), dim))
    }
}
