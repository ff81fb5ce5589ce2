//! Retraining with other hyperparameters.

use std::borrow::Cow;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member, Training};
use crate::error::{Error, Result};
use crate::model::TrainParams;
use crate::seed::{Rng, Seed};

/// Epochs, batch size and learning rate multiplied by `f^u` with `u` uniform in `[-1, 1]`, one
/// draw for each, and new weights. So with the factor 2 a value lies between half and twice the
/// base's, and is as likely to be lower as to be higher.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `epochs` | 2 | the largest factor of the number of epochs | 1 (as the base) to 100 |
/// | `batch` | 2 | of the rows per step | 1 to 100 |
/// | `learning-rate` | 2 | of the learning rate | 1 to 100 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hyperparameters {
    /// The largest factor of the number of epochs.
    pub epochs: f64,
    /// The largest factor of the rows per step.
    pub batch: f64,
    /// The largest factor of the learning rate.
    pub learning_rate: f64,
}

/// A larger factor gives an unrelated training, which may take very long.
const LARGEST_FACTOR: f64 = 100.0;

impl Default for Hyperparameters {
    fn default() -> Self {
        Self { epochs: 2.0, batch: 2.0, learning_rate: 2.0 }
    }
}

impl Change for Hyperparameters {
    fn description(&self) -> String {
        format!(
            "trained again with epochs, batch size and learning rate within factors of {}, {} and \
             {} of the base's, from new weights",
            self.epochs, self.batch, self.learning_rate
        )
    }

    fn check(&self, _: &Base<'_>) -> Result<()> {
        let factors =
            [("epochs", self.epochs), ("batch", self.batch), ("learning-rate", self.learning_rate)];
        for (name, factor) in factors {
            if !(1.0..=LARGEST_FACTOR).contains(&factor) {
                let expected = format!("a factor from 1 to {LARGEST_FACTOR}");
                return Err(Error::param(name, factor, expected));
            }
        }
        Ok(())
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let mut rng = seed.derive("hyperparameters").rng();
        let mut params = base.params.clone();
        params.epochs = whole(params.epochs as f64 * drawn(self.epochs, &mut rng));
        params.batch = whole(params.batch as f64 * drawn(self.batch, &mut rng));
        params.learning_rate *= drawn(self.learning_rate, &mut rng);
        Ok(Training { params: Cow::Owned(params), ..base.again() }.into())
    }

    fn epochs(&self, params: &TrainParams) -> f64 {
        // The mean of f^u.
        let mean = match libm::log(self.epochs) {
            0.0 => 1.0,
            log => (self.epochs - 1.0 / self.epochs) / (2.0 * log),
        };
        params.epochs as f64 * mean
    }
}

/// `f^u`
fn drawn(factor: f64, rng: &mut Rng) -> f64 {
    libm::pow(factor, rng.random_range(-1.0..=1.0))
}

/// The nearest whole number of at least 1.
fn whole(value: f64) -> usize {
    (value.round() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::Sample;

    #[test]
    fn values_are_log_uniform_around_the_bases() {
        let sample = Sample::new(3);
        let change = Hyperparameters { epochs: 2.0, batch: 4.0, learning_rate: 8.0 };
        let draws = 4000;
        let (mut rates, mut epochs) = ([0_u32; 4], 0);
        let (mut smallest, mut largest) = (usize::MAX, 0);
        for number in 0..draws {
            let training = sample.training(&change, number);
            let params = training.params.into_owned();
            assert!((25..=100).contains(&params.epochs), "{}", params.epochs);
            smallest = smallest.min(params.batch);
            largest = largest.max(params.batch);
            // In quarters of the logarithm.
            let place = (params.learning_rate / 1e-3).ln() / 8_f64.ln();
            rates[((place + 1.0) * 2.0) as usize] += 1;
            epochs += params.epochs;
            assert_eq!(training.rows, sample.rows);
            let usual = TrainParams {
                epochs: params.epochs,
                batch: params.batch,
                learning_rate: params.learning_rate,
                ..sample.params.clone()
            };
            assert_eq!(params, usual);
        }
        // 1000 expected, with a standard deviation of 27.
        assert!(rates.iter().all(|&times| times.abs_diff(1000) < 140), "{rates:?}");
        assert!((8..=9).contains(&smallest) && (123..=128).contains(&largest));
        // The standard error of the mean is 0.34.
        let mean = epochs as f64 / draws as f64;
        assert!((mean - change.epochs(&sample.params)).abs() < 1.7, "{mean}");
    }

    #[test]
    fn a_factor_of_one_changes_nothing() {
        let sample = Sample::new(3);
        let change = Hyperparameters { epochs: 1.0, batch: 1.0, learning_rate: 1.0 };
        for number in 0..20 {
            assert_eq!(*sample.training(&change, number).params, sample.params);
        }
        assert_eq!(change.epochs(&sample.params), 50.0);
    }

    #[test]
    fn what_is_counted_is_at_least_one() {
        let mut sample = Sample::new(3);
        (sample.params.epochs, sample.params.batch) = (1, 1);
        let change = Hyperparameters { epochs: 100.0, batch: 100.0, learning_rate: 1.0 };
        for number in 0..200 {
            let params = sample.training(&change, number).params;
            assert!(params.epochs >= 1 && params.batch >= 1);
        }
    }

    #[test]
    fn factors_out_of_range_are_refused() {
        let usual = Hyperparameters::default();
        for (change, expected) in [
            (Hyperparameters { epochs: 0.5, ..usual }, "parameter `epochs` is 0.5"),
            (Hyperparameters { batch: 101.0, ..usual }, "parameter `batch` is 101"),
            (Hyperparameters { learning_rate: -2.0, ..usual }, "parameter `learning-rate` is -2"),
            (Hyperparameters { epochs: f64::NAN, ..usual }, "parameter `epochs` is NaN"),
            (Hyperparameters { batch: f64::INFINITY, ..usual }, "parameter `batch` is inf"),
        ] {
            let error = Sample::new(3).check(&change).unwrap_err().to_string();
            assert_eq!(error, format!("{expected}, expected a factor from 1 to 100"));
        }
    }
}
