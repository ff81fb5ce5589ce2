//! The gate: an audit of earlier advice under candidate models.

use std::sync::Arc;

use pyo3::prelude::*;
use tyrex::Error;
use tyrex::counterfactual::Tick;
use tyrex::data::{Cell, Content};
use tyrex::explain::{Ask, Gate, GateCandidate, GateReport, JudgedPromise, METHOD, WrittenPromise};
use tyrex::report;

use crate::adviser::failures_of;
use crate::arrow::Reader;
use crate::batchwise::{Line, Work};
use crate::ensemble::Ensemble;
use crate::error::{self, OrRaise};
use crate::explainer::{Explainer, ask, is_interrupt, run_with, tick};
use crate::function::Failure;
use crate::run::Watch;

/// Audits promises under candidates, the best candidate first: the gate's report as JSON, and
/// whether Ctrl-C ended the search for repairs.
#[pyfunction]
#[pyo3(signature = (candidates, promises, options, by, allow = None, confidence = None, ensemble = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are the keywords of the Python function")]
pub(crate) fn judge(
    py: Python<'_>,
    candidates: Vec<(String, Py<Explainer>)>,
    promises: &str,
    options: &str,
    by: Vec<String>,
    allow: Option<f64>,
    confidence: Option<f64>,
    ensemble: Option<&Ensemble>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, bool)> {
    let promises: Vec<WrittenPromise> = error::from_json("promises", promises)?;
    let mut ask = question(options)?;
    let by = by.iter().map(|by| by.parse()).collect::<tyrex::Result<_>>().or_raise()?;
    let explainers: Vec<&Explainer> = candidates.iter().map(|(_, own)| own.get()).collect();
    let mut failures: Vec<Arc<Failure>> =
        explainers.iter().filter_map(|explainer| explainer.failure.clone()).collect();
    let mut inner: Vec<tyrex::Explainer> =
        explainers.iter().map(|explainer| explainer.inner.clone()).collect();
    if let Some(ensemble) = ensemble {
        failures.extend(ensemble.failures.iter().cloned());
        let [candidate] = inner.as_mut_slice() else {
            return Err(error::parameter(
                "parameter `certify` is an ensemble, expected one candidate with it",
            ));
        };
        ask = ask.for_model(candidate, Some(&ensemble.inner));
        let ready = run_with(py, &failures, None, |watch| {
            candidate.for_repairs(&ask, &ensemble.inner, &|_| tick(&failures, watch, Tick::Reading))
        })?;
        *candidate = ready.whole()?;
    }
    let usual = Gate::new(ask.request().or_raise()?);
    let gate = Gate {
        by,
        allow: allow.unwrap_or(usual.allow),
        confidence: confidence.unwrap_or(usual.confidence),
        ..usual
    };
    let named = candidates.iter().zip(&inner);
    let candidates: Vec<GateCandidate<'_>> = named
        .map(|((name, _), explainer)| GateCandidate {
            name: name.clone(),
            explainer,
            has_only_promises: false,
        })
        .collect();
    let judged = run_with(py, &failures, progress, |watch| {
        watch.expect(2 * promises.len() * candidates.len());
        gate.judge(&candidates, &promises, |each| tick(&failures, watch, each))
    })?;
    if let Some(other) = judged.interrupt.filter(|error| !is_interrupt(py, error)) {
        return Err(other);
    }
    let report = judged.value;
    let cancelled = |repairs: &tyrex::explain::RepairSummary| repairs.cancelled > 0;
    let stopped = report
        .candidates
        .iter()
        .any(|each| cancelled(&each.from_promised) || cancelled(&each.from_factual));
    Ok((error::json(&report)?, stopped))
}

/// The question for repairs.
fn question(options: &str) -> PyResult<Ask> {
    let ask = ask(options, METHOD)?;
    if ask.is_calibrated() {
        return Err(error::parameter(
            "parameter `tau` is auto, expected a number: an audit does not calibrate",
        ));
    }
    Ok(ask)
}

/// The gate's report as a page of HTML.
#[pyfunction]
pub(crate) fn gate_html(report: &str) -> PyResult<String> {
    let report: GateReport = error::from_json("report", report)?;
    Ok(report::gate_html(&report))
}

/// The column of recorded promises, as answers carry them.
const PROMISE: &str = "promise";

/// Promises in record batches, judged by one model.
pub(crate) struct Judgement {
    explainer: tyrex::Explainer,
    gate: Gate,
    failures: Vec<Arc<Failure>>,
}

