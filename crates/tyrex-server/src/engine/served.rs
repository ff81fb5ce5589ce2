//! A served model.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tyrex::Explainer;
use tyrex::change::ModelChange;
use tyrex::explain::{
    Adviser, Applicant, Ask, Fresh, Part, Performance, PerformanceTally, Request, RetrainingTerms,
    SearchedModels, StabilityGauge, StabilityTerms,
};
use tyrex::model::TrainParams;
use utoipa::ToSchema;

use super::error::{Error, Result};
use super::given::GivenModels;
use super::kept::Kept;
use super::pool::Stop;

/// Maximum number of cached sets of neighbours.
const GAUGES: usize = 8;
/// Maximum number of cached prepared methods.
const ADVISERS: usize = 8;
/// Maximum size of either cache, in numbers, not counting the last entry.
const KEPT_NUMBERS: usize = 16 << 20;
/// Maximum size of the neighbours of a point, in numbers.
const MOST_NUMBERS: usize = 32 << 20;

/// A model, its rows, and its retrained versions as they become available.
#[derive(Debug)]
pub struct Served {
    id: String,
    explainer: Arc<Explainer>,
    fingerprint: String,
    origin: String,
    created: Timestamp,
    /// The applicants, in the order of their table.
    applicants: Vec<Applicant>,
    /// The positions of the rejected ones.
    rejected: Vec<usize>,
    /// Whether the applicants are separate from the reference, in their own table.
    apart: bool,
    retraining: Option<Retraining>,
    ensemble: RwLock<Training>,
    searched: OnceLock<SearchedModels>,
    gauges: Kept<StabilityGauge>,
    advisers: Kept<Adviser>,
    /// Numbers stored per neighbour: its columns, and the sums of the first layer.
    numbers: usize,
    /// Set when the model is removed.
    pub(super) removed: Stop,
}

/// Where the retrained versions of a model come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Retraining {
    /// The service trains them.
    Trained(TrainedModels),
    /// The operator retrained them; their files are in the database.
    Given(GivenModels),
}

/// How a model is retrained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TrainedModels {
    pub(super) change: ModelChange,
    pub(super) models: usize,
    pub(super) params: TrainParams,
    pub(super) seed: tyrex::Seed,
    /// The models to search over and to tune with; none in databases of earlier versions.
    #[serde(default)]
    pub(super) search: Vec<SearchSet>,
    /// Whether they take points on the scale of the explainer. Earlier versions stored models on the
    /// scale of the model file.
    #[serde(default)]
    pub(super) common_scale: bool,
}

/// A set of models that a search uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SearchSet {
    pub(super) models: usize,
    pub(super) seed: tyrex::Seed,
}

impl TrainedModels {
    /// The terms of the fresh models, and of the two sets that a search uses, if there are any. The
    /// members of all sets are numbered in this order.
    pub(super) fn terms(&self) -> Vec<RetrainingTerms> {
        let Self { change, models, params, seed, search, .. } = self;
        let terms = |models, seed| RetrainingTerms {
            change: change.clone(),
            models,
            params: params.clone(),
            seed,
        };
        let search = search.iter().map(|set| terms(set.models, set.seed));
        std::iter::once(terms(*models, *seed)).chain(search).collect()
    }
}

impl Retraining {
    /// The number of models that certify.
    fn fresh(&self) -> usize {
        match self {
            Self::Trained(trained) => trained.models,
            Self::Given(given) => given.fresh,
        }
    }

    /// The number of models that searches use.
    fn search(&self) -> usize {
        match self {
            Self::Trained(trained) => trained.search.iter().map(|set| set.models).sum(),
            Self::Given(given) => given.search,
        }
    }

    /// Where the models come from, in words.
    fn description(&self) -> String {
        match self {
            Self::Trained(trained) => trained.change.description(),
            Self::Given(given) => given.description.clone(),
        }
    }
}

/// The progress of the retrained models.
#[derive(Debug, Clone)]
pub(super) enum Training {
    None,
    /// Some are missing: the number of finished ones, and the fresh ones among them.
    Under(usize, Option<Arc<Fresh>>),
    /// The fresh models, and the explainer that searches over the others.
    Ready(Arc<Fresh>, Option<Arc<Explainer>>),
    Failed(String),
}

/// The progress of the retrained models, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct EnsembleSummary {
    /// The state.
    pub(crate) state: EnsembleState,
    /// The number of trained models.
    #[schema(example = 31)]
    pub(crate) models: usize,
    /// The number of models in the end.
    #[schema(example = 50)]
    pub(crate) wanted: usize,
    /// The state in words.
    pub(crate) sentence: String,
}

/// Whether there are retrained models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EnsembleState {
    /// None were requested.
    None,
    /// They are being trained.
    Training,
    /// All are trained.
    Ready,
    /// They could not be trained.
    Failed,
}

