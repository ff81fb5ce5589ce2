//! What can go wrong with a database, and what to do about it.

use sqlx::sqlite::SqliteError;

/// The result of anything that asks the database.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. No variant holds a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be read. It is not repeated, since it may hold a password.
    #[error(
        "the address of the database cannot be read, expected the name of a file or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Address,
    /// A PostgreSQL database, but this build cannot speak to one.
    #[error("this build of tyrex has no driver for PostgreSQL")]
    NoPostgres,
    /// There is no such file.
    #[error("{address}: there is no such file")]
    Absent {
        /// Where it was looked for.
        address: String,
    },
    /// Nothing was ever recorded there.
    #[error("{address}: there is no ledger in it")]
    Empty {
        /// The database.
        address: String,
    },
    /// A database of something else.
    #[error("{address}: this SQLite database belongs to another program")]
    Foreign {
        /// The database.
        address: String,
    },
    /// A file of another kind.
    #[error("{address}: this file is not a SQLite database")]
    NotADatabase {
        /// The file.
        address: String,
    },
    /// A later version of tyrex was here.
    #[error("{address}: this ledger was written by another, probably newer, version of tyrex")]
    Newer {
        /// The database.
        address: String,
    },
    /// The server, or the file, cannot be opened.
    #[error("{address}: {problem}")]
    Unreachable {
        /// The database.
        address: String,
        /// The reason.
        problem: String,
    },
    /// Another service has it.
    #[error("another service runs on {address}")]
    Claimed {
        /// The database.
        address: String,
    },
    /// There is no room left.
    #[error("the disk is full")]
    Full,
    /// The system refused to read or write the file.
    #[error("the disk fails: {problem}")]
    Disk {
        /// What SQLite says.
        problem: String,
    },
    /// Others kept it busy for too long.
    #[error("other programs kept the database busy for too long")]
    Busy,
    /// Anything else the database said.
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
            // The lowest byte is the kind of error, the others say more.
            return match code.parse::<u32>().map(|code| code & 0xff) {
                Ok(5 | 6) => Self::Busy,
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
    /// The same, said of a database that is being opened.
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

    /// Whether the same statement may well succeed on another connection: the server went away
    /// or chose this transaction to end a quarrel between two.
    #[must_use]
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
