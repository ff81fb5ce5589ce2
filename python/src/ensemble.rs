//! Retrained models.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use tyrex::change::{ModelChange, Origin};
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::model::onnx::{self, ExportMetadata};
use tyrex::model::{Mlp, TrainParams};
use tyrex::{Overwrite, Seed};

use crate::error::{self, OrRaise};
use crate::explainer::{Explainer, run_with};
use crate::function::Failure;
use crate::retrained::Retrained;
use crate::table::Table;

/// How the models of an ensemble were made.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    change: ModelChange,
    seed: Seed,
    params: TrainParams,
}

fn network(content: Vec<u8>) -> tyrex::Result<Mlp> {
    ModelFile::from_bytes(content, &ImportOptions::default())?.core.into_network()
}

/// The error of an ensemble whose models were retrained elsewhere.
fn not_written() -> PyErr {
    error::exception(tyrex::Error::InvalidModel(
        "models that were retrained elsewhere are not written; keep the models".to_owned(),
    ))
}

/// A base model and many changed versions of it.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Ensemble {
    pub(crate) inner: Arc<tyrex::change::Ensemble>,
    /// Of its models that are Python functions.
    pub(crate) failures: Vec<Arc<Failure>>,
}

impl From<tyrex::change::Ensemble> for Ensemble {
    fn from(ensemble: tyrex::change::Ensemble) -> Self {
        Self { inner: Arc::new(ensemble), failures: Vec::new() }
    }
}

#[pymethods]
impl Ensemble {
    /// Reads an ensemble of this explainer's model from its folder.
    #[staticmethod]
    fn read(py: Python<'_>, explainer: &Explainer, folder: PathBuf) -> PyResult<Self> {
        let read = || explainer.inner.retraining().read(&folder, &ImportOptions::default());
        py.detach(read).or_raise().map(Self::from)
    }

    /// An ensemble of models that were retrained elsewhere: the name, the set and the model of
    /// each. `origin` says where they come from.
    #[staticmethod]
    fn given(
        py: Python<'_>,
        explainer: &Explainer,
        origin: String,
        models: Vec<(String, Option<String>, PyRef<'_, Retrained>)>,
    ) -> PyResult<Self> {
        let failures: Vec<_> =
            models.iter().filter_map(|(.., model)| model.failure.clone()).collect();
        let given =
            models.iter().map(|(name, set, model)| model.given(name.clone(), set.as_deref()));
        let given = given.collect::<tyrex::Result<_>>().or_raise()?;
        // Functions are compared by their scores.
        let all: Vec<_> = explainer.failure.iter().chain(&failures).cloned().collect();
        let retraining = explainer.inner.retraining();
        let inner = run_with(py, &all, None, |_| retraining.given(origin, given))?;
        Ok(Self { inner: Arc::new(inner.whole()?), failures })
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
        py.detach(|| explainer.inner.retraining().write(&self.inner, &folder, overwrite)).or_raise()
    }

    /// An ensemble from the files of its models, the base first, and its plan.
    #[new]
    #[pyo3(signature = (contents, plan))]
    fn new(py: Python<'_>, contents: Vec<Vec<u8>>, plan: &str) -> PyResult<Self> {
        let Plan { change, seed, params } = error::from_json("plan", plan)?;
        let made = py.detach(|| {
            let mut networks =
                contents.into_iter().map(network).collect::<tyrex::Result<Vec<_>>>()?;
            if networks.is_empty() {
                return Err(tyrex::Error::InvalidModel("an ensemble without a base".to_owned()));
            }
            let base = networks.remove(0);
            tyrex::change::Ensemble::of_networks(base, networks, change, seed, params)
        });
        made.or_raise().map(Self::from)
    }

    /// The files of its models, the base first.
    fn contents<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let metadata = ExportMetadata::default();
        let models = std::iter::once(self.inner.base()).chain(self.inner.members());
        let networks = models.map(|model| model.network().ok_or_else(not_written));
        networks.map(|network| Ok(PyBytes::new(py, &onnx::write(network?, &metadata)))).collect()
    }

    /// How its models were made, as JSON.
    fn plan(&self) -> PyResult<String> {
        match self.inner.origin().clone() {
            Origin::Trained { change, seed, params } => error::json(&Plan { change, seed, params }),
            Origin::Given(_) => Err(not_written()),
        }
    }

    /// The change of the models, in words.
    #[getter]
    fn change(&self) -> String {
        self.inner.origin().description()
    }

    /// The seed of the models, if they were trained here.
    #[getter]
    fn seed(&self) -> Option<u64> {
        match self.inner.origin() {
            Origin::Trained { seed, .. } => Some(seed.0),
            Origin::Given(_) => None,
        }
    }

    /// The probability of the favourable class: a line per model, a column per row of the table.
    #[pyo3(signature = (explainer, rows))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        explainer: &Explainer,
        rows: &Table,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let scores = explainer.run(py, Some(self), None, |_| {
            let points = explainer.points_for(&self.inner, rows)?;
            let members = self.inner.members().iter();
            Ok((points.len(), members.flat_map(|member| member.score(&points)).collect()))
        });
        let (rows, scores): (usize, Vec<f32>) = scores?.whole()?;
        scores.into_pyarray(py).reshape([self.inner.members().len(), rows])
    }

    /// How far the models moved on the rows of a table, as JSON.
    fn observed_change(
        &self,
        py: Python<'_>,
        explainer: &Explainer,
        rows: &Table,
    ) -> PyResult<String> {
        let observed = explainer.run(py, Some(self), None, |_| {
            self.inner.observed_change(&explainer.points_for(&self.inner, rows)?)
        });
        error::json(&observed?.whole()?)
    }

    fn __len__(&self) -> usize {
        self.inner.members().len()
    }
}
