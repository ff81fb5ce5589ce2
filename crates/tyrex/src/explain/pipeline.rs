//! From a question to its answers: calibrate, search, retrain, certify.
//!
//! Each step is also a separate call, for front ends that work between the steps;
//! [`Explainer::answer`] runs all of them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Advice, Adviser, Applicant, Ask, Explainer, Fresh, PromisedPoints, QuestionPortfolio, Threshold,
};
use crate::calibrate::Calibration;
use crate::certificate::Certificate;
use crate::change::Ensemble;
use crate::counterfactual::{Reason, Tick};
use crate::error::Result;

/// The progress of long work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The step of the pipeline.
    pub stage: Stage,
    /// Units done so far.
    pub done: u64,
    /// The total number of units; an estimate.
    pub total: u64,
}

/// A step of the pipeline, and the unit in which it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Models are trained again, in epochs.
    Retraining,
    /// Thresholds are tried, in answers.
    Calibrating,
    /// Advice is searched for, in applicants.
    Searching,
    /// Answers are certified, in answers.
    Certifying,
}

/// The answers to a question.
#[derive(Debug)]
pub struct Answered {
    /// The adviser that gave them.
    pub adviser: Adviser,
    /// The advice for every applicant, in their order.
    pub advice: Vec<Advice>,
    /// The certificate of every advice that was found, if requested.
    pub certificates: Vec<Option<Certificate>>,
    /// The retrained models of the certificates.
    pub fresh: Option<Arc<Fresh>>,
    /// All promises at once, if the question asks for a promise and there are any.
    pub portfolio: Option<QuestionPortfolio>,
    /// The choice of the threshold, if `tau` is `auto`.
    pub calibration: Option<Calibration>,
}

/// Counts the units of a stage, and reports every one of them.
#[derive(Debug)]
pub struct Counter<'a, W> {
    stage: Stage,
    total: u64,
    done: AtomicU64,
    watch: &'a W,
}

impl<'a, W: Fn(Progress) -> ControlFlow<()> + Sync> Counter<'a, W> {
    /// A counter at zero.
    pub fn new(stage: Stage, total: u64, watch: &'a W) -> Self {
        Self { stage, total, done: AtomicU64::new(0), watch }
    }

    /// Adds units.
    pub fn add(&self, units: u64) -> ControlFlow<()> {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        // If the numbers of epochs are random, the total is based on their mean.
        (self.watch)(Progress { stage: self.stage, done, total: self.total.max(done) })
    }

    /// Counts a report of a search: one unit for an answer, none for an evaluation.
    pub fn tick(&self, tick: Tick) -> ControlFlow<()> {
        self.add(u64::from(tick == Tick::Answered))
    }
}

impl Explainer {
    /// Replaces `tau = auto` by the least threshold that keeps 95 % of the advice to these
    /// applicants valid under retrained models: the given ones, or models trained now. If none was
    /// shown to, the best one takes its place, and the calibration says what it keeps.
    pub fn calibrated(
        &self,
        applicants: &[Applicant],
        ask: &Ask,
        given: Option<&Ensemble>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<(Ask, Option<Calibration>)> {
        if !ask.is_calibrated() {
            return Ok((ask.clone(), None));
        }
        let trained;
        let ensemble = if let Some(given) = given {
            given
        } else {
            let terms = ask.calibration_models(self)?;
            let counter = Counter::new(Stage::Retraining, terms.epochs(), watch);
            trained = self.retraining().train(&terms, |_, _| counter.add(1))?;
            &trained
        };
        let terms = ask.for_model(self, given).calibration()?;
        let searches = terms.searched(applicants).len() * terms.taus.len();
        let counter = Counter::new(Stage::Calibrating, searches as u64, watch);
        let calibration =
            self.calibrate(applicants, &terms, ensemble, |tick| counter.tick(tick))?;
        let tau = calibration.usable_tau().map(Threshold::Given);
        Ok((Ask { tau, ..ask.clone() }, Some(calibration)))
    }

    /// All answers to a question: the threshold is calibrated, advice is searched for, models are
    /// retrained, and the advice is certified.
    ///
    /// `given` are retrained models to use in place of new ones. `watch` is called with the
    /// progress of each stage. After a `Break` during the search, the remaining applicants are
    /// answered with [`Reason::Cancelled`] and nothing is certified; a `Break` in any other stage
    /// is an error.
    pub fn answer(
        &self,
        applicants: &[Applicant],
        ask: &Ask,
        given: Option<&Ensemble>,
        watch: impl Fn(Progress) -> ControlFlow<()> + Sync,
    ) -> Result<Answered> {
        let ask = &ask.for_model(self, given);
        let (settled, calibration) = self.calibrated(applicants, ask, given, &watch)?;
        let (explainer, given) = self.for_search(&settled, given, &watch)?;
        let adviser = Adviser::of(&explainer, &settled)?;
        let counter = Counter::new(Stage::Searching, applicants.len() as u64, &watch);
        let advice = adviser.advise(applicants, |tick| counter.tick(tick))?;
        // A `Break` also skips the certificates.
        let whole = !advice.iter().any(|each| each.outcome.reason() == Some(Reason::Cancelled));
        let certify = ask.certify && whole;
        let judged = certify && !advice.is_empty();
        let fresh = if judged { self.fresh(ask, given, &watch)? } else { None };
        let portfolio = match adviser.request().promise.zip(fresh.as_deref()) {
            Some((promise, fresh)) => {
                let mut promised = PromisedPoints::new(self.encoder().dim());
                promised.add(&advice);
                promised.judged(fresh, promise)?
            }
            None => None,
        };
        let certificates = if certify {
            adviser.certify(&advice, fresh.as_deref(), ask, &watch)?
        } else {
            advice.iter().map(|_| None).collect()
        };
        Ok(Answered { adviser, advice, certificates, fresh, portfolio, calibration })
    }
}
