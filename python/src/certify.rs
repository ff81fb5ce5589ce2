//! Certificates for record batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::prelude::*;
use tyrex::Seed;
use tyrex::certificate::{CertificateDocument, Terms};
use tyrex::counterfactual::Tick;
use tyrex::data::{Cell, Content};
use tyrex::explain::{Applicant, Ask, Fresh, SearchedModels};
use tyrex::{Error, Points};

use crate::adviser::failures_of;
use crate::arrow::Reader;
use crate::batchwise::{Line, Work, by_applicant, features};
use crate::ensemble::Ensemble;
use crate::error;
use crate::explainer::{Explainer, run_with, tick};
use crate::function::Failure;
use crate::run::Watch;

/// The column of a file of advice that names the models of its search.
const PARAMETERS: &str = "parameters";

/// The terms of certificates, and the retrained models that they rest on.
pub(crate) struct Certification {
    explainer: tyrex::Explainer,
    fresh: Option<Fresh>,
    steered: Option<bool>,
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
        steered: Option<bool>,
        terms: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let terms: Terms = error::from_json("options", terms)?;
        let seed = Ask { seed, ..Ask::default() }.certificate_seed();
        let failures = failures_of(explainer, ensemble);
        let fresh = run_with(py, &failures, None, |watch| {
            let fresh = |own: &Ensemble| {
                let models = (*own.inner).clone();
                explainer.inner.retraining().fresh(models, false, &|_| watch.go_on())
            };
            ensemble.map(fresh).transpose()
        })?;
        let fresh = fresh.whole()?;
        Ok(Self { explainer: explainer.inner.clone(), fresh, steered, terms, seed, failures })
    }

    /// The lines of rows whose advice was found by the same search.
    fn certified(
        &self,
        applicants: &[&Applicant],
        searched: Option<&SearchedModels>,
        watch: &Watch,
    ) -> tyrex::Result<Vec<Vec<Cell<'static>>>> {
        let mut points = Points::new(self.explainer.encoder().dim());
        applicants.iter().for_each(|applicant| points.push(&applicant.point));
        let go_on = || tick(&self.failures, watch, Tick::Reading);
        let fresh = match &self.fresh {
            Some(all) => {
                let retraining = self.explainer.retraining();
                Some(retraining.unsearched_of(searched, all, self.steered)?.0)
            }
            None => None,
        };
        let made =
            self.explainer.certify(&points, fresh.as_ref(), &self.terms, self.seed, go_on)?;
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
    }
}

impl Work for Certification {
    fn inputs(&self) -> Vec<&str> {
        features(&self.explainer)
    }

    fn further(&self) -> Option<&str> {
        Some(PARAMETERS).filter(|name| !self.inputs().contains(name))
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
        let (cells, further) = cells.split_at(self.inputs().len());
        let record = |row: usize| match further.first().map(|parameters| parameters(row)) {
            Some(Cell::Text(text)) => text.into_owned(),
            _ => String::new(),
        };
        by_applicant(&self.explainer, rows, cells, |applicants| {
            let mut searches: BTreeMap<String, Vec<usize>> = BTreeMap::new();
            for (place, applicant) in applicants.iter().enumerate() {
                searches.entry(record(applicant.row)).or_default().push(place);
            }
            let mut lines = vec![Vec::new(); applicants.len()];
            for (parameters, places) in searches {
                let searched = SearchedModels::in_parameters(&parameters).map_err(|error| {
                    let expected = format!("a JSON document, or nothing: {error}");
                    Error::param(PARAMETERS, parameters, expected)
                })?;
                let own: Vec<&Applicant> = places.iter().map(|&place| &applicants[place]).collect();
                let made = self.certified(&own, searched.as_ref(), watch)?;
                for (place, line) in places.into_iter().zip(made) {
                    lines[place] = line;
                }
            }
            Ok(lines)
        })
    }

    fn failures(&self) -> Vec<Arc<Failure>> {
        self.failures.clone()
    }
}
