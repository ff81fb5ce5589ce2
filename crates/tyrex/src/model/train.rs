//! Training: cross-entropy, mini-batches, Adam.
//!
//! The loss of a batch `B` is `1/|B| sum_i w_i CE(m(x_i), y_i) + l2 sum_l ||W_l||^2`, as in Keras:
//! the weighted losses are divided by the number of rows, not by the sum of their weights, and
//! biases are not penalised.
//!
//! One model is trained by one thread, many models by many ([`train_all`]); a model's randomness
//! comes from its own seed, so the result does not depend on the number of threads.

mod examples;
mod gradient;
mod initial;
mod params;

use std::collections::HashSet;
use std::ops::ControlFlow;

use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Activation;
use super::kernel::{self, AdamStep, Left, Line, Out, Right};
use super::mlp::{Hidden, Mlp, pad_rows, rows_of, softmax};
use crate::error::{Error, Result};
use crate::points::Points;
use crate::seed::{Rng, Seed};
pub use examples::Examples;
use examples::{check_examples, row_weights};
pub(crate) use gradient::{Objective, WeightGradients, parameters, with_parameters};
use initial::{initial, started};
pub use params::{ClassWeights, EarlyStopping, Initialisation, OutputLayer, Schedule, TrainParams};

/// The report of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpochReport {
    /// The epoch, from 0.
    pub epoch: usize,
    /// Mean weighted cross-entropy over the epoch's batches, each before its step.
    pub loss: f64,
    /// The accuracy over the epoch's batches, each before its step.
    pub accuracy: f64,
    /// Mean cross-entropy of the held-out rows after the epoch, with early stopping.
    pub held_out_loss: Option<f64>,
}

/// A trained network and its history.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The network.
    pub network: Mlp,
    /// The report of every epoch.
    pub history: Vec<EpochReport>,
    /// The epoch whose weights were kept.
    pub kept_epoch: usize,
}

/// One model of many.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The rows.
    pub examples: Examples<'a>,
    /// How to train.
    pub params: &'a TrainParams,
    /// The seed.
    pub seed: Seed,
    /// The network to continue from, with the layers of `params`; new weights if absent.
    pub start: Option<&'a Mlp>,
}

impl<'a> Job<'a> {
    /// A model that starts from new weights.
    pub fn new(examples: Examples<'a>, params: &'a TrainParams, seed: Seed) -> Self {
        Self { examples, params, seed, start: None }
    }

    /// Trains the model.
    ///
    /// `watch` is called after every epoch; a `Break` ends training with the current network.
    pub fn run(&self, watch: impl Fn(&EpochReport) -> ControlFlow<()>) -> Result<Trained> {
        Trainer::of(self)?.run(watch)
    }
}

/// Trains one model.
pub fn train(examples: Examples, params: &TrainParams, seed: Seed) -> Result<Trained> {
    Job::new(examples, params, seed).run(|_| ControlFlow::Continue(()))
}

/// Trains many models, one per thread at a time, in the order of the jobs.
///
/// `watch` is called after every epoch of every job, from any thread; after a `Break` all jobs end
/// early, each with its current network.
pub fn train_all(
    jobs: &[Job],
    watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
) -> Result<Vec<Trained>> {
    jobs.par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(index, job)| job.run(|report| watch(index, report)))
        .collect()
}

/// A weight matrix' or bias' gradient and Adam's two averages of it.
struct Moments {
    gradient: Vec<Line>,
    first: Vec<Line>,
    second: Vec<Line>,
}

impl Moments {
    fn of(values: &[Line]) -> Self {
        let zeros = || kernel::zeros(values.len());
        Self { gradient: zeros(), first: zeros(), second: zeros() }
    }

    fn step(&mut self, step: AdamStep, values: &mut [Line]) {
        kernel::adam(step, values, &self.gradient, &mut self.first, &mut self.second);
    }
}

/// Weights and bias of one layer.
struct LayerMoments {
    weights: Moments,
    bias: Moments,
}

