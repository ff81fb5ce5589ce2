//! Lowering the cost of a point that passes: by one feature, by two, and without each.

use super::run::{OFFERS, Run, Spot};
use super::{Care, Choices, WORTH, limit};

/// The rounds in which each changed feature is tried without.
const ROUNDS: usize = 3;

/// The features that a pair is completed with: those that raise the field most.
const SECONDS: usize = 10;

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

    /// A passing point with a cheaper value of one feature.
    fn cheaper_by_one(&mut self, here: &Spot) -> Option<Spot> {
        for lever in self.search.changed(&here.point) {
            let price = self.search.price_at(lever, &here.point);
            let range = self.search.range(lever, price * (1.0 - WORTH));
            if range.0 == range.1 {
                continue;
            }
            let forecasts = self.along(here, &[(lever, range)])?;
            let mut passing: Vec<(f64, usize)> = (range.0..)
                .zip(forecasts)
                .filter(|(_, forecast)| self.test.foresees(*forecast))
                .map(|(choice, _)| (self.search.prices[lever][choice], choice))
                .filter(|(own, _)| *own < price * (1.0 - WORTH))
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
        let mut forecasts = self.along(here, &ranges)?.into_iter();
        let mut gains: Vec<(f64, usize)> = ranges
            .into_iter()
            .map(|(lever, range)| {
                let own = forecasts.by_ref().take(range.1 - range.0);
                (own.map(|forecast| forecast.value).fold(f64::NEG_INFINITY, f64::max), lever)
            })
            .collect();
        gains.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        gains.truncate(SECONDS);
        let mut seconds: Vec<usize> = gains.into_iter().map(|(_, lever)| lever).collect();
        seconds.sort_unstable();
        Some(seconds)
    }

    /// A passing point in which one feature has a cheaper value and another one any value.
    fn cheaper_by_two(&mut self, here: &Spot) -> Option<Spot> {
        let seconds = self.seconds(here)?;
        for first in self.search.changed(&here.point) {
            let mut best: Option<(f64, Vec<(usize, usize)>)> = None;
            let price = self.search.price_at(first, &here.point);
            let rest = here.total - price;
            let lower = self.search.range(first, price * (1.0 - WORTH));
            if lower.0 == lower.1 {
                continue;
            }
            for second in seconds.iter().copied().filter(|&second| second != first) {
                let others = rest - self.search.price_at(second, &here.point);
                let most = |best: &Option<(f64, _)>| {
                    best.as_ref().map_or(here.total * (1.0 - WORTH), |(total, _)| *total)
                };
                let any = self.search.range(second, most(&best) - others);
                let columns = any.1 - any.0;
                if columns == 0 {
                    continue;
                }
                if let Some(values) = self.over(here, [first, second], [lower, any]) {
                    let rows = values.chunks_exact(columns);
                    for (a, row) in (lower.0..).zip(rows) {
                        let own = others + self.search.prices[first][a];
                        let prices = &self.search.prices[second][any.0..any.1];
                        for (b, (&value, &price)) in (any.0..).zip(row.iter().zip(prices)) {
                            if value < self.test.threshold || own + price >= most(&best) {
                                continue;
                            }
                            let changes = vec![(first, a), (second, b)];
                            if self.changed(here, &changes).is_some() {
                                best = Some((own + price, changes));
                            }
                        }
                    }
                } else {
                    let Some(own) = self.search.own(first) else { continue };
                    let Some((values, point)) = self.changed(here, &[(first, own)]) else {
                        continue;
                    };
                    let without = Spot { values, point, reading: here.reading, total: rest };
                    let forecasts = self.along(&without, &[(second, any)])?;
                    for (b, forecast) in (any.0..).zip(forecasts) {
                        let total = others + self.search.prices[second][b];
                        if !self.test.foresees(forecast) || total >= most(&best) {
                            continue;
                        }
                        let changes = vec![(first, own), (second, b)];
                        if self.changed(here, &changes).is_some() {
                            best = Some((total, changes));
                        }
                    }
                }
            }
            if let Some((_, changes)) = best
                && let Some(next) = self.make(here, &changes)
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
