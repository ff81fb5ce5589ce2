//! Comma-separated values: one header line, quotes where needed, UTF-8.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::data::input::{Input, Utf8};
use crate::data::limits::{MOST_ROW, TableMeter, check_columns, long_row};
use crate::data::reader::Batches;
use crate::data::table::{Column, Content, Table};
use crate::data::writer::{CellFormat, Sink};
use crate::error::{Error, Result};
use crate::file::WholeFile;

/// A record that follows the last one. A quote that is never closed swallows it.
const END: &str = "\u{4}end of file\u{4}";

/// The length of a byte order mark.
const BYTE_ORDER_MARK: u64 = 3;

/// A text, followed by [`END`].
struct Ended<R> {
    text: R,
    /// Bytes of the text read so far, and those before the record that is read now.
    read: u64,
    before: u64,
    /// Bytes of the end, with the line break before it, that are still to be read; `None` within
    /// the text.
    rest: Option<Vec<u8>>,
}

impl<R: Read> Read for Ended<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_none() {
            let count = self.text.read(out)?;
            self.read += count as u64;
            if self.read - self.before > MOST_ROW {
                return Err(long_row());
            }
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
        }
        let rest = self.rest.get_or_insert_with(|| format!("\n{END}").into_bytes());
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        rest.drain(..count);
        Ok(count)
    }
}

/// Reads CSV.
pub(super) struct Reader<R> {
    source: PathBuf,
    records: csv::Reader<Ended<Utf8<Input<R>>>>,
    /// The columns, without cells.
    header: Vec<Column>,
}

impl<R: Read> Reader<R> {
    /// Reads the header. `size` is the total number of bytes, if known.
    pub(super) fn new(source: &Path, bytes: R, size: Option<u64>) -> Result<Self> {
        let mut records =
            csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 16).from_reader(Ended {
                text: Utf8::new(Input::new(bytes, size)),
                read: 0,
                before: 0,
                rest: None,
            });
        let wrong = |problem: String| Error::Table { file: source.to_owned(), problem };
        let header = match records.headers() {
            Ok(header) => header.clone(),
            Err(error) => return Err(broken(source, &records.get_ref().text, error)),
        };
        if header.iter().next_back().is_some_and(|cell| cell != END && cell.ends_with(END)) {
            return Err(wrong("a quote in the header line is never closed".to_owned()));
        }
        if header.is_empty() || header.iter().eq([END]) {
            return Err(wrong("the file is empty, expected a header line".to_owned()));
        }
        if let Some(separator) = other_separator(&header) {
            return Err(wrong(format!(
                "the header is separated by {separator}, expected commas between columns"
            )));
        }
        check_columns(header.len()).map_err(wrong)?;
        Ok(Self { source: source.to_owned(), records, header: Column::of_header(header.iter()) })
    }
}

impl<R: Read> Reader<R> {
    /// Whether a record is the end, and not a row of the file that looks like it.
    fn is_end(&self, record: &csv::StringRecord) -> bool {
        let Ended { read, rest, .. } = self.records.get_ref();
        // The reader does not count a byte order mark, which is shorter than the end.
        let at = record.position().map_or(0, csv::Position::byte) + BYTE_ORDER_MARK;
        rest.is_some() && at >= *read && record.iter().eq([END])
    }

    /// Whether the last record went on to the end of the input, beyond the text.
    fn swallows_end(&self) -> bool {
        let Ended { read, rest, .. } = self.records.get_ref();
        let next = self.records.position().byte() + BYTE_ORDER_MARK;
        rest.is_some() && next >= read + END.len() as u64
    }
}

impl<R: Read> Batches for Reader<R> {
    fn read(
        &mut self,
        first_row: usize,
        limit: usize,
        meter: &mut TableMeter,
    ) -> Result<(usize, Vec<Column>)> {
        let mut columns = self.header.clone();
        let mut record = csv::StringRecord::new();
        let mut rows = 0;
        while rows < limit {
            let input = self.records.get_mut();
            input.before = input.read;
            match self.records.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    return Err(broken(&self.source, &self.records.get_ref().text, error));
                }
            }
            if self.is_end(&record) {
                break;
            }
            if self.swallows_end() {
                let line = record.position().map_or(0, csv::Position::line);
                let problem = format!(
                    "row {} (line {line}) has a quote that is never closed, so the rest of the \
                     file would be one cell; expected a closing quote",
                    first_row + rows
                );
                return Err(Error::Table { file: self.source.clone(), problem });
            }
            if record.len() != columns.len() {
                let line = record.position().map_or(0, csv::Position::line);
                let problem = format!(
                    "row {} (line {line}) has {} cells, expected {}",
                    first_row + rows,
                    record.len(),
                    columns.len()
                );
                return Err(Error::Table { file: self.source.clone(), problem });
            }
            for (column, cell) in columns.iter_mut().zip(&record) {
                meter
                    .take(rows, cell.len())
                    .map_err(|problem| Error::Table { file: self.source.clone(), problem })?;
                column.push(cell);
            }
            rows += 1;
        }
        Ok((rows, columns))
    }

    fn progress(&self) -> Option<f64> {
        self.records.get_ref().text.input().progress()
    }
}

/// The error for a record that could not be read.
fn broken<R>(source: &Path, text: &Utf8<Input<R>>, error: csv::Error) -> Error {
    let problem = match text.bad_line() {
        Some(line) => format!("line {line} is not UTF-8 text, expected a file saved as UTF-8"),
        None => error.to_string(),
    };
    match error.into_kind() {
        csv::ErrorKind::Io(error) if text.bad_line().is_none() => Error::io("read", source)(error),
        _ => Error::Table { file: source.to_owned(), problem },
    }
}

/// Detects another separator: a header of one column that contains one.
fn other_separator(header: &csv::StringRecord) -> Option<&'static str> {
    let only = header.get(0).filter(|_| header.len() == 1)?;
    [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")]
        .into_iter()
        .find(|(separator, _)| only.contains(*separator))
        .map(|(_, name)| name)
}

impl Table {
    /// The table as CSV. [`from_csv`](Self::from_csv) reads the same cells.
    pub fn to_csv(&self) -> Vec<u8> {
        let mut records = csv::Writer::from_writer(Vec::new());
        let header = self.columns().iter().map(Column::name);
        // Writing to memory does not fail, and every record has the same length.
        let _ = records.write_record(header);
        for row in 0..self.rows() {
            let _ = records.write_record(self.columns().iter().map(|column| column.cell(row)));
        }
        records.into_inner().unwrap_or_default()
    }
}

/// Writes CSV.
pub(super) struct Writer {
    records: csv::Writer<WholeFile>,
    cells: CellFormat,
}

impl Writer {
    /// Writes the header.
    pub(super) fn new(
        file: WholeFile,
        columns: &[(String, Content)],
        cells: CellFormat,
    ) -> io::Result<Self> {
        let mut records = csv::Writer::from_writer(file);
        for (name, _) in columns {
            records.write_field(&*cells.written(name))?;
        }
        records.write_record(None::<&[u8]>)?;
        Ok(Self { records, cells })
    }
}

impl Sink for Writer {
    fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        for row in 0..columns.first().map_or(0, Column::len) {
            for column in columns {
                self.records.write_field(&*self.cells.written(column.cell(row)))?;
            }
            self.records.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<WholeFile> {
        self.records.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}
