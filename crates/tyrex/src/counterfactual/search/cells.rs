//! `CellSearch`: the closest point with `field >= threshold`, for fields of trees.
//!
//! The score of trees is constant on cells, so it has no slope. Its cells are known: for each
//! feature the values worth trying are those just inside a cell, on the side of the factual
//! ([`Lever`]). The trees are walked once for all values of a feature ([`Field::along`]), and once
//! for all pairs of values of two ([`Field::over`]).
//!
//! 1. *Raise*: from a start, the change with the largest gain per cost, until the point passes.
//! 2. *Lower*: the cheapest passing value of one feature, then, for the cheapest of these points, of
//!    two at a time, until no change of one or two features is cheaper and passes. If pairs cannot be
//!    read together, one of the two goes back to the factual's value.
//! 3. *Try without*: each changed feature in turn is kept at the factual's value, and 1 and 2 are
//!    repeated without it.
//!
//! The values read along a line are predictions. Every point that is kept is read by itself, so a
//! rounded sum cannot make an answer pass. The points are rows where only rows are answers.

use crate::action::{Lever, Tried};
use crate::counterfactual::field::{Field, WALK_OVER};
use crate::counterfactual::{Factual, Meter, Norm};
use crate::data::{Row, Value};
use crate::error::{Error, Result};
use crate::measure::Reading;
use crate::model::Model;
use crate::model::routes::{Line, Routes};
use crate::points::Points;

use super::{Candidate, Test};

/// The trees of some models, prepared for searches.
#[derive(Debug)]
pub(crate) struct Cells {
    /// The routes of each model, if it is a sum of trees.
    routes: Vec<Option<Routes>>,
    /// For each column the borders of all trees.
    borders: Vec<Vec<f32>>,
    /// Whether some models are no trees, whose field has a slope inside the cells.
    has_slopes: bool,
}

/// How densely values are tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Density {
    /// The most values of a feature.
    pub(crate) most: usize,
    /// The width of the neighbours, for a field that reads them: it differs inside a cell.
    pub(crate) width: Option<f64>,
}

/// The values of a feature if one walk reads them, and if each is a reading of many models.
const MOST: usize = 512;
const MOST_OF_MANY: usize = 64;
/// The values of all features together, and the least of each; the last steps read all of a feature.
const VALUES: usize = 2048;
const LEAST: usize = 24;

impl Density {
    /// For the score of one model.
    pub(crate) const SCORE: Self = Self { most: MOST, width: None };
    /// For the scores of many models.
    pub(crate) const MODELS: Self = Self { most: MOST_OF_MANY, width: None };

    /// For a field that reads neighbours of this width.
    pub(crate) fn of_neighbours(width: f64) -> Self {
        Self { most: MOST_OF_MANY, width: Some(width) }
    }
}

/// Whether a search can run on a model: it has gradients, or it is trees. Black boxes are neither.
pub fn is_searchable(model: &dyn Model) -> bool {
    model.differentiable().is_some() || model.trees().is_some()
}

