//! The library's question inside a request: its fields are at the same level as the request's own.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tyrex::explain::Ask;

/// Reads an [`Ask`] from all fields that the request itself does not know: `#[serde(flatten,
/// deserialize_with = "ask::flattened")]`. An unknown field is an error; `flatten` alone would
/// ignore it.
pub(crate) fn flattened<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ask, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    Ask::deserialize(Value::Object(fields.clone()))
        .map_err(|error| D::Error::custom(placed(&fields, &error)))
}

/// The error, prefixed with its field: `budget.seconds: invalid type ...`.
fn placed(fields: &Map<String, Value>, error: &serde_json::Error) -> String {
    let wrong = |path: &[&str], value: &Value| {
        let whole = path.iter().rev().fold(value.clone(), |inner, name| {
            Value::Object(Map::from_iter([((*name).to_owned(), inner)]))
        });
        Ask::deserialize(whole).err()
    };
    for (name, value) in fields {
        let Some(error) = wrong(&[name], value) else { continue };
        let inner = value.as_object().into_iter().flatten();
        let inner = inner.filter_map(|(part, value)| Some((part, wrong(&[name, part], value)?)));
        return match inner.into_iter().next() {
            Some((part, error)) => format!("{name}.{part}: {error}"),
            // An unknown field is named in the error itself.
            None if error.to_string().starts_with("unknown field") => error.to_string(),
            None => format!("{name}: {error}"),
        };
    }
    error.to_string()
}
