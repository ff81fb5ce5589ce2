//! One file per resource: translate the request, call the engine, respond.

mod audit;
mod calibrate;
mod certify;
mod explain;
mod health;
mod jobs;
mod ledger;
mod metrics;
mod models;
mod playground;
mod results;
mod search;
mod stability;
mod survival;

pub(crate) use health::DatabaseSeen;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::AppState;

/// All routes.
pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(crate::openapi::head())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
        .routes(routes!(results::list))
        .routes(routes!(results::show))
        .routes(routes!(models::list, models::upload))
        .routes(routes!(models::show, models::remove))
        .routes(routes!(models::activate))
        .routes(routes!(models::applicants))
        .routes(routes!(stability::measure))
        .routes(routes!(survival::survive))
        .routes(routes!(explain::explain))
        .routes(routes!(certify::certify))
        .routes(routes!(certify::verify))
        .routes(routes!(calibrate::calibrate))
        .routes(routes!(audit::audit))
        .routes(routes!(jobs::list))
        .routes(routes!(jobs::show, jobs::cancel))
        .routes(routes!(jobs::events))
        .routes(routes!(jobs::result))
        .routes(routes!(ledger::list))
        .routes(routes!(ledger::verify))
        .routes(routes!(ledger::forget))
        .routes(routes!(ledger::show))
        .routes(routes!(ledger::close))
        .routes(routes!(playground::map))
        .routes(routes!(playground::paths))
}
