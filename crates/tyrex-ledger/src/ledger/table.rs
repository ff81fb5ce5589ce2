//! Entries as a table to write.

use tyrex::data::{Column, Table};

use super::entry::{Content, Entry};
use super::error::Result;

/// The columns before the features.
const FRONT: [&str; 12] = [
    "sequence",
    "id",
    "time",
    "kind",
    "status",
    "subject",
    "holds_until",
    "score",
    "stability",
    "cost_l1",
    "cost_l2",
    "promises",
];
/// The columns after the features.
const BACK: [&str; 8] = [
    "promised_probability",
    "promised_confidence",
    "promised_predictive",
    "model",
    "request",
    "certificate",
    "previous",
    "hash",
];

/// Entries as a table, one line each: what every entry has, then `factual.NAME` and `advised.NAME`
/// for every feature that some promise names, then the assumptions. `promises` holds the sequences
/// that a closing or an erasure refers to. Cells without a value are empty.
pub fn table(entries: &[Entry]) -> Result<Table> {
    let features = features(entries);
    let mut names: Vec<String> = FRONT.map(str::to_owned).to_vec();
    for row in ["factual", "advised"] {
        names.extend(features.iter().map(|feature| format!("{row}.{feature}")));
    }
    names.extend(BACK.map(str::to_owned));
    let mut columns: Vec<Column> = names.into_iter().map(Column::new).collect();
    for entry in entries {
        let cells = cells(entry, &features);
        columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
    }
    Ok(Table::new("ledger", columns)?)
}

/// Every feature that a promise names, in the order of appearance.
fn features(entries: &[Entry]) -> Vec<&str> {
    let mut features: Vec<&str> = Vec::new();
    for given in entries.iter().filter_map(Entry::given) {
        let document = &given.document;
        for (name, _) in document.factual.iter().chain(document.advised.iter()) {
            if !features.contains(&name) {
                features.push(name);
            }
        }
    }
    features
}

fn cells(entry: &Entry, features: &[&str]) -> Vec<String> {
    let promised = entry.promise();
    let given = entry.given();
    let document = given.map(|given| &given.document);
    let text = |text: Option<String>| text.unwrap_or_default();
    let number = |number: Option<f64>| text(number.map(|number| number.to_string()));
    let about = match &entry.content {
        Content::Promise(_) => String::new(),
        Content::Closed { promise, closing } => format!("{promise} {}", closing.name()),
        Content::Forgotten { promises } => {
            promises.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
    };
    let mut cells = vec![
        entry.sequence.to_string(),
        entry.id.to_string(),
        entry.time.to_string(),
        entry.kind().name().to_owned(),
        text(promised.map(|promised| promised.status.to_string())),
        text(given.map(|given| given.subject.clone())),
        text(promised.and_then(|promised| Some(promised.holds_until?.to_string()))),
        text(document.map(|document| document.score.to_string())),
        number(document.and_then(|document| document.stability)),
        number(document.and_then(|document| document.cost_l1)),
        number(document.and_then(|document| document.cost_l2)),
        about,
    ];
    for row in [document.map(|it| &it.factual), document.map(|it| &it.advised)] {
        cells.extend(
            features.iter().map(|feature| {
                text(row.and_then(|row| row.value(feature)).map(ToString::to_string))
            }),
        );
    }
    let stated = document.and_then(|document| document.promised);
    cells.extend([
        number(stated.map(|stated| stated.probability)),
        number(stated.map(|stated| stated.confidence)),
        number(stated.map(|stated| stated.predictive)),
        text(promised.map(|promised| promised.model.clone())),
        text(promised.map(|promised| promised.request.to_string())),
        text(document.and_then(|it| Some(it.certificate.as_ref()?.to_string()))),
        entry.previous.to_string(),
        entry.hash.to_string(),
    ]);
    cells
}
