//! The model files of XGBoost, in JSON and in UBJSON.
//!
//! `z_g = logit(base_score_g) + sum over trees t of group g of w_t leaf_t(x)` for `binary:logistic` and
//! `reg:logistic`, `z_g = base_score_g + ...` for the others; `w_t` is 1 but for `dart`. A node goes left
//! if `x < split_condition`, with `x` rounded to `f32` as XGBoost does; a categorical one if the code
//! of `x`, without its fraction, is *not* in the node's set; a missing value goes in the default
//! direction.
//!
//! `base_score` is in the file as a list of one or of one per class since version 3.1, and as a single
//! number before. A file that the scikit-learn
//! interface saved after early stopping has the trees after `best_iteration`, which that interface's
//! `predict_proba` leaves out, and so does this reader; `Booster.predict` takes all trees, and so does
//! this reader for a file that a `Booster` saved.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer};

use super::boosted::{Boosted, COLUMNS, Link, NODES, Part, TREES, category, grown};
use super::limited::Limited;
use super::{Category, ubjson};
use crate::model::trees::{Aggregate, Comparison, TreeNode};

/// The objectives that are read. The score of the first three is the probability of the second
/// class, whether the package predicts it or its logit.
const LOGISTIC: [&str; 3] = ["binary:logistic", "reg:logistic", "binary:logitraw"];
/// Those whose base score is a probability.
const SHARES: [&str; 2] = ["binary:logistic", "reg:logistic"];
const SOFTMAX: [&str; 2] = ["multi:softprob", "multi:softmax"];

/// The attribute of files that the scikit-learn interface saved.
const WRAPPER: &str = "scikit_learn";
/// The attribute of the last iteration to predict with.
const BEST: &str = "best_iteration";

#[derive(Deserialize)]
struct Document {
    learner: Learner,
}

#[derive(Deserialize)]
struct Learner {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    feature_names: Limited<String, COLUMNS>,
    #[serde(default)]
    feature_types: Limited<String, COLUMNS>,
    gradient_booster: Booster,
    #[serde(rename = "learner_model_param")]
    param: LearnerParam,
    objective: Objective,
}

#[derive(Deserialize)]
struct Booster {
    name: String,
    model: Option<Model>,
    /// The trees of `dart`, and the weight of each.
    gbtree: Option<Box<Booster>>,
    weight_drop: Option<Vec<f32>>,
}

#[derive(Deserialize)]
struct Model {
    gbtree_model_param: Option<TreesParam>,
    #[serde(default)]
    tree_info: Vec<i64>,
    #[serde(default)]
    trees: Limited<Tree, TREES>,
    iteration_indptr: Option<Vec<i64>>,
    cats: Option<Categories>,
}

#[derive(Deserialize)]
struct TreesParam {
    #[serde(default)]
    num_trees: Option<String>,
    #[serde(default)]
    num_parallel_tree: Option<String>,
}

/// The categories of the training data, feature by feature.
#[derive(Deserialize)]
struct Categories {
    #[serde(default)]
    enc: Limited<Encoding, COLUMNS>,
}

/// Texts, one after another, with the places where they begin; or numbers.
#[derive(Deserialize)]
struct Encoding {
    offsets: Option<Vec<i64>>,
    #[serde(default)]
    values: Vec<serde_json::Number>,
}

#[derive(Deserialize)]
struct LearnerParam {
    base_score: String,
    #[serde(default)]
    num_class: Option<String>,
    num_feature: String,
    #[serde(default)]
    num_target: Option<String>,
}

#[derive(Deserialize)]
struct Objective {
    name: String,
}

#[derive(Deserialize)]
struct Tree {
    left_children: Vec<i64>,
    right_children: Vec<i64>,
    split_indices: Vec<i64>,
    split_conditions: Vec<f32>,
    default_left: Vec<Flag>,
    #[serde(default)]
    split_type: Vec<i64>,
    #[serde(default)]
    categories: Vec<i64>,
    #[serde(default)]
    categories_nodes: Vec<i64>,
    #[serde(default)]
    categories_segments: Vec<i64>,
    #[serde(default)]
    categories_sizes: Vec<i64>,
    #[serde(rename = "tree_param")]
    param: TreeParam,
}

