//! Trained again on the same rows.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Retraining;
use crate::error::Result;
use crate::seed::Seed;

/// New first weights and another order of the rows; the paper's *weight initialisation*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reinitialise {}

impl Retraining for Reinitialise {
    fn name(&self) -> &'static str {
        "reinitialise"
    }

    fn description(&self) -> String {
        "trained again from new weights".to_owned()
    }

    fn check(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn rows<'a>(&self, rows: &'a [usize], _: Seed) -> Cow<'a, [usize]> {
        Cow::Borrowed(rows)
    }
}
