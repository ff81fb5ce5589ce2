//! The promise of a question: the probability that the next model accepts the advice.
//!
//! Three disjoint sets of models are trained by the declared change. The search runs over the
//! *search* models, the *tuning* models choose its margin, and the *fresh* models certify the
//! answer, once. Of `n` fresh models `s` accept the point. The point does not depend on them, so
//! `s` is binomial and Clopper and Pearson's lower bound holds with the stated confidence, however
//! closely the search fitted its own models.
//!
//! The promise `p` at confidence `g` is kept if that bound is at least `p`. `n` is the least number
//! for which [`DISSENTING`] of the fresh models may reject. The tuning models aim at the share `q`
//! of accepting models for which the test succeeds with probability [`SUCCESS`].

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{Ask, Counter, Explainer, Fresh, Progress, Request, RetrainingTerms, Stage, Unchanged};
use crate::certificate::{Certificate, EnsembleTier, Terms, Verdict, at_least};
use crate::change::{Ensemble, Given, Origin};
use crate::counterfactual::{MethodSpec, SearchModels, is_searchable};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::points::Points;
use crate::seed::Seed;
use crate::statistics::{Proportion, binomial_cumulative};

/// The default promise.
pub const PROMISE: f64 = 0.9;
/// The default confidence of a promise.
pub const CONFIDENCE: f64 = 0.95;
/// Models retrained to search over.
pub const SEARCH_MODELS: usize = 40;
/// Models retrained to choose the margin.
pub const TUNING_MODELS: usize = 60;
/// Fresh models that may reject a point whose promise is kept.
pub(crate) const DISSENTING: usize = 2;
/// The probability of the test at the share of accepting models that the tuning models aim at.
const SUCCESS: f64 = 0.97;
/// The least promise: below it, a certificate is vacuous.
const LEAST: f64 = 0.5;
/// The largest promise and confidence: more would need more fresh models than can be trained.
const MOST: f64 = 0.999;

/// The probability that the next model accepts the advice, and the confidence in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "PromiseFields")]
pub struct Promise {
    probability: f64,
    confidence: f64,
}

/// A promise that is not checked yet.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromiseFields {
    probability: f64,
    confidence: f64,
}

impl TryFrom<PromiseFields> for Promise {
    type Error = Error;

    fn try_from(fields: PromiseFields) -> Result<Self> {
        Self::new(fields.probability, fields.confidence)
    }
}

impl Promise {
    /// Checks both numbers.
    pub fn new(probability: f64, confidence: f64) -> Result<Self> {
        if !(LEAST..=MOST).contains(&probability) {
            let expected = format!("a probability from {LEAST} to {MOST}");
            return Err(Error::param("promise", probability, expected));
        }
        if !(LEAST..=MOST).contains(&confidence) {
            let expected = format!("a number from {LEAST} to {MOST}");
            return Err(Error::param("confidence", confidence, expected));
        }
        Ok(Self { probability, confidence })
    }

    /// The probability.
    pub fn probability(self) -> f64 {
        self.probability
    }

    /// The confidence.
    pub fn confidence(self) -> f64 {
        self.confidence
    }

    /// Whether this number of fresh models keeps the promise if all of them accept.
    pub fn can_be_shown(self, models: usize) -> bool {
        self.is_kept(models, models).unwrap_or(false)
    }

    /// The least number of fresh models that keep the promise if all of them accept: `p^n` is at
    /// most `1 - confidence`.
    pub fn least_models(self) -> usize {
        let ratio = (1.0 - self.confidence).ln() / self.probability.ln();
        let mut models = (ratio.floor() as usize).max(1);
        // The bound rises with the number of models, and reaches every promise.
        while !self.can_be_shown(models) {
            models += 1;
        }
        models
    }

    /// Whether the promise is kept if this number of fresh models accept.
    pub(super) fn is_kept(self, accepting: usize, models: usize) -> Result<bool> {
        let bound = Proportion::new(accepting, models)?.lower(1.0 - self.confidence)?;
        Ok(bound >= self.probability)
    }

