//! Tree ensembles: random forests and boosted trees, scored but not differentiated.

use super::{Fingerprint, Model, ModelSummary};
use crate::error::{Error, Result};
use crate::points::Points;

/// How a node compares its feature with its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `x <= t`
    LessOrEqual,
    /// `x < t`
    Less,
    /// `x >= t`
    GreaterOrEqual,
    /// `x > t`
    Greater,
    /// `x == t`
    Equal,
    /// `x != t`
    NotEqual,
}

impl Comparison {
    /// The comparison of `x` that is equivalent to comparing `scale * x + shift` by `self`. The
    /// threshold is not a number if the scale is zero.
    pub(crate) fn before_scaling(self, threshold: f32, scale: f64, shift: f64) -> (Self, f32) {
        if (scale, shift) == (1.0, 0.0) {
            return (self, threshold);
        }
        let threshold = (f64::from(threshold) - shift) / scale;
        let mirrored = match self {
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Less => Self::Greater,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Greater => Self::Less,
            same @ (Self::Equal | Self::NotEqual) => same,
        };
        let threshold = if scale == 0.0 { f32::NAN } else { threshold as f32 };
        (if scale < 0.0 { mirrored } else { self }, threshold)
    }
}

/// One node of a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum TreeNode {
    /// Compares a coordinate and continues at one of two nodes of the same tree.
    Branch {
        /// The coordinate.
        feature: usize,
        /// The comparison.
        comparison: Comparison,
        /// The threshold.
        threshold: f32,
        /// Whether NaN counts as "yes".
        missing: bool,
        /// The next node on "yes".
        yes: usize,
        /// The next node on "no".
        no: usize,
    },
    /// Adds a weight to some of the outputs.
    Leaf {
        /// Output and weight.
        weights: Vec<(usize, f32)>,
    },
}

/// How the trees' weights become one number per output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// Their sum over the number of trees.
    Average,
    /// The least of them, 0 if there is none.
    Minimum,
    /// The largest of them, 0 if there is none.
    Maximum,
}

/// How the outputs become the probability of the favourable class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// The one output is the probability.
    Identity,
    /// `1 / (1 + exp(-z))` of the one output.
    Logistic,
    /// `exp(z_f) / sum_j exp(z_j)`
    Softmax {
        /// The output of the favourable class.
        favourable: usize,
    },
}

/// Many trees; every point falls to one leaf of each.
///
/// `z_o = aggregate over trees of the leaf's weight for o, plus base_o`; the score is a
/// [`Transform`] of them.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeEnsemble {
    dim: usize,
    /// The nodes of all trees; the comparison of a leaf is `None`.
    nodes: Vec<FlatNode>,
    /// Output and weight, leaf by leaf.
    weights: Vec<(u32, f32)>,
    roots: Vec<u32>,
    aggregate: Aggregate,
    base: Vec<f32>,
    transform: Transform,
    substitutes: Vec<Substitute>,
}

/// A column that counts as another number where a column beside it is at least 1/2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Substitute {
    /// The column.
    pub(crate) column: usize,
    /// The column beside it: 1 where the value is missing, else 0.
    pub(crate) indicator: usize,
    /// The number then: NaN, or the one that the model imputes.
    pub(crate) value: f32,
}

