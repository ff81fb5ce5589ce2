//! A small table and its schema, for targets that need rows.

use std::path::Path;

use tyrex::data::Table;

pub const ROWS: &str = include_str!("../seeds/csv/loans.csv");
pub const SCHEMA: &str = include_str!("../seeds/schema/loans.toml");

pub fn table() -> Table {
    Table::from_csv(Path::new("loans.csv"), ROWS.as_bytes()).expect("a table")
}
