//! Lipschitz bounds: the maximum change of `m` per unit of distance.
//!
//! `gamma` with `|m(x) - m(y)| <= gamma ||x - y||` for all `x`, `y` in a region. A bound is `sound`
//! if that is proved, and an `estimate` if it is only the largest observed slope. Every bound
//! carries its soundness and its region.

mod local;
mod sampled;
mod spectral;

use serde::{Deserialize, Serialize};

pub use local::local;
pub use sampled::{sampled_gradients, sampled_slopes};
pub use spectral::spectral;

use crate::model::Output;

/// A bound, or an estimate of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LipschitzBound {
    /// `gamma`, for Euclidean distances.
    pub value: f64,
    /// Where it holds.
    pub region: Region,
    /// Whether it is proved.
    pub soundness: Soundness,
}

/// Where a bound holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    /// Everywhere.
    Global,
    /// Within a Euclidean distance of the point.
    Ball {
        /// That distance.
        radius: f64,
    },
    /// Within a distance of the point in every coordinate.
    Box {
        /// That distance.
        radius: f64,
    },
}

/// The evidence for a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Soundness {
    /// The largest of finitely many slopes: not a bound.
    Estimate,
    /// A proof.
    Sound,
}

/// The largest norm of `dm/dz` over all logits `z`: 1/4 for a sigmoid; for a softmax
/// `m_f sqrt((1 - m_f)^2 + sum_{j != f} m_j^2) <= sqrt(2) m_f (1 - m_f) <= sqrt(2)/4`.
fn output_slope(output: Output) -> f64 {
    match output {
        Output::Sigmoid { .. } => 0.25,
        Output::Softmax { .. } => 0.25 * std::f64::consts::SQRT_2,
    }
}
