//! The ledger of promises: append-only, chained by hashes.
//!
//! Advice is a promise: an applicant who becomes this row will be accepted. Every promise is an
//! entry. Later events are entries too: a promise was fulfilled or withdrawn (`closed`), or the
//! data of a subject was erased (`forgotten`). Entries are only appended. `docs/ledger.md`
//! describes the guarantees.

mod answers;
mod append;
mod chain;
mod entry;
mod error;
mod forget;
mod jobs;
mod promise;
mod read;
mod table;
mod values;
mod verify;

pub use answers::{AnswerFiles, RecordedAnswers};
pub use chain::Hash;
pub use entry::{Closing, Content, Document, Entry, Given, Kind, Promised, Status};
pub use error::{Error, Result};
pub use forget::Forgotten;
pub use promise::{NewPromise, check_subject};
pub use read::{Filter, Head};
pub use table::table;
pub use values::Values;
pub use verify::{Problem, Trouble, Verification};

pub use jiff::Timestamp;
pub use uuid::Uuid;

use serde::Serialize;

use crate::database::Database;

/// The ledger in a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Ledger {
    database: Database,
}

/// The position of a promise in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recorded {
    /// The id of the promise.
    pub id: Uuid,
    /// Its position in the ledger, from 1.
    pub sequence: u64,
    /// When it was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub time: Timestamp,
    /// Its hash. It can prove later that this entry and all previous ones are unchanged.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub hash: Hash,
    /// Whether it existed already, with the same content.
    pub already: bool,
}

impl Ledger {
    /// The ledger of a database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Its database.
    pub fn database(&self) -> &Database {
        &self.database
    }
}
