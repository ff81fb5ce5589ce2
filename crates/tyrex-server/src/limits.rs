//! How much of the machine one request may take: the size of its body, the memory of all bodies
//! together, and time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt as _;

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

/// Middleware: gives a request its share of memory and time, and no more.
pub(crate) async fn bounded(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let limits = &state.config.limits;
    // A body that is packed small and grows without limit is none of ours.
    if request.headers().get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
        let detail = "the body is encoded; expected it as it is, without content-encoding";
        return refuse(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let allowed = if is_upload(request.headers()) { limits.upload } else { limits.body };
    // What is announced as too large is not read at all.
    if request.body().size_hint().lower() > allowed as u64 {
        return refuse(Broken::Large(allowed).problem());
    }
    if request.body().is_end_stream() {
        return match tokio::time::timeout(limits.time, next.run(request)).await {
            Ok(response) => response,
            Err(_) => too_long(limits.time).into_response(),
        };
    }
    let watch = Arc::new(Watch { allowed, room: state.room.clone(), ..Watch::new() });
    let request = request.map(|body| watch.clone().around(body, limits.idle));
    let answer = tokio::time::timeout(limits.time, next.run(request)).await;
    match (watch.broken.get(), answer) {
        // Whatever the handler made of the broken body, this is why.
        (Some(broken), _) => refuse(broken.problem()),
        (None, Ok(response)) => response,
        (None, Err(_)) if !watch.complete.load(Ordering::Relaxed) => {
            refuse(Broken::Slow(limits.time).problem())
        }
        (None, Err(_)) => too_long(limits.time).into_response(),
    }
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

fn too_long(time: Duration) -> Problem {
    let detail = format!(
        "the work took longer than {} s and was stopped; ask for fewer rows or less work, or for a \
         job",
        time.as_secs_f64()
    );
    Problem::new(StatusCode::GATEWAY_TIMEOUT, detail)
}

/// What is seen of a body on its way to the handler.
#[derive(Debug)]
struct Watch {
    allowed: usize,
    room: Room,
    seen: AtomicUsize,
    complete: AtomicBool,
    broken: OnceLock<Broken>,
    /// The room of the bytes so far; free again when the request is answered.
    taken: Mutex<Option<OwnedSemaphorePermit>>,
}

/// Which limit a body broke.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Large(usize),
    Slow(Duration),
    NoRoom,
}

impl Broken {
    fn problem(self) -> Problem {
        match self {
            Self::Large(allowed) => Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {allowed} bytes, the most that is read"),
            ),
            Self::Slow(time) => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {} s", time.as_secs_f64()),
            ),
            Self::NoRoom => Problem::busy(
                "the requests in hand fill the memory that is set aside for them",
                Duration::from_secs(1),
            ),
        }
    }
}

impl Watch {
    fn new() -> Self {
        Self {
            allowed: 0,
            room: Room::new(0),
            seen: AtomicUsize::new(0),
            complete: AtomicBool::new(false),
            broken: OnceLock::new(),
            taken: Mutex::new(None),
        }
    }

    /// The same body, under watch.
    fn around(self: Arc<Self>, body: Body, idle: Duration) -> Body {
        let ending = self.clone();
        let watched = body
            .into_data_stream()
            .timeout(idle)
            .map(move |part| match part {
                Ok(Ok(bytes)) => self.admit(bytes),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(self.refuse(Broken::Slow(idle))),
            })
            .chain(tokio_stream::once(()).filter_map(move |()| {
                ending.complete.store(true, Ordering::Relaxed);
                None
            }));
        Body::from_stream(watched)
    }

    fn admit(&self, bytes: Bytes) -> Result<Bytes, String> {
        let seen = self.seen.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        if seen > self.allowed {
            return Err(self.refuse(Broken::Large(self.allowed)));
        }
        let Some(room) = self.room.take(bytes.len()) else {
            return Err(self.refuse(Broken::NoRoom));
        };
        match &mut *self.taken.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(taken) => taken.merge(room),
            taken => *taken = Some(room),
        }
        Ok(bytes)
    }

    fn refuse(&self, broken: Broken) -> String {
        self.broken.get_or_init(|| broken).problem().detail().to_owned()
    }
}
