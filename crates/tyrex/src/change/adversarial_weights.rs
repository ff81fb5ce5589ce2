//! Weights moved against random rows within a slack of the training loss, without training.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::fine_tune::start;
use super::member::{Base, Change, Member};
use crate::error::{Error, Result};
use crate::model::train::{Job, Objective, WeightGradients, parameters, with_parameters};
use crate::model::{Mlp, Model, THRESHOLD, TrainParams};
use crate::seed::Seed;

/// `min_w mean_{x in T} logit(M_w(x))` subject to `L(w) <= (1 + slack) L(w_0)`, from the base's
/// weights `w_0`. `T` is a set of training rows that the base accepts, drawn anew for each member,
/// and `L` the mean cross-entropy of the training rows, with their weights and without the L2
/// penalty.
///
/// The minimum is approached by projected gradient steps of adaptive length: a step against the
/// gradient of the logit is projected onto the linearised constraint, and a step that breaks the
/// constraint is followed by one step back along the gradient of the loss. Every member satisfies
/// the constraint.
///
/// In the literature (adversarial weight perturbation, which explores the models of almost equal
/// loss) each row of a test set is the target of one model, in both directions. Here the targets
/// are drawn from the training rows, so that members are random and exchangeable, and their scores
/// are lowered, which is the direction that invalidates advice. If the base accepts no training
/// row, any of them may be drawn.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `slack` | 0.1 | the allowed increase of the training loss, as a share of it | positive |
/// | `targets` | 1 | rows whose scores are lowered; all candidates, if there are fewer | at least 1 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AdversarialWeights {
    /// The allowed increase of the training loss, as a share of it.
    pub slack: f64,
    /// The number of rows whose scores are lowered.
    pub targets: usize,
}

/// The number of steps.
const STEPS: usize = 30;
/// The length of the first step, as a share of the norm of the weights.
const FIRST: f64 = 0.02;
/// The longest step, as a share of the norm of the weights.
const LONGEST: f64 = 0.5;
/// Rows per pass of the network; it has no effect but on speed.
const BATCH: usize = 256;

impl Default for AdversarialWeights {
    fn default() -> Self {
        Self { slack: 0.1, targets: 1 }
    }
}

impl Change for AdversarialWeights {
    fn description(&self) -> String {
        format!(
            "weights moved against {} of the accepted training rows, drawn at random, while the \
             training loss rises by at most {} %",
            self.targets,
            100.0 * self.slack
        )
    }

    fn check(&self, base: &Base<'_>) -> Result<()> {
        if !(self.slack > 0.0 && self.slack.is_finite()) {
            return Err(Error::param("slack", self.slack, "a positive number"));
        }
        if self.targets == 0 {
            return Err(Error::param("targets", 0, "at least 1"));
        }
        if base.rows.is_empty() {
            return Err(Error::param("rows", 0, "at least 1 to draw targets from"));
        }
        start(base).map(drop)
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let (network, output) = start(base)?;
        let params = TrainParams {
            hidden: network.hidden.iter().map(|layer| layer.outputs).collect(),
            output,
            batch: BATCH,
            dropout: 0.0,
            early_stopping: None,
            ..base.params.clone()
        };
        let examples = base.examples.with_rows(base.rows);
        let job = Job { examples, params: &params, seed, start: Some(&network) };
        let mut ascent = Ascent {
            gradients: WeightGradients::new(&job)?,
            rows: base.rows,
            targets: self.targets(base, seed),
        };
        ascent.run(&network, self.slack).map(Member::Made)
    }

    fn repeats(&self) -> bool {
        true
    }

    fn epochs(&self, _: &TrainParams) -> f64 {
        0.0
    }
}

impl AdversarialWeights {
    /// The rows of a member whose scores are lowered.
    fn targets(self, base: &Base<'_>, seed: Seed) -> Vec<usize> {
        let scores = base.network.score(&base.examples.points.select(base.rows));
        let accepted = base.rows.iter().zip(scores).filter(|(_, score)| *score >= THRESHOLD);
        let mut candidates: Vec<usize> = accepted.map(|(&row, _)| row).collect();
        if candidates.is_empty() {
            candidates = base.rows.to_vec();
        }
        let mut rng = seed.derive("adversarial-weights").rng();
        let (drawn, _) = candidates.partial_shuffle(&mut rng, self.targets);
        drawn.to_vec()
    }
}

/// The search for the weights of one member.
struct Ascent<'a> {
    gradients: WeightGradients<'a>,
    rows: &'a [usize],
    targets: Vec<usize>,
}

/// A network that the search has reached.
struct Reached {
    network: Mlp,
    weights: Vec<f64>,
    loss: f64,
    of_loss: Vec<f64>,
    logit: f64,
    of_logit: Vec<f64>,
}

