//! Tables to write, line by line.

use crate::data::{Column, Table};
use crate::error::Result;

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
