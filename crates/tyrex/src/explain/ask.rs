//! The question, with all defaults.
//!
//! The command line, the HTTP service and the Python package all pass an [`Ask`] to this module.
//! They have no defaults of their own, and every seed is derived here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    CONFIDENCE, Explainer, PROMISE, Promise, Request, RetrainingTerms, SEARCH_MODELS, TUNING_MODELS,
};
use crate::action::Overrides;
use crate::calibrate::{Goal, TAUS, usual_models};
use crate::catalogue::Named as _;
use crate::change::{Ensemble, MOST_MEMBERS, ModelChange};
use crate::counterfactual::{Budget, MethodSpec, Norm, Protocol, TrexE, is_searchable};
use crate::data::nearest_name;
use crate::data::schema::{Action, Rule, Schema};
use crate::error::{Error, Result};
use crate::explain::CalibrationTerms;
use crate::fields;
use crate::seed::Seed;

/// The default method of a question without a promise.
pub const METHOD: &str = "trex-o";
/// Models retrained for the certificates of a model that was trained here.
pub const MODELS: usize = 20;
/// Models of an ensemble, if their number is not given: as many as in the paper's experiments.
pub const RETRAINED_MODELS: usize = 50;
/// Fresh models that a service retrains for each model it serves: enough for the default promise.
pub const SERVED_MODELS: usize = 61;
/// Rules that are relaxed, one at a time, for an applicant without advice.
pub const TRIES: usize = 24;
/// The largest batch for which rules are relaxed by default.
pub(crate) const RELAXED_ROWS: usize = 20;
/// The most rejected rows on which `tau = auto` tries thresholds.
pub const CALIBRATED_ROWS: usize = 100;
/// Tests of stability that the default budget of a search allows.
const USUAL_TESTS: u64 = 1000;
/// Days for which recorded advice is promised to hold.
pub const PROMISE_DAYS: u32 = 90;

