//! Health checks.

use std::time::{Duration, Instant};

use axum::extract::State;
use serde::Serialize;
use tokio::sync::Mutex;
use tyrex_ledger::database::{Database, Error};
use utoipa::ToSchema;

use crate::extract::Json;
use crate::problem::Problem;
use crate::state::AppState;

/// The answer of a health check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`; otherwise the response is a problem.
    #[schema(example = "ok")]
    status: &'static str,
    /// The version of tyrex.
    #[schema(example = "0.1.0")]
    version: &'static str,
}

const OK: Health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };

/// The process is alive.
#[utoipa::path(get, path = "/healthz", tag = "service", responses((status = OK, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(OK)
}

/// The service is ready: its database answers, a SQLite file has room to grow, and the model it was
/// started with is loaded.
#[utoipa::path(get, path = "/readyz", tag = "service", responses((status = OK, body = Health)))]
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Json<Health>, Problem> {
    let soon = Duration::from_secs(1);
    if let Some(problem) = state.seen.problem(&state.database).await {
        return Err(Problem::busy(problem, soon));
    }
    if !state.engine.is_ready() {
        return Err(Problem::busy("no model is ready, or the service is shutting down", soon));
    }
    Ok(Json(OK))
}

/// The last check of the database. Anyone may ask whether the service is ready, as often as they
/// like, and a check writes to the disk.
#[derive(Debug, Default)]
pub(crate) struct DatabaseSeen(Mutex<Option<(Instant, Option<&'static str>)>>);

impl DatabaseSeen {
    /// How long a check holds.
    const HOLDS: Duration = Duration::from_secs(2);

    /// The problem of the database, if there is one. Those who ask during a check wait for it.
    async fn problem(&self, database: &Database) -> Option<&'static str> {
        let mut last = self.0.lock().await;
        if let Some((at, problem)) = *last
            && at.elapsed() < Self::HOLDS
        {
            return problem;
        }
        let problem = checked(database).await;
        *last = Some((Instant::now(), problem));
        problem
    }
}

async fn checked(database: &Database) -> Option<&'static str> {
    if let Err(error) = database.ping().await {
        tracing::error!(%error, "the database does not answer");
        return Some("the database does not answer");
    }
    let error = database.check_room().await.err()?;
    tracing::error!(%error, "the database cannot be written to");
    Some(match error {
        Error::Full => "the disk of the database is full",
        _ => "the database cannot be written to",
    })
}
