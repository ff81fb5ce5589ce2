//! Gradients with respect to the weights, for changes that move weights without Adam.

use super::{Job, Trainer};
use crate::error::Result;
use crate::model::{Dense, Mlp};

/// A mean over rows, as a function of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objective {
    /// The weighted cross-entropy of the labels: the training loss without its penalty.
    Loss,
    /// `ln(m / (1 - m))`, the logit of the favourable class.
    Logit,
}

/// The gradients of networks with the layers of one job.
pub(crate) struct WeightGradients<'a> {
    trainer: Trainer<'a>,
}

impl<'a> WeightGradients<'a> {
    /// Checks the rows and the network to start from, as a training does.
    pub(crate) fn new(job: &Job<'a>) -> Result<Self> {
        Ok(Self { trainer: Trainer::of(job)? })
    }

    /// The objective of these rows, and its derivative with respect to every weight in the order of
    /// [`parameters`]. The network has the layers of the job.
    pub(crate) fn at(
        &mut self,
        network: Mlp,
        rows: &[usize],
        objective: Objective,
    ) -> (f64, Vec<f64>) {
        self.trainer.network = network;
        let mut value = 0.0;
        let mut gradient = Vec::new();
        for batch in rows.chunks(self.trainer.batch_losses.len()) {
            value += self.trainer.differentiate(batch, objective);
            let share = batch.len() as f64 / rows.len() as f64;
            let part = parameters(&self.trainer.gradients());
            gradient.resize(part.len(), 0.0);
            for (total, part) in gradient.iter_mut().zip(part) {
                *total += share * part;
            }
        }
        (value / rows.len() as f64, gradient)
    }
}

/// Every weight and then every bias, layer by layer.
pub(crate) fn parameters(layers: &[Dense]) -> Vec<f64> {
    let all = layers.iter().flat_map(|layer| layer.weights.iter().chain(&layer.bias));
    all.map(|&value| f64::from(value)).collect()
}

/// The same layers with other numbers, in the order of [`parameters`].
pub(crate) fn with_parameters(layers: &[Dense], parameters: &[f64]) -> Vec<Dense> {
    let mut values = parameters.iter().map(|&value| value as f32);
    let mut layers = layers.to_vec();
    for layer in &mut layers {
        let own = layer.weights.iter_mut().chain(&mut layer.bias);
        own.zip(&mut values).for_each(|(own, value)| *own = value);
    }
    layers
}

impl Trainer<'_> {
    /// Fills the gradients of the batch's mean objective, and returns the sum of the objective.
    fn differentiate(&mut self, batch: &[usize], objective: Objective) -> f64 {
        self.load(batch);
        self.forward(batch.len());
        let sum = match objective {
            Objective::Loss => self.cotangents(batch).0,
            Objective::Logit => {
                let (classes, output) = (self.network.classes(), self.network.output());
                let share = 1.0 / batch.len() as f32;
                let mut sum = 0.0;
                for logits in self.logits[..batch.len() * classes].chunks_exact_mut(classes) {
                    sum += f64::from(output.logit(logits));
                    output.logit_cotangent(logits, share);
                }
                sum
            }
        };
        self.backward(batch.len());
        sum
    }

    /// The gradients in the place of the weights.
    pub(super) fn gradients(&self) -> Vec<Dense> {
        let mut network = self.network.clone();
        for (layer, moments) in network.hidden.iter_mut().zip(&self.hidden) {
            layer.weights.clone_from(&moments.weights.gradient);
            layer.bias.clone_from(&moments.bias.gradient);
        }
        network.head.weights.clone_from(&self.head.weights.gradient);
        network.head.bias.clone_from(&self.head.bias.gradient);
        network.layers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::train::{OutputLayer, TrainParams};
    use crate::model::{Activation, Examples, Model as _};
    use crate::points::Points;
    use crate::seed::Seed;
    use proptest::prelude::*;
    use rand::RngExt;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        /// Over several batches, of which the last may be smaller.
        #[test]
        fn both_objectives_have_their_gradients(
            hidden in prop::collection::vec(1..10_usize, 0..3),
            classes in 1..4_usize,
            count in 3..12_usize,
            seed in any::<u64>(),
        ) {
            let mut rng = Seed(seed).rng();
            let values = (0..count * 3).map(|_| rng.random_range(-1.0..1.0)).collect();
            let points = Points::from_rows(3, values).unwrap();
            let labels: Vec<u32> = (0..count).map(|row| (row % classes.max(2)) as u32).collect();
            let output = match classes {
                1 => OutputLayer::Sigmoid,
                _ => OutputLayer::Softmax { classes, favourable: 1 },
            };
            let activation = Activation::Tanh;
            let paper = TrainParams::paper();
            let params = TrainParams { hidden, activation, output, batch: 2, ..paper };
            let job = Job::new(Examples::new(&points, &labels), &params, Seed(seed));
            let mut gradients = WeightGradients::new(&job).unwrap();
            let network = gradients.trainer.network.clone();
            let layers = network.layers();
            let rows: Vec<usize> = (0..count).collect();
            for objective in [Objective::Loss, Objective::Logit] {
                let mut at = |parameters: &[f64]| {
                    let layers = with_parameters(&layers, parameters);
                    let network = Mlp::new(3, &layers, network.output()).unwrap();
                    gradients.at(network, &rows, objective)
                };
                let own = parameters(&layers);
                let (value, gradient) = at(&own);
                let (scores, logits) = (network.score(&points), network.logits(&points));
                let expected = |row: usize| {
                    let own = &logits[row * classes..][..classes];
                    match objective {
                        Objective::Logit => network.output().logit(own),
                        Objective::Loss if classes == 1 && labels[row] == 1 => -scores[row].ln(),
                        Objective::Loss if classes == 1 => -(1.0 - scores[row]).ln(),
                        Objective::Loss => {
                            let mut shares = own.to_vec();
                            crate::model::mlp::softmax(&mut shares);
                            -shares[labels[row] as usize].ln()
                        }
                    }
                };
                let mean: f32 = rows.iter().map(|&row| expected(row)).sum::<f32>() / count as f32;
                prop_assert!((value - f64::from(mean)).abs() < 1e-4, "{} {}", value, mean);
                let h = f64::from(1.0_f32 / 64.0);
                for place in 0..own.len() {
                    let mut moved = own.clone();
                    moved[place] += h;
                    let above = at(&moved).0;
                    moved[place] -= 2.0 * h;
                    let slope = (above - at(&moved).0) / (2.0 * h);
                    let own = gradient[place];
                    prop_assert!((slope - own).abs() < 2e-3, "{} {}", slope, own);
                }
            }
        }
    }
}
