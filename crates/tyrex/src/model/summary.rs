//! The summary of a model: its size, and a line of text.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Activation, Mlp, Output};
use crate::choice::Choice as _;

/// The summary of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ModelSummary {
    /// Layers of neurons, with gradients.
    Network {
        /// The inputs, and the width of every layer.
        sizes: Vec<usize>,
        /// The activation of every hidden layer, with its parameter if it has one.
        activations: Vec<String>,
        /// The function from the last layer to the score.
        output: Output,
        /// The number of weights and biases.
        parameters: usize,
    },
    /// Trees, without gradients.
    Trees {
        /// The inputs.
        inputs: usize,
        /// The number of trees.
        trees: usize,
        /// The nodes of all of them, leaves included.
        nodes: usize,
    },
    /// A function of unknown structure.
    Function {
        /// The inputs.
        inputs: usize,
    },
}

impl ModelSummary {
    pub(super) fn of_network(network: &Mlp) -> Self {
        let widths = network.hidden.iter().map(|layer| layer.outputs);
        Self::Network {
            sizes: [network.dim].into_iter().chain(widths).chain([network.head.classes]).collect(),
            activations: network.hidden.iter().map(|layer| activation(layer.activation)).collect(),
            output: network.output(),
            parameters: network.parameters(),
        }
    }

    /// The name of the kind: `network`, `trees` or `function`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Network { .. } => "network",
            Self::Trees { .. } => "trees",
            Self::Function { .. } => "function",
        }
    }

    /// The width of every layer, the last included; empty without layers.
    pub fn widths(&self) -> &[usize] {
        match self {
            Self::Network { sizes, .. } => &sizes[1..],
            Self::Trees { .. } | Self::Function { .. } => &[],
        }
    }

    /// The number of weights and biases that training sets; 0 if there are none.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Network { parameters, .. } => *parameters,
            Self::Trees { .. } | Self::Function { .. } => 0,
        }
    }
}

impl fmt::Display for ModelSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network { sizes, activations, output, parameters } => {
                let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                let mut names: Vec<&str> = activations.iter().map(String::as_str).collect();
                names.dedup();
                names.push(match output {
                    Output::Sigmoid { .. } => "sigmoid",
                    Output::Softmax { .. } => "softmax",
                });
                let (sizes, names) = (sizes.join("-"), names.join(" and "));
                write!(f, "network {sizes}, {names}, {parameters} parameters")
            }
            Self::Trees { inputs, trees, nodes } => {
                write!(f, "{trees} trees with {nodes} nodes over {inputs} columns, no gradients")
            }
            Self::Function { inputs } => {
                write!(f, "a function of {inputs} columns, no gradients")
            }
        }
    }
}

fn activation(activation: Activation) -> String {
    let name = activation.word();
    match activation {
        Activation::LeakyRelu { slope: parameter } | Activation::Elu { alpha: parameter } => {
            format!("{name} {parameter}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Dense, Model as _};

    #[test]
    fn a_network_is_told_in_numbers_and_words() {
        let layer = |inputs: usize, outputs: usize, activation| Dense {
            weights: vec![0.5; inputs * outputs],
            bias: vec![0.0; outputs],
            activation,
        };
        let layers = [
            layer(3, 4, Activation::Elu { alpha: 1.0 }),
            layer(4, 2, Activation::LeakyRelu { slope: 0.01 }),
            layer(2, 1, Activation::Identity),
        ];
        let network = Mlp::new(3, &layers, Output::Sigmoid { favourable: true }).unwrap();
        let summary = network.summary();
        assert_eq!(
            (summary.kind(), summary.widths(), summary.parameters()),
            ("network", &[4, 2, 1][..], 29)
        );
        assert_eq!(
            summary.to_string(),
            "network 3-4-2-1, elu 1 and leaky-relu 0.01 and sigmoid, 29 parameters"
        );
        let document = serde_json::to_value(&summary).unwrap();
        assert_eq!(document["kind"], summary.kind());
        assert_eq!(serde_json::from_value::<ModelSummary>(document).unwrap(), summary);
    }
}
