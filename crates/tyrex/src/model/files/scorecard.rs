//! Scorecards: points per bin of each variable, and how their sum becomes a probability.
//!
//! `score = intercept + sum over variables of the points of the bin`, and the probability of the
//! favourable class is `1 / (1 + exp(-(score - offset) / factor))`: `offset` is the score at even odds,
//! and `factor ln 2` are the points that double the odds. Where more points mean more risk, `factor`
//! is below 0. A file is JSON:
//!
//! ```json
//! {"scorecard": 1, "factor": 28.85, "offset": 487.1, "intercept": 380, "classes": ["bad", "good"],
//!  "variables": [
//!   {"name": "age", "missing": 12, "bins": [
//!     {"values": [-9], "points": 3}, {"below": 25, "points": 8}, {"below": 40, "points": 21},
//!     {"points": 35}]},
//!   {"name": "housing", "missing": 0, "bins": [
//!     {"levels": ["own"], "points": 30}, {"levels": ["rent", "free"], "points": 10}]}]}
//! ```
//!
//! A number belongs to the bin that lists it in `values`, else to the first bin whose `below` it is
//! below; the last bin has no `below`. A text belongs to the bin that lists it in `levels`. `missing`
//! are the points of a missing cell, and of a text in no bin.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::Category;
use super::boosted::{Boosted, COLUMNS, Link, NODES, Part, category, grown};
use super::limited::Limited;
use crate::error::brief;
use crate::model::trees::{Aggregate, Comparison, TreeNode};

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    #[serde(rename = "scorecard")]
    version: u32,
    factor: f64,
    offset: f64,
    #[serde(default)]
    intercept: f64,
    classes: Option<[String; 2]>,
    variables: Limited<Variable, COLUMNS>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    missing: f64,
    bins: Limited<Bin, COLUMNS>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bin {
    points: f64,
    below: Option<f64>,
    values: Option<Limited<f64, COLUMNS>>,
    levels: Option<Limited<serde_json::Value, COLUMNS>>,
}

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Result<Boosted, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let card: Card = serde_path_to_error::deserialize(&mut text)
        .map_err(|error| format!("this is not a scorecard, or it is damaged: {error}"))?;
    card.boosted()
}

impl Card {
    fn boosted(self) -> Result<Boosted, String> {
        let Self { version, factor, offset, intercept, classes, variables } = self;
        if version != VERSION {
            return Err(format!("`scorecard` is {version}, expected the version {VERSION}"));
        }
        if !(factor.is_normal() && (1.0 / factor).is_normal()) {
            return Err(format!("`factor` is {}, expected a number other than 0", brief(factor)));
        }
        if variables.0.is_empty() {
            return Err("there are no variables".to_owned());
        }
        let (mut names, mut trees, mut categories) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = BTreeSet::new();
        let mut left = NODES;
        for (feature, variable) in variables.0.into_iter().enumerate() {
            let read = variable.tree(feature, factor, &mut left);
            let (tree, levels) =
                read.map_err(|problem| format!("variable `{}`: {problem}", variable.name))?;
            if !known.insert(variable.name.clone()) {
                return Err(format!("variable `{}` is listed twice", variable.name));
            }
            names.push(variable.name);
            trees.push(tree);
            categories.push(levels);
        }
        Ok(Boosted {
            objective: "scorecard".to_owned(),
            names: Some(names),
            categories,
            trees,
            aggregate: Aggregate::Sum,
            base: vec![(intercept - offset) / factor],
            link: Link::Logistic,
            has_link: true,
            labels: classes.map(Vec::from),
        })
    }
}

/// The bins of a variable, in the order of their numbers or of the codes of their levels.
struct Bins {
    /// A coordinate is in the first bin whose end it is below; the last bin has no end.
    ends: Vec<f32>,
    /// One number more than there are ends.
    points: Vec<f64>,
    /// Numbers with points of their own.
    special: Vec<(Vec<f32>, f64)>,
}

/// A node of a variable's tree.
#[derive(Debug, Clone, Copy)]
enum Key {
    /// Whether the cell is missing.
    Missing,
    /// The points of a missing cell.
    Absent,
    /// Whether it is one of the special numbers of this place.
    Special(usize),
    /// Their points.
    Value(usize),
    /// Which of these bins it is in.
    Between(usize, usize),
}

