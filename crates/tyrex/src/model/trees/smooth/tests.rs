use super::*;
use crate::model::trees::{Comparison, TreeNode};
use crate::seed::Seed;
use proptest::prelude::*;
use rand::RngExt;

const ALL: [Comparison; 4] =
    [Comparison::LessOrEqual, Comparison::Less, Comparison::GreaterOrEqual, Comparison::Greater];

/// A random ensemble of 4 columns: two of numbers, one of codes, one switch.
fn ensemble(seed: u64, aggregate: Aggregate, transform: Transform) -> TreeEnsemble {
    let mut rng = Seed(seed).rng();
    let outputs = if matches!(transform, Transform::Softmax { .. }) { 3 } else { 1 };
    let trees: Vec<Vec<TreeNode>> = (0..3)
        .map(|_| {
            let mut tree = vec![TreeNode::Leaf { weights: Vec::new() }];
            let mut open = vec![(0, 0)];
            while let Some((node, depth)) = open.pop() {
                if depth == 4 || (depth > 0 && rng.random_bool(0.15)) {
                    let mut weights: Vec<(usize, f32)> =
                        (0..outputs).map(|o| (o, rng.random_range(0.0..1.0))).collect();
                    // Several weights of an output count all.
                    weights.push((0, 0.125));
                    tree[node] = TreeNode::Leaf { weights };
                    continue;
                }
                let (yes, no) = (tree.len(), tree.len() + 1);
                tree.resize(tree.len() + 2, TreeNode::Leaf { weights: Vec::new() });
                open.extend([(yes, depth + 1), (no, depth + 1)]);
                let feature = rng.random_range(0..4);
                let missing = rng.random_bool(0.5);
                let compare = |comparison, threshold| TreeNode::Branch {
                    feature,
                    comparison,
                    threshold,
                    missing,
                    yes,
                    no,
                };
                let code = rng.random_range(0..4) as f32;
                tree[node] = match (feature, rng.random_range(0..3)) {
                    (2, 0) => compare(Comparison::Equal, code),
                    (2, 1) => compare(Comparison::NotEqual, code),
                    (2, _) => {
                        let values = vec![code, rng.random_range(0..4) as f32];
                        TreeNode::Member { feature, values, missing, yes, no }
                    }
                    (3, _) => compare(ALL[rng.random_range(0..4)], 0.5),
                    _ => {
                        let threshold = rng.random_range(-8..=8) as f32 / 8.0;
                        compare(ALL[rng.random_range(0..4)], threshold)
                    }
                };
            }
            tree
        })
        .collect();
    let base = (0..outputs).map(|o| o as f32 * 0.25).collect();
    TreeEnsemble::new(5, &trees, aggregate, base, transform).unwrap()
}

/// The values of a column with their probabilities, by the definition: a number for each cell.
fn distribution(
    ensemble: &TreeEnsemble,
    motion: Motion,
    column: usize,
    x: &[f32],
    width: f64,
) -> Vec<(f32, f64)> {
    let cells = ensemble.thresholds().column(column).clone();
    let own = |value: f32| vec![(value, 1.0)];
    let plain = match motion {
        _ if x[column].is_nan() => own(f32::NAN),
        Motion::Still => own(x[column]),
        Motion::Switch => {
            let on = f64::from(x[column].clamp(0.0, 1.0));
            vec![(0.0, 1.0 - on), (1.0, on)]
        }
        Motion::Gaussian => (0..cells.count())
            .map(|cell| {
                let below = |x0: f32| {
                    let z = (f64::from(x0) - f64::from(x[column])) / width;
                    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
                };
                let from = if cell == 0 { 0.0 } else { below(cells.least(cell)) };
                let to = cells.cuts().get(cell).map_or(1.0, |&cut| below(cut));
                (cells.nearest(cell, 0.0), to - from)
            })
            .collect(),
    };
    let Some(substitute) = ensemble.substitutes.iter().find(|own| own.column == column) else {
        return plain;
    };
    let q = f64::from(x[substitute.indicator].clamp(0.0, 1.0));
    let mut mixed: Vec<(f32, f64)> = plain.into_iter().map(|(v, p)| (v, p * (1.0 - q))).collect();
    mixed.push((substitute.value, q));
    mixed
}

