//! The service's log: one line per request, without anything that a request said.
//!
//! A line names the method, the route as it is declared (never the path or the query, which may
//! hold a name), the status, the time it took, the request's id and the public part of the token.

use std::io::IsTerminal as _;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::level_filters::LevelFilter;
use tracing::{Instrument as _, info, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use uuid::Uuid;

use crate::access::TokenName;
use crate::state::AppState;

/// How the log is written, to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON document per line.
    Json,
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Starts the log of this process. A second call changes nothing.
pub fn start(format: LogFormat) {
    // Of others only warnings: what they say in detail may be what a request said.
    let shown = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("tyrex_server", LevelFilter::INFO);
    let registry = tracing_subscriber::registry().with(shown);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // Either fails only if a log was started before.
    let _ = match format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            registry.with(lines.with_target(false).with_ansi(colours)).try_init()
        }
        LogFormat::Json => registry
            .with(lines.json().flatten_event(true).with_span_list(false).with_target(false))
            .try_init(),
    };
}

/// Middleware: gives a request its id, and logs and counts its answer.
pub(crate) async fn observed(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let id = Uuid::now_v7();
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let began = Instant::now();
    let span = info_span!("request", %id, method, route);
    let mut response = next.run(request).instrument(span.clone()).await;
    let (status, took) = (response.status(), began.elapsed());
    let token = response.extensions().get::<TokenName>().map_or("-", |name| name.0.as_str());
    span.in_scope(|| {
        let milliseconds = (took.as_secs_f64() * 1e5).round() / 1e2;
        info!(status = status.as_u16(), milliseconds, token, "answered");
    });
    state.metrics.answered(route, method, status, took);
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// A method by its name. Anything may be sent as one; what is not known has no name here.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
