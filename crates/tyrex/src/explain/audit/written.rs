//! Promises as they were recorded, independent of any model.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Promise;
use crate::data::schema::MissingPolicy;
use crate::data::{Column, Feature, Row, Schema, Table, Value, listed};
use crate::error::{Error, Result};
use crate::explain::advice::own_advice_columns;
use crate::explain::certify::{check_rows, found_lines};
use crate::explain::{Meaning, PromisedProbability, Reference, UnlabelledRows};

/// Values under the names of their features.
pub type Values = BTreeMap<String, Value>;

/// Recorded advice, from a ledger or a file of advice. It needs no schema, so models with other
/// features can be audited with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WrittenPromise {
    /// Its name in reports: `row 17`, or its number in the ledger.
    pub name: String,
    /// The original row, if known. It may have more columns than the model takes; promises can be
    /// grouped by them.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<BTreeMap<String, crate::data::FeatureValue>>))]
    pub factual: Option<Values>,
    /// The advised row.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, crate::data::FeatureValue>))]
    pub advised: Values,
    /// The promised outcome, if it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// The probability that was promised, if the advice had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<PromisedProbability>,
}

impl WrittenPromise {
    /// The promises of a file of advice, such as [`AdviceFile`] writes: the lines with `found` in
    /// column `status`, or all if there is no such column. A file without any is an error, and so
    /// is a status other than `found` and `not_found`. The original rows are those of the table
    /// `factuals` with the numbers in column `row`.
    ///
    /// [`AdviceFile`]: crate::explain::AdviceFile
    pub fn of_advice(advice: &Table, factuals: Option<&Table>) -> Result<Vec<Self>> {
        check_rows(advice)?;
        let column = |name: &str| advice.columns().iter().find(|own| own.name() == name);
        let (status, rows, parameters) = (column("status"), column("row"), column("parameters"));
        // Files of this crate have further columns, whose names no feature has.
        let is_ours = column("format_version").is_some();
        let own: BTreeSet<&str> = own_advice_columns().chain(EARLIER_COLUMNS).collect();
        let mut promises = Vec::new();
        for line in found_lines(advice)? {
            let row = match rows {
                None => line,
                Some(rows) => advice.cell(line, rows).parse().map_err(|_| {
                    advice.cell_error(line, rows, "the number of a row, from 0".to_owned())
                })?,
            };
            let factual = match factuals {
                None => None,
                Some(table) if table.row_numbers().contains(&row) => Some(line_of(table, row)),
                Some(table) => {
                    return Err(Error::Table {
                        file: advice.source().to_owned(),
                        problem: format!(
                            "advice for row {row}, but {} has {} rows; expected the rows that the \
                             advice was given for",
                            table.source().display(),
                            table.rows()
                        ),
                    });
                }
            };
            let mut advised = line_of(advice, line);
            advised.retain(|name, _| match name.as_str() {
                "row" => false,
                "status" | "reason" => status.is_none(),
                name => !(is_ours && own.contains(name)),
            });
            let meaning = match parameters {
                Some(parameters) => meaning(advice, parameters, line)?,
                None => None,
            };
            let name = format!("row {row}");
            promises.push(Self { name, factual, advised, meaning, promised: None });
        }
        Ok(promises)
    }

    /// The promise as rows of a schema; the error says why it cannot be read. An original row that
    /// cannot be read is omitted, with the reason.
    pub(super) fn read(&self, schema: &Schema, row: usize) -> Result<Read, String> {
        let advised = row_of(schema, &self.advised).map_err(|why| format!("as advised, {why}"))?;
        let factual = self.factual.as_ref().map(|values| row_of(schema, values)).transpose();
        Ok(match factual {
            Ok(factual) => Read { promise: Promise { row, factual, advised }, problem: None },
            Err(why) => Read {
                promise: Promise { row, factual: None, advised },
                problem: Some(format!("as it was, {why}")),
            },
        })
    }
}

