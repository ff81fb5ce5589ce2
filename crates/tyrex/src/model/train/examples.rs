//! The training rows of a network, and their weights.

use super::{ClassWeights, OutputLayer, TrainParams};
use crate::error::{Error, Result};
use crate::points::Points;

/// The training rows. Many models share them without copies.
#[derive(Debug, Clone, Copy)]
pub struct Examples<'a> {
    /// Encoded rows.
    pub points: &'a Points,
    /// The class of each row; with a sigmoid output, 1 is favourable.
    pub labels: &'a [u32],
    /// The weight of each row in the loss; all 1 if absent.
    pub weights: Option<&'a [f32]>,
    /// The rows to use, in any order and possibly repeated (a bootstrap); all if absent.
    pub rows: Option<&'a [usize]>,
}

impl<'a> Examples<'a> {
    /// All rows, with equal weight.
    pub fn new(points: &'a Points, labels: &'a [u32]) -> Self {
        Self { points, labels, weights: None, rows: None }
    }

    /// Only the given rows.
    #[must_use]
    pub fn with_rows(self, rows: &'a [usize]) -> Self {
        Self { rows: Some(rows), ..self }
    }

    /// With the given weights, one per row of `points`.
    #[must_use]
    pub fn with_weights(self, weights: &'a [f32]) -> Self {
        Self { weights: Some(weights), ..self }
    }
}

/// Checks the examples and returns the number of classes.
pub(super) fn check_examples(examples: &Examples, params: &TrainParams) -> Result<usize> {
    let classes = match params.output {
        OutputLayer::Sigmoid => 2,
        OutputLayer::Softmax { classes, .. } => classes,
    };
    let count = examples.points.len();
    let same_length = |what: &str, got| {
        if got == count {
            Ok(())
        } else {
            Err(Error::Dimension { what: what.into(), expected: count, got })
        }
    };
    same_length("labels, one per row", examples.labels.len())?;
    if let Some(weights) = examples.weights {
        same_length("weights, one per row", weights.len())?;
        if let Some(row) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
            return Err(Error::Training(format!(
                "the weight of row {row} is {}, expected a number of at least 0",
                weights[row]
            )));
        }
    }
    if let Some(row) = examples.labels.iter().position(|&y| y as usize >= classes) {
        return Err(Error::Training(format!(
            "the label of row {row} is {}, expected a class below {classes}",
            examples.labels[row]
        )));
    }
    if let Some(index) = examples.points.as_slice().iter().position(|v| !v.is_finite()) {
        let dim = examples.points.dim();
        return Err(Error::Training(format!(
            "row {}, encoded column {} is not a finite number",
            index / dim,
            index % dim
        )));
    }
    if let Some(row) = examples.rows.and_then(|rows| rows.iter().find(|&&row| row >= count)) {
        return Err(Error::Training(format!("row {row} was requested, but there are {count}")));
    }
    if examples.rows.map_or(count, <[_]>::len) == 0 {
        return Err(Error::Training("there are no rows to learn from".into()));
    }
    Ok(classes)
}

/// The weight of each row: its own times its class'.
pub(super) fn row_weights(
    examples: &Examples,
    rows: &[usize],
    params: &TrainParams,
    classes: usize,
) -> Result<Vec<f32>> {
    let mut counts = vec![0_usize; classes];
    for &row in rows {
        counts[examples.labels[row] as usize] += 1;
    }
    if counts.iter().filter(|&&count| count > 0).count() < 2 {
        return Err(Error::Training(
            "all rows have the same label; expected at least two classes".into(),
        ));
    }
    let of_class: Vec<f64> = match &params.class_weights {
        ClassWeights::None => vec![1.0; classes],
        ClassWeights::Balanced => counts
            .iter()
            .map(|&count| rows.len() as f64 / (classes * count.max(1)) as f64)
            .collect(),
        ClassWeights::Given(given) => {
            if given.len() != classes || !given.iter().all(|w| w.is_finite() && *w >= 0.0) {
                return Err(Error::param(
                    "class-weights",
                    format!("{given:?}"),
                    format!("{classes} numbers of at least 0, one per class"),
                ));
            }
            given.clone()
        }
    };
    let own = |row: usize| examples.weights.map_or(1.0, |weights| weights[row]);
    Ok(examples
        .labels
        .iter()
        .enumerate()
        .map(|(row, &label)| own(row) * of_class[label as usize] as f32)
        .collect())
}