impl Variable {
    /// The tree, and the categories of a variable of texts.
    fn tree(
        &self,
        feature: usize,
        factor: f64,
        left: &mut usize,
    ) -> Result<(Vec<TreeNode>, Option<Vec<Category>>), String> {
        let levels = self.bins.0.iter().any(|bin| bin.levels.is_some());
        let (bins, categories) = if levels {
            let (bins, categories) = self.levels()?;
            (bins, Some(categories))
        } else {
            (self.numbers()?, None)
        };
        let leaf = |points: f64| Part::Leaf(vec![(0, (points / factor) as f32)]);
        let last = bins.points.len();
        let after = |place: usize| {
            if place < bins.special.len() { Key::Special(place) } else { Key::Between(0, last) }
        };
        let tree = grown(Key::Missing, usize::MAX, left, |key| {
            let branch = |comparison, threshold, missing, yes, no| Part::Branch {
                feature,
                comparison,
                threshold,
                missing,
                yes,
                no,
            };
            Ok(match key {
                // No number is below the least one.
                Key::Missing => branch(Comparison::Less, f32::MIN, true, Key::Absent, after(0)),
                Key::Absent => leaf(self.missing),
                Key::Special(place) => Part::Member {
                    feature,
                    values: bins.special[place].0.clone(),
                    missing: false,
                    yes: Key::Value(place),
                    no: after(place + 1),
                },
                Key::Value(place) => leaf(bins.special[place].1),
                Key::Between(from, to) if to - from == 1 => leaf(bins.points[from]),
                Key::Between(from, to) => {
                    let middle = from.midpoint(to);
                    let (yes, no) = (Key::Between(from, middle), Key::Between(middle, to));
                    branch(Comparison::Less, bins.ends[middle - 1], false, yes, no)
                }
            })
        });
        Ok((tree?, categories))
    }

    /// The bins of numbers.
    fn numbers(&self) -> Result<Bins, String> {
        let mut bins = Bins { ends: Vec::new(), points: Vec::new(), special: Vec::new() };
        let mut known = BTreeSet::new();
        for (place, bin) in self.bins.0.iter().enumerate() {
            let wrong = |problem: &str| Err(format!("bin {place}: {problem}"));
            match (&bin.values, bin.below) {
                (Some(_), Some(_)) => return wrong("both `values` and `below`"),
                (Some(values), None) => {
                    let exact = |&value: &f64| {
                        let near = value as f32;
                        (f64::from(near) == value && near.is_finite()).then_some(near)
                    };
                    if values.0.is_empty() {
                        return wrong("no values");
                    }
                    let mut own = Vec::with_capacity(values.0.len());
                    for value in &values.0 {
                        let shown = brief(*value);
                        let Some(near) = exact(value) else {
                            return wrong(&format!("the value {shown} is not a number of 32 bits"));
                        };
                        // Adding zero turns -0 into 0, which is the same number.
                        if !known.insert((near + 0.0).to_bits()) {
                            return wrong(&format!("the value {shown} is listed twice"));
                        }
                        own.push(near);
                    }
                    bins.special.push((own, bin.points));
                }
                (None, _) if bins.points.len() > bins.ends.len() => {
                    return wrong("it comes after the bin without `below`, which is the last");
                }
                (None, Some(below)) => {
                    let (end, shown) = (ceiling(below), brief(below));
                    if !end.is_finite() {
                        return wrong(&format!("`below` is {shown}, expected a number of 32 bits"));
                    }
                    if let Some(last) = bins.ends.last().filter(|last| **last >= end) {
                        return wrong(&format!(
                            "`below` is {shown}, expected more than {last}, also as a number of 32 \
                             bits"
                        ));
                    }
                    bins.ends.push(end);
                    bins.points.push(bin.points);
                }
                (None, None) => bins.points.push(bin.points),
            }
        }
        if bins.points.len() != bins.ends.len() + 1 {
            return Err("no bin without `below`, for the largest numbers".to_owned());
        }
        Ok(bins)
    }

    /// The bins of levels. Those of one bin have codes beside each other.
    fn levels(&self) -> Result<(Bins, Vec<Category>), String> {
        let mut bins = Bins { ends: Vec::new(), points: Vec::new(), special: Vec::new() };
        let mut categories = Vec::new();
        let mut known = BTreeSet::new();
        for (place, bin) in self.bins.0.iter().enumerate() {
            let (Some(levels), None, None) = (&bin.levels, &bin.values, bin.below) else {
                return Err(format!("bin {place}: expected `levels`, as in the others"));
            };
            if levels.0.is_empty() {
                return Err(format!("bin {place}: no levels"));
            }
            for level in &levels.0 {
                let level = category(level).map_err(|problem| format!("bin {place}: {problem}"))?;
                if !known.insert(level.clone()) {
                    return Err(format!("bin {place}: the level `{level}` is listed twice"));
                }
                categories.push(level);
            }
            if place > 0 {
                // Between the last code of the bin before and the first of this one.
                bins.ends.push((categories.len() - levels.0.len()) as f32 - 0.5);
            }
            bins.points.push(bin.points);
        }
        Ok((bins, categories))
    }
}

/// The least `f32` that is at least this number: a number of 32 bits is below both or below neither.
fn ceiling(number: f64) -> f32 {
    let near = number as f32;
    if f64::from(near) < number { near.next_up() } else { near }
}
