//! The tail by the models near it.
//!
//! Few models have a weight in the tail. With only some of the search models, `A`, and the same
//! `a S`,
//!
//! `tail_A(x) = max_t  t - T/(a S) sum_{s in A} ln(1 + exp((t - z_s(x)) / T))`
//!
//! is at least `tail(x)`, since every term that is left out is negative. So a search with `A` solves
//! a relaxation, with the work of few models. Its result is read by all models. If it fails, the
//! models near the tail there are added to `A`, and the search continues: a cutting-plane method.
//! In the end `A` holds all models, so it ends.

use super::{Field, Reading, Result, Tail, field, weighty};
use crate::counterfactual::Meter;

/// The tail of some of the models, read by one thread.
pub(crate) struct ActiveTail<'t, 'a> {
    tail: &'t mut Tail<'a>,
    /// The model in use and some search models, ascending.
    models: &'t [usize],
    logits: Vec<f32>,
    weights: Vec<f64>,
}

/// A model with a smaller weight is not near the tail.
const LEAST_WEIGHT: f64 = 1e-5;
/// An active model with a smaller weight has no backward pass, unless all models are active: then
/// the gradient is that of the tail.
const LEAST_IN_GRADIENT: f64 = 1e-3;
/// The least number of active models, as a multiple of the models in the tail.
const LEAST_SHARE: f64 = 2.0;
/// If more than this share of the models is active, all are.
const MOST_SHARE: f64 = 0.6;

impl<'t, 'a> ActiveTail<'t, 'a> {
    pub(crate) fn new(tail: &'t mut Tail<'a>, Active(models): &'t Active) -> Self {
        let searched = models.len() - 1;
        Self { tail, models, logits: vec![0.0; searched], weights: vec![0.0; searched] }
    }

    fn values(&mut self, x: &[f32]) -> (f32, f64, f64) {
        let Tail { committee, shape, scratch, .. } = &mut *self.tail;
        let logits = committee.logits_by(self.models, x, scratch);
        let of_active = self.models[1..].iter().map(|&model| logits[model]);
        self.logits.iter_mut().zip(of_active).for_each(|(to, logit)| *to = logit);
        let own = f64::from(logits[0]);
        let in_tail = shape.models(logits.len() - 1);
        let tail = shape.tail_of(&self.logits, in_tail, &mut self.weights);
        (committee.score(0, x, scratch), own, tail)
    }
}

impl Field for ActiveTail<'_, '_> {
    fn evaluations(&self) -> u64 {
        self.models.len() as u64
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        let (score, own, tail) = self.values(x);
        Reading { score, value: field(own, tail) }
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        let (score, own, tail) = self.values(x);
        let weights = self.models[1..].iter().copied().zip(self.weights.iter().copied());
        let Tail { committee, scratch, .. } = &mut *self.tail;
        let are_all = self.models.len() == committee.models().len();
        let least = if are_all { super::LEAST_WEIGHT } else { LEAST_IN_GRADIENT };
        let weights = weighty(own, tail, least, weights);
        committee.gradient(x, weights, scratch, gradient);
        Ok(Reading { score, value: field(own, tail) })
    }
}

/// The models of a search over the active ones.
#[derive(Debug, Default)]
pub(crate) struct Active(Vec<usize>);

impl Active {
    /// Reads a point by all models, unless it was the last one read, and adds the models near the
    /// tail there. `None` if the budget is spent.
    pub(crate) fn include(
        &mut self,
        tail: &mut Tail<'_>,
        x: &[f32],
        meter: &mut Meter,
    ) -> Option<Reading> {
        let known = tail.known(x).filter(|_| !self.0.is_empty());
        if known.is_some() {
            return known;
        }
        let reading = meter.read(tail, x)?;
        self.0.extend(near(tail));
        self.0.sort_unstable();
        self.0.dedup();
        if self.0.len() as f64 > MOST_SHARE * (tail.weights.len() + 1) as f64 {
            self.include_all(tail);
        }
        Some(reading)
    }

    /// All models are active.
    pub(crate) fn include_all(&mut self, tail: &Tail<'_>) {
        self.0 = (0..=tail.weights.len()).collect();
    }

