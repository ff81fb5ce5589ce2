//! An explainer and a question, prepared once.
//!
//! All work that does not depend on the applicant is done when the adviser is created: the draws of
//! the test, the scores of the reference, the rules of the schema. A service, a stream and a loop
//! then make the same call for every batch.

use std::ops::ControlFlow;
use std::sync::Arc;

use self_cell::self_cell;

use super::advice::changes;
use super::usual::Parts;
use super::{Advice, Applicant, Ask, Costs, Counter, Explainer, Fresh, Progress, Request, Stage};
use crate::action::{Actions, FeasibleSet, Overrides, prices};
use crate::certificate::{Certificate, Terms};
use crate::counterfactual::{
    Factual, Method, Norm, Outcome, Plausible, Problem, Protocol, Relaxations, Robustness,
    SearchModels, Tick, find_all, find_path, relaxations,
};
use crate::data::Row;
use crate::error::{Error, Result};
use crate::measure::{DetachedGauge, Gauge, Measure, RelaxedStability};
use crate::model::Model;
use crate::neighbourhood::{Neighbourhood, Sampling};
use crate::plausibility::Plausibility;
use crate::points::Points;

/// An explainer and a question, prepared once: it answers any number of batches of applicants.
///
/// An applicant's answer has the same bits alone and in any batch, in any order, on any number
/// of threads.
pub struct Adviser {
    explainer: Explainer,
    request: Request,
    method: PreparedMethod,
    space: Space,
    stability: StabilityReport,
    parts: Parts,
}

/// The source of the `R^` of answers.
enum StabilityReport {
    /// The method's own test.
    Tested,
    /// It is computed on draws of its own, since the method tests no `R^`.
    Computed(DetachedGauge),
    /// It is not reported.
    Omitted,
}

/// The set of possible answers.
enum Space {
    /// The rows that the rules allow for the applicant.
    Rules(Actions),
    /// The same set of points for every applicant.
    Everyone(Box<FeasibleSet>),
}

/// The data that a prepared method borrows.
struct Ground {
    model: Arc<dyn Model>,
    reference: Arc<Points>,
    search_models: Option<Arc<SearchModels>>,
    /// The condition that answers are usual, if there is one.
    plausible: Option<Condition>,
}

/// The density of usual rows, its logarithms at the reference, and the least p-value.
struct Condition {
    density: Arc<Plausibility>,
    of_reference: Arc<[f64]>,
    least: f64,
}

/// A method and its problem.
struct Prepared<'a> {
    problem: Problem<'a>,
    method: Box<dyn Method + 'a>,
}

self_cell!(
    struct PreparedMethod {
        owner: Ground,
        #[covariant]
        dependent: Prepared,
    }
);

impl std::fmt::Debug for Adviser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adviser").field("request", &self.request).finish_non_exhaustive()
    }
}

impl Adviser {
    /// Prepares the answers to a question whose promise is settled ([`Ask::for_model`]). `tau = auto`
    /// has to be replaced by a number first ([`Explainer::calibrated`]).
    pub fn of(explainer: &Explainer, ask: &Ask) -> Result<Self> {
        if ask.is_calibrated() {
            return Err(Error::param("tau", "auto", "a number, chosen by a calibration"));
        }
        ask.check_features(explainer.schema())?;
        Self::new(explainer, ask.settled(explainer, false).request()?)
    }

