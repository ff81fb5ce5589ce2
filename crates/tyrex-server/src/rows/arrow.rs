//! Rows as an Arrow stream, as written by pandas, polars and pyarrow.

use std::fmt::Display;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use tyrex::data::table::Content;
use tyrex::data::{Column, Table, TableLimits};

use crate::log;
use crate::problem::Problem;

/// The media type of Arrow streams.
pub(crate) const ARROW: &str = "application/vnd.apache.arrow.stream";

/// Reads an Arrow stream within a size limit. Numbers become their shortest text; null and NaN are
/// missing; infinite numbers are rejected.
pub(crate) fn read_arrow(bytes: &[u8], most: TableLimits) -> Result<Table, Problem> {
    // The reader checks its input; a panic on bad input is the sender's error and is not logged.
    log::without_panics(|| read(bytes, most))
        .unwrap_or_else(|_| Err(Problem::bad_request("the body is not an Arrow stream")))
}

fn read(bytes: &[u8], most: TableLimits) -> Result<Table, Problem> {
    let broken = |error: ArrowError| {
        Problem::bad_request(format!("the body is not an Arrow stream: {error}"))
    };
    let reader = StreamReader::try_new(Cursor::new(bytes), None).map_err(broken)?;
    let schema = reader.schema();
    let mut columns: Vec<Column> =
        schema.fields().iter().map(|field| Column::new(field.name())).collect();
    let (mut rows, mut text) = (0_usize, 0_usize);
    for batch in reader {
        let batch = batch.map_err(broken)?;
        rows = rows.saturating_add(batch.num_rows());
        most.check(rows, columns.len()).map_err(|problem| Problem::field("rows", problem))?;
        for (column, cells) in columns.iter_mut().zip(batch.columns()) {
            add(column, cells, &mut text, most.text)?;
        }
    }
    if columns.is_empty() {
        return Err(Problem::bad_request("the stream has no columns"));
    }
    Ok(Table::new("rows", columns)?)
}

/// Adds the cells of one batch.
fn add(
    column: &mut Column,
    cells: &ArrayRef,
    text: &mut usize,
    most: usize,
) -> Result<(), Problem> {
    let reader = reader(column.name(), cells)?;
    let name = column.name().to_owned();
    for row in 0..cells.len() {
        let before = column.len();
        let cell = if cells.is_null(row) { Some(String::new()) } else { reader(row) };
        let Some(cell) = cell else {
            let problem = "the value is infinite, expected a finite number or null";
            return Err(Problem::field(format!("rows[{before}].{name}"), problem));
        };
        *text += cell.len();
        // A dictionary can repeat one long text in every row.
        if *text > most {
            return Err(Problem::bad_request(format!("the rows exceed {most} bytes of text")));
        }
        column.push(&cell);
    }
    Ok(())
}

/// The text of a cell by its row; `None` for an infinite number.
type Reader<'a> = Box<dyn Fn(usize) -> Option<String> + 'a>;

