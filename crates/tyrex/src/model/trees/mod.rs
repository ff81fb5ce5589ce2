//! Tree ensembles: random forests and boosted trees.
//!
//! A score is constant within the cells between thresholds ([`Thresholds`]), so it has no
//! gradient; its mean over a neighbourhood has one ([`SmoothedTrees`]).

mod layout;
mod moved;
mod score;
mod smooth;
mod thresholds;
mod votes;

pub use smooth::SmoothedTrees;
pub use thresholds::{Cells, Thresholds};
pub(crate) use votes::Voters;

use std::sync::Arc;

use self::layout::Layout;
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
    /// Asks whether a coordinate is one of a set of numbers, and continues at one of two nodes of
    /// the same tree.
    Member {
        /// The coordinate.
        feature: usize,
        /// The set.
        values: Vec<f32>,
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

impl TreeNode {
    /// The coordinate that a branch asks about.
    pub(crate) fn feature_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Branch { feature, .. } | Self::Member { feature, .. } => Some(feature),
            Self::Leaf { .. } => None,
        }
    }

    /// The next nodes of a branch, on "yes" and on "no".
    pub(crate) fn children(&self) -> Option<[usize; 2]> {
        match *self {
            Self::Branch { yes, no, .. } | Self::Member { yes, no, .. } => Some([yes, no]),
            Self::Leaf { .. } => None,
        }
    }

    /// The next nodes of a branch, mutable.
    pub(crate) fn children_mut(&mut self) -> Option<[&mut usize; 2]> {
        match self {
            Self::Branch { yes, no, .. } | Self::Member { yes, no, .. } => Some([yes, no]),
            Self::Leaf { .. } => None,
        }
    }

    /// Changes the question about `scale * x + shift` to the equivalent one about `x`.
    pub(crate) fn ask_before_scaling(&mut self, scale: f64, shift: f64) {
        match self {
            Self::Branch { comparison, threshold, .. } => {
                (*comparison, *threshold) = comparison.before_scaling(*threshold, scale, shift);
            }
            Self::Member { values, .. } => {
                for value in values {
                    *value = Comparison::Equal.before_scaling(*value, scale, shift).1;
                }
            }
            Self::Leaf { .. } => {}
        }
    }
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
#[derive(Debug, Clone)]
pub struct TreeEnsemble {
    dim: usize,
    /// The nodes of all trees.
    nodes: Vec<FlatNode>,
    /// The sets of all nodes, each sorted and without repetition.
    sets: Vec<Vec<f32>>,
    /// Output and weight, leaf by leaf.
    weights: Vec<(u32, f32)>,
    roots: Vec<u32>,
    aggregate: Aggregate,
    base: Vec<f32>,
    transform: Transform,
    substitutes: Vec<Substitute>,
    /// The nodes once more, made for scoring.
    layout: Arc<Layout>,
}

