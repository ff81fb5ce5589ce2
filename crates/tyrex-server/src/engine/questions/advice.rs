//! Advice for rejected rows.

use std::ops::ControlFlow;

use serde_json::value::{RawValue, to_raw_value};
use tyrex::certificate::Certificate;
use tyrex::counterfactual::Reason;
use tyrex::explain::{Advice, Adviser, Applicant, Request, TRIES};

use super::Certifying;
use crate::engine::Served;
use crate::engine::error::{Error, Result};
use crate::engine::pool::Question;

/// Advice and its certificates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Advising {
    /// The search options.
    pub(crate) request: Request,
    /// The terms of the certificates, if requested.
    pub(crate) certifying: Option<Certifying>,
    /// Whether to report which rule prevents advice, for rows without advice.
    pub(crate) examining: bool,
}

/// The advice for one row.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) advice: Advice,
    pub(crate) certificate: Option<Certificate>,
    /// The library's document of both.
    pub(crate) document: Box<RawValue>,
}

impl Question for Advising {
    type Answer = Found;
    const AT_ONCE: usize = 8;

    fn answer(
        &self,
        model: &Served,
        applicants: &[Applicant],
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Found>> {
        let adviser = model.adviser(&self.request)?;
        let advice = adviser.advise(applicants, |_| go_on())?;
        self.documents(&adviser, advice, go_on)
    }
}

impl Advising {
    /// Certifies the advice, and writes its documents.
    pub(crate) fn documents(
        &self,
        adviser: &Adviser,
        advice: Vec<Advice>,
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Found>> {
        if advice.iter().any(|advice| advice.outcome.reason() == Some(Reason::Cancelled)) {
            let what = "the search was stopped before all rows were done".to_owned();
            return Err(tyrex::Error::Cancelled(what).into());
        }
        let points = advice.iter().filter_map(Advice::found).map(|found| &*found.point);
        let mut certificates = match &self.certifying {
            Some(certifying) => certifying.certify(adviser.explainer(), points, go_on)?.into_iter(),
            None => Vec::new().into_iter(),
        };
        let fresh = self.certifying.as_ref().and_then(|certifying| certifying.fresh.as_deref());
        let tries = if self.examining { TRIES } else { 0 };
        let document = |advice: Advice| {
            let certificate = advice.found().and_then(|_| certificates.next());
            let made = certificate.clone();
            let explained = adviser.explained(&advice, made, fresh, tries, |_| go_on())?;
            let document = to_raw_value(&explained)
                .map_err(|error| Error::Broken(format!("a document without text: {error}")))?;
            Ok(Found { advice, certificate, document })
        };
        advice.into_iter().map(document).collect()
    }
}
