//! Parts of reports about data and models.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use tyrex::data::schema::{Action, MayBecome};
use tyrex::data::{ReadReport, Schema, Value};
use tyrex::explain::{Explainer, Part, Performance, Reference};
use tyrex::model::Model;
use tyrex::model::files::ModelFile;

use crate::printer::{Page, Stand};

/// A summary of the data.
#[derive(Debug, Serialize)]
pub(super) struct DataSummary {
    pub(super) title: String,
    rows: usize,
    features: usize,
    train: Option<usize>,
    test: Option<usize>,
    read: ReadReport,
}

impl DataSummary {
    pub(super) fn of(title: String, data: &Reference) -> Self {
        let count = |part| data.has_labels().then(|| data.part(part).len());
        Self {
            title,
            rows: data.rows().len(),
            features: data.schema().features.len(),
            train: count(Part::Train),
            test: count(Part::Test),
            read: data.report().clone(),
        }
    }

    /// Rows to explain that are separate from the model's reference.
    pub(super) fn of_applicants(
        title: String,
        rows: usize,
        features: usize,
        read: ReadReport,
    ) -> Self {
        Self { title, rows, features, train: None, test: None, read }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let parts = match (self.train, self.test) {
            (Some(_), Some(0)) => "; no test rows".to_owned(),
            (Some(train), Some(test)) => format!("; {train} train, {test} test"),
            _ => String::new(),
        };
        let rows =
            format!("{}, {}{parts}", counted(self.rows, "row"), counted(self.features, "feature"));
        let mut pairs = vec![("data", rows)];
        pairs.extend(read_pairs(&self.read));
        pairs
    }
}

/// A path for display; characters that are not text are replaced.
pub(super) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A count with its noun.
pub(super) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The dropped rows and filled cells, if any.
fn read_pairs(read: &ReadReport) -> Vec<(&'static str, String)> {
    let per_column = |counts: &BTreeMap<String, usize>| {
        counts.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
    };
    let mut pairs = Vec::new();
    if read.rows_dropped > 0 {
        let by = per_column(&read.dropped_by);
        let (dropped, all) = (read.rows_dropped, read.rows_read);
        pairs.push(("dropped", format!("{dropped} of {all} rows, for missing cells: {by}")));
    }
    if !read.filled.is_empty() {
        pairs.push(("filled", format!("missing cells: {}", per_column(&read.filled))));
    }
    if !read.kept_missing.is_empty() {
        let kept = per_column(&read.kept_missing);
        pairs.push(("missing", format!("cells kept as a level of their own: {kept}")));
    }
    pairs
}

/// A summary of the model.
#[derive(Debug, Serialize)]
pub(super) struct ModelSummary {
    #[serde(flatten)]
    summary: tyrex::model::ModelSummary,
    fingerprint: String,
}

impl ModelSummary {
    pub(super) fn of(model: &dyn Model) -> Self {
        let fingerprint = model.identity().map(|own| own.to_string()).unwrap_or_default();
        Self { summary: model.summary(), fingerprint }
    }

    pub(super) fn of_explainer(explainer: &Explainer) -> Self {
        let fingerprint = explainer.fingerprint().to_string();
        Self { summary: explainer.model().summary(), fingerprint }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        vec![("model", self.summary.to_string()), ("fingerprint", self.fingerprint.clone())]
    }
}

/// The favourable class of a model file.
#[derive(Debug, Clone, Serialize)]
pub(super) struct FavourableClass {
    number: usize,
    name: Option<String>,
}

impl FavourableClass {
    pub(super) fn of(model: &ModelFile) -> Self {
        let name = model.labels.as_ref().and_then(|labels| labels.get(model.favourable));
        Self { number: model.favourable, name: name.cloned() }
    }

    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let class = match &self.name {
            Some(name) => format!("class {name} of the model"),
            None => format!("class number {} of the model", self.number),
        };
        vec![("favourable", class)]
    }
}

/// A name as in the file formats, with its parameters if it has any.
pub(super) fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(serde_json::Value::Object(map)) => map
            .iter()
            .map(|(name, inner)| match inner.as_object().and_then(|inner| inner.values().next()) {
                Some(parameter) => format!("{name} {parameter}"),
                None => name.clone(),
            })
            .collect(),
        _ => String::new(),
    }
}

/// The performance of the model on each part.
pub(super) fn performance_table(page: &mut Page, performances: &[Performance]) {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"));
    let rows: Vec<Vec<String>> = performances
        .iter()
        .map(|performance| {
            vec![
                name_of(&performance.part),
                performance.rows.to_string(),
                number(performance.accuracy),
                number(performance.auc),
                number(performance.calibration_error),
                number(performance.loss),
                performance.rejected.to_string(),
            ]
        })
        .collect();
    let right = |name| (name, Stand::Right);
    let header = [
        ("part", Stand::Left),
        right("rows"),
        right("accuracy"),
        right("AUC"),
        right("calibration error"),
        right("loss"),
        right("rejected"),
    ];
    page.table(&header, &rows);
}

/// The features of a schema as a table.
pub(super) fn feature_table(page: &mut Page, schema: &Schema) {
    let rows: Vec<Vec<String>> = schema
        .features
        .iter()
        .map(|feature| {
            let range = match feature.action {
                Action::Within(interval) => Some(interval),
                _ => feature.range,
            };
            let range = range.map(|range| format!("{} to {}", range.lower, range.upper));
            let levels: Vec<String> = feature.kind.levels().iter().map(Value::to_string).collect();
            let values = range.unwrap_or_else(|| levels.join(" | "));
            vec![
                feature.name.clone(),
                feature.kind.name().to_owned(),
                feature.unit.clone().unwrap_or_default(),
                match feature.may_become {
                    MayBecome::Neither => name_of(&feature.action),
                    other => {
                        format!("{}, may become {}", name_of(&feature.action), name_of(&other))
                    }
                },
                values,
            ]
        })
        .collect();
    let header = ["feature", "kind", "unit", "action", "values"].map(|name| (name, Stand::Left));
    page.table(&header, &rows);
}
