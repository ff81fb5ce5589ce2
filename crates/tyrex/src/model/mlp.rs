//! The multilayer perceptron: `h_0 = x`, `h_l = f_l(h_{l-1} W_l + b_l)`, logits
//! `z = h_L W + b`, and `m(x)` from the logits.
//!
//! The gradient with respect to the *input* is exact:
//! `dm/dz` at the logits, then `g_{l-1} = (g_l * f_l'(z_l)) W_l^T` down to `x`.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::kernel::{self, Left, Line, Out, Right};
use super::pass::{Block, Pass};
use super::{Activation, DifferentiableModel, Fingerprint, Model, ModelSummary};
use crate::error::{Error, Result};
use crate::points::Points;

/// Points go through the network in blocks of this size: eight tiles of six rows, and the
/// activations of a few layers stay in the cache.
pub(super) const BLOCK: usize = 48;

/// From this number of blocks on, threads are used.
const PARALLEL_BLOCKS: usize = 16;

/// One dense layer: `activation(x W + b)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// `W`, `inputs` rows of `outputs` columns, row by row.
    pub weights: Vec<f32>,
    /// `b`, one per output.
    pub bias: Vec<f32>,
    /// The function applied to each sum.
    pub activation: Activation,
}

/// How the last layer's sums (the logits) become the probability of the favourable class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// One logit `z`; `m = 1 / (1 + exp(-z))`, or one minus that.
    Sigmoid {
        /// Whether the logit is that of the favourable class (otherwise of the other).
        favourable: bool,
    },
    /// `k` logits; `m` is the favourable one's share, `exp(z_f) / sum_j exp(z_j)`.
    Softmax {
        /// The index of the favourable class.
        favourable: usize,
    },
}

impl Output {
    /// `m` from one point's logits.
    pub(crate) fn score(self, logits: &[f32]) -> f32 {
        match self {
            Self::Sigmoid { favourable: true } => kernel::sigmoid(logits[0]),
            Self::Sigmoid { favourable: false } => kernel::sigmoid(-logits[0]),
            Self::Softmax { favourable } => share(logits, favourable),
        }
    }

    /// `m` of many points from their logits, point by point. The same bits as one by one.
    pub(super) fn scores(self, logits: &[f32], scores: &mut [f32]) {
        match self {
            Self::Sigmoid { favourable } => {
                for (score, &logit) in scores.iter_mut().zip(logits) {
                    *score = if favourable { logit } else { -logit };
                }
                kernel::activate(Activation::Sigmoid, scores);
            }
            Self::Softmax { favourable } => {
                let classes = logits.len() / scores.len().max(1);
                for (score, logits) in scores.iter_mut().zip(logits.chunks_exact(classes.max(1))) {
                    *score = share(logits, favourable);
                }
            }
        }
    }

    /// `ln(m / (1 - m))` from one point's logits: `z_f - ln sum_{j != f} exp(z_j)` for a softmax.
    pub(crate) fn logit(self, logits: &[f32]) -> f32 {
        match self {
            Self::Sigmoid { favourable } => {
                if favourable {
                    logits[0]
                } else {
                    -logits[0]
                }
            }
            Self::Softmax { favourable } => {
                let largest = largest_other(logits, favourable);
                let others = logits.iter().enumerate().filter(|(class, _)| *class != favourable);
                let total: f32 = others.map(|(_, z)| kernel::exp(z - largest)).sum();
                logits[favourable] - largest - libm::logf(total)
            }
        }
    }

    /// Replaces the logits of a point by the cotangents of `factor` times [`logit`](Self::logit).
    pub(super) fn logit_cotangent(self, logits: &mut [f32], factor: f32) {
        match self {
            Self::Sigmoid { favourable } => logits[0] = if favourable { factor } else { -factor },
            Self::Softmax { favourable } => {
                let largest = largest_other(logits, favourable);
                logits[favourable] = f32::NEG_INFINITY;
                let total: f32 = logits.iter().map(|z| kernel::exp(z - largest)).sum();
                for z in logits.iter_mut() {
                    *z = -factor * kernel::exp(*z - largest) / total;
                }
                logits[favourable] = factor;
            }
        }
    }

