//! Pairs `n, -n` whose directions are orthogonal.

use super::{Draw, independent, mirrored, norm};
use crate::error::Result;
use crate::seed::Rng;

pub(super) struct Orthogonal;

impl Draw for Orthogonal {
    fn units(&self, dim: usize, samples: usize, rng: &mut Rng) -> Result<Vec<f64>> {
        Ok(mirrored(&orthogonal(dim, samples.div_ceil(2), rng), dim))
    }
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
