//! `trex-e`: the cheapest point that retrained models accept.
//!
//! `min ||x' - x||  subject to  m(x') >= 0.5,  tail_a(z_1(x') .. z_S(x')) >= c`
//!
//! with `m` the model in use, `z_s` the logits of `S` search models, `tail_a` a smooth lower bound
//! of the mean of the lowest share `a` of them ([`Tail`]) and `c` the margin. It asks for the promise itself,
//! acceptance by the next model, where `trex-o` asks for the stability of one model.
//!
//! The answer is fitted to the search models, so other models accept it less often. Tuning models
//! choose the margin: with `u` and `v` the mean and the standard deviation of their logits at the
//! answer, the share `Phi(u / v)` of models of a normal distribution accept it. While that is below
//! the aim `q`, the margin is raised by half of `v Phi^-1(q) - u`, which the logits are short of,
//! and the search continues from the answer. A margin that no point reaches is lowered by halving.
//! It may fall below `c` by the most that smoothing takes from the tail, so that no point is excluded
//! which all models accept.
//!
//! Search and tuning models must come from the change that is promised for, and no certificate may
//! rest on them.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::counterfactual::field::Field;
use crate::counterfactual::plausible::{OF_LOGITS, Usual};
use crate::counterfactual::search::cells::{Care, CellSearch, Cells, Density};
use crate::counterfactual::search::{Candidate, Test, min_cost};
use crate::counterfactual::tail::{self, Active, ActiveTail, Tail, TailShape};
use crate::counterfactual::{
    Answer, Counterfactual, Domain, Factual, Meter, Method, Problem, Reason, SearchModels,
};
use crate::error::{Error, Result};
use crate::model::{Committee, THRESHOLD};
use crate::neighbourhood::normal;
use crate::points::Points;
use crate::seed::Seed;

use super::{Finish, MethodSpec, Named, Protocol, ReferenceUse, Spec, conclude, converged, found};

/// Parameters of `trex-e`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, default)]
pub struct TrexE {
    /// The share `a` of search models in the tail.
    pub tail: f64,
    /// The least tail `c`, as a logit; the first one, if tuning models raise it.
    pub margin: f64,
    /// The share `q` of models that should accept an answer, by the tuning models.
    pub aim: f64,
    /// The most steps from each start.
    pub steps: usize,
}

impl Default for TrexE {
    fn default() -> Self {
        Self { tail: 0.1, margin: 0.0, aim: 0.98, steps: 100 }
    }
}

/// The temperature of the tail, as a share of the spread of the logits.
const SMOOTHING: f64 = 0.1;
/// The data points whose spread is measured.
const SPREAD_POINTS: usize = 200;
/// The most margins that are tried.
const MARGINS: usize = 10;
/// The share of the missing logit by which the margin is raised: on networks that fit their rows
/// closely, the spread of the logits rises with the margin.
const DAMPING: f64 = 0.5;
/// Margins that are nearer to each other have the same answers.
const LEAST_GAP: f64 = 0.05;
/// The least increase of the margin, as a share of the standard deviation of the logits.
const LEAST_RAISE: f64 = 0.1;
/// The most data points that are tried as an answer, nearest first.
const DATA_POINTS: usize = 400;
/// The most data points that are tried as a start, nearest first.
const STARTS: usize = 40;
/// The margin of a step above the threshold, as a logit.
const STEP_MARGIN: f64 = 1e-3;

