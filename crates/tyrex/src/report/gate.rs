//! The report of the gate as a document.

mod groups;
mod promises;

use std::fmt::Write as _;

use super::document::{
    Document, Figures, Key, ReportTable, Section, SectionBlock, TableCell, TableColumn, TableRow,
    Tone,
};
use super::number::{amount, counted, percent, two_digits};
use super::scale::Scale;
use super::svg::{Chart, Fill, Mark, Style, open, text};
use crate::certificate::at_least;
use crate::explain::{GateReport, JudgedCandidate, PromiseStatus, RepairSummary, Tally};

/// The colours of the statuses of promises.
const KEPT: Style = Style { colour: 3, shape: 0 };
const BROKEN: Style = Style { colour: 2, shape: 2 };
const UNREADABLE: Style = Style { colour: 0, shape: 1 };
/// The colour of shares.
const SHARE: Style = Style { colour: 1, shape: 0 };

/// The document of a report.
pub(super) fn document(gate: &GateReport) -> Document {
    let mut sections = vec![verdict(gate)];
    if !gate.promises.is_empty() {
        sections.push(ranking(gate));
        sections.extend(promised_and_kept(gate));
        sections.extend(updates(gate));
        for candidate in &gate.candidates {
            sections.push(self::candidate(gate, candidate));
        }
    }
    sections.push(reading(gate));
    let candidates = counted(gate.candidates.len(), "candidate");
    Document {
        title: "Does the new model keep the promises?".to_owned(),
        subtitle: format!(
            "{}, {candidates}; tyrex {}",
            counted(gate.promises.len(), "open promise"),
            env!("CARGO_PKG_VERSION")
        ),
        answer: Some((gate.verdict.passes, gate.verdict.sentence.clone())),
        sections,
    }
}

fn verdict(gate: &GateReport) -> Section {
    let mut section = Section::new("verdict", "In numbers");
    let allowed = match gate.allow {
        0.0 => "none".to_owned(),
        share => format!("{} %", shortest(100.0 * share)),
    };
    let mut facts = vec![
        ("open promises", gate.promises.len().to_string()),
        ("may be broken", allowed),
        ("best candidate", gate.verdict.best.clone()),
    ];
    if gate.candidates.len() > 1 {
        let passing = match gate.verdict.passing.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        facts.push(("pass the gate", passing));
    }
    if let Some(best) = gate.candidates.first().filter(|best| best.tally.promises > 0) {
        facts.push(("kept by it", kept_of(&best.tally)));
        facts.push((
            "repairs found, if done as advised",
            found_of(&best.from_promised, best.tally.broken),
        ));
    }
    section.blocks.push(SectionBlock::Facts(
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    ));
    section
}

