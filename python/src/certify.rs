//! Certificates for record batches.

use std::sync::Arc;

use pyo3::prelude::*;
use tyrex::Seed;
use tyrex::certificate::{CertificateDocument, Terms};
use tyrex::counterfactual::Tick;
use tyrex::data::{Cell, Content};
use tyrex::explain::{Ask, Fresh};
use tyrex::{Error, Points};

use crate::adviser::failures_of;
use crate::arrow::Reader;
use crate::batchwise::{Line, Work, by_applicant, features};
use crate::ensemble::Ensemble;
use crate::error;
use crate::explainer::{Explainer, run_with, tick};
use crate::function::Failure;
use crate::run::Watch;

/// The terms of certificates, and the retrained models that they rest on.
pub(crate) struct Certification {
    explainer: tyrex::Explainer,
    fresh: Option<Fresh>,
    terms: Terms,
    seed: Seed,
    failures: Vec<Arc<Failure>>,
}

impl Certification {
    /// Compares the model with the retrained ones.
    pub(crate) fn new(
        py: Python<'_>,
        explainer: &Explainer,
        ensemble: Option<&Ensemble>,
        steered: bool,
        terms: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let terms: Terms = error::from_json("options", terms)?;
        let seed = Ask { seed, ..Ask::default() }.certificate_seed();
        let failures = failures_of(explainer, ensemble);
        let fresh = run_with(py, &failures, None, |watch| {
            let fresh = |own: &Ensemble| {
                let models = (*own.inner).clone();
                explainer.inner.retraining().fresh(models, steered, &|_| watch.go_on())
            };
            ensemble.map(fresh).transpose()
        })?;
        let fresh = fresh.whole()?;
        Ok(Self { explainer: explainer.inner.clone(), fresh, terms, seed, failures })
    }
}

impl Work for Certification {
    fn inputs(&self) -> Vec<&str> {
        features(&self.explainer)
    }

    fn columns(&self) -> tyrex::Result<Vec<(String, Content)>> {
        let columns = [
            ("row", Content::Integer),
            ("verdict", Content::Text),
            ("probability", Content::Real),
            ("sentence", Content::Text),
            ("certificate", Content::Text),
        ];
        Ok(columns.into_iter().map(|(name, content)| (name.to_owned(), content)).collect())
    }

    fn lines(&self, rows: usize, cells: &[Reader<'_>], watch: &Watch) -> tyrex::Result<Vec<Line>> {
        by_applicant(&self.explainer, rows, cells, |applicants| {
            let mut points = Points::new(self.explainer.encoder().dim());
            applicants.iter().for_each(|applicant| points.push(&applicant.point));
            let go_on = || tick(&self.failures, watch, Tick::Reading);
            let made = self.explainer.certify(
                &points,
                self.fresh.as_ref(),
                &self.terms,
                self.seed,
                go_on,
            )?;
            let line = |certificate| {
                let document = CertificateDocument::from(certificate);
                let text = serde_json::to_string(&document)
                    .map_err(|error| Error::param("certificate", error, "finite numbers"))?;
                let shown = document.certificate.ensemble().map(|tier| tier.probability);
                let verdict = serde_json::to_value(document.words.verdict).unwrap_or_default();
                Ok(vec![
                    Cell::Empty,
                    Cell::text(verdict.as_str().unwrap_or_default().to_owned()),
                    shown.map_or(Cell::Empty, Cell::Real),
                    Cell::text(document.words.sentence),
                    Cell::text(text),
                ])
            };
            made.into_iter().map(line).collect()
        })
    }

    fn failures(&self) -> Vec<Arc<Failure>> {
        self.failures.clone()
    }
}
