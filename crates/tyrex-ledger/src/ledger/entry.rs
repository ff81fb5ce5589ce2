//! What stands in the ledger.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tyrex::choice::Choice as _;
use tyrex::choices;
use tyrex::explain::Meaning;
use uuid::Uuid;

use super::chain::{Hash, Line};
use super::error::{Error, Result};
use super::values::Values;
use crate::database::from_row;

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Entry {
    /// Its place, from 1, without gaps.
    pub sequence: u64,
    /// Its name, chosen by whoever recorded it.
    pub id: Uuid,
    /// When it was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub time: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub content: Content,
    /// The hash of the entry before.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub previous: Hash,
    /// Its own.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub hash: Hash,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(clippy::large_enum_variant, reason = "nearly all entries are promises")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Advice was given.
    Promise(Promised),
    /// A promise came to its end.
    Closed {
        /// The promise, by its sequence.
        promise: u64,
        /// How it ended.
        #[serde(rename = "as")]
        closing: Closing,
    },
    /// Somebody's data were removed.
    Forgotten {
        /// The promises, by their sequences.
        promises: Vec<u64>,
    },
}

/// A promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Promised {
    /// What became of it.
    pub status: Status,
    /// The fingerprint of the model it was given for.
    pub model: String,
    /// Method, parameters and seed: the library's request.
    pub request: Value,
    /// The moment until which it holds; without one, for good.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub holds_until: Option<Timestamp>,
    /// To whom it was given and what it says, unless that is forgotten.
    #[serde(flatten)]
    pub given: Option<Given>,
}

/// What is personal about a promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Given {
    /// To whom: a reference that means something to its owner only.
    pub subject: String,
    /// What it says.
    #[serde(flatten)]
    pub document: Document,
}

/// What a promise says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Document {
    /// The person as they were.
    pub factual: Values,
    /// What they were advised to become.
    pub advised: Values,
    /// The model's score of that.
    pub score: f32,
    /// Its relaxed stability `R^`.
    pub stability: Option<f64>,
    /// How far it is, in encoded space, by `L1`.
    pub cost_l1: Option<f64>,
    /// The same by `L2`.
    pub cost_l2: Option<f64>,
    /// What is promised of it once the model changes.
    pub certificate: Option<Value>,
    /// The outcome that is promised. Entries of earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meaning: Option<Meaning>,
}

/// The kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Advice was given.
    Promise,
    /// A promise came to its end.
    Closed,
    /// Somebody's data were removed.
    Forgotten,
}

impl Kind {
    /// The name in the database.
    #[must_use]
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
    /// The person did what was advised, and was accepted.
    Fulfilled,
    /// It was taken back, or not wanted any more.
    Withdrawn,
}

impl Closing {
    /// The name in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.word()
    }

    fn named(name: &str) -> Option<Self> {
        Self::of_word(name)
    }
}

choices! { Closing "as" {
    Fulfilled = "fulfilled": "The person did what was advised, and was accepted",
    Withdrawn = "withdrawn": "It was taken back, or is not wanted any more",
} }

/// What became of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It holds.
    Open,
    /// The person did what was advised, and was accepted.
    Fulfilled,
    /// It was taken back, or not wanted any more.
    Withdrawn,
    /// Its time is over.
    Expired,
    /// The personal data are removed.
    Forgotten,
}

impl Status {
    /// The name, as in documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.word()
    }
}

choices! { Status "status" {
    Open = "open": "It holds",
    Fulfilled = "fulfilled": "The person did what was advised, and was accepted",
    Withdrawn = "withdrawn": "It was taken back, or not wanted any more",
    Expired = "expired": "Its time is over",
    Forgotten = "forgotten": "The personal data are removed",
} }

impl Entry {
    /// The promise, if it is one.
    #[must_use]
    pub fn promise(&self) -> Option<&Promised> {
        match &self.content {
            Content::Promise(promised) => Some(promised),
            Content::Closed { .. } | Content::Forgotten { .. } => None,
        }
    }

    /// What is personal about it: of a promise that is not forgotten.
    #[must_use]
    pub fn given(&self) -> Option<&Given> {
        self.promise()?.given.as_ref()
    }

    /// What kind of entry it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.content {
            Content::Promise(_) => Kind::Promise,
            Content::Closed { .. } => Kind::Closed,
            Content::Forgotten { .. } => Kind::Forgotten,
        }
    }
}

/// An entry as it is read: the line, and what others say about it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) line: Line,
    pub(super) hash: Vec<u8>,
    pub(super) status: String,
    pub(super) subject: Option<String>,
    pub(super) document: Option<String>,
}
from_row!(Found { hash, status, subject, document, ..line });

impl Found {
    pub(super) fn entry(self) -> Result<Entry> {
        let sequence = self.line.sequence as u64;
        let damaged = |problem: String| Error::Damaged { sequence, problem };
        let hash = |bytes: &[u8]| {
            Hash::of_bytes(bytes).ok_or_else(|| damaged("a hash has not 32 bytes".to_owned()))
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
                    .ok_or_else(|| damaged("nobody says how it was closed".to_owned()))?,
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
            model: line.model.clone().ok_or("it names no model")?,
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
    text.parse().map_err(|error| format!("`{text}` is no moment: {error}"))
}

/// A moment as the ledger writes it: in UTC, to the microsecond, so that their texts sort as they
/// do.
pub(super) fn written(moment: Timestamp) -> String {
    format!("{moment:.6}")
}
