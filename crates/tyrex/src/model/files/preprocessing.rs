//! The preprocessing of a pipeline, as an encoder or folded into the model.

use super::{Category, Core, InputBlock, Inputs, ModelFile};
use crate::data::encode::{self, Affine, Coding};
use crate::data::{Encoder, Schema, Value};
use crate::error::{Error, Result};
use crate::model::trees::TreeEnsemble;
use crate::model::{Dense, Mlp};

impl Category {
    fn value(&self) -> Value {
        match self {
            Self::Integer(number) => Value::Number(*number as f64),
            Self::Text(text) => Value::Text(text.to_string()),
        }
    }
}

impl ModelFile {
    /// The preprocessing as an encoder of the schema's rows, for a model that takes raw columns.
    ///
    /// Input columns are features by name, or by position if the model has no names for them. A
    /// value that the graph would impute stays missing here: the schema's own policy applies.
    pub fn encoder(&self, schema: &Schema) -> Result<Encoder> {
        let features = self.features(schema)?;
        let mut blocks = Vec::with_capacity(self.preprocessing.len());
        for block in &self.preprocessing {
            let name = &features[block.column()];
            blocks.push(match block {
                InputBlock::Number { scale, shift, .. } => {
                    let affine = Affine { offset: -shift / scale, scale: *scale };
                    encode::Block::number(name, affine)
                }
                InputBlock::OneHot { categories, .. } => one_hot(name, categories, schema),
                InputBlock::Code { categories, .. } => {
                    let levels = categories.iter().map(Category::value).collect();
                    encode::Block::codes(name, levels)
                }
            });
        }
        Encoder::from_blocks(features, blocks)?.constrained(schema)
    }

    /// The name of each input column's feature.
    fn features(&self, schema: &Schema) -> Result<Vec<String>> {
        let names: Vec<String> = schema.features.iter().map(|f| f.name.clone()).collect();
        if let Inputs::Columns(columns) = &self.inputs
            && columns.iter().all(|column| names.contains(&column.name))
        {
            return Ok(columns.iter().map(|column| column.name.clone()).collect());
        }
        if names.len() != self.inputs.len() {
            return Err(Error::Dimension {
                what: "features of the schema, for a model whose input columns have other names"
                    .into(),
                expected: self.inputs.len(),
                got: names.len(),
            });
        }
        Ok(names)
    }

    /// The model with its preprocessing folded in: it takes the input columns directly. For a model
    /// that takes points in tyrex's encoding, or columns that are already numbers.
    pub fn folded(&self) -> Result<Core> {
        let mut places = Vec::with_capacity(self.preprocessing.len());
        for block in &self.preprocessing {
            match block {
                InputBlock::Number { column, missing: None, scale, shift } => {
                    places.push((*column, *scale, *shift));
                }
                other => {
                    return Err(Error::InvalidModel(format!(
                        "input column {} is imputed or encoded inside the model, so it takes raw \
                         columns, not points",
                        other.column()
                    )));
                }
            }
        }
        let dim = self.inputs.len();
        let unchanged = places.len() == dim
            && places.iter().enumerate().all(|(i, place)| *place == (i, 1.0, 0.0));
        match &self.core {
            core if unchanged => Ok(core.clone()),
            Core::Mlp(network) => fold_network(network, dim, &places).map(Core::Mlp),
            Core::Trees(trees) => fold_trees(trees, dim, &places).map(Core::Trees),
        }
    }
}

/// A one-hot block, or a code where one of two levels was dropped.
fn one_hot(name: &str, categories: &[Category], schema: &Schema) -> encode::Block {
    let known = schema.position(name).map(|i| schema.features[i].kind.levels()).unwrap_or_default();
    if let ([category], [_, _]) = (categories, known) {
        let on = category.value();
        let codes = known.iter().map(|level| f64::from(u8::from(*level == on))).collect();
        let coding = Coding::Code { levels: known.to_vec(), codes, affine: Affine::IDENTITY };
        let beside = Vec::new();
        return encode::Block { feature: name.into(), coding, beside, passes: false };
    }
    encode::Block::one_hot(name, categories.iter().map(Category::value).collect())
}

/// Feature `j` was `scale * x + shift` of an input column; takes the column.
pub(super) fn fold_network(network: &Mlp, dim: usize, places: &[(usize, f64, f64)]) -> Result<Mlp> {
    let mut layers = network.layers();
    let Some(first) = layers.first_mut() else {
        return Err(Error::InvalidModel("a network without layers".into()));
    };
    let outputs = first.bias.len();
    let mut weights = vec![0.0_f64; dim * outputs];
    let mut bias: Vec<f64> = first.bias.iter().map(|&b| f64::from(b)).collect();
    for (row, &(column, scale, shift)) in first.weights.chunks_exact(outputs).zip(places) {
        for (output, &weight) in row.iter().enumerate() {
            weights[column * outputs + output] += scale * f64::from(weight);
            bias[output] += shift * f64::from(weight);
        }
    }
    let narrow = |values: Vec<f64>| values.into_iter().map(|v| v as f32).collect();
    *first = Dense { weights: narrow(weights), bias: narrow(bias), activation: first.activation };
    Mlp::new(dim, &layers, network.output())
}

/// The same for trees.
pub(super) fn fold_trees(
    ensemble: &TreeEnsemble,
    dim: usize,
    places: &[(usize, f64, f64)],
) -> Result<TreeEnsemble> {
    let mut trees = ensemble.as_given();
    for node in trees.iter_mut().flatten() {
        if let Some(feature) = node.feature_mut() {
            let (column, scale, shift) = places[*feature];
            *feature = column;
            node.ask_before_scaling(scale, shift);
        }
    }
    let (aggregate, base) = (ensemble.aggregate(), ensemble.base().to_vec());
    TreeEnsemble::new(dim, &trees, aggregate, base, ensemble.transform())
}
