//! A table as in a file: named columns of text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use prost::bytes::Bytes;

use crate::data::cell::listed;
use crate::data::limits::{TableLimits, check_columns};
use crate::data::value::nearest_name;
use crate::data::writer::CellFormat;
use crate::data::{csv, jsonl, parquet, reader, writer};
use crate::error::{Error, Result, shortened};
use crate::file::{Overwrite, check_writable};

/// Named columns of text, with the file they came from.
///
/// Every cell keeps the text of the file, so that it can be written back unchanged. An empty cell
/// means "no value": `null` in JSON lines and Parquet.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    source: PathBuf,
    columns: Vec<Column>,
    rows: usize,
    /// The number of the first row, if the table is a batch of a file; `None` if it is the whole
    /// table.
    batch: Option<usize>,
}

/// One column: its name, and its cells end to end in one string.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    name: String,
    /// The name in the header, if another column has it too.
    repeats: Option<String>,
    text: String,
    ends: Vec<usize>,
}

impl Column {
    /// A column without cells.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Columns without cells for the names of a header. The second column with the name `a` is
    /// called `a.2`.
    pub(super) fn of_header<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<Self> {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let written: BTreeSet<&str> = names.clone().collect();
        // The next number of each name that is repeated.
        let mut next: BTreeMap<&str, usize> = BTreeMap::new();
        let column = |name: &'a str| {
            if taken.insert(name.to_owned()) {
                return Self::new(name);
            }
            let number = next.entry(name).or_insert(2);
            let own = loop {
                let own = format!("{name}.{number}");
                *number += 1;
                if !written.contains(&*own) && taken.insert(own.clone()) {
                    break own;
                }
            };
            Self { repeats: Some(name.to_owned()), ..Self::new(own) }
        };
        names.map(column).collect()
    }

    /// The name of this column in the header, if an earlier column has it too. This one has a
    /// [`name`](Self::name) of its own.
    pub fn repeats(&self) -> Option<&str> {
        self.repeats.as_deref()
    }

    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a cell at the end.
    pub fn push(&mut self, cell: &str) {
        self.text.push_str(cell);
        self.ends.push(self.text.len());
    }

    /// Adds a cell at the end, formatted with `Display`.
    pub fn push_display(&mut self, cell: impl std::fmt::Display) {
        use std::fmt::Write as _;
        // Writing to a string does not fail.
        let _ = write!(self.text, "{cell}");
        self.ends.push(self.text.len());
    }

    /// Adds the cells of another column at the end.
    pub(crate) fn append(&mut self, other: &Self) {
        let start = self.text.len();
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    /// Removes all cells.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// The bytes of all cells.
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// One cell, counted from the first of this column.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn cell(&self, row: usize) -> &str {
        let start = row.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        &self.text[start..self.ends[row]]
    }

    /// All cells in order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|row| self.cell(row))
    }
}

impl Table {
    /// A table from its columns; the names must be distinct and the lengths equal.
    pub fn new(source: impl Into<PathBuf>, columns: Vec<Column>) -> Result<Self> {
        let source = source.into();
        check_columns(columns.len())
            .map_err(|problem| Error::Table { file: source.clone(), problem })?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = columns.iter().find(|column| !seen.insert(column.name.as_str())) {
            let problem = format!("column `{}` appears twice in the header", twice.name);
            return Err(Error::Table { file: source, problem });
        }
        let rows = columns.first().map_or(0, Column::len);
        if let Some(other) = columns.iter().find(|column| column.len() != rows) {
            return Err(Error::Dimension {
                what: format!("cells of column `{}`", other.name),
                expected: rows,
                got: other.len(),
            });
        }
        Ok(Self { source, columns, rows, batch: None })
    }

    /// The same as a batch of a file: row `first_row` of the file is the first of the table.
    pub(super) fn batch(source: &Path, columns: Vec<Column>, first_row: usize) -> Result<Self> {
        Ok(Self { batch: Some(first_row), ..Self::new(source, columns)? })
    }

