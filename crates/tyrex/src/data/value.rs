//! Values and rows, in the units of the data.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::data::schema::Schema;
use crate::error::{Error, Result};

/// `2^53`: below it every whole number is an f64.
pub(crate) const EXACT: f64 = 9_007_199_254_740_992.0;

/// One value of a feature, in the units of the data.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A finite number.
    Number(f64),
    /// A level that is not a number.
    Text(String),
    /// The value is missing.
    Missing,
}

impl Value {
    /// The value that a text names: a number if it is a finite one.
    pub fn of_text(text: &str) -> Self {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Self::Number(number),
            _ => Self::from(text),
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::Missing => None,
        }
    }

    /// The value with six significant digits.
    pub fn for_people(&self) -> String {
        let Self::Number(number) = self else { return self.to_string() };
        let size = number.abs().log10().floor();
        if number.fract() == 0.0 || !(-4.0..6.0).contains(&size) {
            return self.to_string();
        }
        with_decimals(*number, (5.0 - size) as usize)
    }

    /// The same for the end of a change, rounded away from its start: a change to the number in this
    /// text goes as far as one to the value, and not just not far enough.
    pub(crate) fn for_people_from(&self, start: &Self) -> String {
        let text = self.for_people();
        let (Self::Number(end), Self::Number(start)) = (self, start) else { return text };
        let Some(shown) = parse_number(&text) else { return text };
        let rises = end > start;
        if shown == *end || (shown > *end) == rises {
            return text;
        }
        // It was rounded, so it has the decimals of six significant digits.
        let decimals = (5.0 - end.abs().log10().floor()) as usize;
        let unit = libm::pow(10.0, -(decimals as f64));
        with_decimals(if rises { shown + unit } else { shown - unit }, decimals)
    }

    /// Whether a cell with this text means this value: numbers are compared by value, text exactly.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Number(number) => parse_number(text) == Some(*number),
            Self::Text(own) => own == text,
            Self::Missing => false,
        }
    }
}

/// A number with at most so many decimals.
fn with_decimals(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Adding zero turns -0 into 0.
            Self::Number(number) => write!(f, "{}", number + 0.0),
            Self::Text(text) => f.write_str(text),
            Self::Missing => Ok(()),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) if number.fract() == 0.0 && number.abs() < EXACT => {
                serializer.serialize_i64(*number as i64)
            }
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Missing => serializer.serialize_unit(),
        }
    }
}

/// The name of [`Value`] in schemas: `utoipa` treats fields of a type called `Value` as any JSON.
#[cfg(feature = "openapi")]
pub type FeatureValue = Value;

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Value {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::Number, Type::String, Type::Null]))
            .description(Some(
                "One value of a feature, in the units of the data: a number, a level, or null \
                 where nothing is known.",
            ))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Value {
    fn name() -> std::borrow::Cow<'static, str> {
        "FeatureValue".into()
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Text(flag.to_string()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Number(number as f64))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
                Ok(Value::Number(number as f64))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
                if number.is_finite() {
                    Ok(Value::Number(number))
                } else {
                    Err(E::custom(format!("{number} is not a finite number")))
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
                Ok(Value::Missing)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// One value per feature, in the order of the schema.
///
/// A row has values in their own units; a [`Point`](crate::Point) is the encoded input of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    values: Vec<Value>,
}

impl Row {
    /// A row, checked against the schema: one value per feature, each one the feature accepts.
    pub fn new(schema: &Schema, values: Vec<Value>) -> Result<Self> {
        if values.len() != schema.features.len() {
            return Err(Error::Dimension {
                what: "values of a row".to_owned(),
                expected: schema.features.len(),
                got: values.len(),
            });
        }
        for (feature, value) in schema.features.iter().zip(&values) {
            if !schema.accepts(feature, value) {
                let found = if *value == Value::Missing {
                    "a missing value".to_owned()
                } else {
                    format!("`{value}`")
                };
                let expected = schema.expected(feature);
                return Err(Error::feature(
                    &feature.name,
                    format!("found {found}, expected {expected}"),
                ));
            }
        }
        Ok(Self { values })
    }

    /// A row whose values were checked one by one.
    pub(crate) fn from_checked(values: Vec<Value>) -> Self {
        Self { values }
    }

    /// The values, in the order of the schema's features.
    pub fn values(&self) -> &[Value] {
        &self.values
    }
}

/// A plain decimal number, with an exponent or without; `None` for anything else, and
/// for a number too large for an `f64`.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    // `f64::from_str` also takes `inf`, `nan` and `infinity`; here those are not numbers.
    let plain = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'));
    if !plain {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The candidate most similar to `text`, if any is similar enough.
pub fn nearest_name<'a>(text: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = text.trim().to_lowercase();
    let mut best = None;
    let mut best_likeness = 0.7;
    for candidate in candidates {
        let likeness = strsim::jaro_winkler(&wanted, &candidate.to_lowercase());
        if likeness > best_likeness {
            (best, best_likeness) = (Some(candidate), likeness);
        }
    }
    best
}
