//! Many models, evaluated at one point.
//!
//! A search over models needs the logit `z_s(x)` of every model at each of its steps, and the
//! gradient `sum_s w_s dz_s(x)/dx` for weights that are zero for most models. The first layers of
//! the networks stand side by side, so one product gives the sums of all of them, and only models
//! with a weight have a backward pass.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::kernel::{self, Left, Line, Out, Right};
use super::pass::{Block, Pass};
use super::{Mlp, Model};
use crate::error::{Error, Result};
use crate::points::Points;

/// Models of the same points.
#[derive(Clone)]
pub(crate) struct Committee {
    dim: usize,
    models: Vec<Arc<dyn Model>>,
    /// The columns of the models' first layers in `weights`; empty for a model without one.
    places: Vec<Range<usize>>,
    /// `W_1` of all networks, in panels.
    weights: Vec<Line>,
    /// `b_1` of all networks.
    bias: Vec<Line>,
}

/// The scratch space of one thread for a [`Committee`].
pub(crate) struct CommitteeScratch {
    sums: Vec<Line>,
    /// The values of each network, from its last forward pass.
    passes: Vec<Option<Pass>>,
    logits: Vec<f32>,
    gradient: Vec<f32>,
    of_point: Vec<Line>,
}

impl CommitteeScratch {
    /// The logits of the last point that each model read.
    pub(crate) fn last_logits(&self) -> &[f32] {
        &self.logits
    }
}

impl fmt::Debug for Committee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committee").field("models", &self.models.len()).finish_non_exhaustive()
    }
}

