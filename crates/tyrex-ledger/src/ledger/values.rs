//! A row under the names of its features.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use tyrex::data::{Row, Schema, Value};

/// The values of a row under the names of their features, in the order of the schema. The ledger
/// returns them unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values(Vec<(String, Value)>);

impl Values {
    /// The values of a row.
    pub fn of(schema: &Schema, row: &Row) -> Self {
        let names = schema.features.iter().map(|feature| feature.name.clone());
        Self(names.zip(row.values().iter().cloned()).collect())
    }

    /// The value of a feature.
    pub fn value(&self, feature: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == feature).map(|(_, value)| value)
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl FromIterator<(String, Value)> for Values {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Values;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("values by feature")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Values(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Values {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::AdditionalProperties;
        utoipa::openapi::ObjectBuilder::new()
            .description(Some("Values by feature: numbers, texts, or null for missing values"))
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Values {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            prop::num::f64::NORMAL.prop_map(Value::Number),
            (-1_000_000_i64..1_000_000).prop_map(|n| Value::Number(n as f64)),
            ".*".prop_map(Value::Text),
            Just(Value::Missing),
        ]
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_went_in(pairs in prop::collection::vec((".*", value()), 0..8)) {
            let values = Values(pairs);
            let text = serde_json::to_string(&values).unwrap();
            prop_assert_eq!(serde_json::from_str::<Values>(&text).unwrap(), values);
        }
    }
}
