use proptest::prelude::*;

use super::*;
use crate::points::Points;
use crate::seed::Seed;

const DIM: usize = 4;

/// A number on a coarse grid, so that points often lie on thresholds.
fn number(rng: &mut impl rand::Rng) -> f32 {
    (rng.random_range(-8..=8) as f32) / 4.0
}

/// Random trees with all kinds of questions.
fn ensemble(outputs: usize, seed: u64) -> TreeEnsemble {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let kinds = [LessOrEqual, Less, GreaterOrEqual, Greater, Equal, NotEqual];
    let mut rng = Seed(seed).rng();
    let mut trees = Vec::new();
    for _ in 0..6 {
        let mut tree = vec![TreeNode::Leaf { weights: Vec::new() }];
        let mut open = vec![(0, 0)];
        while let Some((at, depth)) = open.pop() {
            if depth == 4 || rng.random_range(0..5) == 0 {
                let weight = rng.random_range(-1.0..1.0);
                let weights = vec![(rng.random_range(0..outputs), weight)];
                tree[at] = TreeNode::Leaf { weights };
                continue;
            }
            let (yes, no) = (tree.len(), tree.len() + 1);
            let (feature, missing) = (rng.random_range(0..DIM), rng.random());
            tree[at] = if rng.random_range(0..6) == 0 {
                let values = (0..3).map(|_| number(&mut rng)).collect();
                TreeNode::Member { feature, values, missing, yes, no }
            } else {
                let comparison = kinds[rng.random_range(0..kinds.len())];
                let threshold = number(&mut rng);
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no }
            };
            tree.extend([const { TreeNode::Leaf { weights: Vec::new() } }; 2]);
            open.extend([(yes, depth + 1), (no, depth + 1)]);
        }
        trees.push(tree);
    }
    let transform = match (outputs, seed % 2) {
        (1, 0) => Transform::Logistic,
        (1, _) => Transform::Identity,
        _ => Transform::Softmax { favourable: 1 },
    };
    let aggregate = if seed.is_multiple_of(3) { Aggregate::Average } else { Aggregate::Sum };
    let ensemble =
        TreeEnsemble::new(DIM, &trees, aggregate, vec![0.25; outputs], transform).unwrap();
    let value = if seed.is_multiple_of(5) { f32::NAN } else { 0.5 };
    ensemble.with_substitutes(&[Substitute { column: 1, indicator: 2, value }])
}

