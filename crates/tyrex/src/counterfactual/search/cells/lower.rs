//! Lowering the cost of a point that passes: by one feature, by two, and without each.

use super::run::{OFFERS, Run, SECONDS, Spot};
use super::{Care, Choices, WORTH, limit};

/// The rounds in which each changed feature is tried without.
const ROUNDS: usize = 3;

/// A point without one of the features that costs at most this many times the best is lowered by
/// pairs too.
const NEARLY: f64 = 1.1;

impl Run<'_, '_> {
    /// Lowers the cost of a point that passes, as long as it does.
    pub(super) fn lower(&mut self, mut here: Spot, care: Care) -> Spot {
        for _ in 0..self.search.steps {
            if !self.step() {
                break;
            }
            let next = match self.cheaper_by_one(&here) {
                None if care == Care::Full => self.cheaper_by_two(&here),
                next => next,
            };
            let Some(next) = next else { break };
            here = next;
        }
        here = self.polished(here);
        if self.search.is_uneven { self.refined(here) } else { here }
    }

    /// A passing point with a cheaper value of one feature, of the dearest that has one.
    fn cheaper_by_one(&mut self, here: &Spot) -> Option<Spot> {
        let below = |lever: usize| self.search.price_at(lever, &here.point) * (1.0 - WORTH);
        let changed = self.search.changed(&here.point).into_iter();
        let ranges: Vec<(usize, Choices)> = changed
            .map(|lever| (lever, self.search.range(lever, below(lever))))
            .filter(|(_, range)| range.0 < range.1)
            .collect();
        let mut forecasts = self.along(here, &ranges, self.test.threshold)?.into_iter();
        for (lever, (from, to)) in ranges {
            let most = self.search.price_at(lever, &here.point) * (1.0 - WORTH);
            let mut passing: Vec<(f64, usize)> = (from..to)
                .zip(&mut forecasts)
                .filter(|(_, forecast)| self.test.foresees(*forecast))
                .map(|(choice, _)| (self.search.prices[lever][choice], choice))
                .filter(|(price, _)| *price < most)
                .collect();
            passing.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut refused = 0;
            for (_, choice) in passing {
                let Some((values, point)) = self.changed(here, &[(lever, choice)]) else {
                    continue;
                };
                let next = self.read(values, point)?;
                if self.is_cheaper(&next, here) {
                    return Some(next);
                }
                refused += 1;
                if refused == OFFERS {
                    break;
                }
            }
        }
        let mut adjusted = self.adjusted(here, here.total * (1.0 - WORTH));
        adjusted.sort_by(|a, b| self.search.total(&a.1).total_cmp(&self.search.total(&b.1)));
        let readings = self.read_all(&adjusted);
        let each = adjusted.into_iter().zip(readings);
        each.map(|((values, point), reading)| {
            let total = self.search.total(&point);
            Spot { values, point, reading, total }
        })
        .find(|next| self.is_cheaper(next, here))
    }

    /// The levers that raise the field most from here, in their order.
    fn seconds(&mut self, here: &Spot) -> Option<Vec<usize>> {
        let levers: Vec<usize> = self.free_levers().collect();
        if levers.len() <= SECONDS {
            return Some(levers);
        }
        let ranges: Vec<(usize, Choices)> =
            levers.iter().map(|&lever| (lever, self.search.range(lever, here.total))).collect();
        let forecasts = self.along(here, &ranges, f64::NEG_INFINITY)?;
        Some(Self::highest_levers(&ranges, &forecasts))
    }