/// The mean outputs over all combinations of cells.
fn enumerated(ensemble: &TreeEnsemble, x: &[f32], width: f64) -> Vec<f64> {
    let motions = [Motion::Gaussian, Motion::Gaussian, Motion::Still, Motion::Switch];
    let columns: Vec<_> =
        (0..4).map(|column| distribution(ensemble, motions[column], column, x, width)).collect();
    // The values replace missing ones already, so the trees get them as they are.
    let bare = ensemble.clone().with_substitutes(&[]);
    let mut totals = vec![0.0; ensemble.base.len()];
    for &(a, p) in &columns[0] {
        for &(b, q) in &columns[1] {
            for &(c, r) in &columns[2] {
                for &(d, s) in &columns[3] {
                    let point = Points::from_rows(5, vec![a, b, c, d, 0.0]).unwrap();
                    let outputs = outputs_of(&bare, &point);
                    for (total, output) in totals.iter_mut().zip(outputs) {
                        *total += p * q * r * s * output;
                    }
                }
            }
        }
    }
    totals
}

fn outputs_of(ensemble: &TreeEnsemble, point: &Points) -> Vec<f64> {
    let found = std::cell::RefCell::new(Vec::new());
    ensemble.each(point, &mut [0.0], |outputs| {
        *found.borrow_mut() = outputs.to_vec();
        0.0
    });
    found.into_inner()
}

/// The mean outputs, by the smoothed trees.
fn means(smoothed: &SmoothedTrees, x: &[f32]) -> Vec<f64> {
    let found = std::cell::RefCell::new(Vec::new());
    smoothed.evaluate(x, &mut smoothed.scratch(), false, |outputs| {
        *found.borrow_mut() = outputs.to_vec();
        (0.0, Vec::new())
    });
    found.into_inner()
}

/// Numbers that `f32` holds exactly, also after a step of a finite difference.
fn dyadic(least: i32, most: i32) -> impl Strategy<Value = f32> {
    (least * 64..most * 64).prop_map(|n| n as f32 / 64.0 + 0.003_906_25)
}

fn points() -> impl Strategy<Value = Vec<f32>> {
    let switch = prop_oneof![Just(0.0_f32), Just(1.0_f32), Just(0.25), Just(0.75)];
    let mark = prop_oneof![Just(0.0_f32), Just(1.0_f32), Just(0.5), Just(0.125)];
    let number = prop_oneof![9 => dyadic(-1, 1), 1 => Just(f32::NAN)];
    (number, dyadic(-1, 1), 0..4, switch, mark)
        .prop_map(|(a, b, code, d, e)| vec![a, b, code as f32, d, e])
}

const KINDS: [(Aggregate, Transform); 4] = [
    (Aggregate::Sum, Transform::Logistic),
    (Aggregate::Average, Transform::Identity),
    (Aggregate::Sum, Transform::Softmax { favourable: 1 }),
    (Aggregate::Average, Transform::Softmax { favourable: 2 }),
];

fn marked(ensemble: TreeEnsemble, value: f32) -> TreeEnsemble {
    ensemble.with_substitutes(&[Substitute { column: 1, indicator: 4, value }])
}

proptest! {
    #[test]
    fn the_mean_is_that_over_all_cells(
        seed in 0..1000_u64, x in points(), kind in 0..4_usize,
        width in prop::sample::select(vec![0.05, 0.3, 2.0]),
        value in prop::sample::select(vec![None, Some(f32::NAN), Some(0.1)]),
    ) {
        let (aggregate, transform) = KINDS[kind];
        let mut ensemble = ensemble(seed, aggregate, transform);
        if let Some(value) = value {
            ensemble = marked(ensemble, value);
        }
        let smoothed = ensemble.smoothed(width).unwrap().with_switches(&[3]).unwrap();
        let (found, expected) = (means(&smoothed, &x), enumerated(&ensemble, &x, width));
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        let point = Points::from_rows(5, x).unwrap();
        let (score, _) = smoothed.link(&expected);
        prop_assert!((f64::from(smoothed.score(&point)[0]) - score).abs() < 1e-6);
    }

    #[test]
    fn gradients_are_those_of_finite_differences(
        seed in 0..1000_u64, x in points(), kind in 0..4_usize,
        value in prop::sample::select(vec![None, Some(f32::NAN), Some(0.1)]),
    ) {
        const STEP: f32 = 1.0 / 4096.0;
        let (aggregate, transform) = KINDS[kind];
        let mut ensemble = ensemble(seed, aggregate, transform);
        if let Some(value) = value {
            ensemble = marked(ensemble, value);
        }
        let smoothed = ensemble.smoothed(0.5).unwrap().with_switches(&[3]).unwrap();
        let mut gradient = vec![0.0; 5];
        let logit = smoothed.logit_and_gradient(&x, &mut gradient);
        let value_at = |x: &[f32]| smoothed.logit(&means(&smoothed, x)).0;
        prop_assert!((f64::from(logit) - value_at(&x)).abs() < 1e-5);
        let point = Points::from_rows(5, x.clone()).unwrap();
        let (_, of_score) = smoothed.score_and_gradient(&point);
        let m = 1.0 / (1.0 + (-value_at(&x)).exp());
        let slope = m * (1.0 - m);
        for column in 0..5 {
            if x[column].is_nan() {
                prop_assert_eq!(gradient[column], 0.0);
                continue;
            }
            // Differences of the score: the logit of a small score is too curved for them.
            let at = |step: f32| {
                let mut moved = x.clone();
                moved[column] += step;
                1.0 / (1.0 + (-value_at(&moved)).exp())
            };
            // At the ends of a switch only one side counts.
            let (up, down) = match (column, x[column]) {
                (2, _) => (0.0, 0.0),
                (3 | 4, 1.0) => (0.0, -STEP),
                (3 | 4, 0.0) => (STEP, 0.0),
                _ => (STEP, -STEP),
            };
            let expected = if up == down { 0.0 } else { (at(up) - at(down)) / f64::from(up - down) };
            let found = f64::from(gradient[column]) * slope;
            // One-sided differences have an error of first order, through the link.
            let tolerance = if up == -down { 2e-5 } else { 2e-3 } * (1.0 + expected.abs());
            prop_assert!((found - expected).abs() < tolerance, "{column}: {found} {expected}");
            prop_assert!((f64::from(of_score.row(0)[column]) - found).abs() < 1e-4 * (1.0 + found.abs()));
        }
    }
}

