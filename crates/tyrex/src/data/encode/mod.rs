//! From rows to points and back.
//!
//! An [`Encoder`] is an ordered list of blocks, one per feature. Its laws, for every row
//! `r` of the schema and every point `p`:
//!
//! - `decode(encode(r)) == r`, up to what `clip` and `step` leave out;
//! - `encode(decode(snap(p))) == snap(p)`, up to the rounding of `f32`;
//! - `snap(snap(p)) == snap(p)`.

mod block;
mod fit;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use block::{Affine, Block, Coding};

use crate::data::number::Step;
use crate::data::schema::{MissingPolicy, Schema, SpecialAs};
use crate::data::value::{Row, Value};
use crate::error::{Error, Result};
use crate::points::{Point, Points};

/// The scales of numbers, by feature.
pub type Scale = BTreeMap<String, Affine>;

/// The encoder from rows to points: ordered blocks, one per feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Encoder {
    features: Vec<String>,
    blocks: Vec<Block>,
    places: Vec<Place>,
    dim: usize,
}

/// The stored form of an encoder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    features: Vec<String>,
    blocks: Vec<Block>,
}

/// Where a block's columns start, which value of a row it encodes, and its step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    start: usize,
    feature: usize,
    step: Option<Step>,
}

impl Encoder {
    /// An encoder from its blocks, in the order of their columns. `features` says the order
    /// of values in a row; each feature has one block.
    pub(crate) fn from_blocks(features: Vec<String>, blocks: Vec<Block>) -> Result<Self> {
        let mut places = Vec::with_capacity(blocks.len());
        let mut taken = vec![false; features.len()];
        let mut dim = 0;
        for block in &blocks {
            let Some(feature) = features.iter().position(|name| *name == block.feature) else {
                return Err(Error::feature(&block.feature, "is encoded but is not a feature"));
            };
            if std::mem::replace(&mut taken[feature], true) {
                return Err(Error::feature(&block.feature, "is encoded twice"));
            }
            places.push(Place { start: dim, feature, step: block.prepare()? });
            dim += block.width();
        }
        if let Some(left_out) = taken.iter().position(|taken| !taken) {
            return Err(Error::feature(&features[left_out], "is not encoded"));
        }
        if dim == 0 {
            return Err(Error::schema("an encoder needs at least one feature"));
        }
        Ok(Self { features, blocks, places, dim })
    }

    /// The same columns, with the schema's information about the values: order in a row, whole
    /// numbers, steps, ranges. For encoders from model files.
    pub(crate) fn constrained(self, schema: &Schema) -> Result<Self> {
        let mut blocks = self.blocks;
        for block in &mut blocks {
            constrain(block, schema)?;
        }
        let features = schema.features.iter().map(|feature| feature.name.clone()).collect();
        Self::from_blocks(features, blocks)
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The features, in the order of values in a row.
    pub fn features(&self) -> &[String] {
        &self.features
    }

    /// The blocks, in the order of their columns.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Each block with the range of its columns and its feature's position in a row.
    pub fn placed(&self) -> impl Iterator<Item = (&Block, std::ops::Range<usize>, usize)> {
        self.blocks
            .iter()
            .zip(&self.places)
            .map(|(block, place)| (block, place.start..place.start + block.width(), place.feature))
    }

    /// The number of columns that a model of another tool takes: all but those of missing values
    /// that it gets as such.
    pub(crate) fn model_dim(&self) -> usize {
        self.blocks.iter().map(Block::model_width).sum()
    }

    /// The same with all columns as columns of the model, for a network that was rewritten to take
    /// them.
    pub(crate) fn without_passing(&self) -> Self {
        let mut own = self.clone();
        own.blocks.iter_mut().for_each(|block| block.passes = false);
        own
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        self.blocks.iter().flat_map(Block::columns).collect()
    }

    /// The point of a row.
    pub fn encode(&self, row: &Row) -> Result<Point> {
        let mut point = vec![0.0; self.dim];
        self.encode_into(row, &mut point)?;
        Ok(Point::from(point))
    }

    /// The points of many rows.
    pub fn encode_rows(&self, rows: &[Row]) -> Result<Points> {
        let mut points = Points::zeros(rows.len(), self.dim);
        for (index, row) in rows.iter().enumerate() {
            self.encode_into(row, points.row_mut(index))?;
        }
        Ok(points)
    }

    fn encode_into(&self, row: &Row, point: &mut [f32]) -> Result<()> {
        let values = row.values();
        if values.len() != self.features.len() {
            return Err(Error::Dimension {
                what: "values of a row".to_owned(),
                expected: self.features.len(),
                got: values.len(),
            });
        }
        for (block, columns, feature) in self.placed() {
            block.encode(&values[feature], &mut point[columns])?;
        }
        Ok(())
    }

    /// The row whose point is nearest. A coordinate that is not a number counts as 0.
    ///
    /// # Panics
    /// If the dimension of the point differs.
    pub fn decode(&self, point: &[f32]) -> Row {
        assert_eq!(point.len(), self.dim, "a point of another dimension");
        let mut values = vec![Value::Missing; self.features.len()];
        for ((block, columns, feature), place) in self.placed().zip(&self.places) {
            values[feature] = block.decode(place.step.as_ref(), &point[columns]);
        }
        Row::from_checked(values)
    }

    /// The values of a point, which need not be a valid row: numbers may lie between their steps
    /// and outside their ranges, levels are the nearest ones. The point of a row gives the row.
    ///
    /// Models that take rows score the neighbours of a point in this way.
    ///
    /// # Panics
    /// If the dimension of the point differs.
    pub fn decode_freely(&self, point: &[f32]) -> Vec<Value> {
        assert_eq!(point.len(), self.dim, "a point of another dimension");
        let mut values = vec![Value::Missing; self.features.len()];
        for ((block, columns, feature), place) in self.placed().zip(&self.places) {
            values[feature] = block.decode_freely(place.step.as_ref(), &point[columns]);
        }
        values
    }

    /// Moves a point to the nearest one that a row has: one level on in each one-hot group
    /// (the largest entry, the first of equals), whole numbers, steps, ranges.
    ///
    /// # Panics
    /// If the dimension of the point differs.
    pub fn snap(&self, point: &mut [f32]) {
        assert_eq!(point.len(), self.dim, "a point of another dimension");
        for ((block, columns, _), place) in self.placed().zip(&self.places) {
            block.snap(place.step.as_ref(), &mut point[columns]);
        }
    }
}

impl TryFrom<Parts> for Encoder {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        Self::from_blocks(parts.features, parts.blocks)
    }
}

