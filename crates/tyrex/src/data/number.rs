//! Numbers on a grid.

use crate::data::schema::Interval;

/// The multiples of a step that lie in an interval.
///
/// A step is a decimal number such as 0.05, which no binary float is. So it is kept as a
/// ratio of two whole numbers, 5/100, and a multiple `n * 5 / 100` is rounded once: it is
/// the very float that the text of that multiple parses to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    size: f64,
    numerator: f64,
    denominator: f64,
    first: f64,
    last: f64,
}

impl Step {
    /// The multiples of `size` in the interval; `None` if there are none.
    pub(crate) fn new(size: f64, interval: Interval) -> Option<Self> {
        // The shortest text of a float has no exponent in Rust, so its decimals can be counted.
        let decimals = size.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // Powers of ten up to 22 are exact floats.
        let (numerator, denominator) = if decimals <= 22 {
            let denominator = 10_f64.powi(decimals as i32);
            ((size * denominator).round(), denominator)
        } else {
            (size, 1.0)
        };
        let (first, last) = (f64::NEG_INFINITY, f64::INFINITY);
        Self { size, numerator, denominator, first, last }.within(interval)
    }

    /// Those of the multiples that lie in the interval; `None` if there are none.
    pub(crate) fn within(mut self, interval: Interval) -> Option<Self> {
        self.first = self.count(interval.lower, f64::ceil).max(self.first);
        self.last = self.count(interval.upper, f64::floor).min(self.last);
        (self.first <= self.last).then_some(self)
    }

    /// The distance of two multiples that follow each other.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }

    /// The multiple nearest to the number.
    pub(crate) fn nearest(&self, number: f64) -> f64 {
        let multiple = (number / self.size).round().max(self.first).min(self.last);
        // Adding zero turns -0 into 0.
        multiple * self.numerator / self.denominator + 0.0
    }

    /// How many steps make the number; rounded by the given function, unless it is a multiple up to
    /// the error of the division.
    fn count(&self, number: f64, round: fn(f64) -> f64) -> f64 {
        let steps = number / self.size;
        let whole = steps.round();
        if (steps - whole).abs() <= 1e-9 * whole.abs().max(1.0) { whole } else { round(steps) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_are_the_floats_of_their_text() {
        for (size, decimals) in [(0.1, 1), (0.05, 2), (0.3, 1), (0.001, 3), (1.0, 0), (2.5, 1)] {
            let step = Step::new(size, Interval::ALL).unwrap();
            for n in -2000..2000 {
                let text = format!("{:.*}", decimals, f64::from(n) * size);
                let expected: f64 = text.parse().unwrap();
                assert_eq!(step.nearest(f64::from(n) * size), expected, "{n} times {size}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_interval_count_only_if_they_are_multiples() {
        let on = Step::new(0.1, Interval { lower: 0.3, upper: 0.7 }).unwrap();
        assert_eq!((on.nearest(-9.0), on.nearest(9.0)), (0.3, 0.7));
        let off = Step::new(0.1, Interval { lower: 0.25, upper: 0.75 }).unwrap();
        assert_eq!((off.nearest(-9.0), off.nearest(9.0)), (0.3, 0.7));
        assert!(Step::new(1.0, Interval { lower: 0.2, upper: 0.8 }).is_none());
    }
}
