//! axum's extractors, with problem details for failures.

use std::error::Error as _;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tyrex::fields::Misfit;

use crate::problem::Problem;

/// A JSON body of a request or a response.
#[derive(Debug, Clone, Copy, FromRequest)]
#[from_request(via(axum::Json), rejection(Problem))]
pub(crate) struct Json<T>(pub(crate) T);

/// The query parameters.
#[derive(Debug, Clone, Copy, FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(Problem))]
pub(crate) struct Query<T>(pub(crate) T);

/// The variable parts of the path.
#[derive(Debug, Clone, Copy, FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(Problem))]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(body) => ([("content-type", "application/json")], body).into_response(),
            Err(error) => Problem::internal(error).into_response(),
        }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let reason = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
        match &rejection {
            JsonRejection::JsonDataError(_) => placed(&reason),
            // The body is valid JSON.
            JsonRejection::JsonSyntaxError(_) if reason.contains("number out of range") => {
                placed(&reason)
            }
            JsonRejection::JsonSyntaxError(_) => {
                Self::bad_request(format!("the body is not JSON: {reason}"))
            }
            _ => Self::new(rejection.status(), rejection.body_text()),
        }
    }
}

/// The problem with its field. The reason reads `rows[3].age: invalid type ...`, or has no path.
fn placed(reason: &str) -> Problem {
    let (outer, reason) = match reason.split_once(": ") {
        Some((field, reason)) if is_path(field) => (field, reason),
        _ => ("", reason),
    };
    let misfit = Misfit::of(reason);
    let problem = Problem::unprocessable(misfit.to_string());
    match misfit.within(outer) {
        Some(field) => problem.at(field),
        None if outer.is_empty() => problem,
        None => problem.at(outer),
    }
}

/// Whether the text is the path of a field, as in `rows[3].age`, and not the start of a sentence.
fn is_path(text: &str) -> bool {
    // Names of columns may have spaces; no sentence begins with `rows[`.
    !text.is_empty() && (!text.contains(' ') || text.starts_with("rows["))
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        let reason = rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string);
        match reason.split_once(": ") {
            Some((field, reason)) if is_path(field) => {
                Self::bad_request(Misfit::of(reason).to_string()).at(field)
            }
            _ => Self::bad_request(Misfit::of(&reason).to_string()),
        }
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Self {
        match rejection {
            // An invalid id cannot exist.
            PathRejection::FailedToDeserializePathParams(error) => match error.kind() {
                ErrorKind::DeserializeError { key, value, .. }
                | ErrorKind::ParseErrorAtKey { key, value, .. } => {
                    Self::bad_request(format!("found `{value}`, expected a UUID")).at(key)
                }
                _ => Self::new(error.status(), error.body_text()),
            },
            other => Self::internal(other),
        }
    }
}
