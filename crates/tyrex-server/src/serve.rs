//! The service from start to graceful end.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;

use crate::access::Caller;
use crate::routes;
use crate::state::AppState;

/// The whole service as a function from requests to answers, without sockets.
#[must_use]
pub fn app(state: AppState) -> Router {
    let (router, _openapi) = routes::router().split_for_parts();
    router.layer(middleware::from_fn_with_state(state.clone(), identify)).with_state(state)
}

/// Finds out who asks.
async fn identify(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    let caller = if state.config.demands_tokens() {
        Caller::Unknown("this needs a token: Authorization: Bearer ...")
    } else {
        Caller::Anyone
    };
    request.extensions_mut().insert(caller);
    next.run(request).await
}
