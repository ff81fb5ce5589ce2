//! Errors of the engine.

use std::time::Duration;

use tyrex_ledger::{database, ledger};

use crate::problem::Problem;

/// The result type of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library rejected the question, or failed.
    #[error(transparent)]
    Library(#[from] tyrex::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// The service is overloaded.
    #[error("{what}; try again in {} s", retry_after.as_secs().max(1))]
    Busy {
        /// The exhausted resource.
        what: &'static str,
        /// The time after which to retry.
        retry_after: Duration,
    },
    /// There is no such model, job or row.
    #[error("there is no {what} `{name}`")]
    Absent {
        /// Its kind.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The question conflicts with the current state.
    #[error("{0}")]
    Conflict(String),
    /// A part of the question is invalid.
    #[error("{field}: {problem}")]
    Field {
        /// The part.
        field: String,
        /// The error and what was expected.
        problem: String,
    },
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Ending,
    /// An internal error. The reason is only logged.
    #[error("{0}")]
    Broken(String),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        database::Error::from(error).into()
    }
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
            Error::Ending => Self::busy("the service is shutting down", Duration::from_secs(5)),
            Error::Broken(cause) => Self::internal(cause),
        }
    }
}