/// A number as it was typed, up to rounding of the last digits.
fn shortest(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn kept_of(tally: &Tally) -> String {
    format!("{} of {}", tally.kept, tally.promises)
}

fn found_of(repairs: &RepairSummary, broken: usize) -> String {
    format!("{} of {broken}", repairs.found)
}

fn ranking(gate: &GateReport) -> Section {
    let mut section = Section::new("candidates", "Candidates, the best first");
    let mut legend = vec![key(KEPT, "kept"), key(BROKEN, "broken")];
    if gate.candidates.iter().any(|candidate| candidate.tally.unreadable > 0) {
        legend.push(key(UNREADABLE, "cannot be read, counted as broken"));
    }
    section.figures(Figures {
        caption: "Promises under each candidate. The dashed line is the share that must be kept."
            .to_owned(),
        said: String::new(),
        legend,
        charts: vec![bars(gate)],
        in_pairs: false,
    });
    let rows = gate.candidates.iter().map(|candidate| {
        let tally = candidate.tally;
        let passes = TableCell {
            text: if candidate.passes { "passes" } else { "fails" }.to_owned(),
            tone: if candidate.passes { Tone::Holds } else { Tone::Fails },
            ..TableCell::default()
        };
        let mean = candidate.mean_stability.map(two_digits).unwrap_or_default();
        TableRow {
            head: format!("{}. {}", candidate.rank, candidate.name),
            is_ours: candidate.rank == 1 && gate.candidates.len() > 1,
            cells: vec![
                passes,
                share_cell(&tally),
                TableCell::plain(tally.kept.to_string()),
                TableCell::plain(tally.broken.to_string()),
                TableCell::plain(tally.unreadable.to_string()),
                TableCell::plain(mean),
                repair_cell(&candidate.from_promised),
                repair_cell(&candidate.from_factual),
            ],
            ..TableRow::default()
        }
    });
    section.table(ReportTable {
        caption: format!(
            "Ranked by kept promises, then by mean stability of the promised rows, then by name. \
             The share has its {} % interval. Repairs: the number found, their mean cost and the \
             number of features they change.",
            shortest(100.0 * gate.confidence)
        ),
        corner: "candidate".to_owned(),
        beside: "",
        columns: [
            ("", "gate"),
            ("", "share kept"),
            ("", "kept"),
            ("", "broken"),
            ("", "of these unreadable"),
            ("", "mean stability"),
            ("repairs found", "done as advised"),
            ("repairs found", "done nothing yet"),
        ]
        .map(|(group, title)| TableColumn::number(group, title))
        .to_vec(),
        rows: rows.collect(),
    });
    section
}

/// The promised probability beside the share kept, if promises state one.
fn promised_and_kept(gate: &GateReport) -> Option<Section> {
    let rows: Vec<TableRow> = gate
        .candidates
        .iter()
        .filter_map(|candidate| {
            let stated = candidate.tally.stated?;
            Some(TableRow {
                head: candidate.name.clone(),
                cells: [
                    stated.promises.to_string(),
                    percent(stated.mean_probability),
                    percent(stated.mean_predictive),
                    percent(stated.share_kept),
                ]
                .map(TableCell::plain)
                .to_vec(),
                ..TableRow::default()
            })
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut section = Section::new("promised", "Promised and kept");
    section.table(ReportTable {
        caption: "The promises that state a probability. The promised probability of each is a \
                  lower bound at its confidence, the predictive one has no confidence; both are \
                  means over these promises."
            .to_owned(),
        corner: "candidate".to_owned(),
        beside: "",
        columns: ["promises", "promised", "predictive", "share kept"]
            .map(|title| TableColumn::number("", title))
            .to_vec(),
        rows,
    });
    Some(section)
}

/// The candidates as successive updates, if there are several.
fn updates(gate: &GateReport) -> Option<Section> {
    let updates = gate.updates.as_ref().filter(|all| all.updates.len() > 1)?;
    let mut section = Section::new("updates", "Update after update");
    section.text(updates.sentence.clone());
    let rows = updates.updates.iter().map(|update| TableRow {
        head: update.name.clone(),
        cells: [format!("{:.3}", update.share_kept), at_least(update.at_least)]
            .map(TableCell::plain)
            .to_vec(),
        ..TableRow::default()
    });
    section.table(ReportTable {
        caption: "The candidates in the order given. The bound uses this update and those before \
                  it, and holds after every update at once. It is meant for models that replaced \
                  each other; for alternatives it says nothing."
            .to_owned(),
        corner: "update".to_owned(),
        beside: "",
        columns: ["share kept", "expected share, at least"]
            .map(|title| TableColumn::number("", title))
            .to_vec(),
        rows: rows.collect(),
    });
    Some(section)
}

fn share_cell(tally: &Tally) -> TableCell {
    let Some(share) = tally.share_kept else {
        return TableCell::plain("\u{2013}");
    };
    let (low, high) = tally.interval;
    TableCell {
        text: percent(share),
        detail: format!("[{}, {}]", percent(low), percent(high)),
        ..TableCell::default()
    }
}

fn repair_cell(repairs: &RepairSummary) -> TableCell {
    let searched =
        repairs.found + repairs.already_favourable + repairs.cancelled + repairs.not_found;
    if searched == 0 {
        return TableCell::plain("\u{2013}");
    }
    let mut detail = match (repairs.mean_l1, repairs.mean_changed) {
        (Some(cost), Some(changed)) => {
            format!("mean L1 {}; {changed:.1} features", amount(cost))
        }
        _ => String::new(),
    };
    if repairs.already_favourable > 0 {
        let gap = if detail.is_empty() { "" } else { "; " };
        let _ = write!(detail, "{gap}{} accepted as they are", repairs.already_favourable);
    }
    let text = format!("{} of {searched}", repairs.found);
    TableCell { text, beside: detail, ..TableCell::default() }
}

fn key(style: Style, text: &str) -> Key {
    Key { style, fill: Fill::Full, text: text.to_owned() }
}

/// A bar for every candidate: kept, broken, unreadable.
fn bars(gate: &GateReport) -> String {
    const WIDTH: f64 = 420.0;
    const LINE: f64 = 40.0;
    const TOP: f64 = 6.0;
    let height = TOP + LINE * gate.candidates.len() as f64 + 18.0;
    let (left, right) = (8.0, WIDTH - 8.0);
    let at = |share: f64| left + share * (right - left);
    let said: Vec<String> = gate
        .candidates
        .iter()
        .map(|candidate| format!("{} keeps {}", candidate.name, kept_of(&candidate.tally)))
        .collect();
    let mut out = String::new();
    open(&mut out, WIDTH, height, "Promises kept", &said.join("; "));
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (x, bottom) = (at(tick), height - 16.0);
        let _ = write!(out, r#"<path class="g" d="M{x:.1} {TOP}V{bottom}"/>"#);
        let anchor = match tick {
            0.0 => "start",
            1.0 => "end",
            _ => "middle",
        };
        text(&mut out, x, height - 4.0, anchor, "n", &format!("{:.0} %", 100.0 * tick));
    }
    for (index, candidate) in gate.candidates.iter().enumerate() {
        let y = TOP + LINE * index as f64;
        let Tally { promises, kept, broken, unreadable, .. } = candidate.tally;
        text(&mut out, left, y + 11.0, "start", "t", &short(&candidate.name, 44));
        text(&mut out, right, y + 11.0, "end", "n", &format!("{} kept", kept_of(&candidate.tally)));
        let mut from = 0;
        let parts = [(kept, KEPT), (broken - unreadable, BROKEN), (unreadable, UNREADABLE)];
        for (count, style) in parts {
            if count > 0 {
                let ends = [from, from + count].map(|n| at(n as f64 / promises.max(1) as f64));
                let _ = write!(
                    out,
                    r#"<rect class="c{} b" x="{:.1}" y="{:.1}" width="{:.1}" height="14"/>"#,
                    style.colour,
                    ends[0],
                    y + 17.0,
                    (ends[1] - ends[0]).max(0.8)
                );
                from += count;
            }
        }
        let x = at(1.0 - gate.allow);
        let _ = write!(out, r#"<path class="h" d="M{x:.1} {:.1}v22"/>"#, y + 13.0);
    }
    out.push_str("</svg>");
    out
}

/// A text cut to this many letters; the end is kept, since names of files differ there.
fn short(text: &str, letters: usize) -> String {
    let count = text.chars().count();
    if count <= letters {
        return text.to_owned();
    }
    let end: String = text.chars().skip(count - letters + 1).collect();
    format!("\u{2026}{end}")
}

fn candidate(gate: &GateReport, candidate: &JudgedCandidate) -> Section {
    let name = format!("candidate-{}", candidate.rank);
    let mut section = Section::new(&name, &candidate.name);
    let repairs = |repairs: &RepairSummary| found_of(repairs, candidate.tally.broken);
    let facts = [
        ("gate", if candidate.passes { "passes" } else { "fails" }.to_owned()),
        ("promises kept", kept_of(&candidate.tally)),
        ("repairs found, if done as advised", repairs(&candidate.from_promised)),
        ("repairs found, if not done", repairs(&candidate.from_factual)),
        ("fingerprint", candidate.fingerprint.clone()),
    ];
    section.blocks.push(SectionBlock::Facts(
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    ));
    if let Some(other) = &candidate.same_as {
        section.text(format!("This is the same model as {other}."));
    }
    if !candidate.ignored.is_empty() {
        section.text(format!(
            "Features of the promises that this model does not take are ignored: {}.",
            candidate.ignored.join(", ")
        ));
    }
    section.figures(stabilities(candidate));
    for table in &candidate.groups {
        section.heading(format!("By {}", table.feature));
        groups::table(&mut section, gate, candidate, table);
    }
    promises::broken(&mut section, candidate);
    promises::unreadable(&mut section, candidate);
    section
}

/// The stability of the promised rows.
fn stabilities(candidate: &JudgedCandidate) -> Figures {
    const BINS: usize = 20;
    let read: Vec<(f64, bool)> = candidate
        .promises
        .iter()
        .filter_map(|each| Some((each.stability?, each.status == PromiseStatus::Kept)))
        .collect();
    if read.is_empty() {
        return Figures::default();
    }
    let least = read.iter().map(|(value, _)| *value).fold(0.0, f64::min);
    let low = (least * 10.0).floor() / 10.0;
    let width = (1.0 - low) / BINS as f64;
    let mut counts = [[0_usize; 2]; BINS];
    for (value, kept) in &read {
        let bin = (((value - low) / width) as usize).min(BINS - 1);
        counts[bin][usize::from(!kept)] += 1;
    }
    let most = counts.iter().flatten().copied().max().unwrap_or(1);
    let mut marks = Vec::new();
    for (bin, counts) in counts.iter().enumerate() {
        for (half, style, word) in [(0, KEPT, "kept"), (1, BROKEN, "broken")] {
            let from = low + width * (bin as f64 + 0.5 * half as f64);
            let tip = format!("{}: {} {word}", two_digits(from), counts[half]);
            if counts[half] > 0 {
                let (to, height) = (from + 0.5 * width, counts[half] as f64);
                marks.push(Mark::Bar { from, to, height, style, tip });
            }
        }
    }
    let weak = read.iter().filter(|(value, kept)| *kept && *value < 0.5).count();
    let kept = candidate.tally.kept;
    let said = match kept {
        0 => String::new(),
        _ => format!("Of {kept} kept promises {weak} have a stability below 0.5."),
    };
    let chart = Chart {
        title: "Stability of the promised rows".to_owned(),
        description: said.clone(),
        x: Scale::linear(low, 1.0),
        y: Scale::linear(0.0, most as f64 * 1.08),
        x_label: "relaxed stability under this model".to_owned(),
        y_label: "promises".to_owned(),
        marks,
    };
    Figures {
        caption: "A kept promise with a low stability lies near the decision boundary: a \
                  small change of the model or of the person may break it."
            .to_owned(),
        said,
        legend: vec![key(KEPT, "kept"), key(BROKEN, "broken")],
        charts: vec![chart.svg()],
        in_pairs: false,
    }
}

/// The meaning of the words and numbers.
fn reading(gate: &GateReport) -> Section {
    let mut section = Section::new("reading", "How to read this");
    section.text(
        "A promise is recorded advice: an applicant who becomes this row is accepted. A \
         candidate keeps it if it scores that row at 0.5 or more. The gate compares the share of \
         promises that the best candidate breaks with the share that may be broken.",
    );
    let confidence = shortest(100.0 * gate.confidence);
    section.text(format!(
        "The interval is Clopper and Pearson's, with {confidence} % confidence. The count itself \
         is exact. The interval is about all promises of the same kind: if these are a random \
         sample of them, it covers the share kept among all."
    ));
    section.text(format!(
        "A group differs significantly from the others if Fisher's exact test, two-sided and \
         corrected by Holm for all groups on this page, gives a p-value of at most {}. This shows \
         that the shares differ. It does not show the reason, or that the difference is large or \
         unfair. A group that is not marked may still differ, especially a small one.",
        shortest(1.0 - gate.confidence)
    ));
    section.text(
        "Repairs have two starts. \"Done\": for people who have followed the advice. \"Not done\": \
         for people who have not followed it yet. A repair is the cheapest row that the search \
         found; a cheaper one may exist. Costs are distances in encoded columns.",
    );
    if let Ok(parameters) = serde_json::to_string(&gate.request) {
        section.blocks.push(SectionBlock::Folded {
            title: "Parameters of the search".to_owned(),
            blocks: vec![SectionBlock::Text(parameters)],
        });
    }
    section
}
