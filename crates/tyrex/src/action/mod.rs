//! Actions: the changes that a person may make.
//!
//! A [`Schema`] has the rules for all rows: an [`Action`] for each feature, and rules between
//! features. [`Actions`] combines the schema and the encoder, once.
//! [`Actions::for_factual`] gives the rules for one row, as a [`FeasibleSet`] in two spaces:
//!
//! - a convex set of points, for the search: a box, a scaled simplex for each one-hot group, a slab
//!   for each linear rule;
//! - the rows in it, for answers: whole numbers, steps and single levels, and changes that need
//!   other changes.
//!
//! Real rows may violate the rules, so the factual always belongs to its set:
//!
//! - a feature that has a special value stays so, and no feature becomes so; the same goes for missing
//!   values, unless the feature may become known or missing;
//! - a number outside the interval it may move in, or a level that is not allowed, may stay,
//!   or move inside;
//! - a linear rule that the factual breaks must not be broken any further;
//! - a rule about a feature that is missing or special cannot be computed, and is ignored.

mod feasible;
mod group;
mod imply;
mod lever;
mod moves;
mod nearest;
mod options;
mod rows;
mod rule;
mod settle;
mod slab;
mod violation;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use feasible::FeasibleSet;
pub use group::LevelGroup;
pub(crate) use lever::{Lever, Tried};
pub use moves::Moves;
pub use violation::{Constraint, Violation};

use crate::data::encode::Coding;
use crate::data::schema::{Action, Rule};
use crate::data::value::nearest_name;
use crate::data::{Encoder, Row, Schema};
use crate::error::{Error, Result};

/// The allowed changes, for every factual of a schema. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Actions {
    /// The schema with the actions and rules in force.
    schema: Arc<Schema>,
    /// The schema before requests changed it.
    original: Arc<Schema>,
    encoder: Arc<Encoder>,
    /// The cost of a change of each column by one unit, downward and upward.
    prices: Option<Arc<[[f64; 2]]>>,
}

/// Changes to the schema's actions, for one request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// The features that may change; all others are fixed. Without a list, all features may change
    /// that the schema allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vary: Option<Vec<String>>,
    /// Actions that replace the schema's, by feature name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, Action>,
    /// Rules between features, besides the schema's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub rules: Vec<Rule>,
}

impl Actions {
    /// The actions and rules of a schema, for points of this encoder.
    pub fn new(schema: &Schema, encoder: &Encoder) -> Result<Self> {
        schema.validate()?;
        if encoder.features().len() != schema.features.len() {
            return Err(Error::Dimension {
                what: "features of the encoder".to_owned(),
                expected: schema.features.len(),
                got: encoder.features().len(),
            });
        }
        for (block, _, position) in encoder.placed() {
            let feature = &schema.features[position];
            let is_number = matches!(block.coding, Coding::Number { .. });
            if feature.name != block.feature {
                return Err(Error::feature(
                    &feature.name,
                    format!("the encoder has `{}` in its place", block.feature),
                ));
            }
            if feature.kind.is_number() != is_number {
                let takes = if is_number { "a number" } else { "levels" };
                return Err(Error::feature(
                    &feature.name,
                    format!("has kind `{}`, but is encoded as {takes}", feature.kind.name()),
                ));
            }
        }
        check_prices(schema, encoder)?;
        rule::check_sizes(schema, encoder)?;
        let schema = Arc::new(schema.clone());
        let original = Arc::clone(&schema);
        let prices = prices(&schema, encoder).map(Into::into);
        Ok(Self { schema, original, encoder: Arc::new(encoder.clone()), prices })
    }