    /// A passing point in which one feature has a cheaper value and another one any value.
    fn cheaper_by_two(&mut self, here: &Spot) -> Option<Spot> {
        let seconds = self.seconds(here)?;
        if self.field.evaluations_over().is_none() {
            return self.cheaper_without(here, &seconds);
        }
        for first in self.search.changed(&here.point) {
            let mut best: Option<Vec<(usize, usize)>> = None;
            let price = self.search.price_at(first, &here.point);
            let rest = here.total - price;
            let lower = self.search.range(first, price * (1.0 - WORTH));
            if lower.0 == lower.1 {
                continue;
            }
            let mut most = here.total * (1.0 - WORTH);
            for second in seconds.iter().copied().filter(|&second| second != first) {
                let others = rest - self.search.price_at(second, &here.point);
                let any = self.search.range(second, most - others);
                let Some(values) = self.over(here, [first, second], [lower, any]) else { continue };
                let prices = &self.search.prices[second][any.0..any.1];
                for (a, row) in (lower.0..).zip(values.chunks_exact(any.1 - any.0)) {
                    let own = others + self.search.prices[first][a];
                    for (b, (&value, &price)) in (any.0..).zip(row.iter().zip(prices)) {
                        if value < self.test.threshold || own + price >= most {
                            continue;
                        }
                        let changes = vec![(first, a), (second, b)];
                        if self.changed(here, &changes).is_some() {
                            (most, best) = (own + price, Some(changes));
                        }
                    }
                }
            }
            if let Some(changes) = best
                && let Some(next) = self.make(here, &changes)
                && self.is_cheaper(&next, here)
            {
                return Some(next);
            }
        }
        None
    }

    /// A passing point in which one feature has the factual's value and another one any value, for
    /// fields whose pairs of values cannot be read together.
    fn cheaper_without(&mut self, here: &Spot, seconds: &[usize]) -> Option<Spot> {
        for first in self.search.changed(&here.point) {
            let Some(own) = self.search.own(first) else { continue };
            let Some((values, point)) = self.changed(here, &[(first, own)]) else { continue };
            let rest = here.total - self.search.price_at(first, &here.point);
            let without = Spot { values, point, reading: here.reading, total: rest };
            let others = |second: usize| rest - self.search.price_at(second, &here.point);
            let ranges: Vec<(usize, Choices)> = seconds
                .iter()
                .filter(|&&second| second != first)
                .map(|&second| (second, here.total * (1.0 - WORTH) - others(second)))
                .map(|(second, most)| (second, self.search.range(second, most)))
                .filter(|(_, range)| range.0 < range.1)
                .collect();
            let mut forecasts = self.along(&without, &ranges, self.test.threshold)?.into_iter();
            let mut best: Option<(f64, (usize, usize))> = None;
            for (second, (from, to)) in ranges {
                for (choice, forecast) in (from..to).zip(&mut forecasts) {
                    let total = others(second) + self.search.prices[second][choice];
                    let most = best.map_or(here.total * (1.0 - WORTH), |(total, _)| total);
                    if self.test.foresees(forecast)
                        && total < most
                        && self.changed(&without, &[(second, choice)]).is_some()
                    {
                        best = Some((total, (second, choice)));
                    }
                }
            }
            if let Some((_, change)) = best
                && let Some(next) = self.make(&without, &[change])
                && self.is_cheaper(&next, here)
            {
                return Some(next);
            }
        }
        None
    }

    /// The best point without each of the changed features in turn, and so on from there.
    pub(super) fn try_without(&mut self, mut best: Spot) -> Spot {
        for _ in 0..ROUNDS {
            let mut is_better = false;
            for lever in self.search.changed(&best.point) {
                let Some(own) = self.search.own(lever) else { continue };
                let Some(start) = self.make(&best, &[(lever, own)]) else { continue };
                (self.locked, self.limit) = (Some(lever), NEARLY * limit(Some(&best)));
                let raised = self.raise(start, 1);
                self.locked = None;
                if self.test.passes(raised.reading) {
                    let mut lowered = self.lower(raised, Care::Single);
                    if lowered.total < NEARLY * best.total {
                        lowered = self.lower(lowered, Care::Full);
                    }
                    if lowered.total < limit(Some(&best)) {
                        best = lowered;
                        is_better = true;
                        break;
                    }
                }
            }
            self.limit = f64::INFINITY;
            if !is_better {
                break;
            }
        }
        best
    }
}