/// The outcome in the `parameters` of a line. Earlier versions wrote none.
fn meaning(advice: &Table, parameters: &Column, line: usize) -> Result<Option<Meaning>> {
    let cell = advice.cell(line, parameters);
    if cell.is_empty() {
        return Ok(None);
    }
    let mut document: serde_json::Value = serde_json::from_str(cell).map_err(|error| {
        advice.cell_error(line, parameters, format!("a JSON document, or nothing: {error}"))
    })?;
    let Some(meaning) = document.get_mut("meaning").map(serde_json::Value::take) else {
        return Ok(None);
    };
    let read = serde_json::from_value(meaning).map_err(|error| Error::Cell {
        file: advice.source().to_owned(),
        row: line,
        column: "parameters".to_owned(),
        value: cell.to_owned(),
        expected: format!("the label, favourable values and threshold under `meaning`: {error}"),
    });
    read.map(Some)
}

/// The columns of files of advice of earlier versions that [`own_advice_columns`] no longer names:
/// those of audits.
const EARLIER_COLUMNS: [&str; 10] = [
    "promise",
    "promised_score",
    "promised_stability",
    "factual_score",
    "factual_status",
    "factual_reason",
    "factual_cost_l1",
    "factual_cost_l2",
    "factual_changed",
    "factual_seconds",
];

/// The row of a schema with these values.
fn row_of(schema: &Schema, values: &Values) -> Result<Row, String> {
    let value = |feature| value(schema, feature, values);
    schema.features.iter().map(value).collect::<Result<_, _>>().map(Row::from_checked)
}

/// A promise as rows of a schema.
pub(super) struct Read {
    pub(super) promise: Promise,
    /// Why the original row is omitted.
    pub(super) problem: Option<String>,
}

/// The cells of a line under the names of their columns.
fn line_of(table: &Table, line: usize) -> Values {
    let cell = |column: &Column| (column.name().to_owned(), Value::from(table.cell(line, column)));
    table.columns().iter().map(cell).collect()
}

/// The value of a feature.
fn value(schema: &Schema, feature: &Feature, values: &Values) -> Result<Value, String> {
    let name = &feature.name;
    let Some(written) = values.get(name) else {
        return Err(format!("it has no `{name}`, which the model takes"));
    };
    let read = match written {
        Value::Missing => Value::Missing,
        some => schema
            .value_of_cell(feature, &some.to_string())
            .map_err(|expected| format!("`{name}` is `{some}`, expected {expected}"))?,
    };
    if read != Value::Missing {
        return Ok(read);
    }
    match schema.missing_policy(feature) {
        MissingPolicy::Level | MissingPolicy::Pass => Ok(Value::Missing),
        MissingPolicy::Fill(value) => Ok(value.clone()),
        MissingPolicy::Reject | MissingPolicy::DropRow => {
            Err(format!("`{name}` is missing, expected {}", schema.expected(feature)))
        }
    }
}

impl Reference {
    /// The rows of promises as a reference, for a model without one: the advised and the original
    /// rows. Promises that the schema cannot read are omitted.
    pub fn of_promises(schema: &Schema, promises: &[WrittenPromise]) -> Result<Self> {
        let mut rows = Vec::new();
        for promise in promises {
            if let Ok(Read { promise, .. }) = promise.read(schema, 0) {
                rows.extend(promise.factual);
                rows.push(promise.advised);
            }
        }
        Ok(Self::Unlabelled(UnlabelledRows::of_rows(schema, rows)?.without_scale()))
    }
}

/// The features of promises that are not in the schema.
pub(super) fn ignored(schema: &Schema, promises: &[WrittenPromise]) -> Vec<String> {
    let mut names: Vec<String> = promises
        .iter()
        .flat_map(|promise| promise.advised.keys())
        .filter(|name| schema.position(name).is_none())
        .cloned()
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Rejects a feature that no promise has.
pub(super) fn unknown(feature: &str, promises: &[WrittenPromise]) -> Error {
    let mut names: Vec<&String> =
        promises.iter().filter_map(|each| each.factual.as_ref()).flat_map(Values::keys).collect();
    names.sort_unstable();
    names.dedup();
    let expected = match names.as_slice() {
        [] => "nothing, since the rows as they were are not known".to_owned(),
        names => format!("a column of the rows as they were: {}", listed(names)),
    };
    Error::param("by", feature, expected)
}
