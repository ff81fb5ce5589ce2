//! Retraining on rows drawn with replacement.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member, Training};
use crate::error::{Error, Result};
use crate::seed::Seed;

/// The same number of rows, drawn with replacement, and new weights: this simulates another sample
/// of the same population. With many rows, about 37 % of them are absent and others occur twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {}

impl Change for Bootstrap {
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
        Ok(Training { rows, ..base.again() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::Sample;

    #[test]
    fn as_many_rows_are_drawn_each_as_likely_and_nothing_else_happens() {
        let sample = Sample::new(20);
        let mut times = [0_u32; 20];
        let mut missing = 0;
        for number in 0..2000 {
            let training = sample.training(&Bootstrap {}, number);
            assert_eq!(training.rows.len(), 20);
            assert_eq!(*training.params, sample.params);
            assert!(training.start.is_none());
            for &row in training.rows.iter() {
                assert!(row % 2 == 0, "row {row} is none of the base's");
                times[row / 2] += 1;
            }
            missing += sample.rows.iter().filter(|row| !training.rows.contains(row)).count();
        }
        // 2000 expected, with a standard deviation of 44.
        assert!(times.iter().all(|&times| times.abs_diff(2000) < 220), "{times:?}");
        // (1 - 1/20)^20 = 0.358 of 40,000, with a standard deviation of less than 96.
        assert!(missing.abs_diff(14_339) < 480, "{missing}");
    }

    #[test]
    fn there_must_be_something_to_draw_from() {
        let error = Sample::new(0).check(&Bootstrap {}).unwrap_err().to_string();
        assert_eq!(error, "parameter `rows` is 0, expected at least 1 to draw from");
        Sample::new(1).check(&Bootstrap {}).unwrap();
    }
}
