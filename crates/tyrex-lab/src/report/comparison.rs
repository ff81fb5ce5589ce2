//! The tables of a comparison, beside the paper's numbers.

use tyrex::calibrate::CalibrationVerdict;
use tyrex::metric::Summary;

use super::compare::Entry;
use super::document::{ReportTable, Section, SectionBlock, TableCell, TableColumn, TableRow, Tone};
use super::number::{
    OURS, amount, contender_name, family, method_name, percent, signed, style, two_digits,
};
use super::printed::{self, ABLATION, PrintedLine, PrintedNumber};
use super::{details, tradeoff};
use crate::experiment::result::{Calibrated, Timing};

/// The number of neighbours of the local outlier factor in the authors' code.
const PRINTED_NEIGHBOURS: usize = 1;
/// A table of more rows than this is folded, if a chart shows the same.
const LONG: usize = 20;

/// The part of a report about one comparison.
pub(super) fn describe(section: &mut Section, entries: &[Entry<'_>], timings: &[Timing]) {
    let Some(first) = entries.first() else {
        section.text("There are no results: there were no factuals.");
        return;
    };
    let beside = first.experiment.beside.as_deref().unwrap_or_default();
    let mut more = Section::default();
    let table = main_table(entries, beside);
    if first.is_main || table.rows.len() <= LONG {
        if printed::title(beside).is_some() {
            section.blocks.push(SectionBlock::Shades(shades()));
        }
        section.table(table);
    } else {
        more.table(table);
    }
    if first.is_main {
        if let Some(note) = printed::table(beside).and_then(|table| table.note.as_deref()) {
            section.text(note);
        }
        section.table(calibrations(&first.comparison.calibrations));
        section.table(details::changes(&first.comparison.changes));
        section.table(anchors(entries, beside));
    } else {
        tradeoff::describe(section, entries);
        more.table(calibrations(&first.comparison.calibrations));
        more.table(details::changes(&first.comparison.changes));
    }
    details::describe(&mut more, entries, timings);
    if !more.blocks.is_empty() {
        let title = "More numbers".to_owned();
        section.blocks.push(SectionBlock::Folded { title, blocks: more.blocks });
    }
}

/// The legend of the colours.
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
fn main_table(entries: &[Entry<'_>], beside: &str) -> ReportTable {
    let norms = tradeoff::norms(entries);
    let mut families: Vec<&str> = Vec::new();
    for (change, _) in entries.iter().flat_map(|entry| &entry.line.validity) {
        if !families.contains(&change.as_str()) {
            families.push(change);
        }
    }
    let mut columns = Vec::new();
    for norm in &norms {
        let group = norm.name();
        columns.push(TableColumn::number(group, "found %"));
        columns.push(TableColumn::number(group, "cost"));
        columns.push(TableColumn::number(group, &format!("LOF, n = {PRINTED_NEIGHBOURS}")));
        columns.extend(
            families
                .iter()
                .map(|change| TableColumn::number(group, &format!("{} %", family(change)))),
        );
    }
    let mut rows: Vec<TableRow> = Vec::new();
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
                None => cells.extend(vec![TableCell::plain("-"); 3 + families.len()]),
            }
        }
        let is_ours = OURS.contains(&contender.label.as_str());
        // Charts of variants have colours of their own.
        let is_charted = entry.is_main
            || contender.label == contender.method.name()
                && contender.settings.iter().all(|(name, _)| name != "measure");
        let style = is_charted.then(|| style(contender));
        rows.push(TableRow { head, style, is_ours, cells });
    }
    let caption = match printed::title(beside) {
        Some(title) => format!(
            "Ours: mean \u{b1} standard deviation, over the counterfactuals of all base models for \
             cost and LOF, over the retrained models for validity, which counts missing \
             counterfactuals as not valid. Below each: the paper's ({title}), and ours minus the \
             paper's."
        ),
        None => "Mean \u{b1} standard deviation, over the counterfactuals of all base models for \
                 cost and LOF, over the retrained models for validity, which counts missing \
                 counterfactuals as not valid."
            .to_owned(),
    };
    ReportTable { caption, corner: "method".to_owned(), beside: "paper", columns, rows }
}

