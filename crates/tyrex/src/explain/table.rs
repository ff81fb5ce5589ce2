//! Tables to write, line by line.

use crate::data::{Column, Schema, Table};
use crate::error::{Error, Result};

/// A table of these columns, from lines with a cell for each.
pub(super) fn table(
    title: &str,
    names: &[&str],
    lines: impl IntoIterator<Item = Vec<String>>,
) -> Result<Table> {
    let mut columns: Vec<Column> = names.iter().copied().map(Column::new).collect();
    for line in lines {
        for (column, cell) in columns.iter_mut().zip(&line) {
            column.push(cell);
        }
    }
    Table::new(title, columns)
}

/// Checks that no feature has the name of one of a table's own columns.
pub(super) fn check_names<'a>(
    schema: &Schema,
    mut own: impl Iterator<Item = &'a str>,
) -> Result<()> {
    match own.find(|name| schema.position(name).is_some()) {
        None => Ok(()),
        Some(name) => Err(Error::feature(
            name,
            "the output file has a column of this name; rename the feature",
        )),
    }
}
