//! Errors of the database.

use sqlx::sqlite::SqliteError;

/// The result type of the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the database. No variant holds a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be read. It is not repeated, since it may hold a password.
    #[error(
        "the address of the database cannot be read, expected the name of a file or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Address,
    /// A PostgreSQL address in a build without its driver.
    #[error("this build of tyrex has no driver for PostgreSQL")]
    NoPostgres,
    /// There is no such file.
    #[error("{address}: there is no such file")]
    Absent {
        /// The path.
        address: String,
    },
    /// There is no ledger in the database.
    #[error("{address}: there is no ledger in it")]
    Empty {
        /// The database.
        address: String,
    },
    /// A database of another program.
    #[error("{address}: this SQLite database belongs to another program")]
    Foreign {
        /// The database.
        address: String,
    },
    /// The file is not a SQLite database.
    #[error("{address}: this file is not a SQLite database")]
    NotADatabase {
        /// The file.
        address: String,
    },
    /// Another version of tyrex wrote the database.
    #[error("{address}: this ledger was written by another, probably newer, version of tyrex")]
    Newer {
        /// The database.
        address: String,
    },
    /// A file with several names.
    #[error("{address}: this file has {names} names (hard links), expected one")]
    Linked {
        /// The file.
        address: String,
        /// The number of its names.
        names: u64,
    },
    /// The user may read the database, but not write to it.
    #[error("this ledger can be read, but not written to")]
    ReadOnly,
    /// The server, or the file, cannot be opened.
    #[error("{address}: {problem}")]
    Unreachable {
        /// The database.
        address: String,
        /// The reason.
        problem: String,
    },
    /// Another service runs on the database.
    #[error("another service is running on {address}")]
    Claimed {
        /// The database.
        address: String,
    },
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The system failed to read or write the file.
    #[error("disk error: {problem}")]
    Disk {
        /// The message of SQLite.
        problem: String,
    },
    /// Other programs kept it busy for too long.
    #[error("other programs kept the database busy for too long")]
    Busy,
    /// Any other error of the database.
    #[error("database: {0}")]
    Refused(#[source] sqlx::Error),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(database) = &error else {
            return Self::Refused(error);
        };
        let code = database.code().unwrap_or_default();
        if database.try_downcast_ref::<SqliteError>().is_some() {
            // The lowest byte is the kind of error, the others are details.
            return match code.parse::<u32>().map(|code| code & 0xff) {
                Ok(5 | 6) => Self::Busy,
                Ok(8) => Self::ReadOnly,
                Ok(10) => Self::Disk { problem: database.message().to_owned() },
                Ok(13) => Self::Full,
                _ => Self::Refused(error),
            };
        }
        match &*code {
            "53100" => Self::Full,
            _ => Self::Refused(error),
        }
    }
}

impl Error {
    /// The same for a database that is being opened.
    pub(super) fn opening(self, address: &str) -> Self {
        let address = address.to_owned();
        let Self::Refused(error) = self else { return self };
        match &error {
            sqlx::Error::Database(database)
                if database.try_downcast_ref::<SqliteError>().is_some()
                    && database.code().as_deref() == Some("26") =>
            {
                Self::NotADatabase { address }
            }
            sqlx::Error::Database(database) => {
                Self::Unreachable { address, problem: database.message().to_owned() }
            }
            other => Self::Unreachable { address, problem: other.to_string() },
        }
    }

    /// Whether SQLite may not write to the file, or may not create its log.
    pub(super) fn is_not_writable(&self) -> bool {
        let cannot_open = |error: &sqlx::Error| {
            let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
            code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == 14)
        };
        matches!(self, Self::ReadOnly) || matches!(self, Self::Refused(error) if cannot_open(error))
    }

    /// Whether the same statement may succeed on another connection: the connection was lost, or
    /// the server ended this transaction to resolve a deadlock.
    pub fn is_lost_connection(&self) -> bool {
        let Self::Refused(error) = self else { return false };
        match error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::Protocol(_) => true,
            sqlx::Error::Database(database) => {
                database.try_downcast_ref::<SqliteError>().is_none()
                    && database.code().is_some_and(|code| {
                        code.starts_with("08")
                            || code.starts_with("57P")
                            || ["40001", "40P01", "53300"].contains(&&*code)
                    })
            }
            _ => false,
        }
    }
}
