//! The rows of a feasible set.

use std::ops::Range;

use super::Actions;
use super::group::LevelGroup;
use super::imply::Implication;
use super::options::{Choice, Numbers, Options};
use super::rule::{BoundRule, ROUNDING};
use super::slab::Slabs;
use super::violation::{Constraint, Violation};
use crate::data::encode::{Block, Coding};
use crate::data::schema::Interval;
use crate::data::{Row, Value};
use crate::error::Result;

/// The rows that may answer one factual.
#[derive(Debug, Clone)]
pub(super) struct Answers {
    actions: Actions,
    factual: Row,
    /// By position in a row.
    pub(super) options: Vec<Options>,
    pub(super) rules: Vec<BoundRule>,
    pub(super) implications: Vec<Implication>,
}

impl Answers {
    pub(super) fn new(actions: Actions, factual: Row, point: &[f32]) -> Result<Self> {
        let mut options = Vec::with_capacity(factual.values().len());
        for (block, columns, position) in actions.encoder.placed() {
            let value = factual.values()[position].clone();
            let own = point[columns.clone()].to_vec();
            let feature = &actions.schema.features[position];
            let found = Options::new(&actions.schema, feature, block, columns, value, own)?;
            options.push((position, found));
        }
        options.sort_by_key(|(position, _)| *position);
        let options: Vec<Options> = options.into_iter().map(|(_, options)| options).collect();
        let is_ordinary = |position: usize| options[position].is_ordinary;
        let all = 0..actions.schema.rules.len();
        let rules = all
            .clone()
            .flat_map(|index| BoundRule::all(&actions.schema, index, factual.values(), is_ordinary))
            .collect();
        let implications =
            all.flat_map(|index| Implication::all(&actions.schema, index, &options)).collect();
        Ok(Self { actions, factual, options, rules, implications })
    }

    /// The one-hot groups in which there is a choice.
    pub(super) fn groups(&self) -> Vec<LevelGroup> {
        let mut groups = Vec::new();
        for (block, columns, position) in self.actions.encoder.placed() {
            let (Coding::OneHot { levels, affines }, Choice::Levels(choice)) =
                (&block.coding, self.options[position].choice())
            else {
                continue;
            };
            let start = &self.factual.values()[position];
            let Some(current) = levels.iter().position(|level| level == start) else { continue };
            let group = LevelGroup {
                columns,
                off: affines.iter().map(|affine| finite(affine.apply(0.0))).collect(),
                on: affines.iter().map(|affine| finite(affine.apply(1.0))).collect(),
                allowed: levels
                    .iter()
                    .map(|level| choice.iter().any(|(allowed, _)| allowed == level))
                    .collect(),
                current,
            };
            // If scaling makes on and off the same float, the box is sufficient.
            if group.off.iter().zip(&group.on).all(|(off, on)| off != on) {
                groups.push(group);
            }
        }
        groups
    }

    /// The linear rules in terms of columns:
    /// `coefficient * number = coefficient * (column / scale + offset)`.
    pub(super) fn slabs(&self) -> Slabs {
        let mut slabs = Slabs::default();
        for rule in &self.rules {
            let mut terms = Vec::new();
            let (mut constant, mut size) = (0.0, 0.0);
            for &(position, coefficient) in &rule.terms {
                let options = &self.options[position];
                let fixed = match options.numbers().map(Numbers::affine) {
                    Some(affine) => {
                        terms.push((options.columns.start, coefficient / affine.scale));
                        coefficient * affine.offset
                    }
                    None => coefficient * self.factual.values()[position].number().unwrap_or(0.0),
                };
                constant += fixed;
                size += fixed.abs();
            }
            let Interval { lower, upper } = rule.bounds;
            slabs.add(&terms, lower - constant, upper - constant, ROUNDING * size);
        }
        slabs
    }

    /// Whether a row satisfies all rules.
    pub(super) fn hold(&self, values: &[Value]) -> bool {
        self.fit(values) && self.first_broken(values).is_none()
    }

    /// Whether a row satisfies the rules for single features and the linear rules.
    pub(super) fn fit(&self, values: &[Value]) -> bool {
        let each = self.options.iter().zip(values).all(|(options, value)| options.allow(value));
        each && self.rules.iter().all(|rule| rule.holds(values))
    }

    /// Whether a row satisfies the rules between features.
    pub(super) fn rules_hold(&self, values: &[Value]) -> bool {
        self.rules.iter().all(|rule| rule.holds(values)) && self.first_broken(values).is_none()
    }

    /// Whether a rule between features is about the feature.
    pub(super) fn is_bound(&self, position: usize) -> bool {
        let in_sum = |rule: &BoundRule| rule.terms.iter().any(|&(own, _)| own == position);
        self.rules.iter().any(in_sum)
            || self.implications.iter().any(|implication| implication.is_about(position))
    }

    /// The blocks of a point, with their columns and their positions in a row.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (&Block, Range<usize>, usize)> {
        self.actions.encoder.placed()
    }

    /// The point of a row; `None` for a row of another schema.
    pub(super) fn encode(&self, row: &Row) -> Option<Vec<f32>> {
        self.actions.encoder.encode(row).ok().map(crate::Point::into_vec)
    }

    /// The violations of a row.
    pub(super) fn violations(&self, row: &Row) -> Vec<Violation> {
        let values = row.values();
        let mut found = Vec::new();
        for (position, options) in self.options.iter().enumerate() {
            let value = values.get(position);
            if !value.is_some_and(|value| options.allow(value)) {
                let name = &self.actions.schema.features[position].name;
                found.push(Violation {
                    constraint: Constraint::Feature(name.clone()),
                    found: match value {
                        None => "nothing".to_owned(),
                        Some(Value::Missing) => "a missing value".to_owned(),
                        Some(value) => format!("`{value}`"),
                    },
                    allowed: options.in_words(),
                });
            }
        }
        let sums = self.rules.iter().filter(|rule| !rule.holds(values));
        let sums = sums.map(|rule| (rule.index, rule.violation(values)));
        let implied = self.implications.iter().filter(|own| !own.holds(values));
        let implied = implied.map(|own| (own.index, own.violation(values)));
        for (index, (has, allowed)) in sums.chain(implied) {
            let constraint = self.actions.rule_constraint(index);
            found.push(Violation { constraint, found: has, allowed });
        }
        found
    }
}

/// The nearest finite float, as the encoder writes it.
fn finite(x: f64) -> f32 {
    (x as f32).clamp(f32::MIN, f32::MAX)
}
