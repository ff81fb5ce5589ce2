//! The lower tail of the logits over many models, as a field.
//!
//! With `z_s(x)` the logit of the favourable class by search model `s`, sorted from the lowest,
//!
//! `CVaR_a(x) = 1/(a S) sum_{s <= a S} z_(s)(x)`
//!
//! is the mean of the lowest share `a` of them; a model that is in the share with a fraction counts
//! with that fraction. It is at most the `a`-quantile, so `CVaR_a(x) >= 0` implies that at least
//! `1 - a` of the search models accept `x`. The field is the smaller of this and the logit of the
//! model in use, which must accept `x` in any case.

use super::field::Field;
use crate::error::Result;
use crate::measure::Reading;
use crate::model::{Committee, CommitteeScratch};

/// The model in use and the search models, read by one thread.
pub(crate) struct Tail<'a> {
    committee: &'a Committee,
    share: f64,
    scratch: CommitteeScratch,
    /// The search models, lowest logit first as far as the tail reaches.
    order: Vec<usize>,
}

impl<'a> Tail<'a> {
    /// The first model of the committee is the model in use.
    pub(crate) fn new(committee: &'a Committee, share: f64) -> Self {
        let models = committee.models().len();
        Self { committee, share, scratch: committee.scratch(), order: (1..models).collect() }
    }

    /// The field from the logits of all models, the model in use first.
    pub(crate) fn value(&mut self, logits: &[f32]) -> f64 {
        f64::from(logits[0]).min(tail(logits, self.share, &mut self.order))
    }

    /// The score and the logit of the model in use, and `CVaR_a`.
    fn values(&mut self, x: &[f32]) -> (f32, f64, f64) {
        let logits = self.committee.logits(x, &mut self.scratch);
        let (own, tail) = (f64::from(logits[0]), tail(logits, self.share, &mut self.order));
        (self.committee.score(0, x, &self.scratch), own, tail)
    }
}

impl Field for Tail<'_> {
    fn evaluations(&self) -> u64 {
        self.committee.models().len() as u64
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        let (score, own, tail) = self.values(x);
        Reading { score, value: own.min(tail) }
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        let (score, own, tail) = self.values(x);
        let scratch = &mut self.scratch;
        if own <= tail {
            self.committee.gradient(x, std::iter::once((0, 1.0)), scratch, gradient);
        } else {
            let weights = weights(self.order.len(), self.share);
            let models = self.order.iter().copied().zip(weights);
            self.committee.gradient(x, models, scratch, gradient);
        }
        Ok(Reading { score, value: own.min(tail) })
    }
}

/// The weights of the lowest logits, in order: they sum to 1.
fn weights(models: usize, share: f64) -> impl Iterator<Item = f32> {
    let all = (share * models as f64).max(1.0);
    let whole = all.floor() as usize;
    let weight = move |index: usize| if index < whole { 1.0 } else { all - whole as f64 } / all;
    let last = if all > whole as f64 { whole } else { whole - 1 };
    (0..=last.min(models - 1)).map(move |index| weight(index) as f32)
}

/// `CVaR_a` of the logits of the models in `order`, which is sorted as far as the tail reaches.
fn tail(logits: &[f32], share: f64, order: &mut [usize]) -> f64 {
    let count = weights(order.len(), share).count();
    let by_logit = |a: &usize, b: &usize| logits[*a].total_cmp(&logits[*b]).then(a.cmp(b));
    if count < order.len() {
        order.select_nth_unstable_by(count, by_logit);
    }
    order[..count].sort_unstable_by(by_logit);
    let lowest = order.iter().map(|&model| f64::from(logits[model]));
    lowest.zip(weights(order.len(), share)).map(|(z, weight)| z * f64::from(weight)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tail_is_the_mean_of_the_lowest_logits() {
        // The first is the model in use, which is not in the tail.
        let logits = [-9.0, 4.0, 1.0, 3.0, 2.0, 5.0];
        let of = |share: f64| tail(&logits, share, &mut [1, 2, 3, 4, 5]);
        for (share, expected) in
            [(0.2, 1.0), (0.4, 1.5), (1.0, 3.0), (0.001, 1.0), (0.3, (1.0 + 0.5 * 2.0) / 1.5)]
        {
            assert!((of(share) - expected).abs() < 1e-6, "{share}: {}", of(share));
        }
    }

    proptest! {
        /// By the other definition: `max_t  t - mean of (t - z)^+ / a`, reached at a logit.
        #[test]
        fn the_tail_is_the_conditional_value_at_risk(
            logits in prop::collection::vec(-5.0..5.0_f32, 2..40), share in 0.05..1.0_f64,
        ) {
            let models = logits.len() - 1;
            prop_assume!(share * models as f64 >= 1.0);
            let risk = |t: f64| {
                let short: f64 = logits[1..].iter().map(|&z| (t - f64::from(z)).max(0.0)).sum();
                t - short / (share * models as f64)
            };
            let best = logits[1..].iter().map(|&z| risk(f64::from(z))).fold(f64::MIN, f64::max);
            let mut order: Vec<usize> = (1..logits.len()).collect();
            let got = tail(&logits, share, &mut order);
            prop_assert!((got - best).abs() < 1e-5, "{} {}", got, best);
            // A tail at or above 0: all but the share accept.
            if got >= 0.0 {
                let rejecting = logits[1..].iter().filter(|z| **z < 0.0).count();
                prop_assert!(rejecting as f64 <= share * models as f64);
            }
        }
    }
}
