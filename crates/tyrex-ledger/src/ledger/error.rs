//! What can go wrong with a ledger.

use uuid::Uuid;

use crate::database;

/// The result of anything that asks the ledger.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database refused.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// There is no such entry.
    #[error("the ledger has no entry {0}")]
    Absent(Uuid),
    /// There is nothing at this place.
    #[error("the ledger has no entry number {0}")]
    Beyond(u64),
    /// An entry of this id is there, and says something else.
    #[error("the ledger has another entry {0} already, with other content")]
    Taken(Uuid),
    /// The entry is not a promise that could be closed.
    #[error("entry {id} cannot be closed: {problem}")]
    NotOpen {
        /// The entry.
        id: Uuid,
        /// Why not.
        problem: String,
    },
    /// A subject that the ledger does not take.
    #[error(
        "subject: {problem}, expected 1 to {} characters, none of them a control character",
        super::promise::LONGEST_SUBJECT
    )]
    Subject {
        /// What is wrong.
        problem: String,
    },
    /// An entry cannot be read, or does not follow from those before. `verify` says more.
    #[error("entry {sequence} of the ledger is damaged: {problem}")]
    Damaged {
        /// The entry.
        sequence: u64,
        /// What is wrong.
        problem: String,
    },
    /// A job of the service holds the subject, or will.
    #[error("job {job} is not finished and may hold this subject; cancel it first, or let it end")]
    Unfinished {
        /// The job.
        job: String,
    },
    /// Everything was forgotten, but traces may be left in the files.
    #[error(
        "the personal data are removed from the database, but traces may be left in its files \
         ({problem}); repeat this to remove them"
    )]
    Traces {
        /// Why they could not be removed.
        problem: String,
    },
    /// The system gave no random numbers for a salt.
    #[error("the system gives no random numbers: {0}")]
    Salt(String),
    /// The library refused.
    #[error(transparent)]
    Library(#[from] tyrex::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

impl Error {
    /// Whether trying again may help, on another connection.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_lost_connection())
    }
}
