//! Measures of stability for record batches.

use std::sync::Arc;

use pyo3::prelude::*;
use tyrex::Seed;
use tyrex::counterfactual::Tick;
use tyrex::data::Content;
use tyrex::explain::{StabilityGauge, StabilityTerms};

use crate::adviser::failures_of;
use crate::arrow::Reader;
use crate::batchwise::{Line, Work, by_applicant, features};
use crate::error;
use crate::explainer::{Explainer, run_with, tick};
use crate::function::Failure;
use crate::run::Watch;

/// Neighbours drawn once, to measure any number of batches.
pub(crate) struct Measurement {
    explainer: tyrex::Explainer,
    gauge: StabilityGauge,
    failures: Vec<Arc<Failure>>,
}

impl Measurement {
    /// Draws the neighbours of these terms.
    pub(crate) fn new(
        py: Python<'_>,
        explainer: &Explainer,
        terms: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let terms: StabilityTerms = error::from_json("options", terms)?;
        let terms = StabilityTerms { seed: Seed(seed).derive("stability"), ..terms };
        let failures = failures_of(explainer, None);
        let gauge =
            run_with(py, &failures, None, |_| explainer.inner.stability(&terms))?.whole()?;
        Ok(Self { explainer: explainer.inner.clone(), gauge, failures })
    }
}

impl Work for Measurement {
    fn inputs(&self) -> Vec<&str> {
        features(&self.explainer)
    }

    fn columns(&self) -> tyrex::Result<Vec<(String, Content)>> {
        let columns = StabilityGauge::columns();
        Ok(columns.into_iter().map(|(name, content)| (name.to_owned(), content)).collect())
    }

    fn lines(&self, rows: usize, cells: &[Reader<'_>], watch: &Watch) -> tyrex::Result<Vec<Line>> {
        by_applicant(&self.explainer, rows, cells, |applicants| {
            let go_on = || tick(&self.failures, watch, Tick::Reading);
            let measured = self.gauge.read(applicants, go_on)?;
            Ok(self.gauge.lines(&measured).into_iter().map(Vec::from).collect())
        })
    }

    fn failures(&self) -> Vec<Arc<Failure>> {
        self.failures.clone()
    }
}
