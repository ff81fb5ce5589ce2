//! The ledger of promises.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tyrex::explain::FeatureChange;
use tyrex_ledger::ledger::{Closing, Entry, Filter, Forgotten, Hash, Status, Verification};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::access::{Admin, Explaining, Reader};
use crate::extract::{Json, Path, Query};
use crate::problem::Problem;
use crate::state::AppState;

/// Maximum number of entries in a response.
const MOST_ENTRIES: usize = 1000;

/// Filter of the promises.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct LedgerQuery {
    /// Their status.
    status: Option<Status>,
    /// Their model: its name, or a prefix of its fingerprint.
    model: Option<String>,
    /// Recorded at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Only entries after this sequence number, that of the last entry of the previous page.
    after: Option<u64>,
    /// Maximum number of elements.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// Promises.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntryList {
    /// In the order in which they were recorded.
    entries: Vec<WordedEntry>,
}

/// An entry, and the changes it promises.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WordedEntry {
    #[serde(flatten)]
    entry: Entry,
    /// The promised changes; none for other entries and after erasure.
    changes: Vec<FeatureChange>,
    /// The promised changes as a sentence; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    sentence: Option<String>,
}

impl AppState {
    fn worded(&self, entry: Entry) -> WordedEntry {
        let models = self.engine.models();
        let own = |model: &str| models.iter().find(|served| served.fingerprint() == model);
        let changes = entry.changes(|model| Some(own(model)?.explainer().schema()));
        let sentence = (!changes.is_empty()).then(|| FeatureChange::in_words(&changes));
        WordedEntry { entry, changes, sentence }
    }
}

/// Promises of the ledger.
#[utoipa::path(get, path = "/v1/ledger", tag = "ledger", params(LedgerQuery),
    responses((status = OK, body = EntryList)))]
pub(crate) async fn list(
    _: Explaining,
    State(state): State<AppState>,
    Query(query): Query<LedgerQuery>,
) -> Result<Json<EntryList>, Problem> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=MOST_ENTRIES).contains(&limit) {
        return Err(Problem::bad_request(format!("expected 1 to {MOST_ENTRIES}")).at("limit"));
    }
    let served = query.model.as_deref().map(|model| state.engine.model(Some(model)));
    let fingerprint = match served {
        Some(Ok(served)) => Some(served.fingerprint().to_owned()),
        _ => query.model,
    };
    let filter = Filter {
        status: query.status,
        model: fingerprint,
        since: query.since,
        after: query.after,
        limit: Some(limit),
        ..Filter::default()
    };
    let entries = state.ledger.list(&filter).await?;
    let entries = entries.into_iter().map(|entry| state.worded(entry)).collect();
    Ok(Json(EntryList { entries }))
}

/// One entry of the ledger.
#[utoipa::path(get, path = "/v1/ledger/{id}", tag = "ledger",
    params(("id" = Uuid, Path, description = "The entry's name")),
    responses((status = OK, body = WordedEntry), (status = NOT_FOUND)))]
pub(crate) async fn show(
    _: Explaining,
    State(state): State<AppState>,
    Path(id): Path<Uuid>,
) -> Result<Json<WordedEntry>, Problem> {
    Ok(Json(state.worded(state.ledger.entry(id).await?)))
}

/// The parameters of the check.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct VerifyQuery {
    /// A head that was stored earlier: it must still be in the chain.
    head: Option<String>,
}

/// The result of the check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerifyAnswer {
    /// Whether no problem was found.
    intact: bool,
    /// The details.
    #[serde(flatten)]
    verification: Verification,
}

/// Checks every entry of the ledger.
#[utoipa::path(get, path = "/v1/ledger/verify", tag = "ledger", params(VerifyQuery),
    responses((status = OK, body = VerifyAnswer)))]
pub(crate) async fn verify(
    _: Reader,
    State(state): State<AppState>,
    Query(query): Query<VerifyQuery>,
) -> Result<Json<VerifyAnswer>, Problem> {
    let head = query.head.as_deref().map(str::parse::<Hash>).transpose();
    let head =
        head.map_err(|_| Problem::bad_request("expected 64 hexadecimal digits").at("head"))?;
    let verification = state.ledger.verify(head.as_ref()).await?;
    Ok(Json(VerifyAnswer { intact: verification.is_sound(), verification }))
}

/// How a promise ended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct CloseQuestion {
    /// Fulfilled, or withdrawn.
    #[serde(rename = "as")]
    closing: Closing,
}

/// Closes a promise.
#[utoipa::path(post, path = "/v1/ledger/{id}/close", tag = "ledger",
    params(("id" = Uuid, Path, description = "The promise's name")),
    request_body = CloseQuestion,
    responses((status = NO_CONTENT), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn close(
    _: Admin,
    State(state): State<AppState>,
    Path(id): Path<Uuid>,
    Json(question): Json<CloseQuestion>,
) -> Result<StatusCode, Problem> {
    state.ledger.close(id, question.closing).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The subject to erase. It is in the body so that it appears in no log.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ForgetQuestion {
    /// The subject.
    subject: String,
}

/// Removes the personal data of a subject from the ledger, and the finished jobs that hold the
/// subject or its promises. Fails with 409 while an unfinished job holds them or an audit is
/// running.
#[utoipa::path(post, path = "/v1/ledger/forget", tag = "ledger",
    request_body = ForgetQuestion,
    responses((status = OK, body = Forgotten), (status = CONFLICT)))]
pub(crate) async fn forget(
    _: Admin,
    State(state): State<AppState>,
    Json(question): Json<ForgetQuestion>,
) -> Result<Json<Forgotten>, Problem> {
    Ok(Json(state.ledger.forget(&question.subject).await?))
}
