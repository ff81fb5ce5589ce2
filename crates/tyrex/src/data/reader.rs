//! Tables read in batches.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::data::limits::{TableLimits, TableMeter};
use crate::data::table::{Column, Format, Table};
use crate::data::{csv, jsonl, parquet};
use crate::error::{Error, Result};

/// A file read in batches of rows, each a [`Table`] whose rows have their numbers in the file.
///
/// Memory is proportional to a batch, not to the file, and the reader does not read beyond a batch
/// by more than a buffer. The first batch has the columns even if there are no rows; no other batch
/// is empty. After an error there are no more batches.
///
/// ```no_run
/// # use std::path::Path;
/// # use tyrex::data::TableReader;
/// for batch in TableReader::open(Path::new("applicants.csv"), 1024)? {
///     println!("rows {:?}", batch?.row_numbers());
/// }
/// # Ok::<(), tyrex::Error>(())
/// ```
pub struct TableReader {
    source: PathBuf,
    batches: Box<dyn Batches + Send>,
    /// The columns to read, if not all.
    columns: Option<Vec<String>>,
    batch_rows: usize,
    /// The rows that were read.
    rows: usize,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Opened,
    Begun,
    Ended,
}

impl TableReader {
    /// Opens a file; its name determines the format, as for [`Table::read`]. Batches have at most
    /// `batch_rows` rows, and 0 counts as 1.
    pub fn open(path: &Path, batch_rows: usize) -> Result<Self> {
        Self::open_with(path, batch_rows, None)
    }

    /// The same, to read only these columns, of those that the file has. The others may hold what a
    /// table cannot.
    pub fn open_columns(path: &Path, batch_rows: usize, columns: &[&str]) -> Result<Self> {
        Self::open_with(path, batch_rows, Some(columns))
    }

    fn open_with(path: &Path, batch_rows: usize, columns: Option<&[&str]>) -> Result<Self> {
        Ok(Self {
            source: path.to_owned(),
            batches: open(path, columns)?,
            columns: columns.map(|names| names.iter().map(ToString::to_string).collect()),
            batch_rows: batch_rows.max(1),
            rows: 0,
            state: State::Opened,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.source
    }

    /// The number of rows, if the file says it at its start or end.
    pub fn declared_rows(&self) -> Option<u64> {
        self.batches.declared().map(|(rows, _)| rows as u64)
    }

    /// The share of the file read so far, 0 to 1; `None` for a pipe.
    pub fn progress(&self) -> Option<f64> {
        self.batches.progress()
    }

    fn read(&mut self) -> Result<Option<Table>> {
        // Memory is bounded by the batch, however long the file is.
        let mut meter = TableMeter::new(TableLimits::default());
        let (rows, mut columns) = self.batches.read(self.rows, self.batch_rows, &mut meter)?;
        if let Some(wanted) = &self.columns {
            columns.retain(|own| {
                wanted.iter().any(|name| name == own.repeats().unwrap_or(own.name()))
            });
        }
        if rows == 0 && self.state != State::Opened {
            return Ok(None);
        }
        let table = Table::batch(&self.source, columns, self.rows)?;
        self.rows += rows;
        Ok(Some(table))
    }
}

impl Iterator for TableReader {
    type Item = Result<Table>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Ended {
            return None;
        }
        let batch = self.read().transpose();
        self.state = if matches!(batch, Some(Ok(_))) { State::Begun } else { State::Ended };
        batch
    }
}

impl std::iter::FusedIterator for TableReader {}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { source, batch_rows, rows, .. } = self;
        f.debug_struct("TableReader")
            .field("source", source)
            .field("batch_rows", batch_rows)
            .field("rows", rows)
            .finish_non_exhaustive()
    }
}

/// A reader of a format.
pub(super) trait Batches {
    /// Reads the next rows, at most `limit` and fewer only at the end: how many they are, and the
    /// columns. `first_row` is the number of rows read before, for errors. All cells have to fit
    /// the remaining size.
    fn read(
        &mut self,
        first_row: usize,
        limit: usize,
        meter: &mut TableMeter,
    ) -> Result<(usize, Vec<Column>)>;

    /// The declared numbers of rows and columns, if the file declares them.
    fn declared(&self) -> Option<(usize, usize)> {
        None
    }

    /// The share read so far, 0 to 1; `None` if the size is unknown.
    fn progress(&self) -> Option<f64>;
}

/// Opens a file for reading. A format in which columns are apart reads only those that are wanted.
pub(super) fn open(path: &Path, wanted: Option<&[&str]>) -> Result<Box<dyn Batches + Send>> {
    let format = Format::of(path)?;
    let file = File::open(path).map_err(Error::io("read", path))?;
    let found = file.metadata().map_err(Error::io("read", path))?;
    let size = found.is_file().then_some(found.len());
    Ok(match format {
        Format::Csv => Box::new(csv::Reader::new(path, file, size)?),
        Format::JsonLines => Box::new(jsonl::Reader::new(path, file, size)),
        Format::Parquet => Box::new(parquet::Reader::of_columns(path, file, wanted)?),
    })
}

/// All rows in one table.
pub(super) fn whole(
    source: &Path,
    batches: &mut dyn Batches,
    limits: TableLimits,
) -> Result<Table> {
    let wrong = |problem| Error::Table { file: source.to_owned(), problem };
    // A few bytes can hold any number of equal rows.
    if let Some((rows, columns)) = batches.declared() {
        limits.check(rows, columns).map_err(wrong)?;
    }
    let (_, columns) = batches.read(0, usize::MAX, &mut TableMeter::new(limits))?;
    Table::new(source, columns)
}

#[cfg(test)]
mod tests;