    /// Prepares the answers to a request.
    pub fn new(explainer: &Explainer, request: Request) -> Result<Self> {
        let reference = Arc::clone(explainer.reference_points());
        let space = match request.protocol.space(&reference)? {
            None => Space::Rules(explainer.actions(&request)?),
            Some(space) if request.overrides == Overrides::default() => {
                let prices = prices(explainer.schema(), explainer.encoder());
                Space::Everyone(Box::new(space.priced(prices.map(Into::into))))
            }
            Some(_) => {
                return Err(Error::param(
                    "protocol",
                    request.protocol.name(),
                    "product, if there are rules for features",
                ));
            }
        };
        if request.path {
            explainer.plausibility()?;
        }
        let plausible = match request.plausible {
            Some(least) => Some(Condition {
                density: Arc::clone(explainer.plausibility()?),
                of_reference: Arc::clone(explainer.reference_densities()?),
                least,
            }),
            None => None,
        };
        let ground = Ground {
            model: Arc::clone(&explainer.model),
            reference,
            search_models: explainer.search_models.clone(),
            plausible,
        };
        let method = PreparedMethod::try_new(ground, |ground| {
            let problem = Problem::new(&*ground.model, request.norm, &ground.reference)?;
            let problem = match &ground.search_models {
                Some(models) => problem.with_search_models(models),
                None => problem,
            };
            let problem = match &ground.plausible {
                Some(Condition { density, of_reference, least }) => problem
                    .with_plausible(Plausible::new(density, *least)?.with_data(of_reference))?,
                None => problem,
            };
            let method = request.method.prepare(&problem, request.seed)?;
            Ok::<_, Error>(Prepared { problem, method })
        })?;
        let test = request.method.robustness();
        let stability = match test {
            Some(Robustness { measure: Measure::RelaxedStability(_), .. }) => {
                StabilityReport::Tested
            }
            _ if request.stability => {
                StabilityReport::Computed(explainer.stability_reader(&request, "report")?)
            }
            _ => StabilityReport::Omitted,
        };
        let explainer = explainer.clone();
        Ok(Self { explainer, request, method, space, stability, parts: Parts::default() })
    }