    /// The least number of fresh models of which two may reject.
    ///
    /// The bound is at least `p` if at most `alpha` of the binomial distributions with `p` have so
    /// few rejections: `P( B(n, 1 - p) <= k ) <= alpha`, which falls with `n`.
    pub fn fresh_models(self) -> usize {
        let (mut low, mut high) = (DISSENTING, DISSENTING + 1);
        let enough = |models: usize| {
            let missed = binomial_cumulative(DISSENTING, models, 1.0 - self.probability);
            missed <= 1.0 - self.confidence
        };
        while !enough(high) {
            (low, high) = (high, 2 * high);
        }
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if enough(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// The most fresh models of this number that may reject a point whose promise is kept; `None`
    /// if they are too few to show it.
    fn dissenting(self, models: usize) -> Option<usize> {
        let kept = |rejecting: &usize| self.is_kept(models - rejecting, models).unwrap_or(false);
        let rejecting = (0..=models).take_while(kept).count();
        rejecting.checked_sub(1)
    }

    /// The share of accepting models at which the test by this number of fresh models succeeds with
    /// the probability 0.97.
    pub fn aim(self, models: usize) -> f64 {
        let dissenting = self.dissenting(models).unwrap_or(0);
        let (mut low, mut high) = (self.probability, 1.0);
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            let succeeds = binomial_cumulative(dissenting, models, 1.0 - middle) >= SUCCESS;
            if succeeds { high = middle } else { low = middle }
        }
        // The aim is below 1: no distribution of models reaches it for certain.
        high.min(1.0 - 1e-6)
    }

    /// The least number of models of an ensemble that is to search over and to certify.
    pub(super) fn given_models(self) -> usize {
        self.fresh_models() + LEAST_OWN
    }

    /// The share of search models in the tail.
    pub(super) fn tail(self) -> f64 {
        (1.0 - self.probability).clamp(0.1, 0.5)
    }
}

/// The result of the fresh models for one answer: the promise in numbers and in words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShownPromise {
    /// The probability that the question asked for.
    pub asked: Option<f64>,
    /// The probability that was shown: the next model accepts with at least this probability, a
    /// statement at the confidence.
    pub shown: f64,
    /// The confidence of that statement.
    pub confidence: f64,
    /// The predictive probability that the next model accepts, `accepting / (models + 1)`: over the
    /// draw of the fresh models and the next one together, without a confidence.
    pub predictive: f64,
    /// The number of fresh models.
    pub models: usize,
    /// The number of them that accept.
    pub accepting: usize,
    /// The number of them that accept the applicant without any change.
    pub unchanged: usize,
    /// Whether the statement is certified, and its probability is at least the one asked for.
    pub kept: bool,
    /// The promise as a sentence.
    pub sentence: String,
}

impl ShownPromise {
    /// The sentence of an answer that no retrained model has judged.
    pub(super) const NOT_MEASURED: &'static str = "Nothing about retraining was measured.";

