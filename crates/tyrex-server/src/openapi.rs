//! The description of the service, generated from its types.

use utoipa::OpenApi;

/// The head of the description; the routes add themselves.
pub(crate) fn description() -> utoipa::openapi::OpenApi {
    #[derive(OpenApi)]
    #[openapi(info(
        title = "tyrex",
        description = "Counterfactual explanations that still hold after the model is retrained: \
                       advice, certificates, the ledger of promises and the gate for new models."
    ))]
    struct Description;
    Description::openapi()
}