/// A question about applicants.
///
/// | name | default | meaning |
/// |---|---|---|
/// | `method` | `trex-e` with a promise; else `trex-o`, or `trex-nn` for a black box without gradients | the method, by its name in the catalogue |
/// | `protocol` | `product` | the set of parameters, and whether answers are rows or points |
/// | `norm` | `l1` | the cost of a change |
/// | `promise` | 0.9, where models can be retrained and no other method or test is chosen | the probability that the next model accepts the advice |
/// | `confidence` | 0.95 | the confidence of certificates, and of the promise |
/// | `plausible` | none | the least p-value of an answer among accepted applicants |
/// | `path` | no | whether each answer has a path in steps through usual rows |
/// | `tau` | the protocol's | the least stability of an answer, or `auto` |
/// | `k` | the protocol's | neighbours in the test of stability |
/// | `sigma` | the protocol's | their standard deviation, in encoded columns |
/// | `params` | the method's | other parameters of the method |
/// | `keep` | none | features that must not change |
/// | `vary` | all | the only features that may change |
/// | `actions` | the schema's | other rules for single features |
/// | `rules` | none | rules between features, besides the schema's |
/// | `budget` | as many scored points as 1000 tests of stability, at least 1,000,000; none under the other protocols | the most work for one applicant |
/// | `seed` | 0 | the source of all randomness |
/// | `certify` | yes | whether answers get certificates |
/// | `stability` | yes | whether `R^` is computed for answers of methods that do not test it |
/// | `models` | enough for the promise; else 20, or 0 for a model file | models retrained for the certificates |
/// | `change` | `reinitialise` | how those models differ from the model |
/// | `prove` | no | whether to prove that no advice is cheaper; `min-cost` and `margin` on trees can |
/// | `relax` | for up to 20 rows | whether to name the rule that prevents advice |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default, expecting = "an object")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of a question")]
pub struct Ask {
    /// The method, by its name in the catalogue. If absent, `trex-e` with a promise; without one
    /// `trex-o`, or `trex-nn` for a black box without gradients.
    #[cfg_attr(feature = "openapi", schema(example = "trex-o"))]
    pub method: Option<String>,
    /// The set of parameters, and whether answers are rows or points.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub protocol: Protocol,
    /// The cost of a change.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub norm: Norm,
    /// The least probability that the next model accepts the advice. It requires models that can be
    /// retrained. If absent, 0.9 where they can be, unless the question names another method than
    /// `trex-e`, parameters of a method, or a test of stability.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.5, maximum = 0.999))]
    pub promise: Option<f64>,
    /// The confidence of certificates, and of the promise.
    #[cfg_attr(feature = "openapi", schema(required = false, default = 0.95))]
    pub confidence: f64,
    /// The least p-value of an answer among accepted applicants: at 0.1, one accepted applicant of
    /// ten is less usual. It requires a reference. If absent, answers may be unusual, and only say
    /// how usual they are.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0))]
    pub plausible: Option<f64>,
    /// Whether each answer has a path: the steps from the applicant to the advised row, each to a row
    /// whose p-value among accepted applicants is at least half of `plausible`, or 0.05 without it.
    #[cfg_attr(feature = "openapi", schema(required = false, default = false))]
    pub path: bool,
    /// The least stability of an answer. The protocol's, if absent.
    pub tau: Option<Threshold>,
    /// Neighbours in the test of stability. The protocol's, if absent.
    #[serde(alias = "samples")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub k: Option<usize>,
    /// The standard deviation of the neighbours, in encoded columns. The protocol's, if absent.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0.0))]
    pub sigma: Option<f64>,
    /// Other parameters of the method, by name.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Object))]
    pub params: Map<String, Value>,
    /// Features that must not change.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub keep: Vec<String>,
    /// The only features that may change. All that the schema allows, if absent.
    pub vary: Option<Vec<String>>,
    /// Rules for single features, in place of the schema's.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Object))]
    pub actions: BTreeMap<String, Action>,
    /// Rules between features, besides the schema's.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Vec<Object>))]
    pub rules: Vec<Rule>,
    /// The most work for one applicant. If no limit is given, a search for rows scores at most as
    /// many points as 1000 tests of stability do, and at least 1,000,000.
    #[cfg_attr(feature = "openapi", schema(required = false))]
    pub budget: Budget,
    /// The source of all randomness.
    #[cfg_attr(feature = "openapi", schema(required = false, default = 0))]
    pub seed: u64,
    /// Whether answers get certificates.
    #[cfg_attr(feature = "openapi", schema(required = false, default = true))]
    pub certify: bool,
    /// Whether `R^` is computed for the answers of methods that do not test it. Without it,
    /// `min-cost` takes half the time.
    #[cfg_attr(feature = "openapi", schema(required = false, default = true))]
    pub stability: bool,
    /// Models retrained for the certificates. If absent, enough for the promise; without a promise
    /// 20 for a model that was trained here and none for a model from a file. A service uses the
    /// models it has retrained already.
    pub models: Option<usize>,
    /// How the retrained models differ from the model.
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = Object))]
    pub change: ModelChange,
    /// Whether to prove that no advice is cheaper, or else to say how much cheaper it could be.
    /// `min-cost` and `margin` can, on trees that are added up.
    #[cfg_attr(feature = "openapi", schema(required = false, default = false))]
    pub prove: bool,
    /// Whether to search, for an applicant without advice, for the rule that prevents it. If
    /// absent, for up to 20 applicants.
    pub relax: Option<bool>,
}

/// A threshold of stability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged, expecting = "expected a number between 0 and 1, or `auto`")]
pub enum Threshold {
    /// A number between 0 and 1.
    Given(f64),
    /// The least that keeps 95 % of the advice valid under retrained models.
    Auto(Auto),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// By calibration.
    Auto,
}

impl Threshold {
    /// By calibration.
    pub const AUTO: Self = Self::Auto(Auto::Auto);
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            method: None,
            protocol: Protocol::default(),
            norm: Norm::default(),
            promise: None,
            confidence: CONFIDENCE,
            plausible: None,
            path: false,
            tau: None,
            k: None,
            sigma: None,
            params: Map::new(),
            keep: Vec::new(),
            vary: None,
            actions: BTreeMap::new(),
            rules: Vec::new(),
            budget: Budget::default(),
            seed: 0,
            certify: true,
            stability: true,
            models: None,
            change: ModelChange::default(),
            prove: false,
            relax: None,
        }
    }
}

