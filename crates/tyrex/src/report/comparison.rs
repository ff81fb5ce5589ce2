//! The tables of a comparison, beside the paper's numbers.

use super::compare::Entry;
use super::document::{Block, Column, Row, Section, Table, TableCell, Tone};
use super::number::{
    amount, contender_name, counted, family, interval, method_name, percent, percent_with_interval,
    seconds, signed, style, two_digits,
};
use super::printed::{self, ABLATION, PrintedLine, PrintedNumber};
use super::tradeoff;
use crate::calibrate::Verdict;
use crate::counterfactual::Norm;
use crate::experiment::result::{Calibrated, ChangeSummary, Comparison, Timing};
use crate::metric::Summary;

/// The number of neighbours of the local outlier factor in the authors' code.
const PRINTED_NEIGHBOURS: usize = 1;

/// The part of a report about one comparison.
pub(super) fn describe(section: &mut Section, entries: &[Entry<'_>], timings: &[Timing]) {
    let Some(first) = entries.first() else {
        section.text("Nothing came out of it: there were no factuals.");
        return;
    };
    let beside = first.experiment.beside.as_deref().unwrap_or_default();
    let is_printed = printed::title(beside).is_some();
    if is_printed {
        section.blocks.push(Block::Shades(shades()));
    }
    section.table(main_table(entries, beside));
    if let Some(note) = printed::table(beside).and_then(|table| table.note.as_deref()) {
        section.text(note);
    }
    section.table(calibrations(&first.comparison.calibrations));
    if !first.is_main {
        tradeoff::describe(section, entries);
    }
    section.table(changes(&first.comparison.changes));
    section.table(anchors(entries, beside));
    let mut more = Section::default();
    more.table(details(entries, timings));
    more.table(plausibility(entries));
    more.table(bases(entries));
    more.table(base_models(first.comparison));
    if !more.blocks.is_empty() {
        section
            .blocks
            .push(Block::Folded { title: "More numbers".to_owned(), blocks: more.blocks });
    }
}

/// What the colours mean.
fn shades() -> Vec<(Tone, String)> {
    let text = |which: &str, how: &str| format!("ours {how} {which}");
    vec![
        (Tone::Higher(1), text("higher", "a little")),
        (Tone::Higher(2), text("higher", "clearly")),
        (Tone::Higher(3), text("higher", "much")),
        (Tone::Lower(1), text("lower", "a little")),
        (Tone::Lower(2), text("lower", "clearly")),
        (Tone::Lower(3), text("lower", "much")),
        (
            Tone::Plain,
            "than the paper: from 10, 25 and 50 % of a cost; 2, 5 and 15 points of validity; 0.1, \
             0.25 and 0.5 of LOF. Lower costs are better, higher validities are."
                .to_owned(),
        ),
    ]
}

/// The colour of a difference, from the sizes at which it is small, clear and large.
fn tone(difference: f64, sizes: [f64; 3]) -> Tone {
    let strength = sizes.iter().filter(|size| difference.abs() >= **size).count() as u8;
    match (strength, difference > 0.0) {
        (0, _) => Tone::Plain,
        (strength, true) => Tone::Higher(strength),
        (strength, false) => Tone::Lower(strength),
    }
}

/// The paper's form: a row for each contender, cost, LOF and validities for each norm.
fn main_table(entries: &[Entry<'_>], beside: &str) -> Table {
    let norms = norms(entries);
    let mut families: Vec<&str> = Vec::new();
    for (change, _) in entries.iter().flat_map(|entry| &entry.line.validity) {
        if !families.contains(&change.as_str()) {
            families.push(change);
        }
    }
    let mut columns = Vec::new();
    for norm in &norms {
        let group = norm.name();
        columns.push(Column::number(group, "cost"));
        columns.push(Column::number(group, &format!("LOF, n = {PRINTED_NEIGHBOURS}")));
        columns.extend(
            families.iter().map(|change| Column::number(group, &format!("{} %", family(change)))),
        );
    }
    let mut rows: Vec<Row> = Vec::new();
    for entry in entries {
        let contender = &entry.line.contender;
        let head = contender_name(contender);
        if rows.iter().any(|row| row.head == head) {
            continue;
        }
        let mut cells = Vec::new();
        for norm in &norms {
            let line = entries.iter().find(|other| {
                other.line.norm == *norm
                    && other.line.contender.full_label() == contender.full_label()
            });
            match line {
                Some(line) => cells.extend(main_cells(line, &families)),
                None => cells.extend(vec![TableCell::plain("-"); 2 + families.len()]),
            }
        }
        let is_ours = contender.label == "trex-o";
        rows.push(Row { head, style: Some(style(contender)), is_ours, cells });
    }
    let caption = match printed::title(beside) {
        Some(title) => format!(
            "Ours: mean \u{b1} standard deviation, over the counterfactuals of all base models for \
             cost and LOF, over the retrained models for validity, which counts what was not found \
             as not valid. Below each: the paper's ({title}), and ours minus the paper's."
        ),
        None => "Mean \u{b1} standard deviation, over the counterfactuals of all base models for \
                 cost and LOF, over the retrained models for validity, which counts what was not \
                 found as not valid."
            .to_owned(),
    };
    Table { caption, corner: "method".to_owned(), columns, rows }
}

fn norms(entries: &[Entry<'_>]) -> Vec<Norm> {
    let mut norms = Vec::new();
    for entry in entries {
        if !norms.contains(&entry.line.norm) {
            norms.push(entry.line.norm);
        }
    }
    norms
}

fn main_cells(entry: &Entry<'_>, families: &[&str]) -> Vec<TableCell> {
    let line = &entry.line;
    let printed = tradeoff::printed_line(entry).map(PrintedCells::from).or_else(|| ablation(entry));
    let printed = printed.unwrap_or_default();
    let lof = line.lof.iter().find(|(neighbours, _)| *neighbours == PRINTED_NEIGHBOURS);
    let mut cells = vec![
        cost_cell(line.cost.as_ref(), printed.cost),
        cell(lof.map(|(_, lof)| lof), printed.lof, two_digits, |difference, _| {
            (two_digits(difference), tone(difference, [0.1, 0.25, 0.5]))
        }),
    ];
    for change in families {
        let validity = super::compare::validity(line, change);
        let beside = match family(change) {
            "WI" => printed.wi,
            "LO" => printed.lo,
            _ => None,
        };
        let text = |share: f64| format!("{:.1}", 100.0 * share);
        cells.push(cell(validity.as_ref(), beside, text, |difference, _| {
            (text(difference), tone(difference, [0.02, 0.05, 0.15]))
        }));
    }
    cells
}

/// The paper's numbers of a line, as far as it prints them.
#[derive(Debug, Clone, Copy, Default)]
struct PrintedCells {
    cost: Option<PrintedNumber>,
    lof: Option<PrintedNumber>,
    wi: Option<PrintedNumber>,
    lo: Option<PrintedNumber>,
}

impl From<PrintedLine> for PrintedCells {
    fn from(line: PrintedLine) -> Self {
        Self { cost: Some(line.cost), lof: Some(line.lof), wi: Some(line.wi), lo: Some(line.lo) }
    }
}

/// The paper's ablation with the measure and the threshold of a line.
fn ablation(entry: &Entry<'_>) -> Option<PrintedCells> {
    if entry.experiment.beside.as_deref() != Some(ABLATION) {
        return None;
    }
    let contender = &entry.line.contender;
    let (_, measure) = contender.settings.iter().find(|(name, _)| name == "measure")?;
    let tau = contender.tau()?;
    let lines = printed::ablation(entry.line.norm, measure);
    let line = lines.iter().find(|line| (line.tau - tau).abs() < 1e-9)?;
    let number = |mean| Some(PrintedNumber { mean, sd: None });
    Some(PrintedCells {
        cost: number(line.cost),
        lof: number(line.lof),
        wi: number(line.wi),
        lo: None,
    })
}

fn cost_cell(own: Option<&Summary>, beside: Option<PrintedNumber>) -> TableCell {
    cell(own, beside, amount, |difference, printed| {
        let relative = if printed == 0.0 { 0.0 } else { difference / printed };
        (amount(difference), tone(relative, [0.1, 0.25, 0.5]))
    })
}

/// Our number, the paper's, and the difference.
fn cell(
    own: Option<&Summary>,
    beside: Option<PrintedNumber>,
    text: impl Fn(f64) -> String,
    compare: impl Fn(f64, f64) -> (String, Tone),
) -> TableCell {
    let with_sd = |sd: Option<f64>| sd.map(|sd| format!("\u{b1} {}", text(sd))).unwrap_or_default();
    let mut cell = match own {
        Some(own) => {
            TableCell { text: text(own.mean), detail: with_sd(own.sd), ..TableCell::default() }
        }
        None => TableCell::plain("none found"),
    };
    if let Some(printed) = beside {
        let number = format!("paper {} {}", text(printed.mean), with_sd(printed.sd));
        number.trim_end().clone_into(&mut cell.beside);
        if let Some(own) = own {
            let (difference, tone) = compare(own.mean - printed.mean, printed.mean);
            cell.difference = signed(&difference);
            cell.tone = tone;
        }
    }
    cell
}

/// How thresholds were chosen.
fn calibrations(calibrations: &[Calibrated]) -> Table {
    let rows = calibrations.iter().map(|chosen| {
        let calibration = &chosen.calibration;
        let (text, tone) = match calibration.verdict {
            Verdict::Chosen { .. } => ("chosen", Tone::Holds),
            Verdict::TooFewModels { .. } => ("no threshold was shown: too few models", Tone::Fails),
            Verdict::TooFewFound { .. } => ("no threshold was shown: too few found", Tone::Fails),
            Verdict::NotShown { .. } => ("no threshold was shown to keep it", Tone::Fails),
        };
        let point = calibration.curve.iter().find(|point| point.tau == chosen.tau);
        let reporting = match &calibration.verdict {
            Verdict::Chosen { validity, .. } => {
                format!(
                    "{} [{}, {}]",
                    percent(validity.mean),
                    percent(validity.low),
                    percent(validity.high)
                )
            }
            Verdict::TooFewModels { models, needed } => format!("{models} models, {needed} needed"),
            Verdict::TooFewFound { coverage } => format!("at most {} found", percent(*coverage)),
            Verdict::NotShown { .. } => {
                point.and_then(|point| point.validity_reporting).map(percent).unwrap_or_default()
            }
        };
        let p_value = point.map(|point| format!("{:.3}", point.p_value)).unwrap_or_default();
        let models = format!("{} + {}", calibration.choosing, calibration.reporting);
        let mut cells: Vec<TableCell> = [
            chosen.norm.name().to_owned(),
            percent(calibration.goal.validity),
            text.to_owned(),
            chosen.tau.to_string(),
            p_value,
            reporting,
            models,
            calibration.factuals.to_string(),
        ]
        .into_iter()
        .map(TableCell::plain)
        .collect();
        cells[2].tone = tone;
        Row { head: method_name(&chosen.contender), cells, ..Row::default() }
    });
    Table {
        caption: "How the thresholds were chosen: on models that judge nothing else; one half \
                  chooses, the other reports. Where no threshold was shown to keep the promise, \
                  the one with the highest validity is used."
            .to_owned(),
        corner: "method".to_owned(),
        columns: vec![
            Column::number("", "norm"),
            Column::number("", "promise"),
            Column::words("outcome"),
            Column::number("", "tau used"),
            Column::number("", "p-value"),
            Column::number("", "validity, reporting half"),
            Column::number("", "models"),
            Column::number("", "factuals"),
        ],
        rows: rows.collect(),
    }
}

/// How far the models moved.
fn changes(changes: &[ChangeSummary]) -> Table {
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
        Row { head: name, cells, ..Row::default() }
    });
    Table {
        caption: "How far the retrained models moved from the first base on the test rows: the \
                  paper's Lemma 1 says that the mean change is at most sqrt(nu), its Definition 2 \
                  that the bias is zero."
            .to_owned(),
        corner: "change".to_owned(),
        columns: ["models", "mean |M - m|", "sqrt(nu)", "Lemma 1", "bias", "decisions flipped"]
            .map(|title| Column::number("", title))
            .into(),
        rows: rows.collect(),
    }
}

/// What others measured, beside the line of the same method.
fn anchors(entries: &[Entry<'_>], beside: &str) -> Table {
    let rows = printed::anchors(beside).map(|anchor| {
        let own = entries.iter().find(|entry| {
            let contender = &entry.line.contender;
            contender.label == anchor.method
                && contender.settings.is_empty()
                && entry.line.norm.name() == anchor.norm
        });
        let ours = |name: &str| {
            let validity = own.and_then(|own| {
                own.line.validity.iter().find(|(change, _)| family(change) == name)
            });
            validity
                .map(|(_, validity)| format!("ours {:.1}", 100.0 * validity.mean))
                .unwrap_or_default()
        };
        let cost = own.and_then(Entry::cost).map(|cost| format!("ours {}", amount(cost)));
        let pair =
            |text: String, beside: String| TableCell { text, beside, ..TableCell::default() };
        let cells = vec![
            TableCell::plain(anchor.norm.clone()),
            TableCell::plain(anchor.tau.map(|tau| tau.to_string()).unwrap_or_default()),
            pair(amount(anchor.cost), cost.unwrap_or_default()),
            TableCell::plain(anchor.lof.map(two_digits).unwrap_or_default()),
            pair(anchor.wi.to_string(), ours("WI")),
            pair(anchor.lo.to_string(), ours("LO")),
            TableCell::plain(anchor.source()),
        ];
        Row { head: method_name(&anchor.method), cells, ..Row::default() }
    });
    let mut columns: Vec<Column> = ["norm", "tau", "cost", "LOF", "WI %", "LO %"]
        .map(|title| Column::number("", title))
        .into();
    columns.push(Column::words("source"));
    Table {
        caption: "What others measured, beside ours where the table has the same method and norm."
            .to_owned(),
        corner: "method".to_owned(),
        columns,
        rows: rows.collect(),
    }
}

/// A row for each line: what the main table has no room for.
fn details(entries: &[Entry<'_>], timings: &[Timing]) -> Table {
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
        Row {
            head: contender_name(contender),
            style: Some(style(contender)),
            is_ours: contender.label == "trex-o",
            cells,
        }
    });
    Table {
        caption: "Each line in full. Intervals are 95 %; costs by every norm are means; agreement \
                  is what the authors' code calls validity: retrained models say the same as the \
                  base, of what was found."
            .to_owned(),
        corner: "method".to_owned(),
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
        .map(|title| Column::number("", title))
        .into(),
        rows: rows.collect(),
    }
}

/// How much the counterfactuals look like data.
fn plausibility(entries: &[Entry<'_>]) -> Table {
    let mut neighbours: Vec<usize> = Vec::new();
    for (count, _) in entries.iter().flat_map(|entry| &entry.line.lof) {
        if !neighbours.contains(count) {
            neighbours.push(*count);
        }
    }
    let mut columns = vec![Column::number("", "norm")];
    columns.extend(
        neighbours.iter().map(|n| Column::number("mean of +1 and -1", &format!("n = {n}"))),
    );
    columns
        .extend(neighbours.iter().map(|n| Column::number("outlier factor", &format!("n = {n}"))));
    columns.extend(
        ["distance to neighbours", "Mahalanobis", "log density"]
            .map(|title| Column::number("other", title)),
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
        cells.push(number(line.neighbour_distance.as_ref()));
        cells.push(number(line.mahalanobis.as_ref()));
        cells.push(number(line.log_density.as_ref()));
        Row {
            head: contender_name(&line.contender),
            style: Some(style(&line.contender)),
            is_ours: line.contender.label == "trex-o",
            cells,
        }
    });
    Table {
        caption: "Whether counterfactuals look like data: local outlier factors for several \
                  numbers of neighbours, and other measures, with 95 % intervals."
            .to_owned(),
        corner: "method".to_owned(),
        columns,
        rows: rows.collect(),
    }
}

/// Base by base.
fn bases(entries: &[Entry<'_>]) -> Table {
    let count = entries.iter().map(|entry| entry.line.bases.len()).max().unwrap_or(0);
    if count < 2 {
        return Table::default();
    }
    let mut columns = vec![Column::number("", "norm")];
    for base in 0..count {
        let group = format!("base {}", base + 1);
        columns.extend(["cost", "found", "validities"].map(|title| Column::number(&group, title)));
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
        Row {
            head: contender_name(&entry.line.contender),
            style: Some(style(&entry.line.contender)),
            is_ours: entry.line.contender.label == "trex-o",
            cells,
        }
    });
    let rows = rows.collect();
    let caption = "Base by base: a single base model decides little.".to_owned();
    Table { caption, corner: "method".to_owned(), columns, rows }
}

fn base_models(comparison: &Comparison) -> Table {
    let data = &comparison.data;
    let rows = data.bases.iter().enumerate().map(|(index, base)| {
        let print: String = base.model.chars().take(12).collect();
        let cells =
            [percent(base.accuracy), base.rejected.to_string(), base.factuals.to_string(), print];
        Row {
            head: format!("base {}", index + 1),
            cells: cells.into_iter().map(TableCell::plain).collect(),
            ..Row::default()
        }
    });
    Table {
        caption: format!(
            "The base models, on {}: {}, {}, {}.",
            data.dataset,
            counted(data.columns, "encoded column"),
            counted(data.train, "training row"),
            counted(data.test, "test row")
        ),
        corner: "model".to_owned(),
        columns: ["accuracy", "test rows rightly rejected", "of them explained", "fingerprint"]
            .map(|title| Column::number("", title))
            .into(),
        rows: rows.collect(),
    }
}
