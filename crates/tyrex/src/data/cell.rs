//! From a cell to a value that its feature accepts.

use std::borrow::Cow;
use std::fmt;

use crate::data::schema::{Feature, FeatureKind, Schema, SpecialAs, is_representable};
use crate::data::value::{EXACT, Row, Value, nearest_name, parse_number};

/// A cell of a source or a destination with types, such as Arrow. [`Table`](super::Table) has the
/// same cells as text.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Empty,
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(Cow<'a, str>),
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => Ok(()),
            Self::Integer(number) => write!(f, "{number}"),
            // Adding zero turns -0 into 0.
            Self::Real(number) => write!(f, "{}", number + 0.0),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'a> Cell<'a> {
    /// The cell of a number of 32 bits: the number that its shortest text names.
    pub fn single(number: f32) -> Self {
        let wide = f64::from(number);
        if wide.fract() == 0.0 && wide.abs() < EXACT {
            return Self::Real(wide);
        }
        Self::Real(number.to_string().parse().unwrap_or(wide))
    }

    /// The cell of a text; an empty one is no value.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::Empty } else { Self::Text(text) }
    }

    /// The cell of a number that may be absent.
    pub(crate) fn real(number: Option<f64>) -> Self {
        number.map_or(Self::Empty, Self::Real)
    }
}

impl Schema {
    /// The value that a cell means, as [`value_of_cell`](Self::value_of_cell) reads it in the text
    /// of the cell. `missing` are the [`missing_numbers`](Self::missing_numbers).
    pub(crate) fn value_of(
        &self,
        feature: &Feature,
        missing: &[f64],
        cell: &Cell<'_>,
    ) -> Result<Value, String> {
        let number = match cell {
            Cell::Empty => return self.value_of_cell(feature, ""),
            Cell::Text(text) => return self.value_of_cell(feature, text),
            Cell::Integer(number) => *number as f64,
            Cell::Real(number) => *number,
        };
        let value = Value::Number(number + 0.0);
        let is_exact = feature.kind == FeatureKind::Numeric || number.abs() < EXACT;
        let is_plain = feature.kind.is_number() && is_exact && !missing.contains(&number);
        if is_plain && self.accepts(feature, &value) {
            return Ok(value);
        }
        self.value_of_cell(feature, &cell.to_string())
    }

    /// Whether the feature may have this value.
    pub fn accepts(&self, feature: &Feature, value: &Value) -> bool {
        match (value, &feature.kind) {
            (Value::Missing, _) => self.missing_policy(feature).keeps_missing(),
            (Value::Number(number), FeatureKind::Numeric | FeatureKind::Integer) => {
                let special = self.special_values(feature, SpecialAs::Level).contains(number)
                    || self.special_values(feature, SpecialAs::Number).contains(number);
                let whole = feature.kind == FeatureKind::Numeric || number.fract() == 0.0;
                let within = feature.range.is_none_or(|range| range.contains(*number));
                special || (is_representable(*number) && whole && within)
            }
            (Value::Text(_), FeatureKind::Numeric | FeatureKind::Integer) => false,
            (level, kind) => kind.levels().contains(level),
        }
    }

    /// The accepted values, in words.
    pub fn expected(&self, feature: &Feature) -> String {
        if !feature.kind.is_number() {
            return format!("one of {}", listed(feature.kind.levels()));
        }
        let kind = match feature.kind {
            FeatureKind::Integer => "a whole number",
            _ => "a number such as 12, -0.5 or 1e3",
        };
        let range = feature
            .range
            .map(|range| format!(" from {} to {}", range.lower, range.upper))
            .unwrap_or_default();
        let special: Vec<Value> = [SpecialAs::Level, SpecialAs::Number]
            .iter()
            .flat_map(|&treated| self.special_values(feature, treated))
            .map(|&value| Value::Number(value))
            .collect();
        if special.is_empty() {
            return format!("{kind}{range}");
        }
        format!("{kind}{range}, or one of {}", listed(&special))
    }

