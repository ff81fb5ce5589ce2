//! The log of the service: one line per request, without the content of requests.
//!
//! A line has the method, the declared route (never the path or the query, which may hold a name),
//! the status, the duration, the request's id and the public part of the token.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use tracing::level_filters::LevelFilter;
use tracing::{Span, info, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use uuid::Uuid;

use crate::access::TokenName;
use crate::metrics::Metrics;

/// The format of the log on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON document per line.
    Json,
}

tyrex::choices! { LogFormat "log" {
    Text = "text": "Plain text",
    Json = "json": "One JSON document per line",
} }

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Starts the log of this process. A second call changes nothing.
pub fn start(format: LogFormat) {
    // Other crates log warnings only: their details may quote a request.
    let shown = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("tyrex_server", LevelFilter::INFO);
    let registry = tracing_subscriber::registry().with(shown);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // The place of a panic is logged; its message may quote a request.
    std::panic::set_hook(Box::new(|panic| {
        if PANIC_EXPECTED.get() {
            return;
        }
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a panic");
    }));
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

thread_local! {
    /// Whether this thread does work that may panic on a client's input.
    static PANIC_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that may panic on a client's input; such a panic is not logged.
pub(crate) fn without_panics<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    PANIC_EXPECTED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    PANIC_EXPECTED.set(false);
    outcome
}

/// A request in progress: its id, and the values to log and count.
#[derive(Debug)]
pub(crate) struct Seen {
    id: Uuid,
    method: &'static str,
    route: Option<MatchedPath>,
    began: Instant,
    span: Span,
}

impl Seen {
    pub(crate) fn new(request: &Request) -> Self {
        let (id, method) = (tyrex_ledger::new_id(), method(request.method()));
        let route = request.extensions().get::<MatchedPath>().cloned();
        let span = info_span!("request", %id, method, route = path(route.as_ref()));
        Self { id, method, route, began: Instant::now(), span }
    }

    /// The span of all log lines of the request.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Logs and counts the response, and adds the request's id.
    pub(crate) fn answered(self, metrics: &Metrics, response: &mut Response) {
        let (status, took) = (response.status(), self.began.elapsed());
        let token = response.extensions().get::<TokenName>().map_or("-", |name| name.0.as_str());
        self.span.in_scope(|| {
            let milliseconds = (took.as_secs_f64() * 1e5).round() / 1e2;
            info!(status = status.as_u16(), milliseconds, token, "answered");
        });
        metrics.answered(path(self.route.as_ref()), self.method, status, took);
        if let Ok(id) = HeaderValue::from_str(&self.id.to_string()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
    }
}

/// A route as it is declared.
fn path(route: Option<&MatchedPath>) -> &str {
    route.map_or("unmatched", MatchedPath::as_str)
}

/// The name of a known method. A client may send any text as a method.
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