impl Cells {
    /// The cells of models; `None` if all have gradients, so that no search needs cells. A model
    /// that is neither trees nor has gradients is an error.
    pub(crate) fn of<'m>(models: impl Iterator<Item = &'m dyn Model>) -> Result<Option<Self>> {
        let mut cells = Self { routes: Vec::new(), borders: Vec::new(), has_slopes: false };
        let mut has_trees = false;
        for model in models {
            cells.borders.resize(model.dim(), Vec::new());
            if model.differentiable().is_some() {
                cells.has_slopes = true;
                cells.routes.push(None);
                continue;
            }
            let Some(trees) = model.trees() else {
                return Err(Error::InvalidModel(
                    "a search needs models with gradients, or trees; one is a black box".to_owned(),
                ));
            };
            has_trees = true;
            let thresholds = trees.thresholds();
            for (all, own) in cells.borders.iter_mut().zip(thresholds.columns()) {
                all.extend(own.cuts().iter().map(|cut| cut.next_down()));
            }
            cells.routes.push(Routes::of(trees));
        }
        for own in &mut cells.borders {
            own.sort_by(f32::total_cmp);
            own.dedup();
        }
        Ok(has_trees.then_some(cells))
    }

    /// The routes of the first model.
    pub(crate) fn routes(&self) -> Option<&Routes> {
        self.routes.first().and_then(Option::as_ref)
    }

    /// The routes of all models, if all are sums of trees.
    pub(crate) fn all_routes(&self) -> Option<Vec<&Routes>> {
        self.routes.iter().map(Option::as_ref).collect()
    }

    /// A search for one factual.
    pub(crate) fn search<'a>(
        &self,
        factual: &'a Factual<'a>,
        norm: Norm,
        steps: usize,
        density: Density,
    ) -> CellSearch<'a> {
        let others: Vec<Vec<f32>> = (0..factual.point.len())
            .map(|column| self.others(column, factual.point[column], density))
            .collect();
        let all = |most: usize| {
            factual.set.levers(factual.point, most, |column| Tried {
                borders: &self.borders[column],
                others: &others[column],
            })
        };
        let is_uneven = density.width.is_some() || self.has_slopes;
        let fine = all(MOST);
        let most = density.most.min((VALUES / fine.len().max(1)).max(LEAST));
        let levers = all(most);
        let prices = levers.iter().map(|lever| prices(lever, factual.point, norm)).collect();
        CellSearch { factual, norm, levers, fine, prices, steps, is_uneven }
    }

    /// Values to try inside the cells.
    fn others(&self, column: usize, own: f32, density: Density) -> Vec<f32> {
        let mut others = Vec::new();
        if let Some(width) = density.width {
            for &border in &self.borders[column] {
                let away = if border >= own { 1.0 } else { -1.0 };
                for widths in [0.75, 1.5, 2.25, 3.0] {
                    others.push((f64::from(border) + away * widths * width) as f32);
                }
            }
        }
        if self.has_slopes {
            // Networks see about one unit of an encoded column.
            for step in 0..24 {
                let distance = 0.01 * 1.35_f64.powi(step);
                others.extend([-distance, distance].map(|by| (f64::from(own) + by) as f32));
            }
        }
        others
    }
}

/// A search for one factual; see the module.
pub(crate) struct CellSearch<'a> {
    factual: &'a Factual<'a>,
    norm: Norm,
    levers: Vec<Lever>,
    /// The same levers with all values.
    fine: Vec<Lever>,
    /// What each value of each lever adds to the cost of the point, under L2 to its square.
    prices: Vec<Vec<f64>>,
    /// The most moves of one raise or one lowering.
    steps: usize,
    /// Whether the field differs inside a cell.
    is_uneven: bool,
}

/// How long to look for cheaper points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Single changes only.
    Single,
    /// Pairs too, and each changed feature is tried without.
    Full,
}

/// A point of the search. Rows have values; points of sets without rows have none.
#[derive(Debug, Clone)]
struct Spot {
    values: Vec<Value>,
    point: Vec<f32>,
    reading: Reading,
    /// The sum of the prices.
    total: f64,
}

/// The rounds in which each changed feature is tried without.
const ROUNDS: usize = 3;
/// The features that a pair is completed with: those that raise the field most.
const SECONDS: usize = 10;
/// A point without one of the features that costs at most this many times the best is lowered by
/// pairs too.
const NEARLY: f64 = 1.1;
/// Proposals that are tried one after the other if the first is refused.
const OFFERS: usize = 4;
/// Values of a feature in a linear rule that are tried with other numbers adjusted.
const ADJUSTED: usize = 8;
/// The times that the interval of a feature is divided, and into how many parts.
const REFINEMENTS: usize = 2;
const PARTS: usize = 8;
/// A relative saving below this is none.
const WORTH: f64 = 1e-9;

/// What each value of a lever adds to the cost.
fn prices(lever: &Lever, factual: &[f32], norm: Norm) -> Vec<f64> {
    let own = &factual[lever.columns.clone()];
    (0..lever.len()).map(|choice| price(norm, lever.point(choice), own)).collect()
}

/// The cost of some columns, under L2 its square.
fn price(norm: Norm, to: &[f32], from: &[f32]) -> f64 {
    let differences = to.iter().zip(from).map(|(&a, &b)| f64::from(a) - f64::from(b));
    match norm {
        Norm::L1 => differences.map(f64::abs).sum(),
        Norm::L2 => differences.map(|d| d * d).sum(),
    }
}

