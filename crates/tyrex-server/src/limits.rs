//! Limits of one request: the size of its body, the memory of all bodies together, and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::StreamExt as _;

use crate::access::Caller;
use crate::config::Limits;
use crate::problem::Problem;
use crate::state::AppState;

/// Limits of draining a rejected body: total time, pause and size.
const PASSING: Duration = Duration::from_secs(5);
const PAUSING: Duration = Duration::from_millis(500);
const MOST_PASSED: usize = 32 << 20;

impl Limits {
    /// Rejects a request with too many rows.
    pub(crate) fn check_rows(&self, field: &str, rows: usize) -> Result<(), Problem> {
        if rows > self.rows {
            let detail = format!("{rows} rows, expected at most {}", self.rows);
            return Err(Problem::field(field, detail));
        }
        Ok(())
    }
}

/// Memory for the bodies of all requests together, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl BodyBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Reserves memory, if there is enough.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// Applies the limits of memory and time to a request. The body is read before the handler runs.
pub(crate) async fn bounded(state: &AppState, request: Request, next: Next) -> Response {
    let limits = &state.config.limits;
    let deadline = Instant::now() + limits.time;
    let (parts, body) = request.into_parts();
    let mut body = body.into_data_stream();
    let headers = &parts.headers;
    // A compressed body could expand without limit.
    if headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
        let detail = "the body is encoded, expected no content-encoding";
        return refuse(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail), headers, body);
    }
    let mut taken = Taken { bytes: Bytes::new(), _room: None };
    if matches!(parts.extensions.get(), Some(Caller::Unknown(_))) {
        // The body of an unknown caller is not read; the handler returns the error.
        let_pass(headers, body);
    } else if !body.is_end_stream() {
        let allowed = if is_upload(headers) { limits.upload } else { limits.body };
        let taking = take(&mut body, allowed, limits.idle, &state.room);
        taken = match timeout_at(deadline, taking).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(problem)) => return refuse(problem, headers, body),
            Err(_) => return refuse(slow(limits.time), headers, body),
        };
    }
    let request = Request::from_parts(parts, Body::from(taken.bytes));
    match timeout_at(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => too_long(limits.time).into_response(),
    }
}

/// A complete body, and its memory until the response is sent.
struct Taken {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

async fn take(
    body: &mut BodyDataStream,
    allowed: usize,
    idle: Duration,
    room: &BodyBudget,
) -> Result<Taken, Problem> {
    let too_large = || {
        let detail = format!("the body is larger than the limit of {allowed} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    // A body whose announced length is too large is not read at all.
    if body.size_hint().lower() > allowed as u64 {
        return Err(too_large());
    }
    // Most bodies arrive in one piece, which is not copied. Small pieces are copied together.
    let (mut bytes, mut more) = (Bytes::new(), Vec::new());
    let mut all_room = None::<OwnedSemaphorePermit>;
    while let Some(part) = timeout(idle, body.next()).await.map_err(|_| slow(idle))? {
        let part =
            part.map_err(|_| Problem::bad_request("the body is incomplete, or violates HTTP"))?;
        if bytes.len() + more.len() + part.len() > allowed {
            return Err(too_large());
        }
        let Some(own_room) = room.take(part.len()) else {
            let detail = "the bodies of current requests use all the memory reserved for them";
            return Err(Problem::busy(detail, Duration::from_secs(1)));
        };
        match &mut all_room {
            Some(room) => room.merge(own_room),
            none => *none = Some(own_room),
        }
        if bytes.is_empty() {
            bytes = part;
        } else {
            more.extend_from_slice(&part);
        }
    }
    if !more.is_empty() {
        bytes = [&*bytes, &*more].concat().into();
    }
    Ok(Taken { bytes, _room: all_room })
}

/// Whether the body holds files.
pub(crate) fn is_upload(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    kind.to_ascii_lowercase().starts_with("multipart/")
}

/// A problem that leaves the rest of the body unread: the connection is closed.
fn refuse(problem: Problem, headers: &HeaderMap, rest: BodyDataStream) -> Response {
    let mut response = problem.into_response();
    if response.status() != StatusCode::REQUEST_TIMEOUT {
        let_pass(headers, rest);
    }
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Reads and discards the rest of the body for a while: many clients read no response before they
/// have sent it. A client that waits for `100 Continue` does not get it.
fn let_pass(headers: &HeaderMap, mut rest: BodyDataStream) {
    if rest.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    let passing = async move {
        let mut passed = 0;
        while passed < MOST_PASSED
            && let Ok(Some(Ok(part))) = timeout(PAUSING, rest.next()).await
        {
            passed += part.len();
        }
    };
    tokio::spawn(timeout(PASSING, passing));
}

fn slow(time: Duration) -> Problem {
    let detail = format!("the body did not arrive within {} s", time.as_secs_f64());
    Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
}

fn too_long(time: Duration) -> Problem {
    let detail = format!(
        "the work took longer than {} s and was stopped; send fewer rows, ask for less work, or \
         use a job",
        time.as_secs_f64()
    );
    Problem::new(StatusCode::GATEWAY_TIMEOUT, detail)
}
