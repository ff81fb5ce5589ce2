//! The reports of experiments.

use axum::extract::State;
use axum::http::HeaderName;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Reader;
use crate::extract::{Json, Path};
use crate::problem::Problem;
use crate::state::AppState;

/// A report is one file with its style inside. It runs no scripts, loads nothing, and is shown in
/// the page's frame only.
pub(super) const HEADERS: [(HeaderName, &str); 3] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'self'; sandbox",
    ),
    (X_FRAME_OPTIONS, "SAMEORIGIN"),
];

/// All reports.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultList {
    /// One element per report.
    results: Vec<ResultSummary>,
}

/// A report of experiments.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultSummary {
    /// Its name in requests.
    #[schema(example = "first-look")]
    name: String,
    /// Its display name.
    #[schema(example = "A first look: German Credit and two moons")]
    title: String,
    /// The number of experiments in it.
    experiments: usize,
    /// Whether it is built in, or comes from the folder given by `--results`.
    shipped: bool,
}

/// The reports of experiments that can be shown.
#[utoipa::path(get, path = "/v1/results", tag = "results",
    responses((status = OK, body = ResultList)))]
pub(crate) async fn list(_: Reader, State(state): State<AppState>) -> Json<ResultList> {
    let summary = |report: &crate::results::Report| ResultSummary {
        name: report.name.clone(),
        title: report.title.clone(),
        experiments: report.experiments,
        shipped: report.shipped,
    };
    Json(ResultList { results: state.reports.all().iter().map(summary).collect() })
}

/// One report as a self-contained HTML page.
#[utoipa::path(get, path = "/v1/results/{name}", tag = "results",
    params(("name" = String, Path, description = "A name from the list")),
    responses(
        (status = OK, body = String, content_type = "text/html"),
        (status = NOT_FOUND, body = Problem, content_type = "application/problem+json",
            description = "No report has this name"),
    ))]
pub(crate) async fn show(
    _: Reader,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let none = || Problem::not_found("no report has this name; /v1/results lists them");
    let report = state.reports.named(&name).ok_or_else(none)?;
    Ok((HEADERS, report.html.clone()).into_response())
}
