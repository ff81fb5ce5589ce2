//! A question with rows: JSON, or an Arrow stream with the other fields as query parameters.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tyrex::data::{Table, TableLimits};

use super::{ARROW, UPLOADED, read_arrow};
use crate::access::Caller;
use crate::problem::Problem;
use crate::state::AppState;

/// A question, and its rows if they came as Arrow.
#[derive(Debug)]
pub(crate) struct Asked<T> {
    /// The question.
    pub(crate) question: T,
    /// Its rows.
    pub(crate) table: Option<Table>,
    /// Whether the client accepts Arrow.
    pub(crate) arrow: bool,
    /// The caller: stored rows need a role.
    pub(crate) caller: Caller,
}

impl<T: DeserializeOwned> FromRequest<AppState> for Asked<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let headers = request.headers();
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        // A body of another type is not read at all.
        if kind != ARROW && kind != "application/json" {
            let detail = format!("expected a body of the type application/json or {ARROW}");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let arrow = wants_arrow(headers);
        let caller = Caller::of(request.extensions()).clone();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let body = Bytes::from_request(request, state)
            .await
            .map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))?;
        if kind == ARROW {
            let question = parameters(&query)?;
            let most = TableLimits { rows: state.config.limits.rows, ..UPLOADED };
            let table = read_arrow(&body, most)?;
            return Ok(Self { question, table: Some(table), arrow, caller });
        }
        // serde would also read a struct from a list of its values.
        if body.trim_ascii_start().starts_with(b"[") {
            return Err(Problem::unprocessable("found a list, expected an object"));
        }
        Ok(Self { question: from_json(&body)?, table: None, arrow, caller })
    }
}

/// Parses a document. After an error it is parsed again by a slower reader that records the place.
fn from_json<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    if let Ok(document) = serde_json::from_slice(text) {
        return Ok(document);
    }
    let axum::Json(document) = axum::Json::from_bytes(text)?;
    Ok(document)
}

/// Whether the client accepts Arrow.
pub(crate) fn wants_arrow(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    accepted
        .flat_map(|accept| accept.split(','))
        .any(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(ARROW))
}

/// The most parts of a parameter's name: `actions.age.within`. Objects nested without a bound would
/// overflow the stack.
const DEEPEST: usize = 8;
/// Parameters whose values are lists: `keep=age&keep=sex`.
const LISTS: [&str; 3] = ["keep", "vary", "subjects"];

/// The query parameters as JSON: `tau=0.8&budget.steps=100`.
fn parameters<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let mut document = Map::new();
    for (name, text) in pairs(query)? {
        if name.split('.').count() > DEEPEST {
            let problem = format!("expected at most {DEEPEST} names between dots");
            let start: String = name.chars().take(40).collect();
            return Err(Problem::bad_request(problem).at(start));
        }
        let value = if is_text(&name) {
            Value::String(text)
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        let mut place = &mut document;
        let mut parts = name.split('.').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                set(place, part, value, &name)?;
                break;
            }
            let inner = place.entry(part).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                return Err(Problem::bad_request("found both a value and its parts").at(name));
            };
            place = inner;
        }
    }
    let text = serde_json::to_vec(&Value::Object(document)).map_err(Problem::internal)?;
    from_json(&text)
}

/// Whether a parameter is a text even if it looks like a number.
fn is_text(name: &str) -> bool {
    LISTS.contains(&name.rsplit('.').next().unwrap_or_default())
        || matches!(name, "model" | "method" | "norm" | "record.subject_column")
}

fn set(
    place: &mut Map<String, Value>,
    part: &str,
    value: Value,
    name: &str,
) -> Result<(), Problem> {
    if LISTS.contains(&part) {
        let list = place.entry(part).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        }
        return Ok(());
    }
    match place.insert(part.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(Problem::bad_request("found twice, expected once").at(name)),
    }
}

/// The pairs of a query, decoded.
fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let uri = format!("/?{query}").parse::<axum::http::Uri>();
    let uri = uri.map_err(|error| Problem::bad_request(error.to_string()))?;
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&uri)?;
    Ok(pairs.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects nested without a bound would overflow the stack when they are written or dropped.
    #[test]
    fn deep_parameters_are_refused() {
        assert!(parameters::<Value>("actions.age.within=1").is_ok());
        for depth in [DEEPEST + 1, 10_000] {
            let query = format!("{}=1", vec!["a"; depth].join("."));
            let problem = parameters::<Value>(&query).expect_err("too deep");
            assert!(problem.detail().contains("between dots"), "{}", problem.detail());
        }
    }
}