impl Spec for TrexE {
    fn title(&self) -> &'static str {
        "T-Rex:E"
    }

    fn sentence(&self) -> &'static str {
        "The cheapest change that retrained models accept."
    }

    fn under(&self, _: Protocol) -> MethodSpec {
        Self::default().into()
    }

    fn reference(&self) -> ReferenceUse {
        ReferenceUse::Optional
    }

    fn needs_models(&self) -> bool {
        true
    }

    fn prepare<'a>(&self, problem: &Problem<'a>, _: Seed) -> Result<Box<dyn Method + 'a>> {
        if self.steps == 0 {
            return Err(Error::param("steps", 0, "at least 1"));
        }
        if !(self.tail > 0.0 && self.tail <= 1.0) {
            return Err(Error::param("tail", self.tail, "a number above 0 and at most 1"));
        }
        if !self.margin.is_finite() {
            return Err(Error::param("margin", self.margin, "a finite logit"));
        }
        if !(self.aim > 0.0 && self.aim < 1.0) {
            return Err(Error::param("aim", self.aim, "a number between 0 and 1"));
        }
        let Some(SearchModels { search: committee, tune }) = problem.search_models else {
            return Err(Error::param(
                "method",
                Self::NAME,
                "a model that can be retrained, or retrained models to search over; the other \
                 methods search with one model",
            ));
        };
        let cells = Cells::of(committee.models().iter().map(|model| &**model))?;
        let first: Vec<usize> = (0..problem.data.len().min(SPREAD_POINTS)).collect();
        let spread = spread(&committee.logits_of(&problem.data.select(&first)));
        let shape = TailShape { share: self.tail, temperature: SMOOTHING * spread };
        Ok(Box::new(Prepared {
            problem: *problem,
            committee,
            cells,
            tune: tune.as_ref(),
            spec: self.clone(),
            search: min_cost::MinCost {
                norm: problem.norm,
                steps: self.steps,
                margin: STEP_MARGIN,
                precision: min_cost::Precision::COARSE,
            },
            shape,
            least: self.margin - if tune.is_some() { shape.gap() } else { 0.0 },
            values: DataValues::new(committee, shape, problem.data),
        }))
    }
}

struct Prepared<'a> {
    problem: Problem<'a>,
    committee: &'a Committee,
    /// The cells of trees, if some of the models are trees.
    cells: Option<Cells>,
    tune: Option<&'a Committee>,
    spec: TrexE,
    search: min_cost::MinCost,
    shape: TailShape,
    /// The least margin.
    least: f64,
    values: DataValues<'a>,
}

/// The field at the data points that the model in use accepts; the others cannot pass. It is
/// computed when it is read, since most searches look at few of the points.
struct DataValues<'a> {
    committee: &'a Committee,
    shape: TailShape,
    data: &'a Points,
    /// Data points that the model in use accepts.
    accepted: OnceLock<Vec<usize>>,
    values: Vec<OnceLock<f64>>,
}

/// Data points whose field is computed together: the weights of all models are read once for them.
const TOGETHER: usize = 16;

impl<'a> DataValues<'a> {
    fn new(committee: &'a Committee, shape: TailShape, data: &'a Points) -> Self {
        let values = (0..data.len()).map(|_| OnceLock::new()).collect();
        Self { committee, shape, data, accepted: OnceLock::new(), values }
    }

    /// The data points that may have a value of at least a threshold: the model in use accepts
    /// them, and no lower value is known.
    fn candidates(&self, threshold: f64) -> impl Iterator<Item = usize> {
        // Computed outside of the lock, so that no thread waits for another: they get the same.
        let accepted = match self.accepted.get() {
            Some(accepted) => accepted,
            None => {
                let scores = self.committee.models()[0].score(self.data);
                let all = 0..self.data.len();
                let accepted = all.filter(|&index| scores[index] >= THRESHOLD).collect();
                self.accepted.get_or_init(|| accepted)
            }
        };
        let may_reach = move |value: Option<&f64>| value.is_none_or(|value| *value >= threshold);
        accepted.iter().copied().filter(move |&index| may_reach(self.values[index].get()))
    }

    /// Those of the data points with a value of at least a threshold, in their order.
    fn reaching(
        &self,
        indices: impl Iterator<Item = usize>,
        threshold: f64,
    ) -> impl Iterator<Item = usize> {
        let mut indices = indices.peekable();
        let chunks = std::iter::from_fn(move || {
            indices.peek()?;
            let chunk: Vec<usize> = indices.by_ref().take(TOGETHER).collect();
            self.read(&chunk);
            Some(chunk)
        });
        let value = |index: usize| self.values[index].get().copied();
        chunks.flatten().filter(move |&index| value(index).is_some_and(|v| v >= threshold))
    }

    /// Computes the values that are not known.
    fn read(&self, indices: &[usize]) {
        let unknown = |&index: &usize| self.values[index].get().is_none();
        let unknown: Vec<usize> = indices.iter().copied().filter(unknown).collect();
        if unknown.is_empty() {
            return;
        }
        let points = self.data.select(&unknown);
        let readings = tail::readings(self.committee, self.shape, &points);
        for (index, reading) in unknown.into_iter().zip(readings) {
            self.values[index].get_or_init(|| reading.value);
        }
    }
}

