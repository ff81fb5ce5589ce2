//! The product of the layers' spectral norms: sound everywhere, and loose.

use super::{LipschitzBound, Region, Soundness, output_slope};
use crate::model::{Dense, Mlp};

/// `gamma = s prod_l a_l ||W_l||`, with `a_l` the largest slope of the layer's activation and
/// `s` that of the output.
pub fn spectral(network: &Mlp) -> LipschitzBound {
    let layers = network.layers();
    let product: f64 =
        layers.iter().map(|layer| spectral_norm(layer) * layer.activation.steepest()).product();
    LipschitzBound {
        value: product * output_slope(network.output()),
        region: Region::Global,
        soundness: Soundness::Sound,
    }
}

/// An upper bound on `||W||`, within 0.001 % of it for matrices of ordinary size.
///
/// Power iteration approaches the norm from below, so it gives no upper bound. From above:
/// `||W||^2` is the largest eigenvalue of the Gram matrix `G`, and for a symmetric `G`
/// `lambda^n <= ||G^n||_F` for every `n`; after twenty squarings the two differ by at most a
/// factor `rank^(1/2^21)`.
fn spectral_norm(layer: &Dense) -> f64 {
    const SQUARINGS: i32 = 20;
    let outputs = layer.bias.len();
    let inputs = layer.weights.len() / outputs;
    let weight = |i: usize, j: usize| f64::from(layer.weights[i * outputs + j]);
    let size = inputs.min(outputs);
    let mut gram = vec![0.0; size * size];
    for a in 0..size {
        for b in 0..=a {
            let sum: f64 = if inputs <= outputs {
                (0..outputs).map(|j| weight(a, j) * weight(b, j)).sum()
            } else {
                (0..inputs).map(|i| weight(i, a) * weight(i, b)).sum()
            };
            gram[a * size + b] = sum;
            gram[b * size + a] = sum;
        }
    }
    let frobenius = |m: &[f64]| m.iter().map(|v| v * v).sum::<f64>().sqrt();
    // G = scale * unit, so G^2n = scale^2 * unit^2: logarithms keep the powers in range.
    let mut log_norm = 0.0;
    let mut power = 1.0;
    for step in 0..=SQUARINGS {
        let norm = frobenius(&gram);
        if norm == 0.0 {
            return 0.0;
        }
        // One direction is left: further squarings have no effect.
        if step > 0 && norm > 1.0 - 1e-12 {
            break;
        }
        log_norm += libm::log(norm) / power;
        for value in &mut gram {
            *value /= norm;
        }
        if step < SQUARINGS {
            gram = square(&gram, size);
            power *= 2.0;
        }
    }
    // Rounding in the squarings, and the network computes in single precision.
    libm::exp(0.5 * log_norm) * (1.0 + 1e-6)
}

/// `M M` of a symmetric matrix.
fn square(matrix: &[f64], size: usize) -> Vec<f64> {
    let mut result = vec![0.0; size * size];
    for (row, out) in matrix.chunks_exact(size).zip(result.chunks_exact_mut(size)) {
        for (factor, other) in row.iter().zip(matrix.chunks_exact(size)) {
            for (sum, value) in out.iter_mut().zip(other) {
                *sum += factor * value;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Activation;

    fn dense(weights: &[f32], outputs: usize) -> Dense {
        Dense {
            weights: weights.to_vec(),
            bias: vec![0.0; outputs],
            activation: Activation::Identity,
        }
    }

    #[test]
    fn norms_of_known_matrices() {
        // diag(3, 2), a vector, a rotation, numpy.linalg.norm([[1, 2], [3, 4], [5, 6]], 2), zero
        for (weights, outputs, expected) in [
            (&[3.0, 0.0, 0.0, 2.0][..], 2, 3.0),
            (&[3.0, 4.0], 1, 5.0),
            (&[0.6, -0.8, 0.8, 0.6], 2, 1.0),
            (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 9.525_518_091_565_104),
            (&[0.0, 0.0], 2, 0.0),
        ] {
            let got = spectral_norm(&dense(weights, outputs));
            assert!(got >= expected && got <= expected * 1.000_01, "{got} {expected}");
        }
    }
}
