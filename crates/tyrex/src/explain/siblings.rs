//! Whether the model in use looks like one of its siblings: models retrained by the same recipe.
//!
//! Four statistics of a model on the labelled rows of the reference are compared: the mean
//! cross-entropy, the mean score, the share of accepted rows, and the disagreement, which is the
//! mean over the (other) siblings of the share of rows that they decide differently. If the model
//! in use is one more draw from the recipe, its value `x` and the values of `n` siblings, with mean
//! `m` and standard deviation `s`, are exchangeable. If they are also normal,
//! `(x - m) / (s sqrt(1 + 1/n))` has Student's distribution with `n - 1` degrees of freedom. The
//! model differs if for one of the four statistics the absolute value exceeds the quantile at
//! [`LEVEL`]` / 4` (Bonferroni) and `x` is below or above all siblings. If all siblings have the
//! same value, any other value differs.
//!
//! The second condition is for statistics that are not normal: early stopping ends some trainings
//! much sooner than others. A value outside the range of `n` exchangeable ones has probability
//! `2 / (n + 1)`, so whatever the distribution, a sibling is rejected with probability of at most
//! `8 / (n + 1)`.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::{Counter, Explainer, Progress, RetrainingTerms, RetrainingView, Stage};
use crate::certificate::{Deviation, Likeness, LikenessTest, RecipeSource, Statistic};
use crate::change::{Ensemble, Given, ModelChange, Origin};
use crate::error::Result;
use crate::model::THRESHOLD;
use crate::statistics::student_quantile;

/// The probability with which a model that is one of the siblings is rejected.
pub const LEVEL: f64 = 0.01;
/// Models to retrain for the test if the change is not `reinitialise`.
pub const SIBLINGS: usize = 20;
/// The least number of siblings for the test.
pub(crate) const LEAST_SIBLINGS: usize = 10;
/// The most rows for the test; of more rows, equally spaced ones are used.
pub const ROWS: usize = 2000;
/// Scores are kept this far from 0 and 1 before their logarithm is taken.
const CLAMP: f64 = 1e-7;

/// The statistics, in the order of their values.
const STATISTICS: [Statistic; 4] =
    [Statistic::CrossEntropy, Statistic::Score, Statistic::Accepted, Statistic::Disagreement];

impl RetrainingView<'_> {
    /// Compares the model with the models that were retrained from it.
    ///
    /// The members of an ensemble of the change `reinitialise` are the siblings. For other changes
    /// that train, [`SIBLINGS`] models are trained now with the parameters of the ensemble; `watch`
    /// is called after every epoch, and a `Break` is an error. Of models that were retrained
    /// elsewhere, the siblings are those that the user names so, or else the members.
    pub fn likeness(
        self,
        ensemble: &Ensemble,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Likeness> {
        self.check(ensemble)?;
        let explainer = self.explainer;
        let recipe = match ensemble.origin() {
            Origin::Trained { params, .. } => explainer.source_of(params),
            Origin::Given(_) => RecipeSource::Given,
        };
        let not_tested = |reason: &str| Ok(Likeness::not_tested(recipe, reason));
        let (rows, labels) = compared_rows(explainer);
        if rows.is_empty() {
            return not_tested("the reference has no labelled rows");
        }
        let again = ModelChange::default();
        let trained;
        let siblings = match ensemble.origin() {
            Origin::Given(Given { siblings, .. }) if !siblings.is_empty() => siblings,
            Origin::Given(_) => ensemble.members(),
            Origin::Trained { change, .. } if *change == again => ensemble.members(),
            Origin::Trained { change, params, .. } if change.epochs(params) == 0.0 => {
                return not_tested("this change does not train models");
            }
            Origin::Trained { params, seed, .. } => {
                let has_label = |&row| explainer.reference().is_favourable(row).is_some();
                if !explainer.training_rows().iter().all(has_label) {
                    return not_tested("a training row has no label");
                }
                let terms = RetrainingTerms {
                    change: again,
                    models: SIBLINGS,
                    params: params.clone(),
                    seed: seed.derive("siblings"),
                };
                let counter = Counter::new(Stage::Retraining, terms.epochs(), watch);
                trained = self.train(&terms, |_, _| counter.add(1))?;
                trained.members()
            }
        };
        if siblings.len() < LEAST_SIBLINGS {
            return not_tested(&format!("fewer than {LEAST_SIBLINGS} models were retrained"));
        }
        let points = explainer.points().select(&rows);
        let scores: Vec<Vec<f32>> =
            siblings.par_iter().map(|sibling| sibling.score(&points)).collect();
        let own: Vec<f32> = rows.iter().map(|&row| explainer.scores()[row]).collect();
        let (own, others) = statistics(&own, &scores, &labels);
        let test = LikenessTest::Tested {
            level: LEVEL,
            siblings: siblings.len(),
            rows: rows.len(),
            differs: deviations(own, &others)?,
        };
        Ok(Likeness { recipe, test })
    }
}

