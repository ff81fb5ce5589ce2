//! The explainer: calls of the library's façade, and its answers for Python.

use std::ops::ControlFlow;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};
use tyrex::calibrate::{Goal, TAUS};
use tyrex::certificate::{Certificate, CertificateDocument, Terms, WrittenCertificate};
use tyrex::change::ModelChange;
use tyrex::counterfactual::{MethodSpec, Reason, Tick};
use tyrex::explain::{
    Answered, Applicant, Ask, CALIBRATED_ROWS, CONFIDENCE, CalibrationTerms, Defaults, PROMISE,
    Part, PortfolioTerms, Progress, Promise, RETRAINED_MODELS, RetrainingTerms, RowStability,
    SEARCH_MODELS, SIBLINGS, SearchedModels, StabilityTerms, TUNING_MODELS,
};
use tyrex::model::TrainParams;
use tyrex::{Points, Seed};

use crate::data::{Data, Schema};
use crate::ensemble::Ensemble;
use crate::error::{self, OrRaise};
use crate::function::{Failure, Function};
use crate::model::{self, Model};
use crate::run::{Ended, Watch, run};
use crate::table::Table;

/// A model and its rows.
#[pyclass(frozen, module = "tyrex._native")]
#[derive(Debug)]
pub(crate) struct Explainer {
    pub(crate) inner: tyrex::explain::Explainer,
    /// Of a model that is a Python function.
    pub(crate) failure: Option<Arc<Failure>>,
}

/// A question as Python writes it. A parameter that the method does not have raises `TypeError`, as
/// for an unknown keyword.
pub(crate) fn ask(text: &str, usual: &'static str) -> PyResult<Ask> {
    let ask = Ask::read(&error::from_json("options", text)?, &[]).or_raise()?;
    if let Ok(method) = MethodSpec::named(ask.method.as_deref().unwrap_or(usual), ask.protocol) {
        let own = method.param_names();
        if let Some(unknown) = ask.params.keys().find(|name| !own.contains(name)) {
            let name = method.name();
            let there = match own.as_slice() {
                [] => format!("{name} has none"),
                own => format!("{name} has {}", own.join(", ")),
            };
            return Err(PyTypeError::new_err(format!(
                "explain has no parameter `{unknown}`; {there}"
            )));
        }
    }
    Ok(ask)
}

/// Long work that calls some functions, with their exceptions raised. Calls of one function take
/// turns, so that each gets its own exceptions.
pub(crate) fn run_with<T: Send>(
    py: Python<'_>,
    failures: &[Arc<Failure>],
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> tyrex::Result<T> + Send,
) -> PyResult<Ended<T>> {
    // Each once and in a fixed order, so that no two calls deadlock.
    let mut order: Vec<&Arc<Failure>> = failures.iter().collect();
    order.sort_by_key(|failure| Arc::as_ptr(failure));
    order.dedup_by(|one, other| Arc::ptr_eq(one, other));
    let _turns = order.iter().map(|failure| failure.turn(py)).collect::<PyResult<Vec<_>>>()?;
    let Ended { value, interrupt } = run(py, progress, work)?;
    let mut exceptions: Vec<PyErr> = order.iter().filter_map(|failure| failure.take()).collect();
    if !exceptions.is_empty() {
        return Err(exceptions.swap_remove(0));
    }
    match value {
        Ok(value) => Ok(Ended { value, interrupt }),
        // Work that was stopped may have no result.
        Err(error) => Err(interrupt.unwrap_or_else(|| error::exception(error))),
    }
}

/// The callback of a search: counts the answers, and returns whether to continue.
pub(crate) fn tick(failures: &[Arc<Failure>], watch: &Watch, tick: Tick) -> ControlFlow<()> {
    if failures.iter().any(|failure| failure.happened()) {
        return ControlFlow::Break(());
    }
    match tick {
        Tick::Answered => watch.count(),
        Tick::Reading => watch.go_on(),
    }
}

