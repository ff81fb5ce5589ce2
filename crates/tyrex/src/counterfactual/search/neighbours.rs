//! `Neighbours`: the nearest data point that passes.
//!
//! The measure at a data point does not depend on the factual, so it is computed once for all
//! factuals, and only for the points that a factual reaches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Candidate, Test};
use crate::counterfactual::field::{Field as _, Reader};
use crate::counterfactual::{Domain, Factual, Meter, Norm, Plausible, Problem};
use crate::measure::{Gauge, Reading};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;

/// A cache of the measures at one set of data points. The values depend on neither the threshold
/// nor the norm.
#[derive(Debug, Default)]
pub struct Memory {
    readings: Mutex<BTreeMap<String, Arc<Readings>>>,
}

/// For every data point the value of a measure, once computed.
type Readings = Vec<OnceLock<Reading>>;

impl Memory {
    /// The values of a gauge; new ones for a model without an identity.
    fn of(&self, gauge: &Gauge<'_>, model: &dyn Model, points: &Points) -> Arc<Readings> {
        let Some(model) = model.identity() else { return unread(points) };
        let neighbours = gauge.neighbourhood().digest();
        let key = format!("{model} {:?} {neighbours}", gauge.measure());
        let mut all = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(key).or_insert_with(|| unread(points)))
    }
}

fn unread(points: &Points) -> Arc<Readings> {
    Arc::new(points.rows().map(|_| OnceLock::new()).collect())
}

/// The data points to which a model gives a least score, with their measures; those that are usual,
/// if answers have to be.
pub(crate) struct Neighbours<'a> {
    model: &'a dyn Model,
    points: &'a Points,
    accepted: Vec<usize>,
    readings: Arc<Readings>,
    gauge: Gauge<'a>,
    plausible: Option<Plausible<'a>>,
}

impl<'a> Neighbours<'a> {
    /// Finds the data points the model accepts.
    pub(crate) fn new(problem: &Problem<'a>, gauge: Gauge<'a>) -> Self {
        Self::above(problem, gauge, f64::from(THRESHOLD))
    }

    /// Finds the data points with at least that score.
    pub(crate) fn above(problem: &Problem<'a>, gauge: Gauge<'a>, score: f64) -> Self {
        let points = problem.data;
        let scores = problem.model.score(points);
        let is_accepted = |&index: &usize| f64::from(scores[index]) >= score;
        let accepted: Vec<usize> = (0..points.len()).filter(is_accepted).collect();
        let accepted = match problem.plausible {
            Some(own) => own.holding(points, accepted),
            None => accepted,
        };
        let readings = match problem.memory {
            Some(memory) => memory.of(&gauge, problem.model, points),
            None => unread(points),
        };
        let plausible = problem.plausible;
        Self { model: problem.model, points, accepted, readings, gauge, plausible }
    }

    /// The first of the `count` nearest that passes, or the best of those that do not.
    ///
    /// A neighbour outside the set is first moved to the nearest point in it; where only rows
    /// are answers, to the nearest row that the factual may become.
    pub(crate) fn nearest(
        &self,
        factual: &Factual,
        norm: Norm,
        test: Test,
        count: usize,
        meter: &mut Meter,
    ) -> Option<Candidate> {
        let mut reader = Reader::new(&self.gauge);
        let is_usual = |point: &[f32]| self.plausible.is_none_or(|own| own.holds(point));
        let mut best: Option<Candidate> = None;
        for index in self.in_order(factual, norm, count) {
            let neighbour = self.points.row(index);
            let settled = match factual.domain {
                Domain::Relaxed => None,
                Domain::Encodable => {
                    let Some((row, point)) = factual.set.settle(neighbour) else { continue };
                    if !meter.take(0, 1) {
                        break;
                    }
                    // A score takes one evaluation, a measure a whole neighbourhood.
                    if !self.accepts(&point) || !is_usual(&point) {
                        continue;
                    }
                    Some((row, point))
                }
            };
            if !meter.take(0, reader.evaluations()) {
                break;
            }
            let candidate = match settled {
                Some((row, point)) => {
                    let reading = reader.read(&point);
                    Candidate { point, reading, row: Some(row) }
                }
                None if factual.set.contains(neighbour) => {
                    let reading = self.readings[index].get_or_init(|| reader.read(neighbour));
                    Candidate::new(neighbour.to_vec(), *reading)
                }
                None => {
                    let mut point = neighbour.to_vec();
                    factual.set.project(&mut point);
                    if !is_usual(&point) {
                        continue;
                    }
                    let reading = reader.read(&point);
                    Candidate::new(point, reading)
                }
            };
            if test.passes(candidate.reading) {
                return Some(candidate);
            }
            if best.as_ref().is_none_or(|best| candidate.reading.value > best.reading.value) {
                best = Some(candidate);
            }
        }
        best
    }

    /// Whether the model accepts a point.
    fn accepts(&self, point: &[f32]) -> bool {
        let mut alone = Points::new(point.len());
        alone.push(point);
        self.model.score(&alone).iter().all(|&score| score >= THRESHOLD)
    }

    /// The accepted points by cost, the earlier of equals first.
    fn in_order(&self, factual: &Factual, norm: Norm, count: usize) -> Vec<usize> {
        let distances: Vec<f64> =
            self.accepted.iter().map(|&i| factual.cost(norm, self.points.row(i))).collect();
        let by_distance =
            |a: &usize, b: &usize| distances[*a].total_cmp(&distances[*b]).then(a.cmp(b));
        let mut order: Vec<usize> = (0..distances.len()).collect();
        if count < order.len() {
            order.select_nth_unstable_by(count, by_distance);
            order.truncate(count);
        }
        order.sort_unstable_by(by_distance);
        order.into_iter().map(|place| self.accepted[place]).collect()
    }
}
