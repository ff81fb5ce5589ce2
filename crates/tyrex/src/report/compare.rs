//! Two lines of a comparison beside each other: which is valid more often, which costs less.
//!
//! Where two methods answered the same factual of the same base model, their costs are compared
//! factual by factual; where the same retrained models judged both, validities are compared
//! model by model. A difference of pairs is known better than the difference of two means.

use std::collections::BTreeMap;

use crate::counterfactual::Norm;
use crate::error::Result;
use crate::experiment::result::{Cell, Comparison, Finding, Line};
use crate::experiment::{Experiment, Results};
use crate::metric::Summary;

use super::printed;

/// Validities that differ by no more than half a point count as the same.
pub(super) const SAME_VALIDITY: f64 = 0.005;

/// A line with the comparison it comes from.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) comparison: &'a Comparison,
    pub(super) line: Line,
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
    for (experiment, comparison) in comparisons(results) {
        let lines = comparison.lines()?.into_iter();
        all.extend(lines.map(|line| Entry { experiment, comparison, line }));
    }
    Ok(all)
}

/// Whether an experiment is one of the paper's tables of methods.
pub(super) fn is_main(experiment: &Experiment) -> bool {
    experiment.beside.as_deref().is_some_and(|beside| printed::table(beside).is_some())
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

    /// The families of retrained models that judged both.
    pub(super) fn shared_families(&self, other: &Entry<'_>) -> Vec<&str> {
        let all = self.line.validity.iter().map(|(change, _)| change.as_str());
        all.filter(|change| other.validity(change).is_some()).collect()
    }

    /// Whether it is about as valid as the other, or more, under every family that judged both.
    pub(super) fn is_as_valid_as(&self, other: &Entry<'_>) -> bool {
        let families = self.shared_families(other);
        !families.is_empty()
            && families.iter().all(|change| {
                let means = (self.validity(change), other.validity(change));
                matches!(means, (Some(own), Some(other)) if own.mean >= other.mean - SAME_VALIDITY)
            })
    }

    /// Own minus other cost, over the factuals for which both found something.
    pub(super) fn cost_difference(&self, other: &Entry<'_>) -> Option<Summary> {
        let theirs = costs(other);
        let differences: Vec<f64> = costs(self)
            .into_iter()
            .filter_map(|(factual, cost)| theirs.get(&factual).map(|other| cost - other))
            .collect();
        Summary::of(&differences).ok().flatten()
    }

    /// Own minus other validity, over the retrained models that judged both.
    pub(super) fn validity_difference(&self, other: &Entry<'_>, change: &str) -> Option<Summary> {
        let theirs = validities(other, change);
        let differences: Vec<f64> = validities(self, change)
            .into_iter()
            .filter_map(|(model, validity)| theirs.get(&model).map(|other| validity - other))
            .collect();
        Summary::of(&differences).ok().flatten()
    }
}

/// The validity of a line under a family of retrained models.
pub(super) fn validity(line: &Line, change: &str) -> Option<Summary> {
    line.validity.iter().find(|(name, _)| name == change).map(|(_, summary)| *summary)
}

/// The lowest validity of a line under any family.
pub(super) fn weakest(line: &Line) -> Option<Summary> {
    let all = line.validity.iter().map(|(_, summary)| *summary);
    all.min_by(|a, b| a.mean.total_cmp(&b.mean))
}

/// The costs by base model and row.
fn costs<'a>(entry: &Entry<'a>) -> BTreeMap<(&'a str, usize), f64> {
    let mut all = BTreeMap::new();
    for cell in entry.cells() {
        let Some(base) = entry.comparison.data.bases.get(cell.base) else { continue };
        for answer in &cell.answers {
            if let Some(found) = &answer.found {
                let cost = match entry.line.norm {
                    Norm::L1 => found.metrics.cost_l1,
                    Norm::L2 => found.metrics.cost_l2,
                };
                all.insert((base.model.as_str(), answer.row), cost);
            }
        }
    }
    all
}

/// The validities by base model and retrained model.
fn validities<'a>(entry: &Entry<'a>, change: &str) -> BTreeMap<(&'a str, usize), f64> {
    let mut all = BTreeMap::new();
    for cell in entry.cells() {
        let Some(base) = entry.comparison.data.bases.get(cell.base) else { continue };
        for family in cell.families.iter().filter(|family| family.change == change) {
            for (model, validity) in family.validities.iter().enumerate() {
                all.insert((base.model.as_str(), model), *validity);
            }
        }
    }
    all
}

/// The cheapest of these that is about as valid as `target`, or more.
pub(super) fn cheapest_as_valid<'b, 'a>(
    candidates: impl Iterator<Item = &'b Entry<'a>>,
    target: &Entry<'_>,
) -> Option<&'b Entry<'a>>
where
    'a: 'b,
{
    candidates
        .filter(|candidate| candidate.is_as_valid_as(target))
        .filter_map(|candidate| candidate.cost().map(|cost| (candidate, cost)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(candidate, _)| candidate)
}
