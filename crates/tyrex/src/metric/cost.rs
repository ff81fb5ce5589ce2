//! Costs beyond the length of a change: changes relative to the spread of each column, and the
//! number of changes. The lengths themselves are [`Norm::distance`].
//!
//! [`Norm::distance`]: crate::counterfactual::Norm::distance

use std::ops::Range;

use super::check_training;
use crate::error::{Error, Result};
use crate::points::Points;

/// `Phi^-1(3/4)`: the median absolute deviation of a normal variable of standard deviation 1.
const NORMAL_DEVIATION: f64 = 0.674_489_750_196_081_7;

/// Wachter's cost, `sum_j |x'_j - x_j| / MAD_j` with
/// `MAD_j = median_i |x_ij - median_i x_ij|` over the training points.
///
/// A column whose deviation is 0, because more than half of the points share one value, has no
/// scale by this rule; nearly every one-hot column is such. Dividing by 1 there, as is often done,
/// would mix units: the cost would no longer stay the same when a column is rescaled. So its scale
/// is `0.6745` times its standard deviation, the median absolute deviation of a normal column with
/// that spread. A constant column has scale 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MedianDeviations {
    scales: Vec<f64>,
}

impl MedianDeviations {
    /// The scales of the training points' columns.
    pub(super) fn fit(training: &Points) -> Result<Self> {
        check_training(training, 1)?;
        let scale = |column: usize| {
            let mut values: Vec<f64> = training.rows().map(|row| f64::from(row[column])).collect();
            let centre = median(&mut values);
            let mut deviations: Vec<f64> = values.iter().map(|x| (x - centre).abs()).collect();
            match median(&mut deviations) {
                0.0 => match NORMAL_DEVIATION * standard_deviation(&values) {
                    0.0 => 1.0,
                    spread => spread,
                },
                deviation => deviation,
            }
        };
        Ok(Self { scales: (0..training.dim()).map(scale).collect() })
    }

    /// The scale of each column.
    #[cfg(test)]
    pub(super) fn scales(&self) -> &[f64] {
        &self.scales
    }

    /// The cost of a change.
    pub(super) fn distance(&self, factual: &[f32], point: &[f32]) -> Result<f64> {
        check_pair(factual, point, self.scales.len())?;
        let steps = factual.iter().zip(point).zip(&self.scales);
        Ok(steps.map(|((&a, &b), scale)| (f64::from(a) - f64::from(b)).abs() / scale).sum())
    }
}

/// The middle number, or the mean of the two in the middle; the numbers are reordered.
fn median(numbers: &mut [f64]) -> f64 {
    let middle = numbers.len() / 2;
    if middle == 0 {
        return numbers.first().copied().unwrap_or(0.0);
    }
    let is_odd = numbers.len() % 2 == 1;
    let (below, &mut upper, _) = numbers.select_nth_unstable_by(middle, f64::total_cmp);
    if is_odd {
        return upper;
    }
    0.5 * (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + upper)
}

