//! The laws of feasible sets, over random schemas, actions, rules, factuals and points.

mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use support::schemas::{fitted, same, world};
use tyrex::action::{Actions, Constraint, FeasibleSet};
use tyrex::data::schema::{Action, Interval, Rule, SpecialAs};
use tyrex::data::{Encoder, FeatureKind, Row, Schema, Value};

/// What is drawn to make an action, and to make a rule.
type Draw = (u8, f64, f64);

/// A schema with actions and rules, rows that fit its features, and numbers for points.
fn bound_world() -> impl Strategy<Value = (Schema, Vec<Row>, Vec<f32>)> {
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
        if *coefficient != 0.0 && is_code(schema, position, value) {
            return None;
        }
        sum += coefficient * value.number()?;
    }
    Some(sum)
}

/// What a row breaks, by the words of the documentation rather than by the code under test.
fn broken(schema: &Schema, factual: &Row, row: &Row) -> Vec<String> {
    let mut found = Vec::new();
    for (position, feature) in schema.features.iter().enumerate() {
        let (from, to) = (&factual.values()[position], &row.values()[position]);
        if from == to {
            continue;
        }
        let order = |value: &Value| match feature.kind.is_number() {
            true => value.number().unwrap(),
            false => feature.kind.levels().iter().position(|level| level == value).unwrap() as f64,
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
            .map(|(name, c)| {
                let value = &row.values()[schema.position(name).unwrap()];
                (c * value.number().unwrap()).abs()
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

fn point_of(coordinates: &[f32], skip: usize, dim: usize) -> Vec<f32> {
    coordinates.iter().copied().cycle().skip(skip).take(dim).collect()
}

fn prepared(
    schema: &Schema,
    rows: &[Row],
) -> Result<(Encoder, FeasibleSet, Vec<f32>), TestCaseError> {
    let encoder = fitted(schema, rows)?;
    let set = Actions::new(schema, &encoder)?.for_factual(&rows[0])?;
    let factual = encoder.encode(&rows[0])?.into_vec();
    Ok((encoder, set, factual))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_settled_row_obeys_every_rule((schema, rows, coordinates) in bound_world()) {
        let (encoder, set, _) = prepared(&schema, &rows)?;
        for skip in 0..4 {
            let mut point = point_of(&coordinates, 7 * skip, encoder.dim());
            if skip % 2 == 1 {
                set.project(&mut point);
            }
            let Some((row, settled)) = set.settle(&point) else { continue };
            prop_assert_eq!(broken(&schema, &rows[0], &row), Vec::<String>::new());
            prop_assert_eq!(set.violations(&row), vec![]);
            prop_assert!(Row::new(&schema, row.values().to_vec()).is_ok());
            prop_assert!(set.contains(&settled), "{settled:?}\n{set:?}");
            let encoded = encoder.encode(&row)?;
            prop_assert_eq!(encoded.as_slice(), &settled[..]);
            prop_assert!(same(&schema, &rows, &row, &encoder.decode(&settled)));
        }
    }

    #[test]
    fn the_factual_settles_to_itself((schema, rows, _) in bound_world()) {
        let (_, set, factual) = prepared(&schema, &rows)?;
        prop_assert!(set.contains(&factual));
        let mut projected = factual.clone();
        set.project(&mut projected);
        prop_assert_eq!(&projected, &factual);
        prop_assert_eq!(set.violations(&rows[0]), vec![]);
        prop_assert_eq!(set.settle(&factual), Some((rows[0].clone(), factual)));
    }

    #[test]
    fn projecting_lands_in_the_set_and_stays((schema, rows, coordinates) in bound_world()) {
        let (encoder, set, _) = prepared(&schema, &rows)?;
        let mut point = point_of(&coordinates, 0, encoder.dim());
        set.project(&mut point);
        prop_assert!(set.contains(&point), "{point:?}\n{set:?}");
        for (x, (lower, upper)) in point.iter().zip(set.lower().iter().zip(set.upper())) {
            prop_assert!(lower <= x && x <= upper);
        }
        let once = point.clone();
        set.project(&mut point);
        prop_assert_eq!(once, point);
    }

    /// A projection `x` of `p` onto a convex set has `(p - x) . (y - x) <= 0` for all its `y`.
    /// Here with one rule at most: two may meet at an angle that single precision cannot see.
    #[test]
    fn no_point_of_the_set_is_nearer((mut schema, rows, coordinates) in bound_world()) {
        schema.rules.truncate(1);
        let (encoder, set, factual) = prepared(&schema, &rows)?;
        let point = point_of(&coordinates, 0, encoder.dim());
        let mut projected = point.clone();
        set.project(&mut projected);
        let mut others = vec![factual];
        others.extend(set.moves(&rows[0]).into_iter().map(|(_, point)| point));
        for skip in 1..6 {
            let other = point_of(&coordinates, 9 * skip, encoder.dim());
            others.extend(set.settle(&other).map(|(_, point)| point));
            let mut other = other;
            set.project(&mut other);
            others.push(other);
        }
        for other in others {
            let (mut product, mut size) = (0.0, 1.0);
            for ((p, x), y) in point.iter().zip(&projected).zip(&other) {
                let (p, x, y) = (f64::from(*p), f64::from(*x), f64::from(*y));
                product += (p - x) * (y - x);
                size += (p.abs() + x.abs()) * (x.abs() + y.abs());
            }
            prop_assert!(product <= 2e-5 * size, "{product} {size}\n{projected:?}\n{other:?}");
        }
    }

    #[test]
    fn moves_obey_every_rule_and_change_one_feature((schema, rows, coordinates) in bound_world()) {
        let (encoder, set, _) = prepared(&schema, &rows)?;
        let point = point_of(&coordinates, 0, encoder.dim());
        let settled = set.settle(&point).map(|(row, _)| row);
        for from in settled.iter().chain([&rows[0]]) {
            let moves = set.moves(from);
            for (index, (row, point)) in moves.iter().enumerate() {
                prop_assert_eq!(broken(&schema, &rows[0], row), Vec::<String>::new());
                let encoded = encoder.encode(row)?;
                prop_assert_eq!(encoded.as_slice(), &point[..]);
                let changed = from.values().iter().zip(row.values()).filter(|(a, b)| a != b);
                prop_assert_eq!(changed.count(), 1);
                prop_assert!(moves[..index].iter().all(|(other, _)| other != row));
            }
        }
    }

    #[test]
    fn violations_are_what_a_row_breaks((schema, rows, _) in bound_world()) {
        let (_, set, _) = prepared(&schema, &rows)?;
        for row in &rows {
            let found = set.violations(row);
            let expected = broken(&schema, &rows[0], row);
            prop_assert_eq!(found.is_empty(), expected.is_empty(), "{:?}\n{:?}", found, expected);
            // A sum that counts a code as a number is broken in one reading and void in the other.
            let features = found.iter().filter(|v| matches!(v.constraint, Constraint::Feature(_)));
            let expected = expected.iter().filter(|words| !words.starts_with("rule"));
            prop_assert_eq!(features.count(), expected.count());
        }
    }
}