impl From<Encoder> for Parts {
    fn from(encoder: Encoder) -> Self {
        Self { features: encoder.features, blocks: encoder.blocks }
    }
}

/// Adds the schema's information about the feature's values to a block.
fn constrain(block: &mut Block, schema: &Schema) -> Result<()> {
    let Some(feature) = schema.position(&block.feature).map(|i| &schema.features[i]) else {
        return Err(Error::feature(&block.feature, "is an input of the model but no feature"));
    };
    let wrong = |problem: &str| Err(Error::feature(&feature.name, problem));
    match &mut block.coding {
        Coding::Number { range, step, special, .. } if feature.kind.is_number() => {
            *range = feature.range.unwrap_or(*range);
            *step = fit::step_of(feature);
            *special = [SpecialAs::Number, SpecialAs::Level]
                .iter()
                .flat_map(|&treated| schema.special_values(feature, treated))
                .copied()
                .collect();
        }
        Coding::Number { affine, .. } => {
            let levels = feature.kind.levels().to_vec();
            let Some(codes) = levels.iter().map(Value::number).collect::<Option<Vec<f64>>>() else {
                return wrong("the model takes it as a number, but its levels are text");
            };
            block.coding = Coding::Code { levels, codes, affine: *affine };
        }
        Coding::Code { levels, .. } | Coding::OneHot { levels, .. } => {
            if feature.kind.is_number() {
                return wrong("the model takes it as levels, expected kind `categorical`");
            }
            let known = feature.kind.levels();
            if let Some(level) = known.iter().find(|level| !levels.contains(level)) {
                return wrong(&format!("the model does not know the level `{level}`"));
            }
            let missing = schema.missing_policy(feature).keeps_missing();
            let extra = levels.iter().find(|level| match level {
                Value::Missing => !missing,
                level => !known.contains(level),
            });
            if let Some(level) = extra {
                return wrong(&format!("the model has the level `{level}`, which is not listed"));
            }
        }
    }
    let takes_missing = match &block.coding {
        Coding::OneHot { levels, .. } => levels.contains(&Value::Missing),
        Coding::Number { .. } | Coding::Code { .. } => block.beside.contains(&Value::Missing),
    };
    match schema.missing_policy(feature) {
        MissingPolicy::Level if !takes_missing => wrong(
            "missing values are a level, but the model has no column for them; set `missing` to \
             \"pass\" if the model takes missing values or imputes them, to { fill = value } with \
             the value of its training, or to \"drop-row\"",
        ),
        MissingPolicy::Pass if !takes_missing => {
            *block = block.clone().passing()?;
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"
format_version = 1
[label]
column = "y"
favourable = 1
[[feature]]
name = "age"
kind = "integer"
range = [18, 99]
[[feature]]
name = "colour"
kind = "categorical"
levels = ["red", "green"]
[[feature]]
name = "grade"
kind = "ordinal"
levels = [1, 2, 4]
"#;

    fn imported() -> Encoder {
        let features = ["grade", "age", "colour"].map(str::to_owned).to_vec();
        let blocks = vec![
            Block::one_hot("colour", vec!["green".into(), "red".into()]),
            Block::number("age", Affine { offset: 50.0, scale: 0.1 }),
            Block::number("grade", Affine::IDENTITY),
        ];
        Encoder::from_blocks(features, blocks).unwrap()
    }

    fn numbers(row: &Row) -> Vec<Option<f64>> {
        row.values().iter().map(Value::number).collect()
    }

    #[test]
    fn blocks_of_a_model_encode_rows_in_their_own_order() {
        let encoder = imported();
        assert_eq!(encoder.columns(), ["colour=green", "colour=red", "age", "grade"]);
        let row = Row::from_checked(vec![2.0.into(), 30.0.into(), "red".into()]);
        let point = encoder.encode(&row).unwrap();
        assert_eq!(point.as_slice(), [0.0, 1.0, -2.0, 2.0]);
        assert_eq!(encoder.decode(point.as_slice()), row);
    }

    #[test]
    fn a_schema_adds_what_it_knows_to_the_blocks_of_a_model() {
        let schema = Schema::from_toml(SCHEMA).unwrap();
        let encoder = imported().constrained(&schema).unwrap();
        // Rows are now in the order of the schema; 30.4 years are 30, grade 2.9 is 2.
        let row = encoder.decode(&[0.9, 0.1, -1.96, 2.9]);
        assert_eq!(row.values()[1], Value::from("green"));
        assert_eq!(numbers(&row), [Some(30.0), None, Some(2.0)]);
        // Outside the range, and after the last grade.
        let row = encoder.decode(&[0.5, 0.5, 100.0, 100.0]);
        assert_eq!(row.values()[1], Value::from("green"));
        assert_eq!(numbers(&row), [Some(99.0), None, Some(4.0)]);
    }

    #[test]
    fn a_schema_that_does_not_fit_the_model_is_refused() {
        let cases = [
            (
                ("\"green\"]", "\"green\", \"blue\"]"),
                "schema, feature `colour`: the model does not know the level `blue`",
            ),
            (
                (", \"green\"]", "]"),
                "schema, feature `colour`: the model has the level `green`, which is not listed",
            ),
            (
                ("[1, 2, 4]", "[\"a\", \"b\"]"),
                "schema, feature `grade`: the model takes it as a number, but its levels are text",
            ),
            (
                ("\"age\"", "\"years\""),
                "schema, feature `age`: is an input of the model but no feature",
            ),
            (
                ("range = [18, 99]", "missing = \"level\""),
                "schema, feature `age`: missing values are a level, but the model has no column for \
                 them; set `missing` to \"pass\" if the model takes missing values or imputes them, \
                 to { fill = value } with the value of its training, or to \"drop-row\"",
            ),
        ];
        for ((from, to), expected) in cases {
            let schema = Schema::from_toml(&SCHEMA.replacen(from, to, 1)).unwrap();
            assert_eq!(imported().constrained(&schema).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn blocks_that_contradict_each_other_are_refused() {
        let number = |affine| Block::number("a", affine);
        let cases = [
            (vec![], "schema, feature `a`: is not encoded"),
            (vec![number(Affine::IDENTITY); 2], "schema, feature `a`: is encoded twice"),
            (
                vec![Block::number("b", Affine::IDENTITY)],
                "schema, feature `b`: is encoded but is not a feature",
            ),
            (
                vec![number(Affine { offset: 0.0, scale: 0.0 })],
                "schema, feature `a`: is scaled by 0 after subtracting 0, expected finite numbers and \
                 a scale that is not 0",
            ),
            (vec![Block::one_hot("a", vec![])], "schema, feature `a`: 0 levels with 0 columns"),
        ];
        for (blocks, expected) in cases {
            let error = Encoder::from_blocks(vec!["a".to_owned()], blocks).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn coordinates_that_are_no_numbers_do_no_harm() {
        let encoder = imported();
        let mut point = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY, f32::NAN];
        encoder.snap(&mut point);
        assert!(point.iter().all(|x| x.is_finite()));
        let row = encoder.decode(&[f32::NAN; 4]);
        assert_eq!(numbers(&row), [Some(0.0), Some(50.0), None]);
    }

    #[test]
    fn a_row_of_another_schema_is_refused() {
        let row = Row::from_checked(vec!["x".into(), 30.0.into(), "red".into()]);
        let error = imported().encode(&row).unwrap_err().to_string();
        assert_eq!(error, "schema, feature `grade`: found `x`, expected a number");
        let row = Row::from_checked(vec![1.0.into()]);
        let error = imported().encode(&row).unwrap_err().to_string();
        assert_eq!(error, "values of a row: expected 3, got 1");
    }
}
