//! The model files of LightGBM, in its text format.
//!
//! `z_k = sum over trees t of class k of leaf_t(x)`, over the number of iterations for random forests
//! (`average_output`); the probability is `1 / (1 + exp(-sigmoid z))` for `binary` and for each class
//! of `multiclassova`, `1 / (1 + exp(-z))` for `cross_entropy`, the softmax for `multiclass`.
//!
//! A node goes left if `x <= t`. LightGBM compares in `f64`, tyrex in `f32`, where a number counts as
//! the `f32` next to it. So does the threshold: rounding keeps the order, so every `x <= t` still
//! goes left. LightGBM puts most thresholds right above a number of the training rows, which the
//! largest `f32` that is at most `t` would cut off. A number above `t` with the same `f32` goes left
//! too. By the node's missing type, NaN is 0 (`none`),
//! or goes in the default direction (`nan`), as every `|x| <= 1e-35` does as well (`zero`). A
//! categorical node goes left if the code of `x` is in its set, and right for a missing value.

use super::Category;
use super::boosted::{Boosted, COLUMNS, Link, NODES, Part, TREES, category, grown};
use crate::model::trees::{Aggregate, Comparison, TreeNode};

/// The first line of a file.
pub(super) const FIRST_LINE: &[u8] = b"tree";

/// LightGBM's `kZeroThreshold`: numbers up to it are zeros.
const ZERO: f32 = 1e-35;

/// The most lines of a tree; LightGBM writes about 20.
const MOST_KEYS: usize = 100;

/// The nodes of a tree in which nodes are copied, for `zero_as_missing`.
const COPIED: usize = 1 << 16;

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Boosted, String> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| "this is not a model of LightGBM, or it is damaged: no UTF-8".to_owned())?;
    let mut lines = text.lines().map(str::trim_end);
    let header = Header::read(&mut lines)?;
    let mut trees = Vec::new();
    let mut left = NODES;
    loop {
        let index = trees.len();
        let Some(tree) = Tree::read(&mut lines, index)? else { break };
        if index == TREES {
            return Err(format!("more than {TREES} trees"));
        }
        let output = index % header.outputs;
        let scale = header.scale;
        let nodes = tree.nodes(output, scale, &mut left);
        trees.push(nodes.map_err(|problem| format!("tree {index}: {problem}"))?);
    }
    if trees.len() != header.trees {
        return Err(format!(
            "{} trees, but `tree_sizes` has {}: the file is damaged",
            trees.len(),
            header.trees
        ));
    }
    if trees.is_empty() || !trees.len().is_multiple_of(header.outputs) {
        return Err(format!(
            "{} trees, expected a multiple of {}, one for each class",
            trees.len(),
            header.outputs
        ));
    }
    let mut aggregate = Aggregate::Sum;
    if header.averaged {
        aggregate = Aggregate::Average;
        // The mean is over iterations; each has a tree per output.
        if header.link == Link::Softmax {
            scale(&mut trees, header.outputs as f64);
        }
    }
    let footer = Footer::read(lines);
    Ok(Boosted {
        categories: footer.categories(&header)?,
        objective: header.objective,
        names: Some(header.names).filter(|names| !are_numbered(names)),
        trees,
        aggregate,
        base: vec![0.0; header.outputs],
        link: header.link,
        has_link: header.has_link,
        labels: None,
    })
}

fn scale(trees: &mut [Vec<TreeNode>], factor: f64) {
    for node in trees.iter_mut().flatten() {
        if let TreeNode::Leaf { weights } = node {
            for (_, weight) in weights {
                *weight = (f64::from(*weight) * factor) as f32;
            }
        }
    }
}

/// Whether LightGBM made the names up.
fn are_numbered(names: &[String]) -> bool {
    names.iter().enumerate().all(|(column, name)| *name == format!("Column_{column}"))
}

/// The lines before the first tree.
struct Header {
    objective: String,
    names: Vec<String>,
    infos: Vec<String>,
    outputs: usize,
    averaged: bool,
    link: Link,
    has_link: bool,
    /// The factor of the outputs.
    scale: f64,
    /// The number of trees.
    trees: usize,
}

