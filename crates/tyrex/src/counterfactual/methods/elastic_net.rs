//! `elastic-net`: the method called min-cost in the authors' released code.
//!
//! `min c max(0, (1 - m(x')) - m(x') + confidence) + ||x' - x||_2^2 + beta ||x' - x||_1`
//!
//! by accelerated proximal steps, with `c` by bisection: the least weight of the first term for
//! which a point is accepted. The answer is the cheapest accepted point.
//!
//! Deviations of the released code, kept in [`ElasticNet::released`]: steps shrink by `beta`
//! itself instead of `rate beta`, so that with `beta = 1` on columns in `[0, 1]` only a huge
//! `c` moves anything; and the whole gradient, that of the cost too, is dropped once the first
//! term is zero.

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::{Field, Reader};
use crate::counterfactual::plausible::OF_PROBABILITIES;
use crate::counterfactual::search::{Candidate, Test};
use crate::counterfactual::{Answer, Factual, Meter, Method, Norm, Problem};
use crate::error::{Error, Result};
use crate::measure::{Gauge, Prediction};
use crate::seed::Seed;

use super::{Finish, MethodSpec, ModelNeed, Named, Protocol, ReferenceUse, Spec, conclude, unread};

/// Parameters of `elastic-net`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct ElasticNet {
    /// The weight of the L1 norm; by the problem's norm if absent.
    pub beta: Option<f64>,
    /// The margin of the first term beyond the threshold, as a difference of probabilities.
    pub confidence: f64,
    /// The first step's rate; it falls to zero over the steps.
    pub rate: f64,
    /// Steps for each `c`.
    pub steps: usize,
    /// Rounds of the search for `c`.
    pub rounds: usize,
    /// Whether to repeat the deviations of the released code.
    pub as_released: bool,
}

impl Default for ElasticNet {
    fn default() -> Self {
        Self { beta: None, confidence: 0.0, rate: 0.02, steps: 200, rounds: 12, as_released: false }
    }
}

impl ElasticNet {
    /// The parameters of the authors' code.
    pub fn released() -> Self {
        Self { beta: None, confidence: 0.5, rate: 1e-3, steps: 60, rounds: 9, as_released: true }
    }
}

impl Spec for ElasticNet {
    fn title(&self) -> &'static str {
        Self::NAME
    }

    fn sentence(&self) -> &'static str {
        "A small change that the model accepts today, by the search of the authors' code."
    }

    fn under(&self, protocol: Protocol) -> MethodSpec {
        match protocol {
            Protocol::Product | Protocol::Paper => Self::default().into(),
            Protocol::Reference => Self::released().into(),
        }
    }

    fn needs(&self) -> ModelNeed {
        ModelNeed::Gradients
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Unused
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        let numbers = [
            ("beta", self.beta.unwrap_or(0.0), self.beta.is_none_or(|beta| beta >= 0.0)),
            ("confidence", self.confidence, (0.0..1.0).contains(&self.confidence)),
            ("rate", self.rate, self.rate > 0.0 && self.rate <= 1.0),
        ];
        for (name, value, good) in numbers {
            if !(good && value.is_finite()) {
                let expected = match name {
                    "beta" => "a number of at least 0",
                    "confidence" => "a number from 0 to below 1",
                    _ => "a number above 0 and up to 1",
                };
                return Err(Error::param(name, value, expected));
            }
        }
        for (name, count) in [("steps", self.steps), ("rounds", self.rounds)] {
            if count == 0 {
                return Err(Error::param(name, 0, "at least 1"));
            }
        }
        let beta = self.beta.unwrap_or(match (problem.norm, self.as_released) {
            (Norm::L1, true) => 1.0,
            (Norm::L1, false) => 0.1,
            (Norm::L2, _) => 0.0,
        });
        Ok(Box::new(Prepared {
            problem: *problem,
            gauge: Gauge::new(Prediction {}, problem.model, &unread(problem.model)?)?,
            params: self.clone(),
            beta,
        }))
    }
}

