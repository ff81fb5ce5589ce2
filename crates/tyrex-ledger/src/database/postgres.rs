//! A database of a PostgreSQL server.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, PgPool, Postgres};

use super::{CONNECTIONS, Error, Opening, Result, WRITERS, check_ours, migrate, migrations};

pub(super) type Options = PgConnectOptions;
pub(super) type Pool = PgPool;
pub(super) type Connection = PoolConnection<Postgres>;
pub(super) type Server = PgConnection;

/// The time limit for getting a connection of the pool.
const CONNECTING: Duration = Duration::from_secs(10);

/// Reads an address.
pub(super) fn parse(address: &str) -> Result<Options> {
    // The error may quote the address, which may hold a password.
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

/// Checks the database and runs the migrations: connections that read, and connections that write.
pub(super) async fn open(options: &Options, shown: &str, opening: Opening) -> Result<[Pool; 2]> {
    let mut connection =
        options.connect().await.map_err(|error| Error::from(error).opening(shown))?;
    let ours: bool = sqlx::query_scalar("SELECT to_regclass('tyrex_migrations') IS NOT NULL")
        .fetch_one(&mut connection)
        .await?;
    // Tables of other programs do not matter here: name conflicts are found when the tables are
    // created.
    check_ours(shown, opening, false, ours)?;
    migrate(migrations!("postgres"), &mut connection, shown).await?;
    connection.close().await?;
    Ok([CONNECTIONS, WRITERS].map(|size| {
        let pool = PoolOptions::new().max_connections(size).acquire_timeout(CONNECTING);
        pool.connect_lazy_with(options.clone())
    }))
}

/// The key of the advisory lock, to distinguish it from other programs' locks: "tyrx".
const LOCK: i32 = 0x7479_7278;
/// The interval at which a service checks its lock.
const LOOKING: Duration = Duration::from_secs(2);
/// How long PostgreSQL may hold the lock of a lost connection: longer than the times that
/// `Session::lock` sets.
const GHOST: Duration = Duration::from_mins(2);

/// A connection that holds PostgreSQL's lock while it is open.
#[derive(Debug)]
pub(super) struct Session {
    options: Arc<Options>,
    connection: Option<PgConnection>,
}

impl Session {
    /// A session without a lock.
    pub(super) fn new(pool: &Pool) -> Self {
        Self { options: pool.connect_options(), connection: None }
    }

    /// Completes when another service holds the lock.
    pub(super) async fn lost(&mut self) {
        let mut refused: Option<Instant> = None;
        loop {
            tokio::time::sleep(LOOKING).await;
            match self.lock().await {
                Ok(true) => refused = None,
                // The lock may still belong to this session's old connection.
                Ok(false) if refused.get_or_insert_with(Instant::now).elapsed() < GHOST => {}
                Ok(false) => return,
                Err(error) => tracing::warn!(%error, "the lock on the database is lost"),
            }
        }
    }

    /// Releases the lock.
    pub(super) async fn release(self) {
        if let Some(mut connection) = self.connection {
            // A closed connection holds no lock.
            let _ = sqlx::query("SELECT pg_advisory_unlock_all()").execute(&mut connection).await;
            let _ = connection.close().await;
        }
    }

    /// Acquires or checks the lock, on a new connection if the old one is lost; `false` if another
    /// service holds it.
    pub(super) async fn lock(&mut self) -> Result<bool> {
        if let Some(connection) = &mut self.connection
            && connection.ping().await.is_ok()
        {
            return Ok(true);
        }
        self.connection = None;
        let mut connection = self.options.connect().await?;
        // PostgreSQL notices within a minute when this machine disappears.
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
