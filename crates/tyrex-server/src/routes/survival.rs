//! Scores under retrained models.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use tyrex::data::{Column, Table};
use tyrex::explain::RowSurvival;
use utoipa::ToSchema;

use super::search::{applicants, arrow};
use crate::access::Reader;
use crate::engine::questions::Surviving;
use crate::extract::Json;
use crate::problem::Problem;
use crate::rows::{Asked, JsonRows, Rows};
use crate::state::AppState;

/// Rows to score under retrained models.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct SurvivalQuestion {
    /// The model; the active one if absent.
    model: Option<String>,
    /// Rows to score.
    rows: Option<JsonRows>,
    /// Instead of `rows`: row numbers of the model's own data, which need the role `explain`.
    indices: Option<Vec<usize>>,
}

/// The scores of retrained models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SurvivalAnswer {
    /// The model.
    model: String,
    /// The number of retrained models available now.
    models: usize,
    /// One element per row.
    rows: Vec<RowSurvival>,
}

/// Scores rows under every retrained model.
#[utoipa::path(post, path = "/v1/survival", tag = "rows",
    request_body(content(
        (SurvivalQuestion = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    responses((status = OK, content(
        (SurvivalAnswer = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn survive(
    _: Reader,
    State(state): State<AppState>,
    Asked { question, table, arrow: wants_arrow, caller }: Asked<SurvivalQuestion>,
) -> Result<Response, Problem> {
    let SurvivalQuestion { model, rows, indices } = question;
    let served = state.engine.model(model.as_deref())?;
    let fresh = served.fresh_so_far()?;
    let models = fresh.ensemble.members().len();
    let rows = Rows::of(&served, &state.config.limits, &caller, rows, indices, table)?;
    let applicants = applicants(&state, &served, &Arc::new(rows)).await?;
    let rows = state.engine.ask(&served, Surviving(fresh), applicants).await?;
    if wants_arrow {
        return arrow(&as_table(&rows, models)?);
    }
    Ok(Json(SurvivalAnswer { model: served.id().to_owned(), models, rows }).into_response())
}

/// One line per row: the score, the number of models that accept it, and the score of each model.
fn as_table(rows: &[RowSurvival], models: usize) -> Result<Table, Problem> {
    let own = ["row", "score", "survives", "models"].map(Column::new);
    let scores = (0..models).map(|model| Column::new(format!("score_{model}")));
    let mut columns: Vec<Column> = own.into_iter().chain(scores).collect();
    for row in rows {
        columns[0].push_display(row.row);
        columns[1].push_display(row.score);
        columns[2].push_display(row.survives);
        columns[3].push_display(models);
        for (column, score) in columns[4..].iter_mut().zip(&row.scores) {
            column.push_display(score);
        }
    }
    Ok(Table::new("survival", columns)?)
}