/// One model in training, epoch by epoch.
pub struct Trainer<'a> {
    examples: Examples<'a>,
    params: TrainParams,
    network: Mlp,
    /// Per row of the points: its weight times its class' weight.
    weights: Vec<f32>,
    rows: Vec<usize>,
    held_out: Option<(Points, Vec<u32>)>,
    shuffle: Seed,
    dropout: Rng,
    epoch: usize,
    steps: u32,
    hidden: Vec<LayerMoments>,
    head: LayerMoments,
    input: Vec<Line>,
    values: Vec<Vec<Line>>,
    slopes: Vec<Vec<Line>>,
    logits: Vec<f32>,
    batch_labels: Vec<f32>,
    batch_weights: Vec<f32>,
    batch_losses: Vec<f32>,
    gradient: Vec<Line>,
    other: Vec<Line>,
}

impl<'a> Trainer<'a> {
    /// A model that starts from new weights.
    pub fn new(examples: Examples<'a>, params: &'a TrainParams, seed: Seed) -> Result<Self> {
        Self::of(&Job::new(examples, params, seed))
    }

    /// Checks everything and takes or draws the first weights.
    pub fn of(job: &Job<'a>) -> Result<Self> {
        let Job { examples, params, seed, start } = *job;
        params.check()?;
        let classes = check_examples(&examples, params)?;
        let mut rows: Vec<usize> =
            examples.rows.map_or_else(|| (0..examples.points.len()).collect(), <[_]>::to_vec);
        let weights = row_weights(&examples, &rows, params, classes)?;
        let held_out = match params.early_stopping {
            None => None,
            Some(stopping) => {
                let held = hold_out(&mut rows, stopping, seed.derive("held-out"))?;
                let labels = held.iter().map(|&row| examples.labels[row]).collect();
                Some((examples.points.select(&held), labels))
            }
        };
        let dim = examples.points.dim();
        let network = match start {
            Some(start) => started(start, dim, params)?,
            None => initial(dim, params, seed.derive("weights"))?,
        };
        let batch = params.batch.min(rows.len());
        let moments = |weights: &[Line], bias: &[Line]| LayerMoments {
            weights: Moments::of(weights),
            bias: Moments::of(bias),
        };
        let widths: Vec<usize> = network.hidden.iter().map(Hidden::width).collect();
        let input_width = kernel::lines_for(dim);
        let widest = widths.iter().copied().fold(input_width, usize::max);
        let room = || widths.iter().map(|width| kernel::zeros(batch * width)).collect();
        Ok(Self {
            examples,
            params: params.clone(),
            weights,
            rows,
            held_out,
            shuffle: seed.derive("shuffle"),
            dropout: seed.derive("dropout").rng(),
            epoch: 0,
            steps: 0,
            hidden: network.hidden.iter().map(|l| moments(&l.weights, &l.bias)).collect(),
            head: moments(&network.head.weights, &network.head.bias),
            input: kernel::zeros(batch * input_width),
            values: room(),
            slopes: room(),
            logits: vec![0.0; batch * network.classes()],
            batch_labels: Vec::with_capacity(batch),
            batch_weights: Vec::with_capacity(batch),
            batch_losses: vec![0.0; batch],
            gradient: kernel::zeros(batch * widest),
            other: kernel::zeros(batch * widest),
            network,
        })
    }

    /// Runs all epochs, or fewer after early stopping or a `Break`.
    fn run(mut self, watch: impl Fn(&EpochReport) -> ControlFlow<()>) -> Result<Trained> {
        let mut history = Vec::new();
        let mut best: Option<(f64, usize, Mlp)> = None;
        while self.epoch < self.params.epochs {
            let report = self.epoch()?;
            history.push(report);
            let stop = watch(&report).is_break();
            if let (Some(loss), Some(stopping)) = (report.held_out_loss, self.params.early_stopping)
            {
                let enough = |lowest: f64| loss < lowest - stopping.min_delta;
                if best.as_ref().is_none_or(|(lowest, _, _)| enough(*lowest)) {
                    best = Some((loss, report.epoch, self.network.clone()));
                }
                let since = best.as_ref().map_or(0, |(_, epoch, _)| report.epoch - epoch);
                if since >= stopping.patience.max(1) {
                    break;
                }
            }
            if stop {
                break;
            }
        }
        let (kept_epoch, mut network) = match best {
            Some((_, epoch, network)) => (epoch, network),
            None => (self.epoch.saturating_sub(1), self.network),
        };
        network.hidden.iter_mut().for_each(Hidden::refresh_transposed);
        // The epoch losses do not include the effect of the last step.
        let some = &self.rows[..self.rows.len().min(1024)];
        let logits = network.logits(&self.examples.points.select(some));
        if !network.is_finite() || !logits.iter().all(|z| z.is_finite()) {
            return Err(diverged(kept_epoch, &self.params));
        }
        Ok(Trained { network, history, kept_epoch })
    }

