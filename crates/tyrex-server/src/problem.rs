//! Errors as the client gets them: RFC 9457, `application/problem+json`.
//!
//! A bad request is answered with the error and its field. When the service itself fails, the
//! reason goes only to the log, under the request's id.

use std::fmt::Display;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tyrex::Error;
use tyrex_ledger::{database, ledger};
use utoipa::ToSchema;

use crate::access;

/// The media type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ProblemDetails)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status is the kind of problem.
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    kind: &'static str,
    /// The status in words.
    #[schema(example = "Unprocessable Entity")]
    title: &'static str,
    /// The HTTP status.
    #[serde(serialize_with = "as_number")]
    #[schema(value_type = u16, minimum = 400, maximum = 599, example = 422)]
    status: StatusCode,
    /// The error and what was expected.
    #[schema(example = "found `old`, expected a whole number")]
    detail: String,
    /// The part of the request that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "rows[3].age")]
    field: Option<String>,
    /// Seconds after which to retry.
    #[serde(skip)]
    retry_after: Option<u64>,
}

/// The maximum length of a text, which may quote the request.
const LONGEST: usize = 1000;

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
        text.push_str(" …");
    }
    text
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn as_number<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

impl Problem {
    /// A problem of this status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            detail: shortened(detail.into()),
            field: None,
            retry_after: None,
        }
    }

    /// The request cannot be understood.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// One field of the request has an invalid value.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::unprocessable(detail).at(field)
    }

    /// The request has invalid values.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// There is no such thing.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request conflicts with the current state.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// The service is overloaded.
    pub(crate) fn busy(detail: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(retry_after)
    }

    /// The service failed. The cause is logged and not sent.
    pub(crate) fn internal(cause: impl Display) -> Self {
        tracing::error!(%cause, "request failed");
        Self::hidden()
    }

    /// The service failed, and the cause is logged already.
    pub(crate) fn hidden() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the service failed; its log has the reason, under the id in the header x-request-id",
        )
    }

    /// The same, about one field: `tau`, `rows[3].age`.
    pub(crate) fn at(self, field: impl Into<String>) -> Self {
        Self { field: Some(shortened(field.into())), ..self }
    }

    /// The same, with the field inside another one: `samples` of `terms`.
    pub(crate) fn within(self, outer: &str) -> Self {
        let field = match &self.field {
            Some(field) => format!("{outer}.{field}"),
            None => outer.to_owned(),
        };
        self.at(field)
    }

    /// The same, with the time after which to retry.
    pub(crate) fn retry_after(self, time: Duration) -> Self {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Self { retry_after: Some(seconds.max(1)), ..self }
    }

    /// Its HTTP status.
    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The error and what was expected.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // A struct of strings and numbers is always serialisable.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        (self.status, headers, body).into_response()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match &error {
            Error::Io { .. } | Error::Download { .. } => Self::internal(error),
            Error::Exists { .. } => Self::conflict("it exists already"),
            Error::Cancelled(_) => {
                Self::busy("the service is shutting down", Duration::from_secs(5))
            }
            Error::Cell { row, column, value, expected, .. } => {
                let field = format!("rows[{row}].{column}");
                Self::field(field, format!("found `{value}`, expected {expected}"))
            }
            Error::Schema { feature: Some(feature), problem } => {
                Self::field(feature.clone(), problem.clone())
            }
            Error::Param { name, value, expected } => {
                Self::field(*name, format!("found {value}, expected {expected}"))
            }
            Error::Field { name, problem } if name.is_empty() => {
                Self::unprocessable(problem.clone())
            }
            Error::Field { name, problem } => Self::field(name.clone(), problem.clone()),
            // The name of a file stays in the service; the client gets the error in it.
            Error::Table { problem, .. }
            | Error::SchemaFile { problem, .. }
            | Error::ParamFile { problem, .. }
            | Error::Model { problem, .. } => Self::unprocessable(problem.clone()),
            _ => Self::unprocessable(error.to_string()),
        }
    }
}

impl From<database::Error> for Problem {
    fn from(error: database::Error) -> Self {
        match error {
            database::Error::Busy => Self::busy(error.to_string(), Duration::from_secs(1)),
            other => Self::internal(other),
        }
    }
}

impl From<access::Error> for Problem {
    fn from(error: access::Error) -> Self {
        match error {
            access::Error::Database(error) => error.into(),
            other => Self::internal(other),
        }
    }
}

impl From<ledger::Error> for Problem {
    fn from(error: ledger::Error) -> Self {
        use ledger::Error as Ledger;
        match error {
            Ledger::Database(error) => error.into(),
            Ledger::Library(error) => error.into(),
            Ledger::Absent(_) | Ledger::Beyond(_) => Self::not_found(error.to_string()),
            Ledger::Taken(_) | Ledger::NotOpen { .. } | Ledger::Unfinished { .. } => {
                Self::conflict(error.to_string())
            }
            Ledger::Subject { .. } => Self::field("subject", error.to_string()),
            // The operator must learn of damage and of data left in files.
            Ledger::Damaged { .. } | Ledger::Unsound { .. } | Ledger::Traces { .. } => {
                tracing::error!(%error, "the ledger needs attention");
                Self::conflict(error.to_string())
            }
            other => Self::internal(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn document(problem: &Problem) -> serde_json::Value {
        serde_json::to_value(problem).expect("a problem is serialisable")
    }

    #[test]
    fn a_problem_names_the_field() {
        let problem = Problem::from(Error::Cell {
            file: PathBuf::from("request"),
            row: 3,
            column: "age".to_owned(),
            value: "old".to_owned(),
            expected: "a whole number".to_owned(),
        });
        let expected = serde_json::json!({
            "type": "about:blank", "title": "Unprocessable Entity", "status": 422,
            "detail": "found `old`, expected a whole number", "field": "rows[3].age",
        });
        assert_eq!(document(&problem), expected);
    }

    #[test]
    fn what_was_sent_is_not_repeated_at_any_length() {
        let problem = Problem::not_found("é".repeat(60_000)).at("x".repeat(60_000));
        let text = document(&problem);
        assert_eq!(text["detail"].as_str().map(|text| text.chars().count()), Some(LONGEST + 2));
        assert_eq!(text["field"].as_str().map(str::len), Some(LONGEST + " …".len()));
    }

    #[test]
    fn what_fails_inside_is_not_told() {
        let cause = std::io::Error::other("secret");
        let problem = Problem::from(Error::Io {
            action: "read",
            path: PathBuf::from("/secret"),
            source: cause,
        });
        assert_eq!(problem.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!document(&problem).to_string().contains("secret"));
    }

    #[test]
    fn waiting_times_are_whole_seconds_and_at_least_one() {
        for (time, expected) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (5000, "5")] {
            let problem = Problem::busy("full", Duration::from_millis(time));
            let response = problem.into_response();
            assert_eq!(response.headers()[RETRY_AFTER], expected, "{time} ms");
        }
    }

    #[test]
    fn who_is_not_known_is_told_how_to_say_who_he_is() {
        let response = Problem::new(StatusCode::UNAUTHORIZED, "no token").into_response();
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(response.headers()[CONTENT_TYPE], PROBLEM_JSON);
    }
}