fn reader<'a>(name: &str, cells: &'a ArrayRef) -> Result<Reader<'a>, Problem> {
    Ok(match cells.data_type() {
        DataType::Null => Box::new(|_| Some(String::new())),
        DataType::Boolean => {
            let cells = cells.as_boolean();
            Box::new(|row| Some(cells.value(row).to_string()))
        }
        DataType::Int8 => numbers::<Int8Type>(cells),
        DataType::Int16 => numbers::<Int16Type>(cells),
        DataType::Int32 => numbers::<Int32Type>(cells),
        DataType::Int64 => numbers::<Int64Type>(cells),
        DataType::UInt8 => numbers::<UInt8Type>(cells),
        DataType::UInt16 => numbers::<UInt16Type>(cells),
        DataType::UInt32 => numbers::<UInt32Type>(cells),
        DataType::UInt64 => numbers::<UInt64Type>(cells),
        DataType::Float16 => {
            let cells = cells.as_primitive::<Float16Type>();
            Box::new(|row| finite(cells.value(row).to_f32(), f32::is_nan, f32::is_finite))
        }
        DataType::Float32 => {
            let cells = cells.as_primitive::<Float32Type>();
            Box::new(|row| finite(cells.value(row), f32::is_nan, f32::is_finite))
        }
        DataType::Float64 => {
            let cells = cells.as_primitive::<Float64Type>();
            Box::new(|row| finite(cells.value(row), f64::is_nan, f64::is_finite))
        }
        DataType::Decimal128(..) => {
            let cells = cells.as_primitive::<Decimal128Type>();
            Box::new(|row| Some(cells.value_as_string(row)))
        }
        DataType::Decimal256(..) => {
            let cells = cells.as_primitive::<Decimal256Type>();
            Box::new(|row| Some(cells.value_as_string(row)))
        }
        DataType::Utf8 => {
            let cells = cells.as_string::<i32>();
            Box::new(|row| Some(cells.value(row).to_owned()))
        }
        DataType::LargeUtf8 => {
            let cells = cells.as_string::<i64>();
            Box::new(|row| Some(cells.value(row).to_owned()))
        }
        DataType::Utf8View => {
            let cells = cells.as_string_view();
            Box::new(|row| Some(cells.value(row).to_owned()))
        }
        DataType::Dictionary(key, _) => match **key {
            DataType::Int8 => dictionary::<Int8Type>(name, cells)?,
            DataType::Int16 => dictionary::<Int16Type>(name, cells)?,
            DataType::Int32 => dictionary::<Int32Type>(name, cells)?,
            DataType::Int64 => dictionary::<Int64Type>(name, cells)?,
            DataType::UInt8 => dictionary::<UInt8Type>(name, cells)?,
            DataType::UInt16 => dictionary::<UInt16Type>(name, cells)?,
            DataType::UInt32 => dictionary::<UInt32Type>(name, cells)?,
            DataType::UInt64 => dictionary::<UInt64Type>(name, cells)?,
            _ => return Err(unsupported(name, "a dictionary with such keys")),
        },
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_)
        | DataType::Interval(_) => {
            return Err(unsupported(
                name,
                "dates or times; turn it into a number first, such as days since a fixed date",
            ));
        }
        other => return Err(unsupported(name, &format!("values of the type {other}"))),
    })
}

fn unsupported(name: &str, what: &str) -> Problem {
    let problem = format!("the column holds {what}; expected numbers, texts or booleans");
    Problem::field(format!("rows.{name}"), problem)
}

fn numbers<T: ArrowPrimitiveType<Native: Display>>(cells: &ArrayRef) -> Reader<'_> {
    let cells = cells.as_primitive::<T>();
    Box::new(|row| Some(cells.value(row).to_string()))
}

/// A number's shortest text; NaN is missing.
fn finite<T: Copy + Display + std::ops::Add<Output = T> + Default>(
    number: T,
    is_nan: fn(T) -> bool,
    is_finite: fn(T) -> bool,
) -> Option<String> {
    if is_nan(number) {
        return Some(String::new());
    }
    // Adding zero turns -0 into 0.
    is_finite(number).then(|| (number + T::default()).to_string())
}

fn dictionary<'a, K: ArrowDictionaryKeyType>(
    name: &str,
    cells: &'a ArrayRef,
) -> Result<Reader<'a>, Problem> {
    let cells = cells.as_dictionary::<K>();
    let values = cells.values();
    if matches!(values.data_type(), DataType::Dictionary(..)) {
        return Err(unsupported(name, "a dictionary of dictionaries"));
    }
    let read = reader(name, values)?;
    Ok(Box::new(move |row| match cells.key(row) {
        Some(key) if key < values.len() && !values.is_null(key) => read(key),
        _ => Some(String::new()),
    }))
}

/// A table as an Arrow stream, each column with the narrowest type that holds all its cells.
pub(crate) fn write_arrow(table: &Table) -> Result<Vec<u8>, Problem> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in table.columns() {
        let array = array(column);
        fields.push(Field::new(column.name(), array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options);
    let written = batch.and_then(|batch| {
        let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
        writer.write(&batch)?;
        writer.into_inner()
    });
    written.map_err(Problem::internal)
}

fn array(column: &Column) -> ArrayRef {
    let cells = || column.cells().map(|cell| Some(cell).filter(|cell| !cell.is_empty()));
    let number = |cell: &str| cell.parse::<f64>().ok();
    match Content::of(column) {
        Content::Boolean => {
            Arc::new(cells().map(|cell| cell.map(|cell| cell == "true")).collect::<BooleanArray>())
        }
        Content::Integer => {
            Arc::new(cells().map(|cell| cell?.parse().ok()).collect::<Int64Array>())
        }
        Content::Real => Arc::new(cells().map(|cell| number(cell?)).collect::<Float64Array>()),
        Content::Text => Arc::new(cells().collect::<StringArray>()),
    }
}
