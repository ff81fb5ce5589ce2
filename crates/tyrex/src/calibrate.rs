//! Calibration: the threshold `tau` from a required validity and confidence.
//!
//! The higher the threshold `tau` of a search, the more often retrained models accept its
//! counterfactuals, at a higher cost. The goal is a validity and a confidence; the answer is the
//! smallest `tau` for which retrained models confirm the goal.
//!
//! Half of the models choose the threshold. From the largest `tau` down, the null hypothesis "the
//! validity is below the target" is tested over the models, and the last `tau` before the first
//! failure is chosen (*fixed-sequence testing*). Each test has the full level `1 - confidence`, and
//! the family-wise error rate is still at most that: a wrong `tau` is chosen only if the first
//! wrong one in the sequence passes. The other half of the models estimates the validity of the
//! chosen threshold. If the goal is confirmed for no threshold, the choosing models choose the one
//! with the highest validity, and the others say what it keeps.
//!
//! The statement holds for the next model of the same change, and for these factuals. It does not
//! cover other people or other changes.

use serde::{Deserialize, Serialize};

use crate::counterfactual::Outcome;
use crate::error::{Error, Result};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;
use crate::statistics::{betting, hoeffding_bentkus, mean};

/// The goal of a calibration.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `validity` | 0.95 | expected share of valid counterfactuals under a retrained model | (0, 1) |
/// | `confidence` | 0.95 | probability that the chosen threshold keeps it | (0, 1) |
/// | `missing` | `left-out` | how a factual without a counterfactual counts | |
/// | `test` | `betting` | the test behind p-values and intervals | |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibrationGoal))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Goal {
    /// Expected share of valid counterfactuals under a retrained model.
    pub validity: f64,
    /// Probability that the chosen threshold keeps it.
    pub confidence: f64,
    /// How a factual without a counterfactual counts.
    pub missing: CalibrationMissing,
    /// The test behind p-values and intervals.
    pub test: CalibrationTest,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            validity: 0.95,
            confidence: 0.95,
            missing: CalibrationMissing::default(),
            test: CalibrationTest::default(),
        }
    }
}

/// The test behind p-values and intervals. Both tests are valid for any distribution of the models'
/// validities, and need the same number of models if no counterfactual fails; they differ in power
/// if some fail. The test must be chosen before the results are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CalibrationTest {
    /// A bound by betting: for many factuals, of which every model fails some.
    #[default]
    Betting,
    /// The bound of Hoeffding and Bentkus: for few factuals, all of which a model may fail.
    HoeffdingBentkus,
}

choices! { CalibrationTest "test" {
    Betting = "betting": "For many applicants, of which every model fails some",
    HoeffdingBentkus = "hoeffding-bentkus":
        "For few applicants, all of which a model may fail",
} }

impl CalibrationTest {
    /// The p-value of "the expected validity is at most `level`".
    fn p_value(self, validities: &[f64], level: f64) -> Result<f64> {
        match self {
            Self::Betting => betting(validities, level),
            Self::HoeffdingBentkus => {
                let loss = (1.0 - mean(validities).unwrap_or(0.0)).clamp(0.0, 1.0);
                hoeffding_bentkus(loss, validities.len(), 1.0 - level)
            }
        }
    }

    /// The largest level that the expected validity exceeds, at this `alpha`.
    fn at_least(self, validities: &[f64], alpha: f64) -> Result<f64> {
        let (mut excluded, mut plausible) = (0.0, mean(validities).unwrap_or(0.0));
        loop {
            let level = f64::midpoint(excluded, plausible);
            // Levels closer than the last digit of `1 - level` cannot be distinguished.
            if level <= excluded || level >= plausible || level < f64::EPSILON {
                return Ok(excluded);
            }
            if self.p_value(validities, level)? <= alpha {
                excluded = level;
            } else {
                plausible = level;
            }
        }
    }
}

/// How a factual without a counterfactual counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CalibrationMissing {
    /// As invalid: the validity is among all applicants.
    Invalid,
    /// Not at all: the validity is among applicants with advice.
    #[default]
    LeftOut,
}

