//! The one database: a SQLite file, or PostgreSQL.
//!
//! Statements are written once. They number their parameters (`$1`), which both databases support,
//! and `on!` runs them on either one.

mod error;
#[cfg(feature = "postgres")]
mod postgres;
mod service_lock;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqlSafeStr as _, Sqlite, SqlitePool};

pub use error::{Error, Result};
pub use service_lock::ServiceLock;

#[cfg(feature = "postgres")]
use postgres::{Connection, Options, Pool};
#[cfg(not(feature = "postgres"))]
use {Never as Connection, Never as Options, Never as Pool};

/// How long a writer waits for other writers.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Connections of one process.
const CONNECTIONS: u32 = 8;
/// The table of applied migrations.
const MIGRATIONS: &str = "tyrex_migrations";

/// A value for one of the two databases.
#[derive(Debug, Clone)]
pub enum Either<S, P> {
    /// SQLite.
    Sqlite(S),
    /// PostgreSQL.
    Postgres(P),
}

/// Replaces the types of PostgreSQL in a build without its driver. It has no values.
#[cfg(not(feature = "postgres"))]
#[derive(Debug, Clone)]
pub enum Never {}

/// Runs the same code on the database's own type: `on!(database, pool => ...)` for a
/// [`Database`], `on!(transaction, connection => ...)` for a [`Transaction`].
#[cfg(feature = "postgres")]
#[macro_export]
macro_rules! on {
    ($database:expr, $own:ident => $code:expr) => {
        match $database.either() {
            $crate::database::Either::Sqlite($own) => $code,
            $crate::database::Either::Postgres($own) => $code,
        }
    };
}
/// Runs code on the database's own type: `on!(database, pool => ...)` for a [`Database`],
/// `on!(transaction, connection => ...)` for a [`Transaction`].
#[cfg(not(feature = "postgres"))]
#[macro_export]
macro_rules! on {
    ($database:expr, $own:ident => $code:expr) => {
        match $database.either() {
            $crate::database::Either::Sqlite($own) => $code,
            $crate::database::Either::Postgres(never) => match *never {},
        }
    };
}
pub use on;

/// Reads a type from a row of either database: each field from the column of its name, and
/// `..field` from the row as a whole. (The derive macro of sqlx would compile all of sqlx,
/// including SQLite, a second time for the macro.)
#[macro_export]
macro_rules! from_row {
    ($type:ident $fields:tt) => {
        $crate::database::from_row!(sqlx::sqlite::SqliteRow => $type $fields);
        $crate::database::from_postgres_row!($type $fields);
    };
    ($row:ty => $type:ident { $($column:ident),+ $(, ..$inner:ident)? }) => {
        impl sqlx::FromRow<'_, $row> for $type {
            fn from_row(row: &$row) -> sqlx::Result<Self> {
                Ok(Self {
                    $($column: sqlx::Row::try_get(row, stringify!($column))?,)+
                    $($inner: sqlx::FromRow::from_row(row)?,)?
                })
            }
        }
    };
}
pub use from_row;

/// For [`from_row!`].
#[cfg(feature = "postgres")]
#[doc(hidden)]
#[macro_export]
macro_rules! from_postgres_row {
    ($type:ident $fields:tt) => {
        $crate::database::from_row!(sqlx::postgres::PgRow => $type $fields);
    };
}
/// For [`from_row!`].
#[cfg(not(feature = "postgres"))]
#[doc(hidden)]
#[macro_export]
macro_rules! from_postgres_row {
    ($type:ident $fields:tt) => {};
}
#[doc(hidden)]
pub use from_postgres_row;

/// The migrations of one database, compiled in. Their numbers, names and text never change: a
/// database stores the checksum of each applied migration.
macro_rules! migrations {
    ($folder:literal) => {
        migrations!($folder, (1, "ledger"), (2, "tokens"), (3, "engine"), (4, "reference"))
    };
    ($folder:literal, $(($number:literal, $name:literal)),+) => {
        [$((
            $number,
            $name,
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/migrations/", $folder, "/000", $number, "_", $name, ".sql"
            )),
        )),+]
    };
}
#[cfg(feature = "postgres")]
use migrations;

