//! Measures: how sure is this point, looking at its neighbourhood?
//!
//! With `m_0 = m(x)` and `m_i = m(x_i)` for the neighbours `x_i = x + n_i`:
//!
//! | measure | formula |
//! |---|---|
//! | prediction | `m_0` |
//! | mean | `1/k sum m_i` |
//! | relaxed stability | `1/k sum (m_i - abs(m_0 - m_i)) = m_0 - 2/k sum max(0, m_0 - m_i)` |
//! | stability | `1/k sum (m_i - gamma norm(n_i))` |
//! | mean minus deviation | `mean - sqrt(1/k sum (m_i - mean)^2)` |
//! | path integral | `1/s sum_{j=1..s} m(j/s x)` |
//!
//! The first five are functions of `m_0 .. m_k`, so their gradients are weighted sums of
//! gradients of the model, `c_0 dm(x) + sum c_i dm(x_i)` with `c_i` the derivative of the
//! formula with respect to `m_i`. One piece of code ([`Gauge`]) serves them all. Only the
//! stability with [`Gamma::SampledGradients`] looks at more than scores.

mod formula;
mod gauge;

use serde::{Deserialize, Serialize};

pub use crate::neighbourhood::{Neighbourhood, Sampling};
pub(crate) use gauge::{DetachedGauge, Look};
pub use gauge::{Gauge, GaugeRoom};

/// Which measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Measure {
    /// `m(x)`: the ablation's first baseline.
    Prediction,
    /// The mean score of the neighbours: the ablation's second baseline.
    Mean,
    /// The paper's `R^`, what T-Rex climbs.
    RelaxedStability,
    /// The paper's `R`, what its theorem speaks of.
    Stability {
        /// The Lipschitz constant in it.
        gamma: Gamma,
    },
    /// The measure of `RobX`.
    MeanMinusDeviation,
    /// What Stable Neighbour Search climbs: the score along the way from the origin.
    PathIntegral {
        /// The number of steps `s`.
        steps: usize,
    },
}

/// The Lipschitz constant in the stability `R`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Gamma {
    /// A number.
    Given(f64),
    /// The product of the layers' spectral norms, a bound that is proved and holds
    /// everywhere. Bounds around the point would be tighter, but they move with it; this
    /// one is a constant of the model, as the paper's theorem has it.
    Sound,
    /// The paper's estimate, `max_i abs(m_0 - m_i) / norm(n_i)`. It is not a bound.
    SampledSlopes,
    /// `max_i norm(dm(x_i))`, over the neighbours and the point. It is not a bound either,
    /// but sees what slopes between points average out.
    SampledGradients,
}

/// What a measure says of one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// `m(x)`
    pub score: f32,
    /// The measure's value.
    pub value: f64,
}