fn main_cells(entry: &Entry<'_>, families: &[&str]) -> Vec<TableCell> {
    let line = &entry.line;
    let printed = tradeoff::printed_line(entry).map(PrintedCells::from).or_else(|| ablation(entry));
    let printed = printed.unwrap_or_default();
    let lof = line.lof.iter().find(|(neighbours, _)| *neighbours == PRINTED_NEIGHBOURS);
    let mut cells = vec![
        TableCell::plain(format!("{:.1}", 100.0 * line.coverage.mean)),
        cost_cell(line.cost.as_ref(), printed.cost),
        cell(lof.map(|(_, lof)| lof), printed.lof, two_digits, two_digits, |difference, _| {
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
        let text: fn(f64) -> String = |share| format!("{:.1}", 100.0 * share);
        cells.push(cell(validity.as_ref(), beside, text, text, |difference, _| {
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
    cell(own, beside, amount, two_digits, |difference, printed| {
        let relative = if printed == 0.0 { 0.0 } else { difference / printed };
        (two_digits(difference), tone(relative, [0.1, 0.25, 0.5]))
    })
}

/// Our number, the paper's, and the difference.
fn cell(
    own: Option<&Summary>,
    beside: Option<PrintedNumber>,
    text: fn(f64) -> String,
    printed_text: fn(f64) -> String,
    compare: impl Fn(f64, f64) -> (String, Tone),
) -> TableCell {
    let with_sd = |sd: Option<f64>, text: fn(f64) -> String| {
        sd.map(|sd| format!("\u{b1} {}", text(sd))).unwrap_or_default()
    };
    let mut cell = match own {
        Some(own) => TableCell {
            text: text(own.mean),
            detail: with_sd(own.sd, text),
            ..TableCell::default()
        },
        None => TableCell::plain("none found"),
    };
    if let Some(printed) = beside {
        let number =
            format!("{} {}", printed_text(printed.mean), with_sd(printed.sd, printed_text));
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
fn calibrations(calibrations: &[Calibrated]) -> ReportTable {
    let rows = calibrations.iter().map(|chosen| {
        let calibration = &chosen.calibration;
        let (text, tone) = match calibration.verdict {
            CalibrationVerdict::Chosen { .. } => ("chosen".to_owned(), Tone::Holds),
            CalibrationVerdict::TooFewModels { .. } => {
                ("no threshold shown: too few models".to_owned(), Tone::Fails)
            }
            CalibrationVerdict::TooFewFound { .. } => {
                ("no threshold shown: too few found".to_owned(), Tone::Fails)
            }
            CalibrationVerdict::NotShown { tau, p_value } => {
                let first = format!("p-value {p_value:.3} at tau {tau}, the first tested");
                (format!("no threshold shown to reach it: {first}"), Tone::Fails)
            }
        };
        let point = calibration.curve.iter().find(|point| point.tau == chosen.tau);
        let reporting = match &calibration.verdict {
            CalibrationVerdict::Chosen { validity, .. } => {
                format!(
                    "{} [{}, {}]",
                    percent(validity.mean),
                    percent(validity.low),
                    percent(validity.high)
                )
            }
            CalibrationVerdict::TooFewModels { models, needed } => {
                format!("{models} models, {needed} needed")
            }
            CalibrationVerdict::TooFewFound { coverage } => {
                format!("at most {} found", percent(*coverage))
            }
            CalibrationVerdict::NotShown { .. } => {
                point.and_then(|point| point.validity_reporting).map(percent).unwrap_or_default()
            }
        };
        let p_value = point.map(|point| format!("{:.3}", point.p_value)).unwrap_or_default();
        let models = format!("{} + {}", calibration.choosing, calibration.reporting);
        let mut cells: Vec<TableCell> = [
            chosen.norm.name().to_owned(),
            percent(calibration.goal.validity),
            text,
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
        TableRow { head: method_name(&chosen.contender), cells, ..TableRow::default() }
    });
    ReportTable {
        caption: "How the thresholds were chosen. The choosing models are used for nothing else; \
                  the reporting models are those of the table. If no threshold was shown to reach \
                  the validity, the smallest one with a p-value of at most 0.5 is used, or else \
                  the most valid one."
            .to_owned(),
        corner: "method".to_owned(),
        beside: "",
        columns: vec![
            TableColumn::number("", "norm"),
            TableColumn::number("", "promise"),
            TableColumn::words("outcome"),
            TableColumn::number("", "tau used"),
            TableColumn::number("", "p-value"),
            TableColumn::number("", "validity, by those that report"),
            TableColumn::number("", "models: choose + report"),
            TableColumn::number("", "factuals"),
        ],
        rows: rows.collect(),
    }
}

/// Measurements by others, beside the line of the same method.
fn anchors(entries: &[Entry<'_>], beside: &str) -> ReportTable {
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
                .map(|(_, validity)| format!("{:.1}", 100.0 * validity.mean))
                .unwrap_or_default()
        };
        let cost = own.and_then(Entry::cost).map(amount);
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
        TableRow { head: method_name(&anchor.method), cells, ..TableRow::default() }
    });
    let mut columns: Vec<TableColumn> = ["norm", "tau", "cost", "LOF", "WI %", "LO %"]
        .map(|title| TableColumn::number("", title))
        .into();
    columns.push(TableColumn::words("source"));
    ReportTable {
        caption: "Measurements by others, with ours below if the table has the same method and \
                  norm."
            .to_owned(),
        corner: "method".to_owned(),
        beside: "ours",
        columns,
        rows: rows.collect(),
    }
}
