//! Checks whether candidate models keep the promises of the ledger.

use axum::extract::{FromRequest as _, Request, State};
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tyrex::explain::{Ask, Gate, GateReport, Grouping};
use tyrex::report::gate_html;
use utoipa::ToSchema;

use super::explain::accepted;
use super::models::{broken, bytes, multipart, text};
use super::results;
use super::search::{arrow, request};
use crate::access::{Caller, Explaining};
use crate::ask::AskFields;
use crate::engine::jobs::{AuditWork, Job, Work};
use crate::engine::{Contender, GateQuestion};
use crate::extract::Json;
use crate::limits::is_upload;
use crate::problem::Problem;
use crate::rows::wants_arrow;
use crate::state::AppState;

/// Maximum number of models in a comparison.
const MOST_CANDIDATES: usize = 20;
/// The longest name of a candidate.
const LONGEST_NAME: usize = 100;

/// Candidate models and the question. The fields of [`Ask`] are at the same level as these.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(crate) struct AuditQuestion {
    /// Models of the service, by name. They are compared with the uploaded ones, if any.
    #[schema(max_items = 20)]
    candidates: Option<Vec<String>>,
    /// Features to group promises by: `sex`, or with edges `age:25,40,60`.
    #[schema(value_type = Option<Vec<String>>)]
    by: Option<Vec<Grouping>>,
    /// The share of promises that may be broken; 0 if absent.
    #[schema(minimum = 0.0, maximum = 1.0)]
    allow: Option<f64>,
    /// The confidence of intervals.
    confidence: Option<f64>,
    /// Whether to wait for the answer; otherwise it becomes a job. Uploads are always answered
    /// directly.
    #[schema(default = true)]
    wait: Option<bool>,
    /// How to search for repairs.
    #[serde(flatten)]
    #[schema(value_type = Ask)]
    ask: AskFields,
}

/// The parts of a comparison of uploaded models.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes the parts; they are read one by one")]
pub(crate) struct AuditUpload {
    /// Models, as ONNX; their file names are their names.
    #[schema(value_type = Vec<String>, format = Binary)]
    model: Vec<Vec<u8>>,
    /// The question.
    options: Option<AuditQuestion>,
}

/// Checks models against the open promises of the ledger: which they keep, which they break, and
/// repairs for the broken ones.
#[utoipa::path(post, path = "/v1/audit", tag = "ledger",
    request_body(content(
        (AuditQuestion = "application/json"),
        (AuditUpload = "multipart/form-data"),
    )),
    responses((status = OK, content(
        (GateReport = "application/json"),
        (String = "text/html"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )), (status = ACCEPTED, body = Job, headers(("location" = String))),
    (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn audit(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
    sent: Request,
) -> Result<Response, Problem> {
    let headers = sent.headers().clone();
    let is_upload = is_upload(&headers);
    let (mut contenders, question) = if is_upload {
        uploaded(sent, &state).await?
    } else {
        (Vec::new(), Json::from_request(sent, &state).await?.0)
    };
    let within = |problem: Problem| if is_upload { problem.within("options") } else { problem };
    let ask = question.ask.ask::<AuditQuestion>().map_err(within)?;
    let named = question.candidates.as_deref().unwrap_or_default();
    add_named(&mut contenders, &state, named).map_err(within)?;
    if !(1..=MOST_CANDIDATES).contains(&contenders.len()) {
        let problem = format!("found {}, expected 1 to {MOST_CANDIDATES}", contenders.len());
        return Err(Problem::field("candidates", problem));
    }
    let wait = question.wait;
    let gate = gate(&state, &contenders, &ask, question).map_err(within)?;
    if wait == Some(false) {
        let ids = contenders.iter().filter_map(|contender| match contender {
            Contender::Served(served) => Some(served.id().to_owned()),
            Contender::File { .. } => None,
        });
        let Some(Contender::Served(first)) = contenders.first() else {
            return Err(within(Problem::field("wait", "uploads are always answered directly")));
        };
        let Gate { request, by, allow, confidence } = gate;
        let candidates = ids.collect();
        let work = AuditWork { candidates, request, by, allow, confidence };
        let job = state.engine.submit(first, Work::Audit(work), 0, caller.owner()).await?;
        return Ok(accepted(job));
    }
    let report = state.engine.judge(GateQuestion { contenders, gate }).await?;
    answer(report, &headers)
}

/// A report in the requested format.
pub(super) fn answer(report: GateReport, headers: &HeaderMap) -> Result<Response, Problem> {
    if wants_arrow(headers) {
        return arrow(&report.table()?);
    }
    if wants_html(headers) {
        return Ok((results::HEADERS, gate_html(&report)).into_response());
    }
    Ok(Json(report).into_response())
}

/// Whether the client accepts HTML.
pub(super) fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
    accepted.split(',').next().is_some_and(|first| first.trim().starts_with("text/html"))
}

/// The gate of the request.
fn gate(
    state: &AppState,
    contenders: &[Contender],
    ask: &Ask,
    options: AuditQuestion,
) -> Result<Gate, Problem> {
    let served = contenders.iter().find_map(|contender| match contender {
        Contender::Served(served) => Some(served.clone()),
        Contender::File { .. } => None,
    });
    let served = served.or_else(|| state.engine.active()).ok_or_else(|| {
        Problem::conflict("no model is active, and the search options depend on it")
    })?;
    let mut gate = Gate::new(request(&served, ask, false)?);
    gate.by = options.by.unwrap_or_default();
    let allow = options.allow.unwrap_or_default();
    if !(0.0..=1.0).contains(&allow) {
        return Err(Problem::field("allow", "expected a share between 0 and 1"));
    }
    gate.allow = allow;
    if let Some(confidence) = options.confidence {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Problem::field("confidence", "expected a number between 0 and 1"));
        }
        gate.confidence = confidence;
    }
    Ok(gate)
}

