//! Models that were trained again.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use tyrex::Overwrite;
use tyrex::model::Model as _;

use crate::error::{self, OrRaise};
use crate::explainer::Explainer;
use crate::table::Table;

/// A base model and what one change made of it, many times.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Ensemble(pub(crate) Arc<tyrex::change::Ensemble>);

#[pymethods]
impl Ensemble {
    /// Reads an ensemble of this explainer's model from its folder.
    #[staticmethod]
    fn read(py: Python<'_>, explainer: &Explainer, folder: PathBuf) -> PyResult<Self> {
        let read = || explainer.inner.read_ensemble(&folder);
        py.detach(read).or_raise().map(|ensemble| Self(Arc::new(ensemble)))
    }

    /// Writes every model into a folder, with the schema and the encoder.
    #[pyo3(signature = (explainer, folder, overwrite = false))]
    fn write(
        &self,
        py: Python<'_>,
        explainer: &Explainer,
        folder: PathBuf,
        overwrite: bool,
    ) -> PyResult<()> {
        let overwrite = if overwrite { Overwrite::Force } else { Overwrite::Refuse };
        py.detach(|| explainer.inner.write_ensemble(&self.0, &folder, overwrite)).or_raise()
    }

    /// What is different for every model, in words.
    #[getter]
    fn change(&self) -> String {
        self.0.change().description()
    }

    /// Where the models' randomness came from.
    #[getter]
    fn seed(&self) -> u64 {
        self.0.seed().0
    }

    /// The probability of the favourable class: a line per model, a column per row of the table.
    #[pyo3(signature = (explainer, rows) -> "typing.Any")]
    fn score<'py>(
        &self,
        py: Python<'py>,
        explainer: &Explainer,
        rows: &Table,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let scores = py.detach(|| {
            let points = explainer.points_of(rows)?;
            let members = self.0.members().iter();
            Ok((points.len(), members.flat_map(|member| member.score(&points)).collect()))
        });
        let (rows, scores): (usize, Vec<f32>) = scores.or_raise()?;
        scores.into_pyarray(py).reshape([self.0.members().len(), rows])
    }

    /// How far the models moved on the rows of a table, as JSON.
    fn observed_change(
        &self,
        py: Python<'_>,
        explainer: &Explainer,
        rows: &Table,
    ) -> PyResult<String> {
        let observe = || self.0.observed_change(&explainer.points_of(rows)?);
        error::json(&py.detach(observe).or_raise()?)
    }

    fn __len__(&self) -> usize {
        self.0.members().len()
    }
}
