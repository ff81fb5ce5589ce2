//! The counters, for Prometheus.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use crate::access::Reader;
use crate::problem::Problem;
use crate::state::AppState;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters of the service, in the text format of `OpenMetrics`.
#[utoipa::path(get, path = "/metrics", tag = "service",
    responses((status = OK, body = String, content_type = "application/openmetrics-text")))]
pub(crate) async fn metrics(_: Reader, State(state): State<AppState>) -> Result<Response, Problem> {
    let text = state.metrics.text(&state.engine).map_err(Problem::internal)?;
    Ok(([(CONTENT_TYPE, OPENMETRICS)], text).into_response())
}
