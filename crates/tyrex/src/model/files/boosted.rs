//! Trees of another package on their way to a [`ModelFile`].
//!
//! `z_o = aggregate over trees of the leaf's weight for o, plus base_o`; the probability of the
//! favourable class is a [`Link`] of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    Category, Core, ImportOptions, InputBlock, InputColumn, InputKind, Inputs, ModelFile,
    choose_class,
};
use crate::model::TreeEnsemble;
use crate::model::trees::{Aggregate, Comparison, Transform, TreeNode};

/// The most columns of a model.
pub(super) const COLUMNS: usize = 100_000;
/// The most trees of a model.
pub(super) const TREES: usize = 1_000_000;
/// The most nodes of a model, and weights of its leaves.
pub(super) const NODES: usize = 1 << 23;

/// How outputs become probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// One output; `1 / (1 + exp(-z))` is the probability of the second class of two.
    Logistic,
    /// `exp(z_f) / sum_j exp(z_j)`
    Softmax,
    /// `1 / (1 + exp(-z_f))`
    EachLogistic,
}

/// The contents of a file.
#[derive(Debug)]
pub(super) struct Boosted {
    /// The objective, in the words of the file.
    pub(super) objective: String,
    /// The names of the columns, where the file has them.
    pub(super) names: Option<Vec<String>>,
    /// The categories of each column that is not a number: their places are the column's codes.
    pub(super) categories: Vec<Option<Vec<Category>>>,
    pub(super) trees: Vec<Vec<TreeNode>>,
    pub(super) aggregate: Aggregate,
    /// One number per output.
    pub(super) base: Vec<f64>,
    pub(super) link: Link,
    /// Whether the file states the link; otherwise the user has to.
    pub(super) has_link: bool,
    /// The names of the classes.
    pub(super) labels: Option<Vec<String>>,
}

impl Boosted {
    /// The model for the chosen class.
    pub(super) fn model(self, options: &ImportOptions) -> Result<ModelFile, String> {
        let Self { objective, names, categories, mut trees, aggregate, base, .. } = self;
        if let Some(output) = &options.output {
            return Err(format!(
                "output `{output}` was asked for, but only ONNX files have outputs with names"
            ));
        }
        if trees.is_empty() {
            return Err("there are no trees, so every row has the same score".to_owned());
        }
        match (self.has_link, options.logits) {
            (true, true) => {
                return Err(format!(
                    "its scores were called logits, but the file says itself how they become \
                     probabilities (`{objective}`); leave that out"
                ));
            }
            (false, false) => {
                return Err(
                    "the file has no objective, so its scores are raw; say that they are logits if \
                     they are"
                        .to_owned(),
                );
            }
            _ => {}
        }
        if let Some(twice) = names.as_deref().and_then(repeated) {
            return Err(format!("two columns have the name `{twice}`, expected different names"));
        }
        let classes = base.len().max(2);
        let labels = self.labels.filter(|labels| labels.len() == classes);
        let named = labels.as_deref().unwrap_or_default();
        let favourable = choose_class(named, classes, options.favourable.as_ref())?;
        let (base, transform) = match self.link {
            Link::Softmax => (base, Transform::Softmax { favourable }),
            Link::Logistic if favourable == 1 => (base, Transform::Logistic),
            // One minus the sigmoid is the sigmoid of minus the logit.
            Link::Logistic => {
                for weight in trees.iter_mut().flatten().flat_map(weights) {
                    weight.1 = -weight.1;
                }
                (base.iter().map(|base| -base).collect(), Transform::Logistic)
            }
            Link::EachLogistic => {
                for node in trees.iter_mut().flatten() {
                    if let TreeNode::Leaf { weights } = node {
                        weights.retain(|&(output, _)| output == favourable);
                        weights.iter_mut().for_each(|weight| weight.0 = 0);
                    }
                }
                // Trees of other classes have no weights any more.
                trees.retain(|tree| tree.iter().any(has_weights));
                (vec![base[favourable]], Transform::Logistic)
            }
        };
        let base = base.iter().map(|&base| base as f32).collect();
        let core = TreeEnsemble::new(categories.len(), &trees, aggregate, base, transform)
            .map_err(|error| error.to_string())?;
        Ok(ModelFile {
            inputs: inputs(names, &categories),
            preprocessing: categories.into_iter().enumerate().map(block).collect(),
            core: Core::Trees(core),
            output: objective,
            classes,
            favourable,
            labels,
            metadata: std::collections::BTreeMap::new(),
        })
    }
}

