//! Reads arbitrary bytes as a table, drafts a schema for it, and reads its rows.

use std::path::Path;

use tyrex::data::{Dataset, Hints, Schema, Table, TableLimits};

/// Small, so that an input whose size is refused costs little.
const LIMITS: TableLimits = TableLimits { rows: 10_000, cells: 50_000, text: 1 << 20 };

pub fn csv(data: &[u8]) {
    read("rows.csv", data);
}

pub fn json_lines(data: &[u8]) {
    read("rows.jsonl", data);
}

pub fn parquet(data: &[u8]) {
    read("rows.parquet", data);
}

fn read(name: &str, data: &[u8]) {
    let table = Table::from_bytes_within(Path::new(name), data.to_vec(), LIMITS);
    let Ok(table) = table else { return };
    let Some(label) = table.columns().last().map(|column| column.name().to_owned()) else { return };
    let Ok(draft) = Schema::draft(&table, Some(&label), &[], &Hints::default()) else { return };
    draft.to_toml().expect("a schema has a text");
    let _ = Dataset::load(&draft.schema, table);
}
