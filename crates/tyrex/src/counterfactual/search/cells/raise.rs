//! Raising the field: from a point to one that passes, or to the highest near a centre.

use super::Choices;
use super::run::{OFFERS, Run, Spot};
use crate::counterfactual::Norm;
use crate::counterfactual::field::Forecast;

/// A change with its rate: higher is better.
struct Offer {
    rate: f64,
    changes: Vec<(usize, usize)>,
}

/// A smaller gain is rounding.
const LEAST_GAIN: f64 = 1e-9;

impl Run<'_, '_> {
    /// Raises the field until the point passes, or as far as it goes.
    pub(super) fn raise(&mut self, mut here: Spot, power: i32) -> Spot {
        for _ in 0..self.search.steps {
            if self.test.passes(here.reading) || !self.step() {
                break;
            }
            let Some(next) = self.rise(&here, power) else { break };
            here = next;
        }
        here
    }

    /// The rate of a change: `gain^power / cost`; `None` if it gains nothing.
    fn rate(&self, here: &Spot, forecast: Forecast, total: f64, power: i32) -> Option<f64> {
        let passes = self.test.foresees(forecast);
        let gain = forecast.value.min(self.test.threshold) - here.reading.value;
        let gain = if passes { gain.max(1e-12) } else { gain };
        if gain <= 0.0 || gain.is_nan() || total >= self.limit {
            return None;
        }
        let cost = self.search.cost(total) - self.search.cost(here.total);
        Some(gain.powi(power) / cost.max(1e-9))
    }

    /// The change of one feature with the largest gain per cost; of two, if none gains anything.
    fn rise(&mut self, here: &Spot, power: i32) -> Option<Spot> {
        let others = |lever: usize| here.total - self.search.price_at(lever, &here.point);
        let ranges: Vec<(usize, Choices)> = self
            .free_levers()
            .map(|lever| (lever, self.search.range(lever, self.limit - others(lever))))
            .filter(|(_, range)| range.0 < range.1)
            .collect();
        let others: Vec<f64> = ranges.iter().map(|&(lever, _)| others(lever)).collect();
        let gainful = here.reading.value.min(self.test.threshold);
        let forecasts = self.along(here, &ranges, gainful)?;
        let mut of_choices = forecasts.iter();
        let mut offers: Vec<Offer> = Vec::new();
        for (&(lever, range), others) in ranges.iter().zip(others) {
            for (choice, &forecast) in (range.0..range.1).zip(&mut of_choices) {
                let total = others + self.search.prices[lever][choice];
                if let Some(rate) = self.rate(here, forecast, total, power) {
                    offer(&mut offers, Offer { rate, changes: vec![(lever, choice)] });
                }
            }
        }
        for Offer { changes, .. } in &offers {
            let next = self.make(here, changes);
            if let Some(next) = next.filter(|next| self.is_higher(next, here)) {
                return Some(next);
            }
        }
        let adjusted = self.adjusted(here, self.limit);
        let readings = self.read_all(&adjusted);
        let mut best: Option<(f64, Spot)> = None;
        for ((values, point), reading) in adjusted.into_iter().zip(readings) {
            let total = self.search.total(&point);
            let Some(rate) = self.rate(here, reading.into(), total, power) else { continue };
            if best.as_ref().is_none_or(|(than, _)| rate > *than) {
                best = Some((rate, Spot { values, point, reading, total }));
            }
        }
        match best {
            Some((_, spot)) => Some(spot),
            None if offers.is_empty() => {
                self.rise_by_two(here, &Self::highest_levers(&ranges, &forecasts), power)
            }
            None => None,
        }
    }

    /// The change of two of some features with the largest gain per cost.
    fn rise_by_two(&mut self, here: &Spot, levers: &[usize], power: i32) -> Option<Spot> {
        let mut offers: Vec<Offer> = Vec::new();
        for (place, &first) in levers.iter().enumerate() {
            for &second in &levers[place + 1..] {
                let prices = [first, second].map(|l| self.search.price_at(l, &here.point));
                let others = here.total - prices[0] - prices[1];
                let most = self.limit - others;
                let ranges = [first, second].map(|lever| self.search.range(lever, most));
                let Some(values) = self.over(here, [first, second], ranges) else { continue };
                let columns = ranges[1].1 - ranges[1].0;
                for (index, value) in values.into_iter().enumerate() {
                    let a = ranges[0].0 + index / columns;
                    let b = ranges[1].0 + index % columns;
                    let total =
                        others + self.search.prices[first][a] + self.search.prices[second][b];
                    let forecast = Forecast { accepts: value >= 0.0, value };
                    if let Some(rate) = self.rate(here, forecast, total, power) {
                        let changes = vec![(first, a), (second, b)];
                        offer(&mut offers, Offer { rate, changes });
                    }
                }
            }
        }
        for Offer { changes, .. } in &offers {
            let next = self.make(here, changes);
            if let Some(next) = next.filter(|next| self.is_higher(next, here)) {
                return Some(next);
            }
        }
        None
    }

    /// The change of one feature that raises the field most, within a distance of a centre.
    pub(super) fn rise_within(&mut self, here: &Spot, centre: &[f32], radius: f64) -> Option<Spot> {
        if !self.step() {
            return None;
        }
        let mut offers: Vec<Offer> = Vec::new();
        let ranges: Vec<(usize, Choices)> =
            self.free_levers().map(|lever| (lever, (0, self.search.levers[lever].len()))).collect();
        let gainful = here.reading.value + LEAST_GAIN;
        let mut forecasts = self.along(here, &ranges, gainful)?.into_iter();
        for (lever, range) in ranges {
            for (choice, forecast) in (range.0..range.1).zip(&mut forecasts) {
                let rate = forecast.value - here.reading.value;
                if rate > LEAST_GAIN {
                    offers.push(Offer { rate, changes: vec![(lever, choice)] });
                }
            }
        }
        offers.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        for Offer { changes, .. } in offers {
            let Some((values, point)) = self.changed(here, &changes) else { continue };
            if Norm::L2.distance(&point, centre) > radius {
                continue;
            }
            let next = self.read(values, point)?;
            if next.reading.value > here.reading.value {
                return Some(next);
            }
        }
        None
    }
}

/// Keeps the best offers, the best first.
fn offer(offers: &mut Vec<Offer>, new: Offer) {
    let place = offers.partition_point(|old| old.rate >= new.rate);
    if place < OFFERS {
        offers.insert(place, new);
        offers.truncate(OFFERS);
    }
}
