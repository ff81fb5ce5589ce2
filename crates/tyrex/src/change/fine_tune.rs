//! Fine-tuning: training continues from the base's weights, on new rows.

use std::borrow::Cow;

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member, Training};
use crate::error::{Error, Result};
use crate::model::train::OutputLayer;
use crate::model::{Mlp, Model, Output, TrainParams};
use crate::seed::Seed;

/// Training continues from the base's weights, after a random share of the rows is replaced by rows
/// that the base has not seen: the model is updated instead of rebuilt.
///
/// The new rows are drawn without replacement from those of [`Plan::fresh`](super::Plan::fresh);
/// there must be enough of them. Adam's averages are reset.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `fraction` | 0.1 | share of the rows that are replaced, at least one | above 0, at most 1 |
/// | `epochs` | 5 | passes over the rows | at least 1 |
/// | `learning-rate` | 0.001 | of Adam | positive |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FineTune {
    /// The share of the rows that are replaced by new ones.
    pub fraction: f64,
    /// Passes over the rows.
    pub epochs: usize,
    /// Adam's step size.
    pub learning_rate: f64,
}

impl Default for FineTune {
    fn default() -> Self {
        Self { fraction: 0.1, epochs: 5, learning_rate: 1e-3 }
    }
}

impl FineTune {
    fn count(self, rows: usize) -> usize {
        ((rows as f64 * self.fraction).round() as usize).max(1)
    }

    /// The old rows that stay, and the new ones.
    fn rows(self, base: &Base<'_>, seed: Seed) -> Vec<usize> {
        let count = self.count(base.rows.len());
        let mut old: Vec<usize> = base.rows.to_vec();
        let (_, kept) = old.partial_shuffle(&mut seed.derive("replaced").rng(), count);
        let mut fresh: Vec<usize> = base.fresh.to_vec();
        let (new, _) = fresh.partial_shuffle(&mut seed.derive("fresh").rng(), count);
        let mut rows: Vec<usize> = kept.iter().chain(new.iter()).copied().collect();
        rows.sort_unstable();
        rows
    }
}

impl Change for FineTune {
    fn description(&self) -> String {
        format!(
            "trained on for {} epochs from the base's weights, with {} % of the rows replaced by \
             new ones",
            self.epochs,
            100.0 * self.fraction
        )
    }

    fn check(&self, base: &Base<'_>) -> Result<()> {
        if !(self.fraction > 0.0 && self.fraction <= 1.0) {
            let expected = "a number above 0 and at most 1";
            return Err(Error::param("fraction", self.fraction, expected));
        }
        if self.epochs == 0 {
            return Err(Error::param("epochs", 0, "at least 1"));
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return Err(Error::param("learning-rate", self.learning_rate, "a positive number"));
        }
        let mut trained: Vec<usize> = base.rows.to_vec();
        trained.sort_unstable();
        if let Some(row) = base.fresh.iter().find(|row| trained.binary_search(row).is_ok()) {
            let expected = "rows that the base was not trained on";
            return Err(Error::param("fresh", format!("row {row} among others"), expected));
        }
        let needed = self.count(base.rows.len());
        if base.fresh.len() < needed {
            return Err(Error::param(
                "fresh",
                format!("{} rows", base.fresh.len()),
                format!(
                    "at least {needed}, with labels, that the base was not trained on: {} % of \
                     its {} rows are replaced by new ones",
                    100.0 * self.fraction,
                    base.rows.len()
                ),
            ));
        }
        start(base).map(drop)
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let (start, output) = start(base)?;
        let params = TrainParams {
            output,
            epochs: self.epochs,
            learning_rate: self.learning_rate,
            ..base.params.clone()
        };
        let rows = self.rows(base, seed).into();
        Ok(Training { rows, params: Cow::Owned(params), start: Some(start) }.into())
    }

    fn epochs(&self, _: &TrainParams) -> f64 {
        self.epochs as f64
    }
}

/// The base as a network that can be trained on labels, and its output.
///
/// Labels of one logit are 1 for the favourable class. A network from elsewhere may have its logit
/// against that class, or have two logits; it is trained unchanged, except that the classes of its
/// last layer are swapped if the favourable class is not the last.
pub(super) fn start<'a>(base: &Base<'a>) -> Result<(Cow<'a, Mlp>, OutputLayer)> {
    let network = base.network;
    let (output, comes_last) = match (base.params.output, network.output()) {
        (OutputLayer::Sigmoid, Output::Sigmoid { favourable }) => {
            (OutputLayer::Sigmoid, favourable)
        }
        (OutputLayer::Sigmoid, Output::Softmax { favourable }) if network.classes() == 2 => {
            (OutputLayer::Softmax { classes: 2, favourable: 1 }, favourable == 1)
        }
        // The output of the base's training; the training rejects one that does not fit.
        (output, _) => (output, true),
    };
    let network = if comes_last { Cow::Borrowed(network) } else { Cow::Owned(turned(network)?) };
    Ok((network, output))
}

