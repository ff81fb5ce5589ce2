//! A PostgreSQL server, if `TYREX_POSTGRES` names one.

use std::fs::File;
use std::process::Command;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::say;

/// The server, for one test at a time: some of them crash it.
pub(crate) struct Server {
    url: String,
    _alone: File,
}

impl Server {
    /// `None` if there is none; then the test is skipped, and says so.
    pub(crate) fn of(test: &str) -> Option<Self> {
        let Ok(url) = std::env::var("TYREX_POSTGRES") else {
            say(&format!("skipped {test}: TYREX_POSTGRES is not set; `./check step test` sets it"));
            return None;
        };
        let lock = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres.lock");
        let alone = File::create(lock).unwrap();
        alone.lock().unwrap();
        Some(Self { url, _alone: alone })
    }

    pub(crate) async fn connection(&self) -> PgConnection {
        let options: PgConnectOptions = self.url.parse().unwrap();
        options.connect().await.unwrap()
    }

    /// A new database of this name, as a URL.
    pub(crate) async fn database(&self, name: &str) -> String {
        let mut connection = self.connection().await;
        for statement in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
            let statement = AssertSqlSafe(format!("{statement} {name}"));
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        format!("{}/{name}", self.url.rsplit_once('/').unwrap().0)
    }

    /// Crashes the server. It comes back by itself.
    pub(crate) fn crash() {
        let control = std::env::var("TYREX_POSTGRES_CONTROL")
            .expect("TYREX_POSTGRES_CONTROL names the script that restarts the server");
        let output = Command::new(control).arg("restart").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
