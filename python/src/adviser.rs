//! Advice for record batches, and the retrained models that it needs.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};
use tyrex::Error;
use tyrex::counterfactual::Protocol;
use tyrex::counterfactual::Tick;
use tyrex::data::{Cell, Content};
use tyrex::explain::{
    Advice, AdviceFile, Adviser, Ask, CarriedModels, Fresh, Request, RetrainingTerms,
};
use tyrex::model::Mlp;
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::model::onnx::{self, ExportMetadata};
use tyrex_ledger::ledger::{NewPromise, Timestamp};

use crate::arrow::Reader;
use crate::batchwise::{Line, Work, by_applicant, features};
use crate::ensemble::Ensemble;
use crate::error::{self, OrRaise};
use crate::explainer::{Explainer, ask, run_with, tick};
use crate::function::Failure;
use crate::run::Watch;

/// The columns of a promise to record.
const PROMISE: [(&str, Content); 3] =
    [("holds_until", Content::Text), ("promise", Content::Text), ("salt", Content::Text)];

/// Retrained models as Python has them: what is known of the likeness, as JSON, and the files of each
/// set.
pub(crate) type Files<B> = (Option<String>, Vec<Vec<B>>);

/// Retrained models that can be prepared elsewhere.
pub(crate) struct Models(CarriedModels);

impl Models {
    /// The result of the comparison of the models, as JSON, and the files of each set.
    pub(crate) fn written(&self) -> PyResult<Files<Vec<u8>>> {
        let CarriedModels { sets, likeness } = &self.0;
        let file = |model: &Mlp| onnx::write(model, &ExportMetadata::default());
        let sets = sets.iter().map(|(_, set)| set.iter().map(file).collect()).collect();
        Ok((likeness.as_ref().map(error::json).transpose()?, sets))
    }
}

/// Until when promises hold, `None` for good, and the salt of their ids.
struct PromiseTerms {
    until: Mutex<Option<Timestamp>>,
    salt: String,
}

/// The end of promises: `for-good` or a time.
fn end(time: &str) -> PyResult<Option<Timestamp>> {
    if time == "for-good" {
        return Ok(None);
    }
    let wrong = |problem| error::parameter(format!("parameter `holds_until` is {time}: {problem}"));
    time.parse().map(Some).map_err(wrong)
}

/// A question, prepared once.
pub(crate) struct Question {
    adviser: Adviser,
    ask: Ask,
    fresh: Option<Arc<Fresh>>,
    models: Option<Models>,
    /// The terms of promises to record, if answers carry them.
    promises: Option<PromiseTerms>,
    failures: Vec<Arc<Failure>>,
}

/// The explainer, with other training parameters if they are given.
fn trained_with(explainer: &Explainer, training: Option<&str>) -> PyResult<tyrex::Explainer> {
    let Some(changes) = training else { return Ok(explainer.inner.clone()) };
    let changes: Map<String, Value> = error::from_json("training parameters", changes)?;
    explainer.inner.retraining().with(&changes).or_raise()
}

/// The question, with the promise and the method that it leaves open.
fn settled(
    explainer: &tyrex::Explainer,
    options: &str,
    given: Option<&tyrex::change::Ensemble>,
) -> PyResult<Ask> {
    let mut ask = ask(options, explainer.usual_method())?.for_model(explainer, given);
    if ask.is_calibrated() {
        let expected = "a number, which `tyrex.calibrate` finds: it depends on all rows at once";
        return Err(error::exception(Error::param("tau", "auto", expected)));
    }
    ask.certify |= ask.promise.is_some();
    ask.request().or_raise()?;
    Ok(ask)
}

/// Rejects a question whose answers cannot be recorded as promises.
fn can_promise(ask: &Ask) -> PyResult<()> {
    if ask.protocol != Protocol::Product {
        let expected = "product: a promise needs a row, and this protocol returns points";
        let name = ask.protocol.name();
        return Err(error::exception(Error::param("protocol", name, expected)));
    }
    if let Some(seconds) = ask.budget.seconds {
        let expected = "none with promises: a task that runs twice could stop at another answer, \
                        and both would be recorded; `max_steps` and `max_evaluations` limit the \
                        work in the same way each time";
        return Err(error::exception(Error::param("max_seconds", seconds, expected)));
    }
    Ok(())
}

