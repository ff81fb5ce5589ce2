//! Errors of the ledger.

use uuid::Uuid;

use super::verify::Problem;
use crate::database;

/// The result type of the ledger.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// There is no such entry.
    #[error("the ledger has no entry {0}")]
    Absent(Uuid),
    /// There is no entry at this position.
    #[error("the ledger has no entry number {0}")]
    Beyond(u64),
    /// An entry with this id exists, with other content.
    #[error("the ledger already has an entry {0} with other content")]
    Taken(Uuid),
    /// The entry cannot be closed.
    #[error("entry {id} cannot be closed: {problem}")]
    NotOpen {
        /// The entry.
        id: Uuid,
        /// The reason.
        problem: String,
    },
    /// An invalid subject.
    #[error(
        "subject: {problem}, expected 1 to {} characters, none of them a control character",
        super::promise::LONGEST_SUBJECT
    )]
    Subject {
        /// The problem.
        problem: String,
    },
    /// An entry cannot be read, or does not fit the previous ones. `verify` reports details.
    #[error("entry {sequence} of the ledger is damaged: {problem}")]
    Damaged {
        /// The entry.
        sequence: u64,
        /// The problem.
        problem: String,
    },
    /// The chain or the personal data does not verify, so the promises are not evidence.
    #[error("the ledger is damaged: {problem}")]
    Unsound {
        /// The first problem.
        problem: String,
    },
    /// An unfinished job of the service may hold the subject.
    #[error("job {job} is not finished and may hold this subject; cancel it or wait for it")]
    Unfinished {
        /// The job.
        job: String,
    },
    /// The data was erased, but traces may be left in the files.
    #[error(
        "the personal data is removed from the database, but traces may be left in its files \
         ({problem}); repeat this to remove them"
    )]
    Traces {
        /// The reason.
        problem: String,
    },
    /// The system provided no random numbers for a salt.
    #[error("the system provides no random numbers: {0}")]
    Salt(String),
    /// The library failed.
    #[error(transparent)]
    Library(#[from] tyrex::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<Problem> for Error {
    fn from(Problem { sequence, sentence, .. }: Problem) -> Self {
        let of_entry = |sequence: u64| sentence.strip_prefix(&format!("entry {sequence}: "));
        match sequence.and_then(|sequence| Some((sequence, of_entry(sequence)?.to_owned()))) {
            Some((sequence, problem)) => Self::Damaged { sequence, problem },
            None => Self::Unsound { problem: sentence },
        }
    }
}

impl Error {
    /// Whether a retry on another connection may succeed.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(self, Self::Database(error) if error.is_lost_connection())
    }
}
