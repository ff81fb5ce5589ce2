//! Results as flat tables, for other tools.

use std::path::Path;

use tyrex::data::{Column, Table};
use tyrex::error::Result;
use tyrex::file::Overwrite;
use tyrex::metric::Summary;

use super::result::{Finding, ResultLine, Results, Timing};

/// A table under construction: cells by the name of their column.
struct Lines {
    columns: Vec<Column>,
}

impl Lines {
    fn new() -> Self {
        Self { columns: Vec::new() }
    }

    /// Adds a line; every line has the same names in the same order.
    fn push(&mut self, cells: &[(String, String)]) {
        if self.columns.is_empty() {
            self.columns = cells.iter().map(|(name, _)| Column::new(name.as_str())).collect();
        }
        for (column, (_, cell)) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
    }

    fn write(self, folder: &Path, name: &str) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        let table = Table::new(name, self.columns)?;
        for extension in ["csv", "parquet"] {
            table.write(&folder.join(format!("{name}.{extension}")), Overwrite::Force)?;
        }
        Ok(())
    }
}

/// Writes `summary` (a line for each contender and norm), `counterfactuals` (one for each
/// factual) and `timings`, each as CSV and Parquet.
pub(super) fn write(results: &Results, timings: &[Timing], folder: &Path) -> Result<()> {
    let (mut summary, mut counterfactuals) = (Lines::new(), Lines::new());
    for shown in &results.experiments {
        let Finding::Comparison(comparison) = &shown.finding else { continue };
        let experiment = &shown.experiment.name;
        let dataset = &comparison.data.dataset;
        for line in comparison.lines()? {
            summary.push(&summary_cells(experiment, dataset, &line));
        }
        for cell in &comparison.cells {
            for answer in &cell.answers {
                let found = answer.found.as_ref();
                let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
                let metric = |of: fn(&tyrex::metric::PointMetrics) -> f64| {
                    number(found.map(|found| of(&found.metrics)))
                };
                let survival = |place: usize| {
                    number(found.and_then(|found| found.survival.get(place).copied()))
                };
                let factor = |place: usize| {
                    number(found.and_then(|f| f.metrics.outlier_factors.get(place).copied()))
                };
                counterfactuals.push(&named(vec![
                    ("experiment", experiment.clone()),
                    ("dataset", dataset.clone()),
                    ("protocol", cell.contender.protocol.name().to_owned()),
                    ("contender", cell.contender.full_label()),
                    ("tau", number(cell.contender.tau())),
                    ("norm", cell.norm.name().to_owned()),
                    ("base", cell.base.to_string()),
                    ("row", answer.row.to_string()),
                    ("status", if found.is_some() { "found" } else { "not_found" }.to_owned()),
                    ("reason", answer.reason.map(|r| r.name().to_owned()).unwrap_or_default()),
                    ("score", number(found.map(|found| f64::from(found.score)))),
                    ("value", number(found.map(|found| found.value))),
                    ("cost_l1", metric(|metrics| metrics.cost_l1)),
                    ("cost_l2", metric(|metrics| metrics.cost_l2)),
                    ("cost_mad", metric(|metrics| metrics.cost_mad)),
                    ("changed_columns", metric(|metrics| metrics.changed_columns as f64)),
                    ("outlier_factor_1", factor(0)),
                    ("outlier_factor_5", factor(1)),
                    ("outlier_factor_20", factor(2)),
                    ("neighbour_distance", metric(|metrics| metrics.neighbour_distance)),
                    ("isolation", number(found.and_then(|found| found.metrics.isolation))),
                    ("mahalanobis", metric(|metrics| metrics.mahalanobis)),
                    ("log_density", metric(|metrics| metrics.log_density)),
                    ("valid_reinitialise", survival(0)),
                    ("valid_leave_out", survival(1)),
                ]));
            }
        }
    }
    summary.write(folder, "summary")?;
    counterfactuals.write(folder, "counterfactuals")?;
    let mut times = Lines::new();
    for timing in timings {
        times.push(&named(vec![
            ("experiment", timing.experiment.clone()),
            ("what", timing.what.clone()),
            ("norm", timing.norm.map(|norm| norm.name().to_owned()).unwrap_or_default()),
            ("base", timing.base.map(|base| base.to_string()).unwrap_or_default()),
            ("seconds", timing.seconds.to_string()),
            (
                "seconds_per_factual",
                timing.per_factual.map(|each| each.mean.to_string()).unwrap_or_default(),
            ),
        ]));
    }
    times.write(folder, "timings")
}

fn named(cells: Vec<(&str, String)>) -> Vec<(String, String)> {
    cells.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect()
}

fn summary_cells(experiment: &str, dataset: &str, line: &ResultLine) -> Vec<(String, String)> {
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let mut cells = named(vec![
        ("experiment", experiment.to_owned()),
        ("dataset", dataset.to_owned()),
        ("protocol", line.contender.protocol.name().to_owned()),
        ("contender", line.contender.full_label()),
        ("tau", number(line.contender.tau())),
        ("calibrated", line.contender.calibrated.to_string()),
        ("norm", line.norm.name().to_owned()),
        ("bases", line.bases.len().to_string()),
        ("factuals", line.factuals.to_string()),
    ]);
    let mut spread = |name: &str, summary: Option<Summary>| {
        cells.push((name.to_owned(), number(summary.map(|summary| summary.mean))));
        for (part, value) in [
            ("sd", summary.and_then(|summary| summary.sd)),
            ("low", summary.and_then(|summary| summary.low)),
            ("high", summary.and_then(|summary| summary.high)),
        ] {
            cells.push((format!("{name}_{part}"), number(value)));
        }
    };
    let place = |list: &[(usize, Summary)], place: usize| list.get(place).map(|(_, s)| *s);
    let validity = |place: usize| line.validity.get(place).map(|(_, summary)| *summary);
    spread("coverage", Some(line.coverage));
    spread("cost", line.cost);
    spread("cost_l1", line.cost_l1);
    spread("cost_l2", line.cost_l2);
    spread("cost_mad", line.cost_mad);
    spread("changed_columns", line.changed);
    spread("lof_1", place(&line.lof, 0));
    spread("lof_5", place(&line.lof, 1));
    spread("lof_20", place(&line.lof, 2));
    spread("outlier_factor_20", place(&line.outlier_factor, 2));
    spread("neighbour_distance", line.neighbour_distance);
    spread("isolation", line.isolation);
    spread("mahalanobis", line.mahalanobis);
    spread("log_density", line.log_density);
    spread("valid_reinitialise", validity(0));
    spread("valid_leave_out", validity(1));
    let agreement = |place: usize| number(line.agreement.get(place).map(|(_, mean)| *mean));
    cells.push(("agreement_reinitialise".to_owned(), agreement(0)));
    cells.push(("agreement_leave_out".to_owned(), agreement(1)));
    cells
}
