//! Dropout at inference: hidden units are left out, without training.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member};
use crate::error::{Error, Result};
use crate::model::{Mlp, Model, TrainParams};
use crate::seed::Seed;

/// `h_j d_j / (1 - rate)` in the place of every hidden value `h_j` of the base, where `d_j` is 0
/// with probability `rate` and 1 otherwise.
///
/// The units of a member are drawn once, so a member is a network: the factor of a unit is
/// multiplied into the weights that leave it. In the literature members whose training loss rises
/// by more than a slack are dropped; here all are kept, since a smaller `rate` has the same
/// purpose.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `rate` | 0.1 | the probability that a hidden unit is left out | between 0 and 1 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Dropout {
    /// The probability that a hidden unit is left out.
    pub rate: f64,
}

impl Default for Dropout {
    fn default() -> Self {
        Self { rate: 0.1 }
    }
}

impl Change for Dropout {
    fn description(&self) -> String {
        format!("each hidden unit left out with probability {}, without training", self.rate)
    }

    fn check(&self, base: &Base<'_>) -> Result<()> {
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(Error::param("rate", self.rate, "a number between 0 and 1"));
        }
        if base.network.hidden.is_empty() {
            let expected = "a network with a hidden layer: dropout leaves out hidden units";
            return Err(Error::param("model", "a linear model", expected));
        }
        Ok(())
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let mut rng = seed.derive("dropout").rng();
        let kept = (1.0 / (1.0 - self.rate)) as f32;
        let mut layers = base.network.layers();
        for layer in &mut layers[1..] {
            for unit in layer.weights.chunks_exact_mut(layer.bias.len()) {
                let factor = if rng.random_bool(self.rate) { 0.0 } else { kept };
                unit.iter_mut().for_each(|weight| *weight *= factor);
            }
        }
        Mlp::new(base.network.dim(), &layers, base.network.output()).map(Member::Made)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn epochs(&self, _: &TrainParams) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::{Sample, made};

    #[test]
    fn each_unit_is_left_out_as_often_as_stated_and_the_others_are_scaled() {
        let sample = Sample::with_layers(&[5, 4, 3]);
        let before = sample.network.layers();
        let mut left_out = vec![vec![0_u32; 5], vec![0; 4], vec![0; 3]];
        for number in 0..4000 {
            let after = made(&sample, &Dropout { rate: 0.2 }, number).layers();
            assert_eq!(after[0], before[0]);
            for (layer, times) in left_out.iter_mut().enumerate() {
                let (old, new) = (&before[layer + 1], &after[layer + 1]);
                assert_eq!(new.bias, old.bias);
                let outputs = old.bias.len();
                let units =
                    old.weights.chunks_exact(outputs).zip(new.weights.chunks_exact(outputs));
                for ((old, new), times) in units.zip(times) {
                    let is_out = new.iter().all(|&weight| weight == 0.0);
                    *times += u32::from(is_out);
                    let factor = if is_out { 0.0 } else { 1.25 };
                    for (old, new) in old.iter().zip(new) {
                        assert_eq!(*new, old * factor);
                    }
                }
            }
        }
        // 800 expected, with a standard deviation of 25.
        assert!(left_out.iter().flatten().all(|times| times.abs_diff(800) < 130), "{left_out:?}");
    }

    #[test]
    fn rates_that_are_none_and_linear_models_are_refused() {
        for rate in [0.0, 1.0, -0.1, f64::NAN] {
            let sample = Sample::with_layers(&[2]);
            let error = sample.check(&Dropout { rate }).unwrap_err().to_string();
            let expected = format!("parameter `rate` is {rate}, expected a number between 0 and 1");
            assert_eq!(error, expected);
        }
        let error = Sample::new(3).check(&Dropout::default()).unwrap_err().to_string();
        assert!(error.contains("a network with a hidden layer"), "{error}");
    }
}