    /// The current network.
    pub fn network(&self) -> Mlp {
        let mut network = self.network.clone();
        network.hidden.iter_mut().for_each(super::mlp::Hidden::refresh_transposed);
        network
    }

    /// Adam's steps so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// One pass over the rows, in a fresh order.
    pub fn epoch(&mut self) -> Result<EpochReport> {
        let mut rows = std::mem::take(&mut self.rows);
        // The order depends on the seed and the epoch alone, not on earlier epochs.
        rows.sort_unstable();
        rows.shuffle(&mut self.shuffle.index(self.epoch).rng());
        let (mut loss, mut right) = (0.0, 0);
        for batch in rows.chunks(self.params.batch) {
            let (batch_loss, batch_right) = self.step(batch);
            loss += batch_loss;
            right += batch_right;
        }
        let count = rows.len() as f64;
        self.rows = rows;
        let report = EpochReport {
            epoch: self.epoch,
            loss: loss / count,
            accuracy: right as f64 / count,
            held_out_loss: self.held_out.as_ref().map(|(points, labels)| {
                let logits = self.network.logits(points);
                let classes = self.network.classes();
                let losses = logits.chunks_exact(classes).zip(labels);
                losses.map(|(z, &y)| cross_entropy(z, y)).sum::<f64>() / labels.len() as f64
            }),
        };
        if !report.loss.is_finite() {
            return Err(diverged(self.epoch, &self.params));
        }
        self.epoch += 1;
        Ok(report)
    }

    /// One step on one batch: forward, backward, Adam. Returns the sum of the losses and the number
    /// of correctly classified rows, both before the step.
    fn step(&mut self, batch: &[usize]) -> (f64, usize) {
        self.load(batch);
        self.forward(batch.len());
        let result = self.cotangents(batch);
        self.backward(batch.len());
        self.update();
        result
    }

    /// Puts the rows of a batch into the input.
    fn load(&mut self, batch: &[usize]) {
        let dim = self.examples.points.dim();
        let input_width = kernel::lines_for(dim);
        for (&row, line) in batch.iter().zip(self.input.chunks_exact_mut(input_width)) {
            pad_rows(self.examples.points.row(row), dim, line);
        }
    }

    fn forward(&mut self, rows: usize) {
        for (index, layer) in self.network.hidden.iter().enumerate() {
            let (before, rest) = self.values.split_at_mut(index);
            let input = match before.last() {
                Some(previous) => rows_of(previous, self.network.hidden[index - 1].width()),
                None => rows_of(&self.input, kernel::lines_for(layer.inputs)),
            };
            let values = &mut rest[0][..rows * layer.width()];
            layer.sums(rows, input, values);
            let values = kernel::flat_mut(values);
            if layer.activation == Activation::Relu && self.params.dropout == 0.0 {
                kernel::activate(layer.activation, values);
                continue;
            }
            let slopes = kernel::flat_mut(&mut self.slopes[index][..rows * layer.width()]);
            kernel::activate_with_slope(layer.activation, values, slopes);
            if self.params.dropout > 0.0 {
                // Scaled up during training, so that no scaling is needed afterwards.
                let keep = 1.0 / (1.0 - self.params.dropout as f32);
                for (value, slope) in values.iter_mut().zip(slopes) {
                    let factor =
                        if self.dropout.random_bool(self.params.dropout) { 0.0 } else { keep };
                    *value *= factor;
                    *slope *= factor;
                }
            }
        }
        let last: &[Line] = self.values.last().map_or(&self.input, Vec::as_slice);
        let head = &self.network.head;
        head.logits(last, &mut self.logits[..rows * head.classes]);
    }