    /// The number of active models.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

/// The model in use and the search models near the tail at the last point that all models read.
fn near(tail: &Tail<'_>) -> Vec<usize> {
    let logits = tail.scratch.last_logits();
    let mut lowest: Vec<usize> = (1..=tail.weights.len()).collect();
    lowest.sort_by(|&a, &b| logits[a].total_cmp(&logits[b]).then(a.cmp(&b)));
    let least = LEAST_SHARE * tail.shape.models(tail.weights.len());
    let is_near =
        |rank: usize, model: usize| (rank as f64) < least || tail.weights[model - 1] > LEAST_WEIGHT;
    let near = lowest.into_iter().enumerate().filter(|&(rank, model)| is_near(rank, model));
    std::iter::once(0).chain(near.map(|(_, model)| model)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::counterfactual::Budget;
    use crate::counterfactual::tail::TailShape;
    use crate::model::{Activation, Committee, Dense, Mlp, Model, Output};
    use crate::seed::Seed;
    use proptest::prelude::*;
    use rand::RngExt;

    const DIM: usize = 4;
    const SEARCHED: usize = 30;
    const SHAPE: TailShape = TailShape { share: 0.1, temperature: 0.05 };

    fn committee(seed: u64) -> Committee {
        let mut rng = Seed(seed).rng();
        let mut layer = |inputs: usize, outputs: usize, activation| Dense {
            weights: (0..inputs * outputs).map(|_| rng.random_range(-1.0..1.0)).collect(),
            bias: (0..outputs).map(|_| rng.random_range(-0.5..0.5)).collect(),
            activation,
        };
        let mut model = || -> Arc<dyn Model> {
            let layers = [layer(DIM, 6, Activation::Tanh), layer(6, 1, Activation::Identity)];
            Arc::new(Mlp::new(DIM, &layers, Output::Sigmoid { favourable: true }).unwrap())
        };
        Committee::new((0..=SEARCHED).map(|_| model()).collect()).unwrap()
    }

    proptest! {
        #[test]
        fn the_tail_of_active_models_is_at_least_that_of_all(
            x in prop::collection::vec(-1.0..1.0_f32, DIM),
            y in prop::collection::vec(-1.0..1.0_f32, DIM),
            seed in 0..500_u64,
        ) {
            let committee = committee(seed);
            let mut tail = Tail::new(&committee, SHAPE);
            let (mut active, mut meter) = (Active::default(), Meter::new(Budget::default()));
            active.include(&mut tail, &x, &mut meter).unwrap();
            // The lowest 6 and the model in use; all, where most are near the tail.
            let (count, all) = (active.count(), SEARCHED + 1);
            prop_assert!(count > 6 && (count as f64 <= MOST_SHARE * all as f64 || count == all));
            for point in [&x, &y] {
                let all = tail.read(point);
                let some = ActiveTail::new(&mut tail, &active).read(point);
                prop_assert_eq!(some.score.to_bits(), all.score.to_bits());
                prop_assert!(some.value >= all.value - 1e-9, "{} {}", some.value, all.value);
            }
            // Where the models were chosen, the others have hardly a weight.
            let all = tail.read(&x).value;
            let some = ActiveTail::new(&mut tail, &active).read(&x).value;
            prop_assert!(some - all < 1e-3, "{} {}", some, all);
            // With all models it is the tail, bit for bit.
            active.include_all(&tail);
            let mut gradients = [vec![0.0; DIM], vec![0.0; DIM]];
            let all = tail.read_with_gradient(&y, &mut gradients[0]).unwrap();
            let mut active = ActiveTail::new(&mut tail, &active);
            let some = active.read_with_gradient(&y, &mut gradients[1]).unwrap();
            prop_assert_eq!(some.value.to_bits(), all.value.to_bits());
            prop_assert_eq!(&gradients[0], &gradients[1]);
        }

        #[test]
        fn its_gradient_is_that_of_its_values(
            x in prop::collection::vec(-1.0..1.0_f32, DIM), seed in 0..500_u64,
        ) {
            const H: f32 = 1e-3;
            let committee = committee(seed);
            let mut tail = Tail::new(&committee, TailShape { temperature: 0.5, ..SHAPE });
            let (mut active, mut meter) = (Active::default(), Meter::new(Budget::default()));
            active.include(&mut tail, &x, &mut meter).unwrap();
            let mut active = ActiveTail::new(&mut tail, &active);
            let mut gradient = vec![0.0; DIM];
            let reading = active.read_with_gradient(&x, &mut gradient).unwrap();
            // Where the model in use rejects, the lower of two functions may change places.
            prop_assume!(reading.score >= 0.5);
            for column in 0..DIM {
                let at = |by: f32| {
                    let mut moved = x.clone();
                    moved[column] += by;
                    moved
                };
                let (above, below) = (at(H), at(-H));
                let width = f64::from(above[column]) - f64::from(below[column]);
                let slope = (active.read(&above).value - active.read(&below).value) / width;
                prop_assert!((slope - f64::from(gradient[column])).abs() < 0.05,
                    "{} {}", slope, gradient[column]);
            }
        }
    }
}
