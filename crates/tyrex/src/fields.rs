//! JSON documents of users: errors name the field and use the words of JSON.

use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use crate::error::{Error, Result};

/// Reads a document. An error names the field by its path: `budget.seconds`, `keep[2]`.
pub fn read<'de, T: Deserialize<'de>>(document: &'de Value) -> Result<T> {
    serde_path_to_error::deserialize(document).map_err(|error| {
        let path = error.path();
        let outer = if path.iter().len() == 0 { String::new() } else { path.to_string() };
        let misfit = match Misfit::of(&error.inner().to_string()) {
            // Types with a description of their own leave out the value.
            Misfit::Other(text) if text.starts_with("expected ") => {
                let value = path.iter().try_fold(document, |value, part| match part {
                    Segment::Map { key } => value.get(key),
                    Segment::Seq { index } => value.get(index),
                    Segment::Enum { variant } => value.get(variant),
                    Segment::Unknown => None,
                });
                Misfit::Other(value.map_or(text.clone(), |value| format!("found {value}, {text}")))
            }
            other => other,
        };
        Error::field(misfit.within(&outer).unwrap_or(outer), misfit.to_string())
    })
}

/// The fields without those that are `null`, which means that they are not given; also inside
/// objects. A field in `meant` has a meaning for `null` and keeps it.
pub fn given(fields: &Map<String, Value>, meant: &[&str]) -> Map<String, Value> {
    let is_given =
        |(name, value): &(&String, &Value)| !value.is_null() || meant.contains(&name.as_str());
    let inner = |(name, value): (&String, &Value)| match value {
        Value::Object(inner) => (name.clone(), Value::Object(given(inner, meant))),
        value => (name.clone(), value.clone()),
    };
    fields.iter().filter(is_given).map(inner).collect()
}

/// The part of a document that does not fit, in the words of JSON and not of Rust's types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// A field has another value than those expected.
    Value {
        /// The value.
        found: String,
        /// The expected values.
        expected: String,
    },
    /// A field is not known.
    Unknown {
        /// Its name.
        field: String,
        /// The known fields.
        expected: String,
    },
    /// A field is missing.
    Missing {
        /// Its name.
        field: String,
    },
    /// A field is there twice.
    Twice {
        /// Its name.
        field: String,
    },
    /// Another error, already in words.
    Other(String),
}

impl Misfit {
    /// The error in a message of `serde`, whose forms are fixed.
    pub fn of(message: &str) -> Self {
        let text = match message.rsplit_once(" at line ") {
            Some((text, place)) if place.contains(" column ") => text,
            _ => message,
        };
        let named = |form: &str| text.strip_prefix(form).map(|rest| name_in(rest).to_owned());
        if let Some(field) = named("missing field `") {
            return Self::Missing { field };
        }
        if let Some(field) = named("duplicate field `") {
            return Self::Twice { field };
        }
        let (start, expected) = text.rsplit_once(", expected ").unwrap_or((text, ""));
        if let Some(field) = named("unknown field `") {
            return Self::Unknown { field, expected: expected.to_owned() };
        }
        if let Some(found) = start.strip_prefix("unknown variant ") {
            let (found, expected) = (found.to_owned(), expected.to_owned());
            return Self::Value { found, expected };
        }
        let value =
            ["invalid type: ", "invalid value: "].iter().find_map(|form| start.strip_prefix(form));
        if let Some(value) = value {
            return Self::Value { found: found(value), expected: kind(expected) };
        }
        if let Some(rest) = start.strip_prefix("invalid length ") {
            return Self::Value { found: format!("a list of {rest}"), expected: kind(expected) };
        }
        // Numbers and flags that are written as text, as in a query.
        let text = match text {
            "invalid digit found in string"
            | "cannot parse integer from empty string"
            | "number too large to fit in target type" => "expected a whole number of at least 0",
            "invalid float literal" | "cannot parse float from empty string" => "expected a number",
            "provided string was not `true` or `false`" => "expected true or false",
            other => other,
        };
        Self::Other(text.to_owned())
    }

