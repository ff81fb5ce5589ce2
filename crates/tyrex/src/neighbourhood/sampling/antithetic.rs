//! Pairs `n, -n`.

use super::{Draw, independent, mirrored};
use crate::catalogue::Named;
use crate::error::Result;
use crate::seed::Rng;

pub(super) struct Antithetic;

impl Named for Antithetic {
    const NAME: &'static str = "antithetic";
}

impl Draw for Antithetic {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        Ok(mirrored(&independent(dim, samples.div_ceil(2), rng), dim))
    }
}
