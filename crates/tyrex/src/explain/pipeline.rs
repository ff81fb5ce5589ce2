//! From a question to its answers: calibrate, search, retrain, certify.
//!
//! [`Answering`] is the question at work, for front ends that read applicants in batches or write
//! advice as it is found; [`Explainer::answer`] runs all steps.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Advice, Adviser, AnswerDocument, Applicant, Ask, Explained, Explainer, FORMAT_VERSION, Fresh,
    Meaning, PortfolioTerms, PromisedPoints, QuestionPortfolio, Threshold,
};
use crate::calibrate::Calibration;
use crate::certificate::Certificate;
use crate::change::Ensemble;
use crate::counterfactual::{Reason, Tick};
use crate::data::Table;
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

/// A question at work: advice is found in batches, and judged at the end.
#[derive(Debug)]
pub struct Answering {
    adviser: Adviser,
    /// The question, before its threshold was calibrated.
    asked: Ask,
    settled: Ask,
    without_promise: Option<String>,
    calibration: Option<Calibration>,
    /// The given models that the search does not use.
    given: Option<Ensemble>,
    /// The models of the certificates, once they are made.
    fresh: OnceCell<Option<Arc<Fresh>>>,
    promised: PromisedPoints,
    applicants: usize,
    found: usize,
}

/// The answers to a question.
#[derive(Debug)]
pub struct Answered {
    /// The adviser that gave them.
    pub adviser: Adviser,
    /// The question, with its promise, its method and its threshold.
    pub ask: Ask,
    /// The advice, in the order of the applicants.
    pub advice: Vec<Advice>,
    /// The certificate of every advice that was found, if requested.
    pub certificates: Vec<Option<Certificate>>,
    /// The retrained models of the certificates.
    pub fresh: Option<Arc<Fresh>>,
    /// All promises at once, if the question asks for a promise and there are any.
    pub portfolio: Option<QuestionPortfolio>,
    /// The choice of the threshold, if `tau` is `auto`.
    pub calibration: Option<Calibration>,
    /// Why there is no promise, though the model can be retrained.
    pub without_promise: Option<String>,
    /// The number of applicants that advice was searched for; `advice` may hold the first of them.
    pub asked: usize,
    /// The number of those with advice.
    pub found: usize,
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

    /// Starts to answer a question: the threshold is calibrated on a sample of the applicants, if the
    /// question asks for that, and models to search over are retrained.
    ///
    /// `given` are retrained models to use in place of new ones. `watch` is called with the
    /// progress of each stage; a `Break` is an error.
    pub fn answering(
        &self,
        sample: &[Applicant],
        ask: &Ask,
        given: Option<&Ensemble>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Answering> {
        let without_promise = ask.without_promise(self, given);
        let asked = ask.for_model(self, given);
        let (settled, calibration) = self.calibrated(sample, &asked, given, watch)?;
        let chose = given.filter(|_| asked.is_calibrated());
        let calibrated_by = chose.map(|given| Arc::from(given.members()));
        let (explainer, given) = self.for_search(&settled, given, watch)?;
        let explainer = Self { calibrated_by, ..explainer };
        Ok(Answering {
            adviser: Adviser::of(&explainer, &settled)?,
            asked,
            settled,
            without_promise,
            calibration,
            given,
            fresh: OnceCell::new(),
            promised: PromisedPoints::new(self.encoder().dim()),
            applicants: 0,
            found: 0,
        })
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
        let mut answering = self.answering(applicants, ask, given, &watch)?;
        let counter = Counter::new(Stage::Searching, applicants.len() as u64, &watch);
        let advice = answering.advise(applicants, |tick| counter.tick(tick))?;
        answering.answered(advice, &watch)
    }
}

impl Answering {
    /// The adviser of the question.
    pub fn adviser(&self) -> &Adviser {
        &self.adviser
    }

