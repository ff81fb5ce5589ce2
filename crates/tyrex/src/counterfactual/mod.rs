//! Counterfactuals: the problem and the methods.
//!
//! `min ||x' - x||  subject to  m(x') >= 0.5,  measure(x') >= tau,  x' feasible`
//!
//! A [`Problem`] is the model, the norm and the data. A [`MethodSpec`] names a method and its
//! parameters; prepared for a problem it answers one [`Factual`] at a time with an [`Outcome`].
//! Four searches serve all methods: `MinCost`, `Ascent`, `Neighbours`, and `CellSearch` for trees.

mod budget;
mod cost;
mod field;
mod judge;
mod methods;
mod outcome;
mod path;
mod plausible;
mod relax;
mod search;
mod search_models;
mod tail;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::*;

pub use budget::{Budget, Effort, Meter, Tick};
pub use cost::Norm;
pub use judge::{Robustness, SearchNeighbours};
pub use methods::*;
pub use outcome::{Answer, Counterfactual, Outcome, Reason, Stopped};
pub use plausible::Plausible;
pub use relax::{Relaxation, Relaxations, relaxations};
pub use search::ascent::Step;
pub use search::cells::is_searchable;
pub use search::neighbours::Memory;
pub use search_models::SearchModels;

use path::Path;
use plausible::Usual;

use crate::action::FeasibleSet;
use crate::error::{Error, Result};
use crate::model::Model;
use crate::points::Points;

/// The problem, the same for every factual.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The cost of a change.
    pub norm: Norm,
    /// Data points, for the methods that return or start from them.
    pub data: &'a Points,
    memory: Option<&'a Memory>,
    search_models: Option<&'a SearchModels>,
    plausible: Option<Plausible<'a>>,
}

impl<'a> Problem<'a> {
    /// A problem; the dimensions are checked.
    pub fn new(model: &'a dyn Model, norm: Norm, data: &'a Points) -> Result<Self> {
        if data.dim() != model.dim() {
            return Err(Error::Dimension {
                what: "coordinates of the data points".into(),
                expected: model.dim(),
                got: data.dim(),
            });
        }
        Ok(Self { model, norm, data, memory: None, search_models: None, plausible: None })
    }

    /// The same problem with models for a search over models.
    #[must_use]
    pub fn with_search_models(self, models: &'a SearchModels) -> Self {
        Self { search_models: Some(models), ..self }
    }

    /// The same problem with a least p-value of answers. The points of the density must be those of
    /// the model.
    pub fn with_plausible(self, plausible: Plausible<'a>) -> Result<Self> {
        if plausible.dim() != self.model.dim() {
            return Err(Error::Dimension {
                what: "coordinates of the points of a density".into(),
                expected: self.model.dim(),
                got: plausible.dim(),
            });
        }
        Ok(Self { plausible: Some(plausible), ..self })
    }

    /// Whether answers have to be usual.
    pub(crate) fn is_plausible(&self) -> bool {
        self.plausible.is_some()
    }

    /// The field of a search, with the condition that answers are usual, if there is one. `unit` is
    /// one standard deviation in the unit of the field.
    pub(crate) fn usual<F>(&self, field: F, unit: f64) -> Usual<'a, F> {
        Usual::new(field, self.plausible, unit)
    }

    /// The same problem with a cache of the measures at the data points, for other methods and
    /// norms. The memory must belong to these data points.
    #[must_use]
    pub fn with_memory(self, memory: &'a Memory) -> Self {
        Self { memory: Some(memory), ..self }
    }
}

/// A point to explain, with its feasible set.
#[derive(Debug, Clone, Copy)]
pub struct Factual<'a> {
    /// The point.
    pub point: &'a [f32],
    /// The feasible set of its counterfactual.
    pub set: &'a FeasibleSet,
    /// Which points of the set are answers.
    pub domain: Domain,
}

/// Which points of a feasible set are answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Every point, as in the paper's experiments.
    Relaxed,
    /// Only the points of rows: whole one-hot groups, whole steps.
    Encodable,
}

impl<'a> Factual<'a> {
    /// A factual whose answers are rows, if the set has rows.
    pub fn new(point: &'a [f32], set: &'a FeasibleSet) -> Self {
        let domain = if set.is_relaxed() { Domain::Relaxed } else { Domain::Encodable };
        Self { point, set, domain }
    }

