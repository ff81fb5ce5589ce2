//! Rows as JSON objects: values by the name of their feature.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use tyrex::data::{Column, FeatureValue, Schema, Table};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Ref, Schema as ApiSchema};
use utoipa::{PartialSchema, ToSchema};

use super::{is_known, unknown};
use crate::problem::Problem;

/// Rows as sent: the names and texts of all values, concatenated.
///
/// The memory is proportional to the size of the body, for any number of rows or cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JsonRows {
    text: String,
    /// For each cell the end of its name and the end of its value.
    cells: Vec<(u32, u32)>,
    /// For each row the end of its cells.
    rows: Vec<u32>,
}

impl JsonRows {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Names and values, row by row.
    fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (&str, &str)>> {
        let (mut first, mut start) = (0, 0);
        self.rows.iter().map(move |&end| {
            let cells = &self.cells[first as usize..end as usize];
            first = end;
            let mut from = start;
            start = cells.last().map_or(start, |&(_, value)| value as usize);
            cells.iter().map(move |&(name, value)| {
                let (name, value) = (name as usize, value as usize);
                let cell = (&self.text[from..name], &self.text[name..value]);
                from = value;
                cell
            })
        })
    }

    /// The rows as a table with the columns of the schema, and the label if it is given.
    pub(super) fn table(&self, schema: &Schema) -> Result<Table, Problem> {
        let mut names: Vec<&str> =
            schema.features.iter().map(|feature| feature.name.as_str()).collect();
        let own = names.len();
        let label = schema.label.column.as_str();
        let is_labelled = || self.rows().flatten().any(|(name, _)| name == label);
        if schema.position(label).is_none() && is_labelled() {
            names.push(label);
        }
        let mut columns: Vec<Column> = names.iter().copied().map(Column::new).collect();
        let mut filled = vec![false; columns.len()];
        for (place, row) in self.rows().enumerate() {
            filled.fill(false);
            let mut next = 0;
            for (name, cell) in row {
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
        columns.iter_mut().for_each(|column| pad(column, self.len()));
        Ok(Table::new("rows", columns)?)
    }
}

/// Adds empty cells up to a row.
fn pad(column: &mut Column, rows: usize) {
    while column.len() < rows {
        column.push("");
    }
}

impl<'de> Deserialize<'de> for JsonRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = JsonRows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rows")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<JsonRows, S::Error> {
                let mut rows = JsonRows::default();
                while list.next_element_seed(Row(&mut rows))?.is_some() {}
                Ok(rows)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Adds a row to others.
struct Row<'a>(&'a mut JsonRows);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the values of a row by the names of their features")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let JsonRows { text, cells, rows } = self.0;
        let place = |length: usize| {
            u32::try_from(length).map_err(|_| M::Error::custom("expected less than 4 GiB of rows"))
        };
        while map.next_key_seed(Text(text))?.is_some() {
            let name = place(text.len())?;
            map.next_value_seed(Text(text))?;
            cells.push((name, place(text.len())?));
        }
        rows.push(place(cells.len())?);
        Ok(())
    }
}

/// Appends a value as the text of a cell.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> JsonRows {
        serde_json::from_str(text).expect("rows")
    }

    #[test]
    fn cells_come_out_as_they_went_in() {
        let text =
            json!([{"a": 1, "b": "x y"}, {}, {"": "", "\u{e9}\n": true, "c": null}, {"d": -0.0}]);
        let rows = read(&text.to_string());
        let cells: Vec<Vec<_>> = rows.rows().map(Iterator::collect).collect();
        let expected: [&[_]; 4] = [
            &[("a", "1"), ("b", "x y")],
            &[],
            &[("", ""), ("c", ""), ("\u{e9}\n", "true")],
            &[("d", "0")],
        ];
        assert_eq!(rows.len(), 4);
        assert_eq!(cells, expected);
    }

    #[test]
    fn what_rows_take_is_in_proportion_to_their_text() {
        for row in ["{}", "{\"\":0}", "{\"\":0,\"\":0,\"\":\"\"}"] {
            let text = format!("[{}]", vec![row; 10_000].join(","));
            let JsonRows { text: own, cells, rows } = read(&text);
            let taken = own.capacity() + 8 * cells.capacity() + 4 * rows.capacity();
            assert!(taken <= 4 * text.len(), "{taken} bytes for {} of {row}", text.len());
        }
    }
}
