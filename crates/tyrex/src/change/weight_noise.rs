//! Random noise on the weights, without training.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member};
use crate::error::{Error, Result};
use crate::model::{Mlp, Model, TrainParams};
use crate::seed::{Rng, Seed};

/// `w + u` with `u` uniform in `[-delta, delta]`, for every weight and bias `w` of the base.
///
/// Every member lies in the box of a certificate's interval tier: a claim certified at `delta`
/// holds for all of them.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `delta` | 0.01 | the maximum change of a weight or bias | positive |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WeightNoise {
    /// The maximum change of a weight or bias.
    pub delta: f64,
}

impl Default for WeightNoise {
    fn default() -> Self {
        Self { delta: 0.01 }
    }
}

impl Change for WeightNoise {
    fn description(&self) -> String {
        format!("every weight and bias moved by at most {}, without training", self.delta)
    }

    fn check(&self, _: &Base<'_>) -> Result<()> {
        // Twice as much must be a number too, in single precision.
        if self.delta > 0.0 && self.delta <= f64::from(f32::MAX) / 4.0 {
            return Ok(());
        }
        Err(Error::param("delta", self.delta, "a positive number"))
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let mut rng = seed.derive("weight-noise").rng();
        let mut layers = base.network.layers();
        for layer in &mut layers {
            for weight in layer.weights.iter_mut().chain(&mut layer.bias) {
                *weight = moved(*weight, self.delta, &mut rng);
            }
        }
        Mlp::new(base.network.dim(), &layers, base.network.output()).map(Member::Made)
    }

    fn epochs(&self, _: &TrainParams) -> f64 {
        0.0
    }
}

/// A number within `delta` of `weight`, after rounding too.
fn moved(weight: f32, delta: f64, rng: &mut Rng) -> f32 {
    let exact = f64::from(weight) + rng.random_range(-delta..=delta);
    let rounded = exact as f32;
    let moved = f64::from(rounded) - f64::from(weight);
    if moved > delta {
        rounded.next_down()
    } else if moved < -delta {
        rounded.next_up()
    } else {
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::Sample;
    use proptest::prelude::*;

    #[test]
    fn the_noise_is_uniform() {
        let mut rng = Seed(0).rng();
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            let noise = moved(0.5, 0.25, &mut rng) - 0.5;
            tenths[((noise + 0.25) * 20.0) as usize] += 1;
        }
        // 1000 expected, with a standard deviation of 30.
        assert!(tenths.iter().all(|&times| times.abs_diff(1000) < 150), "{tenths:?}");
    }

    #[test]
    fn distances_that_are_none_are_refused() {
        for (delta, words) in
            [(0.0, "0"), (-0.1, "-0.1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (1e39, "1e39")]
        {
            let error = Sample::new(3).check(&WeightNoise { delta }).unwrap_err().to_string();
            let expected = format!("parameter `delta` is {words}, expected a positive number");
            assert_eq!(error, expected);
        }
    }

    proptest! {
        /// In exact arithmetic: differences of single numbers are exact in double precision
        /// for all but absurdly different sizes.
        #[test]
        fn nothing_moves_further_than_delta(
            weight in -100.0_f32..100.0,
            delta in prop_oneof![1e-12..1e-6, 1e-6..1e-2, 1e-2..10.0_f64],
            seed: u64,
        ) {
            let after = moved(weight, delta, &mut Seed(seed).rng());
            prop_assert!((f64::from(after) - f64::from(weight)).abs() <= delta);
        }
    }
}
