//! Parameters of a method by name.

use serde_json::{Map, Value};

use super::MethodSpec;
use crate::data::listed;
use crate::error::{Error, Result};

impl MethodSpec {
    /// The names of the method's parameters.
    #[must_use]
    pub fn param_names(&self) -> Vec<String> {
        match serde_json::to_value(self) {
            Ok(Value::Object(spec)) => spec.into_iter().map(|(name, _)| name).collect(),
            _ => Vec::new(),
        }
        .into_iter()
        .filter(|name| name != "method")
        .collect()
    }

    /// The method with some of its parameters replaced.
    pub fn with_params(&self, params: &Map<String, Value>) -> Result<Self> {
        let wrong = |error: serde_json::Error| {
            Error::param(
                "params",
                format!("{params:?}"),
                format!("those of {}: {error}", self.name()),
            )
        };
        let mut spec = match serde_json::to_value(self).map_err(wrong)? {
            Value::Object(spec) => spec,
            _ => Map::new(),
        };
        let own = self.param_names();
        for (name, value) in params {
            if !own.contains(name) {
                let expected = match own.as_slice() {
                    [] => format!("nothing, since {} has no parameters", self.name()),
                    own => format!("a parameter of {}: {}", self.name(), listed(own)),
                };
                return Err(Error::param("params", name, expected));
            }
            spec.insert(name.clone(), value.clone());
        }
        serde_json::from_value(Value::Object(spec)).map_err(wrong)
    }
}
