//! A database of a PostgreSQL server.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, Postgres};

use super::{CONNECTIONS, Error, Opening, Result, check_ours, migrate, migrations};

pub(super) type Options = PgConnectOptions;
pub(super) type Pool = PgPool;
pub(super) type Connection = PoolConnection<Postgres>;

/// How long to wait for a connection of the pool.
const CONNECTING: Duration = Duration::from_secs(10);

/// Reads an address.
pub(super) fn parse(address: &str) -> Result<Options> {
    // The reason may quote the address, which may hold a password.
    let options = Options::from_str(address).map_err(|_| Error::Address)?;
    Ok(options.disable_statement_logging())
}

/// The address without a password.
pub(super) fn shown(options: &Options) -> String {
    let host = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    let database = options.get_database().unwrap_or(options.get_username());
    format!("postgres://{}@{host}/{database}", options.get_username())
}

/// Checks what the database is and runs the migrations.
pub(super) async fn open(options: &Options, shown: &str, opening: Opening) -> Result<Pool> {
    let mut connection =
        options.connect().await.map_err(|error| Error::from(error).opening(shown))?;
    let ours: bool = sqlx::query_scalar("SELECT to_regclass('tyrex_migrations') IS NOT NULL")
        .fetch_one(&mut connection)
        .await?;
    // Tables of others do not matter here: the names of ours are checked when they are created.
    check_ours(shown, opening, false, ours)?;
    migrate(migrations!("postgres"), &mut connection, shown).await?;
    connection.close().await?;
    let pool = PoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECTING);
    Ok(pool.connect_lazy_with(options.clone()))
}

/// What tells this lock of a PostgreSQL database from those of other programs: "tyrx".
const LOCK: i32 = 0x7479_7278;
/// How often a service looks whether PostgreSQL still knows its claim.
const LOOKING: Duration = Duration::from_secs(2);
/// How long PostgreSQL may hold the lock for a connection that is gone: longer than the times
/// that `Session::lock` sets.
const GHOST: Duration = Duration::from_mins(2);

/// A connection that holds PostgreSQL's lock as long as it is there.
#[derive(Debug)]
pub(super) struct Session {
    options: Arc<Options>,
    connection: Option<PgConnection>,
}

impl Session {
    /// A session that has not locked anything yet.
    pub(super) fn new(pool: &Pool) -> Self {
        Self { options: pool.connect_options(), connection: None }
    }

    /// Comes when another service has the lock.
    pub(super) async fn lost(&mut self) {
        let mut refused: Option<Instant> = None;
        loop {
            tokio::time::sleep(LOOKING).await;
            match self.lock().await {
                Ok(true) => refused = None,
                // It may still be its own old connection.
                Ok(false) if refused.get_or_insert_with(Instant::now).elapsed() < GHOST => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "the claim on the database is lost for now"),
            }
        }
    }

    /// Gives the lock back.
    pub(super) async fn release(self) {
        if let Some(mut connection) = self.connection {
            // A connection that is gone holds no lock.
            let _ = sqlx::query("SELECT pg_advisory_unlock_all()").execute(&mut connection).await;
            let _ = connection.close().await;
        }
    }

    /// Makes sure of the lock, on a new connection if the old one is gone; `false` if another
    /// has it.
    pub(super) async fn lock(&mut self) -> Result<bool> {
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
