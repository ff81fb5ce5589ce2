//! Whether the model in use looks like one of its siblings: models retrained by the same recipe.
//!
//! Four statistics of a model on the labelled rows of the reference are compared: the mean
//! cross-entropy, the mean score, the share of accepted rows, and the disagreement, which is the
//! mean over the other models of the share of rows that they decide differently. The model in use
//! is one of `n + 1` models here, and all of them are treated alike: the value `x` of model `i` is
//! compared with the values of the other `n`, which have the mean `m` and the standard deviation
//! `s`,
//!
//! `T_i = max over the statistics of |x - m| / (s sqrt(1 + 1/n))`,
//!
//! and 0 or infinity if `s = 0`. With `k = max(1, floor((n + 1) * `[`LEVEL`]`))` the model in use
//! differs if fewer than `k` siblings have a `T_i` of at least its own.
//!
//! *The level is `k/(n + 1)`.* If the model in use is one more draw from the recipe, the `n + 1`
//! models are exchangeable, and so are the `T_i`, since each is the same function of its own model
//! and of the set of the others. For any values, fewer than `k` others are at least as large for at
//! most `k` of `n + 1` numbers. So the model in use is one of those with a probability of at most
//! `k/(n + 1)`, whatever the distribution and however the statistics depend on each other: early
//! stopping ends some trainings much sooner than others. The level is [`LEVEL`] or less from 99
//! siblings on, and `1/(n + 1)` with fewer.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::{Counter, Explainer, Progress, RetrainingTerms, RetrainingView, Stage};
use crate::certificate::{Deviation, Likeness, LikenessTest, RecipeSource, Statistic};
use crate::change::{Ensemble, Given, ModelChange, Origin};
use crate::error::Result;
use crate::model::THRESHOLD;

/// The level of the test with enough siblings: the probability with which a model that is one of
/// them is rejected.
pub const LEVEL: f64 = 0.01;
/// Models to retrain for the test if the change is not `reinitialise`: about as many as certify the
/// default promise, for a level of 1/61.
pub const SIBLINGS: usize = 60;
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
        let all: Vec<&[f32]> = std::iter::once(&own).chain(&scores).map(Vec::as_slice).collect();
        let test = LikenessTest::Tested {
            level: rank(siblings.len()) as f64 / all.len() as f64,
            siblings: siblings.len(),
            rows: rows.len(),
            differs: deviations(&statistics(&all, &labels)),
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

/// The largest rank among the model and this number of siblings at which it differs.
fn rank(siblings: usize) -> usize {
    (((siblings + 1) as f64 * LEVEL) as usize).max(1)
}

/// The statistics of each model, from their scores of the same rows.
fn statistics(models: &[&[f32]], labels: &[bool]) -> Vec<[f64; 4]> {
    let accepting: Vec<usize> = (0..labels.len())
        .map(|row| models.iter().filter(|scores| scores[row] >= THRESHOLD).count())
        .collect();
    let rows = labels.len() as f64;
    let pairs = rows * (models.len() - 1) as f64;
    let of = |scores: &&[f32]| {
        let (mut loss, mut sum, mut accepted, mut different) = (0.0, 0.0, 0, 0);
        for (row, &score) in scores.iter().enumerate() {
            let accepts = score >= THRESHOLD;
            accepted += usize::from(accepts);
            // A model agrees with itself, so its own decision adds nothing.
            different += if accepts { models.len() - accepting[row] } else { accepting[row] };
            sum += f64::from(score);
            let score = f64::from(score).clamp(CLAMP, 1.0 - CLAMP);
            loss -= libm::log(if labels[row] { score } else { 1.0 - score });
        }
        [loss / rows, sum / rows, accepted as f64 / rows, different as f64 / pairs]
    };
    models.iter().map(of).collect()
}

/// The mean of the values of the other models, and the unit in which one more is measured. Values that
/// are not numbers are left out: one of them must not hide how the others lie.
fn others(values: &[f64], model: usize) -> (f64, f64) {
    let others = || {
        let all = values.iter().enumerate().filter(|(each, _)| *each != model);
        all.map(|each| *each.1).filter(|value| !value.is_nan())
    };
    let count = others().count() as f64;
    let first = others().next().unwrap_or(f64::NAN);
    // Rounding must not make equal values differ.
    if others().all(|value| value.to_bits() == first.to_bits()) {
        return (first, 0.0);
    }
    let mean = others().sum::<f64>() / count;
    let squares: f64 = others().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (count - 1.0)).sqrt() * (1.0 + 1.0 / count).sqrt())
}

