//! Rules between numbers, as sums of a row and as slabs of points.

use crate::data::encode::Coding;
use crate::data::schema::{Interval, Relation, Schema};
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
    /// The ratio of which this is a bound.
    ratio: Option<Ratio>,
}

/// A bound of a ratio, for one factual.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    dividend: usize,
    divisor: usize,
    bounds: Interval,
}

impl BoundRule {
    /// The sums of a rule for this factual; none if it cannot be computed, has no effect or is no
    /// rule about numbers.
    ///
    /// `x / y <= b` with `y >= 0` is `x - b y <= 0`. A factual with a larger ratio may have any up to
    /// its own; one with `y = 0` has none, so its sum must not grow.
    pub(super) fn all(
        schema: &Schema,
        index: usize,
        factual: &[Value],
        is_ordinary: impl Fn(usize) -> bool,
    ) -> Vec<Self> {
        let relation = &schema.rules[index].relation;
        let mut found = Vec::new();
        for mut sum in sums(relation) {
            let mut ratio = None;
            if let (Relation::Ratio { dividend, divisor, .. }, Some(is_upper)) =
                (relation, sum.upper)
            {
                let places = schema.position(dividend).zip(schema.position(divisor));
                let Some((dividend, divisor)) = places else { continue };
                let own = |position: usize| factual.get(position).and_then(Value::number);
                let own = own(dividend).zip(own(divisor)).filter(|(_, divisor)| *divisor > 0.0);
                let mut limit = -sum.terms[1].1;
                if let Some((above, below)) = own {
                    let own = above / below;
                    limit = if is_upper { limit.max(own) } else { limit.min(own) };
                }
                sum.terms[1].1 = -limit;
                let bounds = if is_upper {
                    Interval { lower: f64::NEG_INFINITY, upper: limit }
                } else {
                    Interval { lower: limit, upper: f64::INFINITY }
                };
                ratio = Some(Ratio { dividend, divisor, bounds });
            }
            found.extend(Self::new(schema, index, &sum, ratio, factual, &is_ordinary));
        }
        found
    }

    fn new(
        schema: &Schema,
        index: usize,
        sum: &Sum<'_>,
        ratio: Option<Ratio>,
        factual: &[Value],
        is_ordinary: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let mut terms = Vec::with_capacity(sum.terms.len());
        for &(name, coefficient) in &sum.terms {
            let position = schema.position(name)?;
            if coefficient == 0.0 {
                continue;
            }
            if !is_ordinary(position) {
                return None;
            }
            terms.push((position, coefficient));
        }
        let bounds = sum.bounds;
        let mut bound = Self { index, terms, bounds, ratio };
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

    /// In words, how a row breaks the rule, and which values the row may have.
    pub(super) fn violation(&self, values: &[Value]) -> (String, String) {
        let number = |position: usize| values.get(position).and_then(Value::number);
        let ratio = self.ratio.and_then(|ratio| {
            let (above, below) = number(ratio.dividend).zip(number(ratio.divisor))?;
            (below > 0.0).then_some(("ratio", above / below, ratio.bounds))
        });
        let sum = || self.sum(values).map(|(sum, _)| ("sum", sum, self.bounds));
        let Some((what, found, bounds)) = ratio.or_else(sum) else {
            return ("no number".to_owned(), "a number".to_owned());
        };
        let Interval { lower, upper } = bounds;
        let allowed = match (lower.is_finite(), upper.is_finite()) {
            (true, true) => format!("a {what} from {lower} to {upper}"),
            (true, false) => format!("a {what} of {lower} or more"),
            _ => format!("a {what} of {upper} or less"),
        };
        (found.to_string(), allowed)
    }
}

/// A sum with bounds, as a schema has it.
struct Sum<'a> {
    terms: Vec<(&'a str, f64)>,
    bounds: Interval,
    /// For a bound of a ratio, whether it is the upper one.
    upper: Option<bool>,
}

/// The sums of a rule about numbers.
fn sums(relation: &Relation) -> Vec<Sum<'_>> {
    let or_all = |lower: Option<f64>, upper: Option<f64>| Interval {
        lower: lower.unwrap_or(f64::NEG_INFINITY),
        upper: upper.unwrap_or(f64::INFINITY),
    };
    match relation {
        Relation::Sum { terms, at_least, at_most } => {
            let terms = terms.iter().map(|(name, own)| (name.as_str(), *own)).collect();
            vec![Sum { terms, bounds: or_all(*at_least, *at_most), upper: None }]
        }
        Relation::Ratio { dividend, divisor, at_least, at_most } => {
            let side = |limit: f64, is_upper: bool| Sum {
                terms: vec![(dividend, 1.0), (divisor, -limit)],
                bounds: if is_upper { or_all(None, Some(0.0)) } else { or_all(Some(0.0), None) },
                upper: Some(is_upper),
            };
            let lower = at_least.map(|limit| side(limit, false));
            lower.into_iter().chain(at_most.map(|limit| side(limit, true))).collect()
        }
        Relation::Monotone { .. } | Relation::Implication { .. } => Vec::new(),
    }
}

/// Rejects rules whose sums would be too large for an `f64`.
pub(super) fn check_sizes(schema: &Schema, encoder: &Encoder) -> Result<()> {
    for (index, rule) in schema.rules.iter().enumerate() {
        for sum in sums(&rule.relation) {
            let mut size = 0.0;
            for (block, _, _) in encoder.placed() {
                let term = sum.terms.iter().find(|(name, _)| *name == block.feature);
                if let (Some((_, coefficient)), Coding::Number { affine, .. }) =
                    (term, &block.coding)
                {
                    let largest = (1.0 + 1.0 / affine.scale.abs()) * f64::from(f32::MAX);
                    size += coefficient.abs() * (largest + affine.offset.abs());
                }
            }
            // The projection squares such numbers.
            if !(size * size).is_finite() {
                return Err(Error::schema(format!(
                    "rule {index}: its sum can be as large as {size:e}, expected smaller \
                     coefficients"
                )));
            }
        }
    }
    Ok(())
}
