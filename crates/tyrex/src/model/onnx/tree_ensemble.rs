//! The operator `TreeEnsemble` of ai.onnx.ml 5.
//!
//! `z_o = aggregate over trees of the leaf's weight for o`. Its nodes and its
//! leaves are in separate lists; a leaf may be referred to by several nodes, and a tree of a leaf only
//! is a node both of whose branches lead there.

use super::classic::{ensemble, questions};
use super::graph::{Call, Element, Ensemble, Graph, Value};
use super::operators::one;
use super::tensor::{External, Tensor};
use crate::model::trees::{Aggregate, Comparison, TreeNode};

/// The most outputs.
const MOST_TARGETS: i64 = 100_000;

pub(super) fn tree_ensemble(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let inputs = questions(call)?;
    let targets = call.integer("n_targets", 1);
    if !(1..=MOST_TARGETS).contains(&targets) {
        return Err(format!("{targets} targets, expected 1 to {MOST_TARGETS}"));
    }
    let aggregate = match call.integer("aggregate_function", 1) {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Minimum,
        3 => Aggregate::Maximum,
        other => return Err(format!("aggregate_function {other}, expected 0 to 3")),
    };
    // The specification has 1 for the softmax and 2 for the sigmoid; onnxruntime 1.31 has it
    // the other way round, and leaves out both for one target.
    let transform = call.integer("post_transform", 0);
    if transform != 0 {
        return Err(format!(
            "post_transform {transform}, which runtimes read differently, expected 0 (NONE), and a \
             Sigmoid or a Softmax after it"
        ));
    }
    let lists = Lists::read(graph, call, targets as usize)?;
    let roots = call.integers("tree_roots");
    graph.budget.take(roots.len(), 96)?;
    let mut left = lists.features.len();
    let trees = roots.iter().map(|&root| lists.tree(root, &mut left)).collect::<Result<_, _>>()?;
    let base = vec![0.0; targets as usize];
    let scores = ensemble(graph, Ensemble { inputs, trees, aggregate, base });
    one(graph.columns(scores, 2, Element::Real)?)
}

/// The attributes of the nodes and of the leaves.
struct Lists<'a> {
    features: &'a [i64],
    modes: Vec<i64>,
    splits: Vec<f64>,
    missing: &'a [i64],
    yes: &'a [i64],
    no: &'a [i64],
    yes_is_leaf: &'a [i64],
    no_is_leaf: &'a [i64],
    /// The output and the weight of each leaf.
    leaves: Vec<(usize, f32)>,
}

impl<'a> Lists<'a> {
    fn read(graph: &mut Graph, call: &'a Call, targets: usize) -> Result<Self, String> {
        let features = call.integers("nodes_featureids");
        let count = features.len();
        let modes = tensor(graph, call, "nodes_modes")?;
        let modes: Vec<i64> = modes.iter().map(|&mode| mode as i64).collect();
        let splits = tensor(graph, call, "nodes_splits")?;
        let missing = call.integers("nodes_missing_value_tracks_true");
        let [yes, no, yes_is_leaf, no_is_leaf] =
            ["truenodeids", "falsenodeids", "trueleafs", "falseleafs"]
                .map(|name| call.integers(&format!("nodes_{name}")));
        let lengths =
            [yes.len(), no.len(), yes_is_leaf.len(), no_is_leaf.len(), modes.len(), splits.len()];
        if lengths.iter().any(|&length| length != count)
            || !(missing.is_empty() || missing.len() == count)
        {
            return Err("the `nodes_` lists have different lengths".into());
        }
        graph.budget.take(count, 256)?;
        let ids = call.integers("leaf_targetids");
        let weights = tensor(graph, call, "leaf_weights")?;
        if ids.len() != weights.len() {
            return Err("the `leaf_` lists have different lengths".into());
        }
        graph.budget.take(ids.len(), 96)?;
        let leaf = |(&id, &weight): (&i64, &f64)| {
            let target = usize::try_from(id).ok().filter(|&id| id < targets);
            let target =
                target.ok_or_else(|| format!("`leaf_targetids` has {id} of {targets} targets"))?;
            Ok((target, weight as f32))
        };
        let leaves = ids.iter().zip(&weights).map(leaf).collect::<Result<_, String>>()?;
        Ok(Self { features, modes, splits, missing, yes, no, yes_is_leaf, no_is_leaf, leaves })
    }

    /// The tree below a root. No node may be in two trees, so at most `left` more are used.
    fn tree(&self, root: i64, left: &mut usize) -> Result<Vec<TreeNode>, String> {
        let mut tree = Vec::new();
        // Where each node comes from: its number, and whether it is a leaf.
        let mut sources = vec![(root, false)];
        while let Some(&(number, is_leaf)) = sources.get(tree.len()) {
            let place = usize::try_from(number).unwrap_or(usize::MAX);
            if is_leaf {
                let leaf = self.leaves.get(place).ok_or_else(|| format!("no leaf {number}"))?;
                tree.push(TreeNode::Leaf { weights: vec![*leaf] });
                continue;
            }
            *left = left.checked_sub(1).ok_or("a node that is reached twice")?;
            let feature = *self.features.get(place).ok_or_else(|| format!("no node {number}"))?;
            let feature = usize::try_from(feature).map_err(|_| format!("feature {feature}"))?;
            let missing = self.missing.get(place).is_some_and(|&own| own != 0);
            let (yes, no) = (sources.len(), sources.len() + 1);
            sources.push((self.yes[place], self.yes_is_leaf[place] != 0));
            sources.push((self.no[place], self.no_is_leaf[place] != 0));
            let comparison = match self.modes[place] {
                0 => Comparison::LessOrEqual,
                other => {
                    return Err(format!("mode {other} of node {number}, expected 0 (BRANCH_LEQ)"));
                }
            };
            let threshold = self.splits[place] as f32;
            tree.push(TreeNode::Branch { feature, comparison, threshold, missing, yes, no });
        }
        Ok(tree)
    }
}

/// The numbers of a tensor, none where it is absent.
fn tensor(graph: &mut Graph, call: &Call, name: &str) -> Result<Vec<f64>, String> {
    let Some(proto) = call.attribute(name).and_then(|attribute| attribute.t.as_ref()) else {
        return Ok(Vec::new());
    };
    let tensor = Tensor::decode(proto, &mut External::new(None), &mut graph.budget)?;
    tensor.reals().ok_or_else(|| format!("`{name}` must be numbers"))
}
