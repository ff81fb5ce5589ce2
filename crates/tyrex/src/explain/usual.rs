//! How usual answers are among accepted applicants, and what the condition costs.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::adviser::answers_are_rows;
use super::{Adviser, Applicant, Costs, Explainer, Request};
use crate::counterfactual::{
    Answer, MethodSpec, MinCost, Nn, Norm, Outcome, Reason, Relaxations, Tick,
};
use crate::error::{Error, Result};
use crate::model::THRESHOLD;
use crate::plausibility::{LEAST_ROWS, Place, Plausibility};
use crate::seed::Seed;

/// The density of an explainer, with what is computed once.
#[derive(Debug, Default)]
pub(super) struct Fitted {
    /// The density, once it is fitted, or why there is none.
    density: OnceLock<std::result::Result<Arc<Plausibility>, String>>,
    /// `ln p` of the training rows, in their order.
    of_reference: OnceLock<Arc<[f64]>>,
}

impl Explainer {
    /// The density of the favourable training rows, fitted at the first call: those labelled
    /// favourable, or those that the model accepts, if no row has a label.
    ///
    /// It depends on nothing but these rows.
    pub fn plausibility(&self) -> Result<&Arc<Plausibility>> {
        let density = &self.plausibility.density;
        let fitted = match density.get() {
            Some(fitted) => fitted,
            None => {
                // Fitted outside of the lock: a thread that waits for others may be given work that
                // waits for this result. They get the same.
                let fitted = self.fitted();
                density.get_or_init(|| fitted)
            }
        };
        let param = |expected: &String| Error::param("plausible", "a p-value", expected.clone());
        fitted.as_ref().map_err(param)
    }

    fn fitted(&self) -> std::result::Result<Arc<Plausibility>, String> {
        let accepted = self.accepted_rows();
        if accepted.len() < LEAST_ROWS {
            return Err(format!(
                "a reference with at least {LEAST_ROWS} favourable training rows; this one has {}",
                accepted.len()
            ));
        }
        let is_finite = |row: &&usize| self.points().row(**row).iter().all(|x| x.is_finite());
        if let Some(row) = accepted.iter().find(|row| !is_finite(row)) {
            return Err(format!(
                "a reference whose favourable training rows have finite encoded columns; its row \
                 {row} has others"
            ));
        }
        let rows = self.points().select(&accepted);
        let fitted = Plausibility::fit(self.encoder(), &rows, Seed(0).derive("plausibility"));
        fitted.map(Arc::new).map_err(|error| format!("a reference to fit a density to: {error}"))
    }

    /// `ln p` of the training rows, in their order, computed at the first call.
    pub(super) fn reference_densities(&self) -> Result<&Arc<[f64]>> {
        let known = &self.plausibility.of_reference;
        if let Some(known) = known.get() {
            return Ok(known);
        }
        // Computed outside of the lock, as the density.
        let computed = self.plausibility()?.log_densities(self.reference_points());
        Ok(known.get_or_init(|| computed.into()))
    }

    /// The favourable training rows.
    fn accepted_rows(&self) -> Vec<usize> {
        let (reference, train) = (self.reference(), self.reference().training_rows());
        let has_labels = train.iter().any(|&row| reference.is_favourable(row).is_some());
        let is_accepted = |row: &usize| match reference.is_favourable(*row) {
            Some(favourable) => favourable,
            None => !has_labels && self.scores()[*row] >= THRESHOLD,
        };
        train.into_iter().filter(is_accepted).collect()
    }

    /// The place of an answer that is a row; `None` if there are too few favourable rows.
    pub(super) fn usual(&self, request: &Request, point: &[f32]) -> Option<Place> {
        if !answers_are_rows(request) {
            return None;
        }
        self.plausibility().ok().map(|own| own.place(point))
    }
}