    /// Replaces the logits by the derivative of the batch's loss with respect to them.
    fn cotangents(&mut self, batch: &[usize]) -> (f64, usize) {
        let classes = self.network.classes();
        let share = 1.0 / batch.len() as f32;
        let logits = &mut self.logits[..batch.len() * classes];
        let labels = batch.iter().map(|&row| self.examples.labels[row]);
        let right = logits.chunks_exact(classes).zip(labels.clone());
        let right = right.filter(|(logits, label)| predicted(logits) == *label).count();
        if classes == 1 {
            self.batch_labels.clear();
            self.batch_labels.extend(labels.map(|label| label as f32));
            self.batch_weights.clear();
            self.batch_weights.extend(batch.iter().map(|&row| self.weights[row]));
            let losses = &mut self.batch_losses[..batch.len()];
            let (labels, weights) = (&self.batch_labels, &self.batch_weights);
            kernel::sigmoid_cross_entropy(share, labels, weights, logits, losses);
            return (losses.iter().map(|&loss| f64::from(loss)).sum(), right);
        }
        let mut loss = 0.0;
        for (logits, &row) in logits.chunks_exact_mut(classes).zip(batch) {
            let (label, weight) = (self.examples.labels[row], self.weights[row]);
            loss += f64::from(weight) * cross_entropy(logits, label);
            softmax(logits);
            logits[label as usize] -= 1.0;
            for g in logits {
                *g *= weight * share;
            }
        }
        (loss, right)
    }

    /// Fills every gradient, from the logits down.
    fn backward(&mut self, rows: usize) {
        let head = &self.network.head;
        let cotangents = &self.logits[..rows * head.classes];
        let last: &[Line] = self.values.last().map_or(&self.input, Vec::as_slice);
        let of_weights = &mut self.head.weights.gradient;
        kernel::collect(head.width(), head.classes, cotangents, last, of_weights);
        // The lanes beyond the last input hold the activation of 0. They are not units and must not
        // contribute to gradients.
        for row in of_weights.chunks_exact_mut(head.width()) {
            kernel::flat_mut(row)[head.inputs..].fill(0.0);
        }
        let of_bias = kernel::flat_mut(&mut self.head.bias.gradient);
        of_bias.fill(0.0);
        for row in cotangents.chunks_exact(head.classes) {
            for (total, g) in of_bias.iter_mut().zip(row) {
                *total += g;
            }
        }
        let gradient = &mut self.gradient[..rows * head.width()];
        kernel::spread(head.width(), head.classes, cotangents, &head.weights, gradient);
        for (index, layer) in self.network.hidden.iter().enumerate().rev() {
            let width = layer.width();
            let gradient = &mut self.gradient[..rows * width];
            if layer.activation == Activation::Relu && self.params.dropout == 0.0 {
                kernel::relu_slope(gradient, &self.values[index][..rows * width]);
            } else {
                kernel::multiply(gradient, &self.slopes[index][..rows * width]);
            }
            let input = if index == 0 { &self.input } else { &self.values[index - 1] };
            let moments = &mut self.hidden[index];
            kernel::product(
                [layer.inputs, rows, width],
                Left {
                    values: kernel::flat(input),
                    row: 1,
                    step: kernel::lines_for(layer.inputs) * kernel::LANES,
                },
                Right { lines: gradient, panel: 1, step: width },
                &mut Out { lines: &mut moments.weights.gradient, row: 1, panel: layer.inputs },
                None,
            );
            kernel::sum_rows(width, gradient, &mut moments.bias.gradient);
            if index > 0 {
                layer.input_gradient(rows, gradient, &mut self.other);
                std::mem::swap(&mut self.gradient, &mut self.other);
            }
        }
    }

