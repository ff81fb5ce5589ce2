//! How usual answers are among accepted applicants, and what the condition costs.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::adviser::answers_are_rows;
use super::{Adviser, Costs, Explainer, Request};
use crate::counterfactual::{MethodSpec, MinCost, Nn, Norm, Outcome, Reason, Tick};
use crate::error::{Error, Result};
use crate::model::THRESHOLD;
use crate::plausibility::Plausibility;
use crate::points::Points;
use crate::seed::Seed;

/// The density of an explainer, once it is fitted, or why there is none.
pub(super) type Fitted = OnceLock<std::result::Result<Arc<Plausibility>, String>>;

impl Explainer {
    /// The density of the favourable training rows, fitted at the first call: those labelled
    /// favourable, or those that the model accepts, if no row has a label.
    ///
    /// It depends on nothing but these rows.
    pub fn plausibility(&self) -> Result<&Arc<Plausibility>> {
        let fitted = match self.plausibility.get() {
            Some(fitted) => fitted,
            None => {
                // Fitted outside of the lock: a thread that waits for others may be given work that
                // waits for this result. They get the same.
                let fitted = self.fitted();
                self.plausibility.get_or_init(|| fitted)
            }
        };
        let param = |expected: &String| Error::param("plausible", "a p-value", expected.clone());
        fitted.as_ref().map_err(param)
    }

    fn fitted(&self) -> std::result::Result<Arc<Plausibility>, String> {
        let rows = self.accepted_rows();
        let fitted = Plausibility::fit(self.encoder(), &rows, Seed(0).derive("plausibility"));
        fitted.map(Arc::new).map_err(|_| {
            format!(
                "a reference with at least {} favourable training rows that have finite encoded \
                 columns; this one has {}",
                crate::plausibility::LEAST_ROWS,
                rows.len()
            )
        })
    }

    /// The points of the favourable training rows.
    fn accepted_rows(&self) -> Points {
        let (reference, train) = (self.reference(), self.reference().training_rows());
        let has_labels = train.iter().any(|&row| reference.is_favourable(row).is_some());
        let is_accepted = |row: &usize| match reference.is_favourable(*row) {
            Some(favourable) => favourable,
            None => !has_labels && self.scores()[*row] >= THRESHOLD,
        };
        self.points().select(&train.into_iter().filter(is_accepted).collect::<Vec<_>>())
    }

    /// The p-value of an answer that is a row; `None` if there are too few favourable rows.
    pub(super) fn usual(&self, request: &Request, point: &[f32]) -> Option<f64> {
        if !answers_are_rows(request) {
            return None;
        }
        self.plausibility().ok().map(|own| own.p_value(point))
    }
}

/// How usual an answer is, in words.
pub(super) fn in_words(p_value: f64) -> String {
    // The p-value is the share of accepted applicants that are no more usual.
    match (100.0 * p_value).floor() {
        percent if percent < 1.0 => {
            "Less usual than 99 % of accepted applicants or more.".to_owned()
        }
        percent => format!("More usual than {percent} % of accepted applicants."),
    }
}

/// Answers to parts of a question that has no answer as a whole: advice without the condition that
/// it is usual, and usual advice that the model in use accepts, without a promise or a test of
/// stability.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Apart {
    /// The advice that needs not be usual.
    pub not_usual: Option<PartAdvice>,
    /// The usual advice that the model in use accepts. `None` as well if the method asks for nothing
    /// else.
    pub not_robust: Option<PartAdvice>,
    /// Both as a sentence.
    pub sentence: String,
}

/// Advice that satisfies a part of the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PartAdvice {
    /// Its cost, by the norm of the question.
    pub cost: f64,
    /// The distances.
    pub distances: Costs,
    /// Its p-value among accepted applicants.
    pub p_value: f64,
}

/// The two questions without one of the conditions, prepared when they are needed.
#[derive(Debug, Default)]
pub(super) struct Parts {
    not_usual: OnceLock<Box<Adviser>>,
    not_robust: OnceLock<Box<Adviser>>,
}

/// The adviser of a part.
fn prepared<'a>(
    place: &'a OnceLock<Box<Adviser>>,
    explainer: &Explainer,
    request: impl FnOnce() -> Request,
) -> Result<&'a Adviser> {
    if let Some(made) = place.get() {
        return Ok(made);
    }
    let made = Box::new(Adviser::new(explainer, request())?);
    Ok(place.get_or_init(|| made))
}

