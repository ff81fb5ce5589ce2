//! The gate: an audit of earlier advice under candidate models.

use std::sync::Arc;

use pyo3::prelude::*;
use tyrex::explain::{Candidate, Gate, GateReport, METHOD, WrittenPromise};
use tyrex::report;

use crate::error::{self, OrRaise};
use crate::explainer::{Explainer, ask, is_interrupt, run_with, tick};
use crate::function::Failure;

/// Audits promises under candidates, the best candidate first: the gate's report as JSON, and
/// whether Ctrl-C ended the search for repairs.
#[pyfunction]
#[pyo3(signature = (candidates, promises, options, by, allow = None, confidence = None, progress = None))]
pub(crate) fn judge(
    py: Python<'_>,
    candidates: Vec<(String, Py<Explainer>)>,
    promises: &str,
    options: &str,
    by: Vec<String>,
    allow: Option<f64>,
    confidence: Option<f64>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, bool)> {
    let promises: Vec<WrittenPromise> = error::from_json("promises", promises)?;
    let ask = ask(options, METHOD)?;
    if ask.is_calibrated() {
        return Err(error::parameter(
            "parameter `tau` is auto, expected a number: an audit does not calibrate",
        ));
    }
    let usual = Gate::new(ask.request().or_raise()?);
    let by = by.iter().map(|by| by.parse()).collect::<tyrex::Result<_>>().or_raise()?;
    let gate = Gate {
        by,
        allow: allow.unwrap_or(usual.allow),
        confidence: confidence.unwrap_or(usual.confidence),
        ..usual
    };
    let explainers: Vec<&Explainer> = candidates.iter().map(|(_, own)| own.get()).collect();
    let failures: Vec<Arc<Failure>> =
        explainers.iter().filter_map(|explainer| explainer.failure.clone()).collect();
    let named = candidates.iter().zip(&explainers);
    let candidates: Vec<Candidate<'_>> = named
        .map(|((name, _), explainer)| Candidate {
            name: name.clone(),
            explainer: &explainer.inner,
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