/// The database, open and up to date. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Database {
    address: String,
    pools: Either<SqlitePool, Pool>,
}

/// The address of a database.
#[derive(Debug, Clone)]
enum Address {
    File(PathBuf),
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "there are no such options"))]
    Server(Box<Options>),
}

impl Address {
    fn parse(address: &str) -> Result<Self> {
        if address.starts_with("postgres://") || address.starts_with("postgresql://") {
            #[cfg(feature = "postgres")]
            return Ok(Self::Server(Box::new(postgres::parse(address)?)));
            #[cfg(not(feature = "postgres"))]
            return Err(Error::NoPostgres);
        }
        match address.split_once("://") {
            Some(("sqlite", file)) => Ok(Self::File(file.into())),
            Some(_) => Err(Error::Address),
            None => Ok(Self::File(address.into())),
        }
    }

    /// The address for display, without a password.
    fn shown(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Server(options) => postgres::shown(options),
            #[cfg(not(feature = "postgres"))]
            Self::Server(never) => match **never {},
        }
    }
}

impl Database {
    /// Opens a SQLite file or a PostgreSQL database (`postgres://user:password@host/database`) and
    /// brings it up to date. A missing file is created, and so are missing tables.
    pub async fn open(address: &str) -> Result<Self> {
        Self::open_as(address, Opening::MayCreate).await
    }

    /// As [`open`](Self::open), but creates neither a file nor tables.
    pub async fn open_existing(address: &str) -> Result<Self> {
        Self::open_as(address, Opening::MustExist).await
    }

    async fn open_as(address: &str, opening: Opening) -> Result<Self> {
        let address = Address::parse(address)?;
        let shown = address.shown();
        let pools = match &address {
            Address::File(path) => Either::Sqlite(open_file(path, &shown, opening).await?),
            #[cfg(feature = "postgres")]
            Address::Server(options) => {
                Either::Postgres(postgres::open(options, &shown, opening).await?)
            }
            #[cfg(not(feature = "postgres"))]
            Address::Server(never) => match **never {},
        };
        Ok(Self { address: shown, pools })
    }

    /// Its address, without a password.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Checks that it answers.
    pub async fn ping(&self) -> Result<()> {
        on!(self, pool => sqlx::query("SELECT 1").execute(pool).await?.rows_affected());
        Ok(())
    }

    /// Closes all connections once they are idle. SQLite then cleans up its files.
    pub async fn close(&self) {
        on!(self, pool => pool.close().await);
    }

    /// For [`on!`].
    #[must_use]
    pub fn either(&self) -> &Either<SqlitePool, Pool> {
        &self.pools
    }

    /// A transaction that writes. SQLite allows one at a time; PostgreSQL allows several until they
    /// need the same rows.
    pub async fn write(&self) -> Result<Transaction> {
        self.begin("BEGIN IMMEDIATE", "BEGIN").await
    }

    /// A transaction that reads a consistent snapshot.
    pub async fn snapshot(&self) -> Result<Transaction> {
        self.begin("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await
    }

    async fn begin(&self, sqlite: &'static str, postgres: &'static str) -> Result<Transaction> {
        // The guard is made before BEGIN, so that a connection on which BEGIN fails is not reused
        // either.
        let connection = match &self.pools {
            Either::Sqlite(pool) => Either::Sqlite(pool.acquire().await?),
            #[cfg(feature = "postgres")]
            Either::Postgres(pool) => Either::Postgres(pool.acquire().await?),
            #[cfg(not(feature = "postgres"))]
            Either::Postgres(never) => match *never {},
        };
        let mut transaction = Transaction { connection, ended: false };
        let begin = match transaction.connection {
            Either::Sqlite(_) => sqlite,
            Either::Postgres(_) => postgres,
        };
        on!(transaction, connection => sqlx::query(begin).execute(&mut **connection).await?.rows_affected());
        Ok(transaction)
    }
}

/// Statements that take effect together or not at all. A dropped transaction has no effect: its
/// connection is closed, in any state.
#[derive(Debug)]
pub struct Transaction {
    connection: Either<PoolConnection<Sqlite>, Connection>,
    ended: bool,
}

impl Transaction {
    /// For [`on!`].
    pub fn either(&mut self) -> &mut Either<PoolConnection<Sqlite>, Connection> {
        &mut self.connection
    }

