//! A promise to record, and its form for an audit.

use jiff::Timestamp;
use serde_json::Value;
use tyrex::certificate::Certificate;
use tyrex::explain::{Advice, Explainer, Meaning, PromisedProbability, Request, WrittenPromise};
use uuid::Uuid;

use super::entry::{Document, Entry};
use super::error::{Error, Result};
use super::values::Values;
use crate::new_id;

/// Maximum length of a subject, in characters.
pub(super) const LONGEST_SUBJECT: usize = 500;

/// A promise to record.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPromise {
    /// Its id. Recording twice with one id records once.
    pub id: Uuid,
    /// The subject: a pseudonymous reference.
    pub subject: String,
    /// Its content.
    pub document: Document,
    /// Method, parameters and seed: the library's request.
    pub request: Value,
    /// The fingerprint of the model it is given for.
    pub model: String,
    /// When it expires; `None` if it does not.
    pub holds_until: Option<Timestamp>,
}

impl NewPromise {
    /// The advice of an explainer, with a new id. `None` if there is no advice, or if it is a point
    /// and not a row.
    pub fn of(
        explainer: &Explainer,
        advice: &Advice,
        certificate: Option<&Certificate>,
        request: &Request,
        subject: impl Into<String>,
        holds_until: Option<Timestamp>,
    ) -> Option<Self> {
        let found = advice.found()?;
        let advised = advice.advised.as_ref()?;
        let schema = explainer.schema();
        Some(Self {
            id: new_id(),
            subject: subject.into(),
            document: Document {
                factual: Values::of(schema, &advice.applicant.values),
                advised: Values::of(schema, advised),
                score: found.score,
                stability: advice.stability,
                cost_l1: advice.cost.map(|cost| cost.l1),
                cost_l2: advice.cost.map(|cost| cost.l2),
                certificate: certificate.and_then(|each| serde_json::to_value(each).ok()),
                meaning: Some(Meaning::of(schema)),
                promised: request.promise.and(certificate).and_then(PromisedProbability::of),
            },
            request: serde_json::to_value(request).unwrap_or_default(),
            model: explainer.fingerprint().to_string(),
            holds_until,
        })
    }

    /// The document, as stored.
    pub(super) fn text(&self) -> Result<String> {
        let wrong = |error| tyrex::Error::param("promise", error, "numbers that JSON can hold");
        Ok(serde_json::to_string(&self.document).map_err(wrong)?)
    }

    /// Checks that the ledger accepts it.
    pub fn check(&self) -> Result<()> {
        check_subject(&self.subject)?;
        let score = self.document.score;
        if !score.is_finite() {
            return Err(tyrex::Error::param("score", score, "a probability").into());
        }
        Ok(())
    }
}

/// Checks that a text can be a subject. The error does not quote it: subjects stay out of logs.
pub fn check_subject(subject: &str) -> Result<()> {
    let length = subject.chars().count();
    let problem = if subject.trim().is_empty() {
        "it is empty".to_owned()
    } else if length > LONGEST_SUBJECT {
        format!("it has {length} characters")
    } else if subject.chars().any(char::is_control) {
        "it holds a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Subject { problem })
}

impl Entry {
    /// The promise as the library audits it, under the entry's id; `None` for an entry that is not
    /// a promise, and for one whose personal data was erased.
    pub fn written(&self) -> Option<WrittenPromise> {
        let given = self.given()?;
        let values = |values: &Values| {
            values.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
        };
        Some(WrittenPromise {
            name: self.id.to_string(),
            factual: Some(values(&given.document.factual)),
            advised: values(&given.document.advised),
            meaning: given.document.meaning.clone(),
            promised: given.document.promised,
        })
    }
}
