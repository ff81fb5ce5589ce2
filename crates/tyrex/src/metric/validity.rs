//! Whether counterfactuals are accepted, by the model they were found for and by others.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::check_finite;
use super::summary::Summary;
use crate::counterfactual::Outcome;
use crate::error::{Error, Result};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;

/// The counterfactual of every outcome, or nothing where none was found.
#[must_use]
pub fn found_points(outcomes: &[Outcome]) -> Vec<Option<&[f32]>> {
    outcomes.iter().map(|outcome| outcome.found().map(|found| found.point.as_slice())).collect()
}

/// The share of factuals for which a counterfactual was found.
pub fn coverage(counterfactuals: &[Option<&[f32]>]) -> Result<Option<Summary>> {
    let found = counterfactuals.iter().flatten().count();
    Summary::of_events(found, counterfactuals.len())
}

/// Which share of *all* factuals has a counterfactual with `M(x') >= 0.5`: one that was not
/// found is not valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// The share of factuals, model by model.
    pub by_model: Vec<f64>,
    /// The share of models, factual by factual; 0 where no counterfactual was found.
    pub by_factual: Vec<f64>,
    /// The mean over models and its spread, as the paper prints it.
    pub summary: Summary,
}

impl Validity {
    /// The validity of counterfactuals, one per factual, under some models.
    pub fn of<M: Model + ?Sized>(
        counterfactuals: &[Option<&[f32]>],
        models: &[&M],
    ) -> Result<Self> {
        if counterfactuals.is_empty() {
            return Err(Error::param("factuals", 0, "at least 1"));
        }
        let accepted = accepted_by(counterfactuals, models)?;
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let by_model: Vec<f64> = accepted
            .iter()
            .map(|model| share(model.iter().filter(|yes| **yes).count(), counterfactuals.len()))
            .collect();
        let mut place = 0;
        let by_factual = counterfactuals
            .iter()
            .map(|counterfactual| {
                if counterfactual.is_none() {
                    return 0.0;
                }
                place += 1;
                let count = accepted.iter().filter(|model| model[place - 1]).count();
                share(count, models.len())
            })
            .collect();
        let Some(summary) = Summary::of_shares(&by_model)? else {
            return Err(Error::param("models", 0, "at least 1"));
        };
        Ok(Self { by_model, by_factual, summary })
    }
}

/// The share of counterfactuals on which a changed model decides as the base model does, over
/// models; nothing where no counterfactual was found.
///
/// This is what the authors' released code calls validity. It counts a point that the base
/// model rejects as valid when the changed model rejects it too, and it leaves out factuals
/// without a counterfactual. It is here to explain differences from the paper's numbers;
/// [`Validity`] is the metric.
pub fn label_agreement<M: Model + ?Sized>(
    counterfactuals: &[Option<&[f32]>],
    base: &M,
    models: &[&M],
) -> Result<Option<Summary>> {
    let accepted = accepted_by(counterfactuals, models)?;
    let reference = accepted_by(counterfactuals, &[base])?.concat();
    if reference.is_empty() {
        return Ok(None);
    }
    let agreement = |model: &Vec<bool>| {
        let same = model.iter().zip(&reference).filter(|(a, b)| a == b).count();
        same as f64 / reference.len() as f64
    };
    Summary::of_shares(&accepted.iter().map(agreement).collect::<Vec<_>>())
}

/// For every model, whether it accepts each counterfactual that was found.
fn accepted_by<M: Model + ?Sized>(
    counterfactuals: &[Option<&[f32]>],
    models: &[&M],
) -> Result<Vec<Vec<bool>>> {
    let Some(first) = models.first() else {
        return Err(Error::param("models", 0, "at least 1"));
    };
    let dim = first.dim();
    let dimensions = models.iter().map(|model| ("inputs of a model", model.dim())).chain(
        counterfactuals
            .iter()
            .flatten()
            .map(|point| ("coordinates of a counterfactual", point.len())),
    );
    for (what, got) in dimensions {
        if got != dim {
            return Err(Error::Dimension { what: what.into(), expected: dim, got });
        }
    }
    let mut points = Points::new(dim);
    for point in counterfactuals.iter().flatten() {
        points.push(point);
    }
    check_finite("counterfactual", &points)?;
    let decide =
        |model: &&M| model.score(&points).iter().map(|score| *score >= THRESHOLD).collect();
    Ok(models.par_iter().map(decide).collect())
}