/// The layout follows from the nodes, and its padding may be NaN.
impl PartialEq for TreeEnsemble {
    fn eq(&self, other: &Self) -> bool {
        let parts = |own: &Self| (own.dim, own.aggregate, own.transform);
        parts(self) == parts(other)
            && self.nodes == other.nodes
            && self.sets == other.sets
            && self.weights == other.weights
            && self.roots == other.roots
            && self.base == other.base
            && self.substitutes == other.substitutes
    }
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

/// The condition of a node on its coordinate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Question {
    Compare(Comparison, f32),
    /// The index of the set.
    Member(u32),
    /// Nothing: a leaf.
    Leaf,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct FlatNode {
    question: Question,
    missing: bool,
    feature: u32,
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
            return Err(Error::InvalidModel(
                "a base value that is not a finite number of 32 bits".into(),
            ));
        }
        let mut ensemble = Self {
            dim,
            nodes: Vec::new(),
            sets: Vec::new(),
            weights: Vec::new(),
            roots: Vec::new(),
            aggregate,
            base,
            transform,
            substitutes: Vec::new(),
            layout: Arc::default(),
        };
        for (index, tree) in trees.iter().enumerate() {
            ensemble
                .push(tree)
                .map_err(|problem| Error::InvalidModel(format!("tree {index}, {problem}")))?;
        }
        ensemble.layout = Arc::new(Layout::new(&ensemble));
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
            let of_node = |problem: String| format!("node {index}: {problem}");
            for child in node.children().into_iter().flatten() {
                match has_parent.get_mut(child) {
                    None => return Err(of_node(format!("no node {child}"))),
                    Some(true) => {
                        return Err(format!("node {child} is reached twice, or is the root"));
                    }
                    Some(seen) => *seen = true,
                }
            }
            let flat = match node {
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no } => {
                    if threshold.is_nan() {
                        return Err(of_node("the threshold is not a number".into()));
                    }
                    let question = Question::Compare(*comparison, *threshold);
                    self.branch(*feature, question, *missing, [start, *yes as u32, *no as u32])
                }
                TreeNode::Member { feature, values, missing, yes, no } => {
                    let set = u32::try_from(self.sets.len()).map_err(|_| TOO_MANY)?;
                    self.sets.push(sorted_set(values).map_err(of_node)?);
                    let question = Question::Member(set);
                    self.branch(*feature, question, *missing, [start, *yes as u32, *no as u32])
                }
                TreeNode::Leaf { weights } => {
                    let first = self.weights.len();
                    for &(output, weight) in weights {
                        if output >= self.base.len() || !weight.is_finite() {
                            return Err(of_node(format!(
                                "weight {weight} of output {output}, expected a finite number of 32 \
                                 bits and one of {} outputs",
                                self.base.len()
                            )));
                        }
                        self.weights.push((output as u32, weight));
                    }
                    Ok(FlatNode {
                        question: Question::Leaf,
                        missing: false,
                        feature: 0,
                        yes: u32::try_from(first).map_err(|_| TOO_MANY)?,
                        no: u32::try_from(self.weights.len()).map_err(|_| TOO_MANY)?,
                    })
                }
            };
            self.nodes.push(flat.map_err(of_node)?);
        }
        // Each node has one parent and the root has none, so the nodes reachable from the root are
        // a tree. All others are cycles or unconnected.
        let mut reached = vec![start as usize];
        let mut next = 0;
        while let Some(&index) = reached.get(next) {
            next += 1;
            let node = &self.nodes[index];
            if node.question != Question::Leaf {
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

    /// A node with a question; `[start, yes, no]` are the tree's first node and the next ones in
    /// the tree.
    fn branch(
        &self,
        feature: usize,
        question: Question,
        missing: bool,
        [start, yes, no]: [u32; 3],
    ) -> Result<FlatNode, String> {
        if feature >= self.dim {
            return Err(format!("no feature {feature}"));
        }
        let feature = u32::try_from(feature).map_err(|_| format!("no feature {feature}"))?;
        Ok(FlatNode { question, missing, feature, yes: start + yes, no: start + no })
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

    /// The trees, as they were given; the sets of nodes are sorted.
    pub(crate) fn as_given(&self) -> Vec<Vec<TreeNode>> {
        self.by_tree()
            .map(|(start, nodes)| nodes.iter().map(|node| self.node(node, start)).collect())
            .collect()
    }

    /// The nodes of each tree, its root first, and the index of the root.
    fn by_tree(&self) -> impl Iterator<Item = (u32, &[FlatNode])> {
        let ends = self.roots.iter().skip(1).map(|&r| r as usize).chain([self.nodes.len()]);
        self.roots.iter().zip(ends).map(|(&start, end)| (start, &self.nodes[start as usize..end]))
    }

    fn node(&self, node: &FlatNode, start: u32) -> TreeNode {
        let feature = node.feature as usize;
        let missing = node.missing;
        let child = |child: u32| (child - start) as usize;
        match node.question {
            Question::Compare(comparison, threshold) => TreeNode::Branch {
                feature,
                comparison,
                threshold,
                missing,
                yes: child(node.yes),
                no: child(node.no),
            },
            Question::Member(set) => TreeNode::Member {
                feature,
                values: self.sets[set as usize].clone(),
                missing,
                yes: child(node.yes),
                no: child(node.no),
            },
            Question::Leaf => TreeNode::Leaf {
                weights: self.leaf(node).iter().map(|&(o, w)| (o as usize, w)).collect(),
            },
        }
    }

    fn leaf(&self, node: &FlatNode) -> &[(u32, f32)] {
        &self.weights[node.yes as usize..node.no as usize]
    }

    /// How the trees' weights become one number per output.
    pub(crate) fn aggregate(&self) -> Aggregate {
        self.aggregate
    }

    /// The constant added to each output.
    pub(crate) fn base(&self) -> &[f32] {
        &self.base
    }

    /// How the outputs become a probability.
    pub(crate) fn transform(&self) -> Transform {
        self.transform
    }

    /// The number of trees.
    pub fn count(&self) -> usize {
        self.roots.len()
    }
}

/// A set in order, without repetition.
fn sorted_set(values: &[f32]) -> Result<Vec<f32>, String> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return Err("a set that is empty or has a value that is not a number".into());
    }
    // -0 and 0 are one number.
    let mut set: Vec<f32> = values.iter().map(|value| value + 0.0).collect();
    set.sort_by(f32::total_cmp);
    set.dedup();
    Ok(set)
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
        self.each(points, scores, |outputs| self.transformed(outputs));
    }

    fn trees(&self) -> Option<&TreeEnsemble> {
        Some(self)
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
        assert_eq!(ensemble.as_given(), trees);
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