/// The distance of a model's value from those of the others. A value that is not a number is at an
/// infinite distance.
fn distance(values: &[f64], model: usize) -> f64 {
    let (mean, unit) = others(values, model);
    let difference = (values[model] - mean).abs();
    match difference / unit {
        _ if difference == 0.0 => 0.0,
        distance if distance.is_nan() => f64::INFINITY,
        distance => distance,
    }
}

/// The statistics in which the first model differs from the others.
fn deviations(models: &[[f64; 4]]) -> Vec<Deviation> {
    let values = [0, 1, 2, 3].map(|index| models.iter().map(|own| own[index]).collect::<Vec<_>>());
    let largest = |model: usize| -> f64 {
        values.iter().map(|values| distance(values, model)).fold(0.0, f64::max)
    };
    let mut siblings: Vec<f64> = (1..models.len()).map(largest).collect();
    siblings.sort_unstable_by(|one, other| other.total_cmp(one));
    let most = siblings[rank(siblings.len()) - 1];
    let differs = |(statistic, values): (Statistic, &Vec<f64>)| {
        let (mean, unit) = others(values, 0);
        let within = if unit == 0.0 { 0.0 } else { most * unit };
        (distance(values, 0) > most).then_some(Deviation {
            statistic,
            model: values[0],
            mean,
            within,
        })
    };
    STATISTICS.into_iter().zip(&values).filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;
    use rand_distr::{Distribution as _, StandardNormal};

    use super::*;
    use crate::model::train::{Job, train_all};
    use crate::model::{Examples, Model as _, TrainParams};
    use crate::points::Points;
    use crate::seed::{Rng, Seed};

    /// How many of the models are rejected if each in turn is the one in use.
    fn rejected(models: &[[f64; 4]]) -> usize {
        let in_use = |place: &usize| {
            let mut models = models.to_vec();
            models.swap(0, *place);
            !deviations(&models).is_empty()
        };
        (0..models.len()).filter(in_use).count()
    }

    /// Four dependent statistics, each with a heavy tail or a few values.
    fn draw(rng: &mut Rng) -> [f64; 4] {
        let [a, b, c, d]: [f64; 4] = std::array::from_fn(|_| StandardNormal.sample(rng));
        let early = if rng.random_bool(0.1) { 9.0 } else { 0.0 };
        [a + early, 5.0 + 0.6 * a + 0.8 * b, 1e-3 * c / d, (2.0 * d).round()]
    }

    /// Of `n + 1` models at most `k` are rejected, for any values. So a model that is a random one
    /// of them is rejected with a probability of at most `k/(n + 1)`.
    #[test]
    fn of_any_models_no_more_are_rejected_than_the_level_says() {
        const WORLDS: usize = 10;
        for siblings in [LEAST_SIBLINGS, 20, SIBLINGS, 99, 250] {
            let (mut most, mut sum) = (0, 0);
            for world in 0..WORLDS {
                let mut rng = Seed(7).index(siblings).index(world).rng();
                let models: Vec<[f64; 4]> = (0..=siblings).map(|_| draw(&mut rng)).collect();
                let rejected = rejected(&models);
                (most, sum) = (most.max(rejected), sum + rejected);
            }
            // Without ties it is exactly that number.
            assert_eq!((most, sum), (rank(siblings), WORLDS * rank(siblings)), "{siblings}");
        }
        assert_eq!([10, 98, 99, 198, 199].map(rank), [1, 1, 1, 1, 2]);
    }

    /// Two groups of points with noise, as a data set.
    fn examples(rows: usize, seed: Seed) -> (Points, Vec<u32>) {
        let mut rng = seed.rng();
        let (mut points, mut labels) = (Points::new(4), Vec::new());
        for row in 0..rows {
            let favourable = row % 2;
            let centre = favourable as f64 - 0.5;
            let point: [f32; 4] = std::array::from_fn(|_| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                (centre + noise) as f32
            });
            points.push(&point);
            labels.push(favourable as u32);
        }
        (points, labels)
    }

    /// The scores of networks that are trained by these parameters, each with its own seed.
    fn trained(params: &TrainParams, count: usize, data: &(Points, Vec<u32>)) -> Vec<Vec<f32>> {
        let (points, labels) = data;
        let seed = Seed(5).index(count);
        let jobs: Vec<Job> = (0..count)
            .map(|each| Job::new(Examples::new(points, labels), params, seed.index(each)))
            .collect();
        let trained = train_all(&jobs, |_, _| ControlFlow::Continue(())).unwrap();
        trained.iter().map(|own| own.network.score(points)).collect()
    }

    /// Networks whose training ends early by chance, of which each in turn is the one in use.
    #[test]
    fn of_networks_that_stop_early_no_more_are_rejected_than_the_level_says() {
        let data = examples(160, Seed(3));
        let labels: Vec<bool> = data.1.iter().map(|&label| label == 1).collect();
        let settings = TrainParams { hidden: vec![8], epochs: 60, ..TrainParams::default() };
        assert!(settings.early_stopping.is_some(), "the default training stops early");
        let all = trained(&settings, 124, &data);
        for siblings in [20, 61, 123] {
            let (mut rejected_in_all, mut groups) = (0, 0);
            for group in all.chunks_exact(siblings + 1) {
                let group: Vec<&[f32]> = group.iter().map(Vec::as_slice).collect();
                let rejected = rejected(&statistics(&group, &labels));
                assert!(rejected <= rank(siblings), "{siblings}: {rejected}");
                (rejected_in_all, groups) = (rejected_in_all + rejected, groups + 1);
            }
            // The test is not idle: ties are rare.
            assert!(rejected_in_all * 2 >= groups, "{siblings}: {rejected_in_all} of {groups}");
        }
    }

    #[test]
    fn a_model_no_farther_than_a_sibling_is_one_of_them() {
        // One sibling of 61 is as far from the others as the model, so the distribution has a tail.
        let mut models: Vec<[f64; 4]> =
            (0..62).map(|each| [f64::from(each % 2), 0.0, 0.0, 0.0]).collect();
        models[1][0] = 9.0;
        models[0][0] = 8.9;
        assert_eq!(deviations(&models), []);
        models[0][0] = 9.1;
        let differs = deviations(&models);
        assert_eq!(differs.len(), 1);
        assert_eq!(differs[0].statistic, Statistic::CrossEntropy);
        // The accepted values end where the other one is, up to what both do to each other.
        let end = differs[0].mean + differs[0].within;
        assert!((8.5..9.1).contains(&end), "{end}");
    }

    #[test]
    fn equal_siblings_tolerate_only_their_own_value() {
        let mut models = vec![[0.1, 0.2, 0.3, 0.0]; LEAST_SIBLINGS + 1];
        assert_eq!(deviations(&models), []);
        models[0] = [0.1, 0.2, 0.4, f64::NAN];
        let differs = deviations(&models);
        let names: Vec<Statistic> = differs.iter().map(|each| each.statistic).collect();
        assert_eq!(names, [Statistic::Accepted, Statistic::Disagreement]);
        assert_eq!((differs[0].mean, differs[0].within), (0.3, 0.0));
    }

    #[test]
    fn statistics_follow_their_definitions() {
        let models: [&[f32]; 4] =
            [&[0.75, 0.25, 0.25], &[0.9, 0.2, 0.7], &[0.8, 0.6, 0.4], &[0.1, 0.3, 0.5]];
        let labels = [true, false, true];
        let all = statistics(&models, &labels);
        let loss = -(2.0 * 0.75_f64.ln() + 0.25_f64.ln()) / 3.0;
        // Against the other three: 1 of 3 rows differs, then 1, then 2.
        let expected = [loss, 1.25 / 3.0, 1.0 / 3.0, (1.0 + 1.0 + 2.0) / 9.0];
        for (value, expected) in all[0].into_iter().zip(expected) {
            assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        }
        // The second: 1 row differs from the first, 2 from the third, 1 from the fourth.
        assert!((all[1][3] - 4.0 / 9.0).abs() < 1e-12, "{}", all[1][3]);
        assert!((all[1][2] - 2.0 / 3.0).abs() < 1e-12);
    }
}
