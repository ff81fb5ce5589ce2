//! A summary of a column's cells.

use std::collections::BTreeMap;

use super::FEW_VALUES;
use crate::data::schema::{Interval, Missing, is_representable};
use crate::data::table::Column;
use crate::data::value::{Value, parse_number};

/// Up to here `f64` has every whole number: 2^53.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A summary of a column's cells.
pub(super) struct Summary<'a> {
    pub(super) name: &'a str,
    pub(super) rows: usize,
    pub(super) missing: usize,
    /// How often each text occurs. Counting stops when there are too many to be levels.
    pub(super) values: BTreeMap<&'a str, usize>,
    pub(super) not_numbers: usize,
    pub(super) whole: bool,
    pub(super) decimals: Option<usize>,
    pub(super) range: Option<Interval>,
}

impl<'a> Summary<'a> {
    pub(super) fn of(column: &'a Column, missing: &Missing) -> Self {
        let mut summary = Self {
            name: column.name(),
            rows: column.len(),
            missing: 0,
            values: BTreeMap::new(),
            not_numbers: 0,
            whole: true,
            decimals: Some(0),
            range: None,
        };
        for cell in column.cells() {
            if missing.tokens.iter().any(|token| token == cell) {
                summary.missing += 1;
                continue;
            }
            *summary.values.entry(cell).or_default() += 1;
            let Some(number) = parse_number(cell).filter(|number| is_representable(*number)) else {
                summary.not_numbers += 1;
                continue;
            };
            // Larger whole numbers are not exact, and no integers of a schema.
            let is_exact = number.abs() <= MOST_EXACT;
            summary.whole &= number.fract() == 0.0 && is_exact;
            summary.decimals = summary
                .decimals
                .filter(|_| is_exact)
                .and_then(|most| Some(most.max(decimals(cell)?)));
            let own = Interval { lower: number, upper: number };
            summary.range = Some(summary.range.map_or(own, |range| Interval {
                lower: range.lower.min(number),
                upper: range.upper.max(number),
            }));
        }
        summary
    }

    /// Whether a few cells among numbers are not numbers.
    pub(super) fn has_few_texts(&self) -> bool {
        self.not_numbers > 0 && self.not_numbers * 10 < self.rows && self.range.is_some()
    }

    pub(super) fn is_numeric(&self) -> bool {
        self.not_numbers == 0 && self.range.is_some()
    }

    /// The values as levels: numbers in order if all are numbers, else texts in order.
    pub(super) fn levels(&self) -> Vec<Value> {
        if !self.is_numeric() {
            return self.values.keys().map(|text| Value::from(*text)).collect();
        }
        let mut numbers: Vec<f64> =
            self.values.keys().filter_map(|text| parse_number(text)).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.into_iter().map(Value::Number).collect()
    }

    /// Whole numbers that count the rows.
    pub(super) fn is_identifier(&self) -> bool {
        let all_differ = self.values.len() == self.rows && self.rows > FEW_VALUES;
        let span = self.range.map_or(0.0, |range| range.upper - range.lower);
        self.is_numeric() && self.whole && all_differ && span == (self.rows - 1) as f64
    }
}

/// The digits after the point; `None` if there is an exponent.
fn decimals(cell: &str) -> Option<usize> {
    let cell = cell.trim();
    if cell.contains(['e', 'E']) {
        return None;
    }
    Some(cell.split_once('.').map_or(0, |(_, decimals)| decimals.trim_end_matches('0').len()))
}
