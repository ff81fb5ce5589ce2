//! The features of a core: raw columns, imputed, scaled, or compared with a category.

use super::super::expression::{Atom, Expression, Function, Variable};
use crate::model::files::{Category, InputBlock};

/// One feature of the core: a raw column, imputed or compared with a category, and the scale
/// and shift that are left for the core to absorb.
pub(super) struct Feature {
    column: usize,
    missing: Option<f64>,
    kind: Kind,
    pub(super) scale: f64,
    pub(super) shift: f64,
}

enum Kind {
    Number { scale: f64, shift: f64 },
    Equals(Category),
}

/// The features, if the formulas are made of raw columns only.
pub(super) fn features(columns: &[Expression]) -> Result<Option<Vec<Feature>>, String> {
    let mut found = Vec::with_capacity(columns.len());
    for column in columns {
        match feature(column) {
            Some(feature) => found.push(feature),
            None if mentions_inputs(column) => {
                return Err(
                    "a feature that is more than one raw column, scaled or compared with a category"
                        .into(),
                );
            }
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

fn mentions_inputs(column: &Expression) -> bool {
    column.terms.iter().flat_map(|t| &t.atoms).any(|atom| match atom {
        Atom::Variable(variable) => matches!(variable, Variable::Input(_)),
        Atom::Apply(_, inner) => mentions_inputs(inner),
    })
}

fn feature(column: &Expression) -> Option<Feature> {
    let (scale, atom) = column.single()?;
    let input = |inner: &Expression| match (inner.single(), inner.constant) {
        (Some((1.0, Atom::Variable(Variable::Input(input)))), 0.0) => Some(*input),
        _ => None,
    };
    let number = |column: usize, missing: Option<f64>, shift: f64| Feature {
        column,
        missing,
        kind: Kind::Number { scale, shift },
        scale: 1.0,
        shift: 0.0,
    };
    match atom {
        Atom::Variable(Variable::Input(input)) => Some(number(*input, None, column.constant)),
        Atom::Apply(Function::Impute(value), inner) => {
            Some(number(input(inner)?, Some(*value), column.constant))
        }
        Atom::Apply(Function::Equals(category), inner) => Some(Feature {
            column: input(inner)?,
            missing: None,
            kind: Kind::Equals(category.clone()),
            scale,
            shift: column.constant,
        }),
        _ => None,
    }
}

/// Neighbouring categories of one column become one block.
pub(super) fn blocks(features: &[Feature]) -> Vec<InputBlock> {
    let mut blocks: Vec<InputBlock> = Vec::new();
    for feature in features {
        match (&feature.kind, blocks.last_mut()) {
            (Kind::Equals(category), Some(InputBlock::OneHot { column, categories }))
                if *column == feature.column && !categories.contains(category) =>
            {
                categories.push(category.clone());
            }
            (Kind::Equals(category), _) => blocks.push(InputBlock::OneHot {
                column: feature.column,
                categories: vec![category.clone()],
            }),
            (Kind::Number { scale, shift }, _) => blocks.push(InputBlock::Number {
                column: feature.column,
                missing: feature.missing,
                scale: *scale,
                shift: *shift,
            }),
        }
    }
    blocks
}