impl Header {
    fn read<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut objective = None;
        let (mut names, mut infos) = (Vec::new(), Vec::new());
        let (mut outputs, mut classes, mut last) = (None, None, None);
        let mut averaged = false;
        let mut trees = 0;
        for line in lines.skip(1) {
            if let Some(sizes) = line.strip_prefix("tree_sizes=") {
                trees = sizes.split_ascii_whitespace().count();
                break;
            }
            if line.starts_with("Tree=") {
                return Err("no `tree_sizes` before the first tree: the file is damaged".to_owned());
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            match key {
                "objective" => objective = Some(value.to_owned()),
                "num_class" => classes = Some(whole(key, value)?),
                "num_tree_per_iteration" => outputs = Some(whole(key, value)?),
                "max_feature_idx" => last = Some(whole(key, value)?),
                "average_output" => averaged = true,
                "feature_names" => names = words(value)?,
                "feature_infos" => infos = words(value)?,
                "linear_tree" if value == "1" => return Err(LINEAR.to_owned()),
                _ => {}
            }
        }
        let (Some(classes), Some(last)) = (classes, last) else {
            return Err("no `num_class` or `max_feature_idx`: the file is damaged".to_owned());
        };
        if names.len().checked_sub(1) != Some(last) || infos.len() != names.len() {
            return Err(format!(
                "{} `feature_names` and {} `feature_infos`, expected {} of each",
                names.len(),
                infos.len(),
                last.saturating_add(1)
            ));
        }
        let outputs = outputs.unwrap_or(classes);
        if outputs != classes || !(1..=COLUMNS).contains(&outputs) {
            return Err(format!("{classes} classes and {outputs} trees per iteration"));
        }
        let has_link = objective.is_some();
        let objective = objective.unwrap_or_default();
        let (link, scale) = link(&objective, outputs)?;
        Ok(Self { objective, names, infos, outputs, averaged, link, has_link, scale, trees })
    }
}

const LINEAR: &str = "linear trees (`linear_tree`), whose leaves are formulas, expected numbers";

/// The link of an objective, and the factor of its outputs.
fn link(objective: &str, outputs: usize) -> Result<(Link, f64), String> {
    let mut parts = objective.split_ascii_whitespace();
    let name = parts.next().unwrap_or_default();
    let mut sigmoid = 1.0;
    for part in parts {
        if let Some(value) = part.strip_prefix("sigmoid:") {
            sigmoid = real("sigmoid", value)?;
        }
    }
    let scaled = matches!(name, "binary" | "multiclassova");
    if scaled && !(sigmoid > 0.0 && sigmoid.is_finite()) {
        return Err(format!("`sigmoid` is {sigmoid}, expected a number above 0"));
    }
    match (name, outputs) {
        ("binary", 1) => Ok((Link::Logistic, sigmoid)),
        // Without an objective the caller has to say that the scores are logits.
        ("cross_entropy" | "", 1) => Ok((Link::Logistic, 1.0)),
        ("multiclass" | "", 2..) => Ok((Link::Softmax, 1.0)),
        ("multiclassova", 2..) => Ok((Link::EachLogistic, sigmoid)),
        _ => Err(format!(
            "LightGBM's objective `{objective}` with {outputs} outputs, expected `binary`, \
             `cross_entropy`, `multiclass` or `multiclassova`"
        )),
    }
}

/// The lines of one tree.
#[derive(Default)]
struct Tree {
    features: Vec<usize>,
    thresholds: Vec<f64>,
    decisions: Vec<u8>,
    lower: Vec<i64>,
    upper: Vec<i64>,
    leaves: Vec<f64>,
    boundaries: Vec<usize>,
    words: Vec<u32>,
}

/// A node of the new tree.
#[derive(Debug, Clone, Copy)]
enum Key {
    /// A node of the file, or the complement of a leaf's number.
    Node(i64),
    /// The question of this number of a node that asks more than one, because zeros are missing.
    Question(usize, usize),
}

