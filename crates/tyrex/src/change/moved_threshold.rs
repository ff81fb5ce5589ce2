//! A moved acceptance threshold, without training.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member};
use crate::error::{Error, Result};
use crate::model::{Mlp, Model, Output, TrainParams};
use crate::seed::Seed;

/// Acceptance where `m(x) >= t` in the place of `m(x) >= 0.5`, with `t` uniform in `[from, to]`.
///
/// A member is a network `M` with the usual threshold: `logit(M) = logit(m) - logit(t)`, so
/// `M(x) >= 0.5` exactly where `m(x) >= t`. The logit of the favourable class is moved by the bias
/// of the last layer, for a sigmoid and for a softmax.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `from` | 0.4 | the lowest threshold | above 0, at most `to` |
/// | `to` | 0.6 | the highest threshold | at least `from`, below 1 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MovedThreshold {
    /// The lowest threshold.
    pub from: f64,
    /// The highest threshold.
    pub to: f64,
}

impl Default for MovedThreshold {
    fn default() -> Self {
        Self { from: 0.4, to: 0.6 }
    }
}

impl Change for MovedThreshold {
    fn description(&self) -> String {
        let Self { from, to } = self;
        if from == to {
            return format!("the acceptance threshold moved to {to}, without training");
        }
        format!("the acceptance threshold moved to one between {from} and {to}, without training")
    }

    fn check(&self, _: &Base<'_>) -> Result<()> {
        let Self { from, to } = *self;
        if !(from > 0.0 && from < 1.0) {
            return Err(Error::param("from", from, "a number between 0 and 1"));
        }
        if !(to >= from && to < 1.0) {
            let expected = format!("a number of at least `from`, {from}, and below 1");
            return Err(Error::param("to", to, expected));
        }
        Ok(())
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let mut rng = seed.derive("moved-threshold").rng();
        moved(base.network, rng.random_range(self.from..=self.to)).map(Member::Made)
    }

    fn epochs(&self, _: &TrainParams) -> f64 {
        0.0
    }
}

/// The network that scores at least 0.5 where the given one scores at least `threshold`.
fn moved(network: &Mlp, threshold: f64) -> Result<Mlp> {
    let shift = libm::log(threshold) - libm::log1p(-threshold);
    let (class, shift) = match network.output() {
        Output::Sigmoid { favourable: true } => (0, -shift),
        Output::Sigmoid { favourable: false } => (0, shift),
        Output::Softmax { favourable } => (favourable, -shift),
    };
    let mut layers = network.layers();
    if let Some(last) = layers.last_mut() {
        last.bias[class] = (f64::from(last.bias[class]) + shift) as f32;
    }
    Mlp::new(network.dim(), &layers, network.output())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::{Sample, made};
    use crate::model::{Activation, Dense};
    use crate::points::Points;
    use proptest::prelude::*;

    #[test]
    fn the_threshold_is_uniform_in_its_range() {
        let sample = Sample::new(3);
        let change = MovedThreshold { from: 0.3, to: 0.8 };
        let point = Points::from_rows(1, vec![0.0]).unwrap();
        let mut tenths = [0_u32; 10];
        for number in 0..10_000 {
            // The base scores 0.5 here, so the member scores 1 - t.
            let threshold = 1.0 - made(&sample, &change, number).score(&point)[0];
            assert!((0.3..=0.8).contains(&threshold), "{threshold}");
            tenths[(((threshold - 0.3) * 20.0) as usize).min(9)] += 1;
        }
        // 1000 expected, with a standard deviation of 30.
        assert!(tenths.iter().all(|&times| times.abs_diff(1000) < 150), "{tenths:?}");
    }

    #[test]
    fn one_threshold_may_be_given_and_ranges_that_are_none_are_refused() {
        let sample = Sample::new(3);
        let fixed = MovedThreshold { from: 0.7, to: 0.7 };
        sample.check(&fixed).unwrap();
        assert_eq!(made(&sample, &fixed, 0), made(&sample, &fixed, 1));
        for (from, to, name) in [
            (0.0, 0.5, "from"),
            (1.0, 1.0, "from"),
            (f64::NAN, 0.5, "from"),
            (0.5, 0.4, "to"),
            (0.5, 1.0, "to"),
            (0.5, f64::NAN, "to"),
        ] {
            let error = sample.check(&MovedThreshold { from, to }).unwrap_err().to_string();
            assert!(error.starts_with(&format!("parameter `{name}` is ")), "{error}");
        }
    }

    proptest! {
        /// The odds of a member are those of the base, divided by the odds of the threshold.
        #[test]
        fn a_member_accepts_where_the_base_reaches_the_threshold(
            weights in prop::collection::vec(-2.0_f32..2.0, 6),
            bias in prop::collection::vec(-2.0_f32..2.0, 3),
            threshold in 0.02..0.98_f64,
            output in prop_oneof![
                prop::bool::ANY.prop_map(|favourable| (Output::Sigmoid { favourable }, 1)),
                (0..3_usize).prop_map(|favourable| (Output::Softmax { favourable }, 3)),
                (0..2_usize).prop_map(|favourable| (Output::Softmax { favourable }, 2)),
            ],
            x in prop::collection::vec(-2.0_f32..2.0, 2),
        ) {
            let (output, classes) = output;
            let layer = Dense {
                weights: weights[..2 * classes].to_vec(),
                bias: bias[..classes].to_vec(),
                activation: Activation::Identity,
            };
            let network = Mlp::new(2, &[layer], output).unwrap();
            let point = Points::from_rows(2, x).unwrap();
            let before = f64::from(network.score(&point)[0]);
            let after = f64::from(moved(&network, threshold).unwrap().score(&point)[0]);
            let odds = before / (1.0 - before) * (1.0 - threshold) / threshold;
            prop_assert!((after - odds / (1.0 + odds)).abs() < 1e-5, "{} {}", before, after);
            if (before - threshold).abs() > 1e-5 {
                prop_assert_eq!(after >= 0.5, before >= threshold);
            }
        }
    }
}