impl Ask {
    /// Reads a question from the fields of an object; `null` means that a field is not given. An
    /// error names its field. `others` are fields of the same object that the caller reads itself:
    /// the error for an unknown field lists them as well.
    pub fn read(fields: &Map<String, Value>, others: &[String]) -> Result<Self> {
        let own = Self::field_names();
        let known = || others.iter().chain(&own).map(String::as_str);
        let unknown = |name: &&String| !own.contains(name) && *name != SAMPLES;
        if let Some(name) = fields.keys().find(unknown) {
            let list: Vec<String> = known().map(|name| format!("`{name}`")).collect();
            let hint = hint(name, known().chain([SAMPLES]));
            let problem = format!("unknown field, expected one of {}{hint}", list.join(", "));
            return Err(Error::field(name, problem));
        }
        let mut given = fields::given(fields, &[]);
        if let Some(params) = fields.get("params").filter(|params| !params.is_null()) {
            // `null` is a value of some parameters.
            given.insert("params".to_owned(), params.clone());
        }
        fields::read(&Value::Object(given))
    }

    /// The names of all fields.
    fn field_names() -> Vec<String> {
        match serde_json::to_value(Self::default()) {
            Ok(Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
            _ => Vec::new(),
        }
    }

    /// Checks the features that the question names, and the rules it gives them.
    pub fn check_features(&self, schema: &Schema) -> Result<()> {
        let known = |name: &str, field: String| {
            if schema.position(name).is_some() {
                return Ok(());
            }
            let names = schema.features.iter().map(|feature| feature.name.as_str());
            let hint = hint(name, names);
            Err(Error::field(field, format!("the model has no feature `{name}`{hint}")))
        };
        let vary = self.vary.as_deref().unwrap_or_default();
        for (field, names) in [("keep", self.keep.as_slice()), ("vary", vary)] {
            for (place, name) in names.iter().enumerate() {
                known(name, format!("{field}[{place}]"))?;
            }
        }
        let mut schema = schema.clone();
        for name in self.actions.keys() {
            known(name, format!("actions.{name}"))?;
        }
        for feature in &mut schema.features {
            if let Some(action) = self.actions.get(&feature.name) {
                feature.action = action.clone();
            } else if self.keep.contains(&feature.name) {
                feature.action = Action::Fixed;
            }
        }
        schema.validate().map_err(|error| match error {
            Error::Schema { feature: Some(feature), problem }
                if self.actions.contains_key(&feature) =>
            {
                Error::field(format!("actions.{feature}"), problem)
            }
            other => other,
        })?;
        for (place, rule) in self.rules.iter().enumerate() {
            schema
                .check_rule(rule)
                .map_err(|problem| Error::field(format!("rules[{place}]"), problem))?;
        }
        let is_fixed = |name: &&String| {
            let own = schema.features.iter().find(|feature| feature.name == **name);
            own.is_some_and(|feature| feature.action == Action::Fixed)
        };
        match vary.iter().position(|name| is_fixed(&name)) {
            Some(place) => {
                let problem = format!("`{}` is fixed; give it another action as well", vary[place]);
                Err(Error::field(format!("vary[{place}]"), problem))
            }
            None => Ok(()),
        }
    }

    /// The search of this question.
    ///
    /// `tau = auto` has to be replaced by a number first ([`Explainer::calibrated`]); here it means
    /// the protocol's threshold.
    pub fn request(&self) -> Result<Request> {
        let seed = self.search_seed();
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(Error::param("confidence", self.confidence, "a number between 0 and 1"));
        }
        // The aim of a promise is computed in steps as many as the models.
        if let Some(models) = self.models.filter(|&models| models > MOST_MEMBERS) {
            return Err(Error::param("models", models, format!("at most {MOST_MEMBERS}")));
        }
        let promise = self.promised()?;
        if let Some((promise, models)) = promise.zip(self.models)
            && !promise.can_be_shown(models)
        {
            let least = promise.least_models();
            let expected = format!(
                "at least {least} for a promise of {}: it cannot be shown with fewer",
                promise.probability()
            );
            return Err(Error::param("models", models, expected));
        }
        let usual = if promise.is_some() { TrexE::NAME } else { METHOD };
        let method = self.method.as_deref().unwrap_or(usual);
        let mut request = Request::new(method, self.protocol, self.norm, seed)?;
        match (&mut request.method, promise) {
            (_, None) => {}
            (_, Some(promise))
                if self.tau.is_some() || self.k.is_some() || self.sigma.is_some() =>
            {
                let expected = "no `tau`, `k` or `sigma` beside it: retrained models take the place \
                                of the test of stability";
                return Err(Error::param("promise", promise.probability(), expected));
            }
            (MethodSpec::TrexE(method), Some(promise)) => {
                let fresh = self.models.unwrap_or_else(|| promise.fresh_models());
                (method.tail, method.aim) = (promise.tail(), promise.aim(fresh));
            }
            (other, Some(_)) => {
                let expected = "trex-e if a promise is given: the others search with one model";
                return Err(Error::param("method", other.name(), expected));
            }
        }
        request.promise = promise;
        request.plausible = self.least_usual()?;
        request.path = self.path;
        if !self.params.is_empty() {
            request.method = request.method.with_params(&self.params)?;
        }
        if self.prove && !request.method.set_prove() {
            let provable = MethodSpec::listed(|method| method.clone().set_prove());
            let expected = format!("{provable} where `prove` is set: the others have no proof");
            return Err(Error::param("method", request.method.name(), expected));
        }
        let tau = match self.tau {
            Some(Threshold::Given(tau)) => Some(tau),
            Some(Threshold::Auto(_)) | None => None,
        };
        if self.tau.is_some() && tau.is_none() && request.method.robustness().is_none() {
            return Err(no_test(request.method.name()));
        }
        request.set_test(tau, self.k, self.sigma)?;
        self.budget.check()?;
        request.budget = self.budget_of(&request.method);
        request.stability = self.stability;
        let fixed = self.keep.iter().map(|feature| (feature.clone(), Action::Fixed));
        let actions = fixed.chain(self.actions.clone()).collect();
        let (vary, rules) = (self.vary.clone(), self.rules.clone());
        request.overrides = Overrides { vary, actions, rules };
        Ok(request)
    }

