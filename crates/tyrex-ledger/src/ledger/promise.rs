//! A promise on its way into the ledger, and out of it to an audit.

use jiff::Timestamp;
use serde_json::Value;
use tyrex::certificate::Certificate;
use tyrex::explain::{Advice, Explainer, Meaning, Request, WrittenPromise};
use uuid::Uuid;

use super::entry::{Document, Entry};
use super::error::{Error, Result};
use super::values::Values;

/// The longest subject, in characters.
pub(super) const LONGEST_SUBJECT: usize = 500;

/// A promise to record.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPromise {
    /// Its name. Recording it twice under one name records it once.
    pub id: Uuid,
    /// To whom it is given: a reference that means something to its owner only.
    pub subject: String,
    /// What it says.
    pub document: Document,
    /// Method, parameters and seed: the library's request.
    pub request: Value,
    /// The fingerprint of the model it is given for.
    pub model: String,
    /// The moment until which it holds; without one, for good.
    pub holds_until: Option<Timestamp>,
}

impl NewPromise {
    /// What an explainer has advised, under a new name. `None` if there is no advice, or none
    /// that a person could follow: a point and not a row.
    #[must_use]
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
            id: Uuid::now_v7(),
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
            },
            request: serde_json::to_value(request).unwrap_or_default(),
            model: explainer.fingerprint().to_string(),
            holds_until,
        })
    }

    /// Whether the ledger takes it.
    pub fn check(&self) -> Result<()> {
        check_subject(&self.subject)?;
        let score = self.document.score;
        if !score.is_finite() {
            return Err(tyrex::Error::param("score", score, "a probability").into());
        }
        Ok(())
    }
}

/// Whether a text can be a subject. The error does not repeat it: subjects stay out of logs.
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
    /// The promise as the library audits it, under the entry's id; `None` of an entry that is no
    /// promise, and of one whose personal data are forgotten.
    #[must_use]
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
        })
    }
}