impl Judgement {
    /// Prepares the model, with the retrained models that repairs are searched with.
    pub(crate) fn new(
        py: Python<'_>,
        explainer: &Explainer,
        options: &str,
        ensemble: Option<&Ensemble>,
    ) -> PyResult<Self> {
        let mut ask = question(options)?;
        let failures = failures_of(explainer, ensemble);
        let mut inner = explainer.inner.clone();
        if let Some(ensemble) = ensemble {
            ask = ask.for_model(&inner, Some(&ensemble.inner));
            let ready = run_with(py, &failures, None, |watch| {
                let watch = |_| tick(&failures, watch, Tick::Reading);
                inner.for_repairs(&ask, &ensemble.inner, &watch)
            })?;
            inner = ready.whole()?;
        }
        Ok(Self { explainer: inner, gate: Gate::new(ask.request().or_raise()?), failures })
    }

    /// The judgements of promises, in their order.
    fn judged(
        &self,
        promises: &[WrittenPromise],
        watch: &Watch,
    ) -> tyrex::Result<Vec<JudgedPromise>> {
        let (name, explainer) = (String::new(), &self.explainer);
        let candidate = GateCandidate { name, explainer, has_only_promises: false };
        let go_on = |each| tick(&self.failures, watch, each);
        let report = self.gate.judge(&[candidate], promises, go_on)?;
        Ok(report.candidates.into_iter().flat_map(|own| own.promises).collect())
    }

    /// The line of a judged promise.
    fn line(&self, own: JudgedPromise) -> tyrex::Result<Vec<Cell<'static>>> {
        let real = |number: Option<f64>| number.map_or(Cell::Empty, Cell::Real);
        let single = |number: Option<f32>| number.map_or(Cell::Empty, Cell::single);
        let status = serde_json::to_value(own.status).unwrap_or_default();
        let repairs = own.repairs.map(|own| serde_json::to_string(&own)).transpose();
        let repairs = repairs.map_err(|error| Error::param("repairs", error, "finite numbers"))?;
        Ok(vec![
            Cell::Empty,
            Cell::text(status.as_str().unwrap_or_default().to_owned()),
            Cell::text(own.reason.unwrap_or_default()),
            single(own.score),
            real(own.stability),
            single(own.factual_score),
            Cell::text(own.sentence.unwrap_or_default()),
            Cell::text(repairs.unwrap_or_default()),
            Cell::text(self.explainer.fingerprint().to_string()),
        ])
    }
}

/// The promise in a cell; `None` in the row of somebody without advice.
fn promise(cell: &Cell<'_>) -> Result<Option<WrittenPromise>, String> {
    if *cell == Cell::Empty {
        return Ok(None);
    }
    let wrong = |error: serde_json::Error| format!("column `{PROMISE}`: {error}");
    let mut document: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&cell.to_string()).map_err(wrong)?;
    document.insert("name".to_owned(), "".into());
    serde_json::from_value(document.into()).map(Some).map_err(wrong)
}

impl Work for Judgement {
    fn inputs(&self) -> Vec<&str> {
        vec![PROMISE]
    }

    fn columns(&self) -> tyrex::Result<Vec<(String, Content)>> {
        let columns = [
            ("row", Content::Integer),
            ("status", Content::Text),
            ("reason", Content::Text),
            ("score", Content::Real),
            ("stability", Content::Real),
            ("factual_score", Content::Real),
            ("sentence", Content::Text),
            ("repairs", Content::Text),
            ("model", Content::Text),
        ];
        Ok(columns.into_iter().map(|(name, content)| (name.to_owned(), content)).collect())
    }

    fn lines(&self, rows: usize, cells: &[Reader<'_>], watch: &Watch) -> tyrex::Result<Vec<Line>> {
        let read: Vec<_> = (0..rows).map(|row| promise(&cells[0](row))).collect();
        let promises: Vec<WrittenPromise> = read.iter().flatten().flatten().cloned().collect();
        let judged: Vec<Result<JudgedPromise, String>> = match self.judged(&promises, watch) {
            Ok(judged) => judged.into_iter().map(Ok).collect(),
            // Such as a promise of another outcome: which one, says the judgement of each alone.
            Err(Error::InvalidModel(_) | Error::Model { .. } | Error::Param { .. }) => {
                let alone = |promise| self.judged(std::slice::from_ref(promise), watch);
                let alone = promises.iter().map(alone);
                alone
                    .map(|own| own.map(|mut own| own.remove(0)).map_err(|e| e.to_string()))
                    .collect()
            }
            Err(error) => return Err(error),
        };
        let mut judged = judged.into_iter();
        let line = |read: Result<Option<WrittenPromise>, String>| match read {
            Err(problem) => Ok(Err(problem)),
            Ok(None) => Ok(Ok(Vec::new())),
            Ok(Some(_)) => match judged.next() {
                Some(Ok(own)) => self.line(own).map(Ok),
                Some(Err(problem)) => Ok(Err(problem)),
                None => Ok(Ok(Vec::new())),
            },
        };
        read.into_iter().map(line).collect()
    }

    fn failures(&self) -> Vec<Arc<Failure>> {
        self.failures.clone()
    }

    fn status(&self) -> Option<usize> {
        Some(1)
    }
}
