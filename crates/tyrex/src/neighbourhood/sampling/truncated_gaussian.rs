//! Coordinates conditioned on at most two standard deviations.

use rand_distr::{Distribution as _, StandardNormal};

use super::Draw;
use crate::error::Result;
use crate::seed::Rng;

pub(super) struct TruncatedGaussian;

impl Draw for TruncatedGaussian {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        Ok((0..samples * dim)
            .map(|_| {
                loop {
                    let value: f64 = StandardNormal.sample(rng);
                    if value.abs() <= 2.0 {
                        break value;
                    }
                }
            })
            .collect())
    }
}