    /// Reads a file; its name determines the format: `.csv`, `.jsonl`, `.ndjson` or `.parquet`. Its
    /// size is limited by the default [`TableLimits`]; [`TableReader`](crate::data::TableReader)
    /// reads a file of any length in batches.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_within(path, TableLimits::default())
    }

    /// Reads a file within these limits, which are enforced during decoding.
    pub fn read_within(path: &Path, limits: TableLimits) -> Result<Self> {
        reader::whole(path, &mut *reader::open(path, None)?, limits)
    }

    /// Reads a file that is in memory already; the name of `source` determines the format and is
    /// the file name in errors.
    pub fn from_bytes(source: &Path, bytes: Vec<u8>) -> Result<Self> {
        Self::from_bytes_within(source, bytes, TableLimits::default())
    }

    /// Reads a file that is in memory already, within these limits.
    pub fn from_bytes_within(source: &Path, bytes: Vec<u8>, limits: TableLimits) -> Result<Self> {
        match Format::of(source)? {
            Format::Csv => {
                reader::whole(source, &mut csv::Reader::new(source, &*bytes, None)?, limits)
            }
            Format::JsonLines => {
                reader::whole(source, &mut jsonl::Reader::new(source, &*bytes, None), limits)
            }
            Format::Parquet => {
                let bytes = Bytes::from(bytes);
                reader::whole(source, &mut parquet::Reader::new(source, bytes)?, limits)
            }
        }
    }

    /// Reads CSV that is already in memory; errors name `source` as the file.
    pub fn from_csv(source: &Path, bytes: &[u8]) -> Result<Self> {
        let mut csv = csv::Reader::new(source, bytes, None)?;
        reader::whole(source, &mut csv, TableLimits::default())
    }

    /// Writes a file; its name determines the format. [`TableWriter`](crate::data::TableWriter)
    /// writes it in batches.
    pub fn write(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        self.write_with(path, overwrite, CellFormat::Exact)
    }

    /// As [`write`](Self::write), with cells written in this way.
    pub fn write_with(&self, path: &Path, overwrite: Overwrite, cells: CellFormat) -> Result<()> {
        writer::write_whole(self, path, overwrite, cells)
    }

    /// Checks whether [`write`](Self::write) would fail now. Call this before long work whose
    /// result is written at the end.
    pub fn check_writable(path: &Path, overwrite: Overwrite) -> Result<()> {
        Format::of(path)?;
        check_writable(path, overwrite)
    }

    /// The file the table came from.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column of that name; the error lists the existing columns.
    pub fn column(&self, name: &str) -> Result<&Column> {
        if let Some(column) = self.columns.iter().find(|column| column.name == name) {
            return Ok(column);
        }
        let names: Vec<&str> = self.columns.iter().map(Column::name).collect();
        let suggestion = nearest_name(name, names.iter().copied())
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        Err(Error::Table {
            file: self.source.clone(),
            problem: format!("no column `{name}`; the file has {}{suggestion}", listed(&names)),
        })
    }

    /// The numbers of the rows in the file: from 0, unless the table is a batch.
    pub fn row_numbers(&self) -> Range<usize> {
        let first = self.batch.unwrap_or(0);
        first..first + self.rows
    }

    /// Whether this is the whole table, and not a batch of a file.
    pub(crate) fn is_whole(&self) -> bool {
        self.batch.is_none()
    }

    /// The cell of a column of this table in a row of the file, one of
    /// [`row_numbers`](Self::row_numbers).
    ///
    /// # Panics
    /// If there is no such row.
    pub fn cell<'a>(&self, row: usize, column: &'a Column) -> &'a str {
        column.cell(row - self.batch.unwrap_or(0))
    }

    /// An [`Error::Cell`] about one cell, in a row of the file.
    pub(crate) fn cell_error(&self, row: usize, column: &Column, expected: String) -> Error {
        Error::Cell {
            file: self.source.clone(),
            row,
            column: column.name.clone(),
            value: shortened(self.cell(row, column)),
            expected,
        }
    }
}

/// The formats, by the end of the file name.
pub(super) enum Format {
    Csv,
    JsonLines,
    Parquet,
}

impl Format {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson") => Ok(Self::JsonLines),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Error::Table {
                file: path.to_owned(),
                problem: "unknown format, expected a file name that ends in .csv, .jsonl, .ndjson \
                          or .parquet"
                    .to_owned(),
            }),
        }
    }
}

/// The type of a column's cells, for formats with types. Empty cells are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// `true` and `false`.
    Boolean,
    /// Whole numbers of 64 bits.
    Integer,
    /// Numbers as JSON writes them.
    Real,
    /// Anything else, and columns without cells.
    Text,
}

impl Content {
    /// The type of the column's cells.
    pub fn of(column: &Column) -> Self {
        if column.cells().all(str::is_empty) {
            return Self::Text;
        }
        [Self::Boolean, Self::Integer, Self::Real]
            .into_iter()
            .find(|content| column.cells().all(|cell| content.fits(cell)))
            .unwrap_or(Self::Text)
    }

    /// Whether a cell fits a column of this content. An empty cell fits any.
    pub(crate) fn fits(self, cell: &str) -> bool {
        match self {
            _ if cell.is_empty() => true,
            Self::Boolean => cell == "true" || cell == "false",
            Self::Integer => is_integer(cell),
            Self::Real => is_json_number(cell),
            Self::Text => true,
        }
    }

    /// The type in words.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Boolean => "`true` or `false`",
            Self::Integer => "a whole number of 64 bits",
            Self::Real => "a number such as 12, -0.5 or 1e3",
            Self::Text => "text",
        }
    }
}

/// A whole number whose text comes back unchanged: no leading zero, no plus sign.
fn is_integer(cell: &str) -> bool {
    cell.parse::<i64>().is_ok_and(|number| number.to_string() == cell)
}

fn is_json_number(cell: &str) -> bool {
    cell.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && cell.ends_with(|last: char| last.is_ascii_digit())
        && serde_json::from_str::<f64>(cell).is_ok()
}
