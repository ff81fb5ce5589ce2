//! The description of the service, generated from its types.

use axum::http::StatusCode;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, Ref, ResponseBuilder};

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

/// What any request may be answered with, beside what its own description says.
const EVERYWHERE: [StatusCode; 10] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// What a request with a body may be answered with.
const WITH_BODY: [StatusCode; 2] =
    [StatusCode::UNSUPPORTED_MEDIA_TYPE, StatusCode::UNPROCESSABLE_ENTITY];

/// Adds what all routes have in common: the problems they may answer with, and the token.
pub(crate) fn complete(api: &mut utoipa::openapi::OpenApi) {
    const SCHEME: &str = "token";
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    api.components.get_or_insert_default().add_security_scheme(SCHEME, bearer);
    for (path, item) in &mut api.paths.paths {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for operation in operations.into_iter().flatten() {
            add_problems(operation);
            if path.starts_with("/v1/") || path == "/metrics" {
                // With a token, or without one where none is demanded.
                operation.security = Some(vec![
                    SecurityRequirement::new(SCHEME, Vec::<String>::new()),
                    SecurityRequirement::default(),
                ]);
            }
        }
    }
}

fn add_problems(operation: &mut Operation) {
    let with_body = if operation.request_body.is_some() { &WITH_BODY[..] } else { &[] };
    for status in EVERYWHERE.iter().chain(with_body) {
        let response = ResponseBuilder::new()
            .description(status.canonical_reason().unwrap_or("Problem"))
            .content(PROBLEM_JSON, Content::new(Some(Ref::from_schema_name("Problem"))))
            .build();
        let responses = &mut operation.responses.responses;
        responses.entry(status.as_u16().to_string()).or_insert(response.into());
    }
}
