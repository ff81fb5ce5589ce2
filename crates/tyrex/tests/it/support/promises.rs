//! Advice as promises, and back.

use tyrex::data::{Row, Schema};
use tyrex::explain::{Advice, Values, WrittenPromise};

/// The values of a row under the names of their features.
pub(crate) fn values_of(schema: &Schema, row: &Row) -> Values {
    let names = schema.features.iter().map(|feature| feature.name.clone());
    names.zip(row.values().iter().cloned()).collect()
}

/// The promise that advice is, if it was found.
pub(crate) fn promise(schema: &Schema, advice: &Advice) -> Option<WrittenPromise> {
    Some(WrittenPromise {
        name: format!("row {}", advice.applicant.row),
        factual: Some(values_of(schema, &advice.applicant.values)),
        advised: values_of(schema, advice.advised.as_ref()?),
        meaning: None,
        promised: None,
    })
}

/// The row of these values.
pub(crate) fn row_of(schema: &Schema, values: &Values) -> Row {
    let values = schema.features.iter().map(|feature| values[&feature.name].clone());
    Row::new(schema, values.collect()).unwrap()
}
