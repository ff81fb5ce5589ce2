//! Measures: how stable the score is in the neighbourhood of a point.
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
//! The first five are functions of `m_0 .. m_k`, so their gradients are weighted sums of gradients
//! of the model, `c_0 dm(x) + sum c_i dm(x_i)` with `c_i` the derivative of the formula with
//! respect to `m_i`. [`Gauge`] implements all of them. Only the stability with
//! [`Gamma::SampledGradients`] uses more than scores.

mod along;
mod formula;
mod gauge;
mod mean;
mod mean_minus_deviation;
mod path_integral;
mod prediction;
mod relaxed_stability;
mod stability;

use serde::{Deserialize, Serialize};

use crate::catalogue::catalogue;
use crate::error::Result;
use crate::model::Model;
pub use crate::neighbourhood::{Neighbourhood, Sampling};
use gauge::Evaluation;
pub(crate) use gauge::{DetachedGauge, NeighbourReadings};
pub use gauge::{Gauge, GaugeScratch};
pub use stability::Gamma;

catalogue! {
    /// A measure. Each measure has a file and a line here.
    #[derive(Copy)]
    Measure tagged "name" by Kind {
        prediction::Prediction,
        mean::Mean,
        relaxed_stability::RelaxedStability,
        stability::Stability,
        mean_minus_deviation::MeanMinusDeviation,
        path_integral::PathIntegral,
    }
}

/// The description of a measure, implemented in its own file.
trait Kind {
    /// The letters for it in tables.
    fn symbol(&self) -> &'static str;

    /// How it is computed for a model. Parameters out of range are an error.
    fn way<'a>(&self, model: &'a dyn Model) -> Result<Evaluation<'a>>;
}

impl Measure {
    /// The letters for it in tables.
    pub fn symbol(&self) -> &'static str {
        self.kind().symbol()
    }
}

/// The value of a measure at one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// `m(x)`
    pub score: f32,
    /// The measure's value.
    pub value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and parameters occur in files of users: this is the form of the first version.
    #[test]
    fn documents_are_pinned() {
        let text = |measure: &Measure| serde_json::to_string(measure).unwrap();
        let all: Vec<String> = Measure::all().iter().map(text).collect();
        assert_eq!(
            all,
            [
                r#"{"name":"prediction"}"#,
                r#"{"name":"mean"}"#,
                r#"{"name":"relaxed-stability"}"#,
                r#"{"name":"stability","gamma":"sampled-slopes"}"#,
                r#"{"name":"mean-minus-deviation"}"#,
                r#"{"name":"path-integral","steps":20}"#,
            ]
        );
        let given = Measure::from(Stability { gamma: Gamma::Given(0.5) });
        assert_eq!(text(&given), r#"{"name":"stability","gamma":{"given":0.5}}"#);
        for measure in Measure::all().into_iter().chain([given]) {
            let written = serde_json::to_value(measure).unwrap();
            assert_eq!(written["name"], measure.name());
            assert_eq!(serde_json::from_value::<Measure>(written).unwrap(), measure);
        }
        for wrong in [r#"{"name":"mean","k":1}"#, r#"{"name":"stability"}"#, r#"{"name":"R"}"#] {
            assert!(serde_json::from_str::<Measure>(wrong).is_err(), "{wrong}");
        }
    }
}
