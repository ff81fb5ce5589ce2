//! Schemas of documents that cannot be derived.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

/// One object with the properties of both: the form that `serde` writes if one is flattened into
/// the other, or a tag is added to parameters. The derived schema would be `allOf` both, which no
/// document satisfies if one of them forbids other properties.
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

/// One of several objects, distinguished by a tag among their properties.
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