impl Served {
    pub(super) fn new(
        id: String,
        explainer: Explainer,
        applicants: Option<Vec<Applicant>>,
        origin: String,
        created: Timestamp,
        retraining: Option<Retraining>,
    ) -> Self {
        let apart = applicants.is_some();
        let own = || explainer.applicants().part(explainer.reference().applicants());
        let applicants = applicants.unwrap_or_else(own);
        let is_rejected = |place: &usize| applicants[*place].is_rejected();
        let width = explainer.model().summary().widths().first().copied().unwrap_or(0);
        Self {
            id,
            fingerprint: explainer.fingerprint().to_string(),
            origin,
            created,
            rejected: (0..applicants.len()).filter(is_rejected).collect(),
            applicants,
            apart,
            ensemble: RwLock::new(match retraining {
                Some(_) => Training::Under(0, None),
                None => Training::None,
            }),
            retraining,
            numbers: explainer.model().dim() + width,
            explainer: Arc::new(explainer),
            searched: OnceLock::new(),
            gauges: Kept::new(GAUGES, KEPT_NUMBERS),
            advisers: Kept::new(ADVISERS, KEPT_NUMBERS),
            removed: Stop::default(),
        }
    }

    /// Its name.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The model and its reference.
    pub(crate) fn explainer(&self) -> &Explainer {
        &self.explainer
    }

    /// The fingerprint of the model.
    pub(crate) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Its source.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// When it was added.
    pub(crate) fn created(&self) -> Timestamp {
        self.created
    }

    /// The number of rows that are rejected.
    pub(crate) fn rejected(&self) -> usize {
        self.rejected.len()
    }

    /// A page of the applicants, in the order of the table, and their total number.
    pub(crate) fn applicants(
        &self,
        rejected: bool,
        offset: usize,
        limit: usize,
    ) -> (usize, Vec<Applicant>) {
        if rejected {
            let some = self.rejected.iter().skip(offset).take(limit);
            return (self.rejected.len(), some.map(|&at| self.applicants[at].clone()).collect());
        }
        let some = self.applicants.iter().skip(offset).take(limit);
        (self.applicants.len(), some.cloned().collect())
    }

    /// The applicants.
    pub(crate) fn all_applicants(&self) -> &[Applicant] {
        &self.applicants
    }

    /// The applicant in a row of the table of applicants, if there is one.
    pub(crate) fn applicant(&self, row: usize) -> Option<Applicant> {
        if !self.apart {
            return self.explainer.applicants().at(row);
        }
        let place = self.applicants.binary_search_by_key(&row, |own| own.row).ok()?;
        Some(self.applicants[place].clone())
    }

    /// The number of rows that can be addressed by number.
    pub(crate) fn rows(&self) -> usize {
        if self.apart { self.applicants.len() } else { self.explainer.reference().rows().len() }
    }

    /// The accuracy of the model on its rows.
    pub(crate) fn performances(&self) -> Vec<Performance> {
        if !self.apart {
            return self.explainer.performances();
        }
        vec![self.tally().performance(Part::All)]
    }

    /// Reasons to doubt advice.
    pub(crate) fn warnings(&self, request: &Request) -> Vec<String> {
        let own = self.apart.then(|| self.tally());
        self.explainer.warnings(request, own.as_ref())
    }

    fn tally(&self) -> PerformanceTally {
        let mut tally = PerformanceTally::default();
        self.applicants.iter().for_each(|own| tally.add(own.score, own.favourable));
        tally
    }

    pub(super) fn retraining(&self) -> Option<&Retraining> {
        self.retraining.as_ref()
    }

