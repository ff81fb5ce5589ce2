//! The entries of the ledger.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tyrex::choice::Choice as _;
use tyrex::choices;
use tyrex::data::{Feature, FeatureKind, Schema};
use tyrex::explain::{FeatureChange, Meaning, PromisedProbability};
use uuid::Uuid;

use super::chain::{Hash, Line, commitment};
use super::error::{Error, Result};
use super::values::Values;
use crate::database::from_row;

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Entry {
    /// Its position, from 1, without gaps.
    pub sequence: u64,
    /// Its id, chosen by the caller.
    pub id: Uuid,
    /// When it was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub time: Timestamp,
    /// The content.
    #[serde(flatten)]
    pub content: Content,
    /// The hash of the previous entry.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub previous: Hash,
    /// Its own hash.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub hash: Hash,
}

/// The content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(clippy::large_enum_variant, reason = "nearly all entries are promises")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Advice was given.
    Promise(Promised),
    /// A promise was closed.
    Closed {
        /// The promise, by its sequence.
        promise: u64,
        /// How it ended.
        #[serde(rename = "as")]
        closing: Closing,
    },
    /// The data of a subject was erased.
    Forgotten {
        /// The promises, by their sequences.
        promises: Vec<u64>,
    },
}

/// A promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Promised {
    /// Its status.
    pub status: Status,
    /// The fingerprint of the model it was given for.
    pub model: String,
    /// Method, parameters and seed: the library's request.
    pub request: Value,
    /// When it expires; `None` if it does not.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub holds_until: Option<Timestamp>,
    /// Its subject and content, unless they were erased.
    #[serde(flatten)]
    pub given: Option<Given>,
}

/// The personal data of a promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Given {
    /// The subject: a pseudonymous reference.
    pub subject: String,
    /// Its content.
    #[serde(flatten)]
    pub document: Document,
}

/// The content of a promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Document {
    /// The original row.
    pub factual: Values,
    /// The advised row.
    pub advised: Values,
    /// The model's score of the advised row.
    pub score: f32,
    /// Its relaxed stability `R^`.
    pub stability: Option<f64>,
    /// Its distance in encoded space, by `L1`.
    pub cost_l1: Option<f64>,
    /// The same by `L2`.
    pub cost_l2: Option<f64>,
    /// Its certificate for a changed model.
    pub certificate: Option<Value>,
    /// The promised outcome. Entries of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
    /// The probability that was promised, if the question asked for one and it was certified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<PromisedProbability>,
}

/// The kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Advice was given.
    Promise,
    /// A promise was closed.
    Closed,
    /// The data of a subject was erased.
    Forgotten,
}

impl Kind {
    /// The name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Promise => "promise",
            Self::Closed => "closed",
            Self::Forgotten => "forgotten",
        }
    }
}

/// How a promise ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// The applicant followed the advice and was accepted.
    Fulfilled,
    /// It was withdrawn.
    Withdrawn,
}

impl Closing {
    /// The name in the database.
    pub fn name(self) -> &'static str {
        self.word()
    }

    fn named(name: &str) -> Option<Self> {
        Self::of_word(name)
    }
}

choices! { Closing "as" {
    Fulfilled = "fulfilled": "The applicant followed the advice and was accepted",
    Withdrawn = "withdrawn": "It was withdrawn",
} }

/// The status of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is valid.
    Open,
    /// The applicant followed the advice and was accepted.
    Fulfilled,
    /// It was withdrawn.
    Withdrawn,
    /// It has expired.
    Expired,
    /// The personal data was erased.
    Forgotten,
}

impl Status {
    /// The name, as in documents.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

choices! { Status "status" {
    Open = "open": "It is valid",
    Fulfilled = "fulfilled": "The applicant followed the advice and was accepted",
    Withdrawn = "withdrawn": "It was withdrawn",
    Expired = "expired": "It has expired",
    Forgotten = "forgotten": "The personal data was erased",
} }

impl Entry {
    /// The promise, if it is one.
    pub fn promise(&self) -> Option<&Promised> {
        match &self.content {
            Content::Promise(promised) => Some(promised),
            Content::Closed { .. } | Content::Forgotten { .. } => None,
        }
    }

    /// Its personal data, if it is a promise that is not forgotten.
    pub fn given(&self) -> Option<&Given> {
        self.promise()?.given.as_ref()
    }

