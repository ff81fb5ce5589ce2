//! Rows as JSON objects: values by the name of their feature.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
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

#[derive(Debug, Clone, PartialEq, Eq)]
struct JsonRow(Vec<(String, String)>);

impl JsonRows {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The rows as a table with the columns of the schema, and the label where it is given.
    pub(super) fn table(self, schema: &Schema) -> Result<Table, Problem> {
        let mut names: Vec<&str> =
            schema.features.iter().map(|feature| feature.name.as_str()).collect();
        let own = names.len();
        let labelled =
            |JsonRow(cells): &JsonRow| cells.iter().any(|(name, _)| *name == schema.label.column);
        if schema.position(&schema.label.column).is_none() && self.0.iter().any(labelled) {
            names.push(&schema.label.column);
        }
        let mut columns: Vec<Column> = names.iter().copied().map(Column::new).collect();
        for (place, JsonRow(cells)) in self.0.iter().enumerate() {
            let mut filled = vec![false; columns.len()];
            let mut next = 0;
            for (name, cell) in cells {
                // Most clients send the features in their order.
                let column = match names.get(next) {
                    Some(own) if own == name => Some(next),
                    _ => names.iter().position(|own| own == name),
                };
                match column {
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
                let mut cells: Vec<(String, String)> =
                    Vec::with_capacity(map.size_hint().unwrap_or(32).min(256));
                while let Some(name) = map.next_key::<String>()? {
                    let Cell(cell) = map.next_value()?;
                    cells.push((name, cell));
                }
                let mut names: Vec<&str> = cells.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                if let Some([twice, _]) = names.array_windows().find(|[a, b]| a == b) {
                    return Err(M::Error::custom(format!("`{twice}` is there twice")));
                }
                Ok(JsonRow(cells))
            }
        }
        deserializer.deserialize_map(Cells)
    }
}

/// One value as the text of a cell.
struct Cell(String);

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Cell;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a text, true, false or null")
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Cell, E> {
                Ok(Cell(flag.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Cell, E> {
                Ok(Cell(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Cell, E> {
                Ok(Cell(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Cell, E> {
                // Adding zero turns -0 into 0.
                Ok(Cell((number + 0.0).to_string()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Cell, E> {
                Ok(Cell(text.to_owned()))
            }

            fn visit_unit<E>(self) -> Result<Cell, E> {
                Ok(Cell(String::new()))
            }
        }
        deserializer.deserialize_any(Any)
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
