//! Parquet: flat columns of numbers, text and booleans, as pandas, pyarrow and polars write them.
//!
//! The column interface of the `parquet` crate is sufficient for that; the arrow interface would
//! only add dependencies.

mod footer;
mod pages;
mod thrift;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{ReaderProperties, WriterProperties};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescriptor, Type};

use self::pages::Shared;
use crate::data::input::share;
use crate::data::limits::{TableMeter, check_columns};
use crate::data::reader::Batches;
use crate::data::table::{Column, Content};
use crate::data::writer::Sink;
use crate::error::{Error, Result};
use crate::file::WholeFile;

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// The minimum number of rows of a row group, except the last.
const GROUP: usize = 16_384;

/// Reads Parquet. Numbers become their shortest text, a null an empty cell.
pub(super) struct Reader<R: ChunkReader> {
    source: PathBuf,
    content: Shared<R>,
    file: SerializedFileReader<Shared<R>>,
    /// The columns that are read, without cells.
    header: Vec<Column>,
    /// The number of each in the file.
    numbers: Vec<usize>,
    next_group: usize,
    group: Group,
    /// The rows that were read.
    rows: u64,
}

/// A row group that is being read.
#[derive(Default)]
struct Group {
    columns: Vec<ColumnReader>,
    rows: usize,
    read: usize,
}

impl<R: ChunkReader + 'static> Reader<R> {
    /// Reads the schema.
    pub(super) fn new(source: &Path, content: R) -> Result<Self> {
        Self::of_columns(source, content, None)
    }

    /// Reads the schema, to read these columns, of those that exist, or all.
    pub(super) fn of_columns(source: &Path, content: R, wanted: Option<&[&str]>) -> Result<Self> {
        let content = Shared(Arc::new(content));
        let wrong = |problem: String| Error::Table { file: source.to_owned(), problem };
        let schema = footer::schema(&content)
            .map_err(|problem| wrong(format!("not a readable Parquet file: {problem}")))?;
        // Frames of LZ4 do not say how long their content is, and no writer uses them any more.
        let bounded = ReaderProperties::builder().set_backward_compatible_lz4(false).build();
        let options = ReadOptionsBuilder::new().with_reader_properties(bounded);
        let options = match schema {
            Some(schema) => options.with_parquet_schema(schema),
            None => options,
        };
        let file = SerializedFileReader::new_with_options(content.clone(), options.build())
            .map_err(|error| broken(source, &error))?;
        let schema = file.metadata().file_metadata().schema_descr_ptr();
        check_columns(schema.num_columns()).map_err(wrong)?;
        let (mut names, mut numbers) = (Vec::new(), Vec::new());
        for (number, descriptor) in schema.columns().iter().enumerate() {
            let name = descriptor.path().string();
            if wanted.is_some_and(|wanted| !wanted.contains(&&*name)) {
                continue;
            }
            if let Some(kind) = unsupported(descriptor) {
                return Err(wrong(format!(
                    "column `{name}` holds {kind}, expected numbers, text or booleans; convert it \
                     to text or leave it out"
                )));
            }
            names.push(name);
            numbers.push(number);
        }
        let source = source.to_owned();
        let header = Column::of_header(names.iter().map(String::as_str));
        let group = Group::default();
        Ok(Self { source, content, file, header, numbers, next_group: 0, group, rows: 0 })
    }

    fn wrong(&self, problem: String) -> Error {
        Error::Table { file: self.source.clone(), problem }
    }

    /// Opens the next row group that has rows left; false if there is none.
    fn open_group(&mut self) -> Result<bool> {
        let broken = |error: ParquetError| broken(&self.source, &error);
        while self.group.read == self.group.rows {
            if self.next_group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.next_group).map_err(broken)?;
            let metadata = group.metadata();
            let rows = usize::try_from(metadata.num_rows())
                .map_err(|_| self.wrong("a row group has a negative number of rows".to_owned()))?;
            // The crate does not check these and panics if they are negative.
            let sound = metadata.columns().iter().all(|chunk| {
                chunk.data_page_offset() >= 0
                    && chunk.dictionary_page_offset().is_none_or(|offset| offset >= 0)
                    && chunk.compressed_size() >= 0
            });
            if !sound {
                let problem = "not a readable Parquet file: a negative size or offset";
                return Err(self.wrong(problem.to_owned()));
            }
            let mut chunks = self.numbers.iter().map(|&number| metadata.column(number));
            if let Some(codec) = chunks.clone().find_map(|own| missing_codec(own.compression())) {
                return Err(self.wrong(format!(
                    "compressed with {codec}, which this build of tyrex cannot read; write the \
                     file with Snappy, or build tyrex with the feature `parquet-codecs`"
                )));
            }
            pages::check(&self.content, &mut chunks)
                .map_err(|problem| self.wrong(format!("not a readable Parquet file: {problem}")))?;
            let schema = self.file.metadata().file_metadata().schema_descr();
            let columns = self
                .numbers
                .iter()
                .map(|&index| {
                    let pages = group.get_column_page_reader(index).map_err(broken)?;
                    let column = schema.column(index);
                    let pages = Box::new(CheckedPages {
                        pages,
                        has_dictionary: false,
                        has_levels: column.max_def_level() > 0,
                        is_text: column.physical_type() == Physical::BYTE_ARRAY,
                        least_bytes: least_bytes(column.physical_type()),
                    });
                    Ok(get_column_reader(column, pages))
                })
                .collect::<Result<_>>()?;
            self.group = Group { columns, rows, read: 0 };
            self.next_group += 1;
        }
        Ok(true)
    }
}

