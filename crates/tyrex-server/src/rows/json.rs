//! Rows as JSON objects: values by the name of their feature.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use tyrex::data::{Column, FeatureValue, Schema, Table};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Ref, Schema as ApiSchema};
use utoipa::{PartialSchema, ToSchema};

use super::{is_known, unknown};
use crate::problem::Problem;

/// Rows as they are sent: for each the names and the texts of its values.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct JsonRows(Vec<JsonRow>);

/// One text for all of them: a row costs few allocations, however many features it has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JsonRow {
    text: String,
    /// For each cell where its name ends, and where its value does.
    ends: Vec<(usize, usize)>,
}

impl JsonRow {
    /// Names and values.
    fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(name, value)| {
            let cell = (&self.text[start..name], &self.text[name..value]);
            start = value;
            cell
        })
    }
}

impl JsonRows {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The rows as a table with the columns of the schema, and the label where it is given.
    pub(super) fn table(self, schema: &Schema) -> Result<Table, Problem> {
        let mut names: Vec<&str> =
            schema.features.iter().map(|feature| feature.name.as_str()).collect();
        let own = names.len();
        let labelled = |row: &JsonRow| row.cells().any(|(name, _)| name == schema.label.column);
        if schema.position(&schema.label.column).is_none() && self.0.iter().any(labelled) {
            names.push(&schema.label.column);
        }
        let mut columns: Vec<Column> = names.iter().copied().map(Column::new).collect();
        for (place, row) in self.0.iter().enumerate() {
            let mut filled = vec![false; columns.len()];
            let mut next = 0;
            for (name, cell) in row.cells() {
                // Most clients send the features in their order.
                let column = match names.get(next) {
                    Some(own) if *own == name => Some(next),
                    _ => names.iter().position(|own| *own == name),
                };
                match column {
                    Some(column) if filled[column] => {
                        let field = format!("rows[{place}].{name}");
                        return Err(Problem::field(field, "found twice, expected once"));
                    }
                    Some(column) => {
                        filled[column] = true;
                        pad(&mut columns[column], place);
                        columns[column].push(cell);
                        next = column + 1;
                    }
                    None if is_known(schema, name) => {}
                    None => return Err(unknown(schema, name).at(format!("rows[{place}].{name}"))),
                }
            }
            if let Some(column) = filled.iter().take(own).position(|filled| !filled) {
                let feature = &schema.features[column];
                let problem = format!("missing, expected {}", schema.expected(feature));
                return Err(Problem::field(format!("rows[{place}].{}", feature.name), problem));
            }
        }
        columns.iter_mut().for_each(|column| pad(column, self.0.len()));
        Ok(Table::new("rows", columns)?)
    }
}

/// Adds empty cells up to a row.
fn pad(column: &mut Column, rows: usize) {
    while column.len() < rows {
        column.push("");
    }
}

impl<'de> Deserialize<'de> for JsonRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Cells;
        impl<'de> Visitor<'de> for Cells {
            type Value = JsonRow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the values of a row by the names of their features")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<JsonRow, M::Error> {
                let mut row = JsonRow { text: String::with_capacity(512), ends: Vec::new() };
                while map.next_key_seed(Text(&mut row.text))?.is_some() {
                    let name = row.text.len();
                    map.next_value_seed(Text(&mut row.text))?;
                    row.ends.push((name, row.text.len()));
                }
                Ok(row)
            }
        }
        deserializer.deserialize_map(Cells)
    }
}

/// Writes a value, as the text of a cell, behind other text.
struct Text<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Text<'_> {
    fn add<E: Error>(self, value: impl fmt::Display) -> Result<(), E> {
        write!(self.0, "{value}").map_err(E::custom)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, true, false or null")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        self.add(flag)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.add(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.add(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // Adding zero turns -0 into 0.
        self.add(number + 0.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push_str(text);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

impl PartialSchema for JsonRows {
    fn schema() -> RefOr<ApiSchema> {
        let row = ObjectBuilder::new()
            .additional_properties(Some(Ref::from_schema_name(FeatureValue::name())))
            .description(Some("A row: values by the name of their feature."));
        ArrayBuilder::new().items(row).min_items(Some(1)).into()
    }
}

impl ToSchema for JsonRows {
    fn name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<ApiSchema>)>) {
        schemas.push((FeatureValue::name().into_owned(), FeatureValue::schema()));
    }
}
