//! One service at a time on one database.
//!
//! Two would both run the same jobs. Other programs, which only read and write, need no claim.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::{Database, Either, Error, Result};

/// What tells this lock of a PostgreSQL database from those of other programs: "tyrx".
const LOCK: i32 = 0x7479_7278;
/// How often a service looks whether PostgreSQL still knows its claim.
const LOOKING: Duration = Duration::from_secs(2);
/// How long PostgreSQL may hold the lock for a connection that is gone: longer than the times
/// that `Session::lock` sets.
const GHOST: Duration = Duration::from_mins(2);

/// A service's claim on its database. It ends with the process, however that ends.
#[derive(Debug)]
pub struct Claim(Either<File, Session>);

/// A connection that holds PostgreSQL's lock as long as it is there.
#[derive(Debug)]
struct Session {
    options: Arc<PgConnectOptions>,
    connection: Option<PgConnection>,
}

impl Database {
    /// Claims the database for a service; an error if another one runs on it.
    pub async fn claim(&self) -> Result<Claim> {
        let claimed = || Error::Claimed { address: self.address.clone() };
        let claim = match &self.pools {
            Either::Sqlite(pool) => {
                let file = pool.connect_options().get_filename().to_owned();
                Either::Sqlite(lock_beside(&file, &self.address)?.ok_or_else(claimed)?)
            }
            Either::Postgres(pool) => {
                let mut session = Session { options: pool.connect_options(), connection: None };
                if !session.lock().await.map_err(|error| error.opening(&self.address))? {
                    return Err(claimed());
                }
                Either::Postgres(session)
            }
        };
        Ok(Claim(claim))
    }
}

impl Claim {
    /// Comes when another service has the database, which may happen after PostgreSQL has
    /// restarted.
    pub async fn lost(&mut self) {
        let Either::Postgres(session) = &mut self.0 else {
            return std::future::pending().await;
        };
        let mut refused: Option<Instant> = None;
        loop {
            tokio::time::sleep(LOOKING).await;
            match session.lock().await {
                Ok(true) => refused = None,
                // It may still be its own old connection.
                Ok(false) if refused.get_or_insert_with(Instant::now).elapsed() < GHOST => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "the claim on the database is lost for now"),
            }
        }
    }

    /// Gives the database back, so that the next service can have it at once.
    pub async fn release(self) {
        if let Either::Postgres(Session { connection: Some(mut connection), .. }) = self.0 {
            // A connection that is gone holds no lock.
            let _ = sqlx::query("SELECT pg_advisory_unlock_all()").execute(&mut connection).await;
            let _ = connection.close().await;
        }
    }
}

/// Locks a file beside the database; `None` if somebody else has. It stays there: whoever removes
/// a file may remove one that another has just locked.
fn lock_beside(database: &Path, shown: &str) -> Result<Option<File>> {
    let failed = |problem: std::io::Error| Error::Unreachable {
        address: shown.to_owned(),
        problem: format!("cannot lock the file beside it: {problem}"),
    };
    // By whatever name the database was opened, it is the same file.
    let mut name = database.canonicalize().map_err(failed)?.into_os_string();
    name.push("-service");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(PathBuf::from(name))
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl Session {
    /// Makes sure of the lock, on a new connection if the old one is gone; `false` if another
    /// has it.
    async fn lock(&mut self) -> Result<bool> {
        if let Some(connection) = &mut self.connection
            && connection.ping().await.is_ok()
        {
            return Ok(true);
        }
        self.connection = None;
        let mut connection = self.options.connect().await?;
        // PostgreSQL notices in a minute when this machine is gone without a word.
        sqlx::query(
            "SELECT set_config('tcp_keepalives_idle', '30', false), \
             set_config('tcp_keepalives_interval', '10', false), \
             set_config('tcp_keepalives_count', '3', false)",
        )
        .execute(&mut connection)
        .await?;
        let locked: bool =
            sqlx::query_scalar("SELECT pg_try_advisory_lock($1, 'jobs'::regclass::oid::int4)")
                .bind(LOCK)
                .fetch_one(&mut connection)
                .await?;
        self.connection = locked.then_some(connection);
        Ok(locked)
    }
}