    /// The promise of a certified point; `None` without fresh models. `unchanged` is the number of
    /// them that accept the applicant without any change.
    pub(super) fn of(
        promise: Option<Promise>,
        certificate: &Certificate,
        unchanged: usize,
    ) -> Option<Self> {
        let tier = certificate.ensemble()?;
        let asked = promise.map(Promise::probability);
        let EnsembleTier { models, valid: accepting, probability: shown, confidence, .. } = *tier;
        let enough = asked.is_none_or(|asked| shown >= asked);
        let kept = enough && tier.verdict == Verdict::Certified;
        let predictive = Proportion::new(accepting, models).ok()?.predictive();
        let mut sentence =
            format!("{accepting} of {models} models retrained to check this accept it");
        let over_all = match promise {
            Some(promise) if promise.confidence < confidence => {
                format!(", so that {} holds for every answer looked at", promise.confidence)
            }
            _ => String::new(),
        };
        let shown_is = at_least(shown);
        let bound =
            format!(": at least {shown_is} for the next one, confidence {confidence}{over_all}");
        match asked {
            Some(asked) if !enough => {
                sentence += &format!("{bound}; {asked} was asked for and is not shown.");
            }
            _ if kept => sentence += &format!("{bound}."),
            _ if tier.verdict == Verdict::Vacuous => sentence += ": no promise.",
            _ => sentence += ", but an assumption of the certificate does not hold.",
        }
        if unchanged >= accepting {
            sentence += &format!(
                " {unchanged} of them accept the applicant without any change, so for the next \
                 model the advice is no better than doing nothing."
            );
        }
        Some(Self {
            asked,
            shown,
            confidence,
            predictive,
            models,
            accepting,
            unchanged,
            kept,
            sentence,
        })
    }
}

/// The probability that recorded advice was given with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PromisedProbability {
    /// The next model accepts with at least this probability, a statement at the confidence.
    pub probability: f64,
    /// The confidence of that statement.
    pub confidence: f64,
    /// The predictive probability that the next model accepts.
    pub predictive: f64,
}

impl PromisedProbability {
    /// The probability of a certified point. `None` if its retrained models certify none.
    pub fn of(certificate: &Certificate) -> Option<Self> {
        let tier = certificate.ensemble().filter(|tier| tier.verdict == Verdict::Certified)?;
        let EnsembleTier { models, valid, probability, confidence, .. } = *tier;
        let predictive = Proportion::new(valid, models).ok()?.predictive();
        Some(Self { probability, confidence, predictive })
    }

    /// Checks that all numbers are probabilities, for documents of others.
    pub(super) fn check(&self) -> Result<()> {
        let Self { probability, confidence, predictive } = *self;
        for (name, value) in
            [("probability", probability), ("confidence", confidence), ("predictive", predictive)]
        {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::param(name, value, "a number between 0 and 1"));
            }
        }
        Ok(())
    }
}

/// Retrained models that were made for an earlier question. The next one with the same terms uses
/// them again.
#[derive(Debug, Default)]
pub(super) struct MadeModels {
    search: Mutex<Option<([RetrainingTerms; 2], Arc<SearchModels>)>>,
    fresh: Mutex<Option<(RetrainingTerms, Arc<Fresh>)>>,
}

impl MadeModels {
    /// Keeps models to search over and to choose the margin for the next question.
    pub(super) fn keep_search(&self, terms: [RetrainingTerms; 2], models: SearchModels) {
        keep(&self.search, terms, models);
    }

    /// Keeps fresh models for the next question.
    pub(super) fn keep_fresh(&self, terms: RetrainingTerms, models: Fresh) {
        keep(&self.fresh, terms, models);
    }
}

fn keep<K, T>(last: &Mutex<Option<(K, Arc<T>)>>, terms: K, models: T) {
    *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((terms, Arc::new(models)));
}

/// The models of these terms, from the last question or made now.
fn made<K: PartialEq, T>(
    last: &Mutex<Option<(K, Arc<T>)>>,
    terms: K,
    make: impl FnOnce(&K) -> Result<T>,
) -> Result<Arc<T>> {
    let lock = || last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((made_for, models)) = &*lock()
        && *made_for == terms
    {
        return Ok(Arc::clone(models));
    }
    let models = Arc::new(make(&terms)?);
    *lock() = Some((terms, Arc::clone(&models)));
    Ok(models)
}