    /// One step of Adam on every weight.
    fn update(&mut self) {
        let params = &self.params;
        self.steps += 1;
        let t = f64::from(self.steps);
        let rate = params.learning_rate * params.schedule.factor(self.epoch, params.epochs);
        let bias_step = AdamStep {
            rate: (rate * (1.0 - params.beta2.powf(t)).sqrt() / (1.0 - params.beta1.powf(t)))
                as f32,
            beta1: params.beta1 as f32,
            beta2: params.beta2 as f32,
            epsilon: params.epsilon as f32,
            decay: 0.0,
        };
        let weight_step = AdamStep { decay: 2.0 * params.l2 as f32, ..bias_step };
        for (index, (layer, moments)) in
            self.network.hidden.iter_mut().zip(&mut self.hidden).enumerate()
        {
            moments.weights.step(weight_step, &mut layer.weights);
            moments.bias.step(bias_step, &mut layer.bias);
            if index > 0 {
                // The first layer's transpose serves gradients of the input, not training.
                layer.refresh_transposed();
            }
        }
        self.head.weights.step(weight_step, &mut self.network.head.weights);
        self.head.bias.step(bias_step, &mut self.network.head.bias);
    }
}

/// Removes a share of the rows, drawn by seed, and returns them.
fn hold_out(rows: &mut Vec<usize>, stopping: EarlyStopping, seed: Seed) -> Result<Vec<usize>> {
    // A bootstrap has copies of rows. A row is held out with all of them: it is not trained on, and
    // it counts once in the loss.
    let mut seen = HashSet::new();
    let mut distinct: Vec<usize> = rows.iter().copied().filter(|row| seen.insert(*row)).collect();
    let count = ((distinct.len() as f64 * stopping.fraction).round() as usize).max(1);
    if count >= distinct.len() {
        return Err(Error::Training(format!(
            "early stopping would hold out {count} of {} rows; give more rows or a smaller fraction",
            distinct.len()
        )));
    }
    distinct.shuffle(&mut seed.rng());
    let held = distinct.split_off(distinct.len() - count);
    let out: HashSet<usize> = held.iter().copied().collect();
    rows.retain(|row| !out.contains(row));
    Ok(held)
}

fn diverged(epoch: usize, params: &TrainParams) -> Error {
    Error::Training(format!(
        "the loss is no longer a number after epoch {}; lower the learning rate (now {}) or scale \
         the columns",
        epoch + 1,
        params.learning_rate
    ))
}

/// `-ln` of the probability of the label, from the logits, without overflow.
fn cross_entropy(logits: &[f32], label: u32) -> f64 {
    if let [z] = logits {
        let against = f64::from(if label == 1 { -*z } else { *z });
        return against.max(0.0) + libm::log1p((-against.abs()).exp());
    }
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = logits.iter().map(|z| f64::from(z - largest).exp()).sum();
    total.ln() + f64::from(largest) - f64::from(logits[label as usize])
}

