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

mod lower;
mod polish;
mod proof;
mod raise;
mod run;

use std::ops::Range;

use self::run::{Run, Spot};
use crate::action::{Lever, Tried};
use crate::counterfactual::field::Field;
use crate::counterfactual::{Factual, Meter, Norm};
use crate::data::Row;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::routes::{Line, Routes};

use super::{Candidate, Test};

/// The trees of some models, prepared for searches.
#[derive(Debug)]
pub(crate) struct Cells {
    /// The routes of each model, if it is a sum of trees.
    routes: Vec<Option<Routes>>,
    /// For each column the borders of all trees.
    borders: Vec<Vec<f32>>,
    /// Whether some models are not trees; the field then has a slope inside the cells.
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

    /// Every cell of the score of one model, for proofs.
    pub(crate) const EVERY_CELL: Self = Self { most: usize::MAX, width: None };

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
        let is_uneven = density.width.is_some() || self.has_slopes;
        let fine = factual.set.levers(factual.point, density.most.max(MOST), |column| Tried {
            borders: &self.borders[column],
            others: &others[column],
        });
        let most = match density.most {
            usize::MAX => usize::MAX,
            most => most.min((VALUES / fine.len().max(1)).max(LEAST)),
        };
        let thinned = |lever: &Lever| {
            let own = &factual.point[lever.columns.clone()];
            lever.clone().thinned(most, own)
        };
        let levers: Vec<Lever> = fine.iter().map(thinned).collect();
        let prices = levers.iter().map(|lever| prices(lever, factual, norm)).collect();
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
    /// The cost that each value of each lever adds to the point's; under L2, to its square.
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

/// A smaller relative saving does not count.
const WORTH: f64 = 1e-9;

/// The cost that each value of a lever adds.
fn prices(lever: &Lever, factual: &Factual, norm: Norm) -> Vec<f64> {
    (0..lever.len())
        .map(|choice| price(norm, factual, lever.point(choice), lever.columns.clone()))
        .collect()
}

/// The cost of some columns, under L2 its square.
fn price(norm: Norm, factual: &Factual, to: &[f32], columns: Range<usize>) -> f64 {
    let from = &factual.point[columns.clone()];
    let differences = to.iter().zip(from).map(|(&a, &b)| f64::from(a) - f64::from(b));
    let sum = |differences: &mut dyn Iterator<Item = f64>| match norm {
        Norm::L1 => differences.map(f64::abs).sum(),
        Norm::L2 => differences.map(|d| d * d).sum(),
    };
    match factual.set.prices() {
        None => sum(&mut differences.into_iter()),
        Some(prices) => sum(&mut differences
            .zip(&prices[columns])
            .map(|(d, price)| d * price[usize::from(d > 0.0)])),
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
        field.aim_at(test.threshold);
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
        let test = Test::ACCEPTED;
        field.aim_at(test.threshold);
        let (limit, locked) = (f64::INFINITY, None);
        let mut run = Run { search: self, field, test, meter, locked, limit };
        let mut here = run.spot(centre)?;
        let centre = here.point.clone();
        let mut last = here.clone();
        for _ in 0..self.steps {
            let Some(next) = run.rise_within(&here, &centre, radius) else { break };
            here = next;
            if test.passes(here.reading) {
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
        price(self.norm, self.factual, point, 0..point.len())
    }

    /// The price of a lever at a point.
    fn price_at(&self, lever: usize, point: &[f32]) -> f64 {
        let columns = self.levers[lever].columns.clone();
        price(self.norm, self.factual, &point[columns.clone()], columns)
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

/// The choices of a lever from one to before another.
type Choices = (usize, usize);

#[cfg(test)]
mod tests;