    /// The least p-value, if it is one.
    fn least_usual(&self) -> Result<Option<f64>> {
        match self.plausible {
            Some(least) if !(least > 0.0 && least < 1.0) => {
                Err(Error::param("plausible", least, "a p-value between 0 and 1"))
            }
            least if self.protocol == Protocol::Product => Ok(least),
            Some(_) => Err(Error::param(
                "protocol",
                self.protocol.name(),
                "product with `plausible`: p-values are those of rows",
            )),
            None if self.path => Err(Error::param(
                "protocol",
                self.protocol.name(),
                "product with `path`: its steps are rows",
            )),
            None => Ok(None),
        }
    }

    /// The budget of a search. A question without any limit still ends.
    fn budget_of(&self, method: &MethodSpec) -> Budget {
        if self.budget != Budget::default() || self.protocol != Protocol::Product {
            return self.budget;
        }
        let neighbours = method.robustness().map_or(0, |test| test.samples as u64);
        let evaluations = USUAL_TESTS.saturating_mul(neighbours.max(1000));
        Budget { evaluations: Some(evaluations), ..self.budget }
    }

    /// The same question, with the default promise and the default method for a model. `given` are
    /// the retrained models to use in place of new ones.
    #[must_use]
    pub fn for_model(&self, explainer: &Explainer, given: Option<&Ensemble>) -> Self {
        let usual = Promise::new(PROMISE, self.confidence).ok();
        self.settled(
            explainer,
            usual.is_some_and(|usual| explainer.can_promise(usual, given, self.given_seed())),
        )
    }

    /// The same, if it is known whether there are models for the default promise.
    #[must_use]
    pub fn settled(&self, explainer: &Explainer, can_promise: bool) -> Self {
        let mut settled = self.clone();
        if can_promise && self.leaves_promise_open() {
            let usual = Promise::new(PROMISE, self.confidence).ok();
            settled.promise = usual
                .filter(|usual| self.models.is_none_or(|models| usual.can_be_shown(models)))
                .map(Promise::probability);
        }
        let usual = match settled.promise {
            Some(_) => TrexE::NAME,
            None => explainer.usual_method(),
        };
        settled.method.get_or_insert_with(|| usual.to_owned());
        settled
    }

    /// Why a question that leaves the promise open has none, though its model can be retrained.
    pub fn without_promise(
        &self,
        explainer: &Explainer,
        given: Option<&Ensemble>,
    ) -> Option<String> {
        if !self.leaves_promise_open() || !explainer.can_retrain(given) || self.models == Some(0) {
            return None;
        }
        let Ok(usual) = Promise::new(PROMISE, self.confidence) else {
            return Some(format!("no promise is made at a confidence of {}", self.confidence));
        };
        let least = usual.least_models();
        match (self.models, given) {
            (Some(models), _) if !usual.can_be_shown(models) => Some(format!(
                "{models} retrained models cannot show the default promise of {PROMISE}; {least} \
                 can, and a lower promise needs fewer"
            )),
            (_, Some(given)) if !explainer.can_promise(usual, Some(given), self.given_seed()) => {
                Some(format!(
                    "an ensemble of {} models is too small for the default promise of {PROMISE}, which \
                 needs {} to search over and to show it; a lower promise needs fewer",
                    given.members().len(),
                    usual.given_models()
                ))
            }
            _ => None,
        }
    }

