//! The fields of a request that a type of the library describes.

use std::fmt;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tyrex::explain::Ask;
use tyrex::fields;
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

use crate::problem::Problem;

/// The fields that a request has beside its own: those of the library's question, at the same
/// level.
///
/// They are read by [`AskFields::ask`] and not by `serde`, so that an error keeps its field.
#[derive(Debug, Default)]
pub(crate) struct AskFields {
    fields: Map<String, Value>,
    /// The first field that is there twice.
    twice: Option<String>,
}

impl<'de> Deserialize<'de> for AskFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = AskFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<AskFields, M::Error> {
                let mut read = AskFields::default();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if read.fields.insert(name.clone(), value).is_some() {
                        read.twice.get_or_insert(name);
                    }
                }
                Ok(read)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl AskFields {
    /// The question in a request `Q`.
    pub(crate) fn ask<Q: PartialSchema>(&self) -> Result<Ask, Problem> {
        if let Some(name) = &self.twice {
            return Err(Problem::field(name, "found twice, expected once"));
        }
        Ok(Ask::read(&self.fields, &own_fields(&Q::schema()))?)
    }
}

/// The names of a request's own fields, from its description.
fn own_fields(schema: &RefOr<Schema>) -> Vec<String> {
    match schema {
        RefOr::T(Schema::Object(object)) => object.properties.keys().cloned().collect(),
        RefOr::T(Schema::AllOf(all)) => all.items.iter().flat_map(own_fields).collect(),
        _ => Vec::new(),
    }
}

/// The field `terms` of a request; the default if it is absent. `null` has a meaning for the fields
/// in `meant`; any other field that is null is not given.
pub(crate) fn terms<T: DeserializeOwned + Default>(
    sent: Option<&Map<String, Value>>,
    meant: &[&str],
) -> Result<T, Problem> {
    let Some(sent) = sent else { return Ok(T::default()) };
    let read = fields::read(&Value::Object(fields::given(sent, meant)));
    read.map_err(|error| Problem::from(error).within("terms"))
}
