//! `m_0`

use serde::{Deserialize, Serialize};

use super::{Evaluation, Kind};
use crate::error::Result;
use crate::model::Model;

/// `m(x)`: the ablation's first baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Prediction {}

impl Kind for Prediction {
    fn symbol(&self) -> &'static str {
        "m"
    }

    fn way<'a>(&self, _: &'a dyn Model) -> Result<Evaluation<'a>> {
        Ok(Evaluation::Point)
    }
}
