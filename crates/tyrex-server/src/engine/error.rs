//! Why the engine has no answer.

use std::time::Duration;

use tyrex_ledger::{database, ledger};

use crate::problem::Problem;

/// The result of anything the engine does.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the engine has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refuses what was asked, or failed.
    #[error(transparent)]
    Library(#[from] tyrex::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// There is too much to do already.
    #[error("{what}; ask again in {} s", retry_after.as_secs().max(1))]
    Busy {
        /// What there is too much of.
        what: &'static str,
        /// When it is worth asking again.
        retry_after: Duration,
    },
    /// There is no such model, job or row.
    #[error("there is no {what} `{name}`")]
    Absent {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// What is asked contradicts the state of things.
    #[error("{0}")]
    Conflict(String),
    /// A part of the question is not acceptable.
    #[error("{field}: {problem}")]
    Field {
        /// Which part.
        field: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// The service is ending.
    #[error("the service is ending")]
    Ending,
    /// The engine broke. Nobody but the log is told why.
    #[error("{0}")]
    Broken(String),
}

impl Error {
    /// An [`Error::Field`].
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }

    /// An [`Error::Absent`].
    pub(crate) fn absent(what: &'static str, name: impl Into<String>) -> Self {
        Self::Absent { what, name: name.into() }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Library(error) => error.into(),
            Error::Database(error) => error.into(),
            Error::Ledger(error) => error.into(),
            Error::Busy { what, retry_after } => Self::busy(what, retry_after),
            Error::Absent { .. } => Self::not_found(error.to_string()),
            Error::Conflict(problem) => Self::conflict(problem),
            Error::Field { field, problem } => Self::field(field, problem),
            Error::Ending => Self::busy("the service is ending", Duration::from_secs(5)),
            Error::Broken(cause) => Self::internal(cause),
        }
    }
}