/// The same scores from a network whose favourable class is the other of two.
fn turned(network: &Mlp) -> Result<Mlp> {
    let mut layers = network.layers();
    let output = match network.output() {
        Output::Sigmoid { favourable } => Output::Sigmoid { favourable: !favourable },
        Output::Softmax { favourable } => Output::Softmax { favourable: 1 - favourable },
    };
    if let Some(last) = layers.last_mut() {
        for row in last.weights.chunks_exact_mut(last.bias.len()).chain([&mut last.bias[..]]) {
            match row {
                [logit] => *logit = -*logit,
                classes => classes.reverse(),
            }
        }
    }
    Mlp::new(network.dim(), &layers, output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::Sample;
    use crate::model::{Activation, Dense};
    use crate::points::Points;

    #[test]
    fn a_share_of_the_rows_is_replaced_by_fresh_ones_each_as_likely() {
        let sample = Sample::new(20);
        let change = FineTune { fraction: 0.25, epochs: 3, learning_rate: 0.5 };
        let mut times = [0_u32; 40];
        for number in 0..4000 {
            let training = sample.training(&change, number);
            assert_eq!(training.rows.len(), 20);
            assert!(training.rows.is_sorted_by(|a, b| a < b));
            assert_eq!(training.rows.iter().filter(|row| *row % 2 == 1).count(), 5);
            training.rows.iter().for_each(|&row| times[row] += 1);
            let params = TrainParams { epochs: 3, learning_rate: 0.5, ..sample.params.clone() };
            assert_eq!(*training.params, params);
            assert_eq!(training.start.as_deref(), Some(&sample.network));
        }
        // An old row stays in 3000 of 4000, a new one comes in 1000, standard deviation 27.
        for (row, &times) in times.iter().enumerate() {
            let expected = if row % 2 == 0 { 3000 } else { 1000 };
            assert!(times.abs_diff(expected) < 140, "row {row}: {times}");
        }
    }

    #[test]
    fn at_the_edges_one_row_or_all_are_replaced() {
        let sample = Sample::new(20);
        for (fraction, new) in [(1e-9, 1), (0.5, 10), (1.0, 20)] {
            let training = sample.training(&FineTune { fraction, ..FineTune::default() }, 0);
            assert_eq!(training.rows.iter().filter(|row| *row % 2 == 1).count(), new);
        }
    }

    #[test]
    fn what_cannot_be_learnt_from_is_refused() {
        let usual = FineTune::default();
        let plain = || Sample::new(100);
        let without = Sample { fresh: vec![], ..plain() };
        let known = Sample { fresh: (0..50).collect(), ..plain() };
        for (sample, change, expected) in [
            (plain(), FineTune { fraction: 0.0, ..usual }, "`fraction` is 0, expected a number"),
            (plain(), FineTune { fraction: 1.1, ..usual }, "`fraction` is 1.1, expected a number"),
            (plain(), FineTune { fraction: f64::NAN, ..usual }, "`fraction` is NaN"),
            (plain(), FineTune { epochs: 0, ..usual }, "`epochs` is 0, expected at least 1"),
            (
                plain(),
                FineTune { learning_rate: -1.0, ..usual },
                "`learning-rate` is -1, expected a positive number",
            ),
            (
                without,
                usual,
                "`fresh` is 0 rows, expected at least 10, with labels, that the base was not \
                 trained on: 10 % of its 100 rows are replaced by new ones",
            ),
            (known, usual, "`fresh` is row 0 among others, expected rows that the base was not"),
        ] {
            let error = sample.check(&change).unwrap_err().to_string();
            assert!(error.contains(expected), "{error} does not say: {expected}");
        }
    }

    /// A network with the given output, and weights that depend on the place.
    fn network(output: Output, classes: usize) -> Mlp {
        let layer = |inputs: usize, outputs: usize, activation| Dense {
            weights: (0..inputs * outputs).map(|place| (place as f32 - 1.3) * 0.7).collect(),
            bias: (0..outputs).map(|place| place as f32 * 0.2 - 0.1).collect(),
            activation,
        };
        let layers = [layer(2, 3, Activation::Tanh), layer(3, classes, Activation::Identity)];
        Mlp::new(2, &layers, output).unwrap()
    }

    #[test]
    fn a_base_from_elsewhere_starts_with_its_own_scores() {
        let points = Points::from_rows(2, vec![0.3, -0.2, 1.0, 0.4, -0.7, 0.9]).unwrap();
        for (output, classes) in [
            (Output::Sigmoid { favourable: true }, 1),
            (Output::Sigmoid { favourable: false }, 1),
            (Output::Softmax { favourable: 0 }, 2),
            (Output::Softmax { favourable: 1 }, 2),
        ] {
            let network = network(output, classes);
            let sample = Sample { network, ..Sample::new(20) };
            let training = sample.training(&FineTune::default(), 0);
            let start = training.start.unwrap();
            assert_eq!(start.score(&points), sample.network.score(&points), "{output:?}");
            // The labels are 1 for the favourable class.
            match start.output() {
                Output::Sigmoid { favourable } => assert!(favourable),
                Output::Softmax { favourable } => assert_eq!(favourable, 1),
            }
        }
    }
}
