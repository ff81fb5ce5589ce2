//! Stability of the model's scores.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tyrex::explain::{RowStability, StabilityTerms};
use utoipa::ToSchema;

use super::search::{applicants, arrow, check_neighbours};
use crate::access::Reader;
use crate::ask;
use crate::engine::questions::Measuring;
use crate::extract::Json;
use crate::problem::Problem;
use crate::rows::{Asked, JsonRows, Rows};
use crate::state::AppState;

/// Rows to measure.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct StabilityQuestion {
    /// The model; the active one if absent.
    model: Option<String>,
    /// Rows to measure.
    rows: Option<JsonRows>,
    /// Instead of `rows`: row numbers of the model's own data, which need the role `explain`.
    indices: Option<Vec<usize>>,
    /// The measurement options.
    #[schema(value_type = Option<StabilityTerms>)]
    terms: Option<Map<String, Value>>,
}

/// The stability of the model's scores.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StabilityAnswer {
    /// The model.
    model: String,
    /// Its fingerprint, which depends on the weights.
    fingerprint: String,
    /// The measurement options that were used.
    terms: StabilityTerms,
    /// One element per row.
    rows: Vec<RowStability>,
}

/// Measures the stability of the model's scores around rows.
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
    let terms: StabilityTerms = ask::terms(terms.as_ref(), &[])?;
    let served = state.engine.model(model.as_deref())?;
    check_neighbours(&served, "samples", Some(terms.samples), Some(terms.sigma))
        .map_err(|p| p.within("terms"))?;
    let rows = Rows::of(&served, &state.config.limits, &caller, rows, indices, table)?;
    let applicants = applicants(&state, &served, &Arc::new(rows)).await?;
    let rows = state.engine.ask(&served, Measuring(terms), applicants).await?;
    if wants_arrow {
        return arrow(&served.gauge(&terms)?.table(&rows)?);
    }
    let (model, fingerprint) = (served.id().to_owned(), served.fingerprint().to_owned());
    Ok(Json(StabilityAnswer { model, fingerprint, terms, rows }).into_response())
}
