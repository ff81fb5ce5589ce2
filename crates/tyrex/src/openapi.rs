//! What the schemas of documents need beyond what can be derived.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, Schema};

/// One object with the properties of both: what `serde` writes where one is flattened into the
/// other, or a tag stands beside parameters. Derived, it would be "the first and the second at
/// once", and no document is that where one of them refuses other properties.
pub(crate) fn merged(first: RefOr<Schema>, second: RefOr<Schema>) -> RefOr<Schema> {
    match (first, second) {
        (RefOr::T(Schema::Object(mut first)), RefOr::T(Schema::Object(second))) => {
            first.properties.extend(second.properties);
            first.required.extend(second.required);
            first.additional_properties =
                first.additional_properties.or(second.additional_properties);
            first.description = first.description.or(second.description);
            RefOr::T(Schema::Object(first))
        }
        (first, second) => AllOfBuilder::new().item(first).item(second).into(),
    }
}
