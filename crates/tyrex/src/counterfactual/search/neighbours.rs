//! `Neighbours`: the nearest data point that passes.
//!
//! What a measure says of a data point does not depend on who asks, so it is read once for
//! all factuals, and only for the points some factual comes to.

use std::sync::OnceLock;

use super::{Candidate, Test};
use crate::counterfactual::field::{Field as _, Reader};
use crate::counterfactual::{Domain, Factual, Meter, Norm};
use crate::measure::{Gauge, Reading};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;

/// The data points a model accepts, and what a measure says of them.
pub(crate) struct Neighbours<'a> {
    points: &'a Points,
    accepted: Vec<usize>,
    readings: Vec<OnceLock<Reading>>,
    gauge: Gauge<'a>,
}

impl<'a> Neighbours<'a> {
    /// Finds the data points the model accepts.
    pub(crate) fn new(points: &'a Points, model: &dyn Model, gauge: Gauge<'a>) -> Self {
        let scores = model.score(points);
        let accepted: Vec<usize> =
            (0..points.len()).filter(|&index| scores[index] >= THRESHOLD).collect();
        let readings = accepted.iter().map(|_| OnceLock::new()).collect();
        Self { points, accepted, readings, gauge }
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
        let mut best: Option<Candidate> = None;
        for index in self.in_order(factual.point, norm, count) {
            if !meter.take(0, reader.evaluations()) {
                break;
            }
            let neighbour = self.points.row(self.accepted[index]);
            let candidate = match factual.domain {
                Domain::Relaxed if factual.set.contains(neighbour) => Candidate::new(
                    neighbour.to_vec(),
                    *self.readings[index].get_or_init(|| reader.read(neighbour)),
                ),
                Domain::Relaxed => {
                    let mut point = neighbour.to_vec();
                    factual.set.project(&mut point);
                    let reading = reader.read(&point);
                    Candidate::new(point, reading)
                }
                Domain::Encodable => match factual.set.settle(neighbour) {
                    None => continue,
                    Some((row, point)) => {
                        let reading = reader.read(&point);
                        Candidate { point, reading, row: Some(row) }
                    }
                },
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

    /// The accepted points by distance, the earlier of equals first.
    fn in_order(&self, from: &[f32], norm: Norm, count: usize) -> Vec<usize> {
        let distances: Vec<f64> =
            self.accepted.iter().map(|&i| norm.distance(self.points.row(i), from)).collect();
        let by_distance =
            |a: &usize, b: &usize| distances[*a].total_cmp(&distances[*b]).then(a.cmp(b));
        let mut order: Vec<usize> = (0..distances.len()).collect();
        if count < order.len() {
            order.select_nth_unstable_by(count, by_distance);
            order.truncate(count);
        }
        order.sort_unstable_by(by_distance);
        order
    }
}
