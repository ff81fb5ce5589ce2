//! Schemas, and rows read through them.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyType;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Dataset, Value};
use tyrex::explain::{Applicants, Data as Rows};

use crate::error::{self, OrRaise};
use crate::table::Table;

/// What the columns of a table mean.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Schema(pub(crate) tyrex::data::Schema);

#[pymethods]
impl Schema {
    /// A schema from its TOML.
    #[new]
    fn new(toml: &str) -> PyResult<Self> {
        tyrex::data::Schema::from_toml(toml).or_raise().map(Self)
    }

    /// Reads a schema file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        tyrex::data::Schema::read(&path).or_raise().map(Self)
    }

    /// A first schema from a table.
    #[staticmethod]
    fn infer(table: &Table, label: Option<&str>, favourable: Vec<String>) -> PyResult<Self> {
        let favourable: Vec<Value> = favourable.iter().map(|text| value(text)).collect();
        let inferred = tyrex::data::Schema::infer(&table.0, label, &favourable).or_raise()?;
        Ok(Self(inferred.schema))
    }

    /// The schema as TOML.
    fn to_toml(&self) -> PyResult<String> {
        self.0.to_toml().or_raise()
    }

    /// The schema as JSON.
    fn to_json(&self) -> PyResult<String> {
        error::json(&self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        Ok((slf.get_type(), (slf.get().to_toml()?,)))
    }
}

fn value(text: &str) -> Value {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Number(number),
        _ => Value::from(text),
    }
}

/// Rows that an explainer speaks about.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Data(pub(crate) Rows);

#[pymethods]
impl Data {
    /// Rows of a table for a model that exists: labels are welcome, not needed.
    #[staticmethod]
    fn applicants(py: Python<'_>, table: &Table, schema: &Schema) -> PyResult<Self> {
        let read = || Applicants::read(&schema.0, table.0.clone());
        py.detach(read).or_raise().map(|rows| Self(Rows::Applicants(rows)))
    }

    /// Rows of a table to train on: every row has a label.
    #[staticmethod]
    fn labelled(py: Python<'_>, table: &Table, schema: &Schema) -> PyResult<Self> {
        let read = || Dataset::load(&schema.0, table.0.clone());
        py.detach(read).or_raise().map(|rows| Self(Rows::Labelled(rows)))
    }

    /// A data set of the catalogue, with its own split: `product` or `reference`.
    #[staticmethod]
    #[pyo3(signature = (name, variant = "product", data_dir = None))]
    fn named(
        py: Python<'_>,
        name: &str,
        variant: &str,
        data_dir: Option<PathBuf>,
    ) -> PyResult<Self> {
        let variant = match variant {
            "product" => Variant::Product,
            "reference" => Variant::Reference,
            other => {
                return Err(error::parameter(format!(
                    "parameter `variant` is {other}, expected product or reference"
                )));
            }
        };
        let catalogue = Catalogue::new(data_dir.as_deref());
        py.detach(|| catalogue.load(name, variant, Direction::Favourable))
            .or_raise()
            .map(|dataset| Self(Rows::Labelled(dataset)))
    }

    /// What the columns mean.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema().clone())
    }

    /// The rows of the table that train, and those that test.
    #[pyo3(signature = () -> "tuple[list[int], list[int]]")]
    fn split(&self) -> (Vec<usize>, Vec<usize>) {
        use tyrex::explain::Part;
        let rows = self.0.table_rows();
        let part = |part| self.0.part(part).into_iter().map(|index| rows[index]).collect();
        (part(Part::Train), part(Part::Test))
    }

    /// The whole table, as it was read.
    fn table(&self) -> Table {
        Table(self.0.table().clone())
    }

    /// For each row that was kept, its row in the table.
    #[pyo3(signature = () -> "list[int]")]
    fn kept(&self) -> Vec<usize> {
        self.0.table_rows().to_vec()
    }

    fn __len__(&self) -> usize {
        self.0.rows().len()
    }
}

/// The names of the data sets.
#[pyfunction]
pub(crate) fn dataset_names() -> Vec<&'static str> {
    Catalogue::entries().iter().map(|entry| entry.name).collect()
}