/// A name that occurs twice.
fn repeated(names: &[String]) -> Option<&String> {
    let mut known = BTreeSet::new();
    names.iter().find(|name| !known.insert(name.as_str()))
}

/// The weights of a leaf.
fn weights(node: &mut TreeNode) -> &mut [(usize, f32)] {
    match node {
        TreeNode::Leaf { weights } => weights,
        _ => &mut [],
    }
}

fn has_weights(node: &TreeNode) -> bool {
    matches!(node, TreeNode::Leaf { weights } if !weights.is_empty())
}

fn inputs(names: Option<Vec<String>>, categories: &[Option<Vec<Category>>]) -> Inputs {
    let coded = categories.iter().any(Option::is_some);
    let names = match names {
        Some(names) => names,
        None if coded => (0..categories.len()).map(|column| column.to_string()).collect(),
        None => return Inputs::Matrix { columns: categories.len() },
    };
    let column = |(name, categories): (String, &Option<Vec<Category>>)| {
        let texts = |categories: &Vec<Category>| {
            categories.iter().any(|category| matches!(category, Category::Text(_)))
        };
        let kind = match categories {
            Some(categories) if texts(categories) => InputKind::Text,
            Some(_) => InputKind::Integer,
            None => InputKind::Number,
        };
        InputColumn { name, kind }
    };
    Inputs::Columns(names.into_iter().zip(categories).map(column).collect())
}

fn block((column, categories): (usize, Option<Vec<Category>>)) -> InputBlock {
    match categories {
        Some(categories) => InputBlock::Code { column, categories },
        None => InputBlock::Number { column, missing: None, scale: 1.0, shift: 0.0 },
    }
}

/// Categories from JSON: texts or whole numbers.
pub(super) fn category(value: &serde_json::Value) -> Result<Category, String> {
    match value {
        serde_json::Value::String(text) => Ok(Category::Text(Arc::from(text.as_str()))),
        serde_json::Value::Bool(flag) => Ok(Category::Text(Arc::from(flag.to_string()))),
        number => number
            .as_f64()
            .filter(|number| number.fract() == 0.0 && number.abs() < 2.0_f64.powi(53))
            .map(|number| Category::Integer(number as i64))
            .ok_or_else(|| format!("the category {number}, expected a text or a whole number")),
    }
}

/// A node of a tree in another layout, whose nodes have keys of the type `K`.
#[derive(Debug)]
pub(super) enum Part<K> {
    Leaf(Vec<(usize, f32)>),
    Branch { feature: usize, comparison: Comparison, threshold: f32, missing: bool, yes: K, no: K },
    Member { feature: usize, values: Vec<f32>, missing: bool, yes: K, no: K },
}

/// The nodes below a root, at most `most` of them and of those that are `left` for the model.
///
/// A node that is reached twice is there twice, so that a cycle ends at the limit.
pub(super) fn grown<K: Copy>(
    root: K,
    most: usize,
    left: &mut usize,
    part: impl Fn(K) -> Result<Part<K>, String>,
) -> Result<Vec<TreeNode>, String> {
    let mut keys = vec![root];
    let mut tree = Vec::new();
    while let Some(&key) = keys.get(tree.len()) {
        if keys.len() > most {
            return Err(format!("more than {most} nodes below its root: a cycle, or too many"));
        }
        let part = part(key)?;
        let size = if let Part::Leaf(weights) = &part { weights.len().max(1) } else { 1 };
        *left = left
            .checked_sub(size)
            .ok_or_else(|| format!("the model is too large: more than {NODES} nodes"))?;
        let (next, after) = (keys.len(), keys.len() + 1);
        tree.push(match part {
            Part::Leaf(weights) => TreeNode::Leaf { weights },
            Part::Branch { feature, comparison, threshold, missing, yes, no } => {
                keys.extend([yes, no]);
                let (yes, no) = (next, after);
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no }
            }
            Part::Member { feature, values, missing, yes, no } => {
                keys.extend([yes, no]);
                let (yes, no) = (next, after);
                TreeNode::Member { feature, values, missing, yes, no }
            }
        });
    }
    Ok(tree)
}