impl Explainer {
    /// The same explainer with models to search over, if the question's method needs them and this
    /// explainer has none: trained now, or taken from the given ensemble.
    ///
    /// Returned beside it are the members of the given ensemble that the search does not use.
    pub fn for_search(
        &self,
        ask: &Ask,
        given: Option<&Ensemble>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<(Self, Option<Ensemble>)> {
        let ask = &ask.for_model(self, given);
        let method = ask.request()?.method;
        if !method.needs_models() || self.search_models.is_some() {
            return Ok((self.clone(), given.cloned()));
        }
        let Some(given) = given else {
            if self.model().network().is_none() {
                return Err(Error::InvalidModel(format!(
                    "a promise and {} need retrained models, and only networks can be trained \
                     again here, not trees or black boxes; give retrained models, or use {} without a \
                     promise",
                    method.name(),
                    MethodSpec::listed(
                        |method| !method.needs_models() && method.takes(self.model())
                    )
                )));
            }
            let terms = ask.search_terms(self)?;
            let models = made(&self.made.search, terms, |[search, tune]| {
                let epochs = search.epochs() + tune.epochs();
                let counter = Counter::new(Stage::Retraining, epochs, watch);
                let train = |terms| self.retraining().train(terms, |_, _| counter.add(1));
                let [search, tune] = [train(search)?, train(tune)?];
                let [search, tune] = [search, tune].map(|models| models.members().to_vec());
                SearchModels::new(Arc::clone(&self.model), search, tune)
            })?;
            return Ok((Self { search_models: Some(models), ..self.clone() }, None));
        };
        self.retraining().check(given)?;
        if !is_searchable(self.model()) {
            return Err(not_searchable("the model in use is one", &method, self));
        }
        if not_searched(given.members()) == given.members().len() {
            return Err(not_searchable("so are the retrained models", &method, self));
        }
        let Sets { search, tune, fresh } = Sets::of(given, ask.promised()?, ask.given_seed())?;
        let count = not_searched(&search);
        if count > 0 {
            let which = format!("so are {count} of {} models to search over", search.len());
            return Err(not_searchable(&which, &method, self));
        }
        Ok((self.with_search_models(search, tune)?, Some(given.with_fresh(&fresh))))
    }

    /// The retrained models for the certificates of a question's answers: the given ones, or models
    /// trained now, if the question requires them.
    pub fn fresh(
        &self,
        ask: &Ask,
        given: Option<Ensemble>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Option<Arc<Fresh>>> {
        let retraining = self.retraining();
        if let Some(given) = given {
            // Given models that chose the threshold are not fresh.
            let fresh = retraining.fresh(given, ask.is_calibrated(), watch)?;
            return Ok(Some(Arc::new(self.recorded(&fresh))));
        }
        let Some(terms) = ask.retraining(self)? else { return Ok(None) };
        let fresh = made(&self.made.fresh, terms, |terms| {
            let counter = Counter::new(Stage::Retraining, terms.epochs(), watch);
            let trained = retraining.train(terms, |_, _| counter.add(1))?;
            retraining.fresh(trained, false, watch)
        })?;
        // The models are kept for other questions, which may have other search models.
        Ok(Some(Arc::new(self.recorded(&fresh))))
    }

    /// Whether models for a search can be made, or are given for a model that can be searched.
    pub(super) fn can_retrain(&self, given: Option<&Ensemble>) -> bool {
        match given {
            Some(_) => is_searchable(self.model()),
            None => self.model().network().is_some() && self.retraining().is_possible(),
        }
    }

    /// Whether models can be made, or are there, for a promise.
    pub(super) fn can_promise(
        &self,
        promise: Promise,
        given: Option<&Ensemble>,
        seed: Seed,
    ) -> bool {
        match given {
            _ if self.search_models.is_some() => true,
            Some(given) => {
                let sets = Sets::of(given, Some(promise), seed);
                let can_search = |sets: Sets| not_searched(&sets.search) == 0;
                is_searchable(self.model()) && sets.is_ok_and(can_search)
            }
            None => self.can_retrain(None),
        }
    }

    /// The same explainer for an audit with given models: some are for the search of repairs, if the
    /// question's method needs them, and the others judge the repairs.
    pub fn for_repairs(
        &self,
        ask: &Ask,
        given: &Ensemble,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Self> {
        let (explainer, fresh) = self.for_search(ask, Some(given), watch)?;
        let fresh = explainer.fresh(ask, fresh, watch)?;
        Ok(Self { judges: fresh, ..explainer })
    }

    /// The judgement of an audit's judges on a point that a person of this row is advised to become.
    pub(super) fn judged_promise(
        &self,
        request: &Request,
        from: &[f32],
        to: &[f32],
    ) -> Result<Option<ShownPromise>> {
        match self.judges.as_deref() {
            Some(fresh) => self.shown_promise(request, fresh, from, to),
            None => Ok(None),
        }
    }

    /// The judgement of fresh models on a point that a person of this row is advised to become.
    pub(super) fn shown_promise(
        &self,
        request: &Request,
        fresh: &Fresh,
        from: &[f32],
        to: &[f32],
    ) -> Result<Option<ShownPromise>> {
        let point = Points::one(to);
        let confidence = request.promise.map_or(CONFIDENCE, Promise::confidence);
        let terms = Terms { confidence, ..Terms::default() };
        // Only the judgement of the fresh models is used, which draws nothing.
        let seed = request.seed.derive("highest promise");
        let go_on = || ControlFlow::Continue(());
        let made = self.certify(&point, Some(fresh), &terms, seed, go_on)?;
        let unchanged = Unchanged::of(from, fresh).accepting;
        Ok(made.first().and_then(|made| ShownPromise::of(request.promise, made, unchanged)))
    }

    /// The same explainer with models to search over and models to choose the margin.
    pub fn with_search_models(
        &self,
        search: Vec<Arc<dyn Model>>,
        tune: Vec<Arc<dyn Model>>,
    ) -> Result<Self> {
        let models = Arc::new(SearchModels::new(Arc::clone(&self.model), search, tune)?);
        Ok(Self { search_models: Some(models), ..self.clone() })
    }
}

/// The number of models that a search cannot run on.
fn not_searched(models: &[Arc<dyn Model>]) -> usize {
    models.iter().filter(|model| !is_searchable(&***model)).count()
}

/// The error of a search over black boxes, and the methods that do without.
fn not_searchable(which: &str, method: &MethodSpec, explainer: &Explainer) -> Error {
    let can = |other: &MethodSpec| !other.needs_models() && other.takes(explainer.model());
    Error::InvalidModel(format!(
        "a promise and {} search models with gradients and trees, not black boxes, and {which}; \
         use {} without a promise, and the retrained models certify the advice",
        method.name(),
        MethodSpec::listed(can)
    ))
}

/// The least number of models to search over and to tune with.
pub(super) const LEAST_OWN: usize = 10;

/// The search, tuning and fresh models of an ensemble.
struct Sets {
    search: Vec<Arc<dyn Model>>,
    tune: Vec<Arc<dyn Model>>,
    fresh: Vec<Arc<dyn Model>>,
}

impl Sets {
    /// The sets that the user chose, or else the members in their order, at random if they were
    /// given, the last ones fresh: as many as the promise needs. Of the others, models that are no
    /// black boxes are the first to search over.
    fn of(ensemble: &Ensemble, promise: Option<Promise>, seed: Seed) -> Result<Self> {
        let members = ensemble.shuffled(seed);
        if let Origin::Given(Given { sets: Some([search, tune]), .. }) = *ensemble.origin() {
            let (search, rest) = members.split_at(search);
            let (tune, fresh) = rest.split_at(tune);
            let [search, tune, fresh] = [search, tune, fresh].map(<[_]>::to_vec);
            let sets = Self { search, tune, fresh };
            sets.check(promise)?;
            return Ok(sets);
        }
        let fresh = promise.map_or(members.len() / 3, Promise::fresh_models);
        let own = members.len().saturating_sub(fresh);
        if own < LEAST_OWN {
            return Err(Error::param(
                "ensemble",
                format!("{} models", members.len()),
                format!(
                    "at least {}: {fresh} fresh ones to certify the promise, and {LEAST_OWN} to \
                     search over and to choose the margin",
                    fresh + LEAST_OWN
                ),
            ));
        }
        let (own, fresh) = members.split_at(own);
        let can_search = |model: &Arc<dyn Model>| is_searchable(&**model);
        let (mut search, mut tune): (Vec<_>, Vec<_>) = own.iter().cloned().partition(can_search);
        let wanted = own.len() * SEARCH_MODELS / (SEARCH_MODELS + TUNING_MODELS);
        if search.is_empty() {
            std::mem::swap(&mut search, &mut tune);
        }
        if search.len() > wanted {
            tune.splice(0..0, search.split_off(wanted));
        }
        Ok(Self { search, tune, fresh: fresh.to_vec() })
    }

    /// Checks that the sets the user chose are enough for a promise.
    fn check(&self, promise: Option<Promise>) -> Result<()> {
        if self.search.is_empty() {
            return Err(Error::param(
                "ensemble",
                "a set without models to search over",
                "models whose names begin with `search`",
            ));
        }
        match promise {
            Some(promise) if !promise.can_be_shown(self.fresh.len()) => Err(Error::param(
                "ensemble",
                format!("a set with {} fresh models", self.fresh.len()),
                format!(
                    "at least {} for a promise of {} at confidence {}",
                    promise.least_models(),
                    promise.probability(),
                    promise.confidence()
                ),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_fresh_models_for_two_that_dissent_and_not_one_more() {
        for (probability, models) in [(0.9, 61), (0.95, 124), (0.99, 628), (0.5, 11)] {
            let promise = Promise::new(probability, 0.95).unwrap();
            assert_eq!(promise.fresh_models(), models, "{probability}");
            let least = promise.least_models();
            assert!(promise.can_be_shown(least) && !promise.can_be_shown(least - 1));
            assert!(promise.is_kept(models - 2, models).unwrap());
            assert!(!promise.is_kept(models - 3, models - 1).unwrap());
            assert!(!promise.is_kept(models - 3, models).unwrap());
        }
    }

    #[test]
    fn a_service_has_fresh_models_for_the_default_promise() {
        let usual = Promise::new(PROMISE, CONFIDENCE).unwrap();
        assert_eq!(usual.fresh_models(), crate::explain::SERVED_MODELS);
    }

    #[test]
    fn at_the_aim_the_test_succeeds_as_often_as_stated() {
        for probability in [0.5, 0.9, 0.99] {
            let promise = Promise::new(probability, 0.95).unwrap();
            let enough = promise.fresh_models();
            assert_eq!(promise.dissenting(enough), Some(DISSENTING));
            assert_eq!(promise.dissenting(promise.least_models()), Some(0));
            assert_eq!(promise.dissenting(promise.least_models() - 1), None);
            let mut last = 1.0;
            for models in [promise.least_models(), enough, 10 * enough] {
                let aim = promise.aim(models);
                // Fewer models can show less, so more of them have to accept.
                assert!(aim > probability && aim < last, "{probability}: {aim} after {last}");
                last = aim;
                let dissenting = promise.dissenting(models).unwrap();
                let success = binomial_cumulative(dissenting, models, 1.0 - aim);
                assert!((success - SUCCESS).abs() < 1e-9, "{probability}: {success}");
            }
        }
    }

    #[test]
    fn a_promise_is_a_probability() {
        for (probability, confidence) in [
            (0.0, 0.95),
            (0.49, 0.95),
            (1.0, 0.95),
            (f64::NAN, 0.95),
            (0.9, 1.0),
            (0.9, 0.4),
            (0.9, f64::NAN),
        ] {
            assert!(Promise::new(probability, confidence).is_err(), "{probability} {confidence}");
        }
    }
}
