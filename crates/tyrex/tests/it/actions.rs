//! The laws of feasible sets, over random schemas, actions, rules, factuals and points.

use proptest::prelude::*;
use tyrex::action::{Actions, Constraint, FeasibleSet};
use tyrex::data::encode::Coding;
use tyrex::data::schema::Relation;
use tyrex::data::{Encoder, Row, Schema};

use crate::support::rules::{bound_world, broken, names};
use crate::support::schemas::fitted;

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
            // In small worlds there is always one: the factual itself, if nothing else.
            let Some((row, settled)) = set.settle(&point) else {
                return Err(TestCaseError::fail(format!("no row near {point:?}\n{set:?}")));
            };
            prop_assert_eq!(broken(&schema, &rows[0], &row), Vec::<String>::new());
            prop_assert_eq!(set.violations(&row), vec![]);
            prop_assert!(Row::new(&schema, row.values().to_vec()).is_ok());
            prop_assert!(set.contains(&settled), "{settled:?}\n{set:?}");
            let encoded = encoder.encode(&row)?;
            prop_assert_eq!(encoded.as_slice(), &settled[..]);
            let again = encoder.encode(&encoder.decode(&settled))?;
            for (x, y) in settled.iter().zip(again.as_slice()) {
                prop_assert!((x - y).abs() <= 1e-6 * x.abs().max(1.0), "{settled:?}\n{again:?}");
            }
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
    /// Here with one rule at most, and no column that it hardly speaks about: others may meet
    /// the box or each other at an angle that single precision cannot see.
    #[test]
    fn no_point_of_the_set_is_nearer((mut schema, rows, coordinates) in bound_world()) {
        schema.rules.retain(|rule| matches!(rule.relation, Relation::Sum { .. }));
        schema.rules.truncate(1);
        let (encoder, set, factual) = prepared(&schema, &rows)?;
        let slopes: Vec<f64> = schema
            .rules
            .iter()
            .flat_map(|rule| encoder.blocks().iter().filter_map(|block| {
                let Relation::Sum { terms, .. } = &rule.relation else { return None };
                let coefficient = terms.get(&block.feature).filter(|c| **c != 0.0)?;
                let Coding::Number { affine, .. } = block.coding else { return None };
                Some((coefficient / affine.scale).abs())
            }))
            .collect();
        let ends = (slopes.iter().fold(f64::MAX, |a, b| a.min(*b)), slopes.iter().fold(0.0, |a: f64, b| a.max(*b)));
        prop_assume!(ends.1 <= 100.0 * ends.0);
        let point = point_of(&coordinates, 0, encoder.dim());
        let mut projected = point.clone();
        set.project(&mut projected);
        let mut others = vec![factual];
        others.extend(set.moves(&rows[0]).points().map(<[f32]>::to_vec));
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
    fn moves_obey_every_rule_and_change_one_feature_and_what_it_is_tied_to((schema, rows, coordinates) in bound_world()) {
        let (encoder, set, _) = prepared(&schema, &rows)?;
        let point = point_of(&coordinates, 0, encoder.dim());
        let settled = set.settle(&point).map(|(row, _)| row);
        for from in settled.iter().chain([&rows[0]]) {
            let moves = set.moves(from);
            let rows_moved: Vec<Row> =
                (0..moves.points().count()).map(|index| moves.row(index)).collect();
            for (index, (row, point)) in rows_moved.iter().zip(moves.points()).enumerate() {
                prop_assert_eq!(broken(&schema, &rows[0], row), Vec::<String>::new());
                let encoded = encoder.encode(row)?;
                prop_assert_eq!(encoded.as_slice(), point);
                let pairs = from.values().iter().zip(row.values()).enumerate();
                let changed: Vec<usize> =
                    pairs.filter(|(_, (a, b))| a != b).map(|(position, _)| position).collect();
                prop_assert!(!changed.is_empty());
                // More than one only where a rule ties numbers together.
                let tied = |position: &usize| {
                    let name = &schema.features[*position].name;
                    schema.rules.iter().any(|rule| names(rule).contains(&name))
                };
                prop_assert!(changed.len() == 1 || changed.iter().all(tied), "{changed:?}");
                prop_assert!(!rows_moved[..index].contains(row));
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
