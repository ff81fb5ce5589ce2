//! The interface of a change: how one member is made.

use std::borrow::Cow;

use crate::error::Result;
use crate::model::{Examples, Mlp, TrainParams};
use crate::seed::Seed;

/// A random way in which a model changes.
pub(super) trait Change {
    /// A description in words: "trained again from new weights".
    fn description(&self) -> String;

    /// Checks that the parameters are in their range, for this base.
    fn check(&self, base: &Base<'_>) -> Result<()>;

    /// How a member is made. All its randomness comes from the seed.
    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>>;

    /// Whether two members may be equal by chance, since there are few different ones.
    fn repeats(&self) -> bool {
        false
    }

    /// The mean number of epochs of a member, to estimate the time.
    fn epochs(&self, params: &TrainParams) -> f64 {
        params.epochs as f64
    }
}

/// The model before the change, and how it was trained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base<'a> {
    pub(super) network: &'a Mlp,
    /// All rows, with their labels and weights.
    pub(super) examples: Examples<'a>,
    /// The rows it was trained on.
    pub(super) rows: &'a [usize],
    /// Rows that it has not seen.
    pub(super) fresh: &'a [usize],
    pub(super) params: &'a TrainParams,
}

impl<'a> Base<'a> {
    /// The base's own training, from new weights; most changes modify one part of it.
    pub(super) fn again(&self) -> Training<'a> {
        Training { rows: self.rows.into(), params: Cow::Borrowed(self.params), start: None }
    }
}

/// How one member is made.
#[derive(Debug)]
pub(super) enum Member<'a> {
    /// By training.
    Trained(Box<Training<'a>>),
    /// Without training.
    Made(Mlp),
}

impl<'a> From<Training<'a>> for Member<'a> {
    fn from(training: Training<'a>) -> Self {
        Self::Trained(Box::new(training))
    }
}

/// A training.
#[derive(Debug)]
pub(super) struct Training<'a> {
    pub(super) rows: Cow<'a, [usize]>,
    pub(super) params: Cow<'a, TrainParams>,
    /// The network to go on from; new weights if absent.
    pub(super) start: Option<Cow<'a, Mlp>>,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::{Activation, Dense, Output};
    use crate::points::Points;

    /// A base to change: a small network and its rows.
    pub(in super::super) struct Sample {
        pub(in super::super) network: Mlp,
        pub(in super::super) points: Points,
        pub(in super::super) labels: Vec<u32>,
        pub(in super::super) rows: Vec<usize>,
        pub(in super::super) fresh: Vec<usize>,
        pub(in super::super) params: TrainParams,
    }

    impl Sample {
        /// The even numbers are the rows that trained it, as many odd ones are fresh.
        pub(in super::super) fn new(rows: usize) -> Self {
            let network = Mlp::linear(vec![1.0], 0.0);
            Self {
                network: network.expect("one layer that fits"),
                points: Points::zeros(2 * rows, 1),
                labels: (0..2 * rows).map(|row| (row / 2 % 2) as u32).collect(),
                rows: (0..rows).map(|row| 2 * row).collect(),
                fresh: (0..rows).map(|row| 2 * row + 1).collect(),
                params: TrainParams { hidden: vec![], ..TrainParams::paper() },
            }
        }

        pub(in super::super) fn base(&self) -> Base<'_> {
            let Self { network, points, labels, rows, fresh, params } = self;
            Base { network, examples: Examples::new(points, labels), rows, fresh, params }
        }

        /// With hidden layers of these widths, and weights that differ from each other.
        pub(in super::super) fn with_layers(hidden: &[usize]) -> Self {
            let mut inputs = 1;
            let mut layers = Vec::new();
            for (index, &outputs) in hidden.iter().chain(&[1]).enumerate() {
                let number = |place: usize| (place as f32 - 1.3) * 0.7 + index as f32 * 0.1;
                layers.push(Dense {
                    weights: (0..inputs * outputs).map(number).collect(),
                    bias: (0..outputs).map(|place| place as f32 * 0.2 - 0.1).collect(),
                    activation: match index {
                        index if index == hidden.len() => Activation::Identity,
                        _ => Activation::Tanh,
                    },
                });
                inputs = outputs;
            }
            let network = Mlp::new(1, &layers, Output::Sigmoid { favourable: true });
            Self { network: network.expect("layers that fit"), ..Self::new(3) }
        }

        pub(in super::super) fn check(&self, change: &dyn Change) -> Result<()> {
            change.check(&self.base())
        }

        /// How the member of that number is trained.
        pub(in super::super) fn training(
            &self,
            change: &dyn Change,
            number: usize,
        ) -> Training<'_> {
            match change.member(&self.base(), Seed(0).index(number)).expect("a change that fits") {
                Member::Trained(training) => *training,
                Member::Made(_) => panic!("not trained: {}", change.description()),
            }
        }
    }

    /// The member of that number, of a change that does not train.
    pub(in super::super) fn made(sample: &Sample, change: &dyn Change, number: usize) -> Mlp {
        match change.member(&sample.base(), Seed(0).index(number)).expect("a change that fits") {
            Member::Made(network) => network,
            Member::Trained(_) => panic!("trained: {}", change.description()),
        }
    }
}
