//! One service at a time on one database.
//!
//! Two services would run the same jobs. Other programs, which only read and write, need no lock.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

#[cfg(not(feature = "postgres"))]
use super::Never as Session;
#[cfg(feature = "postgres")]
use super::postgres::Session;
use super::{Database, Either, Error, Result};

/// The lock of a service on its database. It ends with the process in any case.
#[derive(Debug)]
pub struct ServiceLock(Either<File, Session>);

impl Database {
    /// Locks the database for a service; an error if another one runs on it.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "a server waits"))]
    pub async fn lock_for_service(&self) -> Result<ServiceLock> {
        let claimed = || Error::Claimed { address: self.address.clone() };
        let lock = match self.executor() {
            Either::Sqlite(pool) => {
                let file = pool.connect_options().get_filename().to_owned();
                Either::Sqlite(lock_beside(&file, &self.address)?.ok_or_else(claimed)?)
            }
            #[cfg(feature = "postgres")]
            Either::Postgres(pool) => {
                let mut session = Session::new(pool);
                if !session.lock().await.map_err(|error| error.opening(&self.address))? {
                    return Err(claimed());
                }
                Either::Postgres(session)
            }
            #[cfg(not(feature = "postgres"))]
            Either::Postgres(never) => match *never {},
        };
        Ok(ServiceLock(lock))
    }
}

impl ServiceLock {
    /// Completes when another service has the database, which may happen after a restart of
    /// PostgreSQL.
    pub async fn lost(&mut self) {
        match &mut self.0 {
            Either::Sqlite(_) => std::future::pending().await,
            #[cfg(feature = "postgres")]
            Either::Postgres(session) => session.lost().await,
            #[cfg(not(feature = "postgres"))]
            Either::Postgres(never) => match *never {},
        }
    }

    /// Releases the database, so that the next service can lock it at once.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "a server waits"))]
    pub async fn release(self) {
        match self.0 {
            Either::Sqlite(file) => drop(file),
            #[cfg(feature = "postgres")]
            Either::Postgres(session) => session.release().await,
        }
    }
}

/// Locks a file beside the database; `None` if another process holds the lock. The file is never
/// removed: another process could have locked it in the meantime.
fn lock_beside(database: &Path, shown: &str) -> Result<Option<File>> {
    let failed = |problem: std::io::Error| Error::Unreachable {
        address: shown.to_owned(),
        problem: format!("cannot lock the file beside it: {problem}"),
    };
    let file = open_beside(database).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// The empty file beside the database. The canonical path, so that all names of the database share
/// one lock; a database with several hard links is not opened.
pub(super) fn open_beside(database: &Path) -> std::io::Result<File> {
    let mut name = database.canonicalize()?.into_os_string();
    name.push("-service");
    File::options().create(true).truncate(false).write(true).open(PathBuf::from(name))
}
