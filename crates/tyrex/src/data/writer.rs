//! Tables written in batches.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use crate::data::cell::listed;
use crate::data::table::{Column, Content, Format, Table};
use crate::data::{csv, jsonl, parquet};
use crate::error::{Error, Result};
use crate::file::{Overwrite, WholeFile};

/// How the text of cells is written to CSV. Other formats have types and need no care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CellFormat {
    /// Unchanged.
    #[default]
    Exact,
    /// An apostrophe precedes text that a spreadsheet would run as a formula. Such a file is for
    /// people: a cell with an apostrophe is not the text that was written.
    SpreadsheetSafe,
}

impl CellFormat {
    /// The text of a cell or a column name. A formula starts with one of these characters, the last
    /// four in East Asian width; a number, such as -5, is not a formula.
    pub(super) fn written(self, cell: &str) -> Cow<'_, str> {
        const STARTS: [char; 11] =
            ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
        let is_number = || cell.parse::<f64>().is_ok_and(f64::is_finite);
        if self == Self::Exact || !cell.starts_with(STARTS) || is_number() {
            return Cow::Borrowed(cell);
        }
        Cow::Owned(format!("'{cell}"))
    }
}

/// A file written in batches of rows, which appears under its name, complete, at the end.
///
/// A writer that is dropped before [`finish`](Self::finish) leaves no file. A pipe or a device is
/// written to directly.
///
/// ```no_run
/// # use std::path::Path;
/// # use tyrex::Overwrite;
/// # use tyrex::data::{Content, Table, TableWriter};
/// # let batches: Vec<Table> = Vec::new();
/// let columns = [("row", Content::Integer), ("advice", Content::Text)];
/// let mut writer = TableWriter::create(Path::new("advice.jsonl"), Overwrite::Refuse, &columns)?;
/// for batch in batches {
///     writer.write(&batch)?;
/// }
/// writer.finish()?;
/// # Ok::<(), tyrex::Error>(())
/// ```
pub struct TableWriter {
    path: PathBuf,
    columns: Vec<(String, Content)>,
    rows: usize,
    sink: Box<dyn Sink + Send>,
}

impl TableWriter {
    /// Opens a file for writing; its name determines the format, as for [`Table::write`]. The
    /// columns come with their types, since some formats need them before all cells are known.
    pub fn create<N: AsRef<str>>(
        path: &Path,
        overwrite: Overwrite,
        columns: &[(N, Content)],
    ) -> Result<Self> {
        Self::create_with(path, overwrite, columns, CellFormat::Exact)
    }

    /// As [`create`](Self::create), with cells written in this way.
    pub fn create_with<N: AsRef<str>>(
        path: &Path,
        overwrite: Overwrite,
        columns: &[(N, Content)],
        cells: CellFormat,
    ) -> Result<Self> {
        let format = Format::of(path)?;
        // Refuses names that appear twice.
        Table::new(path, columns.iter().map(|(name, _)| Column::new(name.as_ref())).collect())?;
        let columns: Vec<(String, Content)> =
            columns.iter().map(|(name, content)| (name.as_ref().to_owned(), *content)).collect();
        let file = WholeFile::create(path, overwrite)?;
        let sink: io::Result<Box<dyn Sink + Send>> = match format {
            Format::Csv => csv::Writer::new(file, &columns, cells).map(|sink| Box::new(sink) as _),
            Format::JsonLines => jsonl::Writer::new(file, &columns).map(|sink| Box::new(sink) as _),
            Format::Parquet => parquet::Writer::new(file, &columns).map(|sink| Box::new(sink) as _),
        };
        let sink = sink.map_err(Error::io("write", path))?;
        Ok(Self { path: path.to_owned(), columns, rows: 0, sink })
    }

    /// Adds the rows of a table, which must have the columns of the file in their order, and cells
    /// that fit their content. The error names the row of the file that does not fit.
    pub fn write(&mut self, table: &Table) -> Result<()> {
        let names = table.columns().iter().map(Column::name);
        if !names.clone().eq(self.columns.iter().map(|(name, _)| name.as_str())) {
            let expected: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
            let problem = format!(
                "a batch has the columns {}, expected {}",
                listed(&names.collect::<Vec<_>>()),
                listed(&expected)
            );
            return Err(Error::Table { file: self.path.clone(), problem });
        }
        for (column, (name, content)) in table.columns().iter().zip(&self.columns) {
            if let Some(row) = column.cells().position(|cell| !content.fits(cell)) {
                return Err(Error::Cell {
                    file: self.path.clone(),
                    row: self.rows + row,
                    column: name.clone(),
                    value: column.cell(row).to_owned(),
                    expected: content.expected().to_owned(),
                });
            }
        }
        self.write_checked(table)
    }

    fn write_checked(&mut self, table: &Table) -> Result<()> {
        self.sink.write(table.columns()).map_err(Error::io("write", &self.path))?;
        self.rows += table.rows();
        Ok(())
    }

    /// Makes the file appear under its name.
    pub fn finish(self) -> Result<()> {
        self.sink.finish().map_err(Error::io("write", &self.path))?.finish()
    }
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, columns, rows, .. } = self;
        f.debug_struct("TableWriter")
            .field("path", path)
            .field("columns", columns)
            .field("rows", rows)
            .finish_non_exhaustive()
    }
}

/// A writer of a format.
pub(super) trait Sink {
    /// Adds rows; the cells fit the content of their columns.
    fn write(&mut self, columns: &[Column]) -> io::Result<()>;

    /// Writes the rest and returns the file.
    fn finish(self: Box<Self>) -> io::Result<WholeFile>;
}

/// Writes a whole table, with the types of its columns.
pub(super) fn write_whole(
    table: &Table,
    path: &Path,
    overwrite: Overwrite,
    cells: CellFormat,
) -> Result<()> {
    let content = match Format::of(path)? {
        // CSV has no types.
        Format::Csv => |_: &Column| Content::Text,
        Format::JsonLines | Format::Parquet => Content::of,
    };
    let columns: Vec<(&str, Content)> =
        table.columns().iter().map(|column| (column.name(), content(column))).collect();
    let mut writer = TableWriter::create_with(path, overwrite, &columns, cells)?;
    writer.write_checked(table)?;
    writer.finish()
}

#[cfg(test)]
mod tests;