/// The error about a file that cannot be decoded.
fn broken(source: &Path, error: &ParquetError) -> Error {
    let problem = format!("not a readable Parquet file: {error}");
    Error::Table { file: source.to_owned(), problem }
}

impl<R: ChunkReader + 'static> Batches for Reader<R> {
    fn declared(&self) -> Option<(usize, usize)> {
        let groups = self.file.metadata().row_groups().iter();
        let rows = groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0));
        Some((rows.fold(0, usize::saturating_add), self.header.len()))
    }

    fn read(
        &mut self,
        first_row: usize,
        limit: usize,
        meter: &mut TableMeter,
    ) -> Result<(usize, Vec<Column>)> {
        let mut columns = self.header.clone();
        let mut rows = 0;
        while rows < limit && self.open_group()? {
            let schema = self.file.metadata().file_metadata().schema_descr();
            let Group { columns: readers, rows: all, read } = &mut self.group;
            let wanted = (*all - *read).min(limit - rows);
            for (index, (column, reader)) in columns.iter_mut().zip(readers).enumerate() {
                let is_unsigned = is_unsigned(&schema.column(self.numbers[index]));
                read_cells(reader, is_unsigned, wanted, column, meter).map_err(
                    |error| match error {
                        CellError::Broken(error) => broken(&self.source, &error),
                        CellError::TooMuch(problem) => {
                            Error::Table { file: self.source.clone(), problem }
                        }
                        CellError::NotText(row) => Error::Cell {
                            file: self.source.clone(),
                            row: first_row + row,
                            column: column.name().to_owned(),
                            value: "bytes".to_owned(),
                            expected: "UTF-8 text".to_owned(),
                        },
                    },
                )?;
                if column.len() - rows != wanted {
                    let problem = format!(
                        "not a readable Parquet file: column `{}` has {} cells in a group of {all} \
                         rows",
                        column.name(),
                        *read + column.len() - rows
                    );
                    return Err(Error::Table { file: self.source.clone(), problem });
                }
            }
            *read += wanted;
            rows += wanted;
        }
        if self.file.metadata().file_metadata().schema_descr().num_columns() == 0 {
            return Err(self.wrong("the file has no columns".to_owned()));
        }
        self.rows += rows as u64;
        Ok((rows, columns))
    }

    fn progress(&self) -> Option<f64> {
        let rows = self.file.metadata().file_metadata().num_rows();
        Some(share(self.rows, u64::try_from(rows).unwrap_or(0)))
    }
}

/// The name of a codec that is compiled in with the feature `parquet-codecs` only.
fn missing_codec(codec: Compression) -> Option<&'static str> {
    match codec {
        _ if cfg!(feature = "parquet-codecs") => None,
        Compression::GZIP(_) => Some("gzip"),
        Compression::LZ4 | Compression::LZ4_RAW => Some("LZ4"),
        Compression::ZSTD(_) => Some("Zstandard"),
        _ => None,
    }
}

/// The type of a column in words, if it is not supported.
fn unsupported(column: &ColumnDescriptor) -> Option<&'static str> {
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return Some("lists or records");
    }
    let (physical, converted) = (column.physical_type(), column.converted_type());
    match (column.logical_type_ref(), converted) {
        (Some(LogicalType::Decimal(_)), _) | (_, ConvertedType::DECIMAL) => Some("decimals"),
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => Some("dates"),
        (Some(LogicalType::Time(_) | LogicalType::Timestamp(_)), _)
        | (
            _,
            ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
            | ConvertedType::INTERVAL,
        ) => Some("times"),
        (
            None
            | Some(
                LogicalType::String
                | LogicalType::Enum
                | LogicalType::Json
                | LogicalType::Integer(_)
                | LogicalType::Unknown,
            ),
            _,
        ) if !matches!(physical, Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY) => None,
        _ => Some("a type that is not supported"),
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let logical = matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(integer)) if !integer.is_signed
    );
    logical
        || matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        )
}