impl Tree {
    /// The next tree, with this number; none at the end of the trees.
    fn read<'a>(
        lines: &mut impl Iterator<Item = &'a str>,
        index: usize,
    ) -> Result<Option<Self>, String> {
        loop {
            match lines.next() {
                Some("") => {}
                Some("end of trees") => return Ok(None),
                Some(line) if line.strip_prefix("Tree=") == Some(&index.to_string()) => break,
                Some(line) => {
                    let line: String = line.chars().take(40).collect();
                    return Err(format!(
                        "found `{line}`, expected `Tree={index}`: the file is damaged"
                    ));
                }
                None => return Err("no `end of trees`: the file is cut off".to_owned()),
            }
        }
        let mut tree = Self::default();
        let mut leaves = None;
        let mut seen = Vec::new();
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            if seen.contains(&key) {
                return Err(format!("tree {index} has `{key}` twice: the file is damaged"));
            }
            seen.push(key);
            if seen.len() > MOST_KEYS {
                return Err(format!("tree {index} has more than {MOST_KEYS} lines"));
            }
            match key {
                "num_leaves" => leaves = Some(whole(key, value)?),
                "split_feature" => tree.features = each(value, |one| whole(key, one))?,
                "threshold" => tree.thresholds = each(value, |one| real(key, one))?,
                "decision_type" => tree.decisions = each(value, |one| parsed(key, one))?,
                "left_child" => tree.lower = each(value, |one| parsed(key, one))?,
                "right_child" => tree.upper = each(value, |one| parsed(key, one))?,
                "leaf_value" => tree.leaves = each(value, |one| real(key, one))?,
                "cat_boundaries" => tree.boundaries = each(value, |one| whole(key, one))?,
                "cat_threshold" => tree.words = each(value, |one| parsed(key, one))?,
                "is_linear" if value == "1" => return Err(LINEAR.to_owned()),
                _ => {}
            }
        }
        let leaves = leaves.ok_or("a tree without `num_leaves`: the file is damaged")?;
        if leaves <= 1 {
            // LightGBM reads no splits then.
            tree.features.clear();
        }
        let splits = tree.features.len();
        let lengths = [tree.thresholds.len(), tree.lower.len(), tree.upper.len()];
        let old = tree.decisions.is_empty();
        if splits > 0
            && (lengths.iter().any(|&length| length != splits)
                || !old && tree.decisions.len() != splits)
            || tree.leaves.len() != splits + 1
            || leaves.max(1) != splits + 1
        {
            return Err(format!(
                "a tree of {leaves} leaves with {splits} splits and {} values: the file is damaged",
                tree.leaves.len()
            ));
        }
        tree.decisions.resize(splits, 0);
        Ok(Some(tree))
    }

    fn nodes(&self, output: usize, scale: f64, left: &mut usize) -> Result<Vec<TreeNode>, String> {
        let splits = self.features.len();
        let copies = self.decisions.iter().any(|&own| missing_type(own) == ZEROS);
        let most = if copies { COPIED } else { 2 * splits + 1 };
        let root = if splits == 0 { -1 } else { 0 };
        grown(Key::Node(root), most, left, |key| match key {
            Key::Node(node) if node < 0 => {
                let leaf = usize::try_from(!node).ok().and_then(|leaf| self.leaves.get(leaf));
                let leaf = leaf.ok_or_else(|| format!("no leaf {}", !node))?;
                Ok(Part::Leaf(vec![(output, (leaf * scale) as f32)]))
            }
            Key::Node(node) => {
                let node = usize::try_from(node).ok().filter(|&node| node < splits);
                self.split(node.ok_or("a child that is not a node")?)
            }
            Key::Question(node, place) => Ok(self.question(node, place)),
        })
    }

    fn split(&self, node: usize) -> Result<Part<Key>, String> {
        let (feature, decision) = (self.features[node], self.decisions[node]);
        let (lower, upper) = (self.lower[node], self.upper[node]);
        if decision & 1 != 0 {
            return Ok(Part::Member {
                feature,
                values: self.set(node)?,
                missing: false,
                yes: Key::Node(lower),
                no: Key::Node(upper),
            });
        }
        let threshold = self.thresholds[node];
        if threshold.is_nan() {
            return Err(format!("node {node}: the threshold is not a number"));
        }
        let missing = match missing_type(decision) {
            NONE => 0.0 <= threshold,
            NAN => is_default_left(decision),
            ZEROS => return Ok(self.question(node, 0)),
            other => return Err(format!("node {node}: missing type {other}")),
        };
        Ok(Part::Branch {
            feature,
            comparison: Comparison::LessOrEqual,
            threshold: nearest(threshold),
            missing,
            yes: Key::Node(lower),
            no: Key::Node(upper),
        })
    }

    /// A question of a node whose zeros are missing: the line of numbers is cut at the threshold and
    /// at both ends of the zeros, and each piece leads to the lower or to the upper child.
    fn question(&self, node: usize, place: usize) -> Part<Key> {
        let (decision, threshold) = (self.decisions[node], nearest(self.thresholds[node]));
        let to_lower = |x: f32| {
            if x.abs() <= ZERO { is_default_left(decision) } else { x <= threshold }
        };
        let mut cuts = [(-ZERO).next_down(), ZERO, threshold];
        cuts.sort_by(f32::total_cmp);
        // A cut between two pieces with the same child is none.
        let ends: Vec<f32> = cuts.iter().copied().chain([f32::INFINITY]).collect();
        let own = |place: usize| to_lower(ends[place]);
        let mut real: Vec<(f32, bool)> =
            (0..3).filter(|&i| own(i) != own(i + 1)).map(|i| (ends[i], own(i))).collect();
        if real.is_empty() {
            real.push((f32::INFINITY, own(3)));
        }
        let child =
            |lower: bool| Key::Node(if lower { self.lower[node] } else { self.upper[node] });
        let (cut, lower) = real[place.min(real.len() - 1)];
        let last = place + 1 >= real.len();
        Part::Branch {
            feature: self.features[node],
            comparison: Comparison::LessOrEqual,
            threshold: cut,
            // The first piece with the default child takes the missing value.
            missing: lower == is_default_left(decision),
            yes: child(lower),
            no: if last { child(!lower) } else { Key::Question(node, place + 1) },
        }
    }

    /// The categories that go to the lower child.
    fn set(&self, node: usize) -> Result<Vec<f32>, String> {
        let wrong = || format!("node {node}: its set of categories");
        // The threshold of a categorical node is the number of its set.
        let number = self.thresholds[node];
        let number = (number >= 0.0 && number.fract() == 0.0).then_some(number as usize);
        let ends = number.and_then(|number| Some((number, number.checked_add(1)?)));
        let ends = ends.and_then(|(start, end)| {
            Some((*self.boundaries.get(start)?, *self.boundaries.get(end)?))
        });
        let words = ends.and_then(|(start, end)| self.words.get(start..end)).ok_or_else(wrong)?;
        if words.len() > MOST_CODES / 32 {
            return Err(wrong());
        }
        let bits = words.iter().enumerate().flat_map(|(place, word)| {
            (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 32 * place + bit)
        });
        Ok(bits.map(|code| code as f32).collect())
    }
}