    /// Replaces the logits of a point that scores `score` by `factor * dm/dz`.
    pub(super) fn cotangent(self, score: f32, logits: &mut [f32], factor: f32) {
        match self {
            Self::Sigmoid { favourable } => {
                let slope = factor * score * (1.0 - score);
                logits[0] = if favourable { slope } else { -slope };
            }
            Self::Softmax { favourable } => {
                softmax(logits);
                for (class, p) in logits.iter_mut().enumerate() {
                    *p = factor * score * (f32::from(u8::from(class == favourable)) - *p);
                }
            }
        }
    }
}

/// The largest logit of another class.
fn largest_other(logits: &[f32], class: usize) -> f32 {
    let others = logits.iter().enumerate().filter(|(other, _)| *other != class);
    others.fold(f32::NEG_INFINITY, |largest, (_, &z)| largest.max(z))
}

/// `exp(z_j) / sum_i exp(z_i)`, shifted by the largest logit so that nothing overflows.
fn share(logits: &[f32], class: usize) -> f32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|z| kernel::exp(z - largest)).sum();
    kernel::exp(logits[class] - largest) / total
}

/// Replaces logits by probabilities.
pub(crate) fn softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for z in logits.iter_mut() {
        *z = kernel::exp(*z - largest);
        total += *z;
    }
    for p in logits {
        *p /= total;
    }
}

/// A hidden layer in the layout of the kernels.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hidden {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// `W` in panels.
    pub(crate) weights: Vec<Line>,
    /// `W^T` in panels.
    pub(crate) transposed: Vec<Line>,
    pub(crate) bias: Vec<Line>,
    pub(crate) activation: Activation,
}

impl Hidden {
    /// The lines of one row of this layer's values.
    pub(crate) fn width(&self) -> usize {
        kernel::lines_for(self.outputs)
    }

    /// `sums = input W + b`
    pub(crate) fn sums(&self, rows: usize, input: Left, sums: &mut [Line]) {
        kernel::product(
            [rows, self.inputs, self.width()],
            input,
            Right { lines: &self.weights, panel: self.inputs, step: 1 },
            &mut Out { lines: sums, row: self.width(), panel: 1 },
            Some(&self.bias),
        );
    }

    /// `gradient of the input = gradient of the sums W^T`
    pub(crate) fn input_gradient(&self, rows: usize, of_sums: &[Line], of_input: &mut [Line]) {
        let width = kernel::lines_for(self.inputs);
        kernel::product(
            [rows, self.outputs, width],
            rows_of(of_sums, self.width()),
            Right { lines: &self.transposed, panel: self.outputs, step: 1 },
            &mut Out { lines: of_input, row: width, panel: 1 },
            None,
        );
    }

    pub(crate) fn refresh_transposed(&mut self) {
        kernel::transpose(self.inputs, self.outputs, &self.weights, &mut self.transposed);
    }
}

/// Rows of `width` lines as the left side of a product.
pub(crate) fn rows_of(lines: &[Line], width: usize) -> Left<'_> {
    Left { values: kernel::flat(lines), row: width * kernel::LANES, step: 1 }
}

/// The last layer in the layout of the kernels: one row of weights per logit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    pub(crate) inputs: usize,
    pub(crate) classes: usize,
    pub(crate) weights: Vec<Line>,
    pub(crate) bias: Vec<Line>,
}

impl Head {
    /// The lines of one row of inputs.
    pub(crate) fn width(&self) -> usize {
        kernel::lines_for(self.inputs)
    }

    /// `logits[r] = values[r] W + b`
    pub(crate) fn logits(&self, values: &[Line], logits: &mut [f32]) {
        let bias = &kernel::flat(&self.bias)[..self.classes];
        kernel::logits(self.width(), values, &self.weights, bias, logits);
    }
}

/// A stack of dense layers that scores points. Two networks are equal if all their
/// weights are.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    pub(super) dim: usize,
    pub(crate) hidden: Vec<Hidden>,
    pub(crate) head: Head,
    output: Output,
}

