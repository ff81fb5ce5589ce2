//! What the schemas of documents need beyond what can be derived.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

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

/// One of several objects, told apart by the tag that stands among its properties.
pub(crate) fn tagged(
    tag: &str,
    kinds: impl IntoIterator<Item = (&'static str, RefOr<Schema>)>,
) -> RefOr<Schema> {
    let one = |(name, properties)| {
        let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([name]));
        merged(ObjectBuilder::new().property(tag, name).required(tag).into(), properties)
    };
    kinds.into_iter().fold(OneOfBuilder::new(), |all, kind| all.item(one(kind))).into()
}
