//! Retraining on the same rows.

use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member};
use crate::error::Result;
use crate::seed::Seed;

/// New first weights and another order of the rows; the paper's *weight initialisation*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Reinitialise {}

impl Change for Reinitialise {
    fn description(&self) -> String {
        "trained again from new weights".to_owned()
    }

    fn check(&self, _: &Base<'_>) -> Result<()> {
        Ok(())
    }

    fn member<'a>(&self, base: &Base<'a>, _: Seed) -> Result<Member<'a>> {
        Ok(base.again().into())
    }
}
