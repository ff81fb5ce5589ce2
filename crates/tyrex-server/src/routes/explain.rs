//! Advice for rejected rows.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse as _, Response};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tyrex::certificate::Terms;
use tyrex::data::Table;
use tyrex::explain::{
    AdviceFile, AnswerDocument, Applicant, Ask, Explained, Meaning, PROMISE_DAYS, PromisedPoints,
    check_advice_names,
};
use tyrex_ledger::ledger::check_subject;
use utoipa::ToSchema;
use uuid::Uuid;

use super::search::{applicants, arrow, request};
use crate::access::Explaining;
use crate::ask::AskFields;
use crate::engine::jobs::{ExplainAnswer, ExplainWork, Job, KeptCertifying, KeptQuestion, Work};
use crate::engine::questions::{Advising, Certifying};
use crate::engine::{Recording, Served};
use crate::extract::Json;
use crate::problem::Problem;
use crate::rows::{Asked, JsonRows, Rows};
use crate::state::AppState;

/// The longest validity of a promise, in days.
const MOST_DAYS: u32 = 36_500;

/// Rows to explain and the question. The fields of [`Ask`] are at the same level as these.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(crate) struct ExplainQuestion {
    /// The model; the active one if absent.
    model: Option<String>,
    /// Rows to explain.
    rows: Option<JsonRows>,
    /// Instead of `rows`: row numbers of the model's own data.
    indices: Option<Vec<usize>>,
    /// Whether to wait for the answer; otherwise it becomes a job.
    #[schema(default = true)]
    wait: Option<bool>,
    /// The subjects of the advice, to record it in the ledger as promises.
    record: Option<RecordQuestion>,
    /// The number of answers for the same applicant that the retrained models have judged before, and
    /// that led to this question; 0 if absent. Certificates have the confidence
    /// `1 - (1 - confidence) / 2^looks`.
    #[schema(maximum = 30)]
    looks: Option<u32>,
    /// The search options.
    #[serde(flatten)]
    #[schema(value_type = Ask)]
    ask: AskFields,
}

/// The subjects of advice.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RecordQuestion {
    /// One for each row: pseudonymous references.
    subjects: Option<Vec<String>>,
    /// The column of an Arrow stream that holds them.
    subject_column: Option<String>,
    /// How long the promises are valid; 90 days if absent.
    #[schema(minimum = 1, maximum = 36_500)]
    holds_days: Option<u32>,
}

/// Advice for rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExplainDocument {
    /// The model.
    model: String,
    /// The answer, as from every front end.
    #[serde(flatten)]
    #[schema(value_type = AnswerDocument<Explained<'static>>)]
    answer: AnswerDocument<Box<RawValue>>,
    /// The promises in the ledger, one element per row; null for a row without advice. They are
    /// already on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<Vec<Option<Uuid>>>,
}

/// Advice as JSON or as Arrow.
pub(super) fn answer(answer: ExplainAnswer, wants_arrow: bool) -> Result<Response, Problem> {
    let ExplainAnswer { model, document, recorded, table } = answer;
    if let (true, Some(table)) = (wants_arrow, &table) {
        return arrow(table);
    }
    Ok(Json(ExplainDocument { model, answer: document, recorded }).into_response())
}

/// The response that a job was started.
pub(super) fn accepted(job: Job) -> Response {
    let location = format!("/v1/jobs/{}", job.id);
    (StatusCode::ACCEPTED, [(LOCATION, location)], Json(job)).into_response()
}

