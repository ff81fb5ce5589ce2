//! Is the service alive, and can it answer?

use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::Json;
use crate::problem::Problem;
use crate::state::AppState;

/// That the service is alive or ready.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`; a service that is not has a problem to tell.
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

/// The service can answer: its database is there, and so is the model it was started for.
#[utoipa::path(get, path = "/readyz", tag = "service", responses((status = OK, body = Health)))]
pub(crate) async fn readyz(State(state): State<AppState>) -> Result<Json<Health>, Problem> {
    let soon = Duration::from_secs(1);
    if let Err(error) = state.database.ping().await {
        tracing::error!(%error, "the database does not answer");
        return Err(Problem::busy("the database does not answer", soon));
    }
    if !state.engine.is_ready() {
        return Err(Problem::busy("no model is ready, or the service is ending", soon));
    }
    Ok(Json(OK))
}
