//! What a change costs: the distance between the factual and the counterfactual, in encoded
//! space.

use serde::{Deserialize, Serialize};

/// Which distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// `sum_j |x'_j - x_j|`: few features change.
    #[default]
    L1,
    /// `sqrt(sum_j (x'_j - x_j)^2)`: many features change a little.
    L2,
}

impl Norm {
    /// The name people use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
        }
    }

    /// The distance between two points.
    #[must_use]
    pub fn distance(self, a: &[f32], b: &[f32]) -> f64 {
        let differences = a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b));
        match self {
            Self::L1 => differences.map(f64::abs).sum(),
            Self::L2 => differences.map(|d| d * d).sum::<f64>().sqrt(),
        }
    }

    /// The length of a step with these lengths along two perpendicular columns: what it costs
    /// to leave one level of a one-hot group for another.
    pub(crate) fn of_switch(self, off: f64, on: f64) -> f64 {
        match self {
            Self::L1 => off.abs() + on.abs(),
            Self::L2 => off.hypot(on),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_at_zero_and_beyond() {
        let (a, b) = ([0.0, 1.0, 2.0], [3.0, 1.0, -2.0]);
        for (norm, far) in [(Norm::L1, 7.0), (Norm::L2, 5.0)] {
            assert!(norm.distance(&a, &a).abs() < 1e-12);
            assert!((norm.distance(&a, &b) - far).abs() < 1e-12);
        }
    }
}
