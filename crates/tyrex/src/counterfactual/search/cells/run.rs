//! A search at work: the points that it reads.

use super::{CellSearch, Choices};
use crate::counterfactual::field::{Field, Forecast};
use crate::counterfactual::search::Test;
use crate::counterfactual::{Factual, Meter};
use crate::data::Value;
use crate::measure::Reading;
use crate::model::routes::Line;
use crate::points::Points;

/// A point of the search. Rows have values; points of sets without rows have none.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) values: Vec<Value>,
    pub(super) point: Vec<f32>,
    pub(super) reading: Reading,
    /// The sum of the prices.
    pub(super) total: f64,
}

/// A search at work.
pub(super) struct Run<'r, 'w> {
    pub(super) search: &'r CellSearch<'r>,
    pub(super) field: &'r mut dyn Field,
    pub(super) test: Test,
    pub(super) meter: &'r mut Meter<'w>,
    /// A lever that keeps the factual's value.
    pub(super) locked: Option<usize>,
    /// A point whose price is not below this is of no use.
    pub(super) limit: f64,
}

/// Proposals that are tried one after the other if the first is refused.
pub(super) const OFFERS: usize = 4;
/// The features that pairs are made of: those that raise the field most.
pub(super) const SECONDS: usize = 10;
/// Values of a feature in a linear rule that are tried with other numbers adjusted.
const ADJUSTED: usize = 8;

impl Run<'_, '_> {
    /// A point of the set near a start, and its reading; `None` if there is none or the budget is
    /// spent.
    pub(super) fn spot(&mut self, start: &[f32]) -> Option<Spot> {
        let Factual { set, .. } = self.search.factual;
        let (values, point) = if set.is_relaxed() {
            let mut point = start.to_vec();
            set.project(&mut point);
            (Vec::new(), point)
        } else {
            let (row, point) = set.settle(start)?;
            (row.values().to_vec(), point)
        };
        self.read(values, point)
    }

    pub(super) fn read(&mut self, values: Vec<Value>, point: Vec<f32>) -> Option<Spot> {
        let reading = self.meter.read(self.field, &point)?;
        let total = self.search.total(&point);
        Some(Spot { values, point, reading, total })
    }

    /// The point with some changes, if the rules allow it and the budget does.
    pub(super) fn make(&mut self, here: &Spot, changes: &[(usize, usize)]) -> Option<Spot> {
        let (values, point) = self.changed(here, changes)?;
        self.read(values, point)
    }

    pub(super) fn changed(
        &self,
        here: &Spot,
        changes: &[(usize, usize)],
    ) -> Option<(Vec<Value>, Vec<f32>)> {
        let (mut values, mut point) = (here.values.clone(), here.point.clone());
        let mut is_bound = false;
        for &(lever, choice) in changes {
            let lever = &self.search.levers[lever];
            point[lever.columns.clone()].copy_from_slice(lever.point(choice));
            if let Some(value) = lever.values.get(choice) {
                values[lever.position] = value.clone();
            }
            is_bound |= lever.is_bound;
        }
        let holds = !is_bound || self.search.factual.set.rules_hold(&values);
        holds.then_some((values, point))
    }

    /// The forecasts of the choices of levers in their ranges, lever by lever; below `least` they are
    /// only known to be below it.
    pub(super) fn along(
        &mut self,
        here: &Spot,
        ranges: &[(usize, Choices)],
        least: f64,
    ) -> Option<Vec<Forecast>> {
        let lines: Vec<Line<'_>> =
            ranges.iter().map(|&(lever, range)| self.search.line(lever, range)).collect();
        let work = self.field.evaluations_along(&lines);
        self.meter.take(0, work).then(|| self.field.along(&here.point, &lines, least))
    }

    /// The values at all pairs of choices of two levers in their ranges, if they can be read
    /// together and the budget allows it.
    pub(super) fn over(
        &mut self,
        here: &Spot,
        levers: [usize; 2],
        ranges: [(usize, usize); 2],
    ) -> Option<Vec<f64>> {
        let lines = [0, 1].map(|which| self.search.line(levers[which], ranges[which]));
        if lines.iter().any(|line| line.len() == 0) {
            return None;
        }
        let work = self.field.evaluations_over()?;
        if !self.meter.take(0, work) {
            return None;
        }
        self.field.over(&here.point, lines).map(<[f64]>::to_vec)
    }

    /// The points with one value changed and other numbers adjusted to the linear rules, that cost
    /// less than `limit`.
    pub(super) fn adjusted(&self, here: &Spot, limit: f64) -> Vec<(Vec<Value>, Vec<f32>)> {
        let set = self.search.factual.set;
        let mut found: Vec<(Vec<Value>, Vec<f32>)> = Vec::new();
        for lever in self.free_levers() {
            let own = &self.search.levers[lever];
            if !own.is_bound || own.values.is_empty() {
                continue;
            }
            let price = self.search.price_at(lever, &here.point);
            let (from, to) = self.search.range(lever, limit - here.total + price);
            let every = (to - from).div_ceil(ADJUSTED).max(1);
            for choice in (from..to).step_by(every) {
                let mut values = here.values.clone();
                values[own.position] = own.values[choice].clone();
                if set.rules_hold(&values) {
                    continue;
                }
                let Some((row, point)) = set.adjusted(values, own.position) else { continue };
                let locked = self.locked.is_some_and(|l| self.search.price_at(l, &point) > 0.0);
                if !locked && self.search.total(&point) < limit {
                    found.push((row.values().to_vec(), point));
                }
            }
        }
        found
    }

    pub(super) fn read_all(&mut self, spots: &[(Vec<Value>, Vec<f32>)]) -> Vec<Reading> {
        let mut points = Points::new(self.search.factual.point.len());
        spots.iter().for_each(|(_, point)| points.push(point));
        if points.is_empty() { Vec::new() } else { self.meter.read_all(self.field, &points) }
    }

    /// The levers whose forecasts rise highest, at most [`SECONDS`], in their order.
    pub(super) fn highest_levers(
        ranges: &[(usize, Choices)],
        forecasts: &[Forecast],
    ) -> Vec<usize> {
        let mut forecasts = forecasts.iter();
        let mut highest: Vec<(f64, usize)> = ranges
            .iter()
            .map(|&(lever, (from, to))| {
                let own = forecasts.by_ref().take(to - from).map(|forecast| forecast.value);
                (own.fold(f64::NEG_INFINITY, f64::max), lever)
            })
            .collect();
        highest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        highest.truncate(SECONDS);
        let mut levers: Vec<usize> = highest.into_iter().map(|(_, lever)| lever).collect();
        levers.sort_unstable();
        levers
    }

    pub(super) fn free_levers(&self) -> impl Iterator<Item = usize> + use<> {
        let locked = self.locked;
        (0..self.search.levers.len()).filter(move |&lever| Some(lever) != locked)
    }

    /// Takes a step from the budget.
    pub(super) fn step(&mut self) -> bool {
        self.meter.take(1, 0)
    }

    pub(super) fn is_higher(&self, next: &Spot, here: &Spot) -> bool {
        next.reading.value > here.reading.value || self.test.passes(next.reading)
    }

    pub(super) fn is_cheaper(&self, next: &Spot, here: &Spot) -> bool {
        self.test.passes(next.reading) && next.total < here.total
    }
}