impl Committee {
    /// At least one model; all take points of the same dimension.
    pub(crate) fn new(models: Vec<Arc<dyn Model>>) -> Result<Self> {
        let Some(first) = models.first() else {
            return Err(Error::param("models", 0, "at least 1"));
        };
        let dim = first.dim();
        if let Some(other) = models.iter().find(|model| model.dim() != dim) {
            return Err(Error::Dimension {
                what: "coordinates that a model takes".to_owned(),
                expected: dim,
                got: other.dim(),
            });
        }
        let (mut weights, mut bias, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for model in &models {
            let start = bias.len();
            if let Some(layer) = model.network().and_then(|network| network.hidden.first()) {
                weights.extend_from_slice(&layer.weights);
                bias.extend_from_slice(&layer.bias);
            }
            places.push(start..bias.len());
        }
        Ok(Self { dim, models, places, weights, bias })
    }

    /// The models.
    pub(crate) fn models(&self) -> &[Arc<dyn Model>] {
        &self.models
    }

    /// The number of coordinates of a point.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// Scratch space for one thread.
    pub(crate) fn scratch(&self) -> CommitteeScratch {
        let pass = |model: &Arc<dyn Model>| model.network().map(|network| Pass::new(network, 1));
        CommitteeScratch {
            sums: kernel::zeros(self.bias.len()),
            passes: self.models.iter().map(pass).collect(),
            logits: vec![0.0; self.models.len()],
            gradient: vec![0.0; self.dim],
            of_point: kernel::zeros(kernel::lines_for(self.dim)),
        }
    }

    /// The logit of the favourable class by every model, at one point.
    pub(crate) fn logits<'s>(&self, x: &[f32], scratch: &'s mut CommitteeScratch) -> &'s [f32] {
        self.first_sums(0..self.bias.len(), x, scratch);
        (0..self.models.len()).for_each(|index| self.forward(index, x, scratch));
        &scratch.logits
    }

    /// The same by some of the models only, in the places of the models; the logits of the others
    /// are those of an earlier point.
    pub(crate) fn logits_by<'s>(
        &self,
        models: &[usize],
        x: &[f32],
        scratch: &'s mut CommitteeScratch,
    ) -> &'s [f32] {
        for &index in models {
            self.first_sums(self.places[index].clone(), x, scratch);
            self.forward(index, x, scratch);
        }
        &scratch.logits
    }

    /// The sums of some columns of the first layers.
    fn first_sums(&self, columns: Range<usize>, x: &[f32], scratch: &mut CommitteeScratch) {
        assert_eq!(x.len(), self.dim, "the dimension of the point");
        let width = columns.len();
        kernel::product(
            [1, self.dim, width],
            Left { values: x, row: self.dim, step: 1 },
            Right { lines: &self.weights[self.dim * columns.start..], panel: self.dim, step: 1 },
            &mut Out { lines: &mut scratch.sums[columns.clone()], row: width, panel: 1 },
            Some(&self.bias[columns]),
        );
    }

    /// The logit of one model, from the sums of its first layer if it is a network.
    fn forward(&self, index: usize, x: &[f32], scratch: &mut CommitteeScratch) {
        let CommitteeScratch { sums, passes, logits, .. } = scratch;
        let model = &self.models[index];
        logits[index] = match (model.network(), &mut passes[index]) {
            (Some(network), Some(pass)) => {
                if network.hidden.is_empty() {
                    pass.forward(network, 1, Block { first: 0, values: x }, true);
                } else {
                    pass.values[0].copy_from_slice(&sums[self.places[index].clone()]);
                    pass.forward_from_sums(network, 1, true);
                }
                network.output().logit(&pass.logits)
            }
            _ => match model.trees() {
                Some(trees) => trees.logit(x),
                None => of_score(model.score(&Points::one(x))[0]),
            },
        };
    }

    /// `m(x)` by one model, at the point of the last call of [`logits`](Self::logits).
    pub(crate) fn score(&self, index: usize, x: &[f32], scratch: &CommitteeScratch) -> f32 {
        let model = &self.models[index];
        match (model.network(), &scratch.passes[index]) {
            (Some(network), Some(pass)) => network.output().score(&pass.logits),
            _ => model.score(&Points::one(x))[0],
        }
    }

    /// Writes `sum_s w_s dz_s/dx` to `gradient`, for `(s, w_s)` in order, at the point of the last
    /// call of [`logits`](Self::logits). A model without gradients adds nothing.
    pub(crate) fn gradient(
        &self,
        x: &[f32],
        weights: impl Iterator<Item = (usize, f32)>,
        scratch: &mut CommitteeScratch,
        gradient: &mut [f32],
    ) {
        gradient.fill(0.0);
        for (index, weight) in weights {
            let model = &self.models[index];
            match (model.network(), &mut scratch.passes[index]) {
                (Some(network), Some(pass)) => {
                    network.output().logit_cotangent(&mut pass.logits, weight);
                    backward(network, pass, &mut scratch.of_point, &mut scratch.gradient);
                }
                _ => {
                    let Some(model) = model.differentiable() else { continue };
                    let (scores, gradients) = model.score_and_gradient(&Points::one(x));
                    let slope = weight / (scores[0] * (1.0 - scores[0])).max(LEAST_SLOPE);
                    let scaled = gradients.row(0).iter().map(|partial| slope * partial);
                    scratch.gradient.iter_mut().zip(scaled).for_each(|(to, from)| *to = from);
                }
            }
            gradient.iter_mut().zip(&scratch.gradient).for_each(|(total, part)| *total += part);
        }
    }

    /// The logits of many points, model by model, with the bits of [`logits`](Self::logits).
    pub(crate) fn logits_of(&self, points: &Points) -> Vec<Vec<f32>> {
        let of_model = |model: &Arc<dyn Model>| match model.network() {
            Some(network) => {
                let logits = network.logits(points);
                let each = logits.chunks_exact(network.classes());
                each.map(|logits| network.output().logit(logits)).collect()
            }
            None => match model.trees() {
                Some(trees) => {
                    let mut logits = vec![0.0; points.len()];
                    trees.logit_into(points, &mut logits);
                    logits
                }
                None => model.score(points).into_iter().map(of_score).collect(),
            },
        };
        self.models.iter().map(of_model).collect()
    }
}

/// The gradient of a network's logit, from its cotangents in the pass.
fn backward(network: &Mlp, pass: &mut Pass, of_point: &mut [Line], gradient: &mut [f32]) {
    let of_sums = pass.backward_to_sums(network, 1);
    let padded = match network.hidden.first() {
        Some(first) => {
            first.input_gradient(1, of_sums, of_point);
            &*of_point
        }
        None => of_sums,
    };
    gradient.copy_from_slice(&kernel::flat(padded)[..gradient.len()]);
}

/// The least `m (1 - m)` by which a gradient of a score is divided.
const LEAST_SLOPE: f32 = 1e-12;

/// The logit of a score, at most 27.6 from zero.
pub(super) fn of_score(score: f32) -> f32 {
    of_probability(score.into()) as f32
}