/// The mean over data points of the standard deviation of the search models' logits; 1 without
/// data points.
fn spread(logits: &[Vec<f32>]) -> f64 {
    let points = logits[0].len();
    let deviation = |index: usize| {
        let of_models = logits[1..].iter().map(|of_model| f64::from(of_model[index]));
        let count = of_models.len() as f64;
        let mean = of_models.clone().sum::<f64>() / count;
        (of_models.map(|z| (z - mean).powi(2)).sum::<f64>() / count).sqrt()
    };
    let mean = (0..points).map(deviation).sum::<f64>() / points as f64;
    if mean.is_finite() && mean > 0.0 { mean } else { 1.0 }
}

impl Method for Prepared<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let routes = self.cells.as_ref().and_then(Cells::all_routes);
        let field = Tail::new(self.committee, self.shape).with_routes(routes.as_deref());
        let mut field = self.problem.usual(field, OF_LOGITS);
        let (norm, steps) = (self.problem.norm, self.spec.steps);
        let cells = self.cells.as_ref();
        let cells = cells.map(|cells| cells.search(factual, norm, steps, Density::MODELS));
        let ground = &mut Ground { factual, cells, active: Active::default() };
        let (mut start, mut margin) = self.rough_margin(&mut field, ground, meter)?;
        // The margins between which the answer lies: one that the tuning models find too low, with
        // its answer, and one that no point reaches.
        let (mut low, mut high) = (self.least, f64::INFINITY);
        let (mut short_of, mut out_of_reach): (Option<Counterfactual>, _) = (None, None);
        for _ in 0..MARGINS {
            let test = Test { threshold: margin };
            match self.cheapest(&mut field, ground, test, &start, meter)? {
                Answer::Found { counterfactual, stopped } => {
                    let Some(raise) = self.raise(&counterfactual.point, meter) else {
                        return Ok(Answer::Found { counterfactual, stopped });
                    };
                    low = margin;
                    margin += DAMPING * raise;
                    start.clone_from(&counterfactual.point);
                    short_of = Some(counterfactual);
                }
                answer @ Answer::NotFound { .. } if meter.is_spent() => return Ok(answer),
                answer @ Answer::NotFound { .. } => {
                    high = margin;
                    out_of_reach = Some(answer);
                }
            }
            if margin >= high {
                margin = 0.5 * (low + high);
            }
            if high - low < LEAST_GAP {
                break;
            }
        }
        if let Some(counterfactual) = short_of.take_if(|best| self.is_accepted(&best.point, meter))
        {
            return Ok(Answer::Found { counterfactual, stopped: converged(meter) });
        }
        if let Some(found) = self.data_answer(&mut field, ground, meter)? {
            return Ok(found);
        }
        Ok(match (short_of, out_of_reach) {
            // No point reaches any margin.
            (None, Some(answer)) => answer,
            (best, _) => Answer::NotFound { best, reason: Reason::PromiseOutOfReach },
        })
    }
}

/// The factual, with its cells if some of the models are trees.
struct Ground<'a> {
    factual: &'a Factual<'a>,
    cells: Option<CellSearch<'a>>,
    /// The models of the steps, where every point is an answer.
    active: Active,
}