    /// The path of the field, if the message names it: it is in the object at `outer`, or is
    /// `outer` itself.
    pub fn within(&self, outer: &str) -> Option<String> {
        let (Self::Missing { field } | Self::Unknown { field, .. } | Self::Twice { field }) = self
        else {
            return None;
        };
        let is_outer = !matches!(self, Self::Missing { .. })
            && outer
                .strip_suffix(field.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        Some(match outer {
            outer if is_outer => outer.to_owned(),
            "" => field.clone(),
            outer => format!("{outer}.{field}"),
        })
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { found, expected } => write!(f, "found {found}, expected {expected}"),
            Self::Unknown { expected, .. } if expected.is_empty() => {
                f.write_str("unknown field, expected no fields")
            }
            Self::Unknown { expected, .. } => write!(f, "unknown field, expected {expected}"),
            Self::Missing { .. } => f.write_str("missing, expected a value"),
            Self::Twice { .. } => f.write_str("found twice, expected once"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// The name before the next backquote.
fn name_in(text: &str) -> &str {
    text.split('`').next().unwrap_or_default()
}

/// A value: ``integer `5` `` is 5.
fn found(value: &str) -> String {
    match value {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" | "Option value" => "null".to_owned(),
        _ => {
            let plain = ["integer `", "floating point `", "boolean `", "character `"];
            let inner = plain.iter().find_map(|kind| value.strip_prefix(kind));
            match inner {
                Some(inner) => inner.trim_end_matches('`').to_owned(),
                None => value.strip_prefix("string ").unwrap_or(value).to_owned(),
            }
        }
    }
}

/// A type: `f64` is a number.
fn kind(expected: &str) -> String {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "str" | "string" | "a borrowed string" | "a character" => "a text",
        "a sequence" => "a list",
        "a map" | "map" => "an object",
        "string or map" | "variant identifier" | "field identifier" => "a name",
        "map with a single key" => "an object with one field",
        "unit" | "null" => "null",
        _ => {
            let starts = |words: &[&str]| words.iter().any(|word| expected.starts_with(word));
            if let Some(length) = expected.strip_prefix("an array of length ") {
                return format!("a list of {length}");
            }
            if starts(&["variant index", "enum "]) {
                "a name"
            } else if starts(&["struct ", "internally tagged enum ", "adjacently tagged enum "]) {
                "an object"
            } else if starts(&["tuple ", "a tuple"]) {
                "a list"
            } else {
                expected
            }
        }
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Document {
        count: usize,
        signed: i64,
        share: f64,
        flag: bool,
        name: String,
        list: Vec<u8>,
        pair: [f64; 2],
        inner: Option<Inner>,
        way: Way,
        tagged: Option<Tagged>,
    }

    impl Default for Document {
        fn default() -> Self {
            Self {
                count: 0,
                signed: 0,
                share: 0.0,
                flag: false,
                name: String::new(),
                list: Vec::new(),
                pair: [0.0; 2],
                inner: None,
                way: Way::Up,
                tagged: None,
            }
        }
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its absence matters")]
        size: f32,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[expect(dead_code, reason = "only the errors matter")]
    enum Way {
        Up,
        Down(Inner),
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(tag = "name")]
    #[expect(dead_code, reason = "only the errors matter")]
    enum Tagged {
        One(Inner),
    }

    #[test]
    fn errors_name_the_field_in_words_of_json() {
        let whole = "a whole number of at least 0";
        let cases = [
            (json!({"count": "x"}), "count", format!("found \"x\", expected {whole}")),
            (json!({"count": -1}), "count", format!("found -1, expected {whole}")),
            (json!({"count": 1.5}), "count", format!("found 1.5, expected {whole}")),
            (json!({"signed": null}), "signed", "found null, expected a whole number".to_owned()),
            (json!({"share": true}), "share", "found true, expected a number".to_owned()),
            (json!({"flag": []}), "flag", "found a list, expected true or false".to_owned()),
            (json!({"name": {}}), "name", "found an object, expected a text".to_owned()),
            (json!({"list": "x"}), "list", "found \"x\", expected a list".to_owned()),
            (json!({"list": [1, 300]}), "list[1]", format!("found 300, expected {whole}")),
            (json!({"pair": [1]}), "pair", "found a list of 1, expected a list of 2".to_owned()),
            (json!({"inner": 3}), "inner", "found 3, expected an object".to_owned()),
            (json!({"inner": {}}), "inner.size", "missing, expected a value".to_owned()),
            (json!({"way": "left"}), "way", "found `left`, expected `up` or `down`".to_owned()),
            (json!({"way": 3}), "way", "found 3, expected a name".to_owned()),
            (json!({"way": {"down": 3}}), "way.down", "found 3, expected an object".to_owned()),
            (json!({"tagged": {}}), "tagged.name", "missing, expected a value".to_owned()),
            (
                json!({"tagged": {"name": "One", "size": 1, "x": 1}}),
                "tagged.x",
                "unknown field, expected `size`".to_owned(),
            ),
            (
                json!({"way": {"up": 1, "down": 2}}),
                "way",
                "found an object, expected an object with one field".to_owned(),
            ),
            (json!({"tagged": {"name": 7}}), "tagged.name", "found 7, expected a name".to_owned()),
            (json!(3), "", "found 3, expected an object".to_owned()),
        ];
        for (document, field, problem) in cases {
            match read::<Document>(&document) {
                Err(Error::Field { name, problem: told }) => {
                    assert_eq!((name.as_str(), told), (field, problem), "{document}");
                }
                other => panic!("{document}: {other:?}"),
            }
        }
    }

    #[test]
    fn null_is_not_given() {
        let sent = json!({"a": null, "b": {"c": null, "d": [null], "e": 1}, "f": null});
        let left = given(sent.as_object().unwrap(), &["f"]);
        assert_eq!(Value::Object(left), json!({"b": {"d": [null], "e": 1}, "f": null}));
    }

    #[test]
    fn an_unknown_field_is_answered_with_the_known_ones() {
        let error = read::<Document>(&json!({"cuont": 1})).unwrap_err().to_string();
        assert!(error.starts_with("parameter `cuont`: unknown field, expected one of `count`, "));
        let twice = serde_json::from_str::<Inner>(r#"{"size": 1, "size": 2}"#).unwrap_err();
        let twice = Misfit::of(&twice.to_string());
        assert_eq!(twice.to_string(), "found twice, expected once");
        assert_eq!(twice.within("a.b").as_deref(), Some("a.b.size"));
    }
}