choices! { CalibrationMissing "missing" {
    Invalid = "invalid": "As invalid: the validity is among all applicants",
    LeftOut = "left-out": "Not at all: the validity is among applicants with advice",
} }

/// One threshold with the results of its counterfactuals.
#[derive(Debug, Clone, PartialEq)]
pub struct TriedThreshold {
    /// The threshold.
    pub tau: f64,
    /// The cost of each factual's counterfactual; `None` if none was found.
    pub costs: Vec<Option<f64>>,
    /// Model by model: whether each factual's counterfactual is valid under it. The values of
    /// factuals without a counterfactual are ignored.
    pub valid: Vec<Vec<bool>>,
}

/// A mean validity with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalibratedValidity {
    /// The mean over the models that report.
    pub mean: f64,
    /// The expected validity is at least this, and
    pub low: f64,
    /// at most this, with the goal's confidence.
    pub high: f64,
}

/// One threshold of the cost curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibrationPoint))]
pub struct CurvePoint {
    /// The threshold.
    pub tau: f64,
    /// The share of factuals with a counterfactual.
    pub coverage: f64,
    /// The mean cost of a counterfactual; `None` if there is none.
    pub mean_cost: Option<f64>,
    /// The mean validity over the models that choose. `None` if no factual counts.
    pub validity_choosing: Option<f64>,
    /// The mean validity over the models that report.
    pub validity_reporting: Option<f64>,
    /// The p-value of "the validity is below the target", over the models that choose.
    pub p_value: f64,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum CalibrationVerdict {
    /// The smallest threshold that was shown to reach the goal.
    Chosen {
        /// The threshold.
        tau: f64,
        /// Its validity under the models that report.
        validity: CalibratedValidity,
    },
    /// There are too few models to confirm the goal for any threshold, even without a failure.
    TooFewModels {
        /// The number of models that choose and that report, together.
        models: usize,
        /// The least sufficient number of models, both halves together.
        needed: usize,
    },
    /// Too few counterfactuals are found for every threshold.
    TooFewFound {
        /// The largest coverage of any threshold.
        coverage: f64,
    },
    /// The models do not confirm the goal, not even for the largest threshold that was tested.
    NotShown {
        /// That threshold.
        tau: f64,
        /// Its p-value, which is above one minus the confidence.
        p_value: f64,
    },
}

/// The threshold with the highest validity, if none was shown to reach the goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestThreshold {
    /// The threshold.
    pub tau: f64,
    /// Its validity under the models that report, which did not choose it.
    pub validity: CalibratedValidity,
    /// The number of models, both halves together, that would show the goal for this threshold
    /// alone if they judge as these do. `None` if no number of such models would.
    pub models: Option<usize>,
}

/// The result of a calibration, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Calibration {
    /// The goal.
    pub goal: Goal,
    /// The number of factuals.
    pub factuals: usize,
    /// The models that choose; they come first.
    pub choosing: usize,
    /// The models that report.
    pub reporting: usize,
    /// The answer.
    #[serde(flatten)]
    pub verdict: CalibrationVerdict,
    /// The best threshold, if none was chosen and any has a counterfactual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestThreshold>,
    /// Every threshold, the largest first.
    pub curve: Vec<CurvePoint>,
}

impl Calibration {
    /// The threshold, if one was chosen.
    pub fn tau(&self) -> Option<f64> {
        match self.verdict {
            CalibrationVerdict::Chosen { tau, .. } => Some(tau),
            _ => None,
        }
    }

    /// The threshold to use: the chosen one; else the best; else, if nothing was found at any, the
    /// smallest.
    pub(crate) fn usable_tau(&self) -> Option<f64> {
        let smallest = || self.curve.last().map(|point| point.tau);
        self.tau().or(self.best.map(|best| best.tau)).or_else(smallest)
    }

