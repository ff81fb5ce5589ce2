//! One file per resource: translate, call the engine, answer.

mod health;
mod metrics;
mod results;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

/// All that can be asked for.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(crate::openapi::head())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(results::list))
        .routes(routes!(results::show))
}