#[derive(Deserialize)]
struct TreeParam {
    #[serde(default)]
    num_nodes: Option<String>,
    #[serde(default)]
    size_leaf_vector: Option<String>,
}

/// A truth value, which some versions write as a number.
struct Flag(bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Truth(bool),
            Number(i64),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Truth(truth) => Self(truth),
            Written::Number(number) => Self(number != 0),
        })
    }
}

/// Reads a file in JSON.
pub(super) fn json(bytes: &[u8]) -> Result<Boosted, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    read(&mut serde_json::Deserializer::from_slice(bytes))
}

/// Reads a file in UBJSON.
pub(super) fn ubj(bytes: &[u8]) -> Result<Boosted, String> {
    read(&mut ubjson::Reader::new(bytes))
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Boosted, String> {
    let document: Document = serde_path_to_error::deserialize(deserializer)
        .map_err(|error| format!("this is not a model of XGBoost, or it is damaged: {error}"))?;
    document.learner.boosted()
}

impl Learner {
    fn boosted(self) -> Result<Boosted, String> {
        let objective = self.objective.name;
        let classes = number("num_class", self.param.num_class.as_deref(), 0)?;
        let link = if LOGISTIC.contains(&&*objective) {
            Link::Logistic
        } else if SOFTMAX.contains(&&*objective) {
            Link::Softmax
        } else {
            return Err(format!(
                "XGBoost's objective `{objective}`, expected one of {}, {}",
                LOGISTIC.join(", "),
                SOFTMAX.join(", ")
            ));
        };
        let groups = if link == Link::Softmax { classes } else { 1 };
        let targets = number("num_target", self.param.num_target.as_deref(), 1)?;
        if targets > 1 || !(1..=COLUMNS).contains(&groups) || link == Link::Logistic && classes > 1
        {
            return Err(format!("`{objective}` with {classes} classes and {targets} targets"));
        }
        let dim = number("num_feature", Some(&self.param.num_feature), 0)?;
        if !(1..=COLUMNS).contains(&dim) {
            return Err(format!("{dim} columns, expected 1 to {COLUMNS}"));
        }
        let (model, weights) = self.gradient_booster.trees()?;
        let used = used_trees(&self.attributes, &model, groups)?;
        let weights = weights.unwrap_or_default();
        let trees = model.trees.0;
        if model.tree_info.len() != trees.len()
            || !(weights.is_empty() || weights.len() == trees.len())
        {
            return Err(format!(
                "{} trees, `tree_info` for {} and `weight_drop` for {}",
                trees.len(),
                model.tree_info.len(),
                weights.len()
            ));
        }
        let declared = model.gbtree_model_param.as_ref().and_then(|own| own.num_trees.as_deref());
        declared_as("num_trees", declared, trees.len())?;
        let mut left = NODES;
        let mut read = Vec::with_capacity(used);
        for (index, tree) in trees.iter().take(used).enumerate() {
            let group = usize::try_from(model.tree_info[index]).ok().filter(|&own| own < groups);
            let nodes = group
                .ok_or_else(|| format!("its group {} of {groups}", model.tree_info[index]))
                .and_then(|group| {
                    let weight = weights.get(index).copied().unwrap_or(1.0);
                    tree.nodes(group, weight, &mut left)
                });
            read.push(nodes.map_err(|problem| format!("tree {index}: {problem}"))?);
        }
        Ok(Boosted {
            base: base(&self.param.base_score, groups, &objective)?,
            names: names(self.feature_names.0, dim)?,
            categories: categories(model.cats, &self.feature_types.0, dim)?,
            objective,
            trees: read,
            aggregate: Aggregate::Sum,
            link,
            has_link: true,
            labels: None,
        })
    }
}

impl Booster {
    /// The trees, and their weights where they have any.
    fn trees(self) -> Result<(Model, Option<Vec<f32>>), String> {
        let (model, weights) = match &*self.name {
            "gbtree" => (self.model, None),
            "dart" => (self.gbtree.and_then(|trees| trees.model), self.weight_drop),
            other => {
                return Err(format!("XGBoost's booster `{other}`, expected `gbtree` or `dart`"));
            }
        };
        Ok((model.ok_or("there are no trees in the file")?, weights))
    }
}

/// The number of trees that the package predicts with.
fn used_trees(
    attributes: &BTreeMap<String, String>,
    model: &Model,
    groups: usize,
) -> Result<usize, String> {
    let all = model.trees.0.len();
    let Some(best) = attributes.get(BEST).filter(|_| attributes.contains_key(WRAPPER)) else {
        return Ok(all);
    };
    let rounds = number(BEST, Some(best), 0)?.saturating_add(1);
    let used = match &model.iteration_indptr {
        Some(starts) => starts.get(rounds).and_then(|&start| usize::try_from(start).ok()),
        None => {
            let parallel =
                model.gbtree_model_param.as_ref().and_then(|own| own.num_parallel_tree.as_deref());
            let parallel = number("num_parallel_tree", parallel, 1)?;
            rounds.checked_mul(groups).and_then(|trees| trees.checked_mul(parallel))
        }
    };
    used.filter(|used| *used <= all)
        .ok_or_else(|| format!("`{BEST}` is {best}, but the file has only {all} trees"))
}

impl Tree {
    fn nodes(&self, group: usize, weight: f32, left: &mut usize) -> Result<Vec<TreeNode>, String> {
        let count = self.left_children.len();
        let leaf = number("size_leaf_vector", self.param.size_leaf_vector.as_deref(), 1)?;
        if leaf > 1 {
            return Err("a leaf with several values (`multi_output_tree`)".to_owned());
        }
        let lengths = [
            self.right_children.len(),
            self.split_indices.len(),
            self.split_conditions.len(),
            self.default_left.len(),
        ];
        let types = self.split_type.len();
        if lengths.iter().any(|&length| length != count) || !(types == 0 || types == count) {
            return Err("its lists have different lengths".to_owned());
        }
        declared_as("num_nodes", self.param.num_nodes.as_deref(), count)?;
        let sets = self.sets()?;
        grown(0_usize, count, left, |node| {
            let child = |children: &[i64]| {
                let child = *children.get(node).unwrap_or(&-1);
                usize::try_from(child)
                    .ok()
                    .filter(|&child| child < count)
                    .ok_or_else(|| format!("node {node}: no node {child}"))
            };
            // A leaf has two children of -1; a split that lost one would score as a leaf.
            if (*self.left_children.get(node).ok_or("it has no nodes")?, self.right_children[node])
                == (-1, -1)
            {
                return Ok(Part::Leaf(vec![(group, weight * self.split_conditions[node])]));
            }
            let (lower, upper) = (child(&self.left_children)?, child(&self.right_children)?);
            let feature = self.split_indices[node];
            let feature =
                usize::try_from(feature).map_err(|_| format!("node {node}: column {feature}"))?;
            let default_left = self.default_left[node].0;
            match self.split_type.get(node) {
                None | Some(0) => Ok(Part::Branch {
                    feature,
                    comparison: Comparison::Less,
                    threshold: self.split_conditions[node],
                    missing: default_left,
                    yes: lower,
                    no: upper,
                }),
                Some(1) => {
                    let set = sets.get(&node).ok_or_else(|| format!("node {node}: no set"))?;
                    Ok(Part::Member {
                        feature,
                        values: set.clone(),
                        missing: !default_left,
                        yes: upper,
                        no: lower,
                    })
                }
                Some(other) => Err(format!("node {node}: a split of type {other}")),
            }
        })
    }

    /// The categories of each categorical node.
    fn sets(&self) -> Result<HashMap<usize, Vec<f32>>, String> {
        let count = self.categories_nodes.len();
        if self.categories_segments.len() != count || self.categories_sizes.len() != count {
            return Err("the lists of its categories have different lengths".to_owned());
        }
        let whole = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let mut sets = HashMap::new();
        let mut rest = self.categories.len();
        for (place, &node) in self.categories_nodes.iter().enumerate() {
            let (start, size) =
                (whole(self.categories_segments[place]), whole(self.categories_sizes[place]));
            let set = start.checked_add(size).and_then(|end| self.categories.get(start..end));
            // A list that is used twice would be copied twice.
            rest = rest.checked_sub(size).ok_or("the sets of its nodes overlap")?;
            // Every code up to 2^24 is an `f32`, and XGBoost has no larger ones.
            let code = |&code: &i64| (0..1 << 24).contains(&code).then_some(code as f32);
            let set: Option<Vec<f32>> = set.and_then(|set| set.iter().map(code).collect());
            let set = set.ok_or_else(|| format!("node {node}: its set of categories"))?;
            sets.insert(whole(node), set);
        }
        Ok(sets)
    }
}

/// A whole number that the file has as a text.
fn number(name: &str, text: Option<&str>, default: usize) -> Result<usize, String> {
    text.map_or(Ok(default), |text| {
        text.trim().parse().map_err(|_| format!("`{name}` is `{text}`, expected a whole number"))
    })
}

/// Checks the length of a list that the file declares too: one that was cut off is refused.
fn declared_as(name: &str, declared: Option<&str>, found: usize) -> Result<(), String> {
    let declared = number(name, declared, found)?;
    if declared == found {
        return Ok(());
    }
    Err(format!("`{name}` is {declared}, but there are {found}: the file is damaged"))
}

/// The constant of each group, from `5E-1` or `[1E-1,2E-1]`.
fn base(text: &str, groups: usize, objective: &str) -> Result<Vec<f64>, String> {
    let wrong = || format!("`base_score` is `{text}`, expected one number, or {groups} in a list");
    let list = text.trim();
    let list = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
    let mut found: Vec<f64> = list
        .split(',')
        .map(|one| one.trim().parse::<f32>().map(f64::from).map_err(|_| wrong()))
        .collect::<Result<_, _>>()?;
    if let [only] = found[..] {
        found = vec![only; groups];
    }
    if found.len() != groups {
        return Err(wrong());
    }
    if SHARES.contains(&objective) {
        if !found.iter().all(|&share| share > 0.0 && share < 1.0) {
            return Err(format!("`base_score` is `{text}`, expected a number between 0 and 1"));
        }
        found.iter_mut().for_each(|share| *share = (*share / (1.0 - *share)).ln());
    }
    Ok(found)
}

fn names(names: Vec<String>, dim: usize) -> Result<Option<Vec<String>>, String> {
    match names.len() {
        0 => Ok(None),
        count if count == dim => Ok(Some(names)),
        count => Err(format!("{count} names for {dim} columns")),
    }
}

/// The categories of each column that was given as one of texts or numbers, rather than as codes.
fn categories(
    known: Option<Categories>,
    types: &[String],
    dim: usize,
) -> Result<Vec<Option<Vec<Category>>>, String> {
    let encodings = known.map(|known| known.enc.0).unwrap_or_default();
    let mut all = vec![None; dim];
    if encodings.is_empty() {
        return Ok(all);
    }
    if encodings.len() != dim || !(types.is_empty() || types.len() == dim) {
        return Err(format!("categories for {} of {dim} columns", encodings.len()));
    }
    for (column, encoding) in encodings.iter().enumerate() {
        let own = encoding.categories().map_err(|problem| format!("column {column}: {problem}"))?;
        all[column] = Some(own).filter(|own| !own.is_empty());
    }
    Ok(all)
}

impl Encoding {
    fn categories(&self) -> Result<Vec<Category>, String> {
        let Some(offsets) = &self.offsets else {
            let numbers = self.values.iter().cloned().map(serde_json::Value::Number);
            return numbers.map(|number| category(&number)).collect();
        };
        let bytes: Option<Vec<u8>> = self
            .values
            .iter()
            // The characters of some versions are signed.
            .map(|value| value.as_i64().and_then(|byte| u8::try_from(byte & 0xff).ok()))
            .collect();
        let bytes = bytes.ok_or("its texts are not bytes")?;
        offsets
            .windows(2)
            .map(|ends| {
                let place = |end: i64| usize::try_from(end).ok();
                let text = place(ends[0]).zip(place(ends[1]));
                let text = text.and_then(|(start, end)| bytes.get(start..end));
                let text = text.and_then(|text| std::str::from_utf8(text).ok());
                text.map(|text| Category::Text(text.into()))
                    .ok_or_else(|| "a category that is not a text".to_owned())
            })
            .collect()
    }
}