/// Finds changes with which the model accepts rejected rows, also after it is retrained.
#[utoipa::path(post, path = "/v1/explain", tag = "rows",
    request_body(content(
        (ExplainQuestion = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    responses((status = OK, content(
        (ExplainDocument = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )), (status = ACCEPTED, body = Job, headers(("location" = String))),
    (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn explain(
    _: Explaining,
    State(state): State<AppState>,
    Asked { question, mut table, arrow: wants_arrow, caller }: Asked<ExplainQuestion>,
) -> Result<Response, Problem> {
    let ask = question.ask.ask::<ExplainQuestion>()?;
    let served = state.engine.model(question.model.as_deref())?;
    let record = question.record;
    let subjects = match (&mut table, &record) {
        (Some(table), Some(record)) => taken_subjects(table, record)?,
        _ => None,
    };
    let request = request(&served, &ask, true)?;
    check_advice_names(served.explainer().schema())?;
    let limits = &state.config.limits;
    let rows =
        Arc::new(Rows::of(&served, limits, &caller, question.rows, question.indices, table)?);
    let recording = record.map(|record| recording(record, subjects, rows.len())).transpose()?;
    let applicants = applicants(&state, &served, &rows).await?;
    let fresh = served.fresh_after(question.looks.unwrap_or_default())?;
    let certifying = ask.certify.then(|| Certifying {
        terms: Terms { confidence: ask.confidence, ..Terms::default() },
        seed: ask.certificate_seed(),
        fresh,
    });
    let advising = Advising { request, certifying, examining: ask.tries(rows.len()) > 0 };
    let work = ExplainWork {
        fingerprint: served.fingerprint().to_owned(),
        rows: rows.kept(),
        question: Some(Box::new(KeptQuestion {
            without_promise: served.without_promise(&ask),
            ask: ask.settled(served.explainer(), served.can_promise()),
            meaning: Some(Meaning::of(served.explainer().schema())),
            reference: served.explainer().reference().training_rows().len(),
            searched: Some(served.searched(&advising.request)?),
        })),
        request: advising.request.clone(),
        certifying: advising.certifying.as_ref().map(|certifying| KeptCertifying {
            terms: certifying.terms.clone(),
            seed: certifying.seed,
            ensemble: certifying.fresh.is_some(),
            looks: question.looks.unwrap_or_default(),
        }),
        examining: advising.examining,
        recording,
    };
    if question.wait == Some(false) || rows.len() > limits.rows_at_once {
        let job = state
            .engine
            .submit(&served, Work::Explain(Box::new(work)), rows.len(), caller.owner())
            .await?;
        return Ok(accepted(job));
    }
    let wants = (applicants, wants_arrow);
    let answered = answer_now(&state, &served, advising, wants, work).await?;
    answer(answered, wants_arrow)
}

/// Answers directly.
async fn answer_now(
    state: &AppState,
    served: &Arc<Served>,
    advising: Advising,
    (applicants, wants_table): (Vec<Applicant>, bool),
    work: ExplainWork,
) -> Result<ExplainAnswer, Problem> {
    let request = &work.request;
    let fresh = advising.certifying.as_ref().and_then(|own| own.fresh.clone());
    let found = state.engine.ask(served, advising.clone(), applicants).await?;
    // The promises are on disk before the response is sent.
    let recorded = match &work.recording {
        Some(recording) => Some(state.engine.record_now(served, request, recording, &found).await?),
        None => None,
    };
    let table = if wants_table {
        let advice: Vec<_> = found.iter().map(|found| found.advice.clone()).collect();
        // It names the models that searched.
        let explainer = served.explainer_for(request)?;
        Some(AdviceFile::new(&explainer, request).table(&advice, fresh.as_deref())?)
    } else {
        None
    };
    let mut promised = PromisedPoints::new(served.explainer().encoder().dim());
    found.iter().for_each(|found| promised.add(std::slice::from_ref(&found.advice)));
    let own = Arc::clone(served);
    let portfolio = match request.promise {
        Some(_) => state.engine.run_now(move |_| advising.portfolio(&own, promised)).await?,
        None => None,
    };
    let advised = found.iter().filter(|found| found.advice.found().is_some()).count();
    let rows = found.into_iter().map(|found| found.document).collect();
    Ok(ExplainAnswer {
        model: served.id().to_owned(),
        document: work.document(rows, advised, portfolio, served.warnings(request)),
        recorded,
        table,
    })
}

/// Takes the column of subjects out of an Arrow stream.
fn taken_subjects(
    table: &mut Table,
    record: &RecordQuestion,
) -> Result<Option<Vec<String>>, Problem> {
    let Some(name) = &record.subject_column else { return Ok(None) };
    let column = table.column(name);
    let column = column.map_err(|_| {
        Problem::field("record.subject_column", format!("the stream has no column `{name}`"))
    })?;
    let subjects = column.cells().map(str::to_owned).collect();
    let others = table.columns().iter().filter(|column| column.name() != name);
    *table = Table::new("rows", others.cloned().collect())?;
    Ok(Some(subjects))
}

/// The subjects of the rows.
fn recording(
    record: RecordQuestion,
    taken: Option<Vec<String>>,
    rows: usize,
) -> Result<Recording, Problem> {
    let subjects = taken
        .or(record.subjects)
        .ok_or_else(|| Problem::field("record.subjects", "missing, expected one for each row"))?;
    if subjects.len() != rows {
        let problem = format!("found {} subjects for {rows} rows", subjects.len());
        return Err(Problem::field("record.subjects", problem));
    }
    for (place, subject) in subjects.iter().enumerate() {
        check_subject(subject).map_err(|error| {
            Problem::field(format!("record.subjects[{place}]"), error.to_string())
        })?;
    }
    let days = record.holds_days.unwrap_or(PROMISE_DAYS);
    if !(1..=MOST_DAYS).contains(&days) {
        let problem = format!("expected 1 to {MOST_DAYS}");
        return Err(Problem::field("record.holds_days", problem));
    }
    let time = SignedDuration::from_hours(24 * i64::from(days));
    let holds_until = Timestamp::now().checked_add(time).map_err(Problem::internal)?;
    Ok(Recording { subjects, holds_until: Some(holds_until) })
}