impl Mlp {
    /// A network from its layers, first to last.
    ///
    /// The last layer makes the logits, so its activation must be the identity. Sizes must
    /// fit, and every number must be finite.
    pub fn new(dim: usize, layers: &[Dense], output: Output) -> Result<Self> {
        let Some((last, hidden)) = layers.split_last() else {
            return Err(Error::InvalidModel("a network needs at least one layer".into()));
        };
        let mut inputs = dim;
        let mut stack = Vec::with_capacity(hidden.len());
        for (index, layer) in hidden.iter().enumerate() {
            stack.push(pack(index, layer, inputs)?);
            inputs = layer.bias.len();
        }
        if last.activation != Activation::Identity {
            return Err(Error::InvalidModel(format!(
                "the last layer makes the logits, so its activation must be the identity, not {:?}",
                last.activation
            )));
        }
        check(hidden.len(), last, inputs)?;
        let classes = last.bias.len();
        match output {
            Output::Sigmoid { .. } if classes != 1 => {
                return Err(Error::Dimension {
                    what: "logits of a sigmoid output".into(),
                    expected: 1,
                    got: classes,
                });
            }
            Output::Softmax { favourable } if classes < 2 || favourable >= classes => {
                return Err(Error::InvalidModel(format!(
                    "a softmax needs at least two logits and a favourable class among them; \
                     there are {classes}, and the favourable class is number {favourable}"
                )));
            }
            _ => {}
        }
        let width = kernel::lines_for(inputs);
        let mut weights = kernel::zeros(classes * width);
        for (input, row) in last.weights.chunks_exact(classes).enumerate() {
            for (class, &weight) in row.iter().enumerate() {
                kernel::flat_mut(&mut weights[class * width..(class + 1) * width])[input] = weight;
            }
        }
        let mut bias = kernel::zeros(kernel::lines_for(classes));
        kernel::flat_mut(&mut bias)[..classes].copy_from_slice(&last.bias);
        let head = Head { inputs, classes, weights, bias };
        Ok(Self { dim, hidden: stack, head, output })
    }

    /// `sigmoid(weights . x + bias)`: a model without hidden layers.
    pub fn linear(weights: Vec<f32>, bias: f32) -> Result<Self> {
        let dim = weights.len();
        let layer = Dense { weights, bias: vec![bias], activation: Activation::Identity };
        Self::new(dim, &[layer], Output::Sigmoid { favourable: true })
    }

    /// The layers, first to last, as [`Mlp::new`] takes them.
    pub fn layers(&self) -> Vec<Dense> {
        let mut layers: Vec<Dense> = self.hidden.iter().map(unpack).collect();
        let head = &self.head;
        let mut weights = Vec::with_capacity(head.inputs * head.classes);
        for input in 0..head.inputs {
            for row in head.weights.chunks_exact(head.width()) {
                weights.push(kernel::flat(row)[input]);
            }
        }
        let bias = kernel::flat(&head.bias)[..head.classes].to_vec();
        layers.push(Dense { weights, bias, activation: Activation::Identity });
        layers
    }

    /// How logits become a probability.
    pub fn output(&self) -> Output {
        self.output
    }

    /// The number of logits: one for a sigmoid output, one per class for a softmax.
    pub fn classes(&self) -> usize {
        self.head.classes
    }

    /// The number of weights and biases.
    pub fn parameters(&self) -> usize {
        let hidden: usize = self.hidden.iter().map(|l| (l.inputs + 1) * l.outputs).sum();
        hidden + (self.head.inputs + 1) * self.head.classes
    }

    /// Whether every weight is a finite number. True of every network that was made by
    /// [`Mlp::new`]; training checks it before it returns a network.
    pub(super) fn is_finite(&self) -> bool {
        let hidden = self.hidden.iter().flat_map(|layer| [&layer.weights, &layer.bias]);
        let mut all = hidden.chain([&self.head.weights, &self.head.bias]);
        all.all(|lines| kernel::flat(lines).iter().all(|weight| weight.is_finite()))
    }