/// NaN equals itself, so that an ensemble does.
impl PartialEq for Substitute {
    fn eq(&self, other: &Self) -> bool {
        (self.column, self.indicator) == (other.column, other.indicator)
            && self.value.to_bits() == other.value.to_bits()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct FlatNode {
    question: Option<Comparison>,
    missing: bool,
    feature: u32,
    threshold: f32,
    /// The next node on "yes"; in a leaf, the index of its first weight.
    yes: u32,
    /// The next node on "no"; in a leaf, the index after its last weight.
    no: u32,
}

impl TreeEnsemble {
    /// An ensemble from its trees, whose roots come first; checked, so that scoring always
    /// terminates: every node but the root has exactly one parent.
    pub fn new(
        dim: usize,
        trees: &[Vec<TreeNode>],
        aggregate: Aggregate,
        base: Vec<f32>,
        transform: Transform,
    ) -> Result<Self> {
        let outputs = base.len();
        let fits = match transform {
            Transform::Identity | Transform::Logistic => outputs == 1,
            Transform::Softmax { favourable } => favourable < outputs,
        };
        if dim == 0 || !fits {
            return Err(Error::InvalidModel(format!(
                "a tree ensemble of {dim} features and {outputs} outputs cannot be scored by {transform:?}"
            )));
        }
        if base.iter().any(|b| !b.is_finite()) {
            return Err(Error::InvalidModel("a base value that is not a number".into()));
        }
        let mut ensemble = Self {
            dim,
            nodes: Vec::new(),
            weights: Vec::new(),
            roots: Vec::new(),
            aggregate,
            base,
            transform,
            substitutes: Vec::new(),
        };
        for (index, tree) in trees.iter().enumerate() {
            ensemble
                .push(tree)
                .map_err(|problem| Error::InvalidModel(format!("tree {index}, {problem}")))?;
        }
        Ok(ensemble)
    }

    /// Adds a tree, node by node.
    fn push(&mut self, tree: &[TreeNode]) -> Result<(), String> {
        const TOO_MANY: &str = "there are more than 2^32 nodes or weights";
        let start = u32::try_from(self.nodes.len()).map_err(|_| TOO_MANY)?;
        u32::try_from(self.nodes.len() + tree.len()).map_err(|_| TOO_MANY)?;
        self.roots.push(start);
        let mut has_parent = vec![false; tree.len()];
        *has_parent.first_mut().ok_or("which has no nodes")? = true;
        for (index, node) in tree.iter().enumerate() {
            let flat = match node {
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no } => {
                    if *feature >= self.dim {
                        return Err(format!("node {index}: no feature {feature}"));
                    }
                    if threshold.is_nan() {
                        return Err(format!("node {index}: the threshold is not a number"));
                    }
                    for child in [*yes, *no] {
                        match has_parent.get_mut(child) {
                            None => return Err(format!("node {index}: no node {child}")),
                            Some(true) => {
                                return Err(format!(
                                    "node {child} is reached twice, or is the root"
                                ));
                            }
                            Some(seen) => *seen = true,
                        }
                    }
                    FlatNode {
                        question: Some(*comparison),
                        missing: *missing,
                        feature: *feature as u32,
                        threshold: *threshold,
                        yes: start + *yes as u32,
                        no: start + *no as u32,
                    }
                }
                TreeNode::Leaf { weights } => {
                    let first = self.weights.len();
                    for &(output, weight) in weights {
                        if output >= self.base.len() || !weight.is_finite() {
                            return Err(format!(
                                "node {index}: weight {weight} of output {output}"
                            ));
                        }
                        self.weights.push((output as u32, weight));
                    }
                    FlatNode {
                        question: None,
                        missing: false,
                        feature: 0,
                        threshold: 0.0,
                        yes: u32::try_from(first).map_err(|_| TOO_MANY)?,
                        no: u32::try_from(self.weights.len()).map_err(|_| TOO_MANY)?,
                    }
                }
            };
            self.nodes.push(flat);
        }
        // Each node has one parent and the root has none, so the nodes reachable from the root are
        // a tree. All others are cycles or unconnected.
        let mut reached = vec![start as usize];
        let mut next = 0;
        while let Some(&index) = reached.get(next) {
            next += 1;
            let node = &self.nodes[index];
            if node.question.is_some() {
                reached.extend([node.yes as usize, node.no as usize]);
            }
        }
        if reached.len() != tree.len() {
            return Err(format!(
                "where {} nodes are not connected to the root",
                tree.len() - reached.len()
            ));
        }
        Ok(())
    }

    /// The same with other numbers in place of missing ones.
    pub(crate) fn with_substitutes(mut self, substitutes: &[Substitute]) -> Self {
        self.substitutes = substitutes.to_vec();
        self
    }

    /// The numbers in place of missing ones.
    pub(crate) fn substitutes(&self) -> &[Substitute] {
        &self.substitutes
    }

    /// The trees, as they were given.
    #[must_use]
    pub fn trees(&self) -> Vec<Vec<TreeNode>> {
        let ends = self.roots.iter().skip(1).map(|&r| r as usize).chain([self.nodes.len()]);
        self.roots
            .iter()
            .zip(ends)
            .map(|(&start, end)| {
                let nodes = self.nodes[start as usize..end].iter();
                nodes.map(|node| self.node(node, start)).collect()
            })
            .collect()
    }

    fn node(&self, node: &FlatNode, start: u32) -> TreeNode {
        match node.question {
            Some(comparison) => TreeNode::Branch {
                feature: node.feature as usize,
                comparison,
                threshold: node.threshold,
                missing: node.missing,
                yes: (node.yes - start) as usize,
                no: (node.no - start) as usize,
            },
            None => TreeNode::Leaf {
                weights: self.leaf(node).iter().map(|&(o, w)| (o as usize, w)).collect(),
            },
        }
    }

    fn leaf(&self, node: &FlatNode) -> &[(u32, f32)] {
        &self.weights[node.yes as usize..node.no as usize]
    }

    /// How the trees' weights become one number per output.
    #[must_use]
    pub(crate) fn aggregate(&self) -> Aggregate {
        self.aggregate
    }

    /// The constant added to each output.
    #[must_use]
    pub fn base(&self) -> &[f32] {
        &self.base
    }

    /// How the outputs become a probability.
    #[must_use]
    pub fn transform(&self) -> Transform {
        self.transform
    }

    /// The leaf a point falls to.
    #[inline]
    fn fall(&self, root: u32, point: &[f32]) -> &[(u32, f32)] {
        let mut node = &self.nodes[root as usize];
        while let Some(question) = node.question {
            let x = point[node.feature as usize];
            let t = node.threshold;
            let yes = match question {
                Comparison::LessOrEqual => x <= t,
                Comparison::Less => x < t,
                Comparison::GreaterOrEqual => x >= t,
                Comparison::Greater => x > t,
                Comparison::Equal => x == t,
                Comparison::NotEqual => x != t,
            };
            let yes = if x.is_nan() { node.missing } else { yes };
            node = &self.nodes[if yes { node.yes } else { node.no } as usize];
        }
        self.leaf(node)
    }

    /// The score of one point's outputs.
    fn transformed(&self, outputs: &[f64]) -> f32 {
        match self.transform {
            Transform::Identity => outputs[0] as f32,
            Transform::Logistic => (1.0 / (1.0 + (-outputs[0]).exp())) as f32,
            Transform::Softmax { favourable } => {
                let own = outputs[favourable];
                (1.0 / outputs.iter().map(|z| (z - own).exp()).sum::<f64>()) as f32
            }
        }
    }
}

impl Model for TreeEnsemble {
    fn dim(&self) -> usize {
        self.dim
    }