/// The first `c`, and the largest.
const FIRST: f64 = 1e-3;
const LARGEST: f64 = 1e10;
/// `m >= 0.5`
const ACCEPTED: Test = Test { threshold: 0.5 };

struct Prepared<'a> {
    problem: Problem<'a>,
    gauge: Gauge<'a>,
    params: ElasticNet,
    beta: f64,
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let mut reader = self.problem.usual(Reader::new(&self.gauge), OF_PROBABILITIES);
        reader.aim_at(ACCEPTED.threshold);
        let mut best: Option<Candidate> = None;
        let origin = meter.path.mark();
        let mut way = Vec::new();
        let (mut low, mut high, mut c) = (0.0, f64::INFINITY, FIRST);
        for _ in 0..self.params.rounds {
            let across = self.descend(&mut reader, factual, c, &mut best, meter)?;
            let round = meter.path.cut(origin);
            if !round.is_empty() {
                way = round;
            }
            if across {
                high = c;
            } else {
                low = c;
            }
            c = if high.is_finite() { 0.5 * (low + high) } else { (10.0 * c).min(LARGEST) };
            if meter.is_spent() {
                break;
            }
        }
        meter.path.follow(&way);
        conclude(&self.problem, factual, &mut reader, ACCEPTED, best, Finish::Trim, meter)
    }
}

impl Prepared<'_> {
    /// Runs all steps for one `c` and returns whether a point was accepted. Keeps the cheapest
    /// accepted point and its path.
    fn descend(
        &self,
        reader: &mut dyn Field,
        factual: &Factual,
        c: f64,
        best: &mut Option<Candidate>,
        meter: &mut Meter,
    ) -> Result<bool> {
        let norm = self.problem.norm;
        let total = self.params.steps as f64;
        let mut gradient = vec![0.0; factual.point.len()];
        let mut point = factual.point.to_vec();
        let mut ahead = point.clone();
        let mut across = false;
        let mut reached = meter.path.mark();
        for step in 0..self.params.steps {
            let t = step as f64;
            let Some(reading) = meter.climb(reader, &ahead, &mut gradient)? else { break };
            let rate = self.params.rate * (1.0 - t / total).sqrt();
            let next = self.proximal_step(factual, &ahead, &gradient, reading.value, c, rate);
            let momentum = (t / (t + 3.0)) as f32;
            ahead = next.iter().zip(&point).map(|(&n, &p)| n + momentum * (n - p)).collect();
            point = next;
            meter.path.step(&point);
            if !meter.take(0, reader.evaluations()) {
                break;
            }
            let reading = reader.read(&point);
            if ACCEPTED.passes(reading) {
                across = true;
                let cost = factual.cost(norm, &point);
                let dearer = |b: &Candidate| factual.cost(norm, &b.point) > cost;
                if best.as_ref().is_none_or(dearer) {
                    *best = Some(Candidate::new(point.clone(), reading));
                    reached = meter.path.mark();
                }
            }
        }
        meter.path.cut(reached);
        Ok(across)
    }

    fn proximal_step(
        &self,
        factual: &Factual,
        from: &[f32],
        gradient: &[f32],
        value: f64,
        c: f64,
        rate: f64,
    ) -> Vec<f32> {
        let pulls = 1.0 - 2.0 * value + self.params.confidence > 0.0;
        let shrink = if self.params.as_released { self.beta } else { rate * self.beta };
        let columns = from.iter().zip(factual.point).zip(gradient);
        let mut point: Vec<f32> = columns
            .map(|((&y, &x), &g)| {
                let (y, x) = (f64::from(y), f64::from(x));
                let pull = if pulls { -2.0 * c * f64::from(g) } else { 0.0 };
                let back = if pulls || !self.params.as_released { 2.0 * (y - x) } else { 0.0 };
                let shift = y - rate * (pull + back) - x;
                (x + shift.signum() * (shift.abs() - shrink).max(0.0)) as f32
            })
            .collect();
        factual.set.project(&mut point);
        point
    }
}
