//! Parquet: flat columns of numbers, text and booleans, as pandas, pyarrow and polars write them.
//!
//! The column interface of the `parquet` crate is enough for that; the arrow one would
//! only add weight.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical,
};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescriptor, Type};
use prost::bytes::Bytes;

use crate::data::table::{Column, Content, Table};
use crate::error::{Error, Result};

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// Reads Parquet. Numbers become their shortest text, a null an empty cell.
pub(super) fn read(path: &Path) -> Result<Table> {
    let file = File::open(path).map_err(Error::io("read", path))?;
    table(path, file)
}

/// The same from memory.
pub(super) fn parse(source: &Path, bytes: Vec<u8>) -> Result<Table> {
    table(source, Bytes::from(bytes))
}

fn table(path: &Path, content: impl ChunkReader + 'static) -> Result<Table> {
    let wrong = |problem: String| Error::Table { file: path.to_owned(), problem };
    let broken = |error: ParquetError| wrong(format!("not a readable Parquet file: {error}"));
    let reader = SerializedFileReader::new(content).map_err(broken)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns: Vec<Column> = Vec::with_capacity(schema.num_columns());
    for descriptor in schema.columns() {
        let name = descriptor.path().string();
        if let Some(kind) = unsupported(descriptor) {
            return Err(wrong(format!(
                "column `{name}` holds {kind}, expected numbers, text or booleans; convert it to \
                 text or leave it out"
            )));
        }
        columns.push(Column::new(name));
    }
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(broken)?;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| wrong("a row group has a negative number of rows".to_owned()))?;
        // The crate takes these for granted and stops the program when they are negative.
        let sound = group.metadata().columns().iter().all(|chunk| {
            chunk.data_page_offset() >= 0
                && chunk.dictionary_page_offset().is_none_or(|offset| offset >= 0)
                && chunk.compressed_size() >= 0
        });
        if !sound {
            return Err(wrong("not a readable Parquet file: a negative size or offset".to_owned()));
        }
        let mut chunks = group.metadata().columns().iter();
        if let Some(codec) = chunks.find_map(|chunk| missing_codec(chunk.compression())) {
            return Err(wrong(format!(
                "compressed with {codec}, which this build of tyrex cannot read; write the file \
                 with Snappy, or build tyrex with the feature `parquet-codecs`"
            )));
        }
        for (index, column) in columns.iter_mut().enumerate() {
            let pages = group.get_column_page_reader(index).map_err(broken)?;
            let pages = Box::new(CheckedPages { pages, has_dictionary: false });
            let cells = get_column_reader(schema.column(index), pages);
            let is_unsigned = is_unsigned(&schema.column(index));
            let before = column.len();
            read_cells(cells, is_unsigned, rows, column).map_err(|error| match error {
                CellError::Broken(error) => broken(error),
                CellError::NotText(row) => Error::Cell {
                    file: path.to_owned(),
                    row,
                    column: column.name().to_owned(),
                    value: "bytes".to_owned(),
                    expected: "UTF-8 text".to_owned(),
                },
            })?;
            if column.len() - before != rows {
                return Err(wrong(format!(
                    "not a readable Parquet file: column `{}` has {} cells in a group of {rows} rows",
                    column.name(),
                    column.len() - before
                )));
            }
        }
    }
    if columns.is_empty() {
        return Err(wrong("the file has no columns".to_owned()));
    }
    Table::new(path, columns)
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

/// What a column holds, in words, if it is not something a cell can be.
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

/// The pages of a column, checked for what the decoder takes for granted: it stops the
/// program at a page that refers to a dictionary when there was none.
struct CheckedPages {
    pages: Box<dyn PageReader>,
    has_dictionary: bool,
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        match &page {
            Some(Page::DictionaryPage { .. }) => self.has_dictionary = true,
            Some(Page::DataPage { encoding, .. } | Page::DataPageV2 { encoding, .. }) => {
                let refers =
                    matches!(encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY);
                if refers && !self.has_dictionary {
                    return Err(ParquetError::General("a dictionary page is missing".to_owned()));
                }
            }
            None => {}
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
    NotText(usize),
}

/// Adds the cells of one column of one row group.
fn read_cells(
    reader: ColumnReader,
    is_unsigned: bool,
    rows: usize,
    column: &mut Column,
) -> Result<(), CellError> {
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            typed(reader, rows, column, |column, value| column.push_display(value))
        }
        ColumnReader::Int32ColumnReader(reader) if is_unsigned => {
            typed(reader, rows, column, |column, value| column.push_display(value.cast_unsigned()))
        }
        ColumnReader::Int32ColumnReader(reader) => {
            typed(reader, rows, column, |column, value| column.push_display(value))
        }
        ColumnReader::Int64ColumnReader(reader) if is_unsigned => {
            typed(reader, rows, column, |column, value| column.push_display(value.cast_unsigned()))
        }
        ColumnReader::Int64ColumnReader(reader) => {
            typed(reader, rows, column, |column, value| column.push_display(value))
        }
        ColumnReader::FloatColumnReader(reader) => {
            typed(reader, rows, column, |column, value| column.push_display(value))
        }
        ColumnReader::DoubleColumnReader(reader) => {
            typed(reader, rows, column, |column, value| column.push_display(value))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            let mut not_text = None;
            typed(reader, rows, column, |column, value| {
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
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    column: &mut Column,
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
            match levels.get(row) {
                Some(0) => column.push(""),
                _ => match present.next() {
                    Some(value) => push(column, value),
                    None => column.push(""),
                },
            }
        }
    }
    Ok(())
}

/// Writes Parquet, each column with the narrowest type that holds all its cells: booleans,
/// 64-bit integers, doubles or text. An empty cell is a null.
pub(super) fn write(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    // The crate asks for a writer that can cross threads, so the file is built in memory.
    let bytes = encode(table).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn encode(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let contents: Vec<Content> = table.columns().iter().map(Content::of).collect();
    let fields = table
        .columns()
        .iter()
        .zip(&contents)
        .map(|(column, content)| {
            let (physical, logical) = match content {
                Content::Boolean => (Physical::BOOLEAN, None),
                Content::Integer => (Physical::INT64, None),
                Content::Real => (Physical::DOUBLE, None),
                Content::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            Type::primitive_type_builder(column.name(), physical)
                .with_logical_type(logical)
                .with_repetition(Repetition::OPTIONAL)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
    let properties =
        Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties)?;
    let mut group = writer.next_row_group()?;
    for (column, content) in table.columns().iter().zip(contents) {
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
    writer.close()?;
    Ok(bytes)
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
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