    fn summary(&self) -> ModelSummary {
        let (trees, nodes) = (self.roots.len(), self.nodes.len());
        ModelSummary::Trees { inputs: self.dim(), trees, nodes }
    }

    fn identity(&self) -> Option<Fingerprint> {
        Some(self.fingerprint())
    }

    fn score_into(&self, points: &Points, scores: &mut [f32]) {
        // A tree stays in the cache while it scores a block of points.
        const BLOCK: usize = 64;
        assert_eq!(points.dim(), self.dim, "points of another dimension");
        assert_eq!(points.len(), scores.len(), "one score per point");
        let k = self.base.len();
        let mut outputs = vec![0.0_f64; BLOCK * k];
        let empty = match self.aggregate {
            Aggregate::Sum | Aggregate::Average => 0.0,
            Aggregate::Minimum => f64::INFINITY,
            Aggregate::Maximum => f64::NEG_INFINITY,
        };
        let mut substituted = Vec::new();
        if !self.substitutes.is_empty() {
            substituted.extend_from_slice(points.as_slice());
            for point in substituted.chunks_exact_mut(self.dim) {
                for &Substitute { column, indicator, value } in &self.substitutes {
                    if point[indicator] >= 0.5 {
                        point[column] = value;
                    }
                }
            }
        }
        let values = if substituted.is_empty() { points.as_slice() } else { &substituted };
        let block_of_values = values.chunks(BLOCK * self.dim);
        for (values, scores) in block_of_values.zip(scores.chunks_mut(BLOCK)) {
            outputs.fill(empty);
            for &root in &self.roots {
                let rows = values.chunks_exact(self.dim).zip(outputs.chunks_exact_mut(k));
                for (point, outputs) in rows {
                    for &(output, weight) in self.fall(root, point) {
                        let sum = &mut outputs[output as usize];
                        let weight = f64::from(weight);
                        *sum = match self.aggregate {
                            Aggregate::Sum | Aggregate::Average => *sum + weight,
                            Aggregate::Minimum => sum.min(weight),
                            Aggregate::Maximum => sum.max(weight),
                        };
                    }
                }
            }
            for (outputs, score) in outputs.chunks_exact_mut(k).zip(scores) {
                for (sum, &base) in outputs.iter_mut().zip(&self.base) {
                    if self.aggregate == Aggregate::Average {
                        *sum /= self.roots.len().max(1) as f64;
                    }
                    *sum = if sum.is_finite() { *sum } else { 0.0 } + f64::from(base);
                }
                *score = self.transformed(outputs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(feature: usize, comparison: Comparison, threshold: f32) -> TreeNode {
        TreeNode::Branch { feature, comparison, threshold, missing: false, yes: 1, no: 2 }
    }

    fn leaf(weight: f32) -> TreeNode {
        TreeNode::Leaf { weights: vec![(0, weight)] }
    }

    fn stump(comparison: Comparison, missing: bool) -> TreeEnsemble {
        let root =
            TreeNode::Branch { feature: 0, comparison, threshold: 1.0, missing, yes: 1, no: 2 };
        let trees = [vec![root, leaf(1.0), leaf(0.0)]];
        TreeEnsemble::new(1, &trees, Aggregate::Sum, vec![0.0], Transform::Identity).unwrap()
    }

    #[test]
    fn every_comparison_and_the_missing_track() {
        use Comparison as C;
        // yes at 0, at the threshold 1, at 2
        for (comparison, yes) in [
            (C::LessOrEqual, [1.0, 1.0, 0.0]),
            (C::Less, [1.0, 0.0, 0.0]),
            (C::GreaterOrEqual, [0.0, 1.0, 1.0]),
            (C::Greater, [0.0, 0.0, 1.0]),
            (C::Equal, [0.0, 1.0, 0.0]),
            (C::NotEqual, [1.0, 0.0, 1.0]),
        ] {
            for missing in [false, true] {
                let points = Points::from_rows(1, vec![0.0, 1.0, 2.0, f32::NAN]).unwrap();
                let scores = stump(comparison, missing).score(&points);
                assert_eq!(scores[..3], yes, "{comparison:?}");
                assert_eq!(scores[3], f32::from(u8::from(missing)), "{comparison:?}");
            }
        }
    }

    #[test]
    fn a_question_can_be_asked_before_scaling() {
        use Comparison as C;
        let all = [C::LessOrEqual, C::Less, C::GreaterOrEqual, C::Greater, C::Equal, C::NotEqual];
        for comparison in all {
            for (scale, shift) in [(1.0, 0.0), (2.0, 3.0), (-0.5, 1.0)] {
                let (asked, threshold) = comparison.before_scaling(1.0, scale, shift);
                let root = |comparison, threshold| {
                    let trees = [vec![branch(0, comparison, threshold), leaf(1.0), leaf(0.0)]];
                    TreeEnsemble::new(1, &trees, Aggregate::Sum, vec![0.0], Transform::Identity)
                        .unwrap()
                };
                // Exact in binary, and among them the very threshold.
                for x in [-4.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0] {
                    let scaled = (scale * f64::from(x) + shift) as f32;
                    let before = Points::from_rows(1, vec![x]).unwrap();
                    let after = Points::from_rows(1, vec![scaled]).unwrap();
                    assert_eq!(
                        root(asked, threshold).score(&before),
                        root(comparison, 1.0).score(&after)
                    );
                }
            }
        }
        assert!(C::Less.before_scaling(1.0, 0.0, 0.0).1.is_nan());
    }

    #[test]
    fn aggregates_and_transforms() {
        let trees = [vec![leaf(1.0)], vec![leaf(2.0)], vec![leaf(6.0)]];
        let score = |aggregate, base, transform| {
            let ensemble = TreeEnsemble::new(1, &trees, aggregate, base, transform).unwrap();
            ensemble.score(&Points::zeros(1, 1))[0]
        };
        let plain = Transform::Identity;
        assert_eq!(score(Aggregate::Sum, vec![0.5], plain), 9.5);
        assert_eq!(score(Aggregate::Average, vec![0.5], plain), 3.5);
        assert_eq!(score(Aggregate::Minimum, vec![0.5], plain), 1.5);
        assert_eq!(score(Aggregate::Maximum, vec![0.5], plain), 6.5);
        assert_eq!(score(Aggregate::Sum, vec![-9.0], Transform::Logistic), 0.5);
        let softmax = |favourable| Transform::Softmax { favourable };
        assert_eq!(score(Aggregate::Sum, vec![-9.0, 0.0], softmax(1)), 0.5);
        // No tree has a weight for output 1.
        let rare = score(Aggregate::Maximum, vec![0.0, 0.0], softmax(1));
        assert!((rare - 1.0 / (1.0 + 6_f32.exp())).abs() < 1e-7);
    }

    #[test]
    fn blocks_do_not_change_scores() {
        let trees: Vec<_> = (0..7)
            .map(|i| {
                let threshold = i as f32 - 3.0;
                vec![branch(i % 2, Comparison::Less, threshold), leaf(0.1), leaf(0.05)]
            })
            .collect();
        let ensemble =
            TreeEnsemble::new(2, &trees, Aggregate::Sum, vec![0.0], Transform::Identity).unwrap();
        let rows: Vec<f32> = (0..400).map(|i| (i * 37 % 11) as f32 - 5.0).collect();
        let points = Points::from_rows(2, rows).unwrap();
        let together = ensemble.score(&points);
        for (index, row) in points.rows().enumerate() {
            let alone = ensemble.score(&Points::from_rows(2, row.to_vec()).unwrap());
            assert_eq!(alone[0], together[index]);
        }
        assert_eq!(ensemble.trees(), trees);
    }

    #[test]
    fn what_would_not_end_is_refused() {
        let to = |yes, no| TreeNode::Branch {
            feature: 0,
            comparison: Comparison::Less,
            threshold: 0.0,
            missing: false,
            yes,
            no,
        };
        for (tree, problem) in [
            (vec![], "tree 0, which has no nodes"),
            (vec![to(0, 1), leaf(0.0)], "node 0 is reached twice, or is the root"),
            (vec![to(1, 1), leaf(0.0)], "node 1 is reached twice"),
            (vec![to(1, 2), to(1, 3), leaf(0.0), leaf(0.0)], "node 1 is reached twice"),
            (vec![to(1, 9), leaf(0.0)], "no node 9"),
            (vec![leaf(0.0), leaf(0.0)], "where 1 nodes are not connected to the root"),
            (vec![leaf(0.0), to(1, 2), leaf(0.0)], "where 2 nodes are not connected to the root"),
            (vec![branch(5, Comparison::Less, 0.0), leaf(0.0), leaf(0.0)], "no feature 5"),
            (vec![branch(0, Comparison::Less, f32::NAN), leaf(0.0), leaf(0.0)], "threshold"),
            (vec![leaf(f32::INFINITY)], "weight inf of output 0"),
            (vec![TreeNode::Leaf { weights: vec![(3, 1.0)] }], "weight 1 of output 3"),
        ] {
            let found =
                TreeEnsemble::new(1, &[tree], Aggregate::Sum, vec![0.0], Transform::Logistic);
            let message = found.unwrap_err().to_string();
            assert!(message.contains(problem), "{message}");
        }
        let made =
            |dim, base, transform| TreeEnsemble::new(dim, &[], Aggregate::Sum, base, transform);
        assert!(made(0, vec![0.0], Transform::Logistic).is_err());
        assert!(made(1, vec![0.0, 0.0], Transform::Logistic).is_err());
        assert!(made(1, vec![f32::NAN], Transform::Logistic).is_err());
        assert!(made(1, vec![0.0], Transform::Softmax { favourable: 1 }).is_err());
    }
}
