//! Random actions and rules on random schemas, and what a row breaks of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tyrex::data::schema::{Action, Interval, Rule, SpecialAs};
use tyrex::data::{FeatureKind, Row, Schema, Value};

use super::schemas::world;

/// The random numbers for an action, and for a rule.
type Draw = (u8, f64, f64);

/// A schema with actions and rules, rows that fit its features, and numbers for points.
pub(crate) fn bound_world() -> impl Strategy<Value = (Schema, Vec<Row>, Vec<f32>)> {
    let draw = || (any::<u8>(), 0.0..1.0_f64, 0.0..1.0_f64);
    let actions = proptest::collection::vec(draw(), 6);
    let rules = proptest::collection::vec(proptest::collection::vec(draw(), 7), 0..4);
    (world(), actions, rules).prop_map(|((mut schema, rows, coordinates), actions, rules)| {
        for (position, draw) in (0..schema.features.len()).zip(actions) {
            schema.features[position].action = action(&schema, position, &rows, draw);
        }
        schema.rules = rules.iter().filter_map(|draws| rule(&schema, &rows, draws)).collect();
        schema.validate().unwrap();
        (schema, rows, coordinates)
    })
}

/// The smallest and largest ordinary number of a feature in the rows.
fn span(schema: &Schema, position: usize, rows: &[Row]) -> Option<(f64, f64)> {
    let ordinary = rows.iter().filter(|row| !is_code(schema, position, &row.values()[position]));
    let numbers = || ordinary.clone().filter_map(|row| row.values()[position].number());
    let ends = (numbers().fold(f64::MAX, f64::min), numbers().fold(f64::MIN, f64::max));
    (ends.0 <= ends.1).then_some(ends)
}

fn action(schema: &Schema, position: usize, rows: &[Row], (which, a, b): Draw) -> Action {
    let kind = &schema.features[position].kind;
    let levels = kind.levels();
    match which % 6 {
        0 | 1 => Action::Free,
        2 => Action::Fixed,
        3 if !matches!(kind, FeatureKind::Categorical { .. }) => Action::OnlyUp,
        4 if !matches!(kind, FeatureKind::Categorical { .. }) => Action::OnlyDown,
        _ if kind.is_number() => match span(schema, position, rows) {
            None => Action::Free,
            Some((lower, upper)) => {
                let at = |part: f64| lower + part * (upper - lower);
                Action::Within(Interval { lower: at(a.min(b)), upper: at(a.max(b)) })
            }
        },
        _ => {
            let first = (a * levels.len() as f64) as usize;
            let count = 1 + (b * (levels.len() - first) as f64) as usize;
            Action::Levels(levels.iter().skip(first).take(count).cloned().collect())
        }
    }
}

/// A rule over some of the numbers, with bounds near the sums of the rows.
fn rule(schema: &Schema, rows: &[Row], draws: &[Draw]) -> Option<Rule> {
    let mut terms = BTreeMap::new();
    for (position, &(which, a, _)) in (0..schema.features.len()).zip(draws) {
        let (lower, upper) = span(schema, position, rows).unwrap_or((0.0, 1.0));
        // Whole coefficients now and then, so that whole numbers meet their bounds exactly.
        let weight = 1.0 / (upper - lower).abs().max(1e-3);
        let coefficient = match which % 5 {
            0 => continue,
            1 => (a * 5.0).round() - 2.0,
            _ => (a - 0.4) * 4.0 * weight,
        };
        if schema.features[position].kind.is_number() {
            terms.insert(schema.features[position].name.clone(), coefficient);
        }
    }
    let mut rule = Rule { description: None, terms, at_least: None, at_most: None };
    if rule.terms.is_empty() {
        return None;
    }
    let &(which, a, b) = draws.last()?;
    let row = &rows[(a * rows.len() as f64) as usize];
    let bound = sum(schema, &rule, row).unwrap_or(0.0);
    let width = b * (1.0 + bound.abs());
    match which % 4 {
        0 => rule.at_most = Some(bound),
        1 => rule.at_least = Some(bound),
        2 => (rule.at_least, rule.at_most) = (Some(bound - width), Some(bound + width)),
        _ => (rule.at_least, rule.at_most) = (Some(bound), Some(bound)),
    }
    Some(rule)
}

fn is_code(schema: &Schema, position: usize, value: &Value) -> bool {
    let feature = &schema.features[position];
    *value == Value::Missing
        || value.number().is_some_and(|number| {
            [SpecialAs::Number, SpecialAs::Level]
                .iter()
                .any(|&treated| schema.special_values(feature, treated).contains(&number))
        })
}

/// The sum of a rule, by its definition; `None` if a term has no ordinary number.
fn sum(schema: &Schema, rule: &Rule, row: &Row) -> Option<f64> {
    let mut sum = 0.0;
    for (name, coefficient) in &rule.terms {
        let position = schema.position(name)?;
        let value = &row.values()[position];
        if *coefficient == 0.0 {
            continue;
        }
        if is_code(schema, position, value) {
            return None;
        }
        sum += coefficient * value.number()?;
    }
    Some(sum)
}

/// The rules that a row breaks, by the documentation and not by the code under test.
pub(crate) fn broken(schema: &Schema, factual: &Row, row: &Row) -> Vec<String> {
    let mut found = Vec::new();
    for (position, feature) in schema.features.iter().enumerate() {
        let (from, to) = (&factual.values()[position], &row.values()[position]);
        if from == to {
            continue;
        }
        let levels = feature.kind.levels();
        let order = |value: &Value| match value {
            Value::Number(number) if feature.kind.is_number() => *number,
            level => levels.iter().position(|own| own == level).unwrap() as f64,
        };
        let steps = to.number().zip(feature.step).map(|(number, step)| number / step);
        let is_good = schema.accepts(feature, to)
            && !is_code(schema, position, from)
            && !is_code(schema, position, to)
            && steps.is_none_or(|steps| (steps - steps.round()).abs() < 1e-6)
            && match &feature.action {
                Action::Free => true,
                Action::Fixed => false,
                Action::OnlyUp => order(to) > order(from),
                Action::OnlyDown => order(to) < order(from),
                Action::Within(interval) => interval.contains(to.number().unwrap()),
                Action::Levels(levels) => levels.contains(to),
            };
        if !is_good {
            found.push(format!("{}: {from:?} to {to:?}", feature.name));
        }
    }
    for (index, rule) in schema.rules.iter().enumerate() {
        let Some((before, after)) = sum(schema, rule, factual).zip(sum(schema, rule, row)) else {
            continue;
        };
        let size: f64 = rule
            .terms
            .iter()
            .filter_map(|(name, c)| {
                let value = &row.values()[schema.position(name)?];
                value.number().map(|number| (c * number).abs())
            })
            .sum();
        let too_low = rule.at_least.is_some_and(|bound| after < bound.min(before) - 1e-8 * size);
        let too_high = rule.at_most.is_some_and(|bound| after > bound.max(before) + 1e-8 * size);
        if too_low || too_high {
            found.push(format!("rule {index}: {before} to {after}, {rule:?}"));
        }
    }
    found
}
