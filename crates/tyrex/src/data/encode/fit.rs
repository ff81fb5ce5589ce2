//! An encoder from a schema, with scaling fitted on rows.

use super::{Affine, Block, Coding, Encoder, Scale};
use crate::data::listed;
use crate::data::schema::{
    Encoding, Feature, FeatureKind, Interval, MissingPolicy, Scaling, Schema, SpecialAs,
};
use crate::data::value::{Row, Value};
use crate::error::{Error, Result};

impl Encoder {
    /// The encoder of a schema, with scaling fitted on these rows.
    ///
    /// Which rows is the caller's choice: training rows, or all rows in the `reference`
    /// protocol (see [`FitOn`](crate::data::schema::FitOn)).
    pub fn fit(schema: &Schema, rows: &[&Row]) -> Result<Self> {
        schema.validate()?;
        let mut matrix: Option<Affine> = None;
        if schema.features.iter().any(|f| schema.scaling(f) == Scaling::MatrixMinMax) {
            let mut spread = Spread::default();
            for (position, feature) in schema.features.iter().enumerate() {
                if schema.scaling(feature) == Scaling::MatrixMinMax {
                    let plain = block(schema, feature)?;
                    for column in 0..scaled_columns(&plain) {
                        spread.add(numbers(&plain, column, position, rows));
                    }
                }
            }
            matrix = Some(spread.min_max().ok_or_else(|| {
                Error::schema("no numbers to fit the scaling of the whole matrix on")
            })?);
        }
        let mut blocks = Vec::with_capacity(schema.features.len());
        for position in encoded_order(schema) {
            let feature = &schema.features[position];
            let mut block = block(schema, feature)?;
            let scaling = schema.scaling(feature);
            let affines = (0..scaled_columns(&block))
                .map(|column| {
                    let values = numbers(&block, column, position, rows);
                    let affine = fitted(scaling, matrix, values);
                    affine.ok_or_else(|| {
                        Error::feature(&feature.name, "no numbers to fit the scaling on")
                    })
                })
                .collect::<Result<Vec<Affine>>>()?;
            match &mut block.coding {
                Coding::Number { affine, .. } | Coding::Code { affine, .. } => *affine = affines[0],
                Coding::OneHot { affines: own, .. } => *own = affines,
            }
            blocks.push(block);
        }
        let features = schema.features.iter().map(|feature| feature.name.clone()).collect();
        Self::from_blocks(features, blocks)
    }

    /// The scales of numbers by the schema's method, fitted on these rows, by feature: of all
    /// numbers, or only of `plain` ones, which have no scale yet.
    ///
    /// A number with columns beside it is divided and not shifted, so that its 0 stays 0.
    pub(crate) fn common_scale(&self, schema: &Schema, rows: &[&Row], plain: bool) -> Scale {
        let method = |position: usize| {
            let own = schema.features.get(position).and_then(|feature| feature.scaling);
            own.unwrap_or(schema.scaling.method)
        };
        let own = |block: &Block| match &block.coding {
            Coding::Number { affine, .. } => Some(*affine),
            Coding::Code { .. } | Coding::OneHot { .. } => None,
        };
        let mut matrix = Spread::default();
        for (block, _, position) in self.placed() {
            if own(block).is_some() && method(position) == Scaling::MatrixMinMax {
                matrix.add(numbers(block, 0, position, rows));
            }
        }
        let mut scale = Scale::new();
        for (block, _, position) in self.placed() {
            let Some(affine) = own(block) else { continue };
            // A column that falls while its number rises keeps its direction, and its scale.
            // A missing value has 0 here, which must not move to another number.
            let stays = affine.scale <= 0.0
                || (plain && affine != Affine::IDENTITY)
                || (block.passes && affine.offset != 0.0);
            if method(position) == Scaling::None || stays {
                continue;
            }
            let values = numbers(block, 0, position, rows);
            let Some(mut scaled) = fitted(method(position), matrix.min_max(), values) else {
                continue;
            };
            if !block.beside.is_empty() {
                scaled.offset = 0.0;
            }
            scale.insert(block.feature.clone(), scaled);
        }
        scale
    }

    /// The encoder with these scales of numbers, and the affine from each column to what it is now.
    pub(crate) fn on_scale(&self, scale: &Scale) -> Result<(Self, Vec<Affine>)> {
        let mut behind = vec![Affine::IDENTITY; self.dim];
        let mut blocks = self.blocks.clone();
        let mut found = 0;
        for (own, (block, columns, _)) in blocks.iter_mut().zip(self.placed()) {
            let Coding::Number { affine, .. } = &mut own.coding else { continue };
            let Some(&scaled) = scale.get(&block.feature) else { continue };
            behind[columns.start] = affine.to(scaled);
            *affine = scaled;
            found += 1;
        }
        if found < scale.len() {
            let names: Vec<&String> = scale.keys().collect();
            return Err(Error::schema(format!(
                "a scale for {}, expected one for numbers among the features",
                listed(&names)
            )));
        }
        Ok((Self::from_blocks(self.features.clone(), blocks)?, behind))
    }
}