    /// The answer in words, with the remedy if no threshold was chosen.
    pub fn sentence(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let within = |validity: CalibratedValidity| {
            let CalibratedValidity { mean, low, high } = validity;
            format!(
                "{} valid under the {} models that did not choose it (between {} and {})",
                percent(mean),
                self.reporting,
                percent(low),
                percent(high)
            )
        };
        let why = match self.verdict {
            CalibrationVerdict::Chosen { tau, validity } => {
                return format!("tau {tau}: {}", within(validity));
            }
            CalibrationVerdict::TooFewModels { models, needed } => {
                format!("{models} models cannot show it; at least {needed} are needed")
            }
            CalibrationVerdict::TooFewFound { coverage } => {
                format!("at most {} have a counterfactual, at any threshold", percent(coverage))
            }
            CalibrationVerdict::NotShown { tau, p_value } => format!(
                "{} models do not show it, not even for tau {tau} (p-value {p_value:.3})",
                self.choosing
            ),
        };
        let Some(best) = self.best else { return format!("no: {why}") };
        let remedy = match best.models {
            Some(models) => {
                format!("about {models} models that judge alike would show the goal for it")
            }
            None => format!("a target below {} may be shown", percent(best.validity.low)),
        };
        format!("no: {why}. The best is tau {}: {}; {remedy}", best.tau, within(best.validity))
    }
}

/// The most copies of the models that are tried for [`BestThreshold::models`].
const MOST_COPIES: usize = 64;

/// The number of models needed to confirm a validity with a confidence: the least `n` with
/// `validity^n <= 1 - confidence`, which is the p-value if none of the `n` ever fails.
pub fn models_needed(validity: f64, confidence: f64) -> Result<usize> {
    check(&Goal { validity, confidence, ..Goal::default() })?;
    let delta = 1.0 - confidence;
    let near = (delta.ln() / validity.ln()).floor().max(1.0);
    // The quotient may be off by rounding, so the p-value itself decides.
    let mut models = near as usize;
    while hoeffding_bentkus(0.0, models, 1.0 - validity)? > delta {
        models += 1;
    }
    Ok(models)
}

/// The default thresholds.
pub const TAUS: [f64; 10] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// The models to train for a calibration: with twice the minimum in either half the goal can be
/// confirmed even if some counterfactuals fail.
pub fn usual_models(validity: f64, confidence: f64) -> Result<usize> {
    Ok(models_needed(validity, confidence)?.saturating_mul(4))
}

/// Searches with every threshold, scores the counterfactuals with every model, and chooses.
///
/// `search` returns the counterfactuals of the factuals for a threshold. It must not use the
/// models.
pub fn calibrate(
    goal: &Goal,
    taus: &[f64],
    models: &[&dyn Model],
    mut search: impl FnMut(f64) -> Result<Vec<Outcome>>,
) -> Result<Calibration> {
    check(goal)?;
    let mut candidates = Vec::with_capacity(taus.len());
    for &tau in taus {
        candidates.push(judged(tau, &search(tau)?, models)?);
    }
    choose(goal, candidates)
}

/// Which counterfactuals are valid under which model.
pub fn judged(tau: f64, outcomes: &[Outcome], models: &[&dyn Model]) -> Result<TriedThreshold> {
    let dim = models.first().map_or(0, |model| model.dim());
    let fits = |what: &str, got: usize| {
        if got == dim {
            return Ok(());
        }
        Err(Error::Dimension { what: what.to_owned(), expected: dim, got })
    };
    let mut points = Points::new(dim);
    for found in outcomes.iter().filter_map(Outcome::found) {
        fits("coordinates of a counterfactual", found.point.len())?;
        points.push(&found.point);
    }
    let mut valid = Vec::with_capacity(models.len());
    for model in models {
        fits("inputs of a retrained model", model.dim())?;
        let mut scores = model.score(&points).into_iter();
        let accepted = |outcome: &Outcome| {
            outcome.found().is_some() && scores.next().is_some_and(|score| score >= THRESHOLD)
        };
        valid.push(outcomes.iter().map(accepted).collect());
    }
    let costs = outcomes.iter().map(|outcome| Some(outcome.found()?.cost)).collect();
    Ok(TriedThreshold { tau, costs, valid })
}

