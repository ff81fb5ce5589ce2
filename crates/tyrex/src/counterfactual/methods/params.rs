//! Parameters of a method by name.

use serde_json::{Map, Value};

use super::MethodSpec;
use crate::data::listed;
use crate::error::{Error, Result};
use crate::fields;

impl MethodSpec {
    /// The names of the method's parameters.
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
    pub(crate) fn with_params(&self, params: &Map<String, Value>) -> Result<Self> {
        let mut method = self.clone();
        let own = self.param_names();
        for (name, value) in params {
            let field = || format!("params.{name}");
            if !own.contains(name) {
                let problem = match own.as_slice() {
                    [] => format!("unknown, since {} has no parameters", self.name()),
                    own => {
                        format!("unknown, expected a parameter of {}: {}", self.name(), listed(own))
                    }
                };
                return Err(Error::field(field(), problem));
            }
            let mut spec = serde_json::to_value(&method)
                .map_err(|error| Error::field(field(), error.to_string()))?;
            spec[name] = value.clone();
            method = fields::read(&spec).map_err(|error| match error {
                Error::Field { problem, .. } => Error::field(field(), problem),
                other => other,
            })?;
        }
        Ok(method)
    }
}
