//! From a question to its answers: calibrate, search, retrain, certify.
//!
//! Each step is a call of its own for a front end that does something in between;
//! [`Explainer::answer`] takes all of them.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Advice, Adviser, Applicant, Ask, Explainer, Fresh, Threshold};
use crate::calibrate::Goal;
use crate::certificate::Certificate;
use crate::change::Ensemble;
use crate::counterfactual::{Reason, Tick};
use crate::error::{Error, Result};

/// How far a piece of work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The step of the pipeline.
    pub stage: Stage,
    /// Units done so far.
    pub done: u64,
    /// Units that there are, about.
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
    /// What was prepared for them.
    pub adviser: Adviser,
    /// One for every applicant, in their order.
    pub advice: Vec<Advice>,
    /// One for every advice that was found, where certificates were asked for.
    pub certificates: Vec<Option<Certificate>>,
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

    /// So many units more.
    pub fn add(&self, units: u64) -> ControlFlow<()> {
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        // Where the epochs are drawn at random, the total is their mean.
        (self.watch)(Progress { stage: self.stage, done, total: self.total.max(done) })
    }

    /// What a search reports: one unit more for an answer, none for a reading.
    pub fn tick(&self, tick: Tick) -> ControlFlow<()> {
        self.add(u64::from(tick == Tick::Answered))
    }
}

impl Explainer {
    /// The question with its threshold chosen, if it is `auto`: the least that keeps 95 % of the
    /// advice to these applicants valid under retrained models. These are the ones given, or are
    /// trained now.
    pub fn calibrated(
        &self,
        applicants: &[Applicant],
        ask: &Ask,
        given: Option<&Ensemble>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Ask> {
        if !ask.is_calibrated() {
            return Ok(ask.clone());
        }
        let trained;
        let ensemble = if let Some(given) = given {
            given
        } else {
            let terms = ask.calibration_models(self)?;
            let counter = Counter::new(Stage::Retraining, terms.epochs(), watch);
            trained = self.retrain(&terms, |_, _| counter.add(1))?;
            &trained
        };
        let terms = ask.for_model(self).calibration()?;
        let searches = terms.searched(applicants).len() * terms.taus.len();
        let counter = Counter::new(Stage::Calibrating, searches as u64, watch);
        let calibration =
            self.calibrate(applicants, &terms, ensemble, |tick| counter.tick(tick))?;
        let Goal { validity, .. } = terms.goal;
        let tau = calibration.tau().ok_or_else(|| {
            Error::param(
                "tau",
                "auto",
                format!(
                    "a number: no threshold was shown to keep {} % of the advice valid; a \
                     calibration shows what every threshold keeps and costs",
                    100.0 * validity
                ),
            )
        })?;
        Ok(Ask { tau: Some(Threshold::Given(tau)), ..ask.clone() })
    }

    /// The models that the question wants retrained for its certificates, trained now.
    pub fn retrained(
        &self,
        ask: &Ask,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Option<Ensemble>> {
        let Some(terms) = ask.retraining(self)? else { return Ok(None) };
        let counter = Counter::new(Stage::Retraining, terms.epochs(), watch);
        self.retrain(&terms, |_, _| counter.add(1)).map(Some)
    }

    /// All answers to a question: the threshold is calibrated, advice is searched for, models are
    /// retrained, what was found is certified.
    ///
    /// `given` are retrained models to use in place of new ones. `watch` hears how far each stage
    /// is. After a `Break` while advice is searched for, those not yet answered are answered with
    /// [`Reason::Cancelled`] and nothing is certified; after any other there is no answer.
    pub fn answer(
        &self,
        applicants: &[Applicant],
        ask: &Ask,
        given: Option<&Ensemble>,
        watch: impl Fn(Progress) -> ControlFlow<()> + Sync,
    ) -> Result<Answered> {
        let settled = self.calibrated(applicants, ask, given, &watch)?;
        let adviser = self.adviser(&settled)?;
        let counter = Counter::new(Stage::Searching, applicants.len() as u64, &watch);
        let advice = adviser.advise(applicants, |tick| counter.tick(tick))?;
        // After a `Break` there is no time for certificates either.
        let whole = !advice.iter().any(|each| each.outcome.reason() == Some(Reason::Cancelled));
        let certify = ask.certify && whole;
        let steered = ask.is_calibrated() && given.is_some();
        let trained;
        let ensemble = match given {
            Some(given) => Some(given),
            None if certify && advice.iter().any(|advice| advice.found().is_some()) => {
                trained = self.retrained(ask, &watch)?;
                trained.as_ref()
            }
            None => None,
        };
        let fresh = ensemble.map(|ensemble| Fresh { ensemble, steered });
        let certificates = if certify {
            let found = advice.iter().filter(|advice| advice.found().is_some()).count();
            let counter = Counter::new(Stage::Certifying, found as u64, &watch);
            adviser.certify(&advice, fresh, ask, || counter.add(1))?
        } else {
            advice.iter().map(|_| None).collect()
        };
        Ok(Answered { adviser, advice, certificates })
    }
}