/// The class with the largest logit; of one logit, whether it is at least 0.
fn predicted(logits: &[f32]) -> u32 {
    if let [z] = logits {
        return u32::from(*z >= 0.0);
    }
    let mut best = 0;
    for (class, z) in logits.iter().enumerate() {
        if *z > logits[best] {
            best = class;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Dense;
    use proptest::prelude::*;
    use rand::RngExt;

    /// The loss of the definition, in double precision.
    fn loss(layers: &[Dense], examples: &Examples, weights: &[f32]) -> f64 {
        let rows = examples.points.rows().zip(examples.labels).zip(weights);
        let total: f64 = rows
            .map(|((point, &label), &weight)| {
                let mut values: Vec<f64> = point.iter().map(|&v| f64::from(v)).collect();
                for layer in layers {
                    let outputs = layer.bias.len();
                    values = (0..outputs)
                        .map(|j| {
                            let column = layer.weights.chunks_exact(outputs).map(|row| row[j]);
                            let sum: f64 =
                                values.iter().zip(column).map(|(v, w)| v * f64::from(w)).sum();
                            let sum = sum + f64::from(layer.bias[j]);
                            if layer.activation == Activation::Tanh { sum.tanh() } else { sum }
                        })
                        .collect();
                }
                let of_label = match values[..] {
                    [z] if label == 1 => 1.0 / (1.0 + (-z).exp()),
                    [z] => 1.0 / (1.0 + z.exp()),
                    _ => {
                        let total: f64 = values.iter().map(|z| z.exp()).sum();
                        values[label as usize].exp() / total
                    }
                };
                -f64::from(weight) * of_label.ln()
            })
            .sum();
        total / examples.points.len() as f64
    }

    #[test]
    fn no_held_out_row_is_trained_on() {
        let stopping = EarlyStopping { fraction: 0.2, ..EarlyStopping::default() };
        // Rows 0 to 49, row r with r % 4 copies.
        let copies = || (0..50).flat_map(|row| std::iter::repeat_n(row, row % 4));
        for seed in 0..20 {
            let mut rows: Vec<usize> = copies().collect();
            let held = hold_out(&mut rows, stopping, Seed(seed)).unwrap();
            // A fifth of the 37 rows with copies, each once; all copies of the others remain.
            assert_eq!(held.len(), 7);
            assert_eq!(held.iter().collect::<HashSet<_>>().len(), 7);
            let rest: Vec<usize> = copies().filter(|row| !held.contains(row)).collect();
            assert_eq!(rows, rest);
        }
        let error = hold_out(&mut vec![3; 5], stopping, Seed(0)).unwrap_err().to_string();
        assert!(error.contains("hold out 1 of 1 rows"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn every_weight_has_the_gradient_of_the_loss(
            dim in 1..20_usize,
            hidden in prop::collection::vec(1..20_usize, 0..3),
            classes in 1..4_usize,
            count in 2..12_usize,
            seed in any::<u64>(),
        ) {
            let mut rng = Seed(seed).rng();
            let values = (0..count * dim).map(|_| rng.random_range(-1.0..1.0)).collect();
            let points = Points::from_rows(dim, values).unwrap();
            let labels: Vec<u32> = (0..count).map(|row| (row % classes.max(2)) as u32).collect();
            let weights: Vec<f32> = (0..count).map(|_| rng.random_range(0.1..2.0)).collect();
            let examples = Examples::new(&points, &labels).with_weights(&weights);
            let params = TrainParams {
                hidden,
                activation: Activation::Tanh,
                output: match classes {
                    1 => OutputLayer::Sigmoid,
                    _ => OutputLayer::Softmax { classes, favourable: 0 },
                },
                batch: count,
                ..TrainParams::paper()
            };
            let mut trainer = Trainer::new(examples, &params, Seed(seed)).unwrap();
            // With a rate of 0 the step fills the gradients and changes no weight.
            trainer.params.learning_rate = 0.0;
            let before = trainer.network.layers();
            let (total, _) = trainer.step(&(0..count).collect::<Vec<_>>());
            prop_assert_eq!(&before, &trainer.network.layers());
            prop_assert!((total / count as f64 - loss(&before, &examples, &weights)).abs() < 1e-5);
            let gradients = trainer.gradients();
            let h = 1e-3_f32;
            for (index, layer) in gradients.iter().enumerate() {
                for position in 0..layer.weights.len() + layer.bias.len() {
                    let moved = |delta: f32| {
                        let mut layers = before.clone();
                        let inputs = layers[index].weights.len();
                        let slot = match position.checked_sub(inputs) {
                            None => &mut layers[index].weights[position],
                            Some(position) => &mut layers[index].bias[position],
                        };
                        *slot += delta;
                        (f64::from(*slot), loss(&layers, &examples, &weights))
                    };
                    let ((above, up), (below, down)) = (moved(h), moved(-h));
                    let expected = (up - down) / (above - below);
                    let got = match position.checked_sub(layer.weights.len()) {
                        None => layer.weights[position],
                        Some(position) => layer.bias[position],
                    };
                    prop_assert!((f64::from(got) - expected).abs() < 2e-5, "{} {}", got, expected);
                }
            }
        }
    }
}
