//! How robust must a counterfactual be? A threshold from a promise.
//!
//! A search that asks for stability `tau` finds counterfactuals that retrained models accept
//! more often the higher `tau` is, at a higher cost. The promise is a validity and a
//! confidence; the answer is the smallest `tau` for which retrained models show it.
//!
//! Half of the models choose. From the largest `tau` down, "the validity is below the target"
//! is tested with the p-value of Hoeffding and Bentkus over the models, and the last `tau`
//! before the first that fails is taken (*fixed-sequence testing*). Each test is made at the
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
use crate::statistics::hoeffding_bentkus;

/// The promise.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `validity` | 0.95 | expected share of valid counterfactuals under a retrained model | (0, 1) |
/// | `confidence` | 0.95 | probability that the chosen threshold keeps it | (0, 1) |
/// | `missing` | `invalid` | what a counterfactual that was not found counts as | |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Goal {
    /// Expected share of valid counterfactuals under a retrained model.
    pub validity: f64,
    /// Probability that the chosen threshold keeps it.
    pub confidence: f64,
    /// What a counterfactual that was not found counts as.
    pub missing: Missing,
}

impl Default for Goal {
    fn default() -> Self {
        Self { validity: 0.95, confidence: 0.95, missing: Missing::Invalid }
    }
}

/// What a counterfactual that was not found counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// As one that is not valid: the promise is to everyone who asks.
    #[default]
    Invalid,
    /// As nothing: the promise is to those who were given one.
    LeftOut,
}

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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Validity {
    /// The mean over the models that report.
    pub mean: f64,
    /// The expected validity is at least this, and
    pub low: f64,
    /// at most this, with the goal's confidence.
    pub high: f64,
}

/// One threshold of the cost curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
        /// The number of models.
        models: usize,
        /// The least number that could.
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    check(&Goal { validity, confidence, missing: Missing::Invalid })?;
    let delta = 1.0 - confidence;
    let near = (delta.ln() / validity.ln()).floor().max(1.0);
    // The quotient may be off by a rounding: ask the p-value itself.
    let mut models = near as usize;
    while hoeffding_bentkus(0.0, models, 1.0 - validity)? > delta {
        models += 1;
    }
    Ok(models)
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
fn judged(tau: f64, outcomes: &[Outcome], models: &[&dyn Model]) -> Result<Candidate> {
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
pub fn choose(goal: &Goal, mut candidates: Vec<Candidate>) -> Result<Calibration> {
    check(goal)?;
    let (models, factuals) = sizes(&candidates)?;
    candidates.sort_by(|a, b| b.tau.total_cmp(&a.tau));
    if let Some(pair) = candidates.windows(2).find(|pair| pair[0].tau == pair[1].tau) {
        return Err(Error::param("tau", pair[0].tau, "every threshold once"));
    }
    let choosing = models.div_ceil(2);
    let level = 1.0 - goal.validity;
    let mut curve = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let found: Vec<f64> = candidate.costs.iter().copied().flatten().collect();
        let (first, second) = candidate.valid.split_at(choosing);
        let validity_choosing = mean_validity(candidate, first, goal.missing);
        curve.push(CurvePoint {
            tau: candidate.tau,
            coverage: found.len() as f64 / factuals as f64,
            mean_cost: mean(&found),
            validity_choosing,
            validity_reporting: mean_validity(candidate, second, goal.missing),
            p_value: match validity_choosing {
                Some(validity) => hoeffding_bentkus(1.0 - validity, choosing, level)?,
                None => 1.0,
            },
        });
    }
    let verdict = verdict(goal, &curve, choosing, models - choosing)?;
    Ok(Calibration {
        goal: *goal,
        factuals,
        choosing,
        reporting: models - choosing,
        verdict,
        curve,
    })
}

/// Fixed-sequence testing down the curve.
fn verdict(
    goal: &Goal,
    curve: &[CurvePoint],
    choosing: usize,
    reporting: usize,
) -> Result<Verdict> {
    let needed = models_needed(goal.validity, goal.confidence)?;
    if choosing < needed {
        // The half that chooses has the odd model.
        return Ok(Verdict::TooFewModels { models: choosing + reporting, needed: 2 * needed - 1 });
    }
    // Where too little is found the test must fail. What is found does not depend on the
    // retrained models, so the sequence may begin below such thresholds.
    let enough = |point: &CurvePoint| match goal.missing {
        Missing::Invalid => point.coverage >= goal.validity,
        Missing::LeftOut => point.coverage > 0.0,
    };
    let mut tested = curve.iter().filter(|point| enough(point)).peekable();
    let Some(&first) = tested.peek() else {
        let coverage = curve.iter().map(|point| point.coverage).fold(0.0, f64::max);
        return Ok(Verdict::TooFewFound { coverage });
    };
    let passes = |point: &&CurvePoint| point.p_value <= 1.0 - goal.confidence;
    Ok(match tested.take_while(passes).last() {
        None => Verdict::NotShown { tau: first.tau, p_value: first.p_value },
        Some(chosen) => {
            // Something was found, or the threshold would not have been tested.
            let mean = chosen.validity_reporting.unwrap_or(0.0);
            let validity = interval(mean, reporting, 1.0 - goal.confidence)?;
            Verdict::Chosen { tau: chosen.tau, validity }
        }
    })
}

