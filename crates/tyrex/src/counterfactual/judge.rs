//! The robustness test: a measure at its threshold, on draws that the search did not use.

use serde::{Deserialize, Serialize};

use super::field::Reader;
use super::plausible::OF_PROBABILITIES;
use super::search::cells::{Care, Cells, Density};
use super::search::settle::{Finish, settle};
use super::search::{Candidate, Test};
use super::{Factual, Meter, Norm, Problem, Protocol, Reason};
use crate::counterfactual::field::Field;
use crate::error::{Error, Result};
use crate::measure::{Gauge, Measure, Neighbourhood, RelaxedStability, Sampling};
use crate::model::Model;
use crate::seed::Seed;

/// The condition for a robust counterfactual: `measure >= tau` over `samples` neighbours of width
/// `sigma`, drawn by plain Monte Carlo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Robustness {
    /// The measure; the paper's is the relaxed stability `R^`.
    pub measure: Measure,
    /// The threshold `tau`.
    pub tau: f64,
    /// `k`, in the final test.
    pub samples: usize,
    /// `sigma`, in encoded columns.
    pub sigma: f64,
    /// How the search draws its own neighbours.
    pub search: SearchNeighbours,
}

/// The neighbours that a search uses.
///
/// Sobol points are turned towards where the network is most sensitive. They exist for at most 256
/// coordinates; above that, orthogonal draws are used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SearchNeighbours {
    /// How they are drawn.
    pub sampling: Sampling,
    /// How many.
    pub samples: usize,
}

impl Default for SearchNeighbours {
    fn default() -> Self {
        // More accurate than 1000 Monte Carlo samples on every network that was tested.
        Self { sampling: Sampling::Sobol, samples: 256 }
    }
}

impl Default for Robustness {
    fn default() -> Self {
        Self {
            measure: Measure::RelaxedStability(RelaxedStability {}),
            tau: 0.8,
            samples: 1000,
            sigma: 0.1,
            search: SearchNeighbours::default(),
        }
    }
}

impl Robustness {
    /// As in the paper: the search draws in the same way as the test.
    pub fn paper() -> Self {
        let search = SearchNeighbours { sampling: Sampling::MonteCarlo, samples: 1000 };
        Self { search, ..Self::default() }
    }

    /// With a protocol's parameters.
    pub(super) fn under(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Product => Self::default(),
            Protocol::Paper => Self::paper(),
            Protocol::Reference => Self { tau: 0.75, sigma: 0.05, ..Self::paper() },
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(self.tau > 0.0 && self.tau < 1.0) {
            return Err(Error::param("tau", self.tau, "a number between 0 and 1"));
        }
        Neighbourhood::check(self.samples, self.sigma)
    }

    /// The neighbourhood of the final test; each attempt has its own.
    fn fresh(&self, dim: usize, seed: Seed) -> Result<Neighbourhood> {
        Neighbourhood::draw(Sampling::MonteCarlo, dim, self.samples, self.sigma, seed)
    }
}

/// The maximum number of attempts.
const ATTEMPTS: usize = 4;

/// A test, prepared for one model.
pub(crate) struct Judge<'a> {
    tau: f64,
    search: Gauge<'a>,
    /// A part of the neighbours of the search, to find about where an answer lies.
    part: Gauge<'a>,
    fresh: Vec<Gauge<'a>>,
    sigma: f64,
    problem: Problem<'a>,
}

/// The neighbours of that part.
const PART: usize = 32;

/// The result of the test.
pub(crate) enum Judged {
    Passed(Candidate),
    Failed(Option<Candidate>, Reason),
}

impl<'a> Judge<'a> {
    pub(crate) fn new(robustness: &Robustness, problem: &Problem<'a>, seed: Seed) -> Result<Self> {
        robustness.check()?;
        let model = problem.model;
        let (dim, sigma) = (model.dim(), robustness.sigma);
        let SearchNeighbours { sampling, samples } = robustness.search;
        let sampling = sampling.for_coordinates(dim);
        let cloud =
            Neighbourhood::for_model(sampling, model, samples, sigma, seed.derive("search"))?;
        let search = Gauge::new(robustness.measure, model, &cloud)?;
        let first: Vec<usize> = (0..cloud.samples().min(PART)).collect();
        let part = Neighbourhood::given(cloud.offsets().select(&first))?;
        let part = Gauge::new(robustness.measure, model, &part)?;
        let fresh = (0..ATTEMPTS)
            .map(|attempt| {
                let cloud = robustness.fresh(dim, seed.derive("test").index(attempt))?;
                Gauge::new(robustness.measure, model, &cloud)
            })
            .collect::<Result<_>>()?;
        Ok(Self { tau: robustness.tau, search, part, fresh, sigma, problem: *problem })
    }

