//! Record batches, from and to other packages by the Arrow `PyCapsule` interface, without copies.

#![allow(unsafe_code, reason = "the Arrow C data interface passes pointers")]

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions,
    StringArray, StructArray, make_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tyrex::Error;
use tyrex::data::{Cell, Content};

use crate::error;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// The most rows of a batch that is read at once. Tables of other packages may be one long batch.
const ROWS: usize = 8192;

/// A record batch. Other packages read it by the Arrow `PyCapsule` interface.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Batch(pub(crate) RecordBatch);

/// The batches of a table or a stream of another package, one after the other.
#[pyclass(frozen, module = "tyrex._native")]
pub(crate) struct Batches(Mutex<Unread>);

/// The batches that are still to be read.
struct Unread {
    stream: Option<ArrayStreamReader>,
    rest: Option<RecordBatch>,
}

fn broken(problem: impl std::fmt::Display) -> PyErr {
    table_error(format!("not Arrow data: {problem}"))
}

/// An error about the rows as a whole.
fn table_error(problem: String) -> PyErr {
    error::exception(Error::Table { file: "rows".into(), problem })
}

/// The pointer of a capsule with this name.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    let capsule = capsule.cast::<PyCapsule>().map_err(broken)?;
    Ok(capsule.pointer_checked(Some(name))?.cast())
}

#[pymethods]
impl Batch {
    /// The schema, for other packages.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let schema = FFI_ArrowSchema::try_from(&*self.0.schema()).map_err(broken)?;
        Ok(PyCapsule::new_with_value(py, schema, SCHEMA)?.into_any())
    }

    /// The rows, for other packages.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        // A requested schema is a wish, which the interface allows to leave unfulfilled.
        drop(requested_schema);
        let rows = StructArray::from(self.0.clone());
        let (array, schema) = to_ffi(&rows.to_data()).map_err(broken)?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA)?.into_any(),
            PyCapsule::new_with_value(py, array, ARRAY)?.into_any(),
        ))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}

#[pymethods]
impl Batches {
    /// The batches of an object with `__arrow_c_array__` or `__arrow_c_stream__`.
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if source.hasattr("__arrow_c_array__")? {
            let capsules = source.call_method0("__arrow_c_array__")?;
            let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
            let schema = pointer::<FFI_ArrowSchema>(&schema, SCHEMA)?;
            let array = pointer::<FFI_ArrowArray>(&array, ARRAY)?;
            // SAFETY: the capsules have the names of the interface, which promises valid structures
            // for as long as they live; `from_raw` takes the array and leaves a released one.
            let rows =
                unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
            let rest = Some(batch(&make_array(rows.map_err(broken)?))?);
            return Ok(Self(Mutex::new(Unread { stream: None, rest })));
        }
        if !source.hasattr("__arrow_c_stream__")? {
            return Err(table_error(format!(
                "found {}, expected rows that Arrow can read, such as a table of pyarrow, pandas or \
                 polars",
                source.get_type().fully_qualified_name()?
            )));
        }
        let capsule = source.call_method0("__arrow_c_stream__")?;
        let stream = pointer::<FFI_ArrowArrayStream>(&capsule, STREAM)?;
        // SAFETY: as above; `from_raw` takes the stream and leaves a released one.
        let stream = unsafe { ArrayStreamReader::from_raw(stream.as_ptr()) };
        let stream = Some(stream.map_err(broken)?);
        Ok(Self(Mutex::new(Unread { stream, rest: None })))
    }

    fn __iter__(own: PyRef<'_, Self>) -> PyRef<'_, Self> {
        own
    }

    fn __next__(&self) -> PyResult<Option<Batch>> {
        let mut unread = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = match unread.rest.take() {
            Some(rest) => rest,
            None => match unread.stream.as_mut().and_then(Iterator::next) {
                Some(rows) => batch(&rows.map_err(broken)?)?,
                None => return Ok(None),
            },
        };
        if whole.num_rows() <= ROWS {
            return Ok(Some(Batch(whole)));
        }
        unread.rest = Some(whole.slice(ROWS, whole.num_rows() - ROWS));
        Ok(Some(Batch(whole.slice(0, ROWS))))
    }
}

/// The batch of an array of structures.
fn batch(rows: &ArrayRef) -> PyResult<RecordBatch> {
    match rows.as_struct_opt() {
        Some(rows) if rows.null_count() == 0 => Ok(RecordBatch::from(rows.clone())),
        Some(_) => Err(table_error("found a row that is null, expected columns".to_owned())),
        None => Err(table_error(format!("found {}, expected columns", rows.data_type()))),
    }
}

/// The cell of a column by its row.
pub(crate) type Reader<'a> = Box<dyn Fn(usize) -> Cell<'a> + Send + Sync + 'a>;

/// Readers of the columns with these names.
pub(crate) fn readers<'a>(
    batch: &'a RecordBatch,
    names: impl Iterator<Item = &'a str>,
) -> PyResult<Vec<Reader<'a>>> {
    let reader = |name: &str| {
        let Some(cells) = batch.column_by_name(name) else {
            let schema = batch.schema();
            let known: Vec<&str> = schema.fields().iter().map(|own| own.name().as_str()).collect();
            let near = tyrex::data::nearest_name(name, known.into_iter());
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(table_error(format!("no column `{name}`, which the model takes{hint}")));
        };
        reader(name, cells)
    };
    names.map(reader).collect()
}