    /// The explainer.
    pub fn explainer(&self) -> &Explainer {
        &self.explainer
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The same question without one of its conditions.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Finds advice for applicants, in their order.
    ///
    /// `watch` is called for every answer and every evaluation; after a `Break` the remaining
    /// applicants are answered with [`Reason::Cancelled`](crate::counterfactual::Reason).
    pub fn advise(
        &self,
        applicants: &[Applicant],
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Advice>> {
        let outcomes = self.search(applicants, watch)?;
        let stabilities = self.stabilities(&outcomes)?;
        let all = applicants.iter().zip(outcomes).zip(stabilities);
        Ok(all.map(|((own, outcome), r)| self.explainer.advice(own, outcome, r)).collect())
    }

    /// The outcomes of the method, without changes, costs and stability.
    pub(super) fn search(
        &self,
        applicants: &[Applicant],
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Outcome>> {
        let sets = self.feasible_sets(applicants)?;
        let factuals: Vec<Factual> =
            applicants.iter().zip(&sets).map(|(own, set)| Factual::new(&own.point, set)).collect();
        let Prepared { problem, method } = self.method.borrow_dependent();
        let outcomes = find_all(problem, &**method, &factuals, self.request.budget, &watch)?;
        self.with_reasons(applicants, outcomes, &watch)
    }

    /// The same advice for one applicant, with the path of the search: the points that the method
    /// visited, from the applicant's to the answer's. `docs/methods.md` describes the path of each
    /// method. If nothing is found, the path ends at the last point of the search.
    pub fn trace(
        &self,
        applicant: &Applicant,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<(Advice, Points)> {
        let alone = std::slice::from_ref(applicant);
        let sets = self.feasible_sets(alone)?;
        let factual = Factual::new(&applicant.point, &sets[0]);
        let Prepared { problem, method } = self.method.borrow_dependent();
        let (outcome, path) = find_path(problem, &**method, &factual, self.request.budget, &watch)?;
        let mut outcomes = self.with_reasons(alone, vec![outcome], &watch)?;
        let stability = self.stabilities(&outcomes)?.into_iter().next().flatten();
        Ok((self.explainer.advice(applicant, outcomes.remove(0), stability), path))
    }

    /// For an applicant without advice: the single rules that prevent it, after at most `tries`
    /// searches. `None` if answers are points, which have no rules.
    ///
    /// `watch` is called as in a search; a `Break` is an error.
    pub(crate) fn relaxations(
        &self,
        row: &Row,
        tries: usize,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Option<Relaxations>> {
        let Space::Rules(actions) = &self.space else { return Ok(None) };
        let Prepared { problem, method } = self.method.borrow_dependent();
        relaxations(problem, &**method, actions, row, self.request.budget, tries, watch).map(Some)
    }

    /// A certificate for each advice that was found, in their order. The seed must not be that of
    /// the search; [`Ask::certificate_seed`] is the one that all front ends use.
    pub fn certify(
        &self,
        advice: &[Advice],
        fresh: Option<&Fresh>,
        ask: &Ask,
        watch: impl Fn(Progress) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Option<Certificate>>> {
        let mut points = Points::new(self.explainer.encoder().dim());
        advice.iter().filter_map(Advice::found).for_each(|found| points.push(&found.point));
        let terms = Terms { confidence: ask.confidence, ..Terms::default() };
        let seed = ask.certificate_seed();
        let counter = Counter::new(Stage::Certifying, points.len() as u64, &watch);
        let made = self.explainer.certify(&points, fresh, &terms, seed, || counter.add(1))?;
        let mut made = made.into_iter();
        Ok(advice.iter().map(|advice| advice.found().and_then(|_| made.next())).collect())
    }

    /// The feasible sets of applicants.
    pub(super) fn feasible_sets(&self, applicants: &[Applicant]) -> Result<Vec<FeasibleSet>> {
        match &self.space {
            Space::Rules(actions) => {
                applicants.iter().map(|each| actions.for_factual(&each.values)).collect()
            }
            Space::Everyone(space) => Ok(vec![(**space).clone(); applicants.len()]),
        }
    }

    /// `R^` of answers, if it is reported.
    fn stabilities(&self, outcomes: &[Outcome]) -> Result<Vec<Option<f64>>> {
        let reader = match &self.stability {
            StabilityReport::Computed(reader) => reader,
            StabilityReport::Tested => {
                return Ok(outcomes.iter().map(|outcome| Some(outcome.found()?.value)).collect());
            }
            StabilityReport::Omitted => return Ok(vec![None; outcomes.len()]),
        };
        let found = outcomes.iter().filter_map(Outcome::found).map(|found| &*found.point);
        let mut values = self.explainer.read_stabilities(reader, found)?.into_iter();
        let next = |outcome: &Outcome| outcome.found().and_then(|_| values.next());
        Ok(outcomes.iter().map(next).collect())
    }
}

impl Explainer {
    /// Computes `R^` with the parameters of the request's test, on draws of their own.
    pub(super) fn stability_reader(
        &self,
        request: &Request,
        purpose: &str,
    ) -> Result<DetachedGauge> {
        let robustness = request.method.robustness().cloned().unwrap_or_default();
        let Robustness { samples, sigma, .. } = robustness;
        let (dim, seed) = (self.model().dim(), request.seed.derive(purpose));
        let cloud = Neighbourhood::draw(Sampling::MonteCarlo, dim, samples, sigma, seed)?;
        Ok(Gauge::new(RelaxedStability {}, self.model(), &cloud)?.detached())
    }

    /// `R^` of points.
    pub(super) fn read_stabilities<'a>(
        &self,
        reader: &DetachedGauge,
        points: impl Iterator<Item = &'a [f32]>,
    ) -> Result<Vec<f64>> {
        let mut read = Points::new(self.model().dim());
        points.for_each(|point| read.push(point));
        let readings = reader.attached(self.model())?.read(&read);
        Ok(readings.into_iter().map(|reading| reading.value).collect())
    }

    /// The costs of a change, at the schema's prices.
    pub(super) fn costs(&self, to: &[f32], from: &[f32]) -> Costs {
        let prices = prices(self.schema(), self.encoder());
        let cost = |norm: Norm| norm.priced(to, from, prices.as_deref());
        Costs { l1: cost(Norm::L1), l2: cost(Norm::L2) }
    }

    pub(super) fn actions(&self, request: &Request) -> Result<Actions> {
        Actions::new(self.schema(), self.encoder())?.overridden(&request.overrides)
    }

    pub(super) fn advice(
        &self,
        applicant: &Applicant,
        outcome: Outcome,
        stability: Option<f64>,
    ) -> Advice {
        let found = outcome.found();
        let advised = found.and_then(|found| found.row.clone());
        let changed = |row| changes(self.schema(), &applicant.values, row);
        Advice {
            changes: advised.as_ref().map(changed).unwrap_or_default(),
            stability,
            cost: found.map(|found| self.costs(&found.point, &applicant.point)),
            applicant: applicant.clone(),
            advised,
            outcome,
        }
    }
}

/// Whether answers are rows.
pub(super) fn answers_are_rows(request: &Request) -> bool {
    request.protocol == Protocol::Product
}