/// The labelled rows, at most [`ROWS`] of them, and whether each label is favourable.
fn compared_rows(explainer: &Explainer) -> (Vec<usize>, Vec<bool>) {
    let label = |row| Some((row, explainer.reference().is_favourable(row)?));
    let labelled: Vec<(usize, bool)> = (0..explainer.points().len()).filter_map(label).collect();
    labelled.iter().step_by(labelled.len().div_ceil(ROWS).max(1)).copied().unzip()
}

/// The statistics of the model and of each sibling, from their scores of the same rows.
fn statistics(own: &[f32], siblings: &[Vec<f32>], labels: &[bool]) -> ([f64; 4], Vec<[f64; 4]>) {
    let accepting: Vec<usize> = (0..labels.len())
        .map(|row| siblings.iter().filter(|scores| scores[row] >= THRESHOLD).count())
        .collect();
    let of = |scores: &[f32], others: usize| {
        let (mut loss, mut sum, mut accepted, mut different) = (0.0, 0.0, 0, 0);
        for (row, &score) in scores.iter().enumerate() {
            let accepts = score >= THRESHOLD;
            accepted += usize::from(accepts);
            // A sibling agrees with itself, so its own decision adds nothing.
            different += if accepts { siblings.len() - accepting[row] } else { accepting[row] };
            sum += f64::from(score);
            let score = f64::from(score).clamp(CLAMP, 1.0 - CLAMP);
            loss -= libm::log(if labels[row] { score } else { 1.0 - score });
        }
        let rows = labels.len() as f64;
        let different = different as f64 / (rows * others as f64);
        [loss / rows, sum / rows, accepted as f64 / rows, different]
    };
    let others = siblings.iter().map(|scores| of(scores, siblings.len() - 1)).collect();
    (of(own, siblings.len()), others)
}