    /// The schema, with the actions and rules that are in force.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The encoder.
    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The same, changed for one request.
    pub(crate) fn overridden(&self, overrides: &Overrides) -> Result<Self> {
        let mut schema = Schema::clone(&self.schema);
        for (name, action) in &overrides.actions {
            let position = self.position(name)?;
            schema.features[position].action = action.clone();
        }
        if let Some(vary) = &overrides.vary {
            for name in vary {
                if schema.features[self.position(name)?].action == Action::Fixed {
                    return Err(Error::feature(
                        name,
                        "is fixed but listed to vary; give it another action as well",
                    ));
                }
            }
            for feature in &mut schema.features {
                if !vary.contains(&feature.name) {
                    feature.action = Action::Fixed;
                }
            }
        }
        schema.rules.extend(overrides.rules.iter().cloned());
        schema.validate()?;
        rule::check_sizes(&schema, &self.encoder)?;
        Ok(Self { schema: Arc::new(schema), ..self.clone() })
    }

    /// Every action that is not `free`, in the order of the features, then every rule.
    pub fn constraints(&self) -> Vec<Constraint> {
        let bound = self.schema.features.iter().filter(|feature| feature.action != Action::Free);
        let features = bound.map(|feature| Constraint::Feature(feature.name.clone()));
        let rules = (0..self.schema.rules.len()).map(|index| self.rule_constraint(index));
        features.chain(rules).collect()
    }

    /// The same with one constraint removed: the rule is dropped; or the feature has the schema's
    /// action again if a request had changed it, and otherwise is free within its range.
    pub fn without(&self, constraint: &Constraint) -> Result<Self> {
        let mut schema = Schema::clone(&self.schema);
        match constraint {
            Constraint::Feature(name) => {
                let position = self.position(name)?;
                let own = &self.original.features[position].action;
                let action = &mut schema.features[position].action;
                *action = if action == own { Action::Free } else { own.clone() };
            }
            Constraint::Rule { index, .. } => {
                if *index >= schema.rules.len() {
                    return Err(Error::schema(format!("{constraint}: there is no such rule")));
                }
                schema.rules.remove(*index);
            }
        }
        Ok(Self { schema: Arc::new(schema), ..self.clone() })
    }

    /// The feasible set of this factual.
    pub fn for_factual(&self, factual: &Row) -> Result<FeasibleSet> {
        FeasibleSet::new(self.clone(), factual.clone())
    }

    fn rule_constraint(&self, index: usize) -> Constraint {
        let rule = &self.schema.rules[index];
        let words = rule.description.clone().unwrap_or_else(|| rule.relation.in_words());
        Constraint::Rule { index, words }
    }

    fn position(&self, name: &str) -> Result<usize> {
        self.schema.position(name).ok_or_else(|| {
            let names = self.schema.features.iter().map(|feature| feature.name.as_str());
            let hint = nearest_name(name, names)
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            Error::feature(name, format!("is not a feature of the schema{hint}"))
        })
    }
}

/// Refuses prices of features that a model file encodes without an order.
fn check_prices(schema: &Schema, encoder: &Encoder) -> Result<()> {
    for (block, _, position) in encoder.placed() {
        let has_order = match &block.coding {
            Coding::Number { .. } => true,
            Coding::Code { codes, .. } => codes.is_sorted(),
            Coding::OneHot { .. } => false,
        };
        if schema.features[position].price.is_some() && !has_order {
            let problem = "has a `price`, but the model encodes it without an order";
            return Err(Error::feature(&block.feature, problem));
        }
    }
    Ok(())
}

/// The cost of a change of each column by one unit, downward and upward, if a feature has a price.
pub(crate) fn prices(schema: &Schema, encoder: &Encoder) -> Option<Vec<[f64; 2]>> {
    if schema.features.iter().all(|feature| feature.price.is_none()) {
        return None;
    }
    let mut prices = vec![[1.0; 2]; encoder.dim()];
    for (block, columns, position) in encoder.placed() {
        let Some(price) = schema.features[position].price else { continue };
        let falls = match &block.coding {
            Coding::Number { affine, .. } | Coding::Code { affine, .. } => affine.scale < 0.0,
            Coding::OneHot { .. } => continue,
        };
        let [down, up] = [price.down, price.up];
        prices[columns.start] = if falls { [up, down] } else { [down, up] };
    }
    Some(prices)
}

#[cfg(test)]
mod tests;
