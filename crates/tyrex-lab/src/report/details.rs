//! Further tables of a comparison.

use tyrex::metric::Summary;

use super::compare::Entry;
use super::document::{ReportTable, Section, TableCell, TableColumn, TableRow, Tone};
use super::number::{
    amount, contender_name, counted, family, interval, percent, percent_with_interval, seconds,
    style, two_digits,
};
use crate::experiment::result::{ChangeSummary, Comparison, Timing};

/// The tables with details.
pub(super) fn describe(section: &mut Section, entries: &[Entry<'_>], timings: &[Timing]) {
    let Some(first) = entries.first() else { return };
    section.table(details(entries, timings));
    section.table(plausibility(entries));
    section.table(bases(entries));
    section.table(base_models(first.comparison));
}

/// How far the models moved.
pub(super) fn changes(changes: &[ChangeSummary]) -> ReportTable {
    let rows = changes.iter().map(|change| {
        let number = |value: f64| TableCell::plain(format!("{value:.4}"));
        let (tone, text) = if change.mean_change <= change.lemma_bound {
            (Tone::Holds, "holds")
        } else {
            (Tone::Fails, "does not")
        };
        let cells = vec![
            TableCell::plain(change.models.to_string()),
            number(change.mean_change),
            number(change.lemma_bound),
            TableCell { tone, ..TableCell::plain(text) },
            number(change.bias),
            TableCell::plain(percent(change.flipped)),
        ];
        let name = match family(&change.change) {
            name if name == change.change => name.to_owned(),
            name => format!("{name} ({})", change.change),
        };
        TableRow { head: name, cells, ..TableRow::default() }
    });
    ReportTable {
        caption: "How far the retrained models moved from the first base on the test rows: the \
                  paper's Lemma 1 says that the mean change is at most sqrt(nu), its Definition 2 \
                  that the bias is zero."
            .to_owned(),
        corner: "change".to_owned(),
        beside: "",
        columns: ["models", "mean |M - m|", "sqrt(nu)", "Lemma 1", "bias", "decisions flipped"]
            .map(|title| TableColumn::number("", title))
            .into(),
        rows: rows.collect(),
    }
}

/// A row for each line, with numbers that the main table omits.
fn details(entries: &[Entry<'_>], timings: &[Timing]) -> ReportTable {
    let mean = |summary: Option<&Summary>| {
        TableCell::plain(summary.map_or_else(|| "-".to_owned(), |summary| amount(summary.mean)))
    };
    let rows = entries.iter().map(|entry| {
        let line = &entry.line;
        let label = line.contender.full_label();
        let took: Vec<f64> = timings
            .iter()
            .filter(|timing| {
                timing.experiment == entry.experiment.name
                    && timing.norm == Some(line.norm)
                    && (timing.what == label || timing.what == line.contender.label)
            })
            .filter_map(|timing| Some(timing.per_factual?.mean))
            .collect();
        let time = if took.is_empty() {
            "-".to_owned()
        } else {
            seconds(took.iter().sum::<f64>() / took.len() as f64)
        };
        let cost = line.cost.as_ref();
        let mut cells = vec![
            TableCell::plain(line.norm.name()),
            TableCell::plain(line.contender.protocol.name()),
            TableCell::plain(line.contender.tau().map(|tau| tau.to_string()).unwrap_or_default()),
            TableCell::plain(line.factuals.to_string()),
            TableCell::plain(percent(line.coverage.mean)),
            TableCell::plain(cost.map(|cost| interval(cost, amount)).unwrap_or_default()),
            mean(line.cost_l1.as_ref()),
            mean(line.cost_l2.as_ref()),
            mean(line.cost_mad.as_ref()),
            mean(line.changed.as_ref()),
        ];
        let family_cell = |text: String| TableCell::plain(text);
        for name in ["WI", "LO"] {
            let own = line.validity.iter().find(|(change, _)| family(change) == name);
            cells.push(family_cell(own.map(|(_, v)| percent_with_interval(v)).unwrap_or_default()));
        }
        for name in ["WI", "LO"] {
            let own = line.agreement.iter().find(|(change, _)| family(change) == name);
            cells.push(family_cell(own.map(|(_, share)| percent(*share)).unwrap_or_default()));
        }
        cells.push(TableCell::plain(time));
        let contender = &line.contender;
        TableRow {
            head: contender_name(contender),
            style: Some(style(contender)),
            is_ours: contender.label == "trex-o",
            cells,
        }
    });
    ReportTable {
        caption: "Each line in full. Intervals are 95 %; costs by every norm are means; agreement \
                  is the validity of the authors' code: the share of found counterfactuals on \
                  which retrained models agree with the base."
            .to_owned(),
        corner: "method".to_owned(),
        beside: "",
        columns: [
            "norm",
            "protocol",
            "tau",
            "factuals",
            "found",
            "cost, interval",
            "cost L1",
            "cost L2",
            "cost MAD",
            "columns changed",
            "WI",
            "LO",
            "WI agreement",
            "LO agreement",
            "time per factual",
        ]
        .map(|title| TableColumn::number("", title))
        .into(),
        rows: rows.collect(),
    }
}

/// The plausibility of the counterfactuals.
fn plausibility(entries: &[Entry<'_>]) -> ReportTable {
    let mut neighbours: Vec<usize> = Vec::new();
    for (count, _) in entries.iter().flat_map(|entry| &entry.line.lof) {
        if !neighbours.contains(count) {
            neighbours.push(*count);
        }
    }
    let mut columns = vec![TableColumn::number("", "norm")];
    columns.extend(
        neighbours.iter().map(|n| TableColumn::number("mean of +1 and -1", &format!("n = {n}"))),
    );
    columns.extend(
        neighbours.iter().map(|n| TableColumn::number("outlier factor", &format!("n = {n}"))),
    );
    // Results of earlier versions have no isolation forest.
    let has_forest = entries.iter().any(|entry| entry.line.isolation.is_some());
    let forest = has_forest.then_some("isolation forest");
    // Results of earlier versions do not say it.
    let has_favourable = entries.iter().any(|entry| entry.line.favourable_inliers.is_some());
    if has_favourable {
        columns.push(TableColumn::number("inliers", "favourable rows, n = 20"));
    }
    columns.extend(
        ["distance to neighbours"]
            .into_iter()
            .chain(forest)
            .chain(["Mahalanobis", "log density"])
            .map(|title| TableColumn::number("other", title)),
    );
    let rows = entries.iter().map(|entry| {
        let line = &entry.line;
        let number = |summary: Option<&Summary>| match summary {
            Some(summary) => TableCell {
                detail: interval(summary, two_digits),
                ..TableCell::plain(two_digits(summary.mean))
            },
            None => TableCell::plain("-"),
        };
        let of = |all: &[(usize, Summary)], n: usize| {
            number(all.iter().find(|(count, _)| *count == n).map(|(_, summary)| summary))
        };
        let mut cells = vec![TableCell::plain(line.norm.name())];
        cells.extend(neighbours.iter().map(|n| of(&line.lof, *n)));
        cells.extend(neighbours.iter().map(|n| of(&line.outlier_factor, *n)));
        if has_favourable {
            cells.push(number(line.favourable_inliers.as_ref()));
        }
        cells.push(number(line.neighbour_distance.as_ref()));
        if has_forest {
            cells.push(number(line.isolation.as_ref()));
        }
        cells.push(number(line.mahalanobis.as_ref()));
        cells.push(number(line.log_density.as_ref()));
        TableRow {
            head: contender_name(&line.contender),
            style: Some(style(&line.contender)),
            is_ours: line.contender.label == "trex-o",
            cells,
        }
    });
    ReportTable {
        caption: "Plausibility of counterfactuals: local outlier factors for several \
                  numbers of neighbours, and other measures, with 95 % intervals."
            .to_owned(),
        corner: "method".to_owned(),
        beside: "",
        columns,
        rows: rows.collect(),
    }
}

/// Results for each base model.
fn bases(entries: &[Entry<'_>]) -> ReportTable {
    let count = entries.iter().map(|entry| entry.line.bases.len()).max().unwrap_or(0);
    if count < 2 {
        return ReportTable::default();
    }
    let mut columns = vec![TableColumn::number("", "norm")];
    for base in 0..count {
        let group = format!("base {}", base + 1);
        columns.extend(
            ["cost", "found", "validities"].map(|title| TableColumn::number(&group, title)),
        );
    }
    let rows = entries.iter().map(|entry| {
        let mut cells = vec![TableCell::plain(entry.line.norm.name())];
        for base in &entry.line.bases {
            cells.push(TableCell::plain(base.cost.map_or_else(|| "-".to_owned(), amount)));
            cells.push(TableCell::plain(percent(base.coverage)));
            let validities: Vec<String> = base.validity.iter().map(|v| percent(*v)).collect();
            cells.push(TableCell::plain(validities.join(", ")));
        }
        cells.resize(columns.len(), TableCell::default());
        TableRow {
            head: contender_name(&entry.line.contender),
            style: Some(style(&entry.line.contender)),
            is_ours: entry.line.contender.label == "trex-o",
            cells,
        }
    });
    let rows = rows.collect();
    let caption = "Results for each base model; a single base model is weak evidence.".to_owned();
    ReportTable { caption, corner: "method".to_owned(), beside: "", columns, rows }
}

fn base_models(comparison: &Comparison) -> ReportTable {
    let data = &comparison.data;
    let rows = data.bases.iter().enumerate().map(|(index, base)| {
        let print: String = base.model.chars().take(12).collect();
        let cells =
            [percent(base.accuracy), base.rejected.to_string(), base.factuals.to_string(), print];
        TableRow {
            head: format!("base {}", index + 1),
            cells: cells.into_iter().map(TableCell::plain).collect(),
            ..TableRow::default()
        }
    });
    ReportTable {
        caption: format!(
            "The base models, on {}: {}, {}, {}.",
            data.dataset,
            counted(data.columns, "encoded column"),
            counted(data.train, "training row"),
            counted(data.test, "test row")
        ),
        corner: "model".to_owned(),
        beside: "",
        columns: ["accuracy", "test rows rightly rejected", "of them explained", "fingerprint"]
            .map(|title| TableColumn::number("", title))
            .into(),
        rows: rows.collect(),
    }
}
