//! The model files of CatBoost, in JSON.
//!
//! `z_d = scale sum over trees of leaf_d(x) + bias_d`; the probability is `1 / (1 + exp(-z))` for
//! `Logloss` and `CrossEntropy` and for each class of `MultiClassOneVsAll`, the softmax for
//! `MultiClass`. A tree is oblivious: all nodes of a level ask the same, and bit `l` of the leaf's
//! number is 1 if `x > border_l`, with `x` rounded to `f32` as CatBoost does. A missing value counts as
//! above every border if the file says so for its column (`AsTrue`), else as below.

use serde::Deserialize;

use super::boosted::{Boosted, COLUMNS, Link, NODES, Part, TREES, grown};
use super::limited::Limited;
use crate::model::trees::{Aggregate, Comparison, TreeNode};

#[derive(Deserialize)]
struct Document {
    features_info: Columns,
    model_info: Info,
    oblivious_trees: Option<Limited<Tree, TREES>>,
    scale_and_bias: (f64, Bias),
}

#[derive(Deserialize)]
struct Columns {
    #[serde(default, rename = "float_features")]
    floats: Limited<Column, COLUMNS>,
    #[serde(default, rename = "categorical_features")]
    categories: Limited<serde::de::IgnoredAny, COLUMNS>,
    #[serde(default, rename = "text_features")]
    texts: Limited<serde::de::IgnoredAny, COLUMNS>,
    #[serde(default, rename = "embedding_features")]
    embeddings: Limited<serde::de::IgnoredAny, COLUMNS>,
}

#[derive(Deserialize)]
struct Column {
    flat_feature_index: usize,
    /// Its name in files that were saved together with rows.
    #[serde(default)]
    feature_name: String,
    /// Its name, or nothing.
    #[serde(default)]
    feature_id: String,
    nan_value_treatment: String,
}

#[derive(Deserialize)]
struct Info {
    params: Params,
    class_params: Option<Classes>,
}

#[derive(Deserialize)]
struct Params {
    loss_function: Loss,
}

#[derive(Deserialize)]
struct Loss {
    r#type: String,
}

#[derive(Deserialize)]
struct Classes {
    #[serde(default)]
    class_names: Limited<serde_json::Value, COLUMNS>,
}

/// One number in old versions.
#[derive(Deserialize)]
#[serde(untagged)]
enum Bias {
    One(f64),
    Each(Vec<f64>),
}

#[derive(Deserialize)]
struct Tree {
    leaf_values: Vec<f64>,
    splits: Option<Limited<Question, DEEPEST>>,
}

/// The most splits of a tree; CatBoost has at most 16.
const DEEPEST: usize = 24;

#[derive(Deserialize)]
struct Question {
    split_type: String,
    border: Option<f32>,
    float_feature_index: Option<usize>,
}

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Boosted, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let document: Document = serde_path_to_error::deserialize(&mut text)
        .map_err(|error| format!("this is not a model of CatBoost, or it is damaged: {error}"))?;
    document.boosted()
}

