//! The fingerprint of a model.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::trees::{Aggregate, Comparison, Substitute, Transform, TreeEnsemble, TreeNode};
use super::{Activation, Examples, Mlp, Model, Output};
use crate::points::Points;

/// SHA-256 of a model's architecture and weights, in hexadecimal.
///
/// Two models have the same fingerprint if and only if they have the same architecture and their
/// weights have the same bits. The fingerprint of a black box is computed from its scores, that of
/// training rows from their points and labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The fingerprint of a model of which only the scores of some points are known.
    pub(crate) fn of_scores(points: &Points, scores: &[f32]) -> Self {
        let mut bytes = Canonical::new("tyrex scores 1");
        bytes.size(points.dim());
        bytes.numbers(points.as_slice());
        bytes.numbers(scores);
        bytes.finish()
    }

    /// The fingerprint of texts, in their order; an absent one is empty.
    pub(crate) fn of_texts<const N: usize>(texts: [&Option<String>; N]) -> Self {
        let mut bytes = Canonical::new("tyrex texts 1");
        for text in texts {
            let text = text.as_deref().unwrap_or_default();
            bytes.size(text.len());
            bytes.0.update(text);
        }
        bytes.finish()
    }

    /// The fingerprint of a model that takes other points: its own, and the two encodings.
    pub(crate) fn of_recoded(model: &Self, encodings: [&impl Serialize; 2]) -> Self {
        let mut bytes = Canonical::new("tyrex recoded 1");
        bytes.0.update(model.as_str());
        for encoding in encodings {
            let text = serde_json::to_string(encoding).unwrap_or_default();
            bytes.size(text.len());
            bytes.0.update(text);
        }
        bytes.finish()
    }

    /// The fingerprint of training rows: their points and labels, in their order.
    pub(crate) fn of_examples(examples: &Examples<'_>) -> Self {
        let Examples { points, labels, rows, .. } = *examples;
        let mut bytes = Canonical::new("tyrex examples 1");
        let mut add = |row: usize| {
            bytes.numbers(points.row(row));
            bytes.size(labels[row] as usize);
        };
        match rows {
            Some(rows) => rows.iter().copied().for_each(&mut add),
            None => (0..points.len()).for_each(&mut add),
        }
        bytes.finish()
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The canonical bytes of a model, hashed as they come: sizes as little-endian u64 and numbers
/// by their bits, so that nothing depends on a serialiser.
struct Canonical(Sha256);

impl Canonical {
    fn new(kind: &str) -> Self {
        Self(Sha256::new().chain_update(kind))
    }

    fn size(&mut self, size: usize) {
        self.0.update((size as u64).to_le_bytes());
    }

    fn number(&mut self, number: f32) {
        self.0.update(number.to_bits().to_le_bytes());
    }

    fn numbers(&mut self, numbers: &[f32]) {
        self.size(numbers.len());
        for &number in numbers {
            self.number(number);
        }
    }

    fn finish(self) -> Fingerprint {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
        let bytes = self.0.finalize();
        Fingerprint(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
    }
}

impl Mlp {
    /// The network's fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut bytes = Canonical::new("tyrex mlp 1");
        bytes.size(self.dim());
        let layers = self.layers();
        bytes.size(layers.len());
        for layer in &layers {
            bytes.numbers(&layer.weights);
            bytes.numbers(&layer.bias);
            let (code, parameter) = match layer.activation {
                Activation::Identity => (0, 0.0),
                Activation::Relu => (1, 0.0),
                Activation::LeakyRelu { slope } => (2, slope),
                Activation::Elu { alpha } => (3, alpha),
                Activation::Gelu => (4, 0.0),
                Activation::GeluTanh => (5, 0.0),
                Activation::Tanh => (6, 0.0),
                Activation::Sigmoid => (7, 0.0),
                Activation::Softplus => (8, 0.0),
                Activation::Silu => (9, 0.0),
            };
            bytes.size(code);
            bytes.number(parameter);
        }
        let (code, class) = match self.output() {
            Output::Sigmoid { favourable } => (0, usize::from(favourable)),
            Output::Softmax { favourable } => (1, favourable),
        };
        bytes.size(code);
        bytes.size(class);
        bytes.finish()
    }
}

impl TreeEnsemble {
    /// The ensemble's fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut bytes = Canonical::new("tyrex trees 1");
        bytes.size(self.dim());
        let trees = self.as_given();
        bytes.size(trees.len());
        for tree in &trees {
            bytes.size(tree.len());
            for node in tree {
                match node {
                    TreeNode::Leaf { weights } => {
                        bytes.size(0);
                        bytes.size(weights.len());
                        for &(output, weight) in weights {
                            bytes.size(output);
                            bytes.number(weight);
                        }
                    }
                    TreeNode::Branch { feature, comparison, threshold, missing, yes, no } => {
                        bytes.size(match comparison {
                            Comparison::LessOrEqual => 1,
                            Comparison::Less => 2,
                            Comparison::GreaterOrEqual => 3,
                            Comparison::Greater => 4,
                            Comparison::Equal => 5,
                            Comparison::NotEqual => 6,
                        });
                        bytes.size(*feature);
                        bytes.number(*threshold);
                        bytes.size(usize::from(*missing));
                        bytes.size(*yes);
                        bytes.size(*no);
                    }
                    TreeNode::Member { feature, values, missing, yes, no } => {
                        bytes.size(7);
                        bytes.size(*feature);
                        bytes.numbers(values);
                        bytes.size(usize::from(*missing));
                        bytes.size(*yes);
                        bytes.size(*no);
                    }
                }
            }
        }
        bytes.size(match self.aggregate() {
            Aggregate::Sum => 0,
            Aggregate::Average => 1,
            Aggregate::Minimum => 2,
            Aggregate::Maximum => 3,
        });
        bytes.numbers(self.base());
        let (code, class) = match self.transform() {
            Transform::Identity => (0, 0),
            Transform::Logistic => (1, 0),
            Transform::Softmax { favourable } => (2, favourable),
        };
        bytes.size(code);
        bytes.size(class);
        for &Substitute { column, indicator, value } in self.substitutes() {
            bytes.size(column);
            bytes.size(indicator);
            bytes.number(value);
        }
        bytes.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dense;

    fn network(weight: f32, activation: Activation, output: Output) -> Mlp {
        let classes = if matches!(output, Output::Softmax { .. }) { 2 } else { 1 };
        let first = Dense { weights: vec![weight, 2.0], bias: vec![0.5], activation };
        let last = Dense {
            weights: vec![1.0; classes],
            bias: vec![0.0; classes],
            activation: Activation::Identity,
        };
        Mlp::new(2, &[first, last], output).unwrap()
    }

    #[test]
    fn every_part_of_a_network_counts() {
        let plain = Output::Sigmoid { favourable: true };
        let prints = [
            network(1.0, Activation::Identity, plain),
            network(-1.0, Activation::Identity, plain),
            network(1.0 + f32::EPSILON, Activation::Identity, plain),
            network(1.0, Activation::Relu, plain),
            network(1.0, Activation::LeakyRelu { slope: 0.1 }, plain),
            network(1.0, Activation::LeakyRelu { slope: 0.2 }, plain),
            network(1.0, Activation::Identity, Output::Sigmoid { favourable: false }),
            network(1.0, Activation::Identity, Output::Softmax { favourable: 0 }),
            network(1.0, Activation::Identity, Output::Softmax { favourable: 1 }),
        ]
        .map(|m| m.fingerprint());
        for (i, a) in prints.iter().enumerate() {
            assert_eq!(a.as_str().len(), 64);
            assert!(prints[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn the_canonical_form_is_pinned() {
        // Recorded from this code: certificates and ledgers contain fingerprints.
        let network = network(1.0, Activation::Tanh, Output::Sigmoid { favourable: true });
        assert_eq!(
            network.fingerprint().as_str(),
            "8c486010495d0181901a7094f6c8c7edf94843142a613b59c886e34fb7cf482d"
        );
        let leaf = TreeNode::Leaf { weights: vec![(0, 0.25)] };
        let trees = [vec![leaf]];
        let ensemble =
            TreeEnsemble::new(1, &trees, Aggregate::Sum, vec![0.0], Transform::Identity).unwrap();
        assert_eq!(
            ensemble.fingerprint().as_str(),
            "2b200682cf93fff5c09ee878ad237ae09471e4155b81e6558306229c2118d205"
        );
    }
}
