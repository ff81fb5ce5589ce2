//! Models that the native engine runs.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tyrex::explain::{embedded_schema, import, import_bytes};
use tyrex::model::files::{Favourable, ImportOptions, Inputs, ModelFile};

use crate::data::Schema;
use crate::error::OrRaise;

/// An ONNX model.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) model: ModelFile,
}

/// The bytes of a model file, or its path.
#[derive(Debug, FromPyObject)]
enum Source {
    Bytes(Vec<u8>),
    Path(PathBuf),
}

#[pymethods]
impl Model {
    /// A model from its file or from the bytes of it. With a schema, its favourable label selects
    /// the class by default. External data is read from the folder of the file.
    #[new]
    #[pyo3(signature = (source, schema = None, *, class_number = None, class_name = None, logits = false))]
    fn new(
        py: Python<'_>,
        source: Source,
        schema: Option<&Schema>,
        class_number: Option<usize>,
        class_name: Option<String>,
        logits: bool,
    ) -> PyResult<Self> {
        let favourable = class_name.map(Favourable::Label).or(class_number.map(Favourable::Class));
        let options = ImportOptions { output: None, favourable, logits };
        let read = move || match (source, schema) {
            (Source::Bytes(content), Some(schema)) => import_bytes(&content, &schema.0, &options),
            (Source::Bytes(content), None) => ModelFile::from_bytes(content, &options),
            (Source::Path(path), Some(schema)) => import(&path, &schema.0, &options),
            (Source::Path(path), None) => ModelFile::read(&path, &options),
        };
        py.detach(read).or_raise().map(|model| Self { model })
    }

    /// The names of its columns; None if they have none.
    #[getter]
    fn columns(&self) -> Option<Vec<String>> {
        match &self.model.inputs {
            Inputs::Matrix { .. } => None,
            Inputs::Columns(columns) => {
                Some(columns.iter().map(|column| column.name.clone()).collect())
            }
        }
    }

    /// The schema in its metadata, if tyrex wrote it.
    #[getter]
    fn schema(&self) -> PyResult<Option<Schema>> {
        Ok(embedded_schema(&self.model).or_raise()?.map(Schema))
    }

    /// The names of the classes, if the file has them.
    #[getter]
    fn class_names(&self) -> Option<Vec<String>> {
        self.model.labels.clone()
    }
}

/// Bytes for Python.
pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, bytes)
}
