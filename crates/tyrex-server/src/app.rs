//! The service as a function from requests to responses.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument as _;

use crate::access::{self, Caller, TokenName};
use crate::log::Seen;
use crate::problem::Problem;
use crate::state::AppState;
use crate::{guard, limits, openapi, page, routes};

/// The whole service, without sockets.
pub fn app(state: AppState) -> Router {
    let (router, mut api) = routes::router().split_for_parts();
    openapi::complete(&mut api);
    // A description is made of strings; it is always serialisable.
    let api = Bytes::from(serde_json::to_vec(&api).unwrap_or_default());
    router
        .route("/openapi.json", get(async move || ([(CONTENT_TYPE, "application/json")], api)))
        .merge(page::router())
        .fallback(async || Problem::not_found("no such path; /openapi.json lists all paths"))
        .method_not_allowed_fallback(async || {
            let detail = "method not allowed; the header `allow` lists the methods";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
        })
        // From the inside out: the last one sees a request first.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(state.clone(), admitted))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(state.clone(), observed))
        .with_state(state)
}

/// Middleware: headers, log and metrics of every response.
async fn observed(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let seen = Seen::new(&request);
    let mut response = next.run(request).instrument(seen.span()).await;
    guard::head(&state.config, response.headers_mut());
    seen.answered(&state.metrics, &mut response);
    response
}

/// Middleware: identifies the caller, checks access and rate, and applies the limits.
async fn admitted(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    if let Some(problem) = guard::foreign(&state.config, &request) {
        return problem.into_response();
    }
    let caller = match caller(&state, request.headers()).await {
        Ok(caller) => caller,
        Err(error) => return Problem::from(error).into_response(),
    };
    if let Some(problem) = too_often(&state, &caller, &request) {
        return problem.into_response();
    }
    let name = match &caller {
        Caller::Holder { id, .. } => Some(TokenName(id.clone())),
        _ => None,
    };
    request.extensions_mut().insert(caller);
    let mut response = limits::bounded(&state, request, next).await;
    if let Some(name) = name {
        response.extensions_mut().insert(name);
    }
    response
}

/// Applies the rate limit. Health checks are exempt.
fn too_often(state: &AppState, caller: &Caller, request: &Request) -> Option<Problem> {
    let rate = state.rate.as_ref()?;
    if ["/healthz", "/readyz"].contains(&request.uri().path()) {
        return None;
    }
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let problem = rate.check(caller, address).err()?;
    state.metrics.limited();
    Some(problem)
}

/// The caller of a request.
async fn caller(state: &AppState, headers: &HeaderMap) -> Result<Caller, access::Error> {
    if !state.config.demands_tokens() {
        return Ok(Caller::Anyone);
    }
    let Some(sent) = headers.get(AUTHORIZATION) else {
        return Ok(Caller::Unknown("this needs a token, as in `Authorization: Bearer tyrex_...`"));
    };
    let bearer = sent.to_str().ok().and_then(|sent| sent.split_once(' '));
    match bearer {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            state.tokens.caller(token).await
        }
        _ => Ok(Caller::Unknown("expected `Authorization: Bearer tyrex_...`")),
    }
}

/// The response after a handler panicked, which is a bug. The log has the place of the panic but
/// not its message, which may quote the request.
fn panicked(_said: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("request failed: a panic");
    Problem::hidden().into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_problem_that_tells_nothing() {
        let broken = Router::new()
            .route("/", get(async || -> String { panic!("secret") }))
            .layer(CatchPanicLayer::custom(panicked));
        let request = Request::builder().uri("/").body(Body::empty()).expect("a request");
        let response = broken.oneshot(request).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let body = axum::body::to_bytes(response.into_body(), 10_000).await.expect("a body");
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains("x-request-id") && !text.contains("secret"), "{text}");
    }
}