impl Explainer {
    /// The failures of the model and of retrained ones.
    fn failures(&self, ensemble: Option<&Ensemble>) -> Vec<Arc<Failure>> {
        let of_models = ensemble.iter().flat_map(|ensemble| &ensemble.failures);
        self.failure.iter().chain(of_models).cloned().collect()
    }

    /// Long work, with the exceptions of functions raised.
    pub(crate) fn run<T: Send>(
        &self,
        py: Python<'_>,
        ensemble: Option<&Ensemble>,
        progress: Option<&Bound<'_, PyAny>>,
        work: impl FnOnce(&Watch) -> tyrex::Result<T> + Send,
    ) -> PyResult<Ended<T>> {
        run_with(py, &self.failures(ensemble), progress, work)
    }

    /// The rows of a table.
    fn read(&self, table: &Table) -> tyrex::Result<Vec<Applicant>> {
        self.inner.applicants().read(&table.0)
    }

    /// The rows of a table, or the rejected applicants of the data.
    fn asked(&self, rows: Option<&Table>) -> tyrex::Result<Vec<Applicant>> {
        match rows {
            Some(table) => self.read(table),
            None => Ok(self.inner.applicants().rejected(self.inner.reference().applicants())),
        }
    }

    /// The encoded rows.
    fn points(&self, applicants: &[Applicant]) -> Points {
        let mut points = Points::new(self.inner.points().dim());
        for applicant in applicants {
            points.push(&applicant.point);
        }
        points
    }

    /// The encoded rows of a table for an ensemble of this model. None may be dropped: the position
    /// of an answer is that of its row.
    pub(crate) fn points_for(
        &self,
        ensemble: &tyrex::change::Ensemble,
        rows: &Table,
    ) -> tyrex::Result<Points> {
        self.inner.retraining().check(ensemble)?;
        let applicants = self.read(rows)?;
        if applicants.len() < rows.0.rows() {
            return Err(tyrex::Error::Dimension {
                what: "rows without missing cells".to_owned(),
                expected: rows.0.rows(),
                got: applicants.len(),
            });
        }
        Ok(self.points(&applicants))
    }

    /// The terms of an ensemble.
    fn terms(
        &self,
        change: Option<&str>,
        change_params: &str,
        models: Option<usize>,
        params: Option<&str>,
        seed: u64,
    ) -> PyResult<RetrainingTerms> {
        let usual = ModelChange::default();
        let change = change.unwrap_or(usual.name());
        let change = ModelChange::with_params(change, change_params).or_raise()?;
        let models = models.unwrap_or(RETRAINED_MODELS);
        let own = self.inner.retraining().params().or_raise()?;
        let params = match params {
            Some(changes) => {
                let changes: Map<String, Value> = error::from_json("training parameters", changes)?;
                own.with(&changes).or_raise()?
            }
            None => own,
        };
        Ok(RetrainingTerms { change, models, params, seed: Seed(seed) })
    }

    fn part(&self, part: Option<&str>) -> PyResult<Part> {
        match part {
            None => Ok(self.inner.reference().applicants()),
            Some("train") => Ok(Part::Train),
            Some("test") => Ok(Part::Test),
            Some("all") => Ok(Part::All),
            Some(other) => Err(error::parameter(format!(
                "parameter `part` is {other}, expected train, test or all"
            ))),
        }
    }
}

#[pymethods]
impl Explainer {
    /// Trains a network on labelled rows.
    #[staticmethod]
    #[pyo3(signature = (data, params, seed, progress = None))]
    fn train(
        py: Python<'_>,
        data: &Data,
        params: &str,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let changes: Map<String, Value> = error::from_json("training parameters", params)?;
        let params = TrainParams::default().with(&changes).or_raise()?;
        let tyrex::explain::Reference::Labelled(dataset) = &data.0 else {
            return Err(error::parameter("training needs rows with labels"));
        };
        let dataset = dataset.clone();
        let trained = run(py, progress, |watch| {
            watch.expect(params.epochs);
            tyrex::explain::Explainer::train(dataset, &params, Seed(seed), |_| watch.count())
        })?;
        Ok(Self { inner: trained.whole()?.or_raise()?, failure: None })
    }

