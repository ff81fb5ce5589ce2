//! Jobs: their progress and results.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tyrex::explain::GateReport;
use utoipa::ToSchema;
use uuid::Uuid;

use super::audit;
use super::explain::{self, ExplainDocument};
use crate::access::{Caller, Explaining};
use crate::engine::error::Error;
use crate::engine::jobs::{Job, JobKind, JobResult, JobState};
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::rows::wants_arrow;
use crate::state::AppState;

/// The interval of keep-alive messages.
const ALIVE: Duration = Duration::from_secs(10);
/// The interval at which a stream checks the token of its reader.
const CHECKING: Duration = Duration::from_secs(1);

/// Jobs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobList {
    /// The newest first.
    jobs: Vec<Job>,
}

/// The jobs of the caller's token; for the role `admin`, all jobs.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", responses((status = OK, body = JobList)))]
pub(crate) async fn list(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
) -> Result<Json<JobList>, Problem> {
    state.engine.catch_up().await?;
    let mut jobs = state.engine.jobs();
    jobs.retain(|job| caller.may_see(job.owner.as_deref()));
    Ok(Json(JobList { jobs }))
}

/// A job with its updates, if the caller may see it. Other callers' jobs do not exist for it.
async fn seen(
    state: &AppState,
    caller: &Caller,
    id: Uuid,
) -> Result<watch::Receiver<Job>, Problem> {
    let job = state.engine.job(id).await?;
    let visible = caller.may_see(job.borrow().owner.as_deref());
    if visible { Ok(job) } else { Err(Error::absent("job", id.to_string()).into()) }
}

/// One job.
#[utoipa::path(get, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's name")),
    responses((status = OK, body = Job), (status = NOT_FOUND)))]
pub(crate) async fn show(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
    Path(id): Path<Uuid>,
) -> Result<Json<Job>, Problem> {
    let job = seen(&state, &caller, id).await?.borrow().clone();
    Ok(Json(job))
}

/// Cancels a job; removes a finished one with its data.
#[utoipa::path(delete, path = "/v1/jobs/{id}", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's name")),
    responses((status = OK, body = Job), (status = NO_CONTENT), (status = NOT_FOUND)))]
pub(crate) async fn cancel(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    seen(&state, &caller, id).await?;
    Ok(match state.engine.cancel(id).await? {
        Some(job) => Json(job).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// One event of a stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "events are written by axum; this describes them")]
pub(crate) struct JobEvent {
    /// `progress`; the last one is named `done`, `failed` or `cancelled`.
    #[schema(example = "progress")]
    event: String,
    /// The job, as JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// The progress of a job as server-sent events.
///
/// Every event contains the job. Events are named `progress`; the last one is named `done`,
/// `failed` or `cancelled`. When the service shuts down, or the token is revoked or expires, the
/// stream ends; reconnect after a restart.
#[utoipa::path(get, path = "/v1/jobs/{id}/events", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's name")),
    responses((status = OK, content((JobEvent = "text/event-stream"))), (status = NOT_FOUND)))]
pub(crate) async fn events(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
    Path(id): Path<Uuid>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let mut jobs = seen(&state, &caller, id).await?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        let mut changed = true;
        loop {
            // A revoked or expired token receives nothing more, also if nothing happens.
            if !state.tokens.still_admit(&caller).await.unwrap_or(false) {
                return;
            }
            if changed {
                let job = jobs.borrow_and_update().clone();
                let name = if job.state.is_final() { job.state.name() } else { "progress" };
                let Ok(event) = Event::default().event(name).json_data(&job) else { return };
                let over = job.state.is_final() || job.state == JobState::Parked;
                // The client has disconnected.
                if sender.send(Ok(event)).await.is_err() || over {
                    return;
                }
            }
            changed = tokio::select! {
                changed = jobs.changed() => match changed {
                    Ok(()) => true,
                    Err(_) => return,
                },
                () = sender.closed() => return,
                () = tokio::time::sleep(CHECKING) => false,
            };
        }
    });
    let stream = ReceiverStream::new(receiver);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)))
}

/// The result of a job: for advice the document of `/v1/explain`, for a calibration the library's,
/// for an audit the one of `/v1/audit`.
#[utoipa::path(get, path = "/v1/jobs/{id}/result", tag = "jobs",
    params(("id" = Uuid, Path, description = "The job's name")),
    responses((status = OK, content(
        (JobDocument = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
        (String = "text/html"),
    )), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn result(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    seen(&state, &caller, id).await?;
    match state.engine.result(id).await? {
        JobResult::Explain(found) => explain::answer(*found, wants_arrow(&headers)),
        JobResult::Document(JobKind::Audit, document)
            if wants_arrow(&headers) || audit::wants_html(&headers) =>
        {
            let report: GateReport =
                serde_json::from_str(document.get()).map_err(Problem::internal)?;
            audit::answer(report, &headers)
        }
        JobResult::Document(_, document) => {
            let body = document.get().to_owned();
            Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
        }
    }
}

/// The result of a job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the documents; each is written where it is made")]
pub(crate) enum JobDocument {
    /// Advice.
    Explain(Box<ExplainDocument>),
    /// A threshold.
    Calibrate(tyrex::calibrate::Calibration),
    /// The gate's report.
    Audit(Box<GateReport>),
}
