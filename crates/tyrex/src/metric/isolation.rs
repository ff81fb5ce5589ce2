//! The isolation forest: how few random splits separate a point from the others.

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rayon::prelude::*;

use super::{check_points, check_training};
use crate::error::Result;
use crate::points::Points;
use crate::seed::{Rng, Seed};

/// `s(x) = 2^( -mean_t h_t(x) / c(n) )`, with `h_t(x)` the number of splits to the leaf of `x` in a
/// tree plus `c` of the training points in that leaf, `n` the training points of a tree, and
///
/// `c(n) = 2 (ln(n - 1) + 0.5772..) - 2 (n - 1) / n`, `c(2) = 1`, `c(1) = 0`,
///
/// the mean number of splits that isolate a point among `n`. Between 0 and 1; above 0.5 for an outlier.
/// Equal to scikit-learn's `-IsolationForest().score_samples(x)` for the same trees.
#[derive(Debug, Clone)]
pub struct IsolationForest {
    trees: Vec<Vec<Split>>,
    /// `n`
    rows: usize,
    dim: usize,
}

/// A node of a tree; the first one is the root.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Split {
    /// Points with `x_column <= threshold` go to `low`, the others to `high`.
    At { column: usize, threshold: f64, low: usize, high: usize },
    /// A leaf with its number of training points.
    Leaf { rows: usize },
}

/// The number of trees, and the most training points of each, as in scikit-learn.
const TREES: usize = 100;
const ROWS: usize = 256;
/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

impl IsolationForest {
    /// A point with a higher score is an outlier, by scikit-learn's `contamination="auto"`.
    pub const OUTLIER: f64 = 0.5;

    /// Fits trees of random splits to random parts of the training points.
    pub fn fit(training: &Points, seed: Seed) -> Result<Self> {
        check_training(training, 2)?;
        let rows = training.len().min(ROWS);
        let tree = |index: usize| {
            let mut rng = seed.index(index).rng();
            let mut all: Vec<usize> = (0..training.len()).collect();
            let (part, _) = all.partial_shuffle(&mut rng, rows);
            grow(training, part.to_vec(), &mut rng)
        };
        let trees = (0..TREES).into_par_iter().map(tree).collect();
        Ok(Self { trees, rows, dim: training.dim() })
    }

    /// The score of every point.
    pub fn of(&self, points: &Points) -> Result<Vec<f64>> {
        check_points(points, self.dim)?;
        let usual = mean_depth(self.rows) * self.trees.len() as f64;
        let score = |x: &[f32]| {
            let depth: f64 = self.trees.iter().map(|tree| depth(tree, x)).sum();
            libm::exp2(-depth / usual)
        };
        Ok(points.as_slice().par_chunks(self.dim).map(score).collect())
    }
}

/// `c(n)`
fn mean_depth(rows: usize) -> f64 {
    match rows {
        0 | 1 => 0.0,
        2 => 1.0,
        rows => {
            let others = rows as f64 - 1.0;
            2.0 * (libm::log(others) + EULER) - 2.0 * others / rows as f64
        }
    }
}

/// `h_t(x)`
fn depth(tree: &[Split], x: &[f32]) -> f64 {
    let (mut node, mut splits) = (0, 0.0);
    loop {
        match tree[node] {
            Split::Leaf { rows } => return splits + mean_depth(rows),
            Split::At { column, threshold, low, high } => {
                node = if f64::from(x[column]) <= threshold { low } else { high };
                splits += 1.0;
            }
        }
    }
}

/// A tree that splits at a random place of a random column until rows are alone, equal, or as deep as
/// a balanced tree would be.
fn grow(points: &Points, rows: Vec<usize>, rng: &mut Rng) -> Vec<Split> {
    let deepest = (rows.len().max(2) as f64).log2().ceil() as usize;
    let mut tree = vec![Split::Leaf { rows: rows.len() }];
    let mut open = vec![(0, rows, 0)];
    while let Some((node, rows, depth)) = open.pop() {
        let split = if depth < deepest { drawn(points, &rows, rng) } else { None };
        let Some((column, threshold)) = split else { continue };
        let (below, above): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|&&row| f64::from(points.row(row)[column]) <= threshold);
        let (low, high) = (tree.len(), tree.len() + 1);
        tree[node] = Split::At { column, threshold, low, high };
        tree.extend([Split::Leaf { rows: below.len() }, Split::Leaf { rows: above.len() }]);
        open.extend([(low, below, depth + 1), (high, above, depth + 1)]);
    }
    tree
}