impl Prepared<'_> {
    /// The cheapest point from a start that passes, or the best that does not.
    fn search(
        &self,
        field: &mut Usual<'_, Tail<'_>>,
        Ground { factual, cells, active }: &mut Ground<'_>,
        test: Test,
        start: &[f32],
        (precision, care): (min_cost::Precision, Care),
        meter: &mut Meter,
    ) -> Result<Option<Candidate>> {
        if let Some(cells) = cells {
            return Ok(cells.cheapest(field, test, &[start], care, meter));
        }
        let search = min_cost::MinCost { precision, ..self.search };
        // Rounding decides most of what a row costs, and reads all models at every change.
        match field.alone().filter(|_| matches!(factual.domain, Domain::Relaxed)) {
            Some(tail) => steps(search, tail, (*factual, active), test, start, meter),
            None => search.search(field, factual, test, start, meter),
        }
    }

    /// About the margin that the tuning models require, and a point there, by rough searches.
    fn rough_margin(
        &self,
        field: &mut Usual<'_, Tail<'_>>,
        ground: &mut Ground<'_>,
        meter: &mut Meter,
    ) -> Result<(Vec<f32>, f64)> {
        let (mut start, mut margin) = (ground.factual.point.to_vec(), self.spec.margin);
        let rough = (min_cost::Precision::ROUGH, Care::Single);
        let mut next = margin;
        for _ in 0..MARGINS {
            let test = Test { threshold: next };
            let reached = self.search(field, ground, test, &start, rough, meter)?;
            let Some(reached) = reached.filter(|reached| test.passes(reached.reading)) else {
                break;
            };
            (start, margin) = (reached.point, next);
            let Some(raise) = self.raise(&start, meter) else { break };
            next += DAMPING * raise;
        }
        Ok((start, margin))
    }

    /// The cheapest answer above a margin.
    fn cheapest(
        &self,
        field: &mut Usual<'_, Tail<'_>>,
        ground: &mut Ground<'_>,
        test: Test,
        start: &[f32],
        meter: &mut Meter,
    ) -> Result<Answer> {
        let Ground { factual, .. } = *ground;
        let norm = self.problem.norm;
        let fine = (self.search.precision, Care::Full);
        let cost = |candidate: &Candidate| factual.cost(norm, &candidate.point);
        let passes = |candidate: &Candidate| test.passes(candidate.reading);
        let origin = meter.path.mark();
        let mut best = self.search(field, ground, test, start, fine, meter)?;
        let reached = best.as_ref().filter(|best| passes(best)).map_or(f64::INFINITY, cost);
        // A slope may lead away from the cheapest point, or end below the margin.
        if let Some(start) = self.nearest(field, factual, test, reached, meter) {
            let first = meter.path.cut(origin);
            let again = self.search(field, ground, test, &start, fine, meter)?;
            let again = again.filter(|found| passes(found) && cost(found) < reached);
            if again.is_none() {
                meter.path.cut(origin);
                meter.path.follow(&first);
            }
            best = again.or(best);
        }
        conclude(&self.problem, factual, field, test, best, Finish::Trim, meter)
    }

    /// The nearest data point that passes in the feasible set and costs less than `most`.
    fn nearest(
        &self,
        field: &mut dyn Field,
        factual: &Factual,
        test: Test,
        most: f64,
        meter: &mut Meter,
    ) -> Option<Vec<f32>> {
        let (norm, data) = (self.problem.norm, self.problem.data);
        let mut near = Vec::new();
        let mut point = Vec::with_capacity(data.dim());
        for index in self.values.candidates(test.threshold) {
            point.clear();
            point.extend_from_slice(data.row(index));
            factual.set.project(&mut point);
            let cost = factual.cost(norm, &point);
            if cost < most {
                near.push((cost, index));
            }
        }
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let near = near.into_iter().map(|(_, index)| index);
        let mut starts = self.values.reaching(near, test.threshold).take(STARTS);
        loop {
            let chunk: Vec<usize> = starts.by_ref().take(field.together()).collect();
            if chunk.is_empty() {
                return None;
            }
            let mut points = data.select(&chunk);
            (0..chunk.len()).for_each(|at| factual.set.project(points.row_mut(at)));
            let readings = meter.read_all(field, &points);
            if let Some(at) = readings.iter().position(|&reading| test.passes(reading)) {
                return Some(points.row(at).to_vec());
            }
        }
    }

    /// The nearest data point that enough of the search and tuning models accept, moved into the
    /// feasible set and then as close to the factual as its own tail allows.
    fn data_answer(
        &self,
        field: &mut Usual<'_, Tail<'_>>,
        ground: &mut Ground<'_>,
        meter: &mut Meter,
    ) -> Result<Option<Answer>> {
        let Ground { factual, .. } = *ground;
        let (norm, data) = (self.problem.norm, self.problem.data);
        let cost = |index: usize| (factual.cost(norm, data.row(index)), index);
        let mut near: Vec<(f64, usize)> = self.values.candidates(self.least).map(cost).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let near = near.into_iter().map(|(_, index)| index);
        let passing = self.values.reaching(near, self.least);
        let feasible = |index: usize| match factual.domain {
            Domain::Relaxed => {
                let mut point = data.row(index).to_vec();
                factual.set.project(&mut point);
                Some((None, point))
            }
            Domain::Encodable => {
                factual.set.settle(data.row(index)).map(|(row, point)| (Some(row), point))
            }
        };
        let mut answers = passing.take(DATA_POINTS).filter_map(feasible);
        let least = Test { threshold: self.least };
        loop {
            let mut points = Points::new(data.dim());
            let mut rows = Vec::new();
            for (row, point) in answers.by_ref().take(field.together()) {
                rows.push(row);
                points.push(&point);
            }
            if rows.is_empty() || meter.is_spent() {
                return Ok(None);
            }
            field.aim_at(least.threshold);
            let readings = meter.read_all(field, &points);
            let mut read = rows.into_iter().zip(points.rows()).zip(readings);
            let accepted = read.find(|((_, point), reading)| {
                least.passes(*reading) && self.is_accepted(point, meter)
            });
            let Some(((row, point), reading)) = accepted else { continue };
            // Other models accept a point with the same tail about as often.
            let test = Test { threshold: reading.value - STEP_MARGIN };
            if let Answer::Found { counterfactual, stopped } =
                self.cheapest(field, ground, test, point, meter)?
                && self.is_accepted(&counterfactual.point, meter)
            {
                return Ok(Some(Answer::Found { counterfactual, stopped }));
            }
            let candidate = Candidate { point: point.to_vec(), reading, row };
            return Ok(Some(found(&self.problem, factual, candidate, converged(meter))));
        }
    }

    /// Whether the share of search and tuning models that the aim asks for accepts a point. Their
    /// logits may be skewed, and then a normal distribution shows less than their number.
    fn is_accepted(&self, point: &[f32], meter: &mut Meter) -> bool {
        let (mut models, mut rejecting) = (0, 0);
        for (committee, skipped) in [(Some(self.committee), 1), (self.tune, 0)] {
            let Some(committee) = committee else { continue };
            if !meter.take(0, committee.models().len() as u64) {
                return false;
            }
            let mut scratch = committee.scratch();
            let logits = &committee.logits(point, &mut scratch)[skipped..];
            models += logits.len();
            rejecting += logits.iter().filter(|&&z| z < 0.0).count();
        }
        rejecting as f64 <= (1.0 - self.spec.aim) * models as f64
    }

    /// The logit that the tuning models are short of at a point; `None` if enough accept it, if
    /// there are none, and if the budget is spent.
    fn raise(&self, point: &[f32], meter: &mut Meter) -> Option<f64> {
        let tune = self.tune?;
        if !meter.take(0, tune.models().len() as u64) {
            return None;
        }
        let mut scratch = tune.scratch();
        let logits = tune.logits(point, &mut scratch);
        let count = logits.len() as f64;
        let mean = logits.iter().map(|&z| f64::from(z)).sum::<f64>() / count;
        let squares = logits.iter().map(|&z| (f64::from(z) - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        let rejecting = logits.iter().filter(|&&z| z < 0.0).count() as f64;
        let short_of = deviation * normal::quantile(self.spec.aim) - mean;
        let enough = short_of <= 0.0 && rejecting <= ((1.0 - self.spec.aim) * count).ceil();
        (!enough).then(|| short_of.max(LEAST_RAISE * deviation).max(STEP_MARGIN))
    }
}

/// The cheapest point by steps with the models near the tail, until all models agree with the result.
fn steps(
    search: min_cost::MinCost,
    field: &mut Tail<'_>,
    (factual, active): (&Factual, &mut Active),
    test: Test,
    start: &[f32],
    meter: &mut Meter,
) -> Result<Option<Candidate>> {
    let Some(reading) = active.include(field, start, meter) else { return Ok(None) };
    let mut reached = Candidate::new(start.to_vec(), reading);
    loop {
        let count = active.count();
        let mut near = ActiveTail::new(field, active);
        let found = search.search(&mut near, factual, test, &reached.point, meter)?;
        let Some(Candidate { point, reading: by_active, .. }) = found else { break };
        let Some(reading) = active.include(field, &point, meter) else { break };
        reached = Candidate::new(point, reading);
        if test.passes(reading) || !test.passes(by_active) {
            break;
        }
        if active.count() == count {
            active.include_all(field);
        }
    }
    Ok(Some(reached))
}
