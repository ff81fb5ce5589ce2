//! The lower tail of the logits over many models, as a field.
//!
//! With `z_s(x)` the logit of the favourable class by search model `s`, the mean of the lowest
//! share `a` of them is (Rockafellar and Uryasev)
//!
//! `CVaR_a(x) = max_t  t - 1/(a S) sum_s max(0, t - z_s(x))`
//!
//! Its gradient jumps where two logits change places, and a search on it goes back and forth. The
//! field therefore smooths the maximum with 0 at the temperature `T`,
//!
//! `tail(x) = max_t  t - T/(a S) sum_s ln(1 + exp((t - z_s(x)) / T))`
//!
//! with the gradient `sum_s w_s dz_s(x)`, `w_s = sigmoid((t - z_s) / T) / (a S)`, which sum to 1 at
//! the best `t`. Since `ln(1 + e^u) >= max(0, u)`, the tail is at most `CVaR_a`, which is at most
//! the `a`-quantile: where it is 0 or more, at least `1 - a` of the search models accept `x`.
//!
//! The model in use must accept `x` in any case. Where it does not, the field is its logit if that
//! is lower.

mod active;

pub(crate) use active::{Active, ActiveTail};

use super::field::{Field, Forecast, points_along, walk};
use crate::error::Result;
use crate::measure::Reading;
use crate::model::routes::{Line, Routes, RoutesScratch};
use crate::model::{Committee, CommitteeScratch};
use crate::points::Points;

/// The tail of a committee: its share and its temperature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailShape {
    /// `a`
    pub(crate) share: f64,
    /// `T`
    pub(crate) temperature: f64,
}

/// The model in use and the search models, read by one thread.
pub(crate) struct Tail<'a> {
    committee: &'a Committee,
    shape: TailShape,
    scratch: CommitteeScratch,
    /// `w_s` of the search models at the last point.
    weights: Vec<f64>,
    /// The routes of all models, if all are trees.
    routes: Option<&'a [&'a Routes]>,
    /// For each of them.
    walks: Vec<RoutesScratch>,
    /// The last point that all models have read, and its reading.
    last: Option<(Vec<f32>, Reading)>,
}

/// A model with a smaller weight has no backward pass.
const LEAST_WEIGHT: f64 = 1e-4;

impl<'a> Tail<'a> {
    /// The first model of the committee is the model in use.
    pub(crate) fn new(committee: &'a Committee, shape: TailShape) -> Self {
        let weights = vec![0.0; committee.models().len() - 1];
        let scratch = committee.scratch();
        let walks = Vec::new();
        Self { committee, shape, scratch, weights, routes: None, walks, last: None }
    }

    /// The same with the routes of all models of the committee.
    pub(crate) fn with_routes(self, routes: Option<&'a [&'a Routes]>) -> Self {
        Self { routes, ..self }
    }

    /// The reading of the last point, if it is this one.
    pub(crate) fn known(&self, x: &[f32]) -> Option<Reading> {
        self.last.as_ref().filter(|(last, _)| last == x).map(|&(_, reading)| reading)
    }

    /// The score and the logit of the model in use, and the tail.
    fn values(&mut self, x: &[f32]) -> (f32, f64, f64) {
        let logits = self.committee.logits(x, &mut self.scratch);
        let tail = self.shape.tail(&logits[1..], &mut self.weights);
        let own = f64::from(logits[0]);
        (self.committee.score(0, x, &self.scratch), own, tail)
    }
}

/// The field at points, in their order.
pub(crate) fn readings(committee: &Committee, shape: TailShape, points: &Points) -> Vec<Reading> {
    let logits = committee.logits_of(points);
    let scores = committee.models()[0].score(points);
    let mut of_models = vec![0.0; logits.len()];
    let mut weights = vec![0.0; logits.len() - 1];
    let each = scores.into_iter().enumerate();
    each.map(|(row, score)| {
        of_models.iter_mut().zip(&logits).for_each(|(to, of_model)| *to = of_model[row]);
        let tail = shape.tail(&of_models[1..], &mut weights);
        Reading { score, value: field(f64::from(of_models[0]), tail) }
    })
    .collect()
}