    /// The cost of a point.
    pub fn cost(&self, norm: Norm, point: &[f32]) -> f64 {
        norm.priced(point, self.point, self.set.prices())
    }

    /// The same, with every point of the set an answer, for intermediate steps.
    pub(crate) fn relaxed(self) -> Self {
        Self { domain: Domain::Relaxed, ..self }
    }
}

/// A method, prepared for a problem.
pub trait Method: Send + Sync {
    /// Answers one factual.
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer>;
}

/// Answers many factuals, in their order. The result does not depend on the number of threads.
///
/// `watch` is called for every answer and every evaluation. After a `Break` all unfinished factuals
/// are answered with [`Reason::Cancelled`].
pub fn find_all(
    problem: &Problem,
    method: &dyn Method,
    factuals: &[Factual],
    budget: Budget,
    watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
) -> Result<Vec<Outcome>> {
    let found = find_each(problem, method, factuals, budget, Path::default, watch)?;
    Ok(found.into_iter().map(|(outcome, _)| outcome).collect())
}

/// Answers one factual, and returns the path of the method: its points from the factual to the
/// answer, or to the last point of the search. The answer is the same as without the path.
pub(crate) fn find_path(
    problem: &Problem,
    method: &dyn Method,
    factual: &Factual,
    budget: Budget,
    watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
) -> Result<(Outcome, Points)> {
    let factuals = std::slice::from_ref(factual);
    let mut found = find_each(problem, method, factuals, budget, Path::kept, watch)?;
    let Some((outcome, mut path)) = found.pop() else {
        return Err(Error::Cancelled("the factual was not answered".to_owned()));
    };
    if let Some(found) = outcome.found() {
        path.step(&found.point);
    }
    let mut points = Points::new(factual.point.len());
    path.into_points().iter().for_each(|point| points.push(point));
    Ok((outcome, points))
}

fn find_each(
    problem: &Problem,
    method: &dyn Method,
    factuals: &[Factual],
    budget: Budget,
    path: impl Fn() -> Path + Sync,
    watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
) -> Result<Vec<(Outcome, Path)>> {
    budget.check()?;
    let dim = problem.model.dim();
    if let Some(other) =
        factuals.iter().find(|factual| factual.point.len() != dim || factual.set.dim() != dim)
    {
        return Err(Error::Dimension {
            what: "coordinates of a factual and its feasible set".into(),
            expected: dim,
            got: if other.point.len() == dim { other.set.dim() } else { other.point.len() },
        });
    }
    if let Some(index) =
        factuals.iter().position(|factual| !factual.point.iter().all(|x| x.is_finite()))
    {
        return Err(Error::param("factual", format!("number {index}"), "finite coordinates"));
    }
    let mut points = Points::new(dim);
    for factual in factuals {
        points.push(factual.point);
    }
    let scores = problem.model.score(&points);
    let cancelled = AtomicBool::new(false);
    let watch = |tick: Tick| {
        if cancelled.load(Ordering::Relaxed) || watch(tick).is_break() {
            cancelled.store(true, Ordering::Relaxed);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    factuals
        .par_iter()
        .zip(&scores)
        .with_max_len(1)
        .map(|(factual, &score)| {
            let started = Instant::now();
            let mut meter = Meter::watched(budget, path(), &watch);
            meter.path.step(factual.point);
            let not_found = |reason| Answer::NotFound { best: None, reason };
            let answer = if cancelled.load(Ordering::Relaxed) {
                not_found(Reason::Cancelled)
            } else if score >= crate::model::THRESHOLD {
                not_found(Reason::AlreadyFavourable)
            } else {
                match method.find(factual, &mut meter)? {
                    // A cancelled search may differ from a complete one, so its result is dropped.
                    _ if meter.is_cancelled() => not_found(Reason::Cancelled),
                    answer => match problem.plausible {
                        Some(plausible) => plausible.judged(answer),
                        None => answer,
                    },
                }
            };
            // The next factual handles a `Break`.
            let _ = watch(Tick::Answered);
            let seconds = started.elapsed().as_secs_f64();
            Ok((Outcome { answer, effort: meter.effort(), seconds }, meter.path))
        })
        .collect()
}