/// The scores of all points with the choices of lines, one by one.
fn one_by_one(
    ensemble: &TreeEnsemble,
    x: &[f32],
    lines: &[Line<'_>],
    shift: Shift<'_>,
) -> Vec<f32> {
    let mut points = vec![x.to_vec()];
    for line in lines {
        points = points
            .iter()
            .flat_map(|point| {
                line.values.chunks_exact(line.width).map(|choice| {
                    let mut point = point.clone();
                    point[line.start..line.start + line.width].copy_from_slice(choice);
                    point
                })
            })
            .collect();
    }
    let mut all = Points::new(x.len());
    for mut point in points {
        for (column, x) in point.iter_mut().enumerate() {
            *x = shift.of(column, *x);
        }
        all.push(&point);
    }
    ensemble.score(&all)
}

proptest! {
    #[test]
    fn a_walk_gives_the_scores_of_all_choices(
        outputs in 1_usize..4, width in 1_usize..3, seed in 0_u64..5000, ascending: bool,
        factor in prop::sample::select(vec![1.0_f32, 0.5]), shifted: bool,
    ) {
        let ensemble = ensemble(outputs, seed);
        let mut rng = Seed(seed).derive("points").rng();
        let x: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
        let mut values: Vec<f32> = (0..width * 20).map(|_| number(&mut rng)).collect();
        if ascending {
            values.sort_by(f32::total_cmp);
        }
        let start = rng.random_range(0..=DIM - width);
        let line = Line { start, width, values: &values };
        let offset: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
        let shift = Shift { factor, by: shifted.then_some(offset.as_slice()) };
        let routes = Routes::of(&ensemble).unwrap();
        let mut scratch = RoutesScratch::default();
        routes.scores_along(&x, &[line], shift, &mut scratch);
        let expected = one_by_one(&ensemble, &x, &[line], shift);
        prop_assert_eq!(scratch.scores.len(), expected.len());
        for ((score, logit), expected) in scratch.scores.iter().zip(&scratch.logits).zip(&expected) {
            prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
            if (0.01..0.99).contains(expected) {
                let score = 1.0 / (1.0 + (-logit).exp()) as f32;
                prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
            }
        }
    }

    #[test]
    fn a_walk_over_two_lines_gives_the_logits_of_all_pairs(
        outputs in 1_usize..4, seed in 0_u64..5000,
    ) {
        let ensemble = ensemble(outputs, seed);
        let mut rng = Seed(seed).derive("points").rng();
        let x: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
        let mut first: Vec<f32> = (0..9).map(|_| number(&mut rng)).collect();
        first.sort_by(f32::total_cmp);
        let second: Vec<f32> = (0..14).map(|_| number(&mut rng)).collect();
        // The column of the substitute, or the one that decides about it.
        let at = [0, 1][(seed % 2) as usize];
        let lines = [
            Line { start: at, width: 1, values: &first },
            Line { start: 2, width: 2, values: &second },
        ];
        let routes = Routes::of(&ensemble).unwrap();
        let mut scratch = RoutesScratch::default();
        let together = routes.logits_over(&x, lines, &mut scratch);
        prop_assert_eq!(together, at == 0);
        if !together {
            return Ok(());
        }
        let expected = one_by_one(&ensemble, &x, &lines, Shift::NONE);
        prop_assert_eq!(scratch.logits.len(), expected.len());
        for (logit, expected) in scratch.logits.iter().zip(&expected) {
            if (0.01..0.99).contains(expected) {
                let score = 1.0 / (1.0 + (-logit).exp()) as f32;
                prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
            }
        }
    }

    #[test]
    fn answers_are_kept_between_walks_only_where_they_hold(
        outputs in 1_usize..4, seed in 0_u64..5000,
    ) {
        let ensemble = ensemble(outputs, seed);
        let mut rng = Seed(seed).derive("walks").rng();
        let routes = Routes::of(&ensemble).unwrap();
        let mut scratch = RoutesScratch::default();
        let mut x: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
        let mut values: Vec<f32> = (0..16).map(|_| number(&mut rng)).collect();
        let offset: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
        for _ in 0..12 {
            match rng.random_range(0..3) {
                0 => x[rng.random_range(0..DIM)] = number(&mut rng),
                1 => values[rng.random_range(0..16)] = number(&mut rng),
                _ => values.sort_by(f32::total_cmp),
            }
            let width = rng.random_range(1..3);
            let start = rng.random_range(0..=DIM - width);
            let line = Line { start, width, values: &values[..2 * rng.random_range(1..9)] };
            let by = rng.random::<bool>().then_some(offset.as_slice());
            let shift = Shift { factor: 1.0, by };
            routes.scores_along(&x, &[line], shift, &mut scratch);
            let expected = one_by_one(&ensemble, &x, &[line], shift);
            prop_assert_eq!(scratch.scores.len(), expected.len());
            for (score, expected) in scratch.scores.iter().zip(&expected) {
                prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
            }
        }
    }

    #[test]
    fn each_choice_reaches_one_box_of_every_tree(outputs in 1_usize..4, seed in 0_u64..5000) {
        let ensemble = ensemble(outputs, seed);
        let mut rng = Seed(seed).derive("boxes").rng();
        let x: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
        let mut first: Vec<f32> = (0..9).map(|_| number(&mut rng)).collect();
        first.sort_by(f32::total_cmp);
        let second: Vec<f32> = (0..8).map(|_| number(&mut rng)).collect();
        let lines = [
            Line { start: 0, width: 1, values: &first },
            Line { start: 1, width: 2, values: &second },
        ];
        let routes = Routes::of(&ensemble).unwrap();
        let Some(boxes) = routes.leaf_boxes(&x, &lines) else {
            let has_classes = matches!(ensemble.transform(), Transform::Softmax { .. });
            prop_assert!(outputs > 2 && has_classes);
            return Ok(());
        };
        let mut scratch = RoutesScratch::default();
        prop_assert!(routes.logits_over(&x, lines, &mut scratch));
        for (index, &logit) in scratch.logits.iter().enumerate() {
            let choice = [index / lines[1].len(), index % lines[1].len()];
            let (mut sum, mut start) = (0.0, 0);
            for &end in &boxes.ends {
                let mut reached = (start..end).filter(|&leaf| {
                    let mut spans = boxes.spans(leaf).iter();
                    spans.all(|span| {
                        let own = choice[boxes.slots[span.slot as usize]];
                        span.from <= own && own < span.to
                    })
                });
                sum += boxes.weights[reached.next().unwrap()];
                prop_assert!(reached.next().is_none());
                start = end;
            }
            // The score passes at a level just below its own, and not at one that is above.
            let score = 1.0 / (1.0 + (-logit).exp());
            if (0.01..0.99).contains(&score) {
                prop_assert!(sum >= routes.least_sum(score - 1e-5), "{} {}", sum, score);
                prop_assert!(sum < routes.least_sum(score + 1e-5), "{} {}", sum, score);
            }
        }
    }
}