/// Adds candidates from the models of the service.
fn add_named(
    contenders: &mut Vec<Contender>,
    state: &AppState,
    candidates: &[String],
) -> Result<(), Problem> {
    for (place, id) in candidates.iter().enumerate() {
        let field = || format!("candidates[{place}]");
        let served = state
            .engine
            .model(Some(id))
            .map_err(|_| Problem::field(field(), format!("there is no model `{id}`")))?;
        if contenders.iter().any(|contender| contender.name() == id) {
            return Err(Problem::field(field(), "another candidate has the same name"));
        }
        contenders.push(Contender::Served(served));
    }
    Ok(())
}

/// Uploaded candidates.
async fn uploaded(
    request: Request,
    state: &AppState,
) -> Result<(Vec<Contender>, AuditQuestion), Problem> {
    let mut parts = multipart(request, state).await?;
    let mut contenders = Vec::new();
    let mut options = None;
    while let Some(part) = parts.next_field().await.map_err(|error| broken(&error))? {
        match part.name() {
            Some("model") => {
                let file = part.file_name().unwrap_or("candidate").to_owned();
                let onnx = bytes(part).await?;
                if contenders.len() < MOST_CANDIDATES {
                    let name = name(&file, &contenders);
                    contenders.push(Contender::File { name, onnx });
                } else {
                    let problem = format!("expected at most {MOST_CANDIDATES}");
                    return Err(Problem::field("model", problem));
                }
            }
            Some("options") if options.is_none() => {
                let text = text(part).await?;
                let axum::Json(read) = axum::Json::<AuditQuestion>::from_bytes(text.as_bytes())
                    .map_err(|rejection| Problem::from(rejection).within("options"))?;
                options = Some(read);
            }
            other => {
                let problem = "expected parts `model`, and `options` once";
                return Err(Problem::field(other.unwrap_or_default(), problem));
            }
        }
    }
    Ok((contenders, options.unwrap_or_default()))
}

/// A unique name for a file: its own, without folders.
fn name(file: &str, others: &[Contender]) -> String {
    let own = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = own.chars().filter(|letter| !letter.is_control()).collect();
    let plain: String = plain.chars().take(LONGEST_NAME).collect();
    let plain = if plain.is_empty() { "candidate".to_owned() } else { plain };
    let taken = |name: &str| others.iter().any(|other| other.name() == name);
    let mut name = plain.clone();
    let mut number = 2;
    while taken(&name) {
        name = format!("{plain} ({number})");
        number += 1;
    }
    name
}
