//! Health checks.

use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use tyrex_ledger::database;
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
    if let Err(error) = state.database.ping().await {
        tracing::error!(%error, "the database does not answer");
        return Err(Problem::busy("the database does not answer", soon));
    }
    if let Err(error) = state.database.check_room().await {
        tracing::error!(%error, "the database cannot be written to");
        let problem = match error {
            database::Error::Full => "the disk of the database is full",
            _ => "the database cannot be written to",
        };
        return Err(Problem::busy(problem, soon));
    }
    if !state.engine.is_ready() {
        return Err(Problem::busy("no model is ready, or the service is shutting down", soon));
    }
    Ok(Json(OK))
}