#[test]
fn the_mean_is_that_of_random_neighbours() {
    use rand_distr::{Distribution, StandardNormal};
    const DRAWS: usize = 200_000;
    let ensemble = ensemble(7, Aggregate::Average, Transform::Identity);
    let width = 0.4;
    let smoothed = ensemble.smoothed(width).unwrap();
    let x = [0.1_f32, -0.2, 2.0, 1.0, 0.0];
    let mut rng = Seed(3).rng();
    let mut points = Points::new(5);
    for _ in 0..DRAWS {
        let mut neighbour = x;
        // Column 3 is not declared a switch, so it moves like a number; column 2 has codes.
        for column in [0, 1, 3] {
            let normal: f64 = StandardNormal.sample(&mut rng);
            neighbour[column] = (f64::from(x[column]) + width * normal) as f32;
        }
        points.push(&neighbour);
    }
    let scores = ensemble.score(&points);
    let mean = scores.iter().map(|&s| f64::from(s)).sum::<f64>() / DRAWS as f64;
    let variance =
        scores.iter().map(|&s| (f64::from(s) - mean).powi(2)).sum::<f64>() / DRAWS as f64;
    let error = (variance / DRAWS as f64).sqrt();
    let point = Points::from_rows(5, x.to_vec()).unwrap();
    let found = f64::from(smoothed.score(&point)[0]);
    assert!(error > 0.0 && (found - mean).abs() < 4.5 * error, "{found} {mean} {error}");
}

#[test]
fn a_narrow_mean_is_the_score_and_a_switch_keeps_it_at_its_ends() {
    let ensemble = ensemble(11, Aggregate::Sum, Transform::Logistic);
    let smoothed = ensemble.smoothed(1e-4).unwrap().with_switches(&[3]).unwrap();
    for on in [0.0, 1.0] {
        let point = Points::from_rows(5, vec![0.31, -0.43, 1.0, on, 0.0]).unwrap();
        let (own, mean) = (ensemble.score(&point)[0], smoothed.score(&point)[0]);
        assert!((own - mean).abs() < 1e-6, "{own} {mean}");
    }
}

#[test]
fn the_normal_distribution_has_its_digits() {
    for i in -90_000..=90_000 {
        let z = f64::from(i) / 9999.7;
        let [cumulative, density] = normal(z);
        let expected = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        assert!((cumulative - expected).abs() < 2e-15, "{z}: {cumulative} {expected}");
        let expected = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
        assert!((density - expected).abs() < 1e-14, "{z}: {density} {expected}");
    }
}

#[test]
fn what_has_no_mean_is_refused() {
    let plain = ensemble(1, Aggregate::Maximum, Transform::Logistic);
    assert!(plain.smoothed(0.1).unwrap_err().to_string().contains("closed form"));
    let plain = ensemble(1, Aggregate::Sum, Transform::Logistic);
    for width in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(plain.smoothed(width).unwrap_err().to_string().contains("width"));
    }
    let switches = plain.smoothed(0.1).unwrap().with_switches(&[5]);
    assert!(switches.unwrap_err().to_string().contains("columns from 0 to 4"));
}
