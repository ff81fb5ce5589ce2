//! The multilayer perceptron.

use serde::{Deserialize, Serialize};

use super::Activation;
use crate::error::{Error, Result};

/// One dense layer: `activation(x W + b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// `W`, `inputs` rows of `outputs` columns, row by row.
    pub weights: Vec<f32>,
    /// `b`, one per output.
    pub bias: Vec<f32>,
    /// What is applied to each sum.
    pub activation: Activation,
}

/// How the last layer's sums (the logits) become the probability of the favourable class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// One logit `z`; `m = 1 / (1 + exp(-z))`, or one minus that.
    Sigmoid {
        /// Whether the logit speaks for the favourable class (else against it).
        favourable: bool,
    },
    /// `k` logits; `m` is the favourable one's share, `exp(z_f) / sum_j exp(z_j)`.
    Softmax {
        /// The index of the favourable class.
        favourable: usize,
    },
}

/// A stack of dense layers that scores points.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    dim: usize,
    layers: Vec<Dense>,
    output: Output,
}

impl Mlp {
    /// A network from its layers, checked: sizes that fit, finite weights.
    pub fn new(dim: usize, layers: Vec<Dense>, output: Output) -> Result<Self> {
        if dim == 0 || layers.is_empty() {
            return Err(Error::InvalidModel("a network needs an input and a layer".into()));
        }
        Ok(Self { dim, layers, output })
    }

    /// The layers, first to last.
    #[must_use]
    pub fn layers(&self) -> &[Dense] {
        &self.layers
    }

    /// How logits become a probability.
    #[must_use]
    pub fn output(&self) -> Output {
        self.output
    }

    /// The number of coordinates of a point.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }
}
