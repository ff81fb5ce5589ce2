//! Comparison of two lines by validity and cost.
//!
//! If two methods answered the same factual of the same base model, their costs are compared
//! factual by factual; if the same retrained models evaluated both, validities are compared model
//! by model. A paired difference has a smaller variance than the difference of two means. The
//! results of one factual, or of one retrained model, with several bases count as one observation.

use std::collections::BTreeMap;

use tyrex::counterfactual::Norm;
use tyrex::error::Result;
use tyrex::metric::Summary;

use super::printed;
use crate::experiment::result::{Cell, Comparison, Finding, Found, ResultLine};
use crate::experiment::{Experiment, Results};

/// Validities that differ by no more than half a point count as the same.
pub(super) const SAME_VALIDITY: f64 = 0.005;

/// A line with the comparison it comes from.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) comparison: &'a Comparison,
    pub(super) line: ResultLine,
    /// Whether it belongs to the first experiment for one of the paper's tables of methods: the
    /// table itself, not a variation.
    pub(super) is_main: bool,
}

/// All comparisons of a suite.
pub(super) fn comparisons(results: &Results) -> impl Iterator<Item = (&Experiment, &Comparison)> {
    results.experiments.iter().filter_map(|shown| match &shown.finding {
        Finding::Comparison(comparison) => Some((&shown.experiment, comparison)),
        _ => None,
    })
}

/// All lines of a suite.
pub(super) fn entries(results: &Results) -> Result<Vec<Entry<'_>>> {
    let mut all = Vec::new();
    let mut tables: Vec<&str> = Vec::new();
    for (experiment, comparison) in comparisons(results) {
        let beside = experiment.beside.as_deref().filter(|beside| printed::table(beside).is_some());
        let is_main = beside.is_some_and(|beside| !tables.contains(&beside));
        tables.extend(beside);
        let lines = comparison.lines()?.into_iter();
        all.extend(lines.map(|line| Entry { experiment, comparison, line, is_main }));
    }
    Ok(all)
}

impl<'a> Entry<'a> {
    /// The cells the line is made of.
    pub(super) fn cells(&self) -> impl Iterator<Item = &'a Cell> + use<'a, '_> {
        self.comparison.cells.iter().filter(|cell| {
            cell.norm == self.line.norm
                && cell.contender.full_label() == self.line.contender.full_label()
        })
    }

    /// The mean cost.
    pub(super) fn cost(&self) -> Option<f64> {
        self.line.cost.map(|cost| cost.mean)
    }

    /// The validity under a family of retrained models.
    pub(super) fn validity(&self, change: &str) -> Option<Summary> {
        validity(&self.line, change)
    }

    /// The families of retrained models that evaluated both.
    pub(super) fn shared_families(&self, other: &Entry<'_>) -> Vec<&str> {
        let all = self.line.validity.iter().map(|(change, _)| change.as_str());
        all.filter(|change| other.validity(change).is_some()).collect()
    }

    /// Own minus other validity, over the retrained models that evaluated both.
    pub(super) fn validity_difference(&self, other: &Entry<'_>, change: &str) -> Option<Summary> {
        let theirs = validities(other, change);
        let differences: Vec<(usize, f64)> = validities(self, change)
            .into_iter()
            .filter_map(|(key, validity)| theirs.get(&key).map(|other| (key.1, validity - other)))
            .collect();
        Summary::of_groups(&differences).ok().flatten()
    }

    /// The result for each factual, by base model and row.
    fn answers(&self) -> BTreeMap<(&'a str, usize), (&'a Cell, Option<&'a Found>)> {
        let mut all = BTreeMap::new();
        for cell in self.cells() {
            let Some(base) = self.comparison.data.bases.get(cell.base) else { continue };
            for answer in &cell.answers {
                all.insert((base.model.as_str(), answer.row), (cell, answer.found.as_ref()));
            }
        }
        all
    }

    fn cost_of(&self, found: &Found) -> f64 {
        match self.line.norm {
            Norm::L1 => found.metrics.cost_l1,
            Norm::L2 => found.metrics.cost_l2,
        }
    }
}

