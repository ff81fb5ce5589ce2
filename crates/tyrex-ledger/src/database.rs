//! The one database: a SQLite file, or PostgreSQL.
//!
//! Statements are written once. They number their parameters (`$1`), which both databases support,
//! and `sql!` runs them on either one.

mod error;
#[cfg(feature = "postgres")]
mod postgres;
mod service_lock;

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{
    ConnectOptions as _, Connection as _, SqlSafeStr as _, Sqlite, SqliteConnection, SqlitePool,
};

pub use error::{Error, Result};
pub use service_lock::ServiceLock;

#[cfg(feature = "postgres")]
use postgres::{Connection, Options, Pool, Server};
#[cfg(not(feature = "postgres"))]
use {Never as Connection, Never as Options, Never as Pool, Never as Server};

/// How long a writer waits for other writers.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Connections of one process that read.
const CONNECTIONS: u32 = 8;
/// Connections of one process that write. They are apart, so that reads do not wait while all of
/// these wait for a lock.
const WRITERS: u32 = 4;
/// The size of a SQLite file that a writer keeps in memory, in KiB with a minus sign. The index of
/// random ids is read at every place; with SQLite's default of 2 MiB, a large one would be read from
/// the disk.
const WRITE_CACHE: &str = "-65536";
/// The bytes that must fit on the disk of a SQLite file.
const ROOM: usize = 1 << 18;
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

#[cfg(not(feature = "postgres"))]
impl AsMut<Self> for Never {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Runs the same code on the database's own type: `on!(database.executor(), own => ...)`.
#[cfg(feature = "postgres")]
#[macro_export]
macro_rules! on {
    ($either:expr, $own:ident => $code:expr) => {
        match $either {
            $crate::database::Either::Sqlite($own) => $code,
            $crate::database::Either::Postgres($own) => $code,
        }
    };
}
/// Runs the same code on the database's own type: `on!(database.executor(), own => ...)`.
#[cfg(not(feature = "postgres"))]
#[macro_export]
macro_rules! on {
    ($either:expr, $own:ident => $code:expr) => {
        match $either {
            $crate::database::Either::Sqlite($own) => $code,
            $crate::database::Either::Postgres(never) => match *never {},
        }
    };
}
pub use on;

/// Runs a statement on a [`Database`], its writers, or a [`Transaction`], with the values of its
/// parameters: `sql!(execute in database.writers(); "DELETE FROM jobs WHERE id = $1", id)?`.
///
/// The first word says what is read: `execute` nothing (the result is the number of rows that
/// changed), `fetch_all`, `fetch_optional` and `fetch_one` rows, and `values`, `value` and
/// `one_value` the only column of rows.
#[macro_export]
macro_rules! sql {
    (execute in $on:expr; $statement:expr $(, $value:expr)*) => {
        $crate::database::on!($on.executor(), own => sqlx::query($statement)
            $(.bind($value))*
            .execute(own)
            .await
            .map(|done| done.rows_affected()))
    };
    (values in $($rest:tt)+) => { $crate::database::sql!(@query_scalar fetch_all $($rest)+) };
    (value in $($rest:tt)+) => { $crate::database::sql!(@query_scalar fetch_optional $($rest)+) };
    (one_value in $($rest:tt)+) => { $crate::database::sql!(@query_scalar fetch_one $($rest)+) };
    (@$query:ident $fetch:ident $on:expr; $statement:expr $(, $value:expr)*) => {
        $crate::database::on!($on.executor(), own => sqlx::$query($statement)
            $(.bind($value))*
            .$fetch(own)
            .await)
    };
    ($fetch:ident in $($rest:tt)+) => { $crate::database::sql!(@query_as $fetch $($rest)+) };
}
pub use sql;

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
        migrations!($folder, (1, "ledger"), (2, "tokens"), (3, "engine"), (4, "reference"), (5, "owners"))
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
    readers: Pools,
    writers: Pools,
}

/// Connections of one kind.
#[derive(Debug, Clone)]
pub struct Pools(Either<SqlitePool, Pool>);

impl Pools {
    /// For [`sql!`].
    pub fn executor(&self) -> &Either<SqlitePool, Pool> {
        &self.0
    }

