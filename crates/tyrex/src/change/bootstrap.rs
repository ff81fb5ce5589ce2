//! Trained again on rows drawn with replacement.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member, Training};
use crate::error::{Error, Result};
use crate::seed::Seed;

/// As many rows as before, drawn with replacement, and new weights: the data as another sample
/// of the same people would have been. Of many rows about 37 % are missing, others come twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {}

impl Change for Bootstrap {
    fn name(&self) -> &'static str {
        "bootstrap"
    }

    fn description(&self) -> String {
        "trained again on as many rows drawn with replacement, from new weights".to_owned()
    }

    fn check(&self, base: &Base<'_>) -> Result<()> {
        if base.rows.is_empty() {
            return Err(Error::param("rows", 0, "at least 1 to draw from"));
        }
        Ok(())
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let mut rng = seed.derive("bootstrap").rng();
        let mut draw = || base.rows[rng.random_range(0..base.rows.len())];
        let rows = base.rows.iter().map(|_| draw()).collect();
        Ok(Member::Trained(Training { rows, ..base.again() }))
    }
}
