//! The broken promises of a candidate with their repairs, and those that it cannot read.

use super::super::document::{
    ReportTable, Section, SectionBlock, TableCell, TableColumn, TableRow, Tone,
};
use super::super::number::{amount, counted, two_digits};
use crate::counterfactual::Reason;
use crate::data::Value;
use crate::explain::{FeatureChange, JudgedCandidate, JudgedPromise, PromiseStatus, Repair};

/// Broken promises that are shown at once; the others are folded.
const OPEN: usize = 5;
/// The maximum number of promises on the page.
const MOST: usize = 200;

pub(super) fn broken(section: &mut Section, candidate: &JudgedCandidate) {
    let broken: Vec<&JudgedPromise> =
        candidate.promises.iter().filter(|each| each.status == PromiseStatus::Broken).collect();
    if broken.is_empty() {
        return;
    }
    section.heading(format!("Broken promises: {}", broken.len()));
    section.text(candidate.search.sentence.clone());
    let table = |each: &&JudgedPromise| {
        SectionBlock::Values(each.name.clone(), broken_table(candidate, each))
    };
    let tables: Vec<SectionBlock> = broken.iter().take(MOST).map(table).collect();
    let (open, folded) = tables.split_at(tables.len().min(OPEN));
    section.blocks.extend(open.iter().cloned());
    if !folded.is_empty() {
        section.blocks.push(SectionBlock::Folded {
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
fn broken_table(candidate: &JudgedCandidate, promise: &JudgedPromise) -> ReportTable {
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
        Some(TableRow {
            head: feature.clone(),
            cells: vec![
                cell(before),
                cell(promised.or(before)),
                changed(&done),
                changed(&not_done),
            ],
            ..TableRow::default()
        })
    });
    let number = |number: Option<f64>| number.map_or_else(|| "\u{2013}".to_owned(), two_digits);
    let judged = |head: &str, cells: [String; 4]| TableRow {
        head: head.to_owned(),
        cells: cells.map(TableCell::plain).to_vec(),
        ..TableRow::default()
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
    ReportTable {
        caption: promise
            .sentence
            .as_ref()
            .map(|text| format!("Promised: {text}"))
            .unwrap_or_default(),
        corner: "feature".to_owned(),
        beside: "",
        columns: ["before", "promised", "repair, if done", "repair, if not done"]
            .map(|title| TableColumn::number("", title))
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

pub(super) fn unreadable(section: &mut Section, candidate: &JudgedCandidate) {
    let all: Vec<&JudgedPromise> =
        candidate.promises.iter().filter(|each| each.status == PromiseStatus::Unreadable).collect();
    if all.is_empty() {
        return;
    }
    section.heading(format!("Promises that cannot be read: {}", all.len()));
    let rows = all.iter().take(MOST).map(|promise| TableRow {
        head: promise.name.clone(),
        cells: vec![TableCell::plain(promise.reason.clone().unwrap_or_default())],
        ..TableRow::default()
    });
    section.table(ReportTable {
        caption: "They do not fit the features of this model. For the gate they are broken."
            .to_owned(),
        corner: "promise".to_owned(),
        beside: "",
        columns: vec![TableColumn::words("why")],
        rows: rows.collect(),
    });
}