    /// Finds advice for some applicants, as [`Adviser::advise`] does. Once
    /// [`fresh`](Self::fresh) was called, no point of an earlier batch is kept.
    pub fn advise(
        &mut self,
        applicants: &[Applicant],
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Advice>> {
        let advice = self.adviser.advise(applicants, watch)?;
        self.applicants += advice.len();
        self.found += advice.iter().filter(|each| each.found().is_some()).count();
        if self.adviser.request().promise.is_some() && self.asked.certify {
            self.promised.add(&advice);
            if let Some(Some(fresh)) = self.fresh.get() {
                self.promised.judge(fresh)?;
            }
        }
        Ok(advice)
    }

    /// The retrained models of the certificates, made at the first call.
    pub fn fresh(
        &mut self,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Option<Arc<Fresh>>> {
        if let Some(made) = self.fresh.get() {
            return Ok(made.clone());
        }
        let made = self.adviser.explainer().fresh(&self.asked, self.given.take(), watch)?;
        Ok(self.fresh.get_or_init(|| made).clone())
    }

    /// Judges all advice and certifies the given part of it. If the search was cancelled, or the
    /// question wants no certificates, nothing is judged.
    pub fn answered(
        mut self,
        advice: Vec<Advice>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Answered> {
        let whole = !advice.iter().any(|each| each.outcome.reason() == Some(Reason::Cancelled));
        let certify = self.asked.certify && whole;
        let fresh = if certify && self.applicants > 0 { self.fresh(watch)? } else { None };
        let portfolio = match self.adviser.request().promise.zip(fresh.as_deref()) {
            Some((promise, fresh)) => self.promised.judged(fresh, promise)?,
            None => None,
        };
        let certificates = if certify {
            self.adviser.certify(&advice, fresh.as_deref(), &self.asked, watch)?
        } else {
            advice.iter().map(|_| None).collect()
        };
        Ok(Answered {
            adviser: self.adviser,
            ask: self.settled,
            advice,
            certificates,
            fresh,
            portfolio,
            calibration: self.calibration,
            without_promise: self.without_promise,
            asked: self.applicants,
            found: self.found,
        })
    }
}

impl Answered {
    /// The documents of the first answers. `watch` is called while rules are relaxed for applicants
    /// without advice; a `Break` is an error.
    pub fn rows(
        &self,
        most: usize,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Explained<'_>>> {
        let advice = &self.advice[..self.advice.len().min(most)];
        let tries = self.ask.tries(advice.len());
        let pairs = advice.iter().zip(&self.certificates);
        pairs.map(|(each, own)| self.row(each, own.as_ref(), tries, &watch)).collect()
    }

    /// The document of one of the answers, as [`Adviser::explained`] writes it.
    pub fn row<'a>(
        &'a self,
        advice: &'a Advice,
        certificate: Option<&Certificate>,
        tries: usize,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Explained<'a>> {
        self.adviser.explained(advice, certificate.cloned(), self.fresh.as_deref(), tries, watch)
    }

    /// The whole answer as a document, with the documents of its rows. `table` holds the columns of
    /// the terms at the rows of the applicants; `warnings` are those of [`Explainer::warnings`].
    pub fn document<R>(
        &self,
        rows: Vec<R>,
        terms: &PortfolioTerms,
        table: &Table,
        warnings: Vec<String>,
    ) -> Result<AnswerDocument<R>> {
        let explainer = self.adviser.explainer();
        let portfolio = self.portfolio.as_ref();
        let portfolio = portfolio.map(|all| all.document(terms, table, explainer.schema()));
        Ok(AnswerDocument {
            format_version: FORMAT_VERSION,
            fingerprint: explainer.fingerprint().to_string(),
            meaning: Some(Meaning::of(explainer.schema())),
            reference: explainer.reference().training_rows().len(),
            ask: Some(self.ask.clone()),
            request: self.adviser.request().clone(),
            warnings,
            without_promise: self.without_promise.clone(),
            calibration: self.calibration.clone(),
            searched: Some(explainer.searched()),
            asked: self.asked,
            found: self.found,
            portfolio: portfolio.transpose()?,
            rows,
        })
    }
}