/// The scaling of one column; `None` if there are no numbers to fit it on.
fn fitted(
    scaling: Scaling,
    matrix: Option<Affine>,
    values: impl Iterator<Item = f64> + Clone,
) -> Option<Affine> {
    match scaling {
        Scaling::None => Some(Affine::IDENTITY),
        Scaling::MatrixMinMax => matrix,
        Scaling::MinMax => {
            let mut spread = Spread::default();
            spread.add(values);
            spread.min_max()
        }
        Scaling::ZScore => z_score(values),
    }
}

/// The positions of features in the order of their encoded columns.
fn encoded_order(schema: &Schema) -> Vec<usize> {
    if schema.order.is_empty() {
        return (0..schema.features.len()).collect();
    }
    schema.order.iter().filter_map(|name| schema.position(name)).collect()
}

/// The step that decoded numbers are multiples of.
pub(super) fn step_of(feature: &Feature) -> Option<f64> {
    if feature.kind == FeatureKind::Integer { Some(1.0) } else { feature.step }
}

/// The block of a feature before its scaling is known.
fn block(schema: &Schema, feature: &Feature) -> Result<Block> {
    let missing = *schema.missing_policy(feature) == MissingPolicy::Level;
    let mut beside: Vec<Value> = schema
        .special_values(feature, SpecialAs::Level)
        .iter()
        .map(|&value| Value::Number(value))
        .collect();
    if missing {
        beside.push(Value::Missing);
    }
    let passes = *schema.missing_policy(feature) == MissingPolicy::Pass;
    let levels = feature.kind.levels();
    let affine = Affine::IDENTITY;
    let coding = match schema.encoding(feature) {
        Encoding::OneHot => {
            let mut levels = levels.to_vec();
            levels.append(&mut beside);
            let block = Block::one_hot(&feature.name, levels);
            return if passes { block.passing() } else { Ok(block) };
        }
        Encoding::OrdinalNumber => Coding::Code {
            levels: levels.to_vec(),
            codes: (0..levels.len()).map(|position| position as f64).collect(),
            affine,
        },
        Encoding::AsIs if !feature.kind.is_number() => Coding::Code {
            levels: levels.to_vec(),
            codes: levels.iter().map(Value::number).collect::<Option<_>>().ok_or_else(|| {
                Error::feature(&feature.name, "encoding `as-is` needs levels that are numbers")
            })?,
            affine,
        },
        Encoding::Scaled | Encoding::AsIs => {
            let clip = feature.clip.unwrap_or(Interval::ALL);
            let special = schema.special_values(feature, SpecialAs::Number);
            Coding::Number {
                affine,
                clip,
                range: feature.range.unwrap_or(Interval::ALL).intersection(clip),
                step: step_of(feature),
                special: special.iter().copied().filter(|&value| clip.contains(value)).collect(),
            }
        }
    };
    let block = Block { feature: feature.name.clone(), coding, beside, passes: false };
    if passes { block.passing() } else { Ok(block) }
}

/// The columns that scaling applies to; those beside a number are always 0 and 1.
fn scaled_columns(block: &Block) -> usize {
    match &block.coding {
        Coding::Number { .. } | Coding::Code { .. } => 1,
        Coding::OneHot { levels, .. } => levels.len(),
    }
}

/// The unscaled numbers of one column over the rows; values with a column of their own
/// beside it are left out.
fn numbers<'a>(
    block: &'a Block,
    column: usize,
    position: usize,
    rows: &'a [&Row],
) -> impl Iterator<Item = f64> + Clone + 'a {
    rows.iter().filter_map(move |row| {
        let value = &row.values()[position];
        match &block.coding {
            _ if block.beside.contains(value) => None,
            Coding::Number { clip, .. } => value.number().map(|number| clip.nearest(number)),
            Coding::Code { levels, codes, .. } => {
                levels.iter().position(|level| level == value).map(|index| codes[index])
            }
            Coding::OneHot { levels, .. } => Some(f64::from(u8::from(levels[column] == *value))),
        }
    })
}

/// The smallest and largest number seen.
#[derive(Debug, Default)]
struct Spread(Option<(f64, f64)>);

impl Spread {
    fn add(&mut self, numbers: impl Iterator<Item = f64>) {
        for number in numbers {
            let (min, max) = self.0.unwrap_or((number, number));
            self.0 = Some((min.min(number), max.max(number)));
        }
    }

    /// `(x - min) / (max - min)`.
    fn min_max(&self) -> Option<Affine> {
        self.0.map(|(min, max)| shift_and_divide(min, max - min))
    }
}

/// `(x - mean) / deviation`, the deviation over `n`, in two passes.
fn z_score(numbers: impl Iterator<Item = f64> + Clone) -> Option<Affine> {
    let count = numbers.clone().count();
    if count == 0 {
        return None;
    }
    let mean = numbers.clone().sum::<f64>() / count as f64;
    let variance = numbers.map(|number| (number - mean).powi(2)).sum::<f64>() / count as f64;
    Some(shift_and_divide(mean, variance.sqrt()))
}

/// A width of 0, from a column with a single value, is replaced by 1.
fn shift_and_divide(offset: f64, width: f64) -> Affine {
    let scale = if width > 0.0 && (1.0 / width).is_normal() { 1.0 / width } else { 1.0 };
    Affine { offset, scale }
}
