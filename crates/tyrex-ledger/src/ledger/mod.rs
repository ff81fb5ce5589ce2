//! The ledger of promises: append-only, chained by hashes.
//!
//! Advice is a promise: become this row, and you will be accepted. Every promise that is given is
//! an entry here. So is everything that happens to it later: that it was kept or withdrawn
//! (`closed`), or that the person asked to be forgotten (`forgotten`). Entries are only ever
//! added. `docs/ledger.md` says what that is worth.

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

/// The ledger in a database. Clones are the same ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    database: Database,
}

/// Where a promise is in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Recorded {
    /// The promise, as the caller named it.
    pub id: Uuid,
    /// Its place in the ledger, from 1.
    pub sequence: u64,
    /// When it was recorded.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub time: Timestamp,
    /// Its hash. Whoever keeps it can show later that this entry, and all before it, are as they
    /// were.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub hash: Hash,
    /// Whether it was there already, with the same content.
    pub already: bool,
}

impl Ledger {
    /// The ledger of a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Its database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }
}
