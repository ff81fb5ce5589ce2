//! The last digits: values between those that the search tries.

use super::run::{OFFERS, Run, Spot};
use super::{WORTH, prices};
use crate::action::{Lever, Tried};
use crate::model::routes::Line;

/// The times that the interval of a feature is divided, and into how many parts.
const REFINEMENTS: usize = 2;

const PARTS: usize = 8;

impl Run<'_, '_> {
    /// Takes the cheapest passing value of single features, among all values.
    pub(super) fn polished(&mut self, mut here: Spot) -> Spot {
        for _ in 0..self.search.steps {
            let changed = self.search.changed(&here.point);
            let next = changed.into_iter().find_map(|lever| {
                let fine = self.search.fine.get(lever)?;
                self.cheaper_value(&here, lever, fine)
            });
            let Some(next) = next else { break };
            here = next;
        }
        here
    }

    /// Moves each changed number back inside the interval to the next cheaper value that was tried.
    pub(super) fn refined(&mut self, mut here: Spot) -> Spot {
        for _ in 0..REFINEMENTS {
            for lever in self.search.changed(&here.point) {
                if !self.search.levers[lever].is_number {
                    continue;
                }
                if let Some(next) = self.between(&here, lever) {
                    here = next;
                }
            }
        }
        here
    }

    /// A passing point with a number between its own and the next cheaper one that was tried.
    fn between(&mut self, here: &Spot, lever: usize) -> Option<Spot> {
        let own = &self.search.levers[lever];
        let column = own.columns.start;
        let (at, start) = (here.point[column], self.search.factual.point[column]);
        let is_nearer = |x: f32| (x < at) == (start < at) && x != at;
        let nearer = (0..own.len()).map(|choice| own.point(choice)[0]).filter(|&x| is_nearer(x));
        let next = nearer.min_by(|a, b| (a - at).abs().total_cmp(&(b - at).abs()))?;
        let tried: Vec<f32> =
            (1..PARTS).map(|part| next + (at - next) * part as f32 / PARTS as f32).collect();
        let none = |other: usize| Tried {
            borders: &[],
            others: if other == column { &tried } else { &[] },
        };
        let levers = self.search.factual.set.levers(self.search.factual.point, usize::MAX, none);
        let finer = levers.into_iter().find(|finer| finer.position == own.position)?;
        self.cheaper_value(here, lever, &finer)
    }

    /// A passing point with a cheaper value of one feature, from a list of its own.
    fn cheaper_value(&mut self, here: &Spot, lever: usize, finer: &Lever) -> Option<Spot> {
        let Lever { columns, .. } = finer;
        let price = self.search.price_at(lever, &here.point) * (1.0 - WORTH);
        let prices: Vec<f64> = prices(finer, self.search.factual, self.search.norm);
        let first = prices.iter().position(|&own| own < price)?;
        let last = prices.iter().rposition(|&own| own < price)?;
        let width = columns.len();
        let values = &finer.points[first * width..(last + 1) * width];
        let line = Line { start: columns.start, width, values };
        let work = self.field.evaluations_along(&[line]);
        if !self.meter.take(0, work) {
            return None;
        }
        let forecasts = self.field.along(&here.point, &[line], self.test.threshold);
        let mut passing: Vec<(f64, usize)> = (first..)
            .zip(forecasts)
            .filter(|(_, forecast)| self.test.foresees(*forecast))
            .map(|(choice, _)| (prices[choice], choice))
            .filter(|(own, _)| *own < price)
            .collect();
        passing.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, choice) in passing.into_iter().take(OFFERS) {
            let (mut values, mut point) = (here.values.clone(), here.point.clone());
            point[columns.clone()].copy_from_slice(finer.point(choice));
            if let Some(value) = finer.values.get(choice) {
                values[finer.position] = value.clone();
            }
            if finer.is_bound && !self.search.factual.set.rules_hold(&values) {
                continue;
            }
            let next = self.read(values, point)?;
            if self.is_cheaper(&next, here) {
                return Some(next);
            }
        }
        None
    }
}
