//! The schema of a table: the meaning of its columns.
//!
//! A [`Schema`] is plain data, written by a person in TOML (`docs/formats.md` has every key with an
//! example). Names, kinds and levels are defined only here.

pub(crate) use check::is_representable;

mod check;
mod rule;
mod text;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::data::value::Value;

pub use rule::{Change, Relation, Rule};
pub use text::Note;

/// The version of the schema format this crate reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// The meaning of the columns of a table, and how they are encoded.
///
/// The fields are public so that code can build a schema; its users call [`Schema::validate`]
/// first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// A short description of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Columns of the file that are not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The order in which features become encoded columns; the order of `features` if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The column to predict.
    pub label: Label,
    /// Which rows train and which test.
    #[serde(default, skip_serializing_if = "Split::is_all_train")]
    pub split: Split,
    /// How numbers are scaled.
    #[serde(default)]
    pub scaling: ScalingRule,
    /// The texts of missing cells, and their treatment.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing: Missing,
    /// Special values of every numeric and integer feature that has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub special: Option<Special>,
    /// The input of an imported model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub model: ModelRule,
    /// The features, in the order in which a [`Row`](crate::data::Row) holds them.
    #[serde(rename = "feature")]
    pub features: Vec<Feature>,
    /// Rules between features.
    #[serde(default, rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The folder that relative paths in the schema start from: the schema file's own.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// The column to predict. The favourable class is the desired one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// The column's name.
    pub column: String,
    /// The values that count as favourable.
    #[serde(with = "one_or_many")]
    pub favourable: Vec<Value>,
    /// The values that count as unfavourable; if empty, every other value does.
    #[serde(default, with = "one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub unfavourable: Vec<Value>,
    /// The treatment of a row without a label: `reject` or `drop-row`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub missing: MissingPolicy,
}

/// Which rows train and which test.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "text::SplitToml", into = "text::SplitToml")]
pub enum Split {
    /// Every row trains; there are no test rows.
    #[default]
    AllTrain,
    /// By a column of the table.
    Column {
        /// The column's name.
        column: String,
        /// The values that mean "train".
        train: Vec<Value>,
        /// The values that mean "test".
        test: Vec<Value>,
    },
    /// A file with the columns `row` (0-based data row) and `split` (`train` or `test`) gives the
    /// split. Rows that are not in the file belong to neither part.
    File {
        /// The file, relative to the schema's folder.
        file: PathBuf,
    },
    /// A random part of the rows trains, the rest tests.
    Fraction {
        /// The part of the rows that trains, between 0 and 1.
        train: f64,
        /// The seed of the draw.
        seed: u64,
    },
}

impl Split {
    fn is_all_train(&self) -> bool {
        *self == Self::AllTrain
    }
}

/// How numbers are scaled, for all features without a scaling of their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingRule {
    /// The formula.
    #[serde(default)]
    pub method: Scaling,
    /// The rows its numbers are taken from.
    #[serde(default)]
    pub fit: FitOn,
}

/// The formula that scales a column. A column with a single value is only shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// `(x - min) / (max - min)`, column by column.
    #[default]
    MinMax,
    /// `(x - mean) / deviation`, column by column; the deviation divides by `n`.
    ZScore,
    /// `(x - min) / (max - min)`, with one minimum and maximum for all such columns.
    MatrixMinMax,
    /// `x`.
    None,
}

/// The rows that scaling is fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitOn {
    /// Training rows only, so that nothing about the test rows leaks into the model.
    #[default]
    Train,
    /// All rows. Only for the `reference` protocol, which repeats the authors' encoding.
    All,
}

/// The texts of missing cells, and their treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// The texts that mean "missing". A declared level is never missing.
    #[serde(default = "default_tokens")]
    pub tokens: Vec<String>,
    /// Their treatment, for all features without one of their own.
    #[serde(default)]
    pub policy: MissingPolicy,
}

impl Default for Missing {
    fn default() -> Self {
        Self { tokens: default_tokens(), policy: MissingPolicy::default() }
    }
}