/// The smallest threshold whose validity reaches the goal, from the results of every candidate. All
/// candidates must have the same models and factuals.
pub fn choose(goal: &Goal, candidates: Vec<TriedThreshold>) -> Result<Calibration> {
    let (models, _) = sizes(&candidates)?;
    let mut answer = choose_by(goal, candidates, models.div_ceil(2))?;
    if let CalibrationVerdict::TooFewModels { needed, .. } = &mut answer.verdict {
        // With more models both halves grow, and the half that chooses has the odd one.
        *needed = 2 * models_needed(goal.validity, goal.confidence)? - 1;
    }
    Ok(answer)
}

/// The same; the first `choosing` models choose and the others report.
pub fn choose_by(
    goal: &Goal,
    mut candidates: Vec<TriedThreshold>,
    choosing: usize,
) -> Result<Calibration> {
    check(goal)?;
    let (models, factuals) = sizes(&candidates)?;
    if choosing >= models {
        return Err(Error::param("choosing", choosing, format!("fewer than all {models} models")));
    }
    candidates.sort_by(|a, b| b.tau.total_cmp(&a.tau));
    if let Some(pair) = candidates.windows(2).find(|pair| pair[0].tau == pair[1].tau) {
        return Err(Error::param("tau", pair[0].tau, "every threshold once"));
    }
    let mut curve = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let found: Vec<f64> = candidate.costs.iter().copied().flatten().collect();
        let validities = validities(candidate, goal.missing);
        let (first, second) = validities.split_at(choosing.min(validities.len()));
        curve.push(CurvePoint {
            tau: candidate.tau,
            coverage: found.len() as f64 / factuals as f64,
            mean_cost: mean(&found),
            validity_choosing: mean(first),
            validity_reporting: mean(second),
            p_value: goal.test.p_value(first, goal.validity)?,
        });
    }
    let reporting = models - choosing;
    let verdict = match passed(goal, &curve, choosing, reporting)? {
        Err(verdict) => verdict,
        Ok(index) => {
            let validities = validities(&candidates[index], goal.missing);
            let validity = reported(goal, &validities[choosing..])?;
            CalibrationVerdict::Chosen { tau: candidates[index].tau, validity }
        }
    };
    let best = match verdict {
        CalibrationVerdict::Chosen { .. } => None,
        _ => best(goal, &curve, &candidates, choosing)?,
    };
    Ok(Calibration { goal: *goal, factuals, choosing, reporting, verdict, best, curve })
}

/// The validity under the models that report.
fn reported(goal: &Goal, validities: &[f64]) -> Result<CalibratedValidity> {
    let alpha = 0.5 * (1.0 - goal.confidence);
    let losses: Vec<f64> = validities.iter().map(|validity| 1.0 - validity).collect();
    Ok(CalibratedValidity {
        mean: mean(validities).unwrap_or(0.0),
        low: goal.test.at_least(validities, alpha)?,
        high: 1.0 - goal.test.at_least(&losses, alpha)?,
    })
}

/// The threshold with the highest validity under the models that choose, the smallest of equals,
/// judged by the models that report.
fn best(
    goal: &Goal,
    curve: &[CurvePoint],
    candidates: &[TriedThreshold],
    choosing: usize,
) -> Result<Option<BestThreshold>> {
    let judged = curve.iter().zip(candidates);
    let judged = judged.filter_map(|(point, own)| Some((point.validity_choosing?, own)));
    let Some((_, own)) = judged.reduce(|a, b| if b.0 >= a.0 { b } else { a }) else {
        return Ok(None);
    };
    let validities = validities(own, goal.missing);
    let validity = reported(goal, &validities[choosing..])?;
    let models = enough_models(goal, &validities)?;
    Ok(Some(BestThreshold { tau: own.tau, validity, models }))
}

/// The number of models, both halves together, with which the goal is shown if they judge as these
/// do: twice the first of 1, 2, 4, .. copies of them whose test succeeds.
fn enough_models(goal: &Goal, validities: &[f64]) -> Result<Option<usize>> {
    // Copies of models with a lower mean show nothing.
    if mean(validities).is_none_or(|mean| mean <= goal.validity) {
        return Ok(None);
    }
    let mut copies = validities.to_vec();
    while copies.len() <= MOST_COPIES * validities.len() {
        if goal.test.p_value(&copies, goal.validity)? <= 1.0 - goal.confidence {
            return Ok(Some(2 * copies.len()));
        }
        copies.extend_from_within(..);
    }
    Ok(None)
}