    /// The gauge of the final test, for points that no search has found.
    pub(crate) fn test(
        robustness: &Robustness,
        model: &'a dyn Model,
        seed: Seed,
    ) -> Result<Gauge<'a>> {
        robustness.check()?;
        let cloud = robustness.fresh(model.dim(), seed.derive("test").index(0))?;
        Gauge::new(robustness.measure, model, &cloud)
    }

    /// Searches, settles, and tests on draws that neither step has used. If the test fails, the
    /// search continues from there with a higher target.
    pub(crate) fn judge(
        &self,
        factual: &Factual,
        norm: Norm,
        start: &[f32],
        meter: &mut Meter,
        search: impl FnMut(&mut dyn Field, Test, &[f32], &mut Meter) -> Result<Option<Candidate>>,
    ) -> Result<Judged> {
        let mut field = self.problem.usual(Reader::new(&self.search), OF_PROBABILITIES);
        self.judge_by(&mut field, factual, norm, start, meter, search)
    }

    /// The same by a search over cells, whose answers are settled.
    ///
    /// A search with few neighbours finds about where the answer lies; from there it continues with
    /// all of them. Further starts are tried at the first attempt.
    pub(crate) fn judge_cells(
        &self,
        factual: &Factual,
        norm: Norm,
        (cells, steps, care): (&Cells, usize, Care),
        starts: &[&[f32]],
        meter: &mut Meter,
    ) -> Result<Judged> {
        let search = cells.search(factual, norm, steps, Density::of_neighbours(self.sigma));
        let with_routes = |gauge| {
            let field = Reader::with_routes(gauge, cells.routes());
            self.problem.usual(field, OF_PROBABILITIES)
        };
        let (mut part, mut all) = (with_routes(&self.part), with_routes(&self.search));
        let Some((first, others)) = starts.split_first() else {
            return Ok(Judged::Failed(None, gave_up(meter)));
        };
        let mut others = others.to_vec();
        self.judge_by(&mut all, factual, norm, first, meter, |field, test, start, meter| {
            let mut starts = vec![start];
            starts.extend(std::mem::take(&mut others));
            let near = search.cheapest(&mut part, test, &starts, care, meter);
            let near = near.as_ref().map_or(start, |near| &near.point);
            // A start that passes with all neighbours is not given up.
            Ok(search.cheapest(field, test, &[near, start], Care::Single, meter))
        })
    }

    fn judge_by(
        &self,
        reader: &mut dyn Field,
        factual: &Factual,
        norm: Norm,
        start: &[f32],
        meter: &mut Meter,
        mut search: impl FnMut(&mut dyn Field, Test, &[f32], &mut Meter) -> Result<Option<Candidate>>,
    ) -> Result<Judged> {
        let mut start = start.to_vec();
        let mut aim = Test { threshold: self.tau };
        let mut best = None;
        for fresh in &self.fresh {
            reader.aim_at(aim.threshold);
            let Some(candidate) = search(reader, aim, &start, meter)? else { break };
            if !aim.passes(candidate.reading) {
                return Ok(Judged::Failed(Some(candidate), gave_up(meter)));
            }
            let found = candidate.clone();
            let Some(settled) = settle(reader, factual, norm, aim, candidate, Finish::Trim, meter)?
            else {
                let reason =
                    if meter.is_spent() { Reason::BudgetSpent } else { Reason::NoActionableRow };
                return Ok(Judged::Failed(Some(found), reason));
            };
            let Some(reading) = meter.read(&mut Reader::new(fresh), &settled.point) else { break };
            if (Test { threshold: self.tau }).passes(reading) {
                return Ok(Judged::Passed(Candidate { reading, ..settled }));
            }
            aim = aim.raised(self.tau, reading.value);
            start.clone_from(&settled.point);
            best = Some(Candidate { reading, ..settled });
        }
        Ok(Judged::Failed(best, gave_up(meter)))
    }
}

/// The reason why a search ended below its threshold.
pub(crate) fn gave_up(meter: &Meter) -> Reason {
    if meter.is_spent() { Reason::BudgetSpent } else { Reason::Stuck }
}