/// The statistics in which the model differs from its siblings.
fn deviations(own: [f64; 4], siblings: &[[f64; 4]]) -> Result<Vec<Deviation>> {
    let count = siblings.len() as f64;
    let quantile = student_quantile(LEVEL / STATISTICS.len() as f64, count - 1.0)?;
    let mut differs = Vec::new();
    for (index, statistic) in STATISTICS.into_iter().enumerate() {
        let (model, values) = (own[index], siblings.iter().map(|values| values[index]));
        let first = siblings[0][index];
        let (mean, within) = if values.clone().all(|value| value == first) {
            (first, 0.0)
        } else {
            let mean = values.clone().sum::<f64>() / count;
            let squares: f64 = values.map(|value| (value - mean) * (value - mean)).sum();
            let deviation = (squares / (count - 1.0)).sqrt();
            (mean, quantile * deviation * (1.0 + 1.0 / count).sqrt())
        };
        let range = siblings.iter().map(|values| values[index]);
        let lowest = range.clone().fold(f64::INFINITY, f64::min);
        let highest = range.fold(f64::NEG_INFINITY, f64::max);
        // A value that is not a number differs too.
        let difference = (model - mean).abs();
        let outside = model < lowest || model > highest;
        if difference.is_nan() || (difference > within && outside) {
            differs.push(Deviation { statistic, model, mean, within });
        }
    }
    Ok(differs)
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution as _, StandardNormal};

    use super::*;
    use crate::seed::{Rng, Seed};

    /// Four dependent normal statistics.
    fn draw(rng: &mut Rng) -> [f64; 4] {
        let [a, b, c, d]: [f64; 4] = std::array::from_fn(|_| StandardNormal.sample(rng));
        [a, 5.0 + 0.6 * a + 0.8 * b, 1e-3 * (a - b + c), -2.0 + d]
    }

    #[test]
    fn a_model_that_is_one_of_its_siblings_is_rejected_no_more_often_than_stated() {
        for siblings in [LEAST_SIBLINGS, SIBLINGS, 61] {
            let worlds = 20_000;
            let rejected = (0..worlds)
                .filter(|&world| {
                    let mut rng = Seed(7).index(siblings).index(world).rng();
                    let own = draw(&mut rng);
                    let others: Vec<[f64; 4]> = (0..siblings).map(|_| draw(&mut rng)).collect();
                    !deviations(own, &others).unwrap().is_empty()
                })
                .count() as f64;
            let share = rejected / f64::from(worlds as u32);
            let error = (LEVEL * (1.0 - LEVEL) / f64::from(worlds as u32)).sqrt();
            assert!(share <= LEVEL + 3.0 * error, "{siblings}: {share}");
            // Bonferroni's bound is nearly reached, so the test is not idle.
            assert!(share >= 0.5 * LEVEL, "{siblings}: {share}");
        }
    }

    #[test]
    fn a_model_within_the_range_of_its_siblings_is_one_of_them() {
        // One sibling of 61 is as far from the others as the model, so the distribution has a tail.
        let mut siblings: Vec<[f64; 4]> =
            (0..61).map(|each| [f64::from(each % 2), 0.0, 0.0, 0.0]).collect();
        siblings[0][0] = 9.0;
        assert_eq!(deviations([8.9, 0.0, 0.0, 0.0], &siblings).unwrap(), []);
        let differs = deviations([9.1, 0.0, 0.0, 0.0], &siblings).unwrap();
        assert_eq!(differs.len(), 1);
        assert_eq!(differs[0].statistic, Statistic::CrossEntropy);
        assert!(differs[0].within < 8.0, "{}", differs[0].within);
    }

    #[test]
    fn equal_siblings_tolerate_only_their_own_value() {
        let siblings = vec![[0.1, 0.2, 0.3, 0.0]; LEAST_SIBLINGS];
        assert_eq!(deviations(siblings[0], &siblings).unwrap(), []);
        let differs = deviations([0.1, 0.2, 0.4, f64::NAN], &siblings).unwrap();
        let names: Vec<Statistic> = differs.iter().map(|each| each.statistic).collect();
        assert_eq!(names, [Statistic::Accepted, Statistic::Disagreement]);
        assert_eq!((differs[0].mean, differs[0].within), (0.3, 0.0));
    }

    #[test]
    fn statistics_follow_their_definitions() {
        let siblings = [vec![0.9, 0.2, 0.7], vec![0.8, 0.6, 0.4], vec![0.1, 0.3, 0.5]];
        let labels = [true, false, true];
        let (own, others) = statistics(&[0.75, 0.25, 0.25], &siblings, &labels);
        let loss = -(2.0 * 0.75_f64.ln() + 0.25_f64.ln()) / 3.0;
        // Against the three: 1 of 3 rows differs, then 1, then 2.
        let expected = [loss, 1.25 / 3.0, 1.0 / 3.0, (1.0 + 1.0 + 2.0) / 9.0];
        for (value, expected) in own.into_iter().zip(expected) {
            assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        }
        // The first sibling: 2 rows differ from the second, 1 from the third.
        assert!((others[0][3] - 3.0 / 6.0).abs() < 1e-12, "{}", others[0][3]);
        assert!((others[0][2] - 2.0 / 3.0).abs() < 1e-12);
    }
}