    async fn transaction(
        &self,
        sqlite: &'static str,
        postgres: &'static str,
    ) -> Result<Transaction> {
        // The guard is made before BEGIN, so that a connection on which BEGIN fails is not reused
        // either.
        let connection = match &self.0 {
            Either::Sqlite(pool) => {
                Either::Sqlite(pool.acquire().await.map_err(|error| match error {
                    sqlx::Error::PoolTimedOut => Error::Busy,
                    other => other.into(),
                })?)
            }
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
        sql!(execute in transaction; begin)?;
        Ok(transaction)
    }
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
        let file = match address.split_once("://") {
            Some(("sqlite", file)) => file,
            Some(_) => return Err(Error::Address),
            None => address,
        };
        // SQLite would open another file than the one that is checked, or none.
        if file.is_empty() || file.starts_with("file:") || file == ":memory:" {
            return Err(Error::Address);
        }
        Ok(Self::File(file.into()))
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
        let [readers, writers] = match &address {
            Address::File(path) => open_file(path, &shown, opening).await?.map(Either::Sqlite),
            #[cfg(feature = "postgres")]
            Address::Server(options) => {
                postgres::open(options, &shown, opening).await?.map(Either::Postgres)
            }
            #[cfg(not(feature = "postgres"))]
            Address::Server(never) => match **never {},
        };
        Ok(Self { address: shown, readers: Pools(readers), writers: Pools(writers) })
    }

    /// Its address, without a password.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Checks that it answers.
    pub async fn ping(&self) -> Result<()> {
        sql!(execute in self; "SELECT 1")?;
        Ok(())
    }

    /// Checks that a SQLite file has room to grow: some bytes are written beside it, to the file of
    /// the service's lock, and removed. The disk of a PostgreSQL server is not checked.
    pub async fn check_room(&self) -> Result<()> {
        let Either::Sqlite(pool) = &self.readers.0 else { return Ok(()) };
        let file = pool.connect_options().get_filename().to_owned();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = service_lock::open_beside(&file)?;
            let written = file.write_all(&vec![1; ROOM]);
            file.set_len(0)?;
            written
        });
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error))
                if [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind()) =>
            {
                Err(Error::Full)
            }
            Ok(Err(error)) => Err(Error::Disk { problem: error.to_string() }),
            Err(error) => Err(Error::Disk { problem: error.to_string() }),
        }
    }

    /// Closes all connections once they are idle. SQLite then cleans up its files.
    pub async fn close(&self) {
        on!(self.executor(), pool => pool.close().await);
        on!(self.writers.executor(), pool => pool.close().await);
    }

    /// For [`sql!`]: the connections that read.
    pub fn executor(&self) -> &Either<SqlitePool, Pool> {
        self.readers.executor()
    }

    /// The connections that write.
    pub fn writers(&self) -> &Pools {
        &self.writers
    }

    /// A transaction that writes. SQLite allows one at a time; PostgreSQL allows several until they
    /// need the same rows.
    pub async fn write(&self) -> Result<Transaction> {
        self.writers.transaction("BEGIN IMMEDIATE", "BEGIN").await
    }

    /// A transaction that reads a consistent snapshot.
    pub async fn snapshot(&self) -> Result<Transaction> {
        let postgres = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.readers.transaction("BEGIN", postgres).await
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
    /// For [`sql!`].
    pub fn executor(&mut self) -> Either<&mut SqliteConnection, &mut Server> {
        match &mut self.connection {
            Either::Sqlite(own) => Either::Sqlite(own.as_mut()),
            Either::Postgres(own) => Either::Postgres(own),
        }
    }

    /// Whether the database is PostgreSQL.
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
        sql!(execute in self; how)?;
        self.ended = true;
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.ended {
            on!(&mut self.connection, connection => connection.close_on_drop());
        }
    }
}

/// Whether opening may create a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    MayCreate,
    MustExist,
}

/// Opens a file: connections that read, and connections that write.
async fn open_file(path: &Path, shown: &str, opening: Opening) -> Result<[SqlitePool; 2]> {
    if opening == Opening::MustExist && !path.exists() {
        return Err(Error::Absent { address: shown.to_owned() });
    }
    check_is_file(path, shown)?;
    check_names(path, shown)?;
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
    let options = loop {
        match prepare_file(&options, shown, opening).await {
            Err(Error::Busy) if started.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) if opening == Opening::MustExist && error.is_not_writable() => {
                break read_only(path, shown).await.map_err(|error| error.opening(shown))?;
            }
            Err(error) => return Err(error.opening(shown)),
            Ok(()) => break options,
        }
    };
    let pool = |size: u32, options: SqliteConnectOptions| {
        PoolOptions::new()
            .max_connections(size)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(options)
    };
    // A statement that writes is an error on a connection that reads.
    let reading = options.clone().pragma("query_only", "ON");
    let writing = options.pragma("cache_size", WRITE_CACHE);
    Ok([pool(CONNECTIONS, reading), pool(WRITERS, writing)])
}

