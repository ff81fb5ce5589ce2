//! From the rows of a schema to the points of an imported model.

use super::Reference;
use super::import::check_meaning;
use crate::data::encode::{Affine, Block, Coding};
use crate::data::schema::{ModelInput, Scaling};
use crate::data::{Encoder, Feature, Schema, Value, listed};
use crate::error::{Error, Result};
use crate::model::files::{Category, Core, InputBlock as Step, InputColumn, Inputs, ModelFile};
use crate::model::trees::Substitute;

/// The encoding of the columns that the model file takes: the one in the file, the one of a model
/// in use beside it, or the one fitted on the data. `None` if the file takes raw columns.
pub(super) fn columns(
    data: &Reference,
    model: &ModelFile,
    input: ModelInput,
    beside: Option<&Encoder>,
) -> Result<Option<Encoder>> {
    let schema = data.schema();
    check_meaning(model, schema)?;
    if input == ModelInput::Raw {
        return Ok(None);
    }
    let encoder = match (stored_encoder(model, schema)?, beside) {
        (Some(stored), _) => stored,
        (None, Some(beside)) => beside.clone(),
        (None, None) => fitted(data)?,
    };
    Ok(Some(encoder))
}

/// The encoder in the metadata of a file, for the features of the schema.
pub(super) fn stored_encoder(model: &ModelFile, schema: &Schema) -> Result<Option<Encoder>> {
    let Some(text) = model.metadata.get("encoder") else { return Ok(None) };
    let stored: Encoder = serde_json::from_str(text).map_err(|error| {
        Error::InvalidModel(format!("the encoder in its metadata is damaged: {error}"))
    })?;
    let features = schema.features.iter().map(|feature| feature.name.clone()).collect();
    Encoder::from_blocks(features, stored.blocks().to_vec()).map(Some)
}

/// The encoder from rows to the points the model's core takes. `columns` is the encoding of the
/// columns that the file takes, `None` for raw columns, which the file encodes itself.
pub(super) fn encoder(
    schema: &Schema,
    model: &ModelFile,
    columns: Option<&Encoder>,
) -> Result<Encoder> {
    let encoder = match columns {
        Some(columns) if model.inputs.len() != columns.model_dim() => {
            return Err(mismatch(&model_columns(columns), "encoded columns", model.inputs.len()));
        }
        Some(columns) => followed_by(columns, &model.preprocessing)?,
        None => raw(schema, model)?.constrained(schema)?,
    };
    if encoder.model_dim() != model.model().dim() {
        return Err(mismatch(&model_columns(&encoder), "encoded columns", model.model().dim()));
    }
    Ok(encoder)
}

/// The core as a function of the encoder's points: missing values that the encoder passes become
/// NaN, or the values that the model imputes.
pub(super) fn core(encoder: &Encoder, model: ModelFile) -> Result<Core> {
    let imputed: Vec<Option<f64>> = model
        .preprocessing
        .iter()
        .flat_map(|step| match step {
            Step::Number { missing, scale, shift, .. } => {
                vec![missing.map(|value| scale * value + shift)]
            }
            Step::OneHot { categories, .. } => vec![None; categories.len()],
            Step::Code { .. } => vec![None],
        })
        .collect();
    let (mut columns, mut substitutes) = (Vec::new(), Vec::new());
    for (block, range, _) in encoder.placed() {
        let value = imputed.get(columns.len()).copied().flatten();
        let (column, indicator) = (range.start, range.end - 1);
        columns.extend(range.take(block.model_width()));
        if !block.passes {
            continue;
        }
        if value.is_none() && !model.core.has_thresholds() {
            return Err(Error::feature(
                &block.feature,
                "`missing = \"pass\"` leaves missing values to the model, but the model is a network \
                 without an imputer, which cannot take them; set `missing` to { fill = value } with \
                 the value of its training, or to \"drop-row\"",
            ));
        }
        let value = value.map_or(f32::NAN, |value| value as f32);
        substitutes.push(Substitute { column, indicator, value });
    }
    if substitutes.is_empty() {
        return Ok(model.core);
    }
    model.core.with_substitutes(encoder.dim(), &columns, &substitutes)
}

/// The names of the columns that a model takes.
fn model_columns(encoder: &Encoder) -> Vec<String> {
    let own = |block: &Block| block.columns().take(block.model_width()).collect::<Vec<_>>();
    encoder.blocks().iter().flat_map(own).collect()
}

fn mismatch(ours: &[String], what: &str, theirs: usize) -> Error {
    Error::Dimension {
        what: format!("inputs of the model, one for each of the {what} {}", listed(ours)),
        expected: ours.len(),
        got: theirs,
    }
}