/// The columns of the answers to a question, which are known before it is prepared.
pub(crate) fn answer_columns(
    explainer: &Explainer,
    options: &str,
    training: Option<&str>,
    ensemble: Option<&Ensemble>,
    promises: bool,
) -> PyResult<Vec<(String, Content)>> {
    let own = trained_with(explainer, training)?;
    let ask = settled(&own, options, ensemble.map(|ensemble| &*ensemble.inner))?;
    if promises {
        can_promise(&ask)?;
    }
    columns(&own, &ask.request().or_raise()?, promises).or_raise()
}

fn columns(
    explainer: &tyrex::Explainer,
    request: &Request,
    promises: bool,
) -> tyrex::Result<Vec<(String, Content)>> {
    let mut columns = AdviceFile::new(explainer, request).columns()?;
    let own = if promises { &PROMISE[..] } else { &[] };
    columns.extend(own.iter().map(|&(name, content)| (name.to_owned(), content)));
    Ok(columns)
}

fn network(content: &[u8]) -> tyrex::Result<Mlp> {
    ModelFile::from_bytes(content.to_vec(), &ImportOptions::default())?.core.into_network()
}

/// The failures of the functions in Python that a model and retrained ones are.
pub(crate) fn failures_of(explainer: &Explainer, ensemble: Option<&Ensemble>) -> Vec<Arc<Failure>> {
    let of_models = ensemble.iter().flat_map(|ensemble| &ensemble.failures);
    explainer.failure.iter().chain(of_models).cloned().collect()
}

impl Question {
    #[expect(clippy::too_many_arguments, reason = "they are the keywords of the Python function")]
    pub(crate) fn new(
        py: Python<'_>,
        explainer: &Explainer,
        options: &str,
        training: Option<&str>,
        ensemble: Option<&Ensemble>,
        models: Option<Files<Vec<u8>>>,
        promises: Option<(String, String)>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let own = trained_with(explainer, training)?;
        let given = ensemble.map(|ensemble| &*ensemble.inner);
        let ask = settled(&own, options, given)?;
        if promises.is_some() {
            can_promise(&ask)?;
        }
        let promises = promises
            .map(|(time, salt)| {
                Ok::<_, PyErr>(PromiseTerms { until: Mutex::new(end(&time)?), salt })
            })
            .transpose()?;
        let (likeness, sets) = models.map_or((None, None), |(own, sets)| (own, Some(sets)));
        let likeness = likeness.map(|text| error::from_json("likeness", &text)).transpose()?;
        let failures = failures_of(explainer, ensemble);
        let made = run_with(py, &failures, progress, |watch| {
            let report = |at: tyrex::explain::Progress| {
                watch.at(at.done, at.total);
                tick(&failures, watch, Tick::Reading)
            };
            let terms = if given.is_none() { own.carried_terms(&ask)? } else { Vec::new() };
            if let Some(sets) = sets {
                let read = |set: Vec<Vec<u8>>| set.iter().map(|each| network(each)).collect();
                let sets: Vec<Vec<Mlp>> =
                    sets.into_iter().map(read).collect::<tyrex::Result<_>>()?;
                let sets = terms.iter().cloned().zip(sets).collect();
                own.carry(&ask, CarriedModels { sets, likeness }, &report)?;
            }
            let is_carried = !terms.is_empty();
            let carried = is_carried.then(|| own.carried_models(&ask, &report)).transpose()?;
            let (searching, rest) = own.for_search(&ask, given, &report)?;
            let adviser = Adviser::of(&searching, &ask)?;
            let needs_fresh = ask.promise.is_some() || ask.certify;
            let fresh = if needs_fresh { searching.fresh(&ask, rest, &report)? } else { None };
            Ok((adviser, fresh, carried))
        })?;
        let (adviser, fresh, carried) = made.whole()?;
        Ok(Self { adviser, ask, fresh, models: carried.map(Models), promises, failures })
    }