    /// An existing model and rows.
    #[staticmethod]
    fn with_model(py: Python<'_>, data: &Data, model: &Model) -> PyResult<Self> {
        let (data, model) = (data.0.clone(), model.model.clone());
        let make = move || tyrex::explain::Explainer::with_model(data, model);
        let inner = py.detach(make).or_raise()?;
        Ok(Self { inner, failure: None })
    }

    /// A function of rows, and rows.
    #[staticmethod]
    #[pyo3(signature = (data, scores, gradients = None))]
    fn with_function(
        py: Python<'_>,
        data: &Data,
        scores: Py<PyAny>,
        gradients: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let failure = Arc::new(Failure::default());
        let own = Arc::clone(&failure);
        let rows = data.0.clone();
        let made = py.detach(move || {
            tyrex::explain::Explainer::with_black_box(rows, |encoder| {
                Ok(Arc::new(Function::new(scores, gradients, encoder, own)?))
            })
        });
        if let Some(exception) = failure.take() {
            return Err(exception);
        }
        Ok(Self { inner: made.or_raise()?, failure: Some(failure) })
    }

    /// The schema.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.inner.schema().clone())
    }

    /// The fingerprint of the model, which depends on its weights.
    #[getter]
    fn fingerprint(&self) -> String {
        self.inner.fingerprint().to_string()
    }

    /// `network`, `trees` or `function`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.model().summary().kind()
    }

    /// Whether the model has gradients or is trees, so that searches other than those among data
    /// rows can run on it.
    #[getter]
    fn is_searchable(&self) -> bool {
        tyrex::counterfactual::is_searchable(self.inner.model())
    }

    /// The probability of the favourable class, for every own row that was kept.
    fn own_scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        self.inner.scores().to_vec().into_pyarray(py)
    }

    /// For every own row that was kept, its row in the table.
    fn own_rows(&self) -> Vec<usize> {
        self.inner.reference().table_rows().to_vec()
    }

    /// The rows of the table that trained the model: those that the schema names, or all.
    fn training_rows(&self) -> Vec<usize> {
        let reference = self.inner.reference();
        let rows = match reference.part(Part::Train) {
            none if none.is_empty() => reference.part(Part::All),
            rows => rows,
        };
        rows.into_iter().map(|row| reference.table_rows()[row]).collect()
    }

    /// The numbers of models for a promise at a confidence, or for the default ones: to search over,
    /// to choose the margin, to certify with, and to compare the model in use with.
    #[staticmethod]
    fn sets_for(promise: Option<f64>, confidence: Option<f64>) -> PyResult<[usize; 4]> {
        let (promise, confidence) = (promise.unwrap_or(PROMISE), confidence.unwrap_or(CONFIDENCE));
        let fresh = Promise::new(promise, confidence).or_raise()?.fresh_models();
        Ok([SEARCH_MODELS, TUNING_MODELS, fresh, SIBLINGS])
    }

    /// The probability of the favourable class, for the rows of a table that are not dropped, and
    /// which rows those are.
    #[pyo3(signature = (rows))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        rows: &Table,
    ) -> PyResult<(Vec<usize>, Bound<'py, PyArray1<f32>>)> {
        let applicants = self.run(py, None, None, |_| self.read(rows))?.whole()?;
        let scores: Vec<f32> = applicants.iter().map(|applicant| applicant.score).collect();
        Ok((applicants.iter().map(|applicant| applicant.row).collect(), scores.into_pyarray(py)))
    }

    /// The rows of the table that the model rejects, of a part: `train`, `test`, `all`, or the
    /// applicants.
    #[pyo3(signature = (part = None))]
    fn rejected(&self, part: Option<&str>) -> PyResult<Vec<usize>> {
        let part = self.part(part)?;
        Ok(self.inner.applicants().rejected(part).iter().map(|applicant| applicant.row).collect())
    }

    /// The accuracy of the model, as JSON.
    fn performance(&self) -> PyResult<String> {
        error::json(&self.inner.performances())
    }

    /// How the model was trained or would be retrained, as JSON.
    fn training_params(&self) -> PyResult<String> {
        error::json(&self.inner.retraining().params().or_raise()?)
    }

    /// The network as an ONNX file, with the schema and the encoder in its metadata.
    fn to_onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(model::bytes(py, &self.inner.to_onnx().or_raise()?))
    }

    /// The default method.
    #[getter]
    fn usual_method(&self) -> &'static str {
        self.inner.usual_method()
    }

    /// Advice for the rows of a table, or for the first own ones that are rejected: the document of
    /// the answer, the seconds each row took, and whether Ctrl-C ended the search. The ensemble is
    /// used for certificates and for `tau = auto`, in place of models trained now. `training` are
    /// training parameters that replace those of the model's recipe. The portfolio is also stated by
    /// the groups of `by` and weighted by the column `amount`.
    #[pyo3(signature = (rows, options, by, amount = None, limit = None, ensemble = None, training = None, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of the Python method")]
    fn explain(
        &self,
        py: Python<'_>,
        rows: Option<&Table>,
        options: &str,
        by: Vec<String>,
        amount: Option<String>,
        limit: Option<usize>,
        ensemble: Option<&Ensemble>,
        training: Option<&str>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(String, Vec<f64>, bool)> {
        let by = by.iter().map(|by| by.parse()).collect::<tyrex::Result<_>>().or_raise()?;
        let terms = PortfolioTerms { by, amount };
        let table = rows.map_or_else(|| self.inner.reference().table(), |table| &table.0);
        let explainer = match training {
            Some(changes) => {
                let changes: Map<String, Value> = error::from_json("training parameters", changes)?;
                self.inner.retraining().with(&changes).or_raise()?
            }
            None => self.inner.clone(),
        };
        let given = ensemble.map(|ensemble| &*ensemble.inner);
        let failures = self.failures(ensemble);
        let mut ask = ask(options, self.inner.usual_method())?;
        let promise = ask.for_model(&explainer, given).promise;
        if terms.needs_table() && promise.is_none() {
            let expected = "none: they are about promises, and this search makes none";
            return Err(tyrex::Error::param("by or amount", "given", expected)).or_raise();
        }
        // A promise without certificates says nothing.
        ask.certify |= promise.is_some();
        // Checked before any work, on this thread.
        ask.for_model(&explainer, given).request().or_raise()?;
        let ended = self.run(py, ensemble, progress, |watch| {
            let mut applicants = self.asked(rows)?;
            applicants.truncate(limit.unwrap_or(usize::MAX));
            terms.check(table, applicants.iter().map(|applicant| applicant.row))?;
            // One run for all stages, so that the searches notice a failure of a function.
            let report = |progress: Progress| {
                watch.at(progress.done, progress.total);
                tick(&failures, watch, Tick::Reading)
            };
            explainer.answer(&applicants, &ask, given, report)
        })?;
        let answered = ended.value;
        let Answered { advice, certificates, .. } = &answered;
        let interrupt = ended.interrupt;
        let stopped = advice.iter().any(|each| each.outcome.reason() == Some(Reason::Cancelled));
        if let Some(other) = interrupt.filter(|error| !is_interrupt(py, error)) {
            return Err(other);
        }
        let tries = ask.tries(advice.len());
        let documents = self.run(py, ensemble, None, |watch| {
            let document = |(each, certificate): (_, &Option<Certificate>)| {
                // After Ctrl-C the remaining stages are skipped.
                let going = !stopped && watch.go_on().is_continue();
                let tries = if going { tries } else { 0 };
                answered.row(each, certificate.as_ref(), tries, |each| tick(&failures, watch, each))
            };
            advice.iter().zip(certificates).map(document).collect::<tyrex::Result<Vec<_>>>()
        })?;
        let stopped = stopped || documents.interrupt.is_some();
        if let Some(other) = documents.interrupt.filter(|error| !is_interrupt(py, error)) {
            return Err(other);
        }
        let warnings = explainer.warnings(answered.adviser.request(), None);
        let document = answered.document(documents.value, &terms, table, warnings).or_raise()?;
        let seconds = advice.iter().map(|each| each.outcome.seconds).collect();
        Ok((error::json(&document)?, seconds, stopped))
    }

    /// The measures of the rows of a table, or of the own applicants: a column for each.
    #[pyo3(signature = (rows, terms, seed, progress = None))]
    fn stability<'py>(
        &self,
        py: Python<'py>,
        rows: Option<&Table>,
        terms: &str,
        seed: u64,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<(&'static str, Bound<'py, PyAny>)>> {
        let terms: StabilityTerms = error::from_json("options", terms)?;
        let terms = StabilityTerms { seed: Seed(seed).derive("stability"), ..terms };
        let part = self.part(None)?;
        let failures = self.failures(None);
        let measured = self.run(py, None, progress, |watch| {
            let applicants = match rows {
                Some(table) => self.read(table)?,
                None => self.inner.applicants().part(part),
            };
            watch.expect(applicants.len());
            self.inner
                .stability(&terms)?
                .read(&applicants, || tick(&failures, watch, Tick::Answered))
        })?;
        let measured = measured.whole()?;
        let numbers = |number: fn(&RowStability) -> f64| {
            measured.iter().map(number).collect::<Vec<f64>>().into_pyarray(py).into_any()
        };
        let rows: Vec<i64> = measured.iter().map(|each| each.row as i64).collect();
        Ok(vec![
            ("row", rows.into_pyarray(py).into_any()),
            ("score", numbers(|each| f64::from(each.score))),
            ("mean", numbers(|each| each.mean)),
            ("relaxed_stability", numbers(|each| each.relaxed_stability)),
            ("stability", numbers(|each| each.stability)),
            ("gamma", numbers(|each| each.gamma)),
        ])
    }

    /// Retrains the network many times.
    #[pyo3(signature = (change, change_params, models, params, seed, progress = None))]
    fn retrain(
        &self,
        py: Python<'_>,
        change: Option<&str>,
        change_params: &str,
        models: Option<usize>,
        params: Option<&str>,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Ensemble> {
        let terms = self.terms(change, change_params, models, params, seed)?;
        let trained = self.run(py, None, progress, |watch| {
            watch.expect(usize::try_from(terms.epochs()).unwrap_or(usize::MAX));
            self.inner.retraining().train(&terms, |_, _| watch.count())
        })?;
        Ok(trained.whole()?.into())
    }

    /// The terms of an ensemble, as JSON, to make its models one by one.
    #[pyo3(signature = (change, change_params, models, params, seed))]
    fn ensemble_terms(
        &self,
        change: Option<&str>,
        change_params: &str,
        models: Option<usize>,
        params: Option<&str>,
        seed: u64,
    ) -> PyResult<String> {
        error::json(&self.terms(change, change_params, models, params, seed)?)
    }

    /// A certificate for every row of a table that is not dropped, as JSON, each with its sentence,
    /// after its row, and the number of models that are left out, since they took part in the search.
    /// `searched` are those that the advice records, as JSON, or those in the column `parameters`;
    /// `steered` says whether the search used the models of the ensemble.
    #[pyo3(signature = (rows, ensemble, searched, steered, terms, seed, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of the Python function")]
    fn certify(
        &self,
        py: Python<'_>,
        rows: &Table,
        ensemble: Option<&Ensemble>,
        searched: Option<&str>,
        steered: Option<bool>,
        terms: &str,
        seed: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<(usize, String)>, usize)> {
        let terms: Terms = error::from_json("options", terms)?;
        let searched = match searched {
            Some(text) => error::from_json("searched", text)?,
            None => SearchedModels::in_table(&rows.0).or_raise()?,
        };
        let seed = Ask { seed, ..Ask::default() }.certificate_seed();
        let certified = self.run(py, ensemble, progress, |watch| {
            let applicants = self.read(rows)?;
            watch.expect(applicants.len());
            let fresh = |own: &Ensemble| {
                let (models, watch) = ((*own.inner).clone(), |_| watch.go_on());
                self.inner.retraining().unsearched(searched.as_ref(), models, steered, &watch)
            };
            let (fresh, left_out) = ensemble.map(fresh).transpose()?.unzip();
            let points = self.points(&applicants);
            let certificates =
                self.inner.certify(&points, fresh.as_ref(), &terms, seed, || watch.count())?;
            Ok((applicants, certificates, left_out.unwrap_or(0)))
        })?;
        let (applicants, certificates, left_out) = certified.whole()?;
        let document = |(applicant, certificate): (&Applicant, Certificate)| {
            Ok((applicant.row, error::json(&CertificateDocument::from(certificate))?))
        };
        let documents = applicants.iter().zip(certificates).map(document);
        Ok((documents.collect::<PyResult<_>>()?, left_out))
    }

    /// Recomputes the certificates of a document and compares them, as JSON.
    #[pyo3(signature = (certificates, ensemble = None, progress = None))]
    fn verify(
        &self,
        py: Python<'_>,
        certificates: &str,
        ensemble: Option<&Ensemble>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let written = WrittenCertificate::all_in(certificates).or_raise()?;
        let failures = self.failures(ensemble);
        let verified = self.run(py, ensemble, progress, |watch| {
            watch.expect(written.len());
            let models = ensemble.map(|own| (*own.inner).clone().fresh());
            let go_on = || tick(&failures, watch, Tick::Answered);
            self.inner.verify(&written, models.as_ref(), go_on)
        })?;
        error::json(&verified.whole()?)
    }

    /// Chooses the threshold for a required validity, as JSON.
    #[pyo3(signature = (goal, taus, factuals, options, ensemble, progress = None))]
    fn calibrate(
        &self,
        py: Python<'_>,
        goal: &str,
        taus: Option<Vec<f64>>,
        factuals: Option<usize>,
        options: &str,
        ensemble: &Ensemble,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let goal: Goal = error::from_json("options", goal)?;
        let taus = taus.unwrap_or_else(|| TAUS.to_vec());
        let usual = self.inner.usual_method();
        let mut ask = ask(options, usual)?;
        ask.method.get_or_insert_with(|| usual.to_owned());
        let request = ask.request().or_raise()?;
        let factuals = factuals.unwrap_or(CALIBRATED_ROWS);
        let terms = CalibrationTerms { goal, taus, request, factuals };
        let failures = self.failures(Some(ensemble));
        let calibration = self.run(py, Some(ensemble), progress, |watch| {
            let applicants = terms.searched(&self.asked(None)?);
            watch.expect(applicants.len().saturating_mul(terms.taus.len()));
            let go_on = |each| tick(&failures, watch, each);
            self.inner.calibrate(&applicants, &terms, &ensemble.inner, go_on)
        })?;
        error::json(&calibration.whole()?)
    }
}

pub(crate) fn is_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyKeyboardInterrupt>(py)
}

/// The names of the methods.
#[pyfunction]
pub(crate) fn method_names() -> Vec<&'static str> {
    MethodSpec::NAMES.to_vec()
}

/// The defaults of the library that signatures of the package show, as JSON.
#[pyfunction]
pub(crate) fn defaults() -> PyResult<String> {
    error::json(&Defaults::default())
}