/// The same in double precision.
pub(super) fn of_probability(score: f64) -> f64 {
    libm::log(score.max(1e-12)) - libm::log((1.0 - score).max(1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Activation, Dense, Output};
    use crate::seed::Seed;
    use proptest::prelude::*;
    use rand::RngExt;

    /// A network with random weights.
    fn network(widths: &[usize], activation: Activation, output: Output, seed: u64) -> Mlp {
        let mut rng = Seed(seed).rng();
        let last = widths.len() - 2;
        let layers: Vec<Dense> = widths
            .windows(2)
            .enumerate()
            .map(|(index, pair)| Dense {
                weights: (0..pair[0] * pair[1]).map(|_| rng.random_range(-0.8..0.8)).collect(),
                bias: (0..pair[1]).map(|_| rng.random_range(-0.5..0.5)).collect(),
                activation: if index == last { Activation::Identity } else { activation },
            })
            .collect();
        Mlp::new(widths[0], &layers, output).unwrap()
    }

    /// A model that hides its network.
    #[derive(Debug)]
    struct Hidden(Mlp);

    impl Model for Hidden {
        fn dim(&self) -> usize {
            self.0.dim()
        }

        fn score_into(&self, points: &Points, scores: &mut [f32]) {
            self.0.score_into(points, scores);
        }

        fn differentiable(&self) -> Option<&dyn crate::model::DifferentiableModel> {
            self.0.differentiable()
        }
    }

    /// Networks of other shapes, outputs and activations, and a model of another kind.
    fn committee(seed: u64) -> Committee {
        let one = Output::Sigmoid { favourable: true };
        let models: Vec<Arc<dyn Model>> = vec![
            Arc::new(network(&[5, 20, 9, 1], Activation::Tanh, one, seed)),
            Arc::new(network(&[5, 1], Activation::Tanh, one, seed + 1)),
            Arc::new(network(
                &[5, 7, 1],
                Activation::Sigmoid,
                Output::Sigmoid { favourable: false },
                seed + 2,
            )),
            Arc::new(network(
                &[5, 17, 3],
                Activation::Tanh,
                Output::Softmax { favourable: 2 },
                seed + 3,
            )),
            Arc::new(network(
                &[5, 4, 2],
                Activation::Tanh,
                Output::Softmax { favourable: 0 },
                seed + 4,
            )),
            Arc::new(Hidden(network(&[5, 6, 1], Activation::Tanh, one, seed + 5))),
        ];
        Committee::new(models).unwrap()
    }

    proptest! {
        #[test]
        fn logits_are_those_of_the_scores(
            x in prop::collection::vec(-1.0..1.0_f32, 5), seed in 0..1000_u64,
        ) {
            let committee = committee(seed);
            let mut scratch = committee.scratch();
            let logits = committee.logits(&x, &mut scratch).to_vec();
            let many = committee.logits_of(&Points::one(&x));
            for (index, model) in committee.models().iter().enumerate() {
                let score = model.score(&Points::one(&x))[0];
                prop_assert_eq!(committee.score(index, &x, &scratch), score);
                prop_assert!((logits[index] - of_score(score)).abs() < 2e-4, "model {}", index);
                prop_assert_eq!(logits[index].to_bits(), many[index][0].to_bits());
            }
            let other: Vec<f32> = x.iter().map(|x| x + 0.5).collect();
            let there = committee.logits(&other, &mut committee.scratch()).to_vec();
            let some = committee.logits_by(&[0, 3, 5], &other, &mut scratch);
            for (index, logit) in some.iter().enumerate() {
                let expected = if [0, 3, 5].contains(&index) { &there } else { &logits };
                prop_assert_eq!(logit.to_bits(), expected[index].to_bits());
            }
        }

        #[test]
        fn the_gradient_is_that_of_the_weighted_logits(
            x in prop::collection::vec(-1.0..1.0_f32, 5),
            weights in prop::collection::vec(-1.0..1.0_f32, 6),
            seed in 0..1000_u64,
        ) {
            let committee = committee(seed);
            let mut scratch = committee.scratch();
            let mut sum = |x: &[f32]| -> f64 {
                let logits = committee.logits(x, &mut scratch);
                logits.iter().zip(&weights).map(|(&z, &w)| f64::from(z) * f64::from(w)).sum()
            };
            const H: f32 = 1e-2;
            let differences: Vec<f64> = (0..5).map(|column| {
                let (mut above, mut below) = (x.clone(), x.clone());
                above[column] += H;
                below[column] -= H;
                (sum(&above) - sum(&below)) / f64::from(above[column] - below[column])
            }).collect();
            sum(&x);
            let mut gradient = vec![0.0; 5];
            let weights = weights.iter().copied().enumerate();
            committee.gradient(&x, weights, &mut scratch, &mut gradient);
            for (partial, difference) in gradient.iter().zip(differences) {
                prop_assert!((f64::from(*partial) - difference).abs() < 3e-3,
                    "{} {}", partial, difference);
            }
        }
    }

    #[test]
    fn models_of_other_points_and_no_models_are_refused() {
        assert!(Committee::new(Vec::new()).is_err());
        let one = Output::Sigmoid { favourable: true };
        let model =
            |dim| -> Arc<dyn Model> { Arc::new(network(&[dim, 3, 1], Activation::Relu, one, 0)) };
        assert!(Committee::new(vec![model(2), model(3)]).is_err());
    }
}