impl CellSearch<'_> {
    /// The cheapest point found that passes, or the best that does not. The result costs no more
    /// than any start that passes. `None` if the budget is spent before anything is read.
    pub(crate) fn cheapest(
        &self,
        field: &mut dyn Field,
        test: Test,
        starts: &[&[f32]],
        care: Care,
        meter: &mut Meter,
    ) -> Option<Candidate> {
        let mut run = Run { search: self, field, test, meter, locked: None, limit: f64::INFINITY };
        let (mut best, mut failed): (Option<Spot>, Option<Spot>) = (None, None);
        let powers: &[i32] = if care == Care::Full { &[1, 2] } else { &[1] };
        for start in starts {
            let Some(start) = run.spot(start) else { continue };
            run.meter.path.step(&start.point);
            let already = test.passes(start.reading);
            for &power in if already { &powers[..1] } else { powers } {
                run.limit = if already { f64::INFINITY } else { limit(best.as_ref()) };
                let raised = run.raise(start.clone(), power);
                if !test.passes(raised.reading) {
                    keep(&mut failed, raised, |a, b| a.reading.value > b.reading.value);
                    continue;
                }
                let lowered = run.lower(raised, Care::Single);
                keep(&mut best, lowered, |a, b| a.total < b.total);
            }
        }
        let Some(mut best) = best else { return failed.map(|spot| self.candidate(spot)) };
        if care == Care::Full {
            best = run.lower(best, care);
            best = run.try_without(best);
        }
        run.meter.path.step(&best.point);
        Some(self.candidate(best))
    }

    /// The highest point of a field that changes of single features lead to, within a distance of
    /// a centre; the last one that the model accepts.
    pub(crate) fn highest(
        &self,
        field: &mut dyn Field,
        centre: &[f32],
        radius: f64,
        meter: &mut Meter,
    ) -> Option<Candidate> {
        let everything = Test { threshold: f64::NEG_INFINITY };
        let (limit, locked) = (f64::INFINITY, None);
        let mut run = Run { search: self, field, test: everything, meter, locked, limit };
        let mut here = run.spot(centre)?;
        let centre = here.point.clone();
        let mut last = here.clone();
        for _ in 0..self.steps {
            let Some(next) = run.rise_within(&here, &centre, radius) else { break };
            here = next;
            if everything.passes(here.reading) {
                run.meter.path.step(&here.point);
                last = here.clone();
            }
        }
        Some(self.candidate(last))
    }

    fn candidate(&self, spot: Spot) -> Candidate {
        let row = (!self.factual.set.is_relaxed()).then(|| Row::from_checked(spot.values));
        Candidate { point: spot.point, reading: spot.reading, row }
    }

    /// The cost of a sum of prices.
    fn cost(&self, total: f64) -> f64 {
        match self.norm {
            Norm::L1 => total,
            Norm::L2 => total.max(0.0).sqrt(),
        }
    }

    fn total(&self, point: &[f32]) -> f64 {
        price(self.norm, point, self.factual.point)
    }

    /// The price of a lever at a point.
    fn price_at(&self, lever: usize, point: &[f32]) -> f64 {
        let columns = self.levers[lever].columns.clone();
        price(self.norm, &point[columns.clone()], &self.factual.point[columns])
    }

    /// The levers that a point has changed, the dearest first.
    fn changed(&self, point: &[f32]) -> Vec<usize> {
        let mut changed: Vec<(f64, usize)> = (0..self.levers.len())
            .map(|lever| (self.price_at(lever, point), lever))
            .filter(|(price, _)| *price > 0.0)
            .collect();
        changed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        changed.into_iter().map(|(_, lever)| lever).collect()
    }

    /// The choices of a lever from the first to the last one that costs less than `most`.
    fn range(&self, lever: usize, most: f64) -> (usize, usize) {
        let prices = &self.prices[lever];
        let from = prices.iter().position(|&price| price < most);
        let to = prices.iter().rposition(|&price| price < most);
        from.zip(to).map_or((0, 0), |(from, to)| (from, to + 1))
    }

    fn line(&self, lever: usize, (from, to): (usize, usize)) -> Line<'_> {
        let Lever { columns, points, .. } = &self.levers[lever];
        let width = columns.len();
        Line { start: columns.start, width, values: &points[from * width..to * width] }
    }

    /// The choice of the factual's own value.
    fn own(&self, lever: usize) -> Option<usize> {
        self.prices[lever].iter().position(|&price| price == 0.0)
    }
}

/// The price that a further point must not reach.
fn limit(best: Option<&Spot>) -> f64 {
    best.map_or(f64::INFINITY, |best| best.total * (1.0 - WORTH))
}

