//! The cost of a change: the distance between the factual and the counterfactual, in encoded space,
//! where a schema may give the two directions of a feature prices of their own.

use serde::{Deserialize, Serialize};

/// The distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// `sum_j |x'_j - x_j|`: few features change.
    #[default]
    L1,
    /// `sqrt(sum_j (x'_j - x_j)^2)`: many features change a little.
    L2,
}

choices! { Norm "norm" {
    L1 = "l1": "The sum of the changes: few features change",
    L2 = "l2": "The length of the change: many features change a little",
} }

impl Norm {
    /// The name in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1 => "L1",
            Self::L2 => "L2",
        }
    }

    /// The distance between two points.
    pub fn distance(self, a: &[f32], b: &[f32]) -> f64 {
        match self {
            Self::L1 => sum(a, b, f64::abs),
            Self::L2 => sum(a, b, |difference| difference * difference).sqrt(),
        }
    }

    /// The cost of a change from one point to another: the distance, in which `|x'_j - x_j|` counts
    /// `prices_j[0]` times if column `j` falls and `prices_j[1]` times if it rises.
    pub fn priced(self, to: &[f32], from: &[f32], prices: Option<&[[f64; 2]]>) -> f64 {
        let Some(prices) = prices else { return self.distance(to, from) };
        let each = to.iter().zip(from).zip(prices).map(|((&to, &from), price)| {
            let change = f64::from(to) - f64::from(from);
            change.abs() * price[usize::from(change > 0.0)]
        });
        match self {
            Self::L1 => each.sum(),
            Self::L2 => each.map(|x| x * x).sum::<f64>().sqrt(),
        }
    }

    /// The length of a step with these lengths along two perpendicular columns: the cost of moving
    /// from one level of a one-hot group to another.
    pub(crate) fn of_switch(self, off: f64, on: f64) -> f64 {
        match self {
            Self::L1 => off.abs() + on.abs(),
            Self::L2 => off.hypot(on),
        }
    }
}

/// The sum of a function of the differences, in eight sums side by side: one vector of numbers
/// per instruction instead of one number.
fn sum(a: &[f32], b: &[f32], of: impl Fn(f64) -> f64) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..LANES {
            sums[lane] += of(f64::from(a[lane]) - f64::from(b[lane]));
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(&a, &b)| of(f64::from(a) - f64::from(b)));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_differ_by_direction() {
        let (to, from) = ([1.0, -1.0, 4.0], [0.0, 1.0, 4.0]);
        let prices = [[1.0, 3.0], [2.0, 1.0], [5.0, 5.0]];
        assert_eq!(Norm::L1.priced(&to, &from, Some(&prices)), 7.0);
        assert_eq!(Norm::L2.priced(&to, &from, Some(&prices)), 5.0);
        assert_eq!(Norm::L1.priced(&from, &to, Some(&prices)), 3.0);
        assert_eq!(Norm::L1.priced(&to, &from, None), 3.0);
    }

    #[test]
    fn distances_at_zero_and_beyond() {
        let (a, b) = ([0.0, 1.0, 2.0], [3.0, 1.0, -2.0]);
        for (norm, far) in [(Norm::L1, 7.0), (Norm::L2, 5.0)] {
            assert!(norm.distance(&a, &a).abs() < 1e-12);
            assert!((norm.distance(&a, &b) - far).abs() < 1e-12);
        }
    }
}
