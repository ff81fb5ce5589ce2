//! Trained again with other settings of the training.

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
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hyperparameters {
    /// The largest factor of the number of epochs.
    pub epochs: f64,
    /// The largest factor of the rows per step.
    pub batch: f64,
    /// The largest factor of the learning rate.
    pub learning_rate: f64,
}

/// Beyond this a training is another one altogether, and may take for ever.
const LARGEST_FACTOR: f64 = 100.0;

impl Default for Hyperparameters {
    fn default() -> Self {
        Self { epochs: 2.0, batch: 2.0, learning_rate: 2.0 }
    }
}

impl Change for Hyperparameters {
    fn name(&self) -> &'static str {
        "hyperparameters"
    }

    fn description(&self) -> String {
        format!(
            "trained again with epochs within a factor of {}, batches of {} and a learning rate \
             of {} of the base's, from new weights",
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
        Ok(Member::Trained(Training { params: Cow::Owned(params), ..base.again() }))
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

/// The nearest number that can be counted to.
fn whole(value: f64) -> usize {
    (value.round() as usize).max(1)
}
