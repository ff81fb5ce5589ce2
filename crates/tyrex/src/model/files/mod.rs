//! Model files: one reader for every kind that tyrex takes.
//!
//! [`ModelFile::read`] turns a file into a native model, [`Core`]. The kind of the file is found in
//! its content: ONNX, the own files of XGBoost, LightGBM and CatBoost, and scorecards. The
//! preprocessing of raw columns is kept separately, as [`InputBlock`]s.

mod boosted;
mod catboost;
mod kind;
mod lightgbm;
mod limited;
mod missing;
mod preprocessing;
mod scorecard;
mod standardise;
#[cfg(test)]
mod tests;
mod ubjson;
mod xgboost;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Mlp, Model, TreeEnsemble, onnx};
use crate::error::{Error, Result};
use crate::file::read_within;
use crate::points::Points;
use kind::FileKind;
pub(crate) use kind::is_model_text;

/// The largest model file, in bytes.
pub(crate) const FILE_BYTES: u64 = 512 << 20;

/// How to read a model file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The output of an ONNX graph that holds the scores; needed only if several do.
    pub output: Option<String>,
    /// The class whose probability the model gives; needed from three classes on. Of two
    /// classes it is the second.
    pub favourable: Option<Favourable>,
    /// Whether the output holds logits, to which a sigmoid or softmax must be added.
    pub logits: bool,
}

/// The favourable class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Favourable {
    /// By its index, from 0.
    Class(usize),
    /// By the name the model gives it.
    Label(String),
}

/// A raw column the model takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputColumn {
    /// The input's name, with the column's number where an input has several.
    pub name: String,
    /// The type of its cells.
    pub kind: InputKind,
}

/// The type of an input column's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// Any number.
    Number,
    /// Whole numbers.
    Integer,
    /// Texts.
    Text,
}

/// The inputs of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inputs {
    /// One matrix of numbers, with columns in a fixed order and without names.
    Matrix {
        /// The number of columns.
        columns: usize,
    },
    /// Named columns.
    Columns(Vec<InputColumn>),
}