/// The pages of a column, checked before decoding: the decoder panics at a page that refers to a
/// missing dictionary, at one with fewer texts than it declares, and at levels in an encoding that
/// no writer uses any more. It allocates as many values as a dictionary declares.
struct CheckedPages {
    pages: Box<dyn PageReader>,
    has_dictionary: bool,
    /// Whether the column may have missing cells.
    has_levels: bool,
    /// Whether its values are texts.
    is_text: bool,
    /// The least bytes of a value of a dictionary.
    least_bytes: usize,
}

/// The least bytes of a plain value; a text has its length.
fn least_bytes(kind: Physical) -> usize {
    match kind {
        Physical::INT64 | Physical::DOUBLE => 8,
        _ => 4,
    }
}

/// The length of a text, longer than a page: the decoder reports that the page ends before.
const NO_TEXT: [u8; 4] = [0xff; 4];

impl CheckedPages {
    fn check(&mut self, page: &mut Page) -> Result<(), &'static str> {
        let (buffer, encoding) = match page {
            Page::DictionaryPage { buf, num_values, .. } => {
                if *num_values as usize > buf.len() / self.least_bytes {
                    return Err("a dictionary has fewer values than it declares");
                }
                self.has_dictionary = true;
                (buf, Encoding::PLAIN)
            }
            Page::DataPage { def_level_encoding, .. }
                if self.has_levels && *def_level_encoding != Encoding::RLE =>
            {
                return Err("the levels have a deprecated encoding");
            }
            Page::DataPage { buf, encoding, .. } | Page::DataPageV2 { buf, encoding, .. } => {
                (buf, *encoding)
            }
        };
        let refers = matches!(encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY);
        if refers && !self.has_dictionary {
            return Err("a dictionary page is missing");
        }
        if self.is_text && encoding == Encoding::PLAIN {
            *buffer = [buffer, NO_TEXT.as_slice()].concat().into();
        }
        Ok(())
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let mut page = self.pages.get_next_page()?;
        if let Some(page) = &mut page {
            self.check(page).map_err(|problem| ParquetError::General(problem.to_owned()))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

enum CellError {
    Broken(ParquetError),
    TooMuch(String),
    NotText(usize),
}

/// Adds the next cells of one column of one row group.
fn read_cells(
    reader: &mut ColumnReader,
    is_unsigned: bool,
    rows: usize,
    column: &mut Column,
    meter: &mut TableMeter,
) -> Result<(), CellError> {
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            typed(reader, rows, column, meter, |column, value| column.push_display(value))
        }
        ColumnReader::Int32ColumnReader(reader) if is_unsigned => {
            typed(reader, rows, column, meter, |column, value| {
                column.push_display(value.cast_unsigned());
            })
        }
        ColumnReader::Int32ColumnReader(reader) => {
            typed(reader, rows, column, meter, |column, value| column.push_display(value))
        }
        ColumnReader::Int64ColumnReader(reader) if is_unsigned => {
            typed(reader, rows, column, meter, |column, value| {
                column.push_display(value.cast_unsigned());
            })
        }
        ColumnReader::Int64ColumnReader(reader) => {
            typed(reader, rows, column, meter, |column, value| column.push_display(value))
        }
        ColumnReader::FloatColumnReader(reader) => {
            typed(reader, rows, column, meter, |column, value| column.push_display(value))
        }
        ColumnReader::DoubleColumnReader(reader) => {
            typed(reader, rows, column, meter, |column, value| column.push_display(value))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let mut not_text = None;
            typed(reader, rows, column, meter, |column, value| {
                let text = std::str::from_utf8(value.data());
                if text.is_err() {
                    not_text.get_or_insert(column.len());
                }
                column.push(text.unwrap_or_default());
            })?;
            not_text.map_or(Ok(()), |row| Err(CellError::NotText(row)))
        }
        ColumnReader::Int96ColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
            Err(CellError::Broken(ParquetError::General("a type that is not supported".to_owned())))
        }
    }
}

