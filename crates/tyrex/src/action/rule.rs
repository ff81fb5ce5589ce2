//! Linear rules between features, as sums of a row and as slabs of points.

use std::fmt::Write as _;

use crate::data::encode::Coding;
use crate::data::schema::{Interval, Rule, Schema};
use crate::data::{Encoder, Value};
use crate::error::{Error, Result};

/// The tolerance of a sum, relative to its terms: `0.1 + 0.2` is not `0.3`.
pub(super) const ROUNDING: f64 = 1e-12;

/// A linear rule for one factual: `sum of coefficient * number` lies in the bounds, which reach as
/// far as the factual's own sum.
#[derive(Debug, Clone)]
pub(super) struct BoundRule {
    /// Its place among the schema's rules.
    pub(super) index: usize,
    /// The features' positions in a row, and their coefficients; none is 0.
    pub(super) terms: Vec<(usize, f64)>,
    /// The bounds of the sum.
    pub(super) bounds: Interval,
}

impl BoundRule {
    /// The rule for this factual; `None` if it cannot be computed or has no effect.
    pub(super) fn new(
        schema: &Schema,
        index: usize,
        factual: &[Value],
        is_ordinary: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let rule = &schema.rules[index];
        let mut terms = Vec::with_capacity(rule.terms.len());
        for (name, &coefficient) in &rule.terms {
            let position = schema.position(name)?;
            if coefficient == 0.0 {
                continue;
            }
            if !is_ordinary(position) {
                return None;
            }
            terms.push((position, coefficient));
        }
        let bounds = Interval {
            lower: rule.at_least.unwrap_or(f64::NEG_INFINITY),
            upper: rule.at_most.unwrap_or(f64::INFINITY),
        };
        let mut bound = Self { index, terms, bounds };
        let (sum, _) = bound.sum(factual)?;
        bound.bounds = Interval { lower: bounds.lower.min(sum), upper: bounds.upper.max(sum) };
        (!bound.terms.is_empty()).then_some(bound)
    }

    /// `sum of coefficient * number`, and the same of absolute values; `None` if a value is
    /// no number.
    pub(super) fn sum(&self, values: &[Value]) -> Option<(f64, f64)> {
        let mut total = (0.0, 0.0);
        for &(position, coefficient) in &self.terms {
            let term = coefficient * values.get(position)?.number()?;
            total = (total.0 + term, total.1 + term.abs());
        }
        Some(total)
    }

    /// Whether a row keeps the rule.
    pub(super) fn holds(&self, values: &[Value]) -> bool {
        self.sum(values).is_some_and(|(sum, size)| {
            let slack = ROUNDING * size;
            self.bounds.lower - slack <= sum && sum <= self.bounds.upper + slack
        })
    }
}

/// Rejects rules whose sums would be too large for an `f64`.
pub(super) fn check_sizes(schema: &Schema, encoder: &Encoder) -> Result<()> {
    for (index, rule) in schema.rules.iter().enumerate() {
        let mut size = 0.0;
        for (block, _, _) in encoder.placed() {
            if let (Some(coefficient), Coding::Number { affine, .. }) =
                (rule.terms.get(&block.feature), &block.coding)
            {
                let largest = (1.0 + 1.0 / affine.scale.abs()) * f64::from(f32::MAX);
                size += coefficient.abs() * (largest + affine.offset.abs());
            }
        }
        // The projection squares such numbers.
        if !(size * size).is_finite() {
            return Err(Error::schema(format!(
                "rule {index}: its sum can be as large as {size:e}, expected smaller coefficients"
            )));
        }
    }
    Ok(())
}

/// The rule's description, or its formula: `12 * instalment - 0.3 * income <= 0`.
pub(super) fn in_words(rule: &Rule) -> String {
    if let Some(description) = &rule.description {
        return description.clone();
    }
    let mut words = String::new();
    if let Some(lower) = rule.at_least {
        let _ = write!(words, "{lower} <= ");
    }
    for (index, (name, coefficient)) in rule.terms.iter().enumerate() {
        let sign = match (index, *coefficient < 0.0) {
            (0, false) => "",
            (0, true) => "-",
            (_, false) => " + ",
            (_, true) => " - ",
        };
        match coefficient.abs() {
            1.0 => _ = write!(words, "{sign}{name}"),
            size => _ = write!(words, "{sign}{size} * {name}"),
        }
    }
    if let Some(upper) = rule.at_most {
        let _ = write!(words, " <= {upper}");
    }
    words
}