/// Fixed-sequence testing down the curve: the last threshold that passes, or the reason why none
/// does.
fn passed(
    goal: &Goal,
    curve: &[CurvePoint],
    choosing: usize,
    reporting: usize,
) -> Result<Result<usize, CalibrationVerdict>> {
    let needed = models_needed(goal.validity, goal.confidence)?;
    if choosing < needed {
        let (models, needed) = (choosing + reporting, needed + reporting);
        return Ok(Err(CalibrationVerdict::TooFewModels { models, needed }));
    }
    // If too few counterfactuals are found, the test fails for any models. The coverage does not
    // depend on the models, so the sequence may start below such thresholds.
    let enough: Vec<bool> = curve
        .iter()
        .map(|point| is_enough_found(goal, point.coverage, choosing))
        .collect::<Result<_>>()?;
    let mut tested = curve.iter().enumerate().filter(|(index, _)| enough[*index]).peekable();
    let Some(&(_, first)) = tested.peek() else {
        let coverage = curve.iter().map(|point| point.coverage).fold(0.0, f64::max);
        return Ok(Err(CalibrationVerdict::TooFewFound { coverage }));
    };
    let passing = tested.take_while(|(_, point)| point.p_value <= 1.0 - goal.confidence);
    let not_shown = CalibrationVerdict::NotShown { tau: first.tau, p_value: first.p_value };
    Ok(passing.last().map(|(index, _)| index).ok_or(not_shown))
}

/// Whether the coverage is high enough for `choosing` models to confirm the goal.
fn is_enough_found(goal: &Goal, coverage: f64, choosing: usize) -> Result<bool> {
    Ok(match goal.missing {
        CalibrationMissing::Invalid => {
            let at_best = vec![coverage; choosing];
            goal.test.p_value(&at_best, goal.validity)? <= 1.0 - goal.confidence
        }
        CalibrationMissing::LeftOut => coverage > 0.0,
    })
}

/// The validity under each model: a share of the factuals that count. `None` if no factual counts.
fn validities(candidate: &TriedThreshold, missing: CalibrationMissing) -> Vec<f64> {
    let counted = match missing {
        CalibrationMissing::Invalid => candidate.costs.len(),
        CalibrationMissing::LeftOut => candidate.costs.iter().flatten().count(),
    };
    if counted == 0 {
        return Vec::new();
    }
    let share = |model: &Vec<bool>| {
        let pairs = model.iter().zip(&candidate.costs);
        pairs.filter(|(valid, cost)| **valid && cost.is_some()).count() as f64 / counted as f64
    };
    candidate.valid.iter().map(share).collect()
}

fn check(goal: &Goal) -> Result<()> {
    for (name, value) in [("target", goal.validity), ("confidence", goal.confidence)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(Error::param(name, value, "a number between 0 and 1"));
        }
    }
    Ok(())
}

/// The number of models and of factuals, which every candidate must have.
fn sizes(candidates: &[TriedThreshold]) -> Result<(usize, usize)> {
    let Some(first) = candidates.first() else {
        return Err(Error::param("tau", "missing", "at least one threshold to try"));
    };
    let (models, factuals) = (first.valid.len(), first.costs.len());
    if models < 2 {
        return Err(Error::param("models", models, "at least 2, one to choose and one to report"));
    }
    if factuals == 0 {
        return Err(Error::param("factuals", 0, "at least 1"));
    }
    for candidate in candidates {
        if !candidate.tau.is_finite() {
            return Err(Error::param("tau", candidate.tau, "a finite number"));
        }
        let fits = |what: &str, expected: usize, got: usize| {
            if got == expected {
                return Ok(());
            }
            Err(Error::Dimension {
                what: format!("{what} at tau {}", candidate.tau),
                expected,
                got,
            })
        };
        fits("models", models, candidate.valid.len())?;
        fits("factuals", factuals, candidate.costs.len())?;
        for model in &candidate.valid {
            fits("factuals under a model", factuals, model.len())?;
        }
    }
    Ok((models, factuals))
}

#[cfg(test)]
mod tests;