/// The tail, or the logit of the model in use if it rejects and is lower.
fn field(own: f64, tail: f64) -> f64 {
    if own < 0.0 { own.min(tail) } else { tail }
}

/// The models of the gradient, with their weights of more than `least`: the model in use alone
/// where its logit is the field.
fn weighty(
    own: f64,
    tail: f64,
    least: f64,
    weights: impl Iterator<Item = (usize, f64)>,
) -> impl Iterator<Item = (usize, f32)> {
    let is_own = own < 0.0 && own <= tail;
    let of_tail = weights.filter(move |(_, weight)| !is_own && *weight > least);
    let of_tail = of_tail.map(|(model, weight)| (model, weight as f32));
    is_own.then_some((0, 1.0)).into_iter().chain(of_tail)
}

impl Field for Tail<'_> {
    fn evaluations(&self) -> u64 {
        self.committee.models().len() as u64
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        let (score, own, tail) = self.values(x);
        let reading = Reading { score, value: field(own, tail) };
        self.last = Some((x.to_vec(), reading));
        reading
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        let (score, own, tail) = self.values(x);
        let weights = (1..).zip(self.weights.iter().copied());
        let weights = weighty(own, tail, LEAST_WEIGHT, weights);
        self.committee.gradient(x, weights, &mut self.scratch, gradient);
        Ok(Reading { score, value: field(own, tail) })
    }

    fn read_all(&mut self, points: &Points) -> Vec<Reading> {
        readings(self.committee, self.shape, points)
    }

    fn along(&mut self, x: &[f32], lines: &[Line<'_>], least: f64) -> Vec<Forecast> {
        let Some(routes) = self.routes else {
            let readings = self.read_all(&points_along(x, lines));
            return readings.into_iter().map(Forecast::from).collect();
        };
        let models = routes.len();
        let choices: usize = lines.iter().map(Line::len).sum();
        let mut logits = vec![0.0_f32; models * choices];
        self.walks.resize_with(models, RoutesScratch::default);
        for (index, (routes, walks)) in routes.iter().zip(&mut self.walks).enumerate() {
            routes.logits_along(x, lines, walks);
            let column = logits[index..].iter_mut().step_by(models);
            column.zip(&walks.logits).for_each(|(to, &logit)| *to = logit as f32);
        }
        let each = logits.chunks_exact(models);
        each.map(|logits| {
            let own = f64::from(logits[0]);
            let most = field(own, self.shape.mean_of_lowest(&logits[1..], &mut self.weights));
            let value = if most < least - CLEAR {
                most
            } else {
                field(own, self.shape.tail(&logits[1..], &mut self.weights))
            };
            Forecast { accepts: own >= 0.0, value }
        })
        .collect()
    }

    fn evaluations_along(&self, lines: &[Line<'_>]) -> u64 {
        let choices = || lines.iter().map(|line| line.len() as u64).sum();
        let each = if self.routes.is_some() { walk(lines) } else { choices() };
        self.evaluations().saturating_mul(each)
    }

    /// The weights of the models do not fit into the second cache; reading them is most of the
    /// work for one point.
    fn together(&self) -> usize {
        6
    }
}

impl TailShape {
    /// The most by which the tail lies below `CVaR_a`: `T h(a) / a` with the entropy
    /// `h(a) = -a ln a - (1 - a) ln(1 - a)`, reached where all logits are equal.
    pub(crate) fn gap(self) -> f64 {
        let share = self.share;
        let others = if share < 1.0 { (1.0 - share) * libm::log(1.0 - share) } else { 0.0 };
        self.temperature * (-libm::log(share) - others / share)
    }

    /// The number of models in the tail, `a S`.
    fn models(self, searched: usize) -> f64 {
        // A share of less than one model is that of the lowest.
        (self.share * searched as f64).max(1.0).min(searched as f64)
    }

    /// `CVaR_a`, which the tail does not exceed: the mean of the lowest `a S` logits, the last one
    /// by its fraction. It takes no exponential.
    fn mean_of_lowest(self, logits: &[f32], scratch: &mut [f64]) -> f64 {
        let models = self.models(logits.len());
        scratch.iter_mut().zip(logits).for_each(|(to, &z)| *to = f64::from(z));
        let last = (models.ceil() as usize).clamp(1, logits.len()) - 1;
        let (lower, &mut highest, _) = scratch.select_nth_unstable_by(last, f64::total_cmp);
        (lower.iter().sum::<f64>() + (models - last as f64) * highest) / models
    }

    /// The tail of the logits of all search models; writes `w_s` to `weights`.
    fn tail(self, logits: &[f32], weights: &mut [f64]) -> f64 {
        self.tail_of(logits, self.models(logits.len()), weights)
    }

    /// The tail with this many models in it.
    fn tail_of(self, logits: &[f32], models: f64, weights: &mut [f64]) -> f64 {
        let scale = self.temperature;
        let lowest = f64::from(logits.iter().copied().fold(f32::INFINITY, f32::min));
        let highest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        if !(lowest.is_finite() && highest.is_finite()) {
            weights.fill(0.0);
            return lowest;
        }
        // `sum_s sigmoid((t - z_s) / T)` rises in `t`, from below the share to above it.
        let count =
            |t: f64| logits.iter().map(|&z| sigmoid((t - f64::from(z)) / scale)).sum::<f64>();
        let (mut low, mut high) = (lowest - 40.0 * scale, highest + 40.0 * scale);
        let (below, above) = self.around(logits, models, weights);
        for _ in 0..HALVINGS {
            let t = 0.5 * (low + high);
            let is_below = t <= below || t < above && count(t) < models;
            if is_below { low = t } else { high = t }
        }
        let t = 0.5 * (low + high);
        let mut short = 0.0;
        for (weight, &z) in weights.iter_mut().zip(logits) {
            let u = (t - f64::from(z)) / scale;
            *weight = sigmoid(u) / models;
            short += u.max(0.0) + libm::log1p(libm::exp(-u.abs()));
        }
        t - scale * short / models
    }
}

impl TailShape {
    /// Two numbers around the best `t`, at which the count is clearly below and clearly above the
    /// share, by Newton's method. The bisection need not count outside of them, so it has the same
    /// result with a third of the work. The whole line, if there are no such numbers.
    fn around(self, logits: &[f32], models: f64, scratch: &mut [f64]) -> (f64, f64) {
        let scale = self.temperature;
        let count_and_slope = |t: f64| {
            let (mut count, mut slope) = (0.0, 0.0);
            for &z in logits {
                let share = sigmoid((t - f64::from(z)) / scale);
                count += share;
                slope += share * (1.0 - share) / scale;
            }
            (count, slope)
        };
        let whole = (f64::NEG_INFINITY, f64::INFINITY);
        scratch.iter_mut().zip(logits).for_each(|(to, &z)| *to = f64::from(z));
        let rank = (models.ceil() as usize).clamp(1, logits.len()) - 1;
        let (_, &mut mut t, _) = scratch.select_nth_unstable_by(rank, f64::total_cmp);
        for _ in 0..NEWTON_STEPS {
            let (count, slope) = count_and_slope(t);
            let step = (models - count) / slope;
            if !step.is_finite() {
                return whole;
            }
            // Far from the best `t` the slope is small and a whole step would lead beyond it.
            t += step.clamp(-2.0 * scale, 2.0 * scale);
            let width = 4.0 * CLEAR / slope;
            if step.abs() < width {
                let is_clear = count_and_slope(t - width).0 < models - CLEAR
                    && count_and_slope(t + width).0 > models + CLEAR;
                return if is_clear { (t - width, t + width) } else { whole };
            }
        }
        whole
    }
}

/// Halvings of the interval that holds `t`.
const HALVINGS: usize = 40;
/// The most steps of Newton's method for `t`.
const NEWTON_STEPS: usize = 12;
/// A count that is nearer to the share is not compared with it: its rounding is below 1e-12.
const CLEAR: f64 = 1e-9;

fn sigmoid(u: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-u))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tail_of(logits: &[f32], share: f64, temperature: f64) -> (f64, Vec<f64>) {
        let mut weights = vec![0.0; logits.len()];
        (TailShape { share, temperature }.tail(logits, &mut weights), weights)
    }

    /// The mean of the lowest logits, the last one with its fraction.
    fn sorted_tail(logits: &[f32], share: f64) -> f64 {
        let mut sorted = logits.to_vec();
        sorted.sort_by(f32::total_cmp);
        let mut left = share * logits.len() as f64;
        let all = left;
        let mut sum = 0.0;
        for z in sorted {
            let part = left.clamp(0.0, 1.0);
            sum += part * f64::from(z);
            left -= part;
        }
        sum / all
    }

    proptest! {
        #[test]
        fn the_tail_is_at_most_the_mean_of_the_lowest_and_comes_near_it(
            logits in prop::collection::vec(-5.0..5.0_f32, 1..40), share in 0.05..1.0_f64,
        ) {
            prop_assume!(share * logits.len() as f64 >= 1.0);
            let exact = sorted_tail(&logits, share);
            let shape = TailShape { share, temperature: 1.0 };
            let lowest = shape.mean_of_lowest(&logits, &mut vec![0.0; logits.len()]);
            prop_assert!((lowest - exact).abs() < 1e-6, "{} {}", lowest, exact);
            for temperature in [1e-3, 0.1, 1.0] {
                let (tail, weights) = tail_of(&logits, share, temperature);
                prop_assert!(tail <= exact + 1e-6, "{} {}", tail, exact);
                let gap = TailShape { share, temperature }.gap();
                prop_assert!(tail >= exact - gap - 1e-6, "{} {}", tail, exact);
                let total: f64 = weights.iter().sum();
                prop_assert!((total - 1.0).abs() < 1e-6 || share > 0.999, "{}", total);
                if tail >= 0.0 {
                    let rejecting = logits.iter().filter(|z| **z < 0.0).count();
                    prop_assert!(rejecting as f64 <= share * logits.len() as f64);
                }
            }
        }

        #[test]
        fn the_gap_is_reached_where_all_models_agree(
            logit in -5.0..5.0_f32, models in 1..40_usize, share in 0.05..1.0_f64,
        ) {
            prop_assume!(share * models as f64 >= 1.0);
            let shape = TailShape { share, temperature: 0.5 };
            let (tail, _) = tail_of(&vec![logit; models], share, 0.5);
            let expected = f64::from(logit) - shape.gap();
            prop_assert!((tail - expected).abs() < 1e-6, "{} {}", tail, expected);
        }

        #[test]
        fn newton_changes_no_bit(
            logits in prop::collection::vec(-5.0..5.0_f32, 1..80), share in 0.02..1.0_f64,
            temperature in prop::sample::select(vec![1e-3, 0.05, 0.3, 2.0]),
        ) {
            let shape = TailShape { share, temperature };
            let (tail, weights) = tail_of(&logits, share, temperature);
            let models = (share * logits.len() as f64).max(1.0).min(logits.len() as f64);
            let lowest = f64::from(logits.iter().copied().fold(f32::INFINITY, f32::min));
            let highest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let (mut low, mut high) = (lowest - 40.0 * temperature, highest + 40.0 * temperature);
            for _ in 0..HALVINGS {
                let t = 0.5 * (low + high);
                let each = logits.iter().map(|&z| sigmoid((t - f64::from(z)) / temperature));
                if each.sum::<f64>() < models { low = t } else { high = t }
            }
            let t = 0.5 * (low + high);
            for (weight, &z) in weights.iter().zip(&logits) {
                let plain = sigmoid((t - f64::from(z)) / shape.temperature) / models;
                prop_assert_eq!(weight.to_bits(), plain.to_bits());
            }
            prop_assert!(tail.is_finite());
        }

        #[test]
        fn the_weights_are_the_gradient(
            logits in prop::collection::vec(-2.0..2.0_f32, 2..20), share in 0.1..0.9_f64,
        ) {
            prop_assume!(share * logits.len() as f64 >= 1.0);
            let (_, weights) = tail_of(&logits, share, 0.5);
            for (index, weight) in weights.iter().enumerate() {
                let (mut above, mut below) = (logits.clone(), logits.clone());
                above[index] += 1e-2;
                below[index] -= 1e-2;
                let width = f64::from(above[index]) - f64::from(below[index]);
                let rise = tail_of(&above, share, 0.5).0 - tail_of(&below, share, 0.5).0;
                prop_assert!((rise / width - weight).abs() < 1e-3, "{} {}", rise / width, weight);
            }
        }
    }
}
