//! Cells gathered into the lines of a table.

use tyrex::counterfactual::Norm;
use tyrex::error::Result;
use tyrex::metric::Summary;
use tyrex::statistics::mean;

use super::result::{BaseLine, Cell, Comparison, Found, ResultLine};

/// The numbers of neighbours of the outlier factors, in the order of the metrics.
fn outlier_neighbours() -> Vec<usize> {
    tyrex::metric::MetricParams::default().outlier_neighbours
}

impl Comparison {
    /// One line for each contender and norm, over all bases, in the order of the experiment.
    pub fn lines(&self) -> Result<Vec<ResultLine>> {
        let mut groups: Vec<Vec<&Cell>> = Vec::new();
        for cell in &self.cells {
            let same = |group: &&mut Vec<&Cell>| {
                let first = group[0];
                first.norm == cell.norm
                    && first.contender.full_label() == cell.contender.full_label()
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(cell),
                None => groups.push(vec![cell]),
            }
        }
        groups.iter().filter_map(|cells| line(cells).transpose()).collect()
    }
}

/// The line of one contender with one norm; `None` if there were no factuals.
fn line(cells: &[&Cell]) -> Result<Option<ResultLine>> {
    let Some(first) = cells.first() else { return Ok(None) };
    let factuals: usize = cells.iter().map(|cell| cell.answers.len()).sum();
    let answers = cells.iter().flat_map(|cell| &cell.answers);
    let (rows, found): (Vec<usize>, Vec<&Found>) =
        answers.filter_map(|answer| Some((answer.row, answer.found.as_ref()?))).unzip();
    let Some(coverage) = Summary::of_events(found.len(), factuals)? else { return Ok(None) };
    let over = |value: &dyn Fn(&Found) -> f64| {
        let values = rows.iter().zip(&found).map(|(row, found)| (*row, value(found)));
        Summary::of_groups(&values.collect::<Vec<_>>())
    };
    let cost = |found: &Found| match first.norm {
        Norm::L1 => found.metrics.cost_l1,
        Norm::L2 => found.metrics.cost_l2,
    };
    let isolation = rows.iter().zip(&found);
    let isolation = isolation
        .filter_map(|(row, found)| Some((*row, found.metrics.isolation?)))
        .collect::<Vec<_>>();
    let mut lof = Vec::new();
    let mut outlier_factor = Vec::new();
    for (place, neighbours) in outlier_neighbours().into_iter().enumerate() {
        let known: Vec<bool> =
            found.iter().filter_map(|found| found.metrics.inlier.get(place).copied()).collect();
        let inliers = known.iter().filter(|is_inlier| **is_inlier).count();
        if let Some(summary) = Summary::of_signs(inliers, known.len())? {
            lof.push((neighbours, summary));
        }
        let factor = |found: &Found| found.metrics.outlier_factors.get(place).copied();
        let factors =
            rows.iter().zip(&found).filter_map(|(row, found)| Some((*row, factor(found)?)));
        if let Some(summary) = Summary::of_groups(&factors.collect::<Vec<_>>())? {
            outlier_factor.push((neighbours, summary));
        }
    }
    let known: Vec<bool> = found.iter().filter_map(|found| found.is_favourable_inlier).collect();
    let inliers = known.iter().filter(|is_inlier| **is_inlier).count();
    let favourable_inliers = Summary::of_events(inliers, known.len())?;
    let (mut validity, mut agreement) = (Vec::new(), Vec::new());
    // A base without factuals has no families; any other has all of them.
    let changes = cells.iter().map(|cell| &cell.families).max_by_key(|all| all.len());
    for change in changes.into_iter().flatten().map(|family| &family.change) {
        let of_bases = || {
            let all = cells.iter().flat_map(|cell| cell.families.iter().map(move |f| (cell, f)));
            all.filter(|(_, family)| family.change == *change)
        };
        let shares: Vec<(usize, f64)> =
            of_bases().flat_map(|(cell, family)| cell.judged(family)).collect();
        if let Some(summary) = Summary::of_grouped_shares(&shares)? {
            validity.push((change.clone(), summary));
        }
        let agreements: Vec<f64> = of_bases().filter_map(|(_, family)| family.agreement).collect();
        if let Some(mean) = mean(&agreements) {
            agreement.push((change.clone(), mean));
        }
    }
    let bases = cells
        .iter()
        .map(|cell| {
            let own: Vec<f64> =
                cell.answers.iter().filter_map(|a| a.found.as_ref()).map(cost).collect();
            BaseLine {
                base: cell.base,
                cost: mean(&own),
                coverage: own.len() as f64 / cell.answers.len().max(1) as f64,
                validity: cell.families.iter().filter_map(|f| mean(&f.validities)).collect(),
            }
        })
        .collect();
    Ok(Some(ResultLine {
        norm: first.norm,
        contender: first.contender.clone(),
        factuals,
        coverage,
        cost: over(&cost)?,
        cost_l1: over(&|found| found.metrics.cost_l1)?,
        cost_l2: over(&|found| found.metrics.cost_l2)?,
        cost_mad: over(&|found| found.metrics.cost_mad)?,
        changed: over(&|found| found.metrics.changed_columns as f64)?,
        outlier_factor,
        neighbour_distance: over(&|found| found.metrics.neighbour_distance)?,
        isolation: Summary::of_groups(&isolation)?,
        mahalanobis: over(&|found| found.metrics.mahalanobis)?,
        log_density: over(&|found| found.metrics.log_density)?,
        lof,
        favourable_inliers,
        validity,
        agreement,
        bases,
    }))
}
