//! Retraining without some of the rows.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::member::{Base, Change, Member, Training};
use crate::error::{Error, Result};
use crate::seed::Seed;

/// A random share of the rows is left out, with new initial weights; the paper's *leave some out*.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `fraction` | 0.01 | share of the rows that are left out, at least one | between 0 and 1 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LeaveOut {
    /// The share of the rows that is left out, between 0 and 1.
    pub fraction: f64,
}

impl LeaveOut {
    /// The paper's share.
    pub(crate) const ONE_PERCENT: Self = Self { fraction: 0.01 };

    fn count(self, rows: usize) -> usize {
        ((rows as f64 * self.fraction).round() as usize).max(1)
    }

    /// The rows that stay.
    fn rows(self, rows: &[usize], seed: Seed) -> Vec<usize> {
        let mut places: Vec<usize> = (0..rows.len()).collect();
        let (_, kept) =
            places.partial_shuffle(&mut seed.derive("left out").rng(), self.count(rows.len()));
        kept.sort_unstable();
        kept.iter().map(|&place| rows[place]).collect()
    }
}

impl Default for LeaveOut {
    fn default() -> Self {
        Self::ONE_PERCENT
    }
}

impl Change for LeaveOut {
    fn description(&self) -> String {
        format!("trained again without {} % of the rows, from new weights", 100.0 * self.fraction)
    }

    fn check(&self, base: &Base<'_>) -> Result<()> {
        let rows = base.rows.len();
        if !(self.fraction > 0.0 && self.fraction < 1.0) {
            return Err(Error::param("fraction", self.fraction, "a number between 0 and 1"));
        }
        if self.count(rows) >= rows {
            return Err(Error::param(
                "fraction",
                self.fraction,
                format!("a share that leaves at least one of the {rows} rows"),
            ));
        }
        Ok(())
    }

    fn member<'a>(&self, base: &Base<'a>, seed: Seed) -> Result<Member<'a>> {
        let rows = self.rows(base.rows, seed).into();
        Ok(Training { rows, ..base.again() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::member::tests::Sample;

    #[test]
    fn the_share_is_left_out_and_nothing_else_happens() {
        let rows: Vec<usize> = (0..1000).map(|row| 3 * row).collect();
        for (fraction, left) in [(0.01, 990), (0.5, 500), (0.0001, 999)] {
            let kept = LeaveOut { fraction }.rows(&rows, Seed(1));
            assert_eq!(kept.len(), left);
            assert!(kept.is_sorted_by(|a, b| a < b));
            assert!(kept.iter().all(|row| rows.binary_search(row).is_ok()));
        }
    }

    #[test]
    fn every_row_is_as_likely_to_be_left_out() {
        let rows: Vec<usize> = (0..20).collect();
        let mut left_out = [0_u32; 20];
        for draw in 0..4000 {
            let kept = LeaveOut { fraction: 0.25 }.rows(&rows, Seed(0).index(draw));
            for row in rows.iter().filter(|row| !kept.contains(row)) {
                left_out[*row] += 1;
            }
        }
        // 1000 expected, with a standard deviation of 27.
        assert!(left_out.iter().all(|&times| times.abs_diff(1000) < 140), "{left_out:?}");
    }

    #[test]
    fn shares_that_leave_nothing_or_are_none_are_refused() {
        for (fraction, rows) in
            [(0.0, 100), (1.0, 100), (-0.1, 100), (f64::NAN, 100), (0.999, 100), (0.01, 1)]
        {
            let error = Sample::new(rows).check(&LeaveOut { fraction }).unwrap_err().to_string();
            assert!(error.starts_with("parameter `fraction` is "), "{error}");
        }
        Sample::new(100).check(&LeaveOut { fraction: 0.99 }).unwrap();
    }
}