fn default_tokens() -> Vec<String> {
    ["", "?", "NA", "NaN", "nan", "null"].map(str::to_owned).into()
}

/// The treatment of a missing cell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingPolicy {
    /// An error that names file, row and column.
    #[default]
    Reject,
    /// The row is left out, and counted.
    DropRow,
    /// "Missing" is a level of its own: one more encoded column.
    Level,
    /// The model of another tool gets the missing value: trees follow the direction that they
    /// learnt for it, and a pipeline imputes it.
    Pass,
    /// The value given takes its place, and the cell is counted.
    Fill(Value),
}

impl MissingPolicy {
    /// Whether a missing cell is a value of the feature.
    pub(crate) fn keeps_missing(&self) -> bool {
        matches!(self, Self::Level | Self::Pass)
    }
}

/// Numbers that are codes, such as -9 for "no record".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Special {
    /// The codes.
    #[serde(serialize_with = "text::plain_numbers")]
    pub values: Vec<f64>,
    /// How they are encoded.
    #[serde(rename = "as")]
    pub treated: SpecialAs,
}

/// How a special value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpecialAs {
    /// A plain number, scaled like the others.
    Number,
    /// A level of its own: one more encoded column per special value.
    Level,
}

/// The input of an imported model, and the class that its score is the probability of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRule {
    /// The kind of input.
    #[serde(default)]
    pub input: ModelInput,
    /// The favourable class: its number from 0, or its name in the model file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub favourable_class: Option<Value>,
    /// Whether a model is accepted that ranks the labelled rows the wrong way round.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accept_reversed: bool,
}

/// The kind of input an imported model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelInput {
    /// The columns of this crate's encoding.
    #[default]
    Encoded,
    /// The raw columns; the model file encodes them itself.
    Raw,
}

/// One feature: a column of the file, what it means and how it is encoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "text::FeatureToml", into = "text::FeatureToml")]
pub struct Feature {
    /// The column's name in the file.
    pub name: String,
    /// The kind of its values.
    pub kind: FeatureKind,
    /// A short description.
    pub description: Option<String>,
    /// The unit of its numbers.
    pub unit: Option<String>,
    /// The smallest and largest valid number.
    pub range: Option<Interval>,
    /// The smallest change of a numeric feature: decoded numbers are multiples of it.
    pub step: Option<f64>,
    /// Its special values, instead of the schema's.
    pub special: Option<Special>,
    /// The treatment of its missing cells, instead of the schema's policy.
    pub missing: Option<MissingPolicy>,
    /// How it is encoded, instead of the kind's usual way.
    pub encoding: Option<Encoding>,
    /// How it is scaled, instead of the schema's way.
    pub scaling: Option<Scaling>,
    /// Numbers are moved into this interval before they are scaled. This loses what lies
    /// outside: decoding gives a number inside.
    pub clip: Option<Interval>,
    /// How a person may change it.
    pub action: Action,
    /// Whether a missing value may become known, and a known one missing.
    pub may_become: MayBecome,
    /// How many times a change of it counts in the cost.
    pub price: Option<Price>,
}

/// How many times a change of a feature counts in the cost, by its direction; once by default.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A change to a larger number or a later level.
    #[serde(default = "one")]
    pub up: f64,
    /// A change to a smaller number or an earlier level.
    #[serde(default = "one")]
    pub down: f64,
}

fn one() -> f64 {
    1.0
}

impl Feature {
    /// A feature of the given kind, with defaults for everything else.
    pub fn new(name: impl Into<String>, kind: FeatureKind) -> Self {
        Self {
            name: name.into(),
            kind,
            description: None,
            unit: None,
            range: None,
            step: None,
            special: None,
            missing: None,
            encoding: None,
            scaling: None,
            clip: None,
            action: Action::Free,
            may_become: MayBecome::Neither,
            price: None,
        }
    }
}