impl Inputs {
    /// The number of raw columns.
    pub fn len(&self) -> usize {
        match self {
            Self::Matrix { columns } => *columns,
            Self::Columns(columns) => columns.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The preprocessing of one raw column.
#[derive(Debug, Clone, PartialEq)]
pub enum InputBlock {
    /// One feature, `scale * x + shift`.
    Number {
        /// The raw column.
        column: usize,
        /// The replacement of a missing `x`.
        missing: Option<f64>,
        /// The factor.
        scale: f64,
        /// The summand.
        shift: f64,
    },
    /// One feature per category: 1 where the column has it, else 0.
    OneHot {
        /// The raw column.
        column: usize,
        /// The categories, in the order of the features.
        categories: Vec<Category>,
    },
    /// One feature: the place of the category in the list, from 0. Any other cell is missing.
    Code {
        /// The raw column.
        column: usize,
        /// The categories, in the order of their codes.
        categories: Vec<Category>,
    },
}

impl InputBlock {
    /// The raw column the block reads.
    pub fn column(&self) -> usize {
        match self {
            Self::Number { column, .. }
            | Self::OneHot { column, .. }
            | Self::Code { column, .. } => *column,
        }
    }

    /// The number of features the block makes.
    pub fn width(&self) -> usize {
        match self {
            Self::Number { .. } | Self::Code { .. } => 1,
            Self::OneHot { categories, .. } => categories.len(),
        }
    }
}

/// A category of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// A whole number; a column matches when it is this number once its fraction is cut off.
    Integer(i64),
    /// A text.
    Text(Arc<str>),
}

/// One raw cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InputCell<'a> {
    /// A number; NaN where it is missing.
    Number(f64),
    /// A text.
    Text(&'a str),
}

impl Category {
    /// Whether a cell is of this category.
    pub fn matches(&self, cell: InputCell) -> bool {
        match (self, cell) {
            (Self::Integer(own), InputCell::Number(number)) => number.trunc() == *own as f64,
            (Self::Text(own), InputCell::Text(text)) => &**own == text,
            _ => false,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The model without its preprocessing: from points to scores.
#[derive(Debug, Clone, PartialEq)]
pub enum Core {
    /// A dense stack, with gradients.
    Mlp(Mlp),
    /// Trees, without gradients.
    Trees(TreeEnsemble),
}

impl Core {
    /// The model.
    pub fn model(&self) -> &dyn Model {
        match self {
            Self::Mlp(mlp) => mlp,
            Self::Trees(trees) => trees,
        }
    }

    /// The model, shared.
    pub(crate) fn shared(self) -> Arc<dyn Model> {
        match self {
            Self::Mlp(network) => Arc::new(network),
            Self::Trees(trees) => Arc::new(trees),
        }
    }

    /// The network; an error if the core is not one.
    pub fn into_network(self) -> Result<Mlp> {
        match self {
            Self::Mlp(network) => Ok(network),
            Self::Trees(_) => Err(Error::InvalidModel("trees, expected a network".to_owned())),
        }
    }

    /// Whether its score is discontinuous.
    pub(crate) fn has_thresholds(&self) -> bool {
        matches!(self, Self::Trees(_))
    }
}

/// A model read from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The raw columns that the model takes.
    pub inputs: Inputs,
    /// The preprocessing of the raw columns, in the order of the core's features.
    pub preprocessing: Vec<InputBlock>,
    /// The model after the preprocessing.
    pub core: Core,
    /// The output read, or the objective of a file that has no named outputs.
    pub output: String,
    /// The number of classes.
    pub classes: usize,
    /// The class whose probability the model gives.
    pub favourable: usize,
    /// The names of the classes, where the file has them.
    pub labels: Option<Vec<String>>,
    /// The file's metadata, from [`onnx::write()`] or another tool.
    pub metadata: BTreeMap<String, String>,
}

impl ModelFile {
    /// Reads a model file; external data is looked for in its folder.
    pub fn read(path: &Path, options: &ImportOptions) -> Result<Self> {
        let bytes = read_within(path, FILE_BYTES)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::decode(bytes, Some(folder), options)
            .map_err(|problem| Error::Model { file: path.to_owned(), problem })
    }

    /// Reads a model from memory; external data is refused.
    pub fn from_bytes(bytes: Vec<u8>, options: &ImportOptions) -> Result<Self> {
        Self::decode(bytes, None, options).map_err(Error::InvalidModel)
    }

    fn decode(
        bytes: Vec<u8>,
        folder: Option<&Path>,
        options: &ImportOptions,
    ) -> Result<Self, String> {
        match FileKind::of(&bytes)? {
            FileKind::Onnx => onnx::decode(bytes, folder, options).map_err(kind::listed_beside),
            FileKind::XgboostJson => xgboost::json(&bytes)?.model(options),
            FileKind::XgboostUbj => xgboost::ubj(&bytes)?.model(options),
            FileKind::LightgbmText => lightgbm::read(&bytes)?.model(options),
            FileKind::CatboostJson => catboost::read(&bytes)?.model(options),
            FileKind::Scorecard => scorecard::read(&bytes)?.model(options),
        }
    }

    /// The model after the preprocessing.
    pub fn model(&self) -> &dyn Model {
        self.core.model()
    }

    /// Turns raw rows, one cell per input column, into the features of the core.
    pub fn encode<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a [InputCell<'a>]>,
    ) -> Result<Points> {
        let dim = self.preprocessing.iter().map(InputBlock::width).sum();
        let mut values = Vec::new();
        for (row, cells) in rows.into_iter().enumerate() {
            if cells.len() != self.inputs.len() {
                return Err(Error::Dimension {
                    what: format!("cells of row {row}"),
                    expected: self.inputs.len(),
                    got: cells.len(),
                });
            }
            for block in &self.preprocessing {
                match (block, cells[block.column()]) {
                    (InputBlock::OneHot { categories, .. }, cell) => {
                        values.extend(
                            categories.iter().map(|c| f32::from(u8::from(c.matches(cell)))),
                        );
                    }
                    (InputBlock::Code { categories, .. }, cell) => {
                        let code = categories.iter().position(|c| c.matches(cell));
                        values.push(code.map_or(f32::NAN, |code| code as f32));
                    }
                    (
                        InputBlock::Number { missing, scale, shift, .. },
                        InputCell::Number(number),
                    ) => {
                        let known =
                            if number.is_nan() { missing.unwrap_or(number) } else { number };
                        values.push((scale * known + shift) as f32);
                    }
                    (InputBlock::Number { column, .. }, InputCell::Text(text)) => {
                        return Err(Error::InvalidModel(format!(
                            "row {row}, input column {column}: found `{text}`, expected a number"
                        )));
                    }
                }
            }
        }
        Points::from_rows(dim, values)
    }
}

/// The class whose probability is wanted.
pub(super) fn choose_class(
    labels: &[String],
    classes: usize,
    wanted: Option<&Favourable>,
) -> Result<usize, String> {
    match wanted {
        None if classes == 2 => Ok(1),
        None => Err(format!("{classes} classes {labels:?}: say which one is favourable")),
        Some(Favourable::Class(class)) if *class < classes => Ok(*class),
        Some(Favourable::Class(class)) => {
            Err(format!("no class {class}; there are {classes}, counted from 0"))
        }
        Some(Favourable::Label(label)) => labels
            .iter()
            .position(|own| own == label)
            .filter(|&class| class < classes)
            .ok_or_else(|| format!("no class is called `{label}`; the model names {labels:?}")),
    }
}