/// Two lines on their common factuals.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The number of factuals.
    pub(super) factuals: usize,
    /// By family of retrained models: the share of models that accept, own and other's.
    pub(super) validities: Vec<(String, f64, f64)>,
    /// The mean costs where both found something, own and other's.
    pub(super) costs: Option<(f64, f64)>,
    /// Own minus other's cost there.
    pub(super) difference: Option<Summary>,
    /// The number of these factuals with a lower own cost, which is robust to outliers.
    pub(super) cheaper: usize,
}

impl Pair {
    /// The two lines on their common factuals; none if there are none.
    pub(super) fn of(own: &Entry<'_>, other: &Entry<'_>) -> Option<Self> {
        let theirs = other.answers();
        let (mut factuals, mut costs, mut rows) = (0, Vec::new(), Vec::new());
        let families: Vec<String> =
            own.shared_families(other).into_iter().map(str::to_owned).collect();
        let mut shares = vec![(0.0, 0.0); families.len()];
        for (key, (own_cell, found)) in own.answers() {
            let Some((other_cell, other_found)) = theirs.get(&key) else { continue };
            factuals += 1;
            for (change, (mine, yours)) in families.iter().zip(&mut shares) {
                *mine += survival(own_cell, found, change);
                *yours += survival(other_cell, *other_found, change);
            }
            if let (Some(mine), Some(yours)) = (found, other_found) {
                costs.push((own.cost_of(mine), other.cost_of(yours)));
                rows.push(key.1);
            }
        }
        let count = factuals as f64;
        let mean =
            |side: fn(&(f64, f64)) -> f64| costs.iter().map(side).sum::<f64>() / costs.len() as f64;
        let differences: Vec<(usize, f64)> =
            rows.into_iter().zip(&costs).map(|(row, (own, other))| (row, own - other)).collect();
        (factuals > 0).then(|| Self {
            factuals,
            validities: families
                .into_iter()
                .zip(&shares)
                .map(|(change, (mine, yours))| (change, mine / count, yours / count))
                .collect(),
            costs: (!costs.is_empty()).then(|| (mean(|pair| pair.0), mean(|pair| pair.1))),
            difference: Summary::of_groups(&differences).ok().flatten(),
            cheaper: differences.iter().filter(|(_, difference)| *difference < 0.0).count(),
        })
    }

    /// Whether the own line is about as valid as the other, or more, under every family.
    pub(super) fn is_as_valid(&self) -> bool {
        !self.validities.is_empty()
            && self.validities.iter().all(|(_, own, other)| *own >= other - SAME_VALIDITY)
    }
}

/// The share of a family's models that accept the counterfactual; 0 if none was found.
fn survival(cell: &Cell, found: Option<&Found>, change: &str) -> f64 {
    let place = cell.families.iter().position(|family| family.change == change);
    let share = place.zip(found).and_then(|(place, found)| found.survival.get(place).copied());
    share.filter(|share| share.is_finite()).unwrap_or(0.0)
}

/// The validity of a line under a family of retrained models.
pub(super) fn validity(line: &ResultLine, change: &str) -> Option<Summary> {
    line.validity.iter().find(|(name, _)| name == change).map(|(_, summary)| *summary)
}

/// The lowest validity of a line under any family.
pub(super) fn weakest(line: &ResultLine) -> Option<Summary> {
    let all = line.validity.iter().map(|(_, summary)| *summary);
    all.min_by(|a, b| a.mean.total_cmp(&b.mean))
}

/// The validities by base model and retrained model.
fn validities<'a>(entry: &Entry<'a>, change: &str) -> BTreeMap<(&'a str, usize), f64> {
    let mut all = BTreeMap::new();
    for cell in entry.cells() {
        let Some(base) = entry.comparison.data.bases.get(cell.base) else { continue };
        for family in cell.families.iter().filter(|family| family.change == change) {
            for (model, validity) in cell.judged(family) {
                all.insert((base.model.as_str(), model), validity);
            }
        }
    }
    all
}
