use super::super::{Comparison, Question, TreeNode};
use super::*;
use crate::model::Model as _;
use crate::model::kernel::forced::on_each_isa;
use crate::seed::Seed;
use proptest::prelude::*;
use rand::RngExt;

const ALL: [Comparison; 6] = [
    Comparison::LessOrEqual,
    Comparison::Less,
    Comparison::GreaterOrEqual,
    Comparison::Greater,
    Comparison::Equal,
    Comparison::NotEqual,
];

/// Numbers that trees compare with, the odd ones included.
const NUMBERS: [f32; 12] = [
    0.0,
    -0.0,
    1.0e-45,
    -1.0e-45,
    1.0,
    1.000_000_1,
    -1.0,
    0.5,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
];

/// Draws the weights of a leaf.
type MakeLeaf<'a> = dyn FnMut(&mut dyn rand::Rng) -> Vec<(usize, f32)> + 'a;

/// A random tree over `dim` columns, with leaves of the given kind.
fn tree(
    rng: &mut impl rand::Rng,
    dim: usize,
    leaves: usize,
    leaf: &mut MakeLeaf<'_>,
) -> Vec<TreeNode> {
    let mut tree = vec![TreeNode::Leaf { weights: Vec::new() }];
    let mut open = vec![0];
    while open.len() < leaves {
        let node = open.swap_remove(rng.random_range(0..open.len()));
        let (yes, no) = (tree.len(), tree.len() + 1);
        tree.resize(tree.len() + 2, TreeNode::Leaf { weights: Vec::new() });
        open.extend([yes, no]);
        let (feature, missing) = (rng.random_range(0..dim), rng.random_bool(0.5));
        let mut number = || {
            if rng.random_bool(0.5) {
                NUMBERS[rng.random_range(0..NUMBERS.len())]
            } else {
                rng.random_range(-2.0..2.0_f32)
            }
        };
        let (threshold, values) = (number(), vec![number(), number(), number()]);
        tree[node] = if rng.random_bool(0.1) {
            TreeNode::Member { feature, values, missing, yes, no }
        } else {
            let comparison = ALL[rng.random_range(0..ALL.len())];
            TreeNode::Branch { feature, comparison, threshold, missing, yes, no }
        };
    }
    for node in &mut tree {
        if let TreeNode::Leaf { weights } = node {
            *weights = leaf(rng);
        }
    }
    tree
}

/// The outputs of one point by the definition, node by node.
fn defined(ensemble: &TreeEnsemble, point: &[f32]) -> Vec<f64> {
    let mut point = point.to_vec();
    ensemble.substitute(&mut point);
    let empty = match ensemble.aggregate {
        Aggregate::Sum | Aggregate::Average => 0.0,
        Aggregate::Minimum => f64::INFINITY,
        Aggregate::Maximum => f64::NEG_INFINITY,
    };
    let mut outputs = vec![empty; ensemble.base.len()];
    for &root in &ensemble.roots {
        let mut node = &ensemble.nodes[root as usize];
        loop {
            let x = point[node.feature as usize];
            let yes = match node.question {
                Question::Leaf => break,
                Question::Member(set) => ensemble.sets[set as usize].contains(&x),
                Question::Compare(comparison, t) => match comparison {
                    Comparison::LessOrEqual => x <= t,
                    Comparison::Less => x < t,
                    Comparison::GreaterOrEqual => x >= t,
                    Comparison::Greater => x > t,
                    Comparison::Equal => x == t,
                    Comparison::NotEqual => x != t,
                },
            };
            let yes = if x.is_nan() { node.missing } else { yes };
            node = &ensemble.nodes[if yes { node.yes } else { node.no } as usize];
        }
        for &(output, weight) in ensemble.leaf(node) {
            let (sum, weight) = (&mut outputs[output as usize], f64::from(weight));
            *sum = match ensemble.aggregate {
                Aggregate::Sum | Aggregate::Average => *sum + weight,
                Aggregate::Minimum => sum.min(weight),
                Aggregate::Maximum => sum.max(weight),
            };
        }
    }
    for (sum, &base) in outputs.iter_mut().zip(&ensemble.base) {
        if ensemble.aggregate == Aggregate::Average {
            *sum /= ensemble.roots.len().max(1) as f64;
        }
        *sum = if sum.is_finite() { *sum } else { 0.0 } + f64::from(base);
    }
    outputs
}

/// Points that hit the thresholds of an ensemble, or just miss them, or are missing.
fn points(ensemble: &TreeEnsemble, count: usize, seed: u64) -> Points {
    let mut rng = Seed(seed).rng();
    let thresholds = ensemble.thresholds();
    let mut points = Points::new(ensemble.dim);
    for _ in 0..count {
        let coordinates: Vec<f32> = thresholds
            .columns()
            .iter()
            .map(|cells| match (rng.random_range(0..10), cells.cuts()) {
                (0, _) => f32::NAN,
                (1, _) => NUMBERS[rng.random_range(0..NUMBERS.len())],
                (2..=5, cuts) if !cuts.is_empty() => {
                    let cut = cuts[rng.random_range(0..cuts.len())];
                    if rng.random_bool(0.5) { cut } else { cut.next_down() }
                }
                _ => rng.random_range(-2.0..2.0_f32),
            })
            .collect();
        points.push(&coordinates);
    }
    points
}

