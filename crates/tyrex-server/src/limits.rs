//! How much of the machine one request may take: the size of its body, the memory of all bodies
//! together, and time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
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

impl Limits {
    /// Refuses more rows than one request may bring.
    pub(crate) fn check_rows(&self, rows: usize) -> Result<(), Problem> {
        if rows > self.rows {
            let detail = format!("{rows} rows, expected at most {}", self.rows);
            return Err(Problem::field("rows", detail));
        }
        Ok(())
    }
}

/// Room for the bodies of all requests together, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))))
    }

    /// Room for so many bytes, while there is any.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// Gives a request its share of memory and time, and no more. The body is here before the handler
/// runs.
pub(crate) async fn bounded(state: &AppState, request: Request, next: Next) -> Response {
    let limits = &state.config.limits;
    // A body that is packed small and grows without limit is none of ours.
    if request.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
        let detail = "the body is encoded; expected it as it is, without content-encoding";
        return refuse(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let deadline = Instant::now() + limits.time;
    let (parts, body) = request.into_parts();
    // Whom nobody knows nobody listens to; what he may not do the handler says.
    let is_known = !matches!(parts.extensions.get(), Some(Caller::Unknown(_)));
    let mut taken = Taken { bytes: Bytes::new(), _room: None };
    if is_known && !body.is_end_stream() {
        let allowed = if is_upload(&parts.headers) { limits.upload } else { limits.body };
        taken = match timeout_at(deadline, take(body, allowed, limits.idle, &state.room)).await {
            Ok(Ok(taken)) => taken,
            Ok(Err(problem)) => return refuse(problem),
            Err(_) => return refuse(slow(limits.time)),
        };
    }
    let request = Request::from_parts(parts, Body::from(taken.bytes));
    match timeout_at(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_) => too_long(limits.time).into_response(),
    }
}

/// A whole body, and its room until the request is answered.
struct Taken {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

async fn take(body: Body, allowed: usize, idle: Duration, room: &Room) -> Result<Taken, Problem> {
    let too_large = || {
        let detail = format!("the body is larger than {allowed} bytes, the most that is read");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    // What is announced as too large is not read at all.
    if body.size_hint().lower() > allowed as u64 {
        return Err(too_large());
    }
    let mut arriving = body.into_data_stream();
    let (mut parts, mut size, mut all_room) = (Vec::new(), 0, None::<OwnedSemaphorePermit>);
    while let Some(part) = timeout(idle, arriving.next()).await.map_err(|_| slow(idle))? {
        let part = part.map_err(|error| Problem::bad_request(error.to_string()))?;
        size += part.len();
        if size > allowed {
            return Err(too_large());
        }
        let Some(own_room) = room.take(part.len()) else {
            let detail = "the requests in hand fill the memory that is set aside for them";
            return Err(Problem::busy(detail, Duration::from_secs(1)));
        };
        match &mut all_room {
            Some(room) => room.merge(own_room),
            none => *none = Some(own_room),
        }
        parts.push(part);
    }
    let bytes = if parts.len() == 1 { parts.remove(0) } else { parts.concat().into() };
    Ok(Taken { bytes, _room: all_room })
}

/// Whether the body holds files.
fn is_upload(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    kind.to_ascii_lowercase().starts_with("multipart/")
}

/// A problem that leaves the rest of the body unread: the connection ends with it.
fn refuse(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn slow(time: Duration) -> Problem {
    let detail = format!("the body did not arrive within {} s", time.as_secs_f64());
    Problem::new(StatusCode::REQUEST_TIMEOUT, detail)
}

fn too_long(time: Duration) -> Problem {
    let detail = format!(
        "the work took longer than {} s and was stopped; ask for fewer rows or less work, or for a \
         job",
        time.as_secs_f64()
    );
    Problem::new(StatusCode::GATEWAY_TIMEOUT, detail)
}