fn typed<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    column: &mut Column,
    meter: &mut TableMeter,
    mut push: impl FnMut(&mut Column, &T::T),
) -> Result<(), CellError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut left = rows;
    while left > 0 {
        values.clear();
        levels.clear();
        let (records, _, _) = reader
            .read_records(left.min(BATCH), Some(&mut levels), None, &mut values)
            .map_err(CellError::Broken)?;
        if records == 0 {
            break;
        }
        left = left.saturating_sub(records);
        // A column that has no nulls has no levels either.
        let mut present = values.iter();
        for row in 0..records {
            let before = column.text_len();
            match levels.get(row) {
                Some(0) => column.push(""),
                _ => match present.next() {
                    Some(value) => push(column, value),
                    None => column.push(""),
                },
            }
            let added = column.text_len() - before;
            meter.take(column.len() - 1, added).map_err(CellError::TooMuch)?;
        }
    }
    Ok(())
}

/// Writes Parquet: booleans, 64-bit integers, doubles or text. An empty cell is a null.
pub(super) struct Writer {
    file: SerializedFileWriter<WholeFile>,
    contents: Vec<Content>,
    /// Rows for the next row group.
    waiting: Vec<Column>,
}

impl Writer {
    /// Only the header of the file is written before the first row group.
    pub(super) fn new(file: WholeFile, columns: &[(String, Content)]) -> io::Result<Self> {
        let fields = columns
            .iter()
            .map(|(name, content)| {
                let (physical, logical) = match content {
                    Content::Boolean => (Physical::BOOLEAN, None),
                    Content::Integer => (Physical::INT64, None),
                    Content::Real => (Physical::DOUBLE, None),
                    Content::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                };
                Type::primitive_type_builder(name, physical)
                    .with_logical_type(logical)
                    .with_repetition(Repetition::OPTIONAL)
                    .build()
                    .map(Arc::new)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(of_parquet)?;
        let schema = Type::group_type_builder("table").with_fields(fields).build();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = schema
            .and_then(|schema| {
                SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            })
            .map_err(of_parquet)?;
        let contents = columns.iter().map(|(_, content)| *content).collect();
        let waiting = columns.iter().map(|(name, _)| Column::new(name.as_str())).collect();
        Ok(Self { file, contents, waiting })
    }

    fn waiting_rows(&self) -> usize {
        self.waiting.first().map_or(0, Column::len)
    }

    fn write_waiting(&mut self) -> Result<(), ParquetError> {
        write_group(&mut self.file, &self.waiting, &self.contents)?;
        self.waiting.iter_mut().for_each(Column::clear);
        Ok(())
    }
}

impl Sink for Writer {
    fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        if self.waiting_rows() == 0 && columns.first().map_or(0, Column::len) >= GROUP {
            return write_group(&mut self.file, columns, &self.contents).map_err(of_parquet);
        }
        for (waiting, column) in self.waiting.iter_mut().zip(columns) {
            waiting.append(column);
        }
        if self.waiting_rows() >= GROUP { self.write_waiting().map_err(of_parquet) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<WholeFile> {
        if self.waiting_rows() > 0 || self.file.flushed_row_groups().is_empty() {
            self.write_waiting().map_err(of_parquet)?;
        }
        self.file.into_inner().map_err(of_parquet)
    }
}

/// The error of the file itself, where there is one.
fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn write_group(
    file: &mut SerializedFileWriter<WholeFile>,
    columns: &[Column],
    contents: &[Content],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for (column, content) in columns.iter().zip(contents) {
        let broken = |cell: &str| ParquetError::General(format!("`{cell}` changed its type"));
        match content {
            Content::Boolean => {
                write_column::<BoolType>(&mut group, column, |cell| Ok(cell == "true"))?;
            }
            Content::Integer => write_column::<Int64Type>(&mut group, column, |cell| {
                cell.parse().map_err(|_| broken(cell))
            })?,
            Content::Real => write_column::<DoubleType>(&mut group, column, |cell| {
                cell.parse().map_err(|_| broken(cell))
            })?,
            Content::Text => {
                write_column::<ByteArrayType>(&mut group, column, |cell| {
                    Ok(ByteArray::from(cell))
                })?;
            }
        }
    }
    group.close()?;
    Ok(())
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, WholeFile>,
    column: &Column,
    value: impl Fn(&str) -> Result<T::T, ParquetError>,
) -> Result<(), ParquetError> {
    let filled = column.cells().filter(|cell| !cell.is_empty());
    let values = filled.map(value).collect::<Result<Vec<T::T>, _>>()?;
    let levels: Vec<i16> = column.cells().map(|cell| i16::from(!cell.is_empty())).collect();
    let mut writer = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    writer.typed::<T>().write_batch(&values, Some(&levels), None)?;
    writer.close()
}