    /// The value that the text of a cell means: [`Value::Missing`] if the text means "missing" in
    /// the schema, under any policy. The error names the expected values.
    pub(crate) fn value_of_cell(&self, feature: &Feature, text: &str) -> Result<Value, String> {
        if let Some(level) = feature.kind.levels().iter().find(|level| level.matches(text)) {
            return Ok(level.clone());
        }
        if self.is_missing(text) {
            return Ok(Value::Missing);
        }
        if !feature.kind.is_number() {
            let names: Vec<String> =
                feature.kind.levels().iter().map(ToString::to_string).collect();
            let expected = self.expected(feature);
            return Err(match nearest_name(text, names.iter().map(String::as_str)) {
                Some(name) => format!("{expected}; did you mean `{name}`?"),
                None => expected,
            });
        }
        match parse_number(text).map(Value::Number) {
            // All digits that were written are kept.
            Some(Value::Number(number))
                if feature.kind == FeatureKind::Integer
                    && number.abs() >= EXACT
                    && !text.contains(['.', 'e', 'E']) =>
            {
                Err(format!("{} between -2^53 and 2^53", self.expected(feature)))
            }
            Some(value) if self.accepts(feature, &value) => Ok(value),
            Some(Value::Number(number)) if !is_representable(number) => {
                Err(format!("{} that fits a 32-bit float", self.expected(feature)))
            }
            _ => Err(self.expected(feature)),
        }
    }

    /// The numbers whose text means "missing".
    pub(crate) fn missing_numbers(&self) -> Vec<f64> {
        let tokens = self.missing.tokens.iter().filter_map(|token| {
            let number = parse_number(token)?;
            (Value::Number(number).to_string() == *token).then_some(number)
        });
        tokens.collect()
    }

    /// The text of a cell for the value, which [`Schema::value_of_cell`] reads back. A missing
    /// value is an empty cell, unless the schema gives an empty cell another meaning.
    pub(crate) fn cell_of_value(&self, feature: &Feature, value: &Value) -> String {
        if *value != Value::Missing {
            return value.to_string();
        }
        let is_free = |text: &&str| {
            self.is_missing(text) && !feature.kind.levels().iter().any(|level| level.matches(text))
        };
        let tokens = self.missing.tokens.iter().map(String::as_str);
        std::iter::once("").chain(tokens).find(is_free).unwrap_or_default().to_owned()
    }

    /// The cells of a row, in the order of the features.
    pub(crate) fn cells_of_row<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = String> + 'a {
        let pairs = self.features.iter().zip(row.values());
        pairs.map(|(feature, value)| self.cell_of_value(feature, value))
    }

    /// The cells of a row, in the order of the features, with types.
    pub(crate) fn typed_cells_of_row<'a>(
        &'a self,
        row: &'a Row,
    ) -> impl Iterator<Item = Cell<'static>> + 'a {
        let pairs = self.features.iter().zip(row.values());
        pairs.map(|(feature, value)| match value {
            Value::Number(number) => Cell::Real(*number),
            Value::Text(text) => Cell::text(text.clone()),
            Value::Missing => Cell::text(self.cell_of_value(feature, value)),
        })
    }

    /// Whether the text means "missing".
    pub(crate) fn is_missing(&self, text: &str) -> bool {
        self.missing.tokens.iter().any(|token| token == text)
    }
}

/// Values in words: `a`, `b`, `c`; a long list is cut.
pub(crate) fn listed<T: ToString>(values: &[T]) -> String {
    const SHOWN: usize = 12;
    let mut words: Vec<String> =
        values.iter().take(SHOWN).map(|value| format!("`{}`", value.to_string())).collect();
    if values.len() > SHOWN {
        words.push(format!("and {} more", values.len() - SHOWN));
    }
    words.join(", ")
}