impl Ascent<'_> {
    /// The last network that lowered the logit of the targets within the slack.
    fn run(&mut self, base: &Mlp, slack: f64) -> Result<Mlp> {
        let mut reached = self.at(base.clone());
        let most = (1.0 + slack) * reached.loss;
        let norm = dot(&reached.weights, &reached.weights).sqrt();
        let (mut length, mut growth) = (FIRST * norm, 1.5);
        for _ in 0..STEPS {
            let mut next = self.moved(&reached, &step(&reached, length, most))?;
            if let Some(beyond) = next.take_if(|next| next.loss > most) {
                // Near the constraint longer steps only lead back further.
                growth = 1.0;
                // Twice Newton's step to the constraint, since the loss curves upwards.
                let factor = -2.0 * (beyond.loss - most) / dot(&beyond.of_loss, &beyond.of_loss);
                let back: Vec<f64> = beyond.of_loss.iter().map(|slope| factor * slope).collect();
                next = self.moved(&beyond, &back)?;
            }
            match next {
                Some(next) if next.loss <= most && next.logit < reached.logit => {
                    reached = next;
                    length = (growth * length).min(LONGEST * norm);
                }
                _ => length /= 2.0,
            }
        }
        Ok(reached.network)
    }

    fn at(&mut self, network: Mlp) -> Reached {
        let (loss, of_loss) = self.gradients.at(network.clone(), self.rows, Objective::Loss);
        let (logit, of_logit) = self.gradients.at(network.clone(), &self.targets, Objective::Logit);
        let weights = parameters(&network.layers());
        Reached { network, weights, loss, of_loss, logit, of_logit }
    }

    /// The network after a step; `None` if it is not one of finite numbers.
    fn moved(&mut self, from: &Reached, step: &[f64]) -> Result<Option<Reached>> {
        let weights: Vec<f64> = from.weights.iter().zip(step).map(|(w, s)| w + s).collect();
        if !weights.iter().all(|weight| (*weight as f32).is_finite()) {
            return Ok(None);
        }
        let network = &from.network;
        let layers = with_parameters(&network.layers(), &weights);
        let network = Mlp::new(network.dim(), &layers, network.output())?;
        Ok(Some(self.at(network)))
    }
}