fn standard_deviation(numbers: &[f64]) -> f64 {
    // Equal numbers have no spread, even if rounding changes their mean.
    if numbers.iter().all(|x| *x == numbers[0]) {
        return 0.0;
    }
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    (numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt()
}

/// `#{ j : |x'_j - x_j| > tolerance }`: how many columns change.
pub(super) fn changed_columns(factual: &[f32], point: &[f32], tolerance: f64) -> Result<usize> {
    check_pair(factual, point, factual.len())?;
    Ok((0..factual.len()).filter(|&j| changes(factual, point, j, tolerance)).count())
}

/// The number of features of which some column changes; a feature is a range of columns.
pub(super) fn changed_features(
    factual: &[f32],
    point: &[f32],
    features: &[Range<usize>],
    tolerance: f64,
) -> Result<usize> {
    check_pair(factual, point, factual.len())?;
    check_features(features, factual.len())?;
    let change = |columns: &&Range<usize>| {
        (*columns).clone().any(|column| changes(factual, point, column, tolerance))
    };
    Ok(features.iter().filter(change).count())
}

fn changes(factual: &[f32], point: &[f32], column: usize, tolerance: f64) -> bool {
    (f64::from(point[column]) - f64::from(factual[column])).abs() > tolerance
}

/// Features lie within the columns.
pub(super) fn check_features(features: &[Range<usize>], columns: usize) -> Result<()> {
    match features.iter().find(|range| range.start >= range.end || range.end > columns) {
        None => Ok(()),
        Some(range) => Err(Error::param(
            "feature",
            format!("columns {}..{}", range.start, range.end),
            format!("a range of some of the {columns} columns"),
        )),
    }
}

fn check_pair(factual: &[f32], point: &[f32], dim: usize) -> Result<()> {
    for (what, point) in [("factual", factual), ("counterfactual", point)] {
        if point.len() != dim {
            return Err(Error::Dimension {
                what: format!("coordinates of a {what}"),
                expected: dim,
                got: point.len(),
            });
        }
        if !point.iter().all(|x| x.is_finite()) {
            return Err(Error::param("point", what, "finite coordinates"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_of_columns_that_vary_much_little_and_never() {
        // Columns: a number, a level that one row in five has, a constant.
        let rows =
            [[1.0, 0.0, 7.0], [2.0, 0.0, 7.0], [4.0, 1.0, 7.0], [8.0, 0.0, 7.0], [9.0, 0.0, 7.0]];
        let training = Points::from_rows(3, rows.concat()).unwrap();
        let deviations = MedianDeviations::fit(&training).unwrap();
        // Median 4, deviations 3, 2, 0, 4, 5.
        let expected = [3.0, 0.4 * NORMAL_DEVIATION, 1.0];
        for (got, expected) in deviations.scales().iter().zip(expected) {
            assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
        }
        for (point, cost) in [
            ([1.0, 0.0, 7.0], 0.0),
            ([4.0, 0.0, 7.0], 1.0),
            ([-5.0, 1.0, 8.0], 2.0 + 1.0 / (0.4 * NORMAL_DEVIATION) + 1.0),
        ] {
            let got = deviations.distance(&rows[0], &point).unwrap();
            assert!((got - cost).abs() < 1e-12, "{got}, not {cost}");
        }
    }

    #[test]
    fn the_middle_of_odd_and_even_numbers() {
        for (numbers, middle) in [
            (&[][..], 0.0),
            (&[3.0], 3.0),
            (&[5.0, 1.0], 3.0),
            (&[9.0, 1.0, 2.0], 2.0),
            (&[4.0, 8.0, 1.0, 2.0], 3.0),
        ] {
            assert_eq!(median(&mut numbers.to_vec()), middle);
        }
    }

    #[test]
    fn changes_from_none_to_all() {
        let factual = [0.0, 1.0, 0.5];
        for (point, columns, features) in [
            ([0.0, 1.0, 0.5], 0, 0),
            ([0.0, 1.0, 0.75], 1, 1),
            ([1.0, 0.0, 0.5], 2, 1),
            ([1.0, 0.0, 0.75], 3, 2),
        ] {
            assert_eq!(changed_columns(&factual, &point, 1e-4).unwrap(), columns);
            assert_eq!(changed_features(&factual, &point, &[0..2, 2..3], 1e-4).unwrap(), features);
        }
        assert_eq!(changed_columns(&factual, &[0.1, 1.0, 0.5], 0.2).unwrap(), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let deviations = MedianDeviations { scales: vec![1.0; 2] };
        for (a, b) in
            [(&[0.0][..], &[0.0, 0.0][..]), (&[0.0, 0.0], &[0.0]), (&[0.0, 0.0], &[f32::NAN, 0.0])]
        {
            assert!(deviations.distance(a, b).is_err());
            assert!(changed_columns(a, b, 0.0).is_err());
            assert!(changed_features(a, b, &[], 0.0).is_err());
        }
        assert!(MedianDeviations::fit(&Points::new(2)).is_err());
        for wrong in [0..3, 1..1] {
            assert!(changed_features(&[0.0; 2], &[0.0; 2], &[wrong], 0.0).is_err());
        }
    }
}