/// How usual an answer is, in words.
pub(super) fn in_words(place: Place) -> String {
    let Place { below, equal, rows } = place;
    // A share of the rows that are counted: the p-value counts the answer itself too.
    let percent = |count: usize| 100 * count / rows;
    match (below, equal) {
        (0, 0) => format!("Less usual than all {rows} accepted applicants it is compared with."),
        (below, 0) if below == rows => {
            format!("More usual than all {rows} accepted applicants it is compared with.")
        }
        (0, equal) if equal == rows => {
            format!("As usual as all {rows} accepted applicants it is compared with.")
        }
        (0, equal) => format!(
            "As usual as {equal} of {rows} accepted applicants and less usual than the others."
        ),
        (below, _) if percent(below) == 0 => {
            "More usual than less than 1 % of accepted applicants.".to_owned()
        }
        (below, _) => format!("More usual than {} % of accepted applicants.", percent(below)),
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
    /// The same question without the condition that answers are usual.
    fn without_usual(&self) -> Result<&Adviser> {
        let request = || Request { plausible: None, ..self.request().clone() };
        prepared(&self.parts().not_usual, self.explainer(), request)
    }

    /// The outcomes with the reason `implausible` where nothing was found and the same question
    /// without the condition has an answer.
    pub(super) fn with_reasons(
        &self,
        applicants: &[Applicant],
        mut outcomes: Vec<Outcome>,
        watch: &(dyn Fn(Tick) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Outcome>> {
        let is_open = |outcome: &Outcome| outcome.reason().is_some_and(is_about_rows);
        let open: Vec<usize> = (0..outcomes.len()).filter(|&at| is_open(&outcomes[at])).collect();
        if self.request().plausible.is_none() || open.is_empty() {
            return Ok(outcomes);
        }
        let asking: Vec<Applicant> = open.iter().map(|&at| applicants[at].clone()).collect();
        // These applicants were counted already.
        let watch = |tick: Tick| match tick {
            Tick::Answered => ControlFlow::Continue(()),
            Tick::Reading => watch(tick),
        };
        let without = self.without_usual()?.search(&asking, watch)?;
        for (at, without) in open.into_iter().zip(without) {
            let outcome = &mut outcomes[at];
            outcome.seconds += without.seconds;
            let Answer::NotFound { best, reason } = &mut outcome.answer else { continue };
            match without.answer {
                Answer::Found { .. } => *reason = Reason::Implausible,
                // Without the whole search the reason is not known.
                Answer::NotFound { reason: Reason::Cancelled, .. } => {
                    (*best, *reason) = (None, Reason::Cancelled);
                }
                Answer::NotFound { .. } => {}
            }
        }
        Ok(outcomes)
    }

    /// What each condition costs alone, for an applicant without advice to a question that asks for
    /// usual answers; `None` if the conditions are not the reason. `relaxations` are the rules that
    /// were relaxed for this applicant.
    ///
    /// `watch` is called as in a search; a `Break` is an error.
    pub(super) fn apart(
        &self,
        advice: &super::Advice,
        relaxations: Option<&Relaxations>,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Option<Apart>> {
        let request = self.request();
        let Some(reason) = advice.outcome.reason().filter(|_| request.plausible.is_some()) else {
            return Ok(None);
        };
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
        let not_usual = match reason {
            Reason::Implausible | Reason::PromiseOutOfReach => search(self.without_usual()?)?,
            // The search without the condition found nothing either.
            reason if is_about_rows(reason) => None,
            _ => return Ok(None),
        };
        let is_robust = request.method.is_robust() || request.method.needs_models();
        let not_robust = if is_robust {
            let plain = || {
                let closest = MethodSpec::from(MinCost::default());
                let takes = closest.takes(explainer.model());
                let method = if takes { closest } else { Nn::default().into() };
                Request { method, promise: None, ..request.clone() }
            };
            search(prepared(&self.parts().not_robust, explainer, plain)?)?
        } else {
            None
        };
        let sentence = said(request, is_robust, not_usual, not_robust, relaxations);
        Ok(Some(Apart { not_usual, not_robust, sentence }))
    }
}

/// Whether a search ended without a row that passes, for a reason that the condition may have caused.
fn is_about_rows(reason: Reason) -> bool {
    matches!(reason, Reason::Stuck | Reason::NoCandidate | Reason::NoActionableRow)
}

fn said(
    request: &Request,
    is_robust: bool,
    not_usual: Option<PartAdvice>,
    not_robust: Option<PartAdvice>,
    relaxations: Option<&Relaxations>,
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
    // Neither condition alone is in the way.
    if let Some(relaxations) = relaxations.filter(|_| not_usual.is_none() && not_robust.is_none()) {
        sentence += &format!(" The rules: {relaxations}.");
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
    use crate::points::Points;

    #[test]
    fn a_place_in_words_counts_the_rows_that_are_less_usual() {
        for (below, equal, rows, words) in [
            (0, 0, 10, "Less usual than all 10 accepted applicants it is compared with."),
            (0, 0, 100, "Less usual than all 100 accepted applicants it is compared with."),
            (1, 0, 10, "More usual than 10 % of accepted applicants."),
            (1, 0, 100, "More usual than 1 % of accepted applicants."),
            (34, 2, 100, "More usual than 34 % of accepted applicants."),
            (9, 0, 10, "More usual than 90 % of accepted applicants."),
            (9, 1, 10, "More usual than 90 % of accepted applicants."),
            (99, 0, 100, "More usual than 99 % of accepted applicants."),
            (10, 0, 10, "More usual than all 10 accepted applicants it is compared with."),
            (100, 0, 100, "More usual than all 100 accepted applicants it is compared with."),
            (0, 1, 10, "As usual as 1 of 10 accepted applicants and less usual than the others."),
            (0, 10, 10, "As usual as all 10 accepted applicants it is compared with."),
            (3, 0, 1000, "More usual than less than 1 % of accepted applicants."),
        ] {
            assert_eq!(in_words(Place { below, equal, rows }), words);
        }
    }

    /// The p-value of advice below all of ten rows is 1/11, and it is more usual than none of them.
    #[test]
    fn words_and_p_values_are_those_of_a_density() {
        for rows in [40, 400] {
            let points = Points::from_rows(1, (0..rows).map(|x| x as f32).collect()).unwrap();
            let density = Plausibility::fit_numbers(&points, Seed(0)).unwrap();
            let n = rows / 4;
            let far = density.place(&[1e6]);
            assert_eq!(far, Place { below: 0, equal: 0, rows: n });
            assert!((far.p_value() - 1.0 / (n + 1) as f64).abs() < 1e-12);
            assert!(in_words(far).starts_with(&format!("Less usual than all {n} ")));
            for row in points.rows() {
                let place = density.place(row);
                let below = points
                    .rows()
                    .filter(|other| density.log_density(other) < density.log_density(row))
                    .count();
                // Only held-out rows are counted.
                assert!(place.below <= below && place.below + place.equal <= n);
                assert_eq!(density.p_value(row), place.p_value());
            }
        }
    }

    #[test]
    fn each_condition_alone_in_words() {
        let part = |cost: f64, p_value: f64| {
            Some(PartAdvice { cost, distances: Costs { l1: cost, l2: cost }, p_value })
        };
        let mut request = Request::new("trex-o", Protocol::Product, Norm::L1, Seed(0)).unwrap();
        request.plausible = Some(0.1);
        assert_eq!(
            said(&request, true, part(1.234, 0.02), part(0.5, 0.2), Some(&Relaxations::default())),
            "Without the condition of a p-value of 0.1, advice costs 1.23 in L1 and has a p-value \
             of 0.02. With this condition but without the robustness, advice costs 0.50 in L1."
        );
        assert_eq!(
            said(&request, false, None, None, None),
            "Without the condition of a p-value of 0.1, the search finds no advice either."
        );
        // Where neither condition alone is in the way, the rules are named.
        let rules = Relaxations { helpful: Vec::new(), tried: 5, untried: 0 };
        assert_eq!(
            said(&request, true, None, None, Some(&rules)),
            "Without the condition of a p-value of 0.1, the search finds no advice either. With \
             this condition but without the robustness, the search finds no advice either. The rules: removing any \
             one of 5 rules does not help; two at a time were not tried."
        );
    }
}
