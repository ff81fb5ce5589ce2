//! The operators of `ai.onnx.ml`: encoders, linear classifiers, tree ensembles.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::expression::{Atom, Expression, Function, Variable};
use super::graph::{Call, Element, Ensemble, Graph, Matrix, Value};
use super::operators::{Operator, one};
use super::plumbing::{concat, select};
use super::tensor::{Data, External, Tensor};
use super::tree_ensemble::tree_ensemble;
use crate::model::Activation;
use crate::model::files::Category;
use crate::model::trees::{Aggregate, Comparison, TreeNode};

const OPERATORS: &[(&str, Operator)] = &[
    ("ArrayFeatureExtractor", array_feature_extractor),
    ("FeatureVectorizer", |graph, call| concat(graph, call, -1)),
    ("Imputer", imputer),
    // Over labels only; those never reach this table.
    (
        "LabelEncoder",
        |_, _| Err("a label encoder of a value other than the predicted class".into()),
    ),
    ("LinearClassifier", linear_classifier),
    ("Normalizer", normalizer),
    ("OneHotEncoder", one_hot_encoder),
    ("Scaler", scaler),
    ("TreeEnsemble", tree_ensemble),
    ("TreeEnsembleClassifier", tree_classifier),
    ("TreeEnsembleRegressor", tree_regressor),
    ("ZipMap", zip_map),
];

/// The operator of this name.
pub(super) fn find(name: &str) -> Option<Operator> {
    OPERATORS.iter().find(|(own, _)| *own == name).map(|(_, run)| *run)
}

/// The names of the operators.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name)
}

/// The names of the classes, from a constant that lists them.
pub(super) fn label_names(tensor: &Tensor) -> Vec<String> {
    match &tensor.data {
        Data::Reals(values) => values.iter().map(ToString::to_string).collect(),
        Data::Integers(values) => values.iter().map(ToString::to_string).collect(),
        Data::Texts(values) => values.iter().map(ToString::to_string).collect(),
    }
}

/// The classes a node names.
fn classes(call: &Call, whole: &str) -> Vec<String> {
    let texts = call.texts("classlabels_strings");
    if texts.is_empty() {
        call.integers(whole).iter().map(ToString::to_string).collect()
    } else {
        texts
    }
}

/// Real numbers from an attribute, or from the tensor that newer versions allow in its place.
fn reals(graph: &mut Graph, call: &Call, name: &str) -> Result<Vec<f64>, String> {
    if let Some(attribute) = call.attribute(name) {
        graph.budget.take(attribute.floats.len(), 8)?;
        return Ok(attribute.floats.iter().map(|&v| f64::from(v)).collect());
    }
    match call.attribute(&format!("{name}_as_tensor")).and_then(|a| a.t.as_ref()) {
        None => Ok(Vec::new()),
        Some(proto) => {
            let tensor = Tensor::decode(proto, &mut External::new(None), &mut graph.budget)?;
            tensor.reals().ok_or_else(|| format!("`{name}` must be numbers"))
        }
    }
}

// --------------------------------------------------------------------------------- encoders

fn array_feature_extractor(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let indices = call.constant(1)?.integers().ok_or("indices that are not whole numbers")?;
    select(graph, matrix, indices, matrix.rank.max(2))
}

/// `(x - offset) * scale`
fn scaler(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let (offset, scale) = (reals(graph, call, "offset")?, reals(graph, call, "scale")?);
    let width = matrix.columns.len();
    let fits = |n: usize| n == 1 || n == width;
    if !fits(offset.len()) || !fits(scale.len()) || matrix.element == Element::Text {
        return Err(format!(
            "{} offsets and {} scales for {width} columns",
            offset.len(),
            scale.len()
        ));
    }
    let at = |values: &[f64], i: usize| if values.len() == 1 { values[0] } else { values[i] };
    let columns = matrix.columns.iter().enumerate().map(|(i, column)| {
        let (offset, scale) = (at(&offset, i), at(&scale, i));
        column.affine(scale, -offset * scale)
    });
    one(graph.columns(columns.collect(), matrix.rank, Element::Real)?)
}

