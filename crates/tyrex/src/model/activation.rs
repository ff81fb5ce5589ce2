//! Activation functions. Their values and slopes are computed in the kernel module.

use serde::{Deserialize, Serialize};

use crate::choice::Choice;

/// The activation function of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `z`
    Identity,
    /// `max(0, z)`
    Relu,
    /// `z` if positive, else `slope * z`
    LeakyRelu {
        /// The slope on the negative side.
        slope: f32,
    },
    /// `z` if positive, else `alpha * (exp(z) - 1)`
    Elu {
        /// Minus the limit on the negative side.
        alpha: f32,
    },
    /// `z * Phi(z)`, exact, with the normal distribution function `Phi`
    Gelu,
    /// `z/2 * (1 + tanh(sqrt(2/pi) * (z + 0.044715 z^3)))`
    GeluTanh,
    /// `tanh(z)`
    Tanh,
    /// `1 / (1 + exp(-z))`
    Sigmoid,
    /// `ln(1 + exp(z))`
    Softplus,
    /// `z / (1 + exp(-z))`
    Silu,
}

impl Activation {
    /// One of each, with default parameters.
    pub const ALL: [Self; 10] = [
        Self::Identity,
        Self::Relu,
        Self::LeakyRelu { slope: 0.01 },
        Self::Elu { alpha: 1.0 },
        Self::Gelu,
        Self::GeluTanh,
        Self::Tanh,
        Self::Sigmoid,
        Self::Softplus,
        Self::Silu,
    ];

    /// The problem with the parameters, if any.
    pub(crate) fn problem(self) -> Option<String> {
        let parameter = match self {
            Self::LeakyRelu { slope } => slope,
            Self::Elu { alpha } => alpha,
            _ => 0.0,
        };
        (!parameter.is_finite()).then(|| format!("{self:?} has a parameter that is not finite"))
    }
}

/// Those of hidden layers, with default parameters.
impl Choice for Activation {
    const ALL: &'static [Self] = Self::ALL.split_at(1).1;

    fn word(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Relu => "relu",
            Self::LeakyRelu { .. } => "leaky-relu",
            Self::Elu { .. } => "elu",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu-tanh",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::Softplus => "softplus",
            Self::Silu => "silu",
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Identity => "z",
            Self::Relu => "max(0, z)",
            Self::LeakyRelu { .. } => "z, or 0.01 z where that is negative",
            Self::Elu { .. } => "z, or exp(z) - 1 where that is negative",
            Self::Gelu => "z times the normal distribution function",
            Self::GeluTanh => "The same, approximated with tanh",
            Self::Tanh => "tanh(z)",
            Self::Sigmoid => "1 / (1 + exp(-z))",
            Self::Softplus => "ln(1 + exp(z))",
            Self::Silu => "z / (1 + exp(-z))",
        }
    }
}