/// The encoder of the schema, with scaling fitted on the rows the model was trained on.
fn fitted(data: &Reference) -> Result<Encoder> {
    if let Some(encoder) = data.fitted_encoder()? {
        return Ok(encoder);
    }
    let schema = data.schema();
    let scaled = |feature: &&Feature| schema.scaling(feature) != Scaling::None;
    match schema.features.iter().find(scaled) {
        None => Encoder::fit(schema, &data.rows().iter().collect::<Vec<_>>()),
        Some(feature) => Err(Error::feature(
            &feature.name,
            "its scaling must be fitted on the rows the model was trained on, but the model file \
             holds no encoder and no `[split]` by column or file names those rows",
        )),
    }
}

/// The encoder, followed by the operations of the model file on each encoded column.
fn followed_by(encoder: &Encoder, steps: &[Step]) -> Result<Encoder> {
    let columns = model_columns(encoder);
    let mut then = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Number { column, scale, shift, .. } if *column == index => {
                then.push(affine(&columns[index], *scale, *shift)?);
            }
            _ => {
                return Err(Error::InvalidModel(format!(
                    "it encodes column {} itself, but the schema says that it takes encoded \
                     columns; if it takes raw columns, set `input = \"raw\"` under `[model]`",
                    step.column()
                )));
            }
        }
    }
    if then.len() != columns.len() {
        return Err(mismatch(&columns, "encoded columns", then.len()));
    }
    if then.iter().all(|affine| *affine == Affine::IDENTITY) {
        return Ok(encoder.clone());
    }
    let mut blocks = Vec::with_capacity(encoder.blocks().len());
    let mut rest = then.as_slice();
    for block in encoder.blocks() {
        let (own, others) = rest.split_at(block.model_width());
        blocks.push(block_followed_by(block.clone(), own)?);
        rest = others;
    }
    Encoder::from_blocks(encoder.features().to_vec(), blocks)
}

fn block_followed_by(mut block: Block, then: &[Affine]) -> Result<Block> {
    let beside = block.beside.len() - usize::from(block.passes);
    let (own, others) = then.split_at(then.len() - beside);
    // Indicator columns beside a number, and the number's 0 where one is set, stay unchanged.
    let stay = others.iter().all(|affine| *affine == Affine::IDENTITY);
    if beside > 0 && !(stay && own[0].offset == 0.0) {
        return Err(Error::feature(
            &block.feature,
            "the model file scales its columns once more, which special or missing values with \
             columns of their own do not allow",
        ));
    }
    match &mut block.coding {
        Coding::Number { affine, .. } | Coding::Code { affine, .. } => {
            *affine = composed(*affine, own[0]);
        }
        Coding::OneHot { affines, .. } => {
            for (affine, &then) in affines.iter_mut().zip(own) {
                *affine = composed(*affine, then);
            }
        }
    }
    Ok(block)
}

/// `((x - o1) s1 - o2) s2 = (x - (o1 + o2 / s1)) s1 s2`
fn composed(first: Affine, then: Affine) -> Affine {
    Affine { offset: first.offset + then.offset / first.scale, scale: first.scale * then.scale }
}

/// `scale x + shift` as `(x - offset) scale`.
fn affine(column: &str, scale: f64, shift: f64) -> Result<Affine> {
    if scale == 0.0 || !scale.is_finite() || !shift.is_finite() {
        return Err(Error::feature(
            column,
            format!("the model scales it by {scale}, so nothing of it is left; leave it out"),
        ));
    }
    let offset = if shift == 0.0 { 0.0 } else { -shift / scale };
    Ok(Affine { offset, scale })
}

/// The model takes raw columns and encodes them itself.
fn raw(schema: &Schema, model: &ModelFile) -> Result<Encoder> {
    let feature_of = assigned(schema, &model.inputs)?;
    let mut blocks = Vec::with_capacity(model.preprocessing.len());
    for step in &model.preprocessing {
        let feature = feature_of[step.column()];
        blocks.push(match step {
            Step::Number { scale, shift, .. } => {
                let affine = affine(&feature.name, *scale, *shift)?;
                match truth_values(feature) {
                    Some(coding) => coded(feature, coding, affine),
                    None => Block::number(&feature.name, affine),
                }
            }
            Step::Code { categories, .. } => {
                let known = feature.kind.levels();
                let codes = categories.iter().map(|category| level(feature, category)).zip(0..);
                // The model may know levels that the schema does not allow.
                let codes = codes.filter(|(level, _)| known.is_empty() || known.contains(level));
                let codes = codes.map(|(level, code)| (level, f64::from(code)));
                coded(feature, codes.unzip(), Affine::IDENTITY)
            }
            Step::OneHot { categories, .. } if is_switch(feature, categories) => {
                switch(feature, &categories[0])
            }
            Step::OneHot { categories, .. } => {
                let levels = categories.iter().map(|category| level(feature, category)).collect();
                Block::one_hot(&feature.name, levels)
            }
        });
    }
    let features = schema.features.iter().map(|feature| feature.name.clone()).collect();
    Encoder::from_blocks(features, blocks)
}

