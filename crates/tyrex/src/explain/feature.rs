//! The features as a document, for forms that ask for a row.

use serde::Serialize;

use super::Explainer;
use crate::data::schema::{Action, Interval, MayBecome, SpecialAs, is_default};
use crate::data::value::Value;
use crate::data::{Feature, FeatureKind};

/// One feature: its kind and its values, by the schema and the data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FeatureDocument {
    /// The column's name.
    pub name: String,
    /// The kind of its values.
    pub kind: FeatureForm,
    /// A short description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The unit of its numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its levels, the lowest first where they have an order; of a flag, "no" first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<crate::data::FeatureValue>>))]
    pub levels: Option<Vec<Value>>,
    /// The smallest number in the data that is not special.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    /// The largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
    /// The smallest change of a number; 1 for whole numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// The valid numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Interval>,
    /// Numbers that are codes, such as -9 for "no record".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub special: Vec<f64>,
    /// Whether it may be missing.
    pub missing: bool,
    /// How a person may change it.
    pub action: Action,
    /// Whether a missing value may become known, and a known one missing.
    #[serde(skip_serializing_if = "is_default")]
    pub may_become: MayBecome,
}

/// The kind of a feature's values, as in the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FeatureForm {
    /// Real numbers.
    Numeric,
    /// Whole numbers.
    Integer,
    /// Levels with an order.
    Ordinal,
    /// Levels without an order.
    Categorical,
    /// Two values.
    Flag,
}

impl From<&FeatureKind> for FeatureForm {
    fn from(kind: &FeatureKind) -> Self {
        match kind {
            FeatureKind::Numeric => Self::Numeric,
            FeatureKind::Integer => Self::Integer,
            FeatureKind::Ordinal { .. } => Self::Ordinal,
            FeatureKind::Categorical { .. } => Self::Categorical,
            FeatureKind::Flag { .. } => Self::Flag,
        }
    }
}

impl Explainer {
    /// The features in the order of the schema, with the ranges of the data.
    pub fn features(&self) -> Vec<FeatureDocument> {
        let features = self.schema().features.iter().enumerate();
        features.map(|(position, feature)| self.feature(position, feature)).collect()
    }

    fn feature(&self, position: usize, feature: &Feature) -> FeatureDocument {
        let schema = self.schema();
        let special: Vec<f64> = [SpecialAs::Number, SpecialAs::Level]
            .into_iter()
            .flat_map(|treated| schema.special_values(feature, treated))
            .copied()
            .collect();
        let seen = || {
            let values = self.reference().rows().iter().map(|row| &row.values()[position]);
            let numbers = values.filter_map(Value::number);
            numbers.filter(|number| feature.kind.is_number() && !special.contains(number))
        };
        let levels = feature.kind.levels();
        FeatureDocument {
            name: feature.name.clone(),
            kind: (&feature.kind).into(),
            description: feature.description.clone(),
            unit: feature.unit.clone(),
            levels: (!levels.is_empty()).then(|| levels.to_vec()),
            minimum: seen().reduce(f64::min),
            maximum: seen().reduce(f64::max),
            step: if feature.kind == FeatureKind::Integer { Some(1.0) } else { feature.step },
            range: feature.range,
            missing: schema.missing_policy(feature).keeps_missing(),
            action: feature.action.clone(),
            may_become: feature.may_become,
            special,
        }
    }
}