    /// The logits of every point, point by point.
    ///
    /// # Panics
    /// If the points are of another dimension.
    pub fn logits(&self, points: &Points) -> Vec<f32> {
        let mut logits = vec![0.0; points.len() * self.classes()];
        self.for_each_block(points, &mut logits, self.classes(), |pass, rows, block, logits| {
            pass.forward(self, rows, block, false);
            logits.copy_from_slice(&pass.logits[..logits.len()]);
        });
        logits
    }

    /// The probability of every class for every point, point by point. With a sigmoid
    /// output these are the unfavourable class and the favourable one.
    ///
    /// # Panics
    /// If the points are of another dimension.
    pub fn probabilities(&self, points: &Points) -> Vec<f32> {
        match self.output {
            Output::Sigmoid { .. } => {
                self.score(points).into_iter().flat_map(|p| [1.0 - p, p]).collect()
            }
            Output::Softmax { .. } => {
                let mut logits = self.logits(points);
                logits.chunks_exact_mut(self.classes()).for_each(softmax);
                logits
            }
        }
    }

    /// The vector-Jacobian product of the logits: for every point, `sum_j v_j dz_j/dx`,
    /// with one `v` of [`classes`](Self::classes) numbers per point.
    ///
    /// # Panics
    /// If a size does not match.
    pub fn logits_vjp(&self, points: &Points, cotangents: &[f32]) -> Points {
        assert_eq!(cotangents.len(), points.len() * self.classes(), "one cotangent per logit");
        let mut gradients = Points::zeros(points.len(), self.dim);
        let classes = self.classes();
        self.for_each_block(
            points,
            gradients.as_mut_slice(),
            self.dim,
            |pass, rows, block, out| {
                pass.forward(self, rows, block, true);
                let first = block.first * classes;
                pass.logits[..rows * classes]
                    .copy_from_slice(&cotangents[first..first + rows * classes]);
                pass.backward(self, rows, out);
            },
        );
        gradients
    }

    /// Runs `work` on every block of points and its part of `out`, which has `per_point`
    /// numbers per point; on many threads if there are many blocks.
    fn for_each_block(
        &self,
        points: &Points,
        out: &mut [f32],
        per_point: usize,
        work: impl Fn(&mut Pass, usize, Block, &mut [f32]) + Sync,
    ) {
        assert_eq!(points.dim(), self.dim, "the dimension of the points");
        assert_eq!(out.len(), points.len() * per_point, "the length of the output");
        let values = points.as_slice();
        let step = BLOCK * self.dim;
        let run = |pass: &mut Pass, index: usize, out: &mut [f32]| {
            let rows = out.len() / per_point;
            let block = Block {
                first: index * BLOCK,
                values: &values[index * step..index * step + rows * self.dim],
            };
            work(pass, rows, block, out);
        };
        let chunk = BLOCK * per_point;
        if points.len() < PARALLEL_BLOCKS * BLOCK {
            let mut pass = Pass::new(self, BLOCK.min(points.len()));
            for (index, out) in out.chunks_mut(chunk).enumerate() {
                run(&mut pass, index, out);
            }
        } else {
            out.par_chunks_mut(chunk).enumerate().for_each_init(
                || Pass::new(self, BLOCK),
                |pass, (index, out)| run(pass, index, out),
            );
        }
    }
}

impl Model for Mlp {
    fn dim(&self) -> usize {
        self.dim
    }

    fn differentiable(&self) -> Option<&dyn DifferentiableModel> {
        Some(self)
    }

    fn network(&self) -> Option<&Mlp> {
        Some(self)
    }

    fn summary(&self) -> ModelSummary {
        ModelSummary::of_network(self)
    }

    fn identity(&self) -> Option<Fingerprint> {
        Some(self.fingerprint())
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        let classes = self.classes();
        self.for_each_block(points, scores, 1, |pass, rows, block, scores| {
            pass.forward(self, rows, block, false);
            self.output.scores(&pass.logits[..rows * classes], scores);
        });
    }
}