/// The options for a file, or a folder, that this user may only read. The tables of the ledger are
/// the same in all versions, so an earlier one needs no migration to be read.
async fn read_only(path: &Path, shown: &str) -> Result<SqliteConnectOptions> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        // Without a log no program writes now, and SQLite need not create one to read.
        .immutable(!Path::new(&log).exists())
        .busy_timeout(PATIENCE)
        .disable_statement_logging();
    let mut connection = options.connect().await?;
    check_file(&mut connection, shown, Opening::MustExist).await?;
    check_definitions(&mut connection, shown).await?;
    let latest: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM tyrex_migrations")
        .fetch_one(&mut connection)
        .await?;
    let own = migrations!("sqlite").map(|(number, ..)| number);
    if latest > own.into_iter().max() {
        return Err(Error::Newer { address: shown.to_owned() });
    }
    connection.close().await?;
    Ok(options)
}

/// Rejects folders, devices and pipes, which SQLite would report as a disk error.
fn check_is_file(path: &Path, shown: &str) -> Result<()> {
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() => Err(Error::Unreachable {
            address: shown.to_owned(),
            problem: "this is not a file, expected a SQLite file or a postgres:// address"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Rejects a file with several names (hard links). SQLite keeps its log beside the name by which it
/// opened the file, so two programs that use two names would not see each other's locks and
/// entries.
fn check_names(path: &Path, shown: &str) -> Result<()> {
    #[cfg(unix)]
    if let Ok(metadata) = path.metadata() {
        let names = std::os::unix::fs::MetadataExt::nlink(&metadata);
        if names > 1 {
            return Err(Error::Linked { address: shown.to_owned(), names });
        }
    }
    Ok(())
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
    check_file(&mut connection, shown, opening).await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    migrate(migrations!("sqlite"), &mut *transaction, shown).await?;
    check_definitions(&mut transaction, shown).await?;
    transaction.commit().await?;
    connection.close().await?;
    Ok(())
}

async fn check_file(
    connection: &mut SqliteConnection,
    shown: &str,
    opening: Opening,
) -> Result<()> {
    let (tables, ours): (i64, i64) = sqlx::query_as(
        "SELECT count(*), count(CASE WHEN name = 'tyrex_migrations' THEN 1 END) \
         FROM sqlite_schema WHERE type = 'table'",
    )
    .fetch_one(&mut *connection)
    .await?;
    check_ours(shown, opening, tables > 0, ours > 0)?;
    // The driver panics on names that are not text.
    let schema: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT CAST(coalesce(sql, '') AS BLOB) FROM sqlite_schema")
            .fetch_all(connection)
            .await?;
    if schema.iter().any(|definition| std::str::from_utf8(definition).is_err()) {
        return Err(Error::Unreachable {
            address: shown.to_owned(),
            problem: "database disk image is malformed".to_owned(),
        });
    }
    Ok(())
}

/// Rejects a database with a view or a trigger that the migrations do not define, or with other
/// columns or indexes in the tables of the ledger: they would change what a statement reads or
/// writes, while every entry keeps its hash. Dropped triggers only permit what the chain detects.
async fn check_definitions(connection: &mut SqliteConnection, shown: &str) -> Result<()> {
    const DEFINED: &str = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema \
                           WHERE type IN ('view', 'trigger') \
                           OR tbl_name IN ('entries', 'payloads', 'head') ORDER BY name";
    type Definition = (String, String, String, String);
    let mut empty = SqliteConnectOptions::new().filename(":memory:").connect().await?;
    migrate(migrations!("sqlite"), &mut empty, shown).await?;
    let own: Vec<Definition> = sqlx::query_as(DEFINED).fetch_all(&mut empty).await?;
    empty.close().await?;
    let found: Vec<Definition> = sqlx::query_as(DEFINED).fetch_all(connection).await?;
    match found.iter().find(|definition| !own.contains(definition)) {
        None => Ok(()),
        Some((kind, name, ..)) => Err(Error::Unreachable {
            address: shown.to_owned(),
            problem: format!(
                "the {kind} `{name}` is not as tyrex defines it, so the database was changed by \
                 another program and cannot be trusted"
            ),
        }),
    }
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