/// The bits of all scores and logits, for several sizes of a batch and every instruction set,
/// against the definition.
fn check(ensemble: &TreeEnsemble, seed: u64) {
    let points = points(ensemble, 300, seed);
    let expected: Vec<(f32, f32)> = points
        .rows()
        .map(|row| {
            let outputs = defined(ensemble, row);
            (ensemble.transformed(&outputs), ensemble.logit_of(&outputs))
        })
        .collect();
    let bits = |pair: &(f32, f32)| (pair.0.to_bits(), pair.1.to_bits());
    for count in [0, 1, 7, 8, 23, 24, 64, 65, 256, 257, 300] {
        let some = points.select(&(0..count).collect::<Vec<_>>());
        for (isa, (scores, logits)) in on_each_isa(|| {
            let mut logits = vec![0.0; count];
            ensemble.logit_into(&some, &mut logits);
            (ensemble.score(&some), logits)
        }) {
            for (row, expected) in expected[..count].iter().enumerate() {
                let found = (scores[row], logits[row]);
                assert_eq!(bits(&found), bits(expected), "{isa:?}, row {row} of {count}");
            }
        }
    }
    for (row, expected) in points.rows().zip(&expected).take(20) {
        assert_eq!(ensemble.logit(row).to_bits(), expected.1.to_bits());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_way_gives_the_bits_of_the_definition(
        seed in 0..100_000_u64, dim in 1..6_usize, leaves in 1..40_usize, kind in 0..6_usize,
        marked in any::<bool>(),
    ) {
        let mut rng = Seed(seed).rng();
        let (outputs, aggregate, transform) = match kind {
            0 => (1, Aggregate::Sum, Transform::Logistic),
            1 => (1, Aggregate::Average, Transform::Identity),
            2 => (1, Aggregate::Minimum, Transform::Identity),
            3 => (1, Aggregate::Maximum, Transform::Logistic),
            4 => (3, Aggregate::Sum, Transform::Softmax { favourable: 2 }),
            _ => (3, Aggregate::Average, Transform::Softmax { favourable: 0 }),
        };
        let trees: Vec<_> = (0..11)
            .map(|index| {
                // One number for one output; for the last kind, none or several.
                let mut leaf = |rng: &mut dyn rand::Rng| {
                    let each = if kind == 5 { rng.random_range(0..4) } else { 1 };
                    (0..each).map(|o| ((index + o) % outputs, rng.random_range(-1.0..1.0_f32))).collect()
                };
                let leaves = rng.random_range(1..=leaves);
                tree(&mut rng, dim, leaves, &mut leaf)
            })
            .collect();
        let base = (0..outputs).map(|o| o as f32 * 0.5).collect();
        let mut ensemble = TreeEnsemble::new(dim, &trees, aggregate, base, transform).unwrap();
        if marked {
            let mark = Substitute { column: 0, indicator: dim - 1, value: f32::NAN };
            ensemble = ensemble.with_substitutes(&[mark]);
        }
        check(&ensemble, seed + 1);
    }
}

/// An ensemble of one column with this many thresholds.
fn many(thresholds: usize, leaves: usize) -> TreeEnsemble {
    let mut rng = Seed(5).rng();
    let mut trees = Vec::new();
    let mut made = 0;
    while made < thresholds {
        let mut leaf = |rng: &mut dyn rand::Rng| vec![(0, rng.random_range(-1.0..1.0_f32))];
        let mut tree = tree(&mut rng, 1, leaves, &mut leaf);
        for node in &mut tree {
            if let TreeNode::Branch { .. } | TreeNode::Member { .. } = node {
                let [yes, no] = node.children().unwrap();
                let (comparison, threshold) = (Comparison::Less, made as f32 / thresholds as f32);
                *node =
                    TreeNode::Branch { feature: 0, comparison, threshold, missing: true, yes, no };
                made += 1;
            }
        }
        trees.push(tree);
    }
    TreeEnsemble::new(1, &trees, Aggregate::Sum, vec![0.0], Transform::Logistic).unwrap()
}

#[test]
fn ranks_have_as_many_bytes_as_they_need_and_large_trees_are_walked() {
    for (thresholds, leaves, bytes) in
        [(254, 255, 1), (255, 2, 2), (1000, 8, 2), (300, 256, 2), (300, 257, 0), (66_000, 100, 0)]
    {
        let ensemble = many(thresholds, leaves);
        let found = match ensemble.layout.ranks {
            Ranks::Bytes(..) => 1,
            Ranks::Words(..) => 2,
            Ranks::None => 0,
        };
        assert_eq!(found, bytes, "{thresholds} thresholds in trees of {leaves} leaves");
        check(&ensemble, 3);
    }
}
