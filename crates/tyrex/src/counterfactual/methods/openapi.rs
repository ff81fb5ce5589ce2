//! The schema of [`MethodSpec`]: for each method its own parameters with the tag among them.

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{ElasticNet, MethodSpec, MinCost, Nn, Roar, Sns, TrexI, TrexNn, TrexO};
use crate::openapi::merged;

impl PartialSchema for MethodSpec {
    fn schema() -> RefOr<Schema> {
        let methods = [
            ("min-cost", MinCost::schema()),
            ("elastic-net", ElasticNet::schema()),
            ("trex-i", TrexI::schema()),
            ("trex-o", TrexO::schema()),
            ("trex-nn", TrexNn::schema()),
            ("sns", Sns::schema()),
            ("roar", Roar::schema()),
            ("nn", Nn::schema()),
        ];
        let all = OneOfBuilder::new().description(Some("A method and its parameters."));
        methods
            .into_iter()
            .fold(all, |all, (name, parameters)| all.item(merged(tag(name), parameters)))
            .into()
    }
}

impl ToSchema for MethodSpec {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        MinCost::schemas(schemas);
        ElasticNet::schemas(schemas);
        TrexI::schemas(schemas);
        TrexO::schemas(schemas);
        TrexNn::schemas(schemas);
        Sns::schemas(schemas);
        Roar::schemas(schemas);
        Nn::schemas(schemas);
    }
}

/// The tag that says which method it is.
fn tag(name: &str) -> RefOr<Schema> {
    let tag = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([name]));
    ObjectBuilder::new().property("method", tag).required("method").into()
}