    /// The promised changes, in the words of the schema of the promise's model; a feature that is
    /// unknown there counts as a number. None if this is not a promise or its data was erased.
    pub fn changes<'a>(&self, schema: impl Fn(&str) -> Option<&'a Schema>) -> Vec<FeatureChange> {
        let Some(Document { factual, advised, .. }) = self.given().map(|given| &given.document)
        else {
            return Vec::new();
        };
        let schema = self.promise().and_then(|promise| schema(&promise.model));
        let own = |name| schema?.features.iter().find(|feature| feature.name == name).cloned();
        let change = |(name, to)| {
            let from = factual.value(name).filter(|from| *from != to)?;
            let feature = own(name).unwrap_or_else(|| Feature::new(name, FeatureKind::Numeric));
            Some(FeatureChange::new(&feature, from, to))
        };
        advised.iter().filter_map(change).collect()
    }

    /// The kind of the entry.
    pub fn kind(&self) -> Kind {
        match self.content {
            Content::Promise(_) => Kind::Promise,
            Content::Closed { .. } => Kind::Closed,
            Content::Forgotten { .. } => Kind::Forgotten,
        }
    }
}

/// The problem of an entry that does not have its hash.
pub(super) const CHANGED: &str = "it was changed after it was written";

/// An entry as read: its row, and its status from later entries.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) line: Line,
    pub(super) hash: Vec<u8>,
    pub(super) status: String,
    pub(super) salt: Option<Vec<u8>>,
    pub(super) subject: Option<String>,
    pub(super) document: Option<String>,
}
from_row!(Found { hash, status, salt, subject, document, ..line });

impl Found {
    /// The entry, if it and its personal data are as they were written.
    pub(super) fn entry(self) -> Result<Entry> {
        let sequence = self.line.sequence as u64;
        let damaged = |problem: String| Error::Damaged { sequence, problem };
        if self.line.hash().0 != *self.hash {
            return Err(damaged(CHANGED.to_owned()));
        }
        let (salt, subject) = (self.salt.as_deref(), self.subject.as_deref());
        if let (Some(salt), Some(subject), Some(document)) = (salt, subject, &self.document)
            && self.line.commitment.as_deref() != Some(&commitment(salt, subject, document).0)
        {
            return Err(damaged("its personal data was changed".to_owned()));
        }
        let hash = |bytes: &[u8]| {
            Hash::of_bytes(bytes).ok_or_else(|| damaged("a hash is not 32 bytes".to_owned()))
        };
        let id = Uuid::parse_str(&self.line.id).map_err(|error| damaged(error.to_string()))?;
        let time = moment(&self.line.time).map_err(damaged)?;
        let content = match (&*self.line.kind, self.line.closes) {
            ("promise", _) => Content::Promise(self.promised().map_err(damaged)?),
            ("closed", Some(promise)) => Content::Closed {
                promise: promise as u64,
                closing: self
                    .line
                    .closed_as
                    .as_deref()
                    .and_then(Closing::named)
                    .ok_or_else(|| damaged("it does not say how it was closed".to_owned()))?,
            },
            ("forgotten", _) => Content::Forgotten {
                promises: forgets(self.line.forgets.as_deref()).map_err(damaged)?,
            },
            (other, _) => return Err(damaged(format!("its kind is `{other}`"))),
        };
        Ok(Entry {
            sequence,
            id,
            time,
            content,
            previous: hash(&self.line.previous)?,
            hash: hash(&self.hash)?,
        })
    }

    fn promised(&self) -> Result<Promised, String> {
        let line = &self.line;
        let status = Status::of_word(&self.status);
        let given = match (&self.subject, &self.document) {
            (Some(subject), Some(document)) => Some(Given {
                subject: subject.clone(),
                document: serde_json::from_str(document)
                    .map_err(|error| format!("its payload cannot be read: {error}"))?,
            }),
            _ => None,
        };
        let request = line.request.as_deref().unwrap_or_default();
        Ok(Promised {
            status: status.ok_or_else(|| format!("its status is `{}`", self.status))?,
            model: line.model.clone().ok_or("it has no model")?,
            request: serde_json::from_str(request)
                .map_err(|error| format!("its request cannot be read: {error}"))?,
            holds_until: line.holds_until.as_deref().map(moment).transpose()?,
            given,
        })
    }
}

/// The sequences that an entry of the kind `forgotten` names.
pub(super) fn forgets(list: Option<&str>) -> Result<Vec<u64>, String> {
    serde_json::from_str(list.unwrap_or_default())
        .map_err(|error| format!("its list cannot be read: {error}"))
}

fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|error| format!("`{text}` is not a time: {error}"))
}

/// A time as the ledger writes it: in UTC, to the microsecond, so that texts sort in the order of
/// times.
pub(super) fn written(moment: Timestamp) -> String {
    format!("{moment:.6}")
}