/// Whether the model has one column for a feature of two levels, one of which it names.
fn is_switch(feature: &Feature, categories: &[Category]) -> bool {
    let levels = feature.kind.levels();
    matches!(categories, [only] if levels.len() == 2 && levels.contains(&level(feature, only)))
}

/// One column: a code for each level.
fn coded(feature: &Feature, (levels, codes): (Vec<Value>, Vec<f64>), affine: Affine) -> Block {
    let coding = Coding::Code { levels, codes, affine };
    Block { feature: feature.name.clone(), coding, beside: Vec::new(), passes: false }
}

/// 0 and 1 for a feature with the levels `false` and `true`: a model that takes a number has them.
fn truth_values(feature: &Feature) -> Option<(Vec<Value>, Vec<f64>)> {
    let levels = feature.kind.levels();
    let truth = |level: &Value| ["false", "true"].iter().position(|word| level.matches(word));
    let codes: Option<Vec<f64>> = levels.iter().map(|l| truth(l).map(|code| code as f64)).collect();
    codes.filter(|codes| codes.len() == 2).map(|codes| (levels.to_vec(), codes))
}

/// One column: 1 for the level that the category means, 0 for the other.
fn switch(feature: &Feature, category: &Category) -> Block {
    let on = level(feature, category);
    let levels = feature.kind.levels().to_vec();
    let codes = levels.iter().map(|level| f64::from(u8::from(*level == on))).collect();
    coded(feature, (levels, codes), Affine::IDENTITY)
}

/// The feature's level that a category of the model means.
fn level(feature: &Feature, category: &Category) -> Value {
    let text = category.to_string();
    let known = feature.kind.levels().iter().find(|level| level.matches(&text));
    known.cloned().unwrap_or_else(|| match category {
        Category::Integer(number) => Value::Number(*number as f64),
        Category::Text(text) => Value::from(&**text),
    })
}

/// Checks that columns can be taken by position, although the model names them and no name is that of
/// a feature: the names on one side must be numbered, or there is one column only.
fn in_order(schema: &Schema, columns: &[InputColumn]) -> Result<()> {
    let theirs: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let ours: Vec<&str> = schema.features.iter().map(|feature| feature.name.as_str()).collect();
    if theirs.len() == 1 || are_numbered(&theirs) || are_numbered(&ours) {
        return Ok(());
    }
    Err(Error::schema(format!(
        "the model names its columns {}, and no feature has one of these names: the features are {}; \
         rename the features, or the columns in the model file",
        listed(&theirs),
        listed(&ours)
    )))
}

/// Whether names are the same but for their numbers, which count from 0 or 1: `f0`, `f1`, ...
fn are_numbered(names: &[&str]) -> bool {
    let Some(first) = names.first() else { return false };
    let stem = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let number = |name: &&str| name.strip_prefix(stem)?.parse::<usize>().ok();
    [0, 1]
        .into_iter()
        .any(|start| names.iter().map(number).eq((start..).take(names.len()).map(Some)))
}

/// The feature of each raw column: by name, or by position if the model has no names.
fn assigned<'a>(schema: &'a Schema, inputs: &Inputs) -> Result<Vec<&'a Feature>> {
    // LightGBM writes `_` for a space.
    let written =
        |name: &str| schema.features.iter().position(|f| f.name.replace(' ', "_") == name);
    let position = |name: &str| schema.position(name).or_else(|| written(name));
    let by_name = |name: &str| position(name).map(|index| &schema.features[index]);
    let named = match inputs {
        Inputs::Matrix { .. } => None,
        Inputs::Columns(columns)
            if columns.iter().all(|column| by_name(&column.name).is_none()) =>
        {
            in_order(schema, columns)?;
            None
        }
        Inputs::Columns(columns) => Some(columns),
    };
    match named {
        Some(columns) => columns
            .iter()
            .map(|column| {
                by_name(&column.name).ok_or_else(|| {
                    Error::feature(&column.name, "is an input of the model but no feature")
                })
            })
            .collect(),
        None if inputs.len() == schema.features.len() => Ok(schema.features.iter().collect()),
        None => {
            let ours: Vec<String> = schema.features.iter().map(|f| f.name.clone()).collect();
            Err(mismatch(&ours, "features", inputs.len()))
        }
    }
}