    /// The cells of promises to record: until when they hold, and what they say.
    fn promises(&self, advice: &[Advice], watch: &Watch) -> tyrex::Result<Vec<Vec<Cell<'static>>>> {
        let Some(PromiseTerms { until, salt }) = &self.promises else {
            return Ok(vec![Vec::new(); advice.len()]);
        };
        let holds_until = *until.lock().unwrap_or_else(PoisonError::into_inner);
        let certificates = if self.ask.certify {
            self.adviser.certify(advice, self.fresh.as_deref(), &self.ask, |_| watch.go_on())?
        } else {
            vec![None; advice.len()]
        };
        let until = holds_until.map(|time| time.to_string()).unwrap_or_default();
        let (explainer, request) = (self.adviser.explainer(), self.adviser.request());
        let cells = |(advice, certificate): (&Advice, &Option<_>)| {
            let own =
                NewPromise::of(explainer, advice, certificate.as_ref(), request, "", holds_until);
            let Some(own) = own else { return Ok(Vec::new()) };
            let text = serde_json::to_string(&own.document)
                .map_err(|error| Error::param("promise", error, "numbers that JSON can hold"))?;
            Ok(vec![Cell::text(until.clone()), Cell::text(text), Cell::text(salt.clone())])
        };
        advice.iter().zip(&certificates).map(cells).collect()
    }
}

impl Work for Question {
    fn inputs(&self) -> Vec<&str> {
        features(self.adviser.explainer())
    }

    fn columns(&self) -> tyrex::Result<Vec<(String, Content)>> {
        columns(self.adviser.explainer(), self.adviser.request(), self.promises.is_some())
    }

    fn lines(&self, rows: usize, cells: &[Reader<'_>], watch: &Watch) -> tyrex::Result<Vec<Line>> {
        let explainer = self.adviser.explainer();
        by_applicant(explainer, rows, cells, |applicants| {
            let advice =
                self.adviser.advise(applicants, |each| tick(&self.failures, watch, each))?;
            let file = AdviceFile::new(explainer, self.adviser.request());
            let mut lines = file.lines(&advice, self.fresh.as_deref())?;
            for (line, promise) in lines.iter_mut().zip(self.promises(&advice, watch)?) {
                line.extend(promise);
            }
            Ok(lines)
        })
    }

    fn failures(&self) -> Vec<Arc<Failure>> {
        self.failures.clone()
    }

    fn status(&self) -> Option<usize> {
        Some(1)
    }

    fn models(&self) -> Option<&Models> {
        self.models.as_ref()
    }

    fn question(&self) -> PyResult<String> {
        error::json(&self.ask)
    }

    fn renew(&self, until: &str) -> PyResult<()> {
        if let Some(own) = &self.promises {
            *own.until.lock().unwrap_or_else(PoisonError::into_inner) = end(until)?;
        }
        Ok(())
    }
}

/// The terms of the models that are retrained for a question: for each set the number of models, and
/// the terms as JSON.
#[pyfunction]
#[pyo3(signature = (explainer, options, training = None))]
pub(crate) fn retraining_terms(
    explainer: &Explainer,
    options: &str,
    training: Option<&str>,
) -> PyResult<Vec<(usize, String)>> {
    let own = trained_with(explainer, training)?;
    let terms = own.carried_terms(&settled(&own, options, None)?).or_raise()?;
    terms.iter().map(|terms| Ok((terms.models, error::json(terms)?))).collect()
}

/// The file of one of the models of these terms, by its index. It has the same bits as the one that
/// is made with all others.
#[pyfunction]
pub(crate) fn retrained_member<'py>(
    py: Python<'py>,
    explainer: &Explainer,
    terms: &str,
    index: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let terms: RetrainingTerms = error::from_json("terms", terms)?;
    let made = run_with(py, &[], None, |watch| {
        explainer.inner.retraining().members(&terms, &[index], |_, _| watch.go_on())
    })?;
    let models = made.whole()?;
    let file = models.first().map(|model| onnx::write(model, &ExportMetadata::default()));
    Ok(PyBytes::new(py, &file.unwrap_or_default()))
}
