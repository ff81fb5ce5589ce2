//! Models that were retrained in Python.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use tyrex::data::schema::ModelInput;
use tyrex::explain::{GivenModel, GivenSet};

use crate::error::OrRaise;
use crate::explainer::Explainer;
use crate::function::{Failure, Function};
use crate::model::Model;

/// A retrained model, as a function of the points of the model in use.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Retrained {
    model: Arc<dyn tyrex::model::Model>,
    /// Of a model that is a Python function.
    pub(crate) failure: Option<Arc<Failure>>,
}

impl Retrained {
    /// The model of an ensemble, in the set of that name.
    pub(crate) fn given(&self, name: String, set: Option<&str>) -> tyrex::Result<GivenModel> {
        let set = set.map(str::parse::<GivenSet>).transpose()?;
        Ok(GivenModel { name, set, model: Arc::clone(&self.model) })
    }
}

#[pymethods]
impl Retrained {
    /// A model that the native engine runs, beside the model in use. It takes raw columns, or else
    /// the columns that the explainer's schema names.
    #[staticmethod]
    fn of_model(py: Python<'_>, explainer: &Explainer, model: &Model, raw: bool) -> PyResult<Self> {
        let takes = if raw { ModelInput::Raw } else { explainer.inner.schema().model.input };
        let fitted = || explainer.inner.retraining().fitted(model.model.clone(), takes);
        py.detach(fitted).or_raise().map(|model| Self { model, failure: None })
    }

    /// A function of rows, beside the model in use.
    #[staticmethod]
    #[pyo3(signature = (explainer, scores, gradients = None))]
    fn of_function(
        explainer: &Explainer,
        scores: Py<PyAny>,
        gradients: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let failure = Arc::new(Failure::default());
        let encoder = explainer.inner.encoder();
        let model = Function::new(scores, gradients, encoder, Arc::clone(&failure)).or_raise()?;
        Ok(Self { model: Arc::new(model), failure: Some(failure) })
    }

    /// The probability of the favourable class, for every row of the explainer that was kept.
    fn own_scores<'py>(
        &self,
        py: Python<'py>,
        explainer: &Explainer,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let rows = explainer.inner.reference().rows();
        let points = explainer.inner.points();
        let scores = py.detach(|| {
            let by_rows = self.model.score_rows(rows);
            by_rows.unwrap_or_else(|| self.model.score(points))
        });
        match self.failure.as_ref().and_then(|failure| failure.take()) {
            Some(exception) => Err(exception),
            None => Ok(scores.into_pyarray(py)),
        }
    }
}