/// The step of this length against the gradient of the logit, projected onto the weights `w + s` of
/// which the linearised loss is at most `most`.
fn step(from: &Reached, length: f64, most: f64) -> Vec<f64> {
    let Reached { loss, of_loss, of_logit, .. } = from;
    let steepest = dot(of_logit, of_logit).sqrt().max(f64::MIN_POSITIVE);
    let mut step: Vec<f64> = of_logit.iter().map(|slope| -length * slope / steepest).collect();
    let (excess, squared) = (loss + dot(of_loss, &step) - most, dot(of_loss, of_loss));
    if excess > 0.0 && squared > 0.0 {
        for (step, slope) in step.iter_mut().zip(of_loss) {
            *step -= excess / squared * slope;
        }
    }
    step
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::{Sample, made};
    use crate::model::train::OutputLayer;
    use crate::model::{Activation, Dense, Examples, Output, train};
    use crate::points::Points;
    use rand::RngExt;

    /// Two noisy clouds, and a network that was trained on the even rows.
    fn trained(hidden: &[usize], softmax: bool) -> Sample {
        let mut rng = Seed(3).rng();
        let (mut points, mut labels) = (Points::new(3), Vec::new());
        for row in 0..240 {
            let side = (row / 2 % 2) as f32;
            let mut near = |centre: f32| centre + rng.random_range(-0.7_f32..0.7);
            points.push(&[near(side), near(1.0 - side), near(0.5)]);
            labels.push(row / 2 % 2);
        }
        let softmax = softmax.then_some(OutputLayer::Softmax { classes: 2, favourable: 1 });
        let output = softmax.unwrap_or(OutputLayer::Sigmoid);
        let hidden = hidden.to_vec();
        let params = TrainParams { hidden, output, epochs: 20, ..TrainParams::paper() };
        let plain = Sample::new(120);
        let examples = Examples::new(&points, &labels).with_rows(&plain.rows);
        let network = train(examples, &params, Seed(0)).unwrap().network;
        Sample { network, points, labels, params, ..plain }
    }

    /// The mean cross-entropy of the rows that trained the sample, from the scores.
    fn loss(sample: &Sample, network: &Mlp) -> f64 {
        let scores = network.score(&sample.points.select(&sample.rows));
        let of = |(score, &row): (f32, &usize)| {
            let score = f64::from(score);
            -(if sample.labels[row] == 1 { score } else { 1.0 - score }).ln()
        };
        let total: f64 = scores.into_iter().zip(&sample.rows).map(of).sum();
        total / sample.rows.len() as f64
    }

    #[test]
    fn every_member_stays_within_the_slack_and_uses_most_of_it() {
        for (hidden, softmax, targets) in [
            (vec![], false, 1),
            (vec![8], false, 3),
            (vec![12, 12], true, 1),
            (vec![8, 8], false, 500),
        ] {
            let sample = trained(&hidden, softmax);
            let before = loss(&sample, &sample.network);
            for slack in [0.02, 0.1, 1.0] {
                let change = AdversarialWeights { slack, targets };
                for number in 0..10 {
                    let after = loss(&sample, &made(&sample, &change, number));
                    let most = (1.0 + slack) * before;
                    assert!(after <= most + 1e-6, "{hidden:?} {slack}: {after} {most}");
                    assert!(after >= before + 0.5 * slack * before, "{slack}: {after} {before}");
                }
            }
        }
    }

    #[test]
    fn targets_fall_further_than_by_noise_of_the_same_size() {
        let sample = trained(&[8, 8], false);
        let change = AdversarialWeights::default();
        let mut rng = Seed(1).rng();
        for number in 0..10 {
            let network = made(&sample, &change, number);
            let [target] = change.targets(&sample.base(), Seed(0).index(number))[..] else {
                panic!("one target")
            };
            let point = sample.points.select(&[target]);
            let logit = |network: &Mlp| f64::from(network.logits(&point)[0]);
            let fall = logit(&sample.network) - logit(&network);
            assert!(fall > 0.0, "{fall}");
            let layers = sample.network.layers();
            let (own, moved) = (parameters(&layers), parameters(&network.layers()));
            let size = own.iter().zip(&moved).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            for _ in 0..50 {
                let noise: Vec<f64> = own.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
                let factor = size / dot(&noise, &noise).sqrt();
                let noisy: Vec<f64> = own.iter().zip(noise).map(|(w, n)| w + factor * n).collect();
                let noisy = with_parameters(&layers, &noisy);
                let noisy = Mlp::new(3, &noisy, sample.network.output()).unwrap();
                assert!(logit(&sample.network) - logit(&noisy) < fall);
            }
        }
    }

    #[test]
    fn every_accepted_row_is_as_likely_a_target() {
        let sample = trained(&[8], false);
        let base = sample.base();
        let scores = sample.network.score(&sample.points);
        let candidates = sample.rows.iter().filter(|&&row| scores[row] >= THRESHOLD).count();
        let mut times = vec![0_usize; 240];
        for number in 0..100 * candidates {
            let change = AdversarialWeights { targets: 3, ..AdversarialWeights::default() };
            let mut targets = change.targets(&base, Seed(0).index(number));
            targets.sort_unstable();
            targets.dedup();
            assert_eq!(targets.len(), 3);
            targets.into_iter().for_each(|row| times[row] += 1);
        }
        for (row, times) in times.into_iter().enumerate() {
            let is_candidate = row % 2 == 0 && scores[row] >= THRESHOLD;
            // 300 expected, with a standard deviation of 17.
            let expected = if is_candidate { 300 } else { 0 };
            assert!(times.abs_diff(expected) <= expected / 3, "row {row}: {times}");
        }
        // All candidates, if more are asked for.
        let all = AdversarialWeights { targets: 500, ..AdversarialWeights::default() };
        assert_eq!(all.targets(&base, Seed(0)).len(), candidates);
    }

    #[test]
    fn a_base_from_elsewhere_is_changed_too() {
        let layer = |inputs: usize, outputs: usize, activation| Dense {
            weights: (0..inputs * outputs).map(|place| (place as f32 - 1.3) * 0.7).collect(),
            bias: (0..outputs).map(|place| place as f32 * 0.2 - 0.1).collect(),
            activation,
        };
        for (output, classes) in
            [(Output::Sigmoid { favourable: false }, 1), (Output::Softmax { favourable: 0 }, 2)]
        {
            let layers = [layer(3, 4, Activation::Tanh), layer(4, classes, Activation::Identity)];
            let network = Mlp::new(3, &layers, output).unwrap();
            let sample = Sample { network, ..trained(&[8], false) };
            let change = AdversarialWeights::default();
            let member = made(&sample, &change, 0);
            let targets = change.targets(&sample.base(), Seed(0).index(0));
            let point = sample.points.select(&targets);
            assert!(member.score(&point)[0] < sample.network.score(&point)[0]);
        }
    }

    #[test]
    fn slacks_and_targets_that_are_none_are_refused() {
        let refused = |slack, targets| {
            let error = Sample::new(9).check(&AdversarialWeights { slack, targets }).unwrap_err();
            error.to_string()
        };
        for slack in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            let expected = format!("parameter `slack` is {slack}, expected a positive number");
            assert_eq!(refused(slack, 1), expected);
        }
        assert_eq!(refused(0.1, 0), "parameter `targets` is 0, expected at least 1");
        let error = Sample::new(0).check(&AdversarialWeights::default()).unwrap_err().to_string();
        assert_eq!(error, "parameter `rows` is 0, expected at least 1 to draw targets from");
    }
}