    /// Whether the database is PostgreSQL.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(self.connection, Either::Postgres(_))
    }

    /// Commits. The data is on disk when this returns.
    pub async fn commit(self) -> Result<()> {
        self.end("COMMIT").await
    }

    /// Ends a read-only transaction.
    pub async fn rollback(self) -> Result<()> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, how: &'static str) -> Result<()> {
        on!(self, connection => sqlx::query(how).execute(&mut **connection).await?.rows_affected());
        self.ended = true;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            on!(self, connection => connection.close_on_drop());
        }
    }
}

/// Whether opening may create a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    MayCreate,
    MustExist,
}

async fn open_file(path: &Path, shown: &str, opening: Opening) -> Result<SqlitePool> {
    if opening == Opening::MustExist && !path.exists() {
        return Err(Error::Absent { address: shown.to_owned() });
    }
    if opening == Opening::MayCreate {
        create_private(path);
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        // With a write-ahead log, this makes every commit wait for the disk.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(PATIENCE)
        .foreign_keys(true)
        .pragma("secure_delete", "ON")
        .disable_statement_logging();
    // The first process to open a new file switches it to a write-ahead log; others may hit the
    // lock.
    let started = Instant::now();
    loop {
        match prepare_file(&options, shown, opening).await {
            Err(Error::Busy) if started.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(error.opening(shown)),
            Ok(()) => break,
        }
    }
    let pool = PoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(PATIENCE);
    Ok(pool.connect_lazy_with(options))
}

/// Creates the file for its owner alone, if there is none: it will hold personal data. SQLite gives
/// the files beside it the same permissions. It creates no file itself, so it reports one that could
/// not be created here.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// Checks the file and runs the migrations, one process at a time.
async fn prepare_file(options: &SqliteConnectOptions, shown: &str, opening: Opening) -> Result<()> {
    let mut connection = options.connect().await?;
    let (tables, ours): (i64, i64) = sqlx::query_as(
        "SELECT count(*), count(CASE WHEN name = 'tyrex_migrations' THEN 1 END) \
         FROM sqlite_schema WHERE type = 'table'",
    )
    .fetch_one(&mut connection)
    .await?;
    check_ours(shown, opening, tables > 0, ours > 0)?;
    // The driver panics on names that are not text.
    let schema: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT CAST(coalesce(sql, '') AS BLOB) FROM sqlite_schema")
            .fetch_all(&mut connection)
            .await?;
    if schema.iter().any(|definition| std::str::from_utf8(definition).is_err()) {
        return Err(Error::Unreachable {
            address: shown.to_owned(),
            problem: "database disk image is malformed".to_owned(),
        });
    }
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    migrate(migrations!("sqlite"), &mut *transaction, shown).await?;
    transaction.commit().await?;
    connection.close().await?;
    Ok(())
}

/// Rejects a database of another program, and an empty one if it must exist.
fn check_ours(shown: &str, opening: Opening, tables: bool, ours: bool) -> Result<()> {
    match (ours, tables, opening) {
        (true, _, _) | (false, false, Opening::MayCreate) => Ok(()),
        (false, true, _) => Err(Error::Foreign { address: shown.to_owned() }),
        (false, false, Opening::MustExist) => Err(Error::Empty { address: shown.to_owned() }),
    }
}

async fn migrate<C: Migrate, const N: usize>(
    migrations: [(i64, &'static str, &'static str); N],
    connection: &mut C,
    shown: &str,
) -> Result<()> {
    let migrations = migrations.map(|(number, name, text)| {
        Migration::new(number, name.into(), MigrationType::Simple, text.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.dangerous_set_table_name(MIGRATIONS);
    migrator.run_direct(None, connection, false).await.map_err(|error| match error {
        MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_) => {
            Error::Newer { address: shown.to_owned() }
        }
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => sqlx::Error::from(other).into(),
    })
}