fn keep(best: &mut Option<Spot>, other: Spot, is_better: impl Fn(&Spot, &Spot) -> bool) {
    if best.as_ref().is_none_or(|best| is_better(&other, best)) {
        *best = Some(other);
    }
}

/// A search at work.
struct Run<'r, 'w> {
    search: &'r CellSearch<'r>,
    field: &'r mut dyn Field,
    test: Test,
    meter: &'r mut Meter<'w>,
    /// A lever that keeps the factual's value.
    locked: Option<usize>,
    /// A point whose price is not below this is of no use.
    limit: f64,
}

/// A change with its rate: higher is better.
struct Offer {
    rate: f64,
    changes: Vec<(usize, usize)>,
}

impl Run<'_, '_> {
    /// A point of the set near a start, and its reading; `None` if there is none or the budget is
    /// spent.
    fn spot(&mut self, start: &[f32]) -> Option<Spot> {
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

    fn read(&mut self, values: Vec<Value>, point: Vec<f32>) -> Option<Spot> {
        let reading = self.meter.read(self.field, &point)?;
        let total = self.search.total(&point);
        Some(Spot { values, point, reading, total })
    }

    /// The point with some changes, if the rules allow it and the budget does.
    fn make(&mut self, here: &Spot, changes: &[(usize, usize)]) -> Option<Spot> {
        let (values, point) = self.changed(here, changes)?;
        self.read(values, point)
    }

    fn changed(&self, here: &Spot, changes: &[(usize, usize)]) -> Option<(Vec<Value>, Vec<f32>)> {
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

    /// The readings of the choices of a lever in a range.
    fn along(&mut self, here: &Spot, lever: usize, range: (usize, usize)) -> Option<Vec<Reading>> {
        let line = self.search.line(lever, range);
        let work = self.field.evaluations_along(line.len());
        self.meter.take(0, work).then(|| self.field.along(&here.point, line))
    }

    fn free_levers(&self) -> impl Iterator<Item = usize> + use<> {
        let locked = self.locked;
        (0..self.search.levers.len()).filter(move |&lever| Some(lever) != locked)
    }

    /// Takes a step from the budget.
    fn step(&mut self) -> bool {
        self.meter.take(1, 0)
    }

    /// Raises the field until the point passes, or as far as it goes.
    fn raise(&mut self, mut here: Spot, power: i32) -> Spot {
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
    fn rate(&self, here: &Spot, reading: Reading, total: f64, power: i32) -> Option<f64> {
        let passes = self.test.passes(reading);
        let gain = reading.value.min(self.test.threshold) - here.reading.value;
        let gain = if passes { gain.max(1e-12) } else { gain };
        if gain <= 0.0 || gain.is_nan() || total >= self.limit {
            return None;
        }
        let cost = self.search.cost(total) - self.search.cost(here.total);
        Some(gain.powi(power) / cost.max(1e-9))
    }

    /// The change of one feature with the largest gain per cost; of two, if none gains anything.
    fn rise(&mut self, here: &Spot, power: i32) -> Option<Spot> {
        let mut offers: Vec<Offer> = Vec::new();
        for lever in self.free_levers() {
            let others = here.total - self.search.price_at(lever, &here.point);
            let range = self.search.range(lever, self.limit - others);
            if range.0 == range.1 {
                continue;
            }
            let readings = self.along(here, lever, range)?;
            for (choice, reading) in (range.0..).zip(readings) {
                let total = others + self.search.prices[lever][choice];
                if let Some(rate) = self.rate(here, reading, total, power) {
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
            let Some(rate) = self.rate(here, reading, total, power) else { continue };
            if best.as_ref().is_none_or(|(than, _)| rate > *than) {
                best = Some((rate, Spot { values, point, reading, total }));
            }
        }
        match best {
            Some((_, spot)) => Some(spot),
            None if offers.is_empty() => self.rise_by_two(here, power),
            None => None,
        }
    }

    fn is_higher(&self, next: &Spot, here: &Spot) -> bool {
        next.reading.value > here.reading.value || self.test.passes(next.reading)
    }

    /// The change of two features with the largest gain per cost.
    fn rise_by_two(&mut self, here: &Spot, power: i32) -> Option<Spot> {
        let mut offers: Vec<Offer> = Vec::new();
        let levers: Vec<usize> = self.free_levers().collect();
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
                    let reading = Reading { score: 0.0, value };
                    if let Some(rate) = self.rate(here, reading, total, power) {
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

    /// The values at all pairs of choices of two levers in their ranges, if they can be read
    /// together and the budget allows it.
    fn over(
        &mut self,
        here: &Spot,
        levers: [usize; 2],
        ranges: [(usize, usize); 2],
    ) -> Option<Vec<f64>> {
        let lines = [0, 1].map(|which| self.search.line(levers[which], ranges[which]));
        if lines.iter().any(|line| line.len() == 0) {
            return None;
        }
        let work = WALK_OVER * self.field.evaluations();
        if !self.meter.take(0, work) {
            return None;
        }
        self.field.over(&here.point, lines).map(<[f64]>::to_vec)
    }

    /// The points with one value changed and other numbers adjusted to the linear rules, that cost
    /// less than `limit`.
    fn adjusted(&self, here: &Spot, limit: f64) -> Vec<(Vec<Value>, Vec<f32>)> {
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

    fn read_all(&mut self, spots: &[(Vec<Value>, Vec<f32>)]) -> Vec<Reading> {
        let mut points = Points::new(self.search.factual.point.len());
        spots.iter().for_each(|(_, point)| points.push(point));
        if points.is_empty() { Vec::new() } else { self.meter.read_all(self.field, &points) }
    }

    /// Lowers the cost of a point that passes, as long as it does.
    fn lower(&mut self, mut here: Spot, care: Care) -> Spot {
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

    /// Takes the cheapest passing value of single features, among all values.
    fn polished(&mut self, mut here: Spot) -> Spot {
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

    fn is_cheaper(&self, next: &Spot, here: &Spot) -> bool {
        self.test.passes(next.reading) && next.total < here.total
    }

    /// A passing point with a cheaper value of one feature.
    fn cheaper_by_one(&mut self, here: &Spot) -> Option<Spot> {
        for lever in self.search.changed(&here.point) {
            let price = self.search.price_at(lever, &here.point);
            let range = self.search.range(lever, price * (1.0 - WORTH));
            if range.0 == range.1 {
                continue;
            }
            let readings = self.along(here, lever, range)?;
            let mut passing: Vec<(f64, usize)> = (range.0..)
                .zip(readings)
                .filter(|(_, reading)| self.test.passes(*reading))
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
        let mut gains = Vec::with_capacity(levers.len());
        for lever in levers {
            let range = self.search.range(lever, here.total);
            let readings = self.along(here, lever, range)?;
            let highest = readings.iter().map(|reading| reading.value);
            gains.push((highest.fold(f64::NEG_INFINITY, f64::max), lever));
        }
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
                    let readings = self.along(&without, second, any)?;
                    for (b, reading) in (any.0..).zip(readings) {
                        let total = others + self.search.prices[second][b];
                        if !self.test.passes(reading) || total >= most(&best) {
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
    fn try_without(&mut self, mut best: Spot) -> Spot {
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

    /// Moves each changed number back inside the interval to the next cheaper value that was tried.
    fn refined(&mut self, mut here: Spot) -> Spot {
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
        let prices: Vec<f64> = prices(finer, self.search.factual.point, self.search.norm);
        let first = prices.iter().position(|&own| own < price)?;
        let last = prices.iter().rposition(|&own| own < price)?;
        let width = columns.len();
        let values = &finer.points[first * width..(last + 1) * width];
        let line = Line { start: columns.start, width, values };
        let work = self.field.evaluations_along(line.len());
        if !self.meter.take(0, work) {
            return None;
        }
        let readings = self.field.along(&here.point, line);
        let mut passing: Vec<(f64, usize)> = (first..)
            .zip(readings)
            .filter(|(_, reading)| self.test.passes(*reading))
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

    /// The change of one feature that raises the field most, within a distance of a centre.
    fn rise_within(&mut self, here: &Spot, centre: &[f32], radius: f64) -> Option<Spot> {
        if !self.step() {
            return None;
        }
        let mut offers: Vec<Offer> = Vec::new();
        for lever in self.free_levers() {
            let range = (0, self.search.levers[lever].len());
            let readings = self.along(here, lever, range)?;
            for (choice, reading) in readings.into_iter().enumerate() {
                let rate = reading.value - here.reading.value;
                if rate > 1e-9 {
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
