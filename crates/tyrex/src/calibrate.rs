//! How robust must a counterfactual be? A threshold from a promise.
//!
//! A search that asks for stability `tau` finds counterfactuals that retrained models accept
//! more often the higher `tau` is, at a higher cost. The promise is a validity and a
//! confidence; the answer is the smallest `tau` for which retrained models show it.
//!
//! Half of the models choose. From the largest `tau` down, "the validity is below the target"
//! is tested with a p-value over the models, and the last `tau` before the first that fails is
//! taken (*fixed-sequence testing*). Each test is made at the
//! full `1 - confidence`: for a wrong `tau` to be chosen, the first wrong one in the sequence
//! must pass, so the chance of that is the chance of one test. The other half, which chose
//! nothing, says what the validity is.
//!
//! The promise is about the next model of the same change, and about these factuals. Other
//! people and other changes are not covered.

use serde::{Deserialize, Serialize};

use crate::counterfactual::Outcome;
use crate::error::{Error, Result};
use crate::model::{Model, THRESHOLD};
use crate::points::Points;
use crate::statistics::{betting, hoeffding_bentkus, mean};

/// The promise.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `validity` | 0.95 | expected share of valid counterfactuals under a retrained model | (0, 1) |
/// | `confidence` | 0.95 | probability that the chosen threshold keeps it | (0, 1) |
/// | `missing` | `left-out` | what a counterfactual that was not found counts as | |
/// | `test` | `betting` | where p-values and intervals come from | |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibrationGoal))]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Goal {
    /// Expected share of valid counterfactuals under a retrained model.
    pub validity: f64,
    /// Probability that the chosen threshold keeps it.
    pub confidence: f64,
    /// What a counterfactual that was not found counts as.
    pub missing: Missing,
    /// Where p-values and intervals come from.
    pub test: Test,
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            validity: 0.95,
            confidence: 0.95,
            missing: Missing::default(),
            test: Test::default(),
        }
    }
}

/// Where p-values and intervals come from. Both hold for any distribution of the models'
/// validities, and both need as many models if none ever fails; they differ in what failures
/// cost. Choose before looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibrationTest))]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// [`betting`]: for many factuals, of which every model fails some.
    #[default]
    Betting,
    /// [`hoeffding_bentkus`]: for few factuals, all of which a model may fail.
    HoeffdingBentkus,
}

choices! { Test "test" {
    Betting = "betting": "For many applicants, of which every model fails some",
    HoeffdingBentkus = "hoeffding-bentkus":
        "For few applicants, all of which a model may fail",
} }

impl Test {
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
            // Below the least digit of `1 - level` there is nothing to tell apart.
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

/// What a counterfactual that was not found counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibrationMissing))]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// As one that is not valid: the promise is to everyone who asks.
    Invalid,
    /// As nothing: the promise is to those who were given advice.
    #[default]
    LeftOut,
}

choices! { Missing "missing" {
    Invalid = "invalid": "As one that is not valid: the promise is to everyone who asks",
    LeftOut = "left-out": "As nothing: the promise is to those who were given one",
} }

/// One threshold and how its counterfactuals did.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The threshold.
    pub tau: f64,
    /// What each factual's counterfactual costs; `None` where none was found.
    pub costs: Vec<Option<f64>>,
    /// Model by model: whether each factual's counterfactual is valid under it. What is said
    /// of one that was not found is not read.
    pub valid: Vec<Vec<bool>>,
}

/// A mean validity with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibratedValidity))]
pub struct Validity {
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
    /// What a counterfactual costs on average; `None` if there is none.
    pub mean_cost: Option<f64>,
    /// The mean validity over the models that choose. `None` if nothing counts.
    pub validity_choosing: Option<f64>,
    /// The mean validity over the models that report.
    pub validity_reporting: Option<f64>,
    /// The p-value of "the validity is below the target", over the models that choose.
    pub p_value: f64,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CalibrationVerdict))]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// The smallest threshold that was shown to keep the promise.
    Chosen {
        /// The threshold.
        tau: f64,
        /// Its validity under the models that did not choose it.
        validity: Validity,
    },
    /// So few models could show it for no threshold, even if all were valid under all.
    TooFewModels {
        /// The number of models, of those that choose and those that report together.
        models: usize,
        /// The least number that could, with as many to report or more.
        needed: usize,
    },
    /// Too few counterfactuals are found, whatever the threshold.
    TooFewFound {
        /// The largest coverage of any threshold.
        coverage: f64,
    },
    /// The models do not show it, not even for the largest threshold that was tested.
    NotShown {
        /// That threshold.
        tau: f64,
        /// Its p-value, which is above one minus the confidence.
        p_value: f64,
    },
}

/// The answer and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Calibration {
    /// What was asked for.
    pub goal: Goal,
    /// The number of factuals.
    pub factuals: usize,
    /// The models that choose; they come first.
    pub choosing: usize,
    /// The models that report.
    pub reporting: usize,
    /// The answer.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Every threshold, the largest first.
    pub curve: Vec<CurvePoint>,
}