/// The kind of a feature's values.
#[derive(Debug, Clone, PartialEq)]
pub enum FeatureKind {
    /// Real numbers.
    Numeric,
    /// Whole numbers.
    Integer,
    /// Levels with an order, the lowest first.
    Ordinal {
        /// The levels.
        levels: Vec<Value>,
    },
    /// Levels without an order.
    Categorical {
        /// The levels, in the order of their encoded columns.
        levels: Vec<Value>,
    },
    /// Two values, "no" first.
    Flag {
        /// The value encoded as 0, and the value encoded as 1.
        values: [Value; 2],
    },
}

impl FeatureKind {
    /// The levels; none for numbers.
    pub fn levels(&self) -> &[Value] {
        match self {
            Self::Numeric | Self::Integer => &[],
            Self::Ordinal { levels } | Self::Categorical { levels } => levels,
            Self::Flag { values } => values,
        }
    }

    /// Whether the values are numbers rather than levels.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Numeric | Self::Integer)
    }

    /// The name used in TOML.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Numeric => "numeric",
            Self::Integer => "integer",
            Self::Ordinal { .. } => "ordinal",
            Self::Categorical { .. } => "categorical",
            Self::Flag { .. } => "flag",
        }
    }
}

/// How a feature becomes encoded columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// The scaled number. The default for numeric and integer.
    Scaled,
    /// One column per level, 1 for the level and 0 elsewhere. The default for categorical.
    OneHot,
    /// The position of the level (0, 1, 2, ...), scaled like a number. The default for ordinal;
    /// also for a flag, whose 0 and 1 are scaled only if the feature has a scaling.
    OrdinalNumber,
    /// The number in the file, unchanged: the model takes the column as it is.
    AsIs,
}

/// How a person may change a feature.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// In any way.
    #[default]
    Free,
    /// Not at all.
    Fixed,
    /// Only to a larger number or a later level.
    OnlyUp,
    /// Only to a smaller number or an earlier level.
    OnlyDown,
    /// Only to a number in this interval.
    Within(Interval),
    /// Only to one of these levels.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<crate::data::FeatureValue>))]
    Levels(Vec<Value>),
}

/// Whether a person may give a value that is missing, or take one back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MayBecome {
    /// Neither: what is missing stays so, and what is known stays known.
    #[default]
    Neither,
    /// A missing value may become any that the action and the range allow.
    Known,
    /// A known value may become missing.
    Missing,
    /// Both.
    Either,
}

impl MayBecome {
    /// Whether a missing value may become known.
    pub(crate) fn known(self) -> bool {
        matches!(self, Self::Known | Self::Either)
    }

    /// Whether a known value may become missing.
    pub(crate) fn missing(self) -> bool {
        matches!(self, Self::Missing | Self::Either)
    }
}

/// The numbers from `lower` to `upper`, both included; an end may be infinite.
///
/// In TOML `[0, inf]`; in JSON, which has no infinity, `[0, null]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "[Value; 2]")]
pub struct Interval {
    /// The smallest number.
    pub lower: f64,
    /// The largest number.
    pub upper: f64,
}

impl Interval {
    /// All numbers.
    pub const ALL: Self = Self { lower: f64::NEG_INFINITY, upper: f64::INFINITY };

    /// Whether the number is in the interval.
    pub fn contains(&self, number: f64) -> bool {
        self.lower <= number && number <= self.upper
    }

    /// The number in the interval that is nearest to the given one.
    pub(crate) fn nearest(&self, number: f64) -> f64 {
        number.max(self.lower).min(self.upper)
    }

    /// The numbers in both intervals; `lower > upper` if there are none.
    pub(crate) fn intersection(&self, other: Self) -> Self {
        Self { lower: self.lower.max(other.lower), upper: self.upper.min(other.upper) }
    }
}