impl DifferentiableModel for Mlp {
    fn vjp_into(
        &self,
        points: &Points,
        cotangents: &[f32],
        scores: &mut [f32],
        gradients: &mut Points,
    ) {
        assert_eq!(cotangents.len(), points.len(), "one cotangent per point");
        assert_eq!(scores.len(), points.len(), "one score per point");
        let (classes, dim) = (self.classes(), self.dim);
        // Score and gradient of a point side by side, so that one pass over blocks fills both.
        let mut both = vec![0.0; points.len() * (dim + 1)];
        self.for_each_block(points, &mut both, dim + 1, |pass, rows, block, both| {
            pass.forward(self, rows, block, true);
            let (block_scores, block_gradients) = both.split_at_mut(rows);
            self.output.scores(&pass.logits[..rows * classes], block_scores);
            let logits = pass.logits.chunks_exact_mut(classes);
            let factors = &cotangents[block.first..];
            for ((score, logits), factor) in block_scores.iter().zip(logits).zip(factors) {
                self.output.cotangent(*score, logits, *factor);
            }
            pass.backward(self, rows, block_gradients);
        });
        for ((both, scores), gradients) in both
            .chunks(BLOCK * (dim + 1))
            .zip(scores.chunks_mut(BLOCK))
            .zip(gradients.as_mut_slice().chunks_mut(BLOCK * dim))
        {
            let (block_scores, block_gradients) = both.split_at(scores.len());
            scores.copy_from_slice(block_scores);
            gradients.copy_from_slice(block_gradients);
        }
    }
}

/// Copies rows of `dim` numbers into rows of whole lines.
pub(crate) fn pad_rows(rows: &[f32], dim: usize, padded: &mut [Line]) {
    let width = kernel::lines_for(dim);
    for (row, padded) in rows.chunks_exact(dim).zip(padded.chunks_exact_mut(width)) {
        kernel::flat_mut(padded)[..dim].copy_from_slice(row);
    }
}

fn check(index: usize, layer: &Dense, inputs: usize) -> Result<()> {
    let outputs = layer.bias.len();
    if inputs == 0 || outputs == 0 {
        return Err(Error::InvalidModel(format!("layer {index} has no inputs or no outputs")));
    }
    if inputs.checked_mul(outputs) != Some(layer.weights.len()) {
        return Err(Error::Dimension {
            what: format!("weights of layer {index} ({inputs} inputs, {outputs} outputs)"),
            expected: inputs.saturating_mul(outputs),
            got: layer.weights.len(),
        });
    }
    if !layer.weights.iter().chain(&layer.bias).all(|w| w.is_finite()) {
        return Err(Error::InvalidModel(format!("layer {index} has a weight that is not finite")));
    }
    if let Some(problem) = layer.activation.problem() {
        return Err(Error::InvalidModel(format!("layer {index}: {problem}")));
    }
    Ok(())
}

fn pack(index: usize, layer: &Dense, inputs: usize) -> Result<Hidden> {
    check(index, layer, inputs)?;
    let outputs = layer.bias.len();
    let width = kernel::lines_for(outputs);
    let mut weights = kernel::zeros(width * inputs);
    for (input, row) in layer.weights.chunks_exact(outputs).enumerate() {
        for (panel, part) in row.chunks(kernel::LANES).enumerate() {
            weights[panel * inputs + input].0[..part.len()].copy_from_slice(part);
        }
    }
    let mut bias = kernel::zeros(width);
    kernel::flat_mut(&mut bias)[..outputs].copy_from_slice(&layer.bias);
    let transposed = kernel::zeros(kernel::lines_for(inputs) * outputs);
    let mut packed =
        Hidden { inputs, outputs, weights, transposed, bias, activation: layer.activation };
    packed.refresh_transposed();
    Ok(packed)
}

fn unpack(layer: &Hidden) -> Dense {
    let mut weights = vec![0.0; layer.inputs * layer.outputs];
    for (input, row) in weights.chunks_exact_mut(layer.outputs).enumerate() {
        for (panel, part) in row.chunks_mut(kernel::LANES).enumerate() {
            part.copy_from_slice(&layer.weights[panel * layer.inputs + input].0[..part.len()]);
        }
    }
    let bias = kernel::flat(&layer.bias)[..layer.outputs].to_vec();
    Dense { weights, bias, activation: layer.activation }
}
