//! From a point that passes to a row that does: decode, round, test again, repair, trim.

use super::{Candidate, Slope, Test};
use crate::counterfactual::field::Field;
use crate::counterfactual::{Domain, Factual, Meter, Norm};
use crate::data::Row;
use crate::error::Result;
use crate::points::Points;

/// The most single changes to make a rounded row pass, and to make it cheaper.
const REPAIRS: usize = 40;
const TRIMS: usize = 60;
/// The number of changes that are tested, best by the gradient first.
const TRIED: usize = 6;

/// The treatment of a row that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It is made cheaper as long as it passes.
    Trim,
    /// It is kept unchanged, with its margin.
    Keep,
}

/// The candidate itself if any point is an answer or it is a row already; otherwise a row near it that passes, if found.
pub(crate) fn settle(
    field: &mut dyn Field,
    factual: &Factual,
    norm: Norm,
    test: Test,
    candidate: Candidate,
    finish: Finish,
    meter: &mut Meter,
) -> Result<Option<Candidate>> {
    if factual.domain == Domain::Relaxed || candidate.row.is_some() {
        return Ok(Some(candidate));
    }
    let Some((row, point)) = factual.set.settle(&candidate.point) else { return Ok(None) };
    let Some(here) = Slope::read(field, point, meter)? else { return Ok(None) };
    meter.path.step(&here.at.point);
    let mut settled = Settled { row, here };
    let cost = |point: &[f32]| factual.cost(norm, point);
    for _ in 0..REPAIRS {
        if test.passes(settled.here.at.reading) {
            break;
        }
        if !settled.repair(field, factual, &cost, test, meter)? {
            return Ok(None);
        }
    }
    if !test.passes(settled.here.at.reading) {
        return Ok(None);
    }
    let trims = if finish == Finish::Trim { TRIMS } else { 0 };
    for _ in 0..trims {
        if !settled.trim(field, factual, &cost, test, meter)? {
            break;
        }
    }
    Ok(Some(Candidate { row: Some(settled.row), ..settled.here.at }))
}

/// A row that satisfies the rules, and the slope of the field there.
struct Settled {
    row: Row,
    here: Slope,
}

impl Settled {
    /// Makes the single change that raises the field most for its cost; false if none does.
    fn repair(
        &mut self,
        field: &mut dyn Field,
        factual: &Factual,
        cost: &impl Fn(&[f32]) -> f64,
        test: Test,
        meter: &mut Meter,
    ) -> Result<bool> {
        let here = cost(&self.here.at.point);
        let promise = |point: &[f32]| {
            let gain = self.gain(point);
            let price = (cost(point) - here).max(1e-3);
            (gain > 0.0).then_some(gain / price)
        };
        let mut best: Option<(Row, Candidate)> = None;
        let (rows, points) = self.most_promising(factual, promise);
        let readings = meter.read_all(field, &points);
        for ((row, point), reading) in rows.into_iter().zip(points.rows()).zip(readings) {
            let candidate = Candidate::new(point.to_vec(), reading);
            let better = |than: &Candidate| match (test.passes(reading), test.passes(than.reading))
            {
                (true, true) => cost(&candidate.point) < cost(&than.point),
                (false, false) => reading.value > than.reading.value,
                (passes, _) => passes,
            };
            if reading.value > self.here.at.reading.value
                && best.as_ref().is_none_or(|(_, than)| better(than))
            {
                best = Some((row, candidate));
            }
        }
        self.go(best, field, meter)
    }

    /// Makes a single change that is cheaper and still passes; false if none does.
    fn trim(
        &mut self,
        field: &mut dyn Field,
        factual: &Factual,
        cost: &impl Fn(&[f32]) -> f64,
        test: Test,
        meter: &mut Meter,
    ) -> Result<bool> {
        let here = cost(&self.here.at.point);
        // The surface is curved, so a small predicted miss is allowed.
        let slack = 0.25 * (self.here.at.reading.value - test.threshold).abs() + 0.02;
        let promise = |point: &[f32]| {
            let saved = here - cost(point);
            let value = self.here.at.reading.value + self.gain(point);
            (saved > 1e-6 && value + slack >= test.threshold).then_some(saved)
        };
        let (mut rows, points) = self.most_promising(factual, promise);
        let all: Vec<usize> = (0..points.len()).collect();
        for chunk in all.chunks(field.together()) {
            let readings = meter.read_all(field, &points.select(chunk));
            let mut read = chunk.iter().zip(readings);
            if let Some((&at, reading)) = read.find(|(_, reading)| test.passes(*reading)) {
                let candidate = Candidate::new(points.row(at).to_vec(), reading);
                return self.go(Some((rows.swap_remove(at), candidate)), field, meter);
            }
        }
        Ok(false)
    }

    /// The predicted increase of a change, by the gradient.
    fn gain(&self, point: &[f32]) -> f64 {
        let steps = point.iter().zip(&self.here.at.point).zip(&self.here.gradient);
        steps.map(|((&to, &from), &g)| f64::from(g) * (f64::from(to) - f64::from(from))).sum()
    }

    fn most_promising(
        &self,
        factual: &Factual,
        promise: impl Fn(&[f32]) -> Option<f64>,
    ) -> (Vec<Row>, Points) {
        let moves = factual.set.moves(&self.row);
        let rated = moves.points().enumerate();
        let mut rated: Vec<(f64, usize, &[f32])> =
            rated.filter_map(|(index, point)| Some((promise(point)?, index, point))).collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut rows, mut points) = (Vec::new(), Points::new(self.here.at.point.len()));
        for (_, index, point) in rated.into_iter().take(TRIED) {
            rows.push(moves.row(index));
            points.push(point);
        }
        (rows, points)
    }

    fn go(
        &mut self,
        to: Option<(Row, Candidate)>,
        field: &mut dyn Field,
        meter: &mut Meter,
    ) -> Result<bool> {
        let Some((row, candidate)) = to else { return Ok(false) };
        let Some(here) = Slope::read(field, candidate.point, meter)? else { return Ok(false) };
        meter.path.step(&here.at.point);
        *self = Self { row, here };
        Ok(true)
    }
}