impl Document {
    fn boosted(self) -> Result<Boosted, String> {
        let objective = self.model_info.params.loss_function.r#type;
        let (scale, bias) = self.scale_and_bias;
        let (link, base) = match (&*objective, bias) {
            ("Logloss" | "CrossEntropy", Bias::One(bias)) => (Link::Logistic, vec![bias]),
            ("Logloss" | "CrossEntropy", Bias::Each(bias)) if bias.len() == 1 => {
                (Link::Logistic, bias)
            }
            ("MultiClass", Bias::Each(bias)) if bias.len() > 1 => (Link::Softmax, bias),
            ("MultiClassOneVsAll", Bias::Each(bias)) if bias.len() > 1 => {
                (Link::EachLogistic, bias)
            }
            (_, bias) => {
                let outputs = if let Bias::Each(bias) = bias { bias.len() } else { 1 };
                return Err(format!(
                    "CatBoost's objective `{objective}` with {outputs} outputs, expected `Logloss`, \
                     `CrossEntropy`, `MultiClass` or `MultiClassOneVsAll`"
                ));
            }
        };
        let features = self.features_info;
        for (what, count) in [
            ("categorical", features.categories.0.len()),
            ("text", features.texts.0.len()),
            ("embedding", features.embeddings.0.len()),
        ] {
            if count > 0 {
                return Err(format!(
                    "{count} {what} features of CatBoost, expected numbers only; encode them before \
                     the model"
                ));
            }
        }
        let columns = features.floats.0;
        let dim = columns.len();
        let mut names = vec![None; dim];
        for Column { flat_feature_index, feature_name, feature_id, .. } in &columns {
            let own = if feature_name.is_empty() { feature_id } else { feature_name };
            match names.get_mut(*flat_feature_index) {
                Some(name @ None) => *name = Some(own.clone()),
                _ => {
                    return Err(format!(
                        "`flat_feature_index` is {flat_feature_index}, expected each number from 0 \
                         to {} once",
                        dim - 1
                    ));
                }
            }
        }
        let names: Vec<String> = names.into_iter().flatten().collect();
        let Some(trees) = self.oblivious_trees else {
            return Err("trees that are not symmetric (`grow_policy`), expected `oblivious_trees`"
                .to_owned());
        };
        let mut left = NODES;
        let mut read = Vec::with_capacity(trees.0.len());
        for (index, tree) in trees.0.iter().enumerate() {
            let nodes = tree.nodes(&columns, base.len(), scale, &mut left);
            read.push(nodes.map_err(|problem| format!("tree {index}: {problem}"))?);
        }
        let labels = self.model_info.class_params.map(|classes| classes.class_names.0);
        Ok(Boosted {
            objective,
            names: Some(names).filter(|names| names.iter().all(|name| !name.is_empty())),
            categories: vec![None; dim],
            trees: read,
            aggregate: Aggregate::Sum,
            base,
            link,
            has_link: true,
            labels: labels.map(|labels| labels.iter().map(word).collect()),
        })
    }
}

/// A class: a text, or a number without quotes.
fn word(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Tree {
    fn nodes(
        &self,
        columns: &[Column],
        outputs: usize,
        scale: f64,
        left: &mut usize,
    ) -> Result<Vec<TreeNode>, String> {
        let splits = self.splits.as_ref().map_or(&[][..], |splits| &splits.0);
        let depth = splits.len();
        if self.leaf_values.len() != outputs << depth {
            return Err(format!(
                "{} values for {depth} splits and {outputs} outputs",
                self.leaf_values.len()
            ));
        }
        // The level, and the bits of the levels above.
        grown((0_usize, 0_usize), 2 << depth, left, |(level, number)| {
            let Some(split) = splits.get(level) else {
                let values = &self.leaf_values[number * outputs..(number + 1) * outputs];
                let weights = values.iter().map(|value| (value * scale) as f32);
                return Ok(Part::Leaf(weights.enumerate().collect()));
            };
            if split.split_type != "FloatFeature" {
                return Err(format!(
                    "a split of the type `{}`, expected `FloatFeature`",
                    split.split_type
                ));
            }
            let (Some(threshold), Some(column)) = (split.border, split.float_feature_index) else {
                return Err(format!(
                    "split {level} has no `border` or no `float_feature_index`, expected both"
                ));
            };
            let column = columns.get(column).ok_or_else(|| format!("no column {column}"))?;
            let missing = match &*column.nan_value_treatment {
                "AsTrue" => true,
                "AsFalse" | "AsIs" => false,
                other => return Err(format!("`nan_value_treatment` is `{other}`")),
            };
            Ok(Part::Branch {
                feature: column.flat_feature_index,
                comparison: Comparison::Greater,
                threshold,
                missing,
                yes: (level + 1, number | 1 << level),
                no: (level + 1, number),
            })
        })
    }
}