impl Calibration {
    /// The threshold, if one was chosen.
    #[must_use]
    pub fn tau(&self) -> Option<f64> {
        match self.verdict {
            Verdict::Chosen { tau, .. } => Some(tau),
            _ => None,
        }
    }
}

/// The models it takes to show a validity with a confidence: the least `n` with
/// `validity^n <= 1 - confidence`, which is the p-value if none of the `n` ever fails.
pub fn models_needed(validity: f64, confidence: f64) -> Result<usize> {
    check(&Goal { validity, confidence, ..Goal::default() })?;
    let delta = 1.0 - confidence;
    let near = (delta.ln() / validity.ln()).floor().max(1.0);
    // The quotient may be off by a rounding: ask the p-value itself.
    let mut models = near as usize;
    while hoeffding_bentkus(0.0, models, 1.0 - validity)? > delta {
        models += 1;
    }
    Ok(models)
}

/// The thresholds to try, unless said otherwise.
pub const TAUS: [f64; 10] = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// The models to train for a calibration: with twice the least in either half the promise can
/// be shown even if some of its advice breaks.
pub fn usual_models(validity: f64, confidence: f64) -> Result<usize> {
    Ok(models_needed(validity, confidence)?.saturating_mul(4))
}

/// Searches with every threshold, asks every model about what was found, and chooses.
///
/// `search` gives, for a threshold, what was found for each factual. The models must have had
/// no part in it.
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
pub fn judged(tau: f64, outcomes: &[Outcome], models: &[&dyn Model]) -> Result<Candidate> {
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
    Ok(Candidate { tau, costs, valid })
}

/// The smallest threshold whose validity reaches the goal, by what models said of every
/// candidate. Every candidate must speak of the same models and factuals.
pub fn choose(goal: &Goal, candidates: Vec<Candidate>) -> Result<Calibration> {
    let (models, _) = sizes(&candidates)?;
    let mut answer = choose_by(goal, candidates, models.div_ceil(2))?;
    if let Verdict::TooFewModels { needed, .. } = &mut answer.verdict {
        // With more models both halves grow, and the half that chooses has the odd one.
        *needed = 2 * models_needed(goal.validity, goal.confidence)? - 1;
    }
    Ok(answer)
}

/// The same, where the first `choosing` models choose and the others report.
pub fn choose_by(
    goal: &Goal,
    mut candidates: Vec<Candidate>,
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
            let alpha = 0.5 * (1.0 - goal.confidence);
            let validities = &validities(&candidates[index], goal.missing)[choosing..];
            let losses: Vec<f64> = validities.iter().map(|validity| 1.0 - validity).collect();
            let validity = Validity {
                mean: mean(validities).unwrap_or(0.0),
                low: goal.test.at_least(validities, alpha)?,
                high: 1.0 - goal.test.at_least(&losses, alpha)?,
            };
            Verdict::Chosen { tau: candidates[index].tau, validity }
        }
    };
    Ok(Calibration { goal: *goal, factuals, choosing, reporting, verdict, curve })
}

/// Fixed-sequence testing down the curve: the last threshold that passes, or why none does.
fn passed(
    goal: &Goal,
    curve: &[CurvePoint],
    choosing: usize,
    reporting: usize,
) -> Result<Result<usize, Verdict>> {
    let needed = models_needed(goal.validity, goal.confidence)?;
    if choosing < needed {
        let (models, needed) = (choosing + reporting, needed + reporting);
        return Ok(Err(Verdict::TooFewModels { models, needed }));
    }
    // Where too little is found the test must fail, whatever the models say. What is found does
    // not depend on them, so the sequence may begin below such thresholds.
    let enough: Vec<bool> = curve
        .iter()
        .map(|point| is_enough_found(goal, point.coverage, choosing))
        .collect::<Result<_>>()?;
    let mut tested = curve.iter().enumerate().filter(|(index, _)| enough[*index]).peekable();
    let Some(&(_, first)) = tested.peek() else {
        let coverage = curve.iter().map(|point| point.coverage).fold(0.0, f64::max);
        return Ok(Err(Verdict::TooFewFound { coverage }));
    };
    let passing = tested.take_while(|(_, point)| point.p_value <= 1.0 - goal.confidence);
    let not_shown = Verdict::NotShown { tau: first.tau, p_value: first.p_value };
    Ok(passing.last().map(|(index, _)| index).ok_or(not_shown))
}

/// Whether so many are found that some of `choosing` models could show the promise.
fn is_enough_found(goal: &Goal, coverage: f64, choosing: usize) -> Result<bool> {
    Ok(match goal.missing {
        Missing::Invalid => {
            let at_best = vec![coverage; choosing];
            goal.test.p_value(&at_best, goal.validity)? <= 1.0 - goal.confidence
        }
        Missing::LeftOut => coverage > 0.0,
    })
}

/// The validity under each model: a share of the factuals that count. None if nothing counts.
fn validities(candidate: &Candidate, missing: Missing) -> Vec<f64> {
    let counted = match missing {
        Missing::Invalid => candidate.costs.len(),
        Missing::LeftOut => candidate.costs.iter().flatten().count(),
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
fn sizes(candidates: &[Candidate]) -> Result<(usize, usize)> {
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
