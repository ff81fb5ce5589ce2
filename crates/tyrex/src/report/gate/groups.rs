//! The groups of a candidate's promises.

use super::super::document::{ReportTable, Section, TableCell, TableColumn, TableRow, Tone};
use super::super::number::percent;
use super::super::scale::Scale;
use super::super::svg::{Fill, dot};
use super::{BROKEN, SHARE, share_cell, shortest};
use crate::explain::{GateReport, Group, GroupTable, JudgedCandidate, Tally};

pub(super) fn table(
    section: &mut Section,
    gate: &GateReport,
    candidate: &JudgedCandidate,
    table: &GroupTable,
) {
    let unit = table.unit.as_ref().map(|unit| format!(" ({unit})")).unwrap_or_default();
    let all = candidate.tally.share_kept.unwrap_or(0.0);
    let filled = table.groups.iter().filter(|group| group.tally.promises > 0);
    let least = filled.map(|group| group.tally.interval.0).fold(1.0, f64::min);
    let low = (10.0 * least).floor() / 10.0;
    let rows = table.groups.iter().map(|group| TableRow {
        head: group.name.clone(),
        cells: vec![
            TableCell { picture: interval_picture(group, all, low), ..share_cell(&group.tally) },
            TableCell::plain(group.tally.promises.to_string()),
            TableCell::plain(group.tally.kept.to_string()),
            TableCell::plain(group.tally.broken.to_string()),
            TableCell::plain(group.p_value.map(p_text).unwrap_or_default()),
            TableCell {
                text: group.adjusted.map(p_text).unwrap_or_default(),
                tone: if group.differs { Tone::Fails } else { Tone::Plain },
                ..TableCell::default()
            },
        ],
        ..TableRow::default()
    });
    section.table(ReportTable {
        caption: format!(
            "Promises by {}{unit}, with {} % intervals, drawn from {:.0} % to 100 %; the dashed line is \
             the share of all.",
            table.feature,
            shortest(100.0 * gate.confidence),
            100.0 * low
        ),
        corner: table.feature.clone(),
        beside: "",
        columns: [
            ("", "share kept"),
            ("", "promises"),
            ("", "kept"),
            ("", "broken"),
            ("Fisher's exact test", "p"),
            ("Fisher's exact test", "p by Holm"),
        ]
        .map(|(group, title)| TableColumn::number(group, title))
        .to_vec(),
        rows: rows.collect(),
    });
    let differing: Vec<&Group> = table.groups.iter().filter(|group| group.differs).collect();
    if differing.is_empty() {
        section.text("No group differs significantly from the other promises.");
    }
    for group in differing {
        let (own, rest) = (group.tally, others(&candidate.tally, &group.tally));
        section.text(format!(
            "{} {} differs significantly from the others: {} of {} promises are kept, of the \
             others {} of {}.",
            table.feature, group.name, own.kept, own.promises, rest.0, rest.1
        ));
    }
}

/// The promises outside a group: kept, and all.
fn others(all: &Tally, group: &Tally) -> (usize, usize) {
    (all.kept.saturating_sub(group.kept), all.promises.saturating_sub(group.promises))
}

/// A p-value with its significant digits.
fn p_text(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The share of a group with its interval, on a line from the least that is drawn to 1.
fn interval_picture(group: &Group, all: f64, least: f64) -> String {
    const WIDTH: f64 = 160.0;
    let Some(share) = group.tally.share_kept else { return String::new() };
    let scale = Scale::linear(least, 1.0);
    let at = |share: f64| 6.0 + scale.place(share) * (WIDTH - 12.0);
    let (low, high) = group.tally.interval;
    let style = if group.differs { BROKEN } else { SHARE };
    let tip = format!("{}: {} [{}, {}]", group.name, percent(share), percent(low), percent(high));
    let mut out = format!(
        r#"<svg class="picture" viewBox="0 0 {WIDTH} 17" aria-hidden="true"><path class="g" d="M{:.1} 8H{:.1}"/><path class="h" d="M{:.1} 1V15"/><path class="c{} k" d="M{:.1} 8H{:.1}"/>"#,
        at(least),
        at(1.0),
        at(all),
        style.colour,
        at(low),
        at(high)
    );
    dot(&mut out, at(share), 8.0, style, Fill::Full, &tip);
    out.push_str("</svg>");
    out
}