impl Adviser {
    /// What each condition costs alone, for an applicant without advice to a question that asks for
    /// usual answers; `None` if the condition is not the reason.
    ///
    /// `watch` is called as in a search; a `Break` is an error.
    pub(super) fn apart(
        &self,
        advice: &super::Advice,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Option<Apart>> {
        let request = self.request();
        let reason = advice.outcome.reason();
        if request.plausible.is_none()
            || !matches!(reason, Some(Reason::Implausible | Reason::PromiseOutOfReach))
        {
            return Ok(None);
        }
        let explainer = self.explainer();
        let search = |adviser: &Adviser| -> Result<Option<PartAdvice>> {
            let outcomes = adviser.search(std::slice::from_ref(&advice.applicant), &watch)?;
            let outcome = outcomes.first();
            if outcome.and_then(Outcome::reason) == Some(Reason::Cancelled) {
                return Err(Error::Cancelled("not all searches were made".to_owned()));
            }
            let Some(found) = outcome.and_then(Outcome::found) else { return Ok(None) };
            Ok(Some(PartAdvice {
                cost: found.cost,
                distances: explainer.costs(&found.point, &advice.applicant.point),
                p_value: explainer.plausibility()?.p_value(&found.point),
            }))
        };
        let parts = self.parts();
        let not_usual = prepared(&parts.not_usual, explainer, || Request {
            plausible: None,
            ..request.clone()
        })?;
        let not_usual = search(not_usual)?;
        let is_robust = request.method.is_robust() || request.method.needs_models();
        let not_robust = if is_robust {
            let plain = || {
                let closest = MethodSpec::from(MinCost::default());
                let takes = closest.takes(explainer.model());
                let method = if takes { closest } else { Nn::default().into() };
                Request { method, promise: None, ..request.clone() }
            };
            search(prepared(&parts.not_robust, explainer, plain)?)?
        } else {
            None
        };
        let sentence = said(request, is_robust, not_usual, not_robust);
        Ok(Some(Apart { not_usual, not_robust, sentence }))
    }
}

fn said(
    request: &Request,
    is_robust: bool,
    not_usual: Option<PartAdvice>,
    not_robust: Option<PartAdvice>,
) -> String {
    let norm = request.norm;
    let cost = |part: PartAdvice| Cost { part, norm };
    let least = request.plausible.unwrap_or_default();
    let mut sentence = match not_usual {
        Some(part) => format!(
            "Without the condition of a p-value of {least}, advice costs {} and has a p-value of \
             {:.2}.",
            cost(part),
            part.p_value
        ),
        None => format!(
            "Without the condition of a p-value of {least}, the search finds no advice either."
        ),
    };
    if is_robust {
        let other = if request.promise.is_some() { "promise" } else { "robustness" };
        sentence += &match not_robust {
            Some(part) => format!(
                " With this condition but without the {other}, advice costs {}.",
                cost(part)
            ),
            None => format!(
                " With this condition but without the {other}, the search finds no advice either."
            ),
        };
    }
    sentence
}

/// A cost in the norm of the question.
struct Cost {
    part: PartAdvice,
    norm: Norm,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} in {}", self.part.cost, self.norm.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counterfactual::Protocol;

    #[test]
    fn a_p_value_in_words() {
        assert_eq!(in_words(0.3456), "More usual than 34 % of accepted applicants.");
        assert_eq!(in_words(1.0), "More usual than 100 % of accepted applicants.");
        assert!(in_words(0.004).starts_with("Less usual than 99 %"));
    }

    #[test]
    fn each_condition_alone_in_words() {
        let part = |cost: f64, p_value: f64| {
            Some(PartAdvice { cost, distances: Costs { l1: cost, l2: cost }, p_value })
        };
        let mut request = Request::new("trex-o", Protocol::Product, Norm::L1, Seed(0)).unwrap();
        request.plausible = Some(0.1);
        assert_eq!(
            said(&request, true, part(1.234, 0.02), part(0.5, 0.2)),
            "Without the condition of a p-value of 0.1, advice costs 1.23 in L1 and has a p-value \
             of 0.02. With this condition but without the robustness, advice costs 0.50 in L1."
        );
        assert_eq!(
            said(&request, false, None, None),
            "Without the condition of a p-value of 0.1, the search finds no advice either."
        );
    }
}
