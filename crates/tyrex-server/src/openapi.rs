//! The description of the service, generated from its types.

use axum::http::StatusCode;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, ResponseBuilder, Schema};

use crate::problem::{PROBLEM_JSON, Problem};

/// The head of the description; the routes add themselves.
pub(crate) fn head() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(
        info(
            title = "tyrex",
            description = "Counterfactual explanations that still hold after the model is \
                retrained: advice, certificates, the ledger of promises and the gate for new models."
        ),
        components(schemas(Problem))
    )]
    struct Head;
    Head::openapi()
}

/// The statuses that any request may get, besides those of its own description.
const EVERYWHERE: [StatusCode; 11] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// Adds the common parts of all routes: the problems they may return, and the token.
pub(crate) fn complete(api: &mut utoipa::openapi::OpenApi) {
    const SCHEME: &str = "token";
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme(SCHEME, bearer);
    merge_asks(api);
    for (path, item) in &mut api.paths.paths {
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("delete", &mut item.delete),
            ("patch", &mut item.patch),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            operation.operation_id = Some(name(method, path));
            add_problems(operation);
            describe(operation);
            if path.starts_with("/v1/") || path == "/metrics" {
                // With a token, or without one if none is required.
                operation.security = Some(vec![
                    SecurityRequirement::new(SCHEME, Vec::<String>::new()),
                    SecurityRequirement::default(),
                ]);
            }
        }
    }
}

/// Merges a request's own fields and those of the library's question into one object. Both schemas
/// reject unknown fields, so no document would satisfy both.
fn merge_asks(api: &mut utoipa::openapi::OpenApi) {
    let schemas = &mut api.components.get_or_insert_default().schemas;
    let Some(RefOr::T(Schema::Object(ask))) = schemas.get("Ask").cloned() else { return };
    let is_ask =
        |item: &RefOr<Schema>| matches!(item, RefOr::Ref(to) if to.ref_location.ends_with("/Ask"));
    for schema in schemas.values_mut() {
        let RefOr::T(Schema::AllOf(all)) = schema else { continue };
        if !all.items.iter().any(is_ask) {
            continue;
        }
        let own = all.items.iter().find_map(|item| match item {
            RefOr::T(Schema::Object(own)) => Some(own.clone()),
            _ => None,
        });
        let Some(mut own) = own else { continue };
        for (name, field) in &ask.properties {
            own.properties.entry(name.clone()).or_insert_with(|| field.clone());
        }
        own.description.clone_from(&all.description);
        own.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        *schema = RefOr::T(Schema::Object(own));
    }
}

/// The unique name of an operation: `get_v1_models_id`.
fn name(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{method}_{}", words.join("_"))
}

/// Adds the problems that a request may get, with their schema.
fn add_problems(operation: &mut Operation) {
    let mut possible = EVERYWHERE.to_vec();
    if operation.request_body.is_some() || operation.parameters.is_some() {
        possible.push(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let responses = &mut operation.responses.responses;
    for status in possible {
        let nothing = ResponseBuilder::new().build();
        responses.entry(status.as_str().to_owned()).or_insert(nothing.into());
    }
    let problem = || Content::new(Some(Ref::from_schema_name("ProblemDetails")));
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if status.starts_with(['4', '5']) && response.content.is_empty() {
            response.content.insert(PROBLEM_JSON.to_owned(), problem().into());
        }
    }
}

/// Every response needs a description; the reason phrase of the status serves as the default.
fn describe(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            let status = status.parse::<StatusCode>().ok();
            let words = status.and_then(|status| status.canonical_reason()).unwrap_or("Answer");
            words.clone_into(&mut response.description);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// All references of a document.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn the_description_is_complete() {
        let (_, mut api) = crate::routes::router().split_for_parts();
        complete(&mut api);
        let document = serde_json::to_value(&api).expect("a document");
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let place = reference.strip_prefix('#').expect("a place in the document");
            assert!(document.pointer(place).is_some(), "{reference}");
        }
        let problem = &document["components"]["schemas"]["ProblemDetails"]["properties"];
        assert!(problem["detail"].is_object() && problem["field"].is_object());
        let mut names = std::collections::BTreeSet::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let name = format!("{method} {path}");
                assert!(names.insert(operation["operationId"].to_string()), "{name}");
                let responses = operation["responses"].as_object().expect("responses");
                assert!(responses.keys().any(|status| status.starts_with('2')), "{name}");
                for (status, response) in responses {
                    let text = response["description"].as_str().unwrap_or_default();
                    assert!(!text.is_empty(), "{name} {status}");
                }
                for status in EVERYWHERE {
                    assert!(responses.contains_key(status.as_str()), "{name} {status}");
                }
                assert!(operation["summary"].is_string(), "{name} says nothing about itself");
            }
        }
    }
}