/// A column in which rows differ, and a place between them.
fn drawn(points: &Points, rows: &[usize], rng: &mut Rng) -> Option<(usize, f64)> {
    let mut columns: Vec<usize> = (0..points.dim()).collect();
    while !columns.is_empty() {
        let column = columns.swap_remove(rng.random_range(0..columns.len()));
        let values = || rows.iter().map(|&row| points.row(row)[column]);
        let least = f64::from(values().fold(f32::INFINITY, f32::min));
        let most = f64::from(values().fold(f32::NEG_INFINITY, f32::max));
        if least < most {
            return Some((column, rng.random_range(least..most)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// A forest of scikit-learn's, as `golden/make_isolation.py` writes it.
    #[derive(Deserialize)]
    struct Golden {
        cases: Vec<Case>,
    }

    /// Column, threshold, low, high and rows; column -2 is a leaf.
    type Node = (i64, f64, i64, i64, usize);

    #[derive(Deserialize)]
    struct Case {
        rows: usize,
        trees: Vec<Vec<Node>>,
        points: Vec<Vec<f32>>,
        scores: Vec<f64>,
        verdicts: Vec<i8>,
        training: Vec<Vec<f32>>,
    }

    fn golden() -> Vec<Case> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/isolation.json");
        serde_json::from_str::<Golden>(&std::fs::read_to_string(file).unwrap()).unwrap().cases
    }

    fn points(rows: &[Vec<f32>]) -> Points {
        Points::from_rows(rows[0].len(), rows.concat()).unwrap()
    }

    #[test]
    fn the_scores_are_scikit_learns_for_its_trees() {
        for case in golden() {
            let node = |&(column, threshold, low, high, rows): &Node| match usize::try_from(column)
            {
                Ok(column) => Split::At {
                    column,
                    threshold,
                    low: usize::try_from(low).unwrap(),
                    high: usize::try_from(high).unwrap(),
                },
                Err(_) => Split::Leaf { rows },
            };
            let trees = case.trees.iter().map(|tree| tree.iter().map(node).collect()).collect();
            let dim = case.points[0].len();
            let forest = IsolationForest { trees, rows: case.rows, dim };
            let scores = forest.of(&points(&case.points)).unwrap();
            for ((got, expected), verdict) in scores.iter().zip(&case.scores).zip(&case.verdicts) {
                assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
                assert_eq!(*got > IsolationForest::OUTLIER, *verdict < 0);
            }
        }
    }

    /// Two forests of random trees, of 100 and of 30, agree up to the spread over trees: about 2 splits
    /// for each tree, so 0.4 for a mean over 30, and 0.02 of a score with `c(48) = 6.9`.
    #[test]
    fn an_own_forest_agrees_with_scikit_learns() {
        for case in golden() {
            let training = points(&case.training);
            let forest = IsolationForest::fit(&training, Seed(0)).unwrap();
            let scores = forest.of(&points(&case.points)).unwrap();
            let misses = scores.iter().zip(&case.scores).map(|(a, b)| (a - b).abs());
            let mean = misses.sum::<f64>() / scores.len() as f64;
            assert!(mean < 0.03, "{mean}");
        }
    }

    #[test]
    fn least_middle_and_most() {
        // Equal points are never split: the depth is c(n).
        let equal = points(&vec![vec![0.5, 1.0]; 50]);
        let forest = IsolationForest::fit(&equal, Seed(1)).unwrap();
        assert!((forest.of(&equal.select(&[0])).unwrap()[0] - 0.5).abs() < 1e-12);
        // A point far from a cluster is alone after one split or two.
        let mut line: Vec<Vec<f32>> = (0..100_u8).map(|i| vec![f32::from(i) / 100.0]).collect();
        line.push(vec![50.0]);
        let forest = IsolationForest::fit(&points(&line), Seed(1)).unwrap();
        let scores = forest.of(&points(&[vec![50.0], vec![0.5]])).unwrap();
        assert!(scores[0] > 0.75 && scores[1] < IsolationForest::OUTLIER, "{scores:?}");
        assert!((mean_depth(256) - 10.244_770_920_119_917).abs() < 1e-12);
        assert!(IsolationForest::fit(&points(&[vec![1.0]]), Seed(0)).is_err());
    }
}
