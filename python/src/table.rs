//! Tables: columns of numbers and texts in, the library's columns of text out, and back.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use tyrex::data::Column;

use crate::error::{self, OrRaise};

/// Named columns of text, as a file has them. An empty cell is a missing one.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Table(pub(crate) tyrex::data::Table);

#[pymethods]
impl Table {
    /// A table from columns: numpy arrays of numbers, or lists of texts and None.
    #[new]
    #[pyo3(signature = (source, names, columns))]
    fn new(source: &str, names: Vec<String>, columns: Vec<Bound<'_, PyAny>>) -> PyResult<Self> {
        if names.len() != columns.len() {
            return Err(error::parameter("the number of names differs from the number of columns"));
        }
        let columns = names.into_iter().zip(&columns).map(|(name, cells)| column(name, cells));
        let columns: Vec<Column> = columns.collect::<PyResult<_>>()?;
        tyrex::data::Table::new(source, columns).or_raise().map(Self)
    }

    /// Reads a file: .csv, .jsonl, .ndjson or .parquet.
    #[staticmethod]
    fn read(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        py.detach(|| tyrex::data::Table::read(&path)).or_raise().map(Self)
    }

    /// A table from the CSV that `to_csv` gives; `source` names it in errors.
    #[staticmethod]
    fn of_csv(py: Python<'_>, source: std::path::PathBuf, content: Vec<u8>) -> PyResult<Self> {
        py.detach(|| tyrex::data::Table::from_csv(&source, &content)).or_raise().map(Self)
    }

    /// The cells as they are, as CSV.
    fn to_csv<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.to_csv()))
    }

    /// The file that it was read from, or another name.
    #[getter]
    fn source(&self) -> String {
        self.0.source().display().to_string()
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.columns().iter().map(Column::name).collect()
    }

    /// The columns: an array of int64 or float64 where all cells are numbers, with NaN for
    /// missing ones; else a list of texts and None.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.0.columns().iter().map(|column| typed(py, column)).collect()
    }

    fn __len__(&self) -> usize {
        self.0.rows()
    }
}

/// One column's cells as text; numbers in their shortest form.
fn column(name: String, cells: &Bound<'_, PyAny>) -> PyResult<Column> {
    let mut column = Column::new(name);
    if let Ok(numbers) = cells.extract::<PyReadonlyArray1<'_, f64>>() {
        for &number in &numbers.as_array() {
            push(&mut column, !number.is_nan(), number + 0.0);
        }
    } else if let Ok(numbers) = cells.extract::<PyReadonlyArray1<'_, f32>>() {
        for &number in &numbers.as_array() {
            push(&mut column, !number.is_nan(), number + 0.0);
        }
    } else if let Ok(numbers) = cells.extract::<PyReadonlyArray1<'_, i64>>() {
        for &number in &numbers.as_array() {
            push(&mut column, true, number);
        }
    } else if let Ok(flags) = cells.extract::<PyReadonlyArray1<'_, bool>>() {
        for &flag in &flags.as_array() {
            push(&mut column, true, flag);
        }
    } else {
        for cell in cells.try_iter()? {
            let cell = cell?;
            match cell.cast::<PyString>() {
                Ok(text) => column.push(&text.to_cow()?),
                Err(_) if cell.is_none() => column.push(""),
                Err(_) => column.push(&cell.str()?.to_cow()?),
            }
        }
    }
    Ok(column)
}

fn push(column: &mut Column, known: bool, cell: impl std::fmt::Display) {
    if known {
        column.push_display(cell);
    } else {
        column.push("");
    }
}

fn typed<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    let whole: Result<Vec<i64>, _> = column.cells().map(str::parse).collect();
    if let Ok(whole) = whole {
        return Ok(whole.into_pyarray(py).into_any());
    }
    let number = |cell: &str| match cell {
        "" => Some(f64::NAN),
        text => text.parse().ok().filter(|number: &f64| number.is_finite()),
    };
    let any = column.cells().any(|cell| !cell.is_empty());
    let numbers: Option<Vec<f64>> = column.cells().map(number).collect();
    if let Some(numbers) = numbers.filter(|_| any) {
        return Ok(numbers.into_pyarray(py).into_any());
    }
    let cells = column.cells().map(|cell| Some(cell).filter(|cell| !cell.is_empty()));
    Ok(PyList::new(py, cells)?.into_any())
}