    pub(super) fn training(&self) -> Training {
        self.ensemble.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_training(&self, training: Training) {
        *self.ensemble.write().unwrap_or_else(PoisonError::into_inner) = training;
    }

    /// The retrained models, if all are trained.
    pub(crate) fn fresh(&self) -> Option<Arc<Fresh>> {
        match self.training() {
            Training::Ready(fresh, _) => Some(fresh),
            _ => None,
        }
    }

    /// The same, which have judged this number of answers before.
    pub(crate) fn fresh_after(&self, looks: u32) -> Result<Option<Arc<Fresh>>> {
        if looks > Fresh::MOST_LOOKS {
            return Err(Error::field("looks", format!("expected at most {}", Fresh::MOST_LOOKS)));
        }
        let again = |fresh: Arc<Fresh>| match looks {
            0 => fresh,
            looks => Arc::new(Fresh { looks, ..(*fresh).clone() }),
        };
        Ok(self.fresh().map(again))
    }

    /// The retrained models available now, or the reason why there are none.
    pub(crate) fn fresh_so_far(&self) -> Result<Arc<Fresh>> {
        match self.training() {
            Training::Ready(fresh, _) | Training::Under(_, Some(fresh)) => Ok(fresh),
            Training::Under(_, None) => Err(Error::Busy {
                what: "the first retrained models are not ready yet",
                retry_after: std::time::Duration::from_secs(1),
            }),
            Training::None | Training::Failed(_) => Err(Error::Conflict(format!(
                "the model `{}` has no retrained models: {}",
                self.id,
                self.ensemble_summary().sentence
            ))),
        }
    }

    /// Whether there are, or will be, models for searches over models.
    pub(crate) fn can_promise(&self) -> bool {
        let planned = self.retraining.as_ref().is_some_and(|own| own.search() > 0);
        planned && !matches!(self.training(), Training::Failed(_))
    }

    /// Why the answers to a question have no promise, though the model can be retrained.
    pub(crate) fn without_promise(&self, ask: &Ask) -> Option<String> {
        if let (Some(Retraining::Given(_)), Some(fresh)) = (&self.retraining, self.fresh()) {
            return ask.without_promise(&self.searching(), Some(&fresh.ensemble));
        }
        Ask { models: Some(self.fresh_models()), ..ask.clone() }
            .without_promise(&self.explainer, None)
    }

    /// The number of fresh models, when all are trained.
    pub(crate) fn fresh_models(&self) -> usize {
        self.retraining.as_ref().map_or(0, Retraining::fresh)
    }

    /// The explainer with models to search over; the plain one while there are none.
    pub(crate) fn searching(&self) -> Arc<Explainer> {
        match self.training() {
            Training::Ready(_, Some(searching)) => searching,
            _ => Arc::clone(&self.explainer),
        }
    }

    /// The explainer for a request: the one with models to search over, if the method needs them.
    pub(crate) fn explainer_for(&self, request: &Request) -> Result<Arc<Explainer>> {
        if !request.method.needs_models() {
            return Ok(Arc::clone(&self.explainer));
        }
        match self.training() {
            Training::Ready(_, Some(searching)) => Ok(searching),
            Training::Under(..) if self.can_promise() => Err(Error::Busy {
                what: "the retrained models to search over are not ready yet",
                retry_after: std::time::Duration::from_secs(1),
            }),
            _ => Err(Error::Conflict(format!(
                "the model `{}` has no retrained models to search over",
                self.id
            ))),
        }
    }

    /// The retrained models that take part in the searches of a request.
    pub(crate) fn searched(&self, request: &Request) -> Result<SearchedModels> {
        let explainer = self.explainer_for(request)?;
        if Arc::ptr_eq(&explainer, &self.explainer) {
            return Ok(explainer.searched());
        }
        // There is one explainer with models to search over, and fingerprints take time.
        Ok(self.searched.get_or_init(|| explainer.searched()).clone())
    }

    /// The progress of the retrained models.
    pub(crate) fn ensemble_summary(&self) -> EnsembleSummary {
        let wanted = self.retraining.as_ref().map_or(0, |own| own.fresh() + own.search());
        let change = self.retraining.as_ref().map(Retraining::description).unwrap_or_default();
        let (state, models, sentence) = match self.training() {
            Training::None => (EnsembleState::None, 0, "None were requested.".to_owned()),
            Training::Under(done, _) => {
                let sentence = format!("{done} of {wanted} models so far, {change}.");
                (EnsembleState::Training, done, sentence)
            }
            Training::Ready(fresh, search) => {
                let count = fresh.ensemble.members().len();
                let sentence = match search {
                    Some(_) => format!(
                        "{count} models to certify advice, {} to search for it, {change}.",
                        wanted - count
                    ),
                    None => format!("{count} models, {change}."),
                };
                (EnsembleState::Ready, wanted, sentence)
            }
            Training::Failed(reason) => (EnsembleState::Failed, 0, reason),
        };
        EnsembleSummary { state, models, wanted, sentence }
    }

    /// Rejects more neighbours than fit into memory.
    pub(crate) fn check_neighbours(&self, field: &'static str, samples: usize) -> Result<()> {
        let most = MOST_NUMBERS / self.numbers.max(1);
        if samples <= most {
            return Ok(());
        }
        Err(Error::field(field, format!("expected at most {most} for a model of this size")))
    }

    /// The neighbours of these terms, from the cache or drawn now.
    pub(crate) fn gauge(&self, terms: &StabilityTerms) -> Result<Arc<StabilityGauge>> {
        Ok(self.gauges.get(
            |gauge| gauge.terms() == terms,
            |gauge| self.numbers * gauge.terms().samples,
            || self.explainer.stability(terms),
        )?)
    }

    /// The prepared method of a request, from the cache or prepared now.
    pub(super) fn adviser(&self, request: &Request) -> Result<Arc<Adviser>> {
        let explainer = self.explainer_for(request)?;
        // About as many neighbours as all its gauges have.
        let samples = request.method.robustness().map_or(1, |test| 10 * test.samples);
        Ok(self.advisers.get(
            |adviser| adviser.request() == request,
            |_| self.numbers * samples,
            || Adviser::new(&explainer, request.clone()),
        )?)
    }
}