fn imputer(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let replacements = reals(graph, call, "imputed_value_floats")?;
    let width = matrix.columns.len();
    if !call.real("replaced_value_float", 0.0).is_nan() || matrix.element != Element::Real {
        return Err("only a missing value (NaN) can be replaced".into());
    }
    if replacements.len() != 1 && replacements.len() != width {
        return Err(format!("{} replacements for {width} columns", replacements.len()));
    }
    let columns: Option<Vec<Expression>> = matrix
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let value = if replacements.len() == 1 { replacements[0] } else { replacements[i] };
            Rc::new(column.bare_input()?.clone()).apply(Function::Impute(value))
        })
        .collect();
    let columns = columns.ok_or("only raw columns can be imputed")?;
    one(graph.columns(columns, matrix.rank, Element::Real)?)
}

fn one_hot_encoder(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let [column] = matrix.columns.as_slice() else {
        return Err(format!("{} columns at once, expected one", matrix.columns.len()));
    };
    let column = column.bare_input().ok_or("only a raw column can be one-hot encoded")?;
    let texts = call.texts("cats_strings").into_iter().map(|t| Category::Text(t.into()));
    let whole = call.integers("cats_int64s").iter().map(|&c| Category::Integer(c));
    let categories: Vec<Category> = match matrix.element {
        Element::Text => texts.collect(),
        Element::Real | Element::Integer => whole.collect(),
    };
    if categories.is_empty() {
        return Err(format!("no categories for a column of type {:?}", matrix.element));
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = categories.iter().find(|c| !seen.insert(*c)) {
        return Err(format!("category {twice} is listed twice"));
    }
    graph.budget.take(categories.len(), 256)?;
    let column = Rc::new(column.clone());
    let columns: Option<Vec<_>> =
        categories.into_iter().map(|c| column.apply(Function::Equals(c))).collect();
    let columns = columns.ok_or("too many categories")?;
    one(graph.columns(columns, matrix.rank + 1, Element::Real)?)
}

// ------------------------------------------------------------------------------ classifiers

fn zip_map(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    learn_labels(graph, classes(call, "classlabels_int64s"), matrix.columns.len())?;
    one(call.input(0)?.clone())
}

fn learn_labels(graph: &mut Graph, labels: Vec<String>, columns: usize) -> Result<(), String> {
    if labels.len() != columns {
        return Err(format!("{} labels for {columns} scores", labels.len()));
    }
    graph.labels = Some(labels);
    Ok(())
}

/// Scores that already sum to one stay as they are.
fn normalizer(_: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let norm = call.text("norm", "MAX");
    if norm == "L1" && sums_to_one(matrix) {
        return one(call.input(0)?.clone());
    }
    Err(format!("norm `{norm}` of values that are not class probabilities"))
}

/// Whether the columns are all the shares of one softmax, or `p` and `1 - p`.
fn sums_to_one(matrix: &Matrix) -> bool {
    let share = |index: usize| match matrix.columns[index].single() {
        Some((1.0, Atom::Variable(Variable::Share { softmax, index: own })))
            if *own == index && matrix.columns[index].constant == 0.0 =>
        {
            Some(*softmax)
        }
        _ => None,
    };
    match matrix.columns.as_slice() {
        [] => false,
        [p, q] if share(0).is_none() => p.plus(q) == Some(Expression::constant(1.0)),
        columns => share(0).is_some() && (1..columns.len()).all(|i| share(i) == share(0)),
    }
}

fn linear_classifier(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let matrix = call.matrix(0)?;
    let coefficients = reals(graph, call, "coefficients")?;
    let labels = classes(call, "classlabels_ints");
    let (width, count) = (matrix.columns.len(), labels.len());
    if matrix.rank != 2 || count < 2 || count.checked_mul(width) != Some(coefficients.len()) {
        return Err(format!(
            "{} coefficients for {width} columns and {count} classes",
            coefficients.len()
        ));
    }
    let mut intercepts = reals(graph, call, "intercepts")?;
    if intercepts.is_empty() {
        intercepts = vec![0.0; count];
    }
    if intercepts.len() != count {
        return Err(format!("{} intercepts for {count} classes", intercepts.len()));
    }
    graph.budget.take(coefficients.len(), 8)?;
    let weights =
        (0..width).flat_map(|i| (0..count).map(move |c| c * width + i)).map(|at| coefficients[at]);
    let units = graph.layer(matrix, weights.collect(), intercepts)?;
    learn_labels(graph, labels, count)?;
    let scores = post_transform(graph, units, &call.text("post_transform", "NONE"))?;
    Ok(vec![Value::Label, scores])
}

/// The final function of a classifier's scores.
fn post_transform(graph: &mut Graph, scores: Vec<Expression>, name: &str) -> Result<Value, String> {
    let scores = match name {
        "NONE" => scores,
        "LOGISTIC" => scores.into_iter().map(logistic).collect::<Result<_, _>>()?,
        "SOFTMAX" => {
            graph.pay(&scores)?;
            graph.softmax(&Rc::new(Matrix { columns: scores, rank: 2, element: Element::Real }))
        }
        _ => return Err(format!("post_transform `{name}`, expected NONE, LOGISTIC or SOFTMAX")),
    };
    graph.columns(scores, 2, Element::Real)
}

fn logistic(score: Expression) -> Result<Expression, String> {
    let sigmoid = Function::Activation(Activation::Sigmoid);
    Rc::new(score).apply(sigmoid).ok_or_else(|| "the formula is too large".to_string())
}

// ------------------------------------------------------------------------------------ trees

/// The output of a leaf's weight, for one of the two tree operators.
struct Weights {
    trees: Vec<i64>,
    nodes: Vec<i64>,
    outputs: Vec<i64>,
    values: Vec<f64>,
}

impl Weights {
    /// Reads the lists whose names begin with `prefix`, for this many outputs.
    fn read(graph: &mut Graph, call: &Call, prefix: &str, most: usize) -> Result<Self, String> {
        let whole = |name: &str| call.integers(&format!("{prefix}_{name}")).to_vec();
        let read = Self {
            trees: whole("treeids"),
            nodes: whole("nodeids"),
            outputs: whole("ids"),
            values: reals(graph, call, &format!("{prefix}_weights"))?,
        };
        let count = read.values.len();
        if read.trees.len() != count || read.nodes.len() != count || read.outputs.len() != count {
            return Err(format!("the `{prefix}_` lists have different lengths"));
        }
        let is_output = |id: i64| usize::try_from(id).is_ok_and(|id| id < most);
        if let Some(id) = read.outputs.iter().find(|&&id| !is_output(id)) {
            return Err(format!(
                "`{prefix}_ids` has {id}, expected numbers from 0 to {}",
                most - 1
            ));
        }
        graph.budget.take(count, 96)?;
        Ok(read)
    }
}

/// The trees of a node, each with its root first.
fn trees(graph: &mut Graph, call: &Call, weights: &Weights) -> Result<Vec<Vec<TreeNode>>, String> {
    let tree_ids = call.integers("nodes_treeids");
    let node_ids = call.integers("nodes_nodeids");
    let features = call.integers("nodes_featureids");
    let yes = call.integers("nodes_truenodeids");
    let no = call.integers("nodes_falsenodeids");
    let missing = call.integers("nodes_missing_value_tracks_true");
    let modes = call.attribute("nodes_modes").map_or(&[][..], |a| &a.strings);
    let thresholds = reals(graph, call, "nodes_values")?;
    let count = tree_ids.len();
    let lengths =
        [node_ids.len(), features.len(), yes.len(), no.len(), modes.len(), thresholds.len()];
    if lengths.iter().any(|&l| l != count) || !(missing.is_empty() || missing.len() == count) {
        return Err("the `nodes_` lists have different lengths".into());
    }
    graph.budget.take(count, 256)?;

    // Where each node is: its tree, and its place there.
    let mut tree_order: Vec<i64> = Vec::new();
    let mut sizes: BTreeMap<i64, usize> = BTreeMap::new();
    let mut places: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    for (&tree, &node) in tree_ids.iter().zip(node_ids) {
        let size = sizes.entry(tree).or_insert_with(|| {
            tree_order.push(tree);
            0
        });
        if places.insert((tree, node), *size).is_some() {
            return Err(format!("node {node} of tree {tree} is listed twice"));
        }
        *size += 1;
    }
    let mut nodes: BTreeMap<i64, Vec<TreeNode>> = BTreeMap::new();
    for (i, &tree) in tree_ids.iter().enumerate() {
        let place = |node: i64| {
            let found = places.get(&(tree, node)).copied();
            found.ok_or_else(|| format!("tree {tree} has no node {node}"))
        };
        let comparison = match &modes[i][..] {
            b"LEAF" => None,
            b"BRANCH_LEQ" => Some(Comparison::LessOrEqual),
            b"BRANCH_LT" => Some(Comparison::Less),
            b"BRANCH_GTE" => Some(Comparison::GreaterOrEqual),
            b"BRANCH_GT" => Some(Comparison::Greater),
            b"BRANCH_EQ" => Some(Comparison::Equal),
            b"BRANCH_NEQ" => Some(Comparison::NotEqual),
            other => return Err(format!("mode `{}`", String::from_utf8_lossy(other))),
        };
        let node = match comparison {
            None => TreeNode::Leaf { weights: Vec::new() },
            Some(comparison) => TreeNode::Branch {
                feature: usize::try_from(features[i])
                    .map_err(|_| format!("feature {}", features[i]))?,
                comparison,
                threshold: thresholds[i] as f32,
                missing: missing.get(i).is_some_and(|&m| m != 0),
                yes: place(yes[i])?,
                no: place(no[i])?,
            },
        };
        nodes.entry(tree).or_default().push(node);
    }
    for i in 0..weights.values.len() {
        let (tree, node) = (weights.trees[i], weights.nodes[i]);
        let leaf =
            places.get(&(tree, node)).and_then(|&place| nodes.get_mut(&tree)?.get_mut(place));
        let output = usize::try_from(weights.outputs[i]);
        match (leaf, output) {
            (Some(TreeNode::Leaf { weights: leaf }), Ok(output)) => {
                leaf.push((output, weights.values[i] as f32));
            }
            _ => {
                return Err(format!("a weight at node {node} of tree {tree}, which is not a leaf"));
            }
        }
    }
    let in_order = tree_order.iter().filter_map(|tree| nodes.remove(tree));
    in_order.map(root_first).collect()
}

/// Puts the node that no branch leads to first.
fn root_first(mut tree: Vec<TreeNode>) -> Result<Vec<TreeNode>, String> {
    let mut is_child = vec![false; tree.len()];
    for node in &tree {
        for child in node.children().into_iter().flatten() {
            is_child[child] = true;
        }
    }
    let roots: Vec<usize> = (0..tree.len()).filter(|&i| !is_child[i]).collect();
    let [root] = roots[..] else {
        return Err(format!("a tree with {} roots, expected one", roots.len()));
    };
    if root > 0 {
        tree.swap(0, root);
        let moved = |node: &mut usize| {
            if *node == 0 {
                *node = root;
            } else if *node == root {
                *node = 0;
            }
        };
        for node in &mut tree {
            node.children_mut().into_iter().flatten().for_each(moved);
        }
    }
    Ok(tree)
}

/// Adds an ensemble; its raw scores.
pub(super) fn ensemble(graph: &mut Graph, ensemble: Ensemble) -> Vec<Expression> {
    let (id, outputs) = (graph.ensembles.len(), ensemble.base.len());
    graph.ensembles.push(ensemble);
    (0..outputs)
        .map(|index| Expression::variable(Variable::Trees { ensemble: id, index }))
        .collect()
}

/// A matrix of numbers as the input of trees.
pub(super) fn questions(call: &Call) -> Result<Rc<Matrix>, String> {
    let inputs = call.matrix(0)?;
    if inputs.rank != 2 || inputs.element == Element::Text {
        return Err("trees need rows and columns of numbers".into());
    }
    Ok(Rc::clone(inputs))
}

fn tree_classifier(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    let inputs = questions(call)?;
    let labels = classes(call, "classlabels_int64s");
    let count = labels.len();
    if count < 2 {
        return Err(format!("{count} classes, expected two or more"));
    }
    let base = reals(graph, call, "base_values")?;
    let transform = call.text("post_transform", "NONE");
    let mut weights = Weights::read(graph, call, "class", count)?;
    let one_sided = count == 2 && weights.outputs.iter().collect::<BTreeSet<_>>().len() <= 1;
    if !one_sided {
        let fits = base.is_empty() || (base.len() == count && count > 2);
        if !fits {
            return Err(format!("{} base values for {count} classes", base.len()));
        }
        let base = if base.is_empty() { vec![0.0; count] } else { base };
        let trees = trees(graph, call, &weights)?;
        let scores = ensemble(graph, Ensemble { inputs, trees, aggregate: Aggregate::Sum, base });
        learn_labels(graph, labels, count)?;
        return Ok(vec![Value::Label, post_transform(graph, scores, &transform)?]);
    }
    // All weights are for one class. onnxruntime treats weights without a negative one as
    // probabilities, regardless of the transform.
    let positive = weights.values.iter().all(|&w| w >= 0.0);
    weights.outputs.fill(0);
    let base = match base.as_slice() {
        [] => vec![0.0],
        [base] => vec![*base],
        _ => return Err(format!("{} base values with weights for one class", base.len())),
    };
    let trees = trees(graph, call, &weights)?;
    let score = ensemble(graph, Ensemble { inputs, trees, aggregate: Aggregate::Sum, base });
    let [score] = score.as_slice() else { return Err("one score expected".into()) };
    let columns = match transform.as_str() {
        "NONE" | "LOGISTIC" | "SOFTMAX" | "SOFTMAX_ZERO" if positive => {
            vec![score.affine(-1.0, 1.0), score.clone()]
        }
        "LOGISTIC" => vec![logistic(score.affine(-1.0, 0.0))?, logistic(score.clone())?],
        _ => {
            return Err(format!("post_transform `{transform}` of weights for one class"));
        }
    };
    learn_labels(graph, labels, 2)?;
    Ok(vec![Value::Label, graph.columns(columns, 2, Element::Real)?])
}

fn tree_regressor(graph: &mut Graph, call: &Call) -> Result<Vec<Value>, String> {
    const MOST_TARGETS: i64 = 100_000;
    let inputs = questions(call)?;
    let targets = call.integer("n_targets", 1);
    let transform = call.text("post_transform", "NONE");
    if transform != "NONE" || !(1..=MOST_TARGETS).contains(&targets) {
        return Err(format!("{targets} targets with post_transform `{transform}`, expected NONE"));
    }
    let aggregate = match call.text("aggregate_function", "SUM").as_str() {
        "SUM" => Aggregate::Sum,
        "AVERAGE" => Aggregate::Average,
        "MIN" => Aggregate::Minimum,
        "MAX" => Aggregate::Maximum,
        other => return Err(format!("aggregate_function `{other}`")),
    };
    let mut base = reals(graph, call, "base_values")?;
    if base.is_empty() {
        base = vec![0.0; targets as usize];
    }
    if base.len() != targets as usize {
        return Err(format!("{} base values for {targets} targets", base.len()));
    }
    let weights = Weights::read(graph, call, "target", targets as usize)?;
    let trees = trees(graph, call, &weights)?;
    let scores = ensemble(graph, Ensemble { inputs, trees, aggregate, base });
    one(graph.columns(scores, 2, Element::Real)?)
}
