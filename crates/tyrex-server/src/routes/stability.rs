//! How stable are the model's answers?

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use tyrex::explain::{RowStability, StabilityTerms};
use utoipa::ToSchema;

use super::search::{applicants, arrow, check_neighbours};
use crate::access::Reader;
use crate::engine::questions::Measuring;
use crate::extract::Json;
use crate::problem::Problem;
use crate::rows::{Asked, JsonRows, Rows};
use crate::state::AppState;

/// Rows to measure.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct StabilityQuestion {
    /// The model; the active one, if none is named.
    model: Option<String>,
    /// Rows to measure,
    rows: Option<JsonRows>,
    /// or rows of the model's own data, which needs the role `explain`.
    indices: Option<Vec<usize>>,
    /// How to measure.
    #[serde(default)]
    terms: StabilityTerms,
}

/// How stable the model's answers are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StabilityAnswer {
    /// The model.
    model: String,
    /// The name that changes with its weights.
    fingerprint: String,
    /// How it was measured.
    terms: StabilityTerms,
    /// Row by row.
    rows: Vec<RowStability>,
}

/// Measures how stable the model's answers are around rows.
#[utoipa::path(post, path = "/v1/stability", tag = "rows",
    request_body(content(
        (StabilityQuestion = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    responses((status = OK, content(
        (StabilityAnswer = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn measure(
    _: Reader,
    State(state): State<AppState>,
    Asked { question, table, arrow: wants_arrow, caller }: Asked<StabilityQuestion>,
) -> Result<Response, Problem> {
    let StabilityQuestion { model, rows, indices, terms } = question;
    let served = state.engine.model(model.as_deref())?;
    check_neighbours(&served, "samples", Some(terms.samples), Some(terms.sigma))
        .map_err(|p| p.within("terms"))?;
    let rows = Rows::of(&served, &state.config.limits, &caller, rows, indices, table)?;
    let applicants = applicants(&state, &served, &Arc::new(rows)).await?;
    let rows = state.engine.ask(&served, Measuring(terms), applicants).await?;
    if wants_arrow {
        return arrow(&served.explainer().stability_table(&terms, &rows)?);
    }
    let (model, fingerprint) = (served.id().to_owned(), served.fingerprint().to_owned());
    Ok(Json(StabilityAnswer { model, fingerprint, terms, rows }).into_response())
}
