//! Comma-separated values: one header line, quotes where needed, UTF-8.

use std::io::{self, Write};
use std::path::Path;

use crate::data::limits::{Room, TableLimits};
use crate::data::table::{Column, Table};
use crate::error::{Error, Result};

/// Reads CSV.
pub(super) fn parse(source: &Path, bytes: &[u8], limits: TableLimits) -> Result<Table> {
    let wrong = |problem: String| Error::Table { file: source.to_owned(), problem };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        wrong(format!("line {line} is not UTF-8 text, expected a file saved as UTF-8"))
    })?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    if header.is_empty() {
        return Err(wrong("the file is empty, expected a header line".to_owned()));
    }
    if let Some(separator) = other_separator(&header) {
        return Err(wrong(format!(
            "the header is separated by {separator}, expected commas between columns"
        )));
    }
    let mut columns: Vec<Column> = header.iter().map(Column::new).collect();
    let mut record = csv::StringRecord::new();
    let mut room = Room::new(limits);
    let mut row = 0;
    while reader.read_record(&mut record).map_err(|error| wrong(error.to_string()))? {
        if record.len() != columns.len() {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(wrong(format!(
                "row {row} (line {line}) has {} cells, expected {}",
                record.len(),
                columns.len()
            )));
        }
        for (column, cell) in columns.iter_mut().zip(&record) {
            room.take(row, cell.len()).map_err(wrong)?;
            column.push(cell);
        }
        row += 1;
    }
    Table::new(source, columns)
}

/// A header of one column that holds another separator is a file with another separator.
fn other_separator(header: &csv::StringRecord) -> Option<&'static str> {
    let only = header.get(0).filter(|_| header.len() == 1)?;
    [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")]
        .into_iter()
        .find(|(separator, _)| only.contains(*separator))
        .map(|(_, name)| name)
}

/// Writes CSV, every cell with its own text.
pub(super) fn write(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(table.columns().iter().map(Column::name))?;
    for row in 0..table.rows() {
        writer.write_record(table.columns().iter().map(|column| column.cell(row)))?;
    }
    writer.flush()
}
