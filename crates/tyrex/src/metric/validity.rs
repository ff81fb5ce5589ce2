//! Validity: whether models accept counterfactuals.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::check_finite;
use super::summary::Summary;
use crate::counterfactual::Outcome;
use crate::error::{Error, Result};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;

/// The counterfactual of every outcome; `None` if none was found.
pub fn found_points(outcomes: &[Outcome]) -> Vec<Option<&[f32]>> {
    outcomes.iter().map(|outcome| outcome.found().map(|found| found.point.as_slice())).collect()
}

/// The share of *all* factuals that have a counterfactual with `M(x') >= 0.5`: one that was not
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
/// models; `None` if no counterfactual was found.
///
/// The authors' released code calls this validity. It counts a point that the base model rejects as
/// valid when the changed model rejects it too, and it leaves out factuals without a
/// counterfactual. It is here to explain differences from the paper's numbers; [`Validity`] is the
/// metric.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mlp;

    /// Accepts points at or above the threshold, on a line.
    fn accepts_from(threshold: f32) -> Mlp {
        Mlp::linear(vec![4.0], -4.0 * threshold).unwrap()
    }

    #[test]
    fn none_some_and_all_are_valid() {
        let models = [accepts_from(0.0), accepts_from(1.0), accepts_from(2.0), accepts_from(9.0)];
        let models: Vec<&Mlp> = models.iter().collect();
        let points = [Some(&[0.5_f32][..]), None, Some(&[1.5]), Some(&[2.0])];
        let validity = Validity::of(&points, &models).unwrap();
        // Of four factuals, of which one has no counterfactual.
        assert_eq!(validity.by_model, [0.75, 0.5, 0.25, 0.0]);
        assert_eq!(validity.by_factual, [0.25, 0.0, 0.5, 0.75]);
        assert_eq!((validity.summary.count, validity.summary.mean), (4, 0.375));
        let all = Validity::of(&points[2..], &models[..2]).unwrap();
        assert_eq!((all.summary.mean, all.summary.high), (1.0, Some(1.0)));
        let none = Validity::of(&[None, None], &models).unwrap();
        assert_eq!((none.by_model, none.by_factual), (vec![0.0; 4], vec![0.0; 2]));
    }

    #[test]
    fn agreement_counts_what_both_models_reject() {
        let (base, other) = (accepts_from(1.0), accepts_from(3.0));
        let points = [Some(&[0.0_f32][..]), Some(&[2.0]), None];
        let agreement = label_agreement(&points, &base, &[&other]).unwrap().unwrap();
        assert_eq!(agreement.mean, 0.5);
        assert_eq!(Validity::of(&points, &[&other]).unwrap().summary.mean, 0.0);
        let with_itself = label_agreement(&points, &base, &[&base]).unwrap().unwrap();
        assert_eq!(with_itself.mean, 1.0);
        assert_eq!(label_agreement(&points[1..], &base, &[&other]).unwrap().unwrap().mean, 0.0);
        assert_eq!(label_agreement(&[None], &base, &[&other]).unwrap(), None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let model = accepts_from(0.0);
        let models: [&Mlp; 1] = [&model];
        assert!(Validity::of(&[], &models).is_err());
        assert!(Validity::of::<Mlp>(&[None], &[]).is_err());
        assert!(Validity::of(&[Some(&[0.0, 1.0][..])], &models).is_err());
        assert!(Validity::of(&[Some(&[f32::NAN][..])], &models).is_err());
    }
}
