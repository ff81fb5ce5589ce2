//! Random actions and rules on random schemas, and what a row breaks of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tyrex::data::schema::{Action, Change, Interval, Relation, Rule, SpecialAs};
use tyrex::data::{FeatureKind, Row, Schema, Value};

use super::schemas::world;

/// The random numbers for an action, and for a rule.
type Draw = (u8, f64, f64);

/// A schema with actions and rules, rows that fit its features, and numbers for points.
pub(crate) fn bound_world() -> impl Strategy<Value = (Schema, Vec<Row>, Vec<f32>)> {
    let draw = || (any::<u8>(), 0.0..1.0_f64, 0.0..1.0_f64);
    let actions = proptest::collection::vec(draw(), 6);
    let rules = proptest::collection::vec(proptest::collection::vec(draw(), 7), 0..4);
    let tied = proptest::collection::vec(proptest::collection::vec(draw(), 4), 0..4);
    let drawn = (world(), actions, rules, tied);
    drawn.prop_map(|((mut schema, rows, coordinates), actions, rules, tied)| {
        for (position, draw) in (0..schema.features.len()).zip(actions) {
            schema.features[position].action = action(&schema, position, &rows, draw);
        }
        schema.rules = rules.iter().filter_map(|draws| rule(&schema, &rows, draws)).collect();
        for draws in &tied {
            let relation = tie(&schema, &rows, draws);
            schema.rules.push(Rule { description: None, relation });
            // Real numbers without a step, levels without an order, divisors below 0.
            if schema.validate().is_err() {
                schema.rules.pop();
            }
        }
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
    if terms.is_empty() {
        return None;
    }
    let &(which, a, b) = draws.last()?;
    let row = &rows[(a * rows.len() as f64) as usize];
    let bound = sum(schema, &terms, row).unwrap_or(0.0);
    let width = b * (1.0 + bound.abs());
    let (at_least, at_most) = match which % 4 {
        0 => (None, Some(bound)),
        1 => (Some(bound), None),
        2 => (Some(bound - width), Some(bound + width)),
        _ => (Some(bound), Some(bound)),
    };
    Some(Rule { description: None, relation: Relation::Sum { terms, at_least, at_most } })
}

/// A ratio, a monotone pair or an implication; perhaps one that is not a rule of the schema.
fn tie(schema: &Schema, rows: &[Row], draws: &[Draw]) -> Relation {
    let count = schema.features.len();
    let place = |draw: &Draw| usize::from(draw.0) % count;
    let name = |draw: &Draw| schema.features[place(draw)].name.clone();
    let change = |draw: &Draw| {
        let &(which, a, b) = draw;
        let position = place(draw);
        let (lower, upper) = span(schema, position, rows).unwrap_or((0.0, 1.0));
        let width = upper - lower;
        let levels = schema.features[position].kind.levels();
        let some: Vec<Value> = levels.iter().skip((a * 2.0) as usize).take(2).cloned().collect();
        match (usize::from(which) / count) % 9 {
            0 => Change::Up,
            1 => Change::Down,
            2 => Change::Any,
            3 => Change::NotUp,
            4 => Change::NotDown,
            5 => Change::None,
            6 => Change::By(Interval { lower: (a - 0.5) * width, upper: f64::INFINITY }),
            7 if !levels.is_empty() => Change::Levels(some),
            _ => Change::Within(Interval { lower: lower + a.min(b) * width, upper: f64::INFINITY }),
        }
    };
    match draws[0].0 % 4 {
        0 => Relation::Ratio {
            dividend: name(&draws[1]),
            divisor: name(&draws[2]),
            at_least: draws[3].0.is_multiple_of(3).then_some(draws[3].1),
            at_most: (!draws[3].0.is_multiple_of(3)).then_some(draws[3].2 * 3.0),
        },
        1 => Relation::Monotone { leader: name(&draws[1]), follower: name(&draws[2]) },
        _ => Relation::Implication {
            condition: draws[1..2].iter().map(|own| (name(own), change(own))).collect(),
            consequence: draws[2..].iter().map(|own| (name(own), change(own))).collect(),
        },
    }
}

/// The features that a rule is about.
pub(crate) fn names(rule: &Rule) -> Vec<&String> {
    match &rule.relation {
        Relation::Sum { terms, .. } => terms.keys().collect(),
        Relation::Ratio { dividend, divisor, .. } => vec![dividend, divisor],
        Relation::Monotone { leader, follower } => vec![leader, follower],
        Relation::Implication { condition, consequence } => {
            condition.keys().chain(consequence.keys()).collect()
        }
    }
}

/// Whether a value differs from another one in a way.
fn is_made(schema: &Schema, name: &str, change: &Change, from: &Value, to: &Value) -> bool {
    let feature = &schema.features[schema.position(name).unwrap()];
    let levels = feature.kind.levels();
    let rank = |value: &Value| match value.number().filter(|_| levels.is_empty()) {
        Some(number) => Some(number),
        None => levels.iter().position(|level| level == value).map(|place| place as f64),
    };
    let Some((before, after)) = rank(from).zip(rank(to)) else { return false };
    match change {
        Change::Up => after > before,
        Change::Down => after < before,
        Change::Any => after != before,
        Change::NotUp => after <= before,
        Change::NotDown => after >= before,
        Change::None => after == before,
        Change::By(by) => {
            let slack = 1e-8 * (after.abs() + before.abs());
            by.lower - slack <= after - before && after - before <= by.upper + slack
        }
        Change::Within(interval) => interval.lower <= after && after <= interval.upper,
        Change::Levels(levels) => levels.contains(to),
    }
}

/// Whether a row keeps a rule about changes, or a ratio; sums are looked at elsewhere.
fn keeps(schema: &Schema, relation: &Relation, factual: &Row, row: &Row) -> bool {
    let pair = |name: &String| {
        let position = schema.position(name).unwrap();
        (&factual.values()[position], &row.values()[position])
    };
    let is_ordinary =
        |name: &String| !is_code(schema, schema.position(name).unwrap(), pair(name).0);
    let implied = |condition: &[(&String, &Change)], consequence: &[(&String, &Change)]| {
        let made = |(name, change): &(&String, &Change)| {
            let (from, to) = pair(name);
            is_made(schema, name, change, from, to)
        };
        let is_met = condition.iter().all(|own| pair(own.0).0 != pair(own.0).1 && made(own));
        let is_ordinary = condition.iter().chain(consequence).all(|own| is_ordinary(own.0));
        !is_ordinary || !is_met || consequence.iter().all(made)
    };
    match relation {
        Relation::Sum { .. } => true,
        Relation::Monotone { leader, follower } => [Change::Up, Change::Down]
            .iter()
            .all(|change| implied(&[(leader, change)], &[(follower, change)])),
        Relation::Implication { condition, consequence } => {
            implied(&condition.iter().collect::<Vec<_>>(), &consequence.iter().collect::<Vec<_>>())
        }
        Relation::Ratio { dividend, divisor, at_least, at_most } => {
            let numbers = |which: usize| {
                let [a, b] = [dividend, divisor].map(|name| [pair(name).0, pair(name).1][which]);
                a.number().zip(b.number())
            };
            let Some((before, (x, y))) = numbers(0).zip(numbers(1)) else { return true };
            let is_code = |name| !is_ordinary(name);
            if is_code(dividend) || (is_code(divisor) && *at_least != Some(0.0)) {
                return true;
            }
            let slack = 1e-8 * (x.abs() + y.abs() + before.0.abs() + before.1.abs());
            // The bound, or the factual's own ratio if that is beyond it.
            let own = (before.1 > 0.0).then(|| before.0 / before.1);
            let limits = [(at_most, 1.0), (at_least, -1.0)];
            limits.into_iter().all(|(bound, sign)| {
                let Some(bound) = bound else { return true };
                let limit = own.map_or(*bound, |own| (sign * own).max(sign * bound) * sign);
                let excess = |(x, y): (f64, f64)| sign * (x - limit * y);
                excess((x, y)) <= excess(before).max(0.0) + slack * (1.0 + limit.abs())
            })
        }
    }
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
fn sum(schema: &Schema, terms: &BTreeMap<String, f64>, row: &Row) -> Option<f64> {
    let mut sum = 0.0;
    for (name, coefficient) in terms {
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
        if !keeps(schema, &rule.relation, factual, row) {
            found.push(format!("rule {index}: {rule:?}"));
        }
        let Relation::Sum { terms, at_least, at_most } = &rule.relation else { continue };
        let Some((before, after)) = sum(schema, terms, factual).zip(sum(schema, terms, row)) else {
            continue;
        };
        let size: f64 = terms
            .iter()
            .filter_map(|(name, c)| {
                let value = &row.values()[schema.position(name)?];
                value.number().map(|number| (c * number).abs())
            })
            .sum();
        let too_low = at_least.is_some_and(|bound| after < bound.min(before) - 1e-8 * size);
        let too_high = at_most.is_some_and(|bound| after > bound.max(before) + 1e-8 * size);
        if too_low || too_high {
            found.push(format!("rule {index}: {before} to {after}, {rule:?}"));
        }
    }
    found
}
