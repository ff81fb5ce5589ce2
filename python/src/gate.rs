//! The gate: an audit of earlier advice under candidate models.

use std::sync::Arc;

use pyo3::prelude::*;
use tyrex::counterfactual::Tick;
use tyrex::explain::{Gate, GateCandidate, GateReport, METHOD, WrittenPromise};
use tyrex::report;

use crate::ensemble::Ensemble;
use crate::error::{self, OrRaise};
use crate::explainer::{Explainer, ask, is_interrupt, run_with, tick};
use crate::function::Failure;

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
    let mut ask = ask(options, METHOD)?;
    if ask.is_calibrated() {
        return Err(error::parameter(
            "parameter `tau` is auto, expected a number: an audit does not calibrate",
        ));
    }
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

/// The gate's report as a page of HTML.
#[pyfunction]
pub(crate) fn gate_html(report: &str) -> PyResult<String> {
    let report: GateReport = error::from_json("report", report)?;
    Ok(report::gate_html(&report))
}
