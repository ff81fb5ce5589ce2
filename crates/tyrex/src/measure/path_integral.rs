//! `1/s sum_{j=1..s} m(j/s x)`

use serde::{Deserialize, Serialize};

use super::{Evaluation, Kind};
use crate::error::{Error, Result};
use crate::model::Model;

/// The score along the way from the origin, which Stable Neighbour Search climbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PathIntegral {
    /// The number of steps `s`.
    pub steps: usize,
}

impl Default for PathIntegral {
    fn default() -> Self {
        Self { steps: 20 }
    }
}

impl Kind for PathIntegral {
    fn symbol(&self) -> &'static str {
        "path integral"
    }

    fn way<'a>(&self, _: &'a dyn Model) -> Result<Evaluation<'a>> {
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        Ok(Evaluation::Path { steps: self.steps })
    }
}