/// Codes up to this are exact in `f32`.
const MOST_CODES: usize = 1 << 24;

const NONE: u8 = 0;
const ZEROS: u8 = 1;
const NAN: u8 = 2;

fn missing_type(decision: u8) -> u8 {
    decision >> 2 & 3
}

fn is_default_left(decision: u8) -> bool {
    decision & 2 != 0
}

/// The finite `f32` next to this number, the lower one of two equally near.
fn nearest(number: f64) -> f32 {
    let near = (number as f32).clamp(f32::MIN, f32::MAX);
    let (own, lower) = (f64::from(near), f64::from(near.next_down()));
    if own > number && own - number == number - lower { near.next_down() } else { near }
}

/// The lines after the last tree.
#[derive(Default)]
struct Footer<'a> {
    /// The categorical columns.
    columns: Vec<usize>,
    /// The categories of the training data, in JSON.
    pandas: Option<&'a str>,
}

impl<'a> Footer<'a> {
    fn read(lines: impl Iterator<Item = &'a str>) -> Self {
        let mut footer = Self::default();
        for line in lines {
            if let Some(list) = line.strip_prefix("[categorical_feature: ") {
                let list = list.trim_end_matches(']').split(',');
                // Names come in this line as well, but pandas' categories have numbers.
                footer.columns = list.filter_map(|column| column.trim().parse().ok()).collect();
            } else if let Some(categories) = line.strip_prefix("pandas_categorical:") {
                footer.pandas = Some(categories);
            }
        }
        footer
    }

    /// The categories of each column that was given as one of texts or numbers, rather than as codes.
    fn categories(&self, header: &Header) -> Result<Vec<Option<Vec<Category>>>, String> {
        let dim = header.names.len();
        let mut all = vec![None; dim];
        let lists: Option<Vec<Vec<serde_json::Value>>> =
            serde_json::from_str(self.pandas.unwrap_or("null"))
                .map_err(|error| format!("`pandas_categorical`: {error}"))?;
        let lists = lists.unwrap_or_default();
        if lists.is_empty() {
            return Ok(all);
        }
        let mut columns = self.columns.clone();
        columns.sort_unstable();
        columns.dedup();
        if columns.len() != lists.len() {
            // `feature_infos` are intervals of numbers, and lists of categories.
            let listed = |info: &String| !info.starts_with('[') && info.contains(':');
            columns = (0..dim).filter(|&column| listed(&header.infos[column])).collect();
        }
        if columns.len() != lists.len() || columns.last().is_some_and(|&last| last >= dim) {
            return Err(format!(
                "`pandas_categorical` has the categories of {} columns, but {} are categorical",
                lists.len(),
                columns.len()
            ));
        }
        for (column, list) in columns.into_iter().zip(lists) {
            let own: Result<Vec<Category>, String> = list.iter().map(category).collect();
            let own =
                own.map_err(|problem| format!("column `{}`: {problem}", header.names[column]));
            all[column] = Some(own?);
        }
        Ok(all)
    }
}

// -------------------------------------------------------------------------------- lists of numbers

fn words(value: &str) -> Result<Vec<String>, String> {
    each(value, |word| Ok(word.to_owned())).and_then(|words: Vec<String>| {
        if words.len() > COLUMNS {
            return Err(format!("{} columns, expected at most {COLUMNS}", words.len()));
        }
        Ok(words)
    })
}

fn each<T>(list: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    list.split_ascii_whitespace().map(read).collect()
}

fn parsed<T: std::str::FromStr>(key: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{key}` has `{text}`, expected a number"))
}

fn whole(key: &str, text: &str) -> Result<usize, String> {
    parsed(key, text.trim())
}

fn real(key: &str, text: &str) -> Result<f64, String> {
    parsed(key, text.trim())
}