impl From<[f64; 2]> for Interval {
    fn from([lower, upper]: [f64; 2]) -> Self {
        Self { lower, upper }
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ends;

        impl<'de> serde::de::Visitor<'de> for Ends {
            type Value = Interval;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("two numbers")
            }

            // An array of serde would drop a third number of a TOML file.
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut ends: A,
            ) -> Result<Interval, A::Error> {
                let wrong = |length| serde::de::Error::invalid_length(length, &Ends);
                let lower: Option<f64> = ends.next_element()?.ok_or_else(|| wrong(0))?;
                let upper: Option<f64> = ends.next_element()?.ok_or_else(|| wrong(1))?;
                let mut length = 2;
                while ends.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    length += 1;
                }
                if length > 2 {
                    return Err(wrong(length));
                }
                let lower = lower.unwrap_or(f64::NEG_INFINITY);
                Ok(Interval { lower, upper: upper.unwrap_or(f64::INFINITY) })
            }
        }

        deserializer.deserialize_tuple(2, Ends)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Interval {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};
        let end = SchemaType::from_iter([Type::Number, Type::Null]);
        ArrayBuilder::new()
            .items(ObjectBuilder::new().schema_type(end))
            .min_items(Some(2))
            .max_items(Some(2))
            .description(Some("The smallest and the largest number; null for no end."))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Interval {}

/// As values, so that whole numbers are written without a decimal point.
impl From<Interval> for [Value; 2] {
    fn from(interval: Interval) -> Self {
        [Value::Number(interval.lower), Value::Number(interval.upper)]
    }
}

/// The effective settings of a feature: its own, or the schema's.
impl Schema {
    /// A schema with these features, and defaults for everything else.
    pub fn new(label: Label, features: Vec<Feature>) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            description: None,
            ignore: Vec::new(),
            order: Vec::new(),
            label,
            split: Split::default(),
            scaling: ScalingRule::default(),
            missing: Missing::default(),
            special: None,
            model: ModelRule::default(),
            features,
            rules: Vec::new(),
            folder: PathBuf::new(),
        }
    }

    /// The position of a feature in a row.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.features.iter().position(|feature| feature.name == name)
    }

    /// The treatment of the feature's missing cells.
    pub(crate) fn missing_policy<'a>(&'a self, feature: &'a Feature) -> &'a MissingPolicy {
        feature.missing.as_ref().unwrap_or(&self.missing.policy)
    }

    /// The feature's special values that are treated in the given way.
    pub fn special_values<'a>(&'a self, feature: &'a Feature, treated: SpecialAs) -> &'a [f64] {
        if !feature.kind.is_number() {
            return &[];
        }
        match feature.special.as_ref().or(self.special.as_ref()) {
            Some(special) if special.treated == treated => &special.values,
            _ => &[],
        }
    }

    /// How the feature is encoded.
    pub fn encoding(&self, feature: &Feature) -> Encoding {
        feature.encoding.unwrap_or(match feature.kind {
            FeatureKind::Numeric | FeatureKind::Integer => Encoding::Scaled,
            FeatureKind::Ordinal { .. } | FeatureKind::Flag { .. } => Encoding::OrdinalNumber,
            FeatureKind::Categorical { .. } => Encoding::OneHot,
        })
    }

    /// How the feature's columns are scaled. Columns of zeros and ones are scaled only if the
    /// feature has a scaling.
    pub fn scaling(&self, feature: &Feature) -> Scaling {
        let zeros_and_ones = matches!(feature.kind, FeatureKind::Flag { .. });
        match self.encoding(feature) {
            Encoding::AsIs => Scaling::None,
            Encoding::Scaled => feature.scaling.unwrap_or(self.scaling.method),
            Encoding::OrdinalNumber if !zeros_and_ones => {
                feature.scaling.unwrap_or(self.scaling.method)
            }
            Encoding::OrdinalNumber | Encoding::OneHot => feature.scaling.unwrap_or(Scaling::None),
        }
    }
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A list that may be written as its only element.
mod one_or_many {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::data::value::Value;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(Value),
        Many(Vec<Value>),
    }

    pub(super) fn serialize<S: Serializer>(
        list: &[Value],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match list {
            [only] => only.serialize(serializer),
            many => many.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Value>, D::Error> {
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(values) => values,
        })
    }
}