fn reader<'a>(name: &str, cells: &'a ArrayRef) -> PyResult<Reader<'a>> {
    Ok(match cells.data_type() {
        DataType::Null => Box::new(|_| Cell::Empty),
        DataType::Boolean => {
            let own = cells.as_boolean();
            known(cells, move |row| Cell::text(if own.value(row) { "true" } else { "false" }))
        }
        DataType::Int8 => numbers::<Int8Type>(cells, |number| Cell::Integer(number.into())),
        DataType::Int16 => numbers::<Int16Type>(cells, |number| Cell::Integer(number.into())),
        DataType::Int32 => numbers::<Int32Type>(cells, |number| Cell::Integer(number.into())),
        DataType::Int64 => numbers::<Int64Type>(cells, Cell::Integer),
        DataType::UInt8 => numbers::<UInt8Type>(cells, |number| Cell::Integer(number.into())),
        DataType::UInt16 => numbers::<UInt16Type>(cells, |number| Cell::Integer(number.into())),
        DataType::UInt32 => numbers::<UInt32Type>(cells, |number| Cell::Integer(number.into())),
        DataType::UInt64 => numbers::<UInt64Type>(cells, |number| {
            i64::try_from(number).map_or_else(|_| Cell::text(number.to_string()), Cell::Integer)
        }),
        DataType::Float16 => numbers::<Float16Type>(cells, |number| single(number.to_f32())),
        DataType::Float32 => numbers::<Float32Type>(cells, single),
        DataType::Float64 => numbers::<Float64Type>(cells, |number| match number {
            nan if nan.is_nan() => Cell::Empty,
            number => Cell::Real(number),
        }),
        DataType::Decimal128(..) => {
            let own = cells.as_primitive::<Decimal128Type>();
            known(cells, move |row| Cell::text(own.value_as_string(row)))
        }
        DataType::Decimal256(..) => {
            let own = cells.as_primitive::<Decimal256Type>();
            known(cells, move |row| Cell::text(own.value_as_string(row)))
        }
        DataType::Utf8 => {
            let own = cells.as_string::<i32>();
            known(cells, move |row| Cell::text(own.value(row)))
        }
        DataType::LargeUtf8 => {
            let own = cells.as_string::<i64>();
            known(cells, move |row| Cell::text(own.value(row)))
        }
        DataType::Utf8View => {
            let own = cells.as_string_view();
            known(cells, move |row| Cell::text(own.value(row)))
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
            _ => return Err(unsupported(name, cells.data_type())),
        },
        other => return Err(unsupported(name, other)),
    })
}

fn unsupported(name: &str, found: &DataType) -> PyErr {
    table_error(format!(
        "column `{name}` holds values of the type {found}, expected numbers, texts or booleans"
    ))
}

/// The reader of cells that may be null.
fn known<'a>(
    cells: &'a ArrayRef,
    read: impl Fn(usize) -> Cell<'a> + Send + Sync + 'a,
) -> Reader<'a> {
    Box::new(move |row| if cells.is_null(row) { Cell::Empty } else { read(row) })
}

fn numbers<T: ArrowPrimitiveType>(
    cells: &ArrayRef,
    cell: fn(T::Native) -> Cell<'static>,
) -> Reader<'_> {
    let own = cells.as_primitive::<T>();
    known(cells, move |row| cell(own.value(row)))
}

fn single(number: f32) -> Cell<'static> {
    if number.is_nan() { Cell::Empty } else { Cell::single(number) }
}

fn dictionary<'a, K: ArrowDictionaryKeyType>(
    name: &str,
    cells: &'a ArrayRef,
) -> PyResult<Reader<'a>> {
    let own = cells.as_dictionary::<K>();
    let values = own.values();
    if matches!(values.data_type(), DataType::Dictionary(..)) {
        return Err(unsupported(name, cells.data_type()));
    }
    let read = reader(name, values)?;
    Ok(Box::new(move |row| match own.key(row) {
        Some(key) if key < values.len() => read(key),
        _ => Cell::Empty,
    }))
}

/// The batch of lines with these columns.
pub(crate) fn written<N: AsRef<str>>(
    columns: &[(N, Content)],
    lines: &[Vec<Cell<'_>>],
) -> PyResult<Batch> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (place, (name, content)) in columns.iter().enumerate() {
        let array = array(*content, lines.iter().map(|line| &line[place]));
        fields.push(Field::new(name.as_ref(), array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(lines.len()));
    let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
    batch.map(Batch).map_err(|error: ArrowError| broken(error))
}

fn array<'a>(content: Content, cells: impl Iterator<Item = &'a Cell<'a>>) -> ArrayRef {
    match content {
        Content::Boolean => Arc::new(
            cells
                .map(|cell| match cell {
                    Cell::Text(text) => Some(text == "true"),
                    _ => None,
                })
                .collect::<BooleanArray>(),
        ),
        Content::Integer => Arc::new(
            cells
                .map(|cell| match cell {
                    Cell::Empty => None,
                    Cell::Integer(number) => Some(*number),
                    Cell::Real(number) => Some(*number as i64),
                    Cell::Text(text) => text.parse().ok(),
                })
                .collect::<Int64Array>(),
        ),
        Content::Real => Arc::new(
            cells
                .map(|cell| match cell {
                    Cell::Empty => None,
                    Cell::Integer(number) => Some(*number as f64),
                    Cell::Real(number) => Some(number + 0.0),
                    Cell::Text(text) => text.parse().ok(),
                })
                .collect::<Float64Array>(),
        ),
        Content::Text => Arc::new(
            cells
                .map(|cell| match cell {
                    Cell::Empty => None,
                    cell => Some(cell.to_string()),
                })
                .collect::<StringArray>(),
        ),
    }
}