    /// Whether the question neither asks for a promise nor chooses a search without one.
    fn leaves_promise_open(&self) -> bool {
        let Self { method, protocol, promise, tau, k, sigma, params, .. } = self;
        promise.is_none()
            && *protocol == Protocol::Product
            && method.as_deref().is_none_or(|method| method == TrexE::NAME)
            && params.is_empty()
            && tau.is_none()
            && k.is_none()
            && sigma.is_none()
    }

    /// The promise, if the question has one.
    pub fn promised(&self) -> Result<Option<Promise>> {
        self.promise.map(|probability| Promise::new(probability, self.confidence)).transpose()
    }

    /// Whether the threshold is chosen by calibration.
    pub fn is_calibrated(&self) -> bool {
        matches!(self.tau, Some(Threshold::Auto(_)))
    }

    /// The seed of the search.
    pub(crate) fn search_seed(&self) -> Seed {
        Seed(self.seed).derive("search")
    }

    /// The seed of the order of models that were retrained elsewhere.
    pub(crate) fn given_seed(&self) -> Seed {
        Seed(self.seed).derive("given models")
    }

    /// The seed of certificates, and of the models retrained for them.
    pub fn certificate_seed(&self) -> Seed {
        Seed(self.seed).derive("certificates")
    }

    /// The number of rules to relax for each applicant without advice, in a batch of this size.
    pub fn tries(&self, applicants: usize) -> usize {
        if self.relax.unwrap_or(applicants <= RELAXED_ROWS) { TRIES } else { 0 }
    }

    /// The models to retrain for certificates; `None` for none.
    pub fn retraining(&self, explainer: &Explainer) -> Result<Option<RetrainingTerms>> {
        let usual = match self.promised()? {
            Some(promise) => promise.fresh_models(),
            None if explainer.training().is_some() => MODELS,
            None => 0,
        };
        match self.models.unwrap_or(usual) {
            0 => Ok(None),
            models => Ok(Some(RetrainingTerms {
                change: self.change.clone(),
                models,
                params: explainer.retraining().params()?,
                seed: self.certificate_seed(),
            })),
        }
    }

    /// The models to retrain for a search over models: those it runs over, and those that choose its
    /// margin.
    pub fn search_terms(&self, explainer: &Explainer) -> Result<[RetrainingTerms; 2]> {
        let params = explainer.retraining().params()?;
        let terms = |models: usize, purpose: &str| RetrainingTerms {
            change: self.change.clone(),
            models,
            params: params.clone(),
            seed: Seed(self.seed).derive(purpose),
        };
        Ok([terms(SEARCH_MODELS, "search models"), terms(TUNING_MODELS, "tuning models")])
    }

    /// The goal of `tau = auto`, the thresholds it tries and the rows it tries them on.
    pub fn calibration(&self) -> Result<CalibrationTerms> {
        let (goal, taus) = (Goal::default(), TAUS.to_vec());
        Ok(CalibrationTerms { goal, taus, request: self.request()?, factuals: CALIBRATED_ROWS })
    }

    /// The models to retrain for the calibration.
    pub(crate) fn calibration_models(&self, explainer: &Explainer) -> Result<RetrainingTerms> {
        let Goal { validity, confidence, .. } = Goal::default();
        Ok(RetrainingTerms {
            change: self.change.clone(),
            models: usual_models(validity, confidence)?,
            params: explainer.retraining().params()?,
            seed: Seed(self.seed).derive("calibration"),
        })
    }
}

impl Explainer {
    /// The default method for the model without a promise: [`METHOD`], or `trex-nn` for a black box
    /// without gradients.
    pub fn usual_method(&self) -> &'static str {
        if is_searchable(self.model()) { METHOD } else { "trex-nn" }
    }
}

/// The other name of `k`.
const SAMPLES: &str = "samples";

/// The known name that resembles a wrong one.
fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest_name(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// The error for a threshold given to a method without a stability test.
pub(super) fn no_test(method: &str) -> Error {
    let robust = MethodSpec::listed(MethodSpec::is_robust);
    let expected =
        format!("{robust} where tau, k or sigma is given: the others have no test of stability");
    Error::param("method", method, expected)
}
