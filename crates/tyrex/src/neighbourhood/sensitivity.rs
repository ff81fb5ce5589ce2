//! The directions in which a network is most sensitive.
//!
//! With its activations left out the network is the matrix `A = W_1 .. W_L diag(w)`, from a point
//! to the contribution of each unit of the last hidden layer to the logit `w`. The eigenvectors of
//! `A A^T`, by falling eigenvalue, are the directions along which these move most.

use super::symmetric::eigen;
use crate::model::{Dense, Mlp, Model as _, Output};

/// An orthonormal basis, row by row, the most sensitive direction first.
pub(super) fn directions(network: &Mlp) -> Vec<f64> {
    let dim = network.dim();
    let (columns, product) = linear_part(network);
    let mut gram = vec![0.0; dim * dim];
    for (row, out) in product.chunks_exact(columns).zip(gram.chunks_exact_mut(dim)) {
        for (other, value) in product.chunks_exact(columns).zip(out) {
            *value = row.iter().zip(other).map(|(a, b)| a * b).sum();
        }
    }
    eigen(gram, dim).vectors
}

/// `A`, row by row, and its number of columns.
fn linear_part(network: &Mlp) -> (usize, Vec<f64>) {
    let layers = network.layers();
    let (head, hidden) = layers.split_last().map_or((None, &[][..]), |(h, rest)| (Some(h), rest));
    let weights = head.map_or_else(Vec::new, |head| logit_weights(head, network.output()));
    let Some((first, rest)) = hidden.split_first() else {
        return (1, weights);
    };
    let mut columns = first.bias.len();
    let mut product: Vec<f64> = first.weights.iter().map(|&w| f64::from(w)).collect();
    for layer in rest {
        let outputs = layer.bias.len();
        let mut next = vec![0.0; product.len() / columns * outputs];
        for (row, out) in product.chunks_exact(columns).zip(next.chunks_exact_mut(outputs)) {
            for (&factor, weights) in row.iter().zip(layer.weights.chunks_exact(outputs)) {
                for (sum, &weight) in out.iter_mut().zip(weights) {
                    *sum += factor * f64::from(weight);
                }
            }
        }
        // Only directions matter; this scale avoids overflow.
        let largest = next.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        if largest > 0.0 {
            for value in &mut next {
                *value /= largest;
            }
        }
        (columns, product) = (outputs, next);
    }
    for row in product.chunks_exact_mut(columns) {
        for (value, weight) in row.iter_mut().zip(&weights) {
            *value *= weight;
        }
    }
    (columns, product)
}

/// The weights of the logit; for a softmax, of the favourable logit against the others' mean.
fn logit_weights(head: &Dense, output: Output) -> Vec<f64> {
    let classes = head.bias.len();
    let rows = head.weights.chunks_exact(classes);
    match output {
        Output::Sigmoid { .. } => rows.map(|row| f64::from(row[0])).collect(),
        Output::Softmax { favourable } => rows
            .map(|row| {
                let own = f64::from(row[favourable]);
                let total: f64 = row.iter().map(|&w| f64::from(w)).sum();
                own - (total - own) / (classes - 1) as f64
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Activation;

    #[test]
    fn a_linear_model_is_most_sensitive_along_its_weights() {
        let weights = [3.0_f32, 0.0, -4.0];
        for (classes, output) in
            [(1, Output::Sigmoid { favourable: false }), (2, Output::Softmax { favourable: 1 })]
        {
            let rows = weights
                .iter()
                .flat_map(|&w| (0..classes).map(move |c| if c == 0 { w } else { -w }));
            let head = Dense {
                weights: rows.collect(),
                bias: vec![0.0; classes],
                activation: Activation::Identity,
            };
            let basis = directions(&Mlp::new(3, &[head], output).unwrap());
            let along: f64 = basis.iter().zip([0.6, 0.0, -0.8]).map(|(a, b)| a * b).sum();
            assert!((along.abs() - 1.0).abs() < 1e-12, "{basis:?}");
        }
    }

    #[test]
    fn a_network_without_weights_keeps_the_axes() {
        let zero = |inputs: usize, outputs: usize, activation| Dense {
            weights: vec![0.0; inputs * outputs],
            bias: vec![0.0; outputs],
            activation,
        };
        let layers = [zero(2, 3, Activation::Relu), zero(3, 1, Activation::Identity)];
        let network = Mlp::new(2, &layers, Output::Sigmoid { favourable: true }).unwrap();
        assert_eq!(directions(&network), [1.0, 0.0, 0.0, 1.0]);
    }
}