/// The mean of the models' validities, each a share of the factuals that count.
fn mean_validity(candidate: &Candidate, models: &[Vec<bool>], missing: Missing) -> Option<f64> {
    let found = candidate.costs.iter().flatten().count();
    let counted = match missing {
        Missing::Invalid => candidate.costs.len(),
        Missing::LeftOut => found,
    };
    let valid_under = |model: &Vec<bool>| {
        model.iter().zip(&candidate.costs).filter(|(valid, cost)| **valid && cost.is_some()).count()
    };
    let valid: usize = models.iter().map(valid_under).sum();
    (counted > 0 && !models.is_empty()).then(|| valid as f64 / (counted * models.len()) as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The validities that the models' mean does not contradict: those whose two p-values, of "the
/// validity is lower" and of "the validity is higher", are both above `alpha / 2`.
fn interval(mean: f64, models: usize, alpha: f64) -> Result<Validity> {
    let largest_loss = |loss: f64| -> Result<f64> {
        let (mut plausible, mut excluded) = (loss, 1.0);
        loop {
            let level = f64::midpoint(plausible, excluded);
            if level <= plausible || level >= excluded {
                break;
            }
            if hoeffding_bentkus(loss, models, level)? > 0.5 * alpha {
                plausible = level;
            } else {
                excluded = level;
            }
        }
        Ok(excluded)
    };
    Ok(Validity { mean, low: 1.0 - largest_loss(1.0 - mean)?, high: largest_loss(mean)? })
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
mod tests {
    use super::*;

    /// A candidate under models that accept the given numbers of counterfactuals.
    fn candidate(tau: f64, costs: &[Option<f64>], accepted: &[usize]) -> Candidate {
        let row = |&count: &usize| (0..costs.len()).map(|factual| factual < count).collect();
        Candidate { tau, costs: costs.to_vec(), valid: accepted.iter().map(row).collect() }
    }

    const COSTS: [Option<f64>; 4] = [Some(1.0), Some(2.0), Some(3.0), Some(6.0)];

    fn goal(validity: f64, confidence: f64) -> Goal {
        Goal { validity, confidence, ..Goal::default() }
    }

    #[test]
    fn the_models_needed_are_those_of_a_test_without_failures() {
        for (validity, confidence, models) in
            [(0.95, 0.95, 59), (0.9, 0.95, 29), (0.99, 0.95, 299), (0.5, 0.5, 1), (0.1, 0.2, 1)]
        {
            assert_eq!(models_needed(validity, confidence).unwrap(), models);
            assert!(validity.powi(models as i32) <= 1.0 - confidence + 1e-15);
            assert!(models == 1 || validity.powi(models as i32 - 1) > 1.0 - confidence);
        }
    }

    #[test]
    fn the_sequence_ends_at_the_first_threshold_that_fails() {
        // 10 models choose and 10 report; 0.7^10 = 0.03.
        let all = vec![4; 20];
        let none = vec![0; 20];
        let given = vec![
            candidate(0.6, &COSTS, &all),
            candidate(0.9, &COSTS, &all),
            candidate(0.7, &COSTS, &none),
            candidate(0.8, &COSTS, &all),
        ];
        let answer = choose(&goal(0.7, 0.95), given).unwrap();
        assert_eq!(answer.tau(), Some(0.8), "what passes below a failure does not count");
        assert_eq!(answer.curve.iter().map(|p| p.tau).collect::<Vec<_>>(), [0.9, 0.8, 0.7, 0.6]);
        assert_eq!((answer.choosing, answer.reporting, answer.factuals), (10, 10, 4));
        assert!((answer.curve[0].p_value - 0.7_f64.powi(10)).abs() < 1e-12);
        assert_eq!(answer.curve[2].p_value, 1.0);
        assert_eq!(answer.curve[0].mean_cost, Some(3.0));
    }

    #[test]
    fn one_half_chooses_and_the_other_reports() {
        let half = |first: usize, second: usize| [vec![first; 10], vec![second; 10]].concat();
        let given = vec![candidate(0.9, &COSTS, &half(4, 3)), candidate(0.8, &COSTS, &half(0, 4))];
        let answer = choose(&goal(0.7, 0.95), given).unwrap();
        let Verdict::Chosen { tau, validity } = answer.verdict else { panic!("{answer:?}") };
        assert_eq!((tau, validity.mean), (0.9, 0.75));
        assert!(validity.low < 0.75 && validity.high > 0.75);
        // Clopper-Pearson's lower bound for 10 of 10 at 97.5 % is 0.69; a mean of 0.75 is lower.
        assert!(validity.low > 0.3 && validity.low < 0.69 && validity.high < 1.0);
        assert_eq!(answer.curve[1].validity_choosing, Some(0.0));
        assert_eq!(answer.curve[1].validity_reporting, Some(1.0));
    }

    #[test]
    fn what_is_not_found_counts_as_asked() {
        let costs = [Some(1.0), None, Some(2.0), None];
        // Under every model the first two would be valid, but the second was not found.
        let given = || vec![candidate(0.9, &costs, &[2; 20])];
        let answer = choose(&goal(0.2, 0.9), given()).unwrap();
        assert_eq!((answer.curve[0].coverage, answer.curve[0].mean_cost), (0.5, Some(1.5)));
        assert_eq!(answer.curve[0].validity_choosing, Some(0.25));
        let left_out = Goal { missing: Missing::LeftOut, ..goal(0.2, 0.9) };
        let answer = choose(&left_out, given()).unwrap();
        assert_eq!(answer.curve[0].validity_choosing, Some(0.5));
    }

    #[test]
    fn thresholds_with_too_few_found_are_passed_over() {
        let few = [Some(1.0), None, None, None];
        let given = || vec![candidate(0.9, &few, &[1; 20]), candidate(0.8, &COSTS, &[4; 20])];
        assert_eq!(choose(&goal(0.7, 0.95), given()).unwrap().tau(), Some(0.8));
        let only = vec![candidate(0.9, &few, &[1; 20])];
        let answer = choose(&goal(0.7, 0.95), only).unwrap();
        assert_eq!(answer.verdict, Verdict::TooFewFound { coverage: 0.25 });
    }

    #[test]
    fn a_promise_that_cannot_be_shown_is_answered_and_no_error() {
        let answer = choose(&Goal::default(), vec![candidate(0.9, &COSTS, &[4; 100])]).unwrap();
        assert_eq!(answer.verdict, Verdict::TooFewModels { models: 100, needed: 117 });
        assert_eq!(answer.curve.len(), 1);
        let answer = choose(&Goal::default(), vec![candidate(0.9, &COSTS, &[4; 117])]).unwrap();
        assert_eq!(answer.tau(), Some(0.9));
        let answer = choose(&Goal::default(), vec![candidate(0.9, &COSTS, &[3; 117])]).unwrap();
        assert_eq!(answer.verdict, Verdict::NotShown { tau: 0.9, p_value: 1.0 });
    }

    #[test]
    fn bad_input_is_named() {
        let good = || candidate(0.9, &COSTS, &[4; 4]);
        let cases = [
            (goal(1.0, 0.9), vec![good()], "parameter `target` is 1, expected"),
            (goal(0.9, f64::NAN), vec![good()], "parameter `confidence` is NaN, expected"),
            (goal(0.9, 0.9), vec![], "parameter `tau` is missing, expected at least one"),
            (goal(0.9, 0.9), vec![good(), good()], "parameter `tau` is 0.9, expected every"),
            (
                goal(0.9, 0.9),
                vec![candidate(f64::NAN, &COSTS, &[4; 4])],
                "parameter `tau` is NaN, expected a finite number",
            ),
            (
                goal(0.9, 0.9),
                vec![candidate(0.9, &COSTS, &[4])],
                "parameter `models` is 1, expected at least 2",
            ),
            (
                goal(0.9, 0.9),
                vec![candidate(0.9, &[], &[0; 4])],
                "parameter `factuals` is 0, expected at least 1",
            ),
            (
                goal(0.9, 0.9),
                vec![good(), candidate(0.8, &COSTS, &[4; 3])],
                "models at tau 0.8: expected 4, got 3",
            ),
            (
                goal(0.9, 0.9),
                vec![good(), candidate(0.8, &COSTS[1..], &[3; 4])],
                "factuals at tau 0.8: expected 4, got 3",
            ),
        ];
        for (goal, given, expected) in cases {
            let error = choose(&goal, given).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error} does not say: {expected}");
        }
    }
}
