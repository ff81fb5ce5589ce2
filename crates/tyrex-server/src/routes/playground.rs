//! The playground: two moons.

use axum::extract::State;

use crate::access::Reader;
use crate::engine::{MapAnswer, MapQuestion, PathsAnswer, PathsQuestion};
use crate::extract::Json;
use crate::problem::Problem;
use crate::state::AppState;

/// Maps of the plane: the scores of the model and its retrained versions, and its stability.
#[utoipa::path(post, path = "/v1/playground/map", tag = "playground",
    request_body = MapQuestion, responses((status = OK, body = MapAnswer)))]
pub(crate) async fn map(
    _: Reader,
    State(state): State<AppState>,
    Json(question): Json<MapQuestion>,
) -> Result<Json<MapAnswer>, Problem> {
    Ok(Json(state.engine.playground_map(question).await?))
}

/// The search paths of methods from a point.
#[utoipa::path(post, path = "/v1/playground/paths", tag = "playground",
    request_body = PathsQuestion, responses((status = OK, body = PathsAnswer)))]
pub(crate) async fn paths(
    _: Reader,
    State(state): State<AppState>,
    Json(question): Json<PathsQuestion>,
) -> Result<Json<PathsAnswer>, Problem> {
    Ok(Json(state.engine.playground_paths(question).await?))
}
