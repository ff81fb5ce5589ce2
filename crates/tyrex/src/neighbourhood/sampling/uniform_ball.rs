//! Uniform in a ball.

use rand::RngExt as _;

use super::{Draw, independent, norm};
use crate::error::Result;
use crate::seed::Rng;

pub(super) struct UniformBall;

impl Draw for UniformBall {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        let radius = (dim as f64 + 2.0).sqrt();
        let mut units = Vec::with_capacity(samples * dim);
        for _ in 0..samples {
            let direction = independent(dim, 1, rng);
            let length = radius * rng.random::<f64>().powf(1.0 / dim as f64) / norm(&direction);
            units.extend(direction.iter().map(|value| value * length));
        }
        Ok(units)
    }
}
