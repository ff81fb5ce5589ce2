//! The report of the gate as a document.

use std::fmt::Write as _;

use super::document::{
    Block, Column, Document, Figures, Key, Row, Section, Table, TableCell, Tone,
};
use super::number::{amount, counted, percent, two_digits};
use super::scale::Scale;
use super::svg::{Chart, Fill, Mark, Style, dot, open, text};
use crate::certificate::at_least;
use crate::counterfactual::Reason;
use crate::data::Value;
use crate::explain::{
    FeatureChange, GateReport, Group, GroupTable, JudgedCandidate, JudgedPromise, PromiseStatus,
    Repair, RepairSummary, Tally,
};

/// Broken promises that are shown at once; the others are folded.
const OPEN: usize = 5;
/// The maximum number of them on the page.
const MOST: usize = 200;

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
    section.blocks.push(Block::Facts(
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
        Row {
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
            ..Row::default()
        }
    });
    section.table(Table {
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
        .map(|(group, title)| Column::number(group, title))
        .to_vec(),
        rows: rows.collect(),
    });
    section
}

/// The promised probability beside the share kept, if promises state one.
fn promised_and_kept(gate: &GateReport) -> Option<Section> {
    let rows: Vec<Row> = gate
        .candidates
        .iter()
        .filter_map(|candidate| {
            let stated = candidate.tally.stated?;
            Some(Row {
                head: candidate.name.clone(),
                cells: [
                    stated.promises.to_string(),
                    percent(stated.mean_probability),
                    percent(stated.mean_predictive),
                    percent(stated.share_kept),
                ]
                .map(TableCell::plain)
                .to_vec(),
                ..Row::default()
            })
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut section = Section::new("promised", "Promised and kept");
    section.table(Table {
        caption: "The promises that state a probability. The promised probability of each is a \
                  lower bound at its confidence, the predictive one has no confidence; both are \
                  means over these promises."
            .to_owned(),
        corner: "candidate".to_owned(),
        beside: "",
        columns: ["promises", "promised", "predictive", "share kept"]
            .map(|title| Column::number("", title))
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
    let rows = updates.updates.iter().map(|update| Row {
        head: update.name.clone(),
        cells: [format!("{:.3}", update.share_kept), at_least(update.at_least)]
            .map(TableCell::plain)
            .to_vec(),
        ..Row::default()
    });
    section.table(Table {
        caption: "The candidates in the order given. The bound uses this update and those before \
                  it, and holds after every update at once. It is meant for models that replaced \
                  each other; for alternatives it says nothing."
            .to_owned(),
        corner: "update".to_owned(),
        beside: "",
        columns: ["share kept", "expected share, at least"]
            .map(|title| Column::number("", title))
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
    section.blocks.push(Block::Facts(
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
        group_table(&mut section, gate, candidate, table);
    }
    broken(&mut section, candidate);
    unreadable(&mut section, candidate);
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

fn group_table(
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
    let rows = table.groups.iter().map(|group| Row {
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
        ..Row::default()
    });
    section.table(Table {
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
        .map(|(group, title)| Column::number(group, title))
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

fn broken(section: &mut Section, candidate: &JudgedCandidate) {
    let broken: Vec<&JudgedPromise> =
        candidate.promises.iter().filter(|each| each.status == PromiseStatus::Broken).collect();
    if broken.is_empty() {
        return;
    }
    section.heading(format!("Broken promises: {}", broken.len()));
    section.text(candidate.search.sentence.clone());
    let table =
        |each: &&JudgedPromise| Block::Values(each.name.clone(), broken_table(candidate, each));
    let tables: Vec<Block> = broken.iter().take(MOST).map(table).collect();
    let (open, folded) = tables.split_at(tables.len().min(OPEN));
    section.blocks.extend(open.iter().cloned());
    if !folded.is_empty() {
        section.blocks.push(Block::Folded {
            title: counted(folded.len(), "more broken promise"),
            blocks: folded.to_vec(),
        });
    }
    if broken.len() > MOST {
        section.text(format!(
            "{} more are left out here; the table of the audit has them all.",
            broken.len() - MOST
        ));
    }
}

/// The features of one broken promise that change: before, as promised, and after each repair.
fn broken_table(candidate: &JudgedCandidate, promise: &JudgedPromise) -> Table {
    let repairs = promise.repairs.as_ref();
    let from_promised = repairs.map(|repairs| &repairs.from_promised);
    let from_factual = repairs.and_then(|repairs| repairs.from_factual.as_ref());
    let advised = promise.changes.as_slice();
    let [done, not_done] =
        [from_promised, from_factual].map(|repair| repair.and_then(Repair::changes).unwrap_or(&[]));
    let rows = candidate.features.iter().filter_map(|feature| {
        let find = |changes: &'_ [FeatureChange]| {
            changes.iter().find(|change| change.feature == *feature).cloned()
        };
        let (advised, done, not_done) = (find(advised), find(done), find(not_done));
        let any = advised.as_ref().or(done.as_ref()).or(not_done.as_ref())?;
        let unit = any.unit.clone();
        // Features that are neither advised nor changed are the same in both rows.
        let before = advised.as_ref().or(not_done.as_ref()).or(done.as_ref()).map(|c| &c.from);
        let before = before.filter(|_| promise.factual_score.is_some());
        let promised = advised.as_ref().map(|c| &c.to).or(done.as_ref().map(|c| &c.from));
        let cell = |value: Option<&Value>| TableCell {
            text: value
                .map_or_else(|| "\u{2013}".to_owned(), |value| shown(value, unit.as_deref())),
            ..TableCell::default()
        };
        let changed = |change: &Option<FeatureChange>| TableCell {
            tone: if change.is_some() { Tone::Higher(1) } else { Tone::Plain },
            ..cell(change.as_ref().map(|change| &change.to))
        };
        Some(Row {
            head: feature.clone(),
            cells: vec![
                cell(before),
                cell(promised.or(before)),
                changed(&done),
                changed(&not_done),
            ],
            ..Row::default()
        })
    });
    let number = |number: Option<f64>| number.map_or_else(|| "\u{2013}".to_owned(), two_digits);
    let judged = |head: &str, cells: [String; 4]| Row {
        head: head.to_owned(),
        cells: cells.map(TableCell::plain).to_vec(),
        ..Row::default()
    };
    let score = |score: Option<f32>| number(score.map(f64::from));
    let [done, not_done] = [from_promised, from_factual].map(said_of);
    let mut last = vec![
        judged(
            "score",
            [score(promise.factual_score), score(promise.score), done.score, not_done.score],
        ),
        judged(
            "stability",
            ["\u{2013}".to_owned(), number(promise.stability), done.stability, not_done.stability],
        ),
        judged(
            "cost (L1)",
            ["\u{2013}".to_owned(), "\u{2013}".to_owned(), done.cost, not_done.cost],
        ),
    ];
    if !(done.models.is_empty() && not_done.models.is_empty()) {
        let none = || "\u{2013}".to_owned();
        last.push(judged("retrained", [none(), none(), done.models, not_done.models]));
    }
    Table {
        caption: promise
            .sentence
            .as_ref()
            .map(|text| format!("Promised: {text}"))
            .unwrap_or_default(),
        corner: "feature".to_owned(),
        beside: "",
        columns: ["before", "promised", "repair, if done", "repair, if not done"]
            .map(|title| Column::number("", title))
            .to_vec(),
        rows: rows.chain(last).collect(),
    }
}

/// A value in its own units.
fn shown(value: &Value, unit: Option<&str>) -> String {
    match (value, unit) {
        (Value::Missing, _) => "(missing)".to_owned(),
        (Value::Number(_), Some(unit)) => format!("{} {unit}", value.for_people()),
        _ => value.for_people(),
    }
}

/// The cells of a repair below its features.
struct Said {
    score: String,
    stability: String,
    cost: String,
    /// The retrained models that accept it.
    models: String,
}

fn said_of(repair: Option<&Repair>) -> Said {
    let only = |text: String| Said {
        score: text,
        stability: String::new(),
        cost: String::new(),
        models: String::new(),
    };
    match repair {
        None => only("not searched".to_owned()),
        Some(Repair::NotFound { reason: Reason::AlreadyFavourable, .. }) => {
            only("accepted as it was".to_owned())
        }
        Some(Repair::NotFound { sentence, .. }) => only(format!("none: {sentence}")),
        Some(Repair::Found { score, stability, cost, promise, .. }) => Said {
            score: two_digits(f64::from(*score)),
            stability: stability.map(two_digits).unwrap_or_default(),
            cost: cost.map(|cost| amount(cost.l1)).unwrap_or_default(),
            models: promise
                .as_ref()
                .map(|shown| format!("{} of {}", shown.accepting, shown.models))
                .unwrap_or_default(),
        },
    }
}

fn unreadable(section: &mut Section, candidate: &JudgedCandidate) {
    let all: Vec<&JudgedPromise> =
        candidate.promises.iter().filter(|each| each.status == PromiseStatus::Unreadable).collect();
    if all.is_empty() {
        return;
    }
    section.heading(format!("Promises that cannot be read: {}", all.len()));
    let rows = all.iter().take(MOST).map(|promise| Row {
        head: promise.name.clone(),
        cells: vec![TableCell::plain(promise.reason.clone().unwrap_or_default())],
        ..Row::default()
    });
    section.table(Table {
        caption: "They do not fit the features of this model. For the gate they are broken."
            .to_owned(),
        corner: "promise".to_owned(),
        beside: "",
        columns: vec![Column::words("why")],
        rows: rows.collect(),
    });
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
        section.blocks.push(Block::Folded {
            title: "Parameters of the search".to_owned(),
            blocks: vec![Block::Text(parameters)],
        });
    }
    section
}
