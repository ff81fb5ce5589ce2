//! A measure, prepared for one model.

use std::sync::Arc;

use rayon::prelude::*;

use super::formula::Formula;
use super::{Mean, Measure, Reading, RelaxedStability};
use crate::error::{Error, Result};
use crate::model::probe::{Probe, ProbeScratch, Shifts};
use crate::model::{DifferentiableModel, Mlp, Model};
use crate::neighbourhood::Neighbourhood;
use crate::points::Points;

/// A measure, prepared for evaluation at any point of one model.
pub struct Gauge<'a> {
    measure: Measure,
    pub(super) way: Evaluation<'a>,
    model: &'a dyn Model,
    pub(super) neighbourhood: Arc<Neighbourhood>,
    probe: Option<Probe<'a>>,
}

/// A [`Gauge`] without its model: it can be kept when the model's borrow ends.
#[derive(Debug, Clone)]
pub(crate) struct DetachedGauge {
    measure: Measure,
    /// Computed once, since it may hold a bound on the whole model.
    formula: Option<Arc<dyn Formula>>,
    neighbourhood: Arc<Neighbourhood>,
    shifts: Option<Arc<Shifts>>,
}

/// The measures from one scoring of the neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeighbourReadings {
    /// `m(x)`
    pub(crate) score: f32,
    /// The mean score of the neighbours.
    pub(crate) mean: f64,
    /// `R^`
    pub(crate) relaxed_stability: f64,
    /// The gauge's own measure.
    pub(crate) value: f64,
}

/// How a measure is computed.
#[derive(Clone)]
pub(super) enum Evaluation<'a> {
    /// From the score of the point alone.
    Point,
    /// From the scores on the way to the point.
    Path { steps: usize },
    /// From the scores of the point and its neighbours.
    Scores(Arc<dyn Formula>),
    /// From their gradients too.
    Gradients(&'a Mlp),
}

/// The scratch space of one thread to evaluate a [`Gauge`], reused at every point.
pub struct GaugeScratch {
    probe: Option<ProbeScratch>,
    scores: Vec<f32>,
    /// The derivative of the measure with respect to each neighbour's score.
    weights: Vec<f32>,
}

impl<'a> Gauge<'a> {
    /// Prepares a measure for a model.
    pub fn new(
        measure: impl Into<Measure>,
        model: &'a dyn Model,
        neighbourhood: &Neighbourhood,
    ) -> Result<Self> {
        let measure = measure.into();
        let way = measure.kind().way(model)?;
        if neighbourhood.offsets().dim() != model.dim() {
            return Err(Error::Dimension {
                what: "coordinates of a neighbourhood".into(),
                expected: model.dim(),
                got: neighbourhood.offsets().dim(),
            });
        }
        // A network without a hidden layer needs no preparation.
        let probe =
            model.network().and_then(|network| Probe::new(network, neighbourhood.offsets()).ok());
        let neighbourhood = Arc::new(neighbourhood.clone());
        Ok(Self { measure, way, model, neighbourhood, probe })
    }

    /// The gauge without its model.
    pub(crate) fn detached(&self) -> DetachedGauge {
        let formula = match &self.way {
            Evaluation::Scores(formula) => Some(Arc::clone(formula)),
            _ => None,
        };
        DetachedGauge {
            measure: self.measure,
            formula,
            neighbourhood: Arc::clone(&self.neighbourhood),
            shifts: self.probe.as_ref().map(Probe::shifts),
        }
    }

    /// The measure.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// The number of points that one evaluation scores.
    pub(crate) fn evaluations(&self) -> u64 {
        match self.way {
            Evaluation::Point => 1,
            Evaluation::Path { steps } => steps as u64,
            Evaluation::Scores(_) | Evaluation::Gradients(_) => {
                self.neighbourhood.samples() as u64 + 1
            }
        }
    }

    /// The neighbours.
    pub(crate) fn neighbourhood(&self) -> &Neighbourhood {
        &self.neighbourhood
    }

    /// Scratch space for one thread.
    pub fn room(&self) -> GaugeScratch {
        GaugeScratch {
            probe: self.probe.as_ref().map(Probe::room),
            scores: vec![0.0; self.neighbourhood.samples()],
            weights: vec![0.0; self.neighbourhood.samples()],
        }
    }

    /// Evaluates the measure at every point.
    ///
    /// # Panics
    /// If the points are of another dimension than the model.
    pub fn read(&self, points: &Points) -> Vec<Reading> {
        assert_eq!(points.dim(), self.model.dim(), "the dimension of the points");
        (0..points.len())
            .into_par_iter()
            .map_init(|| self.room(), |room, index| self.read_in(room, points.row(index)))
            .collect()
    }

    /// Evaluates the measure at every point, with its gradient with respect to the point.
    ///
    /// # Panics
    /// If the points are of another dimension than the model.
    pub fn read_with_gradient(&self, points: &Points) -> Result<(Vec<Reading>, Points)> {
        assert_eq!(points.dim(), self.model.dim(), "the dimension of the points");
        let dim = points.dim();
        let mut gradients = Points::zeros(points.len(), dim);
        let readings = gradients
            .as_mut_slice()
            .par_chunks_mut(dim)
            .enumerate()
            .map_init(
                || self.room(),
                |room, (index, gradient)| {
                    self.read_with_gradient_in(room, points.row(index), gradient)
                },
            )
            .collect::<Result<_>>()?;
        Ok((readings, gradients))
    }

    /// Evaluates the measure at one point, on this thread.
    ///
    /// # Panics
    /// If the point is of another dimension than the model, or the scratch space belongs to another
    /// gauge.
    pub(crate) fn read_in(&self, room: &mut GaugeScratch, x: &[f32]) -> Reading {
        match &self.way {
            Evaluation::Point => {
                let score = match (&self.probe, &mut room.probe) {
                    (Some(probe), Some(room)) => probe.score(x, room),
                    _ => self.model.score(&Points::one(x))[0],
                };
                Reading { score, value: f64::from(score) }
            }
            Evaluation::Path { steps } => path_reading(&self.model.score(&path(x, *steps))),
            Evaluation::Scores(formula) => {
                let score = self.scores(x, room);
                let GaugeScratch { scores, weights, .. } = room;
                let weighed = formula.weigh(&self.neighbourhood, score, scores, weights);
                Reading { score, value: weighed.value }
            }
            Evaluation::Gradients(network) => self.gradient_stability(network, x, None),
        }
    }

    /// Evaluates the measure at one point, on this thread, and writes its gradient.
    ///
    /// # Panics
    /// If the point or the gradient is of another dimension than the model, or the scratch space
    /// belongs to another gauge.
    pub fn read_with_gradient_in(
        &self,
        room: &mut GaugeScratch,
        x: &[f32],
        gradient: &mut [f32],
    ) -> Result<Reading> {
        let model = self.differentiable()?;
        if let (Evaluation::Scores(formula), Some(probe), Some(probe_room)) =
            (&self.way, &self.probe, &mut room.probe)
            && let Some((score, value)) = formula.shortcut(probe, x, probe_room, gradient)
        {
            return Ok(Reading { score, value });
        }
        Ok(match (&self.way, &self.probe, &mut room.probe) {
            (Evaluation::Point, Some(probe), Some(room)) => {
                let score = probe.score_with_gradient(x, room, gradient);
                Reading { score, value: f64::from(score) }
            }
            (Evaluation::Point, ..) => {
                let (scores, gradients) = model.score_and_gradient(&Points::one(x));
                gradient.copy_from_slice(gradients.row(0));
                Reading { score: scores[0], value: f64::from(scores[0]) }
            }
            (&Evaluation::Path { steps }, ..) => {
                let mut scores = vec![0.0; steps];
                let mut gradients = Points::zeros(steps, x.len());
                let share = 1.0 / steps as f32;
                // d/dx m(j/s x) = j/s dm(j/s x)
                let cotangents: Vec<f32> =
                    (1..=steps).map(|step| step as f32 * share * share).collect();
                model.vjp_into(&path(x, steps), &cotangents, &mut scores, &mut gradients);
                sum_rows(&gradients, gradient);
                path_reading(&scores)
            }
            (Evaluation::Scores(formula), ..) => {
                let score = self.scores(x, room);
                let GaugeScratch { scores, weights, .. } = room;
                let weighed = formula.weigh(&self.neighbourhood, score, scores, weights);
                self.weighted_gradient(model, x, weighed.of_centre as f32, room, gradient);
                Reading { score, value: weighed.value }
            }
            (Evaluation::Gradients(network), ..) => {
                self.gradient_stability(network, x, Some(gradient))
            }
        })
    }

    /// Evaluates the mean, `R^` and the measure from one scoring of the neighbours.
    ///
    /// # Panics
    /// As [`read_in`](Self::read_in).
    pub(crate) fn read_all_in(&self, room: &mut GaugeScratch, x: &[f32]) -> NeighbourReadings {
        let score = self.scores(x, room);
        let mut weigh = |formula: &dyn Formula| {
            let GaugeScratch { scores, weights, .. } = room;
            formula.weigh(&self.neighbourhood, score, scores, weights).value
        };
        let (mean, relaxed_stability) = (weigh(&Mean {}), weigh(&RelaxedStability {}));
        let value = match &self.way {
            Evaluation::Scores(formula) => weigh(&**formula),
            _ => self.read_in(room, x).value,
        };
        NeighbourReadings { score, mean, relaxed_stability, value }
    }

    fn differentiable(&self) -> Result<&dyn DifferentiableModel> {
        self.model.differentiable().ok_or_else(|| {
            Error::InvalidModel(
                "the gradient of a measure needs gradients of the model, which trees and black \
                 boxes do not have"
                    .into(),
            )
        })
    }

    /// Writes `m(x_i)` to the scratch space's scores and returns `m(x)`.
    fn scores(&self, x: &[f32], room: &mut GaugeScratch) -> f32 {
        if let (Some(probe), Some(probe_room)) = (&self.probe, &mut room.probe) {
            return probe.scores(x, probe_room, &mut room.scores);
        }
        self.model.score_into(&self.neighbourhood.around(x), &mut room.scores);
        self.model.score(&Points::one(x))[0]
    }

    /// `of_centre dm(x) + sum_i c_i dm(x_i)`, with the scratch space's weights as the `c_i`.
    fn weighted_gradient(
        &self,
        model: &dyn DifferentiableModel,
        x: &[f32],
        of_centre: f32,
        room: &mut GaugeScratch,
        gradient: &mut [f32],
    ) {
        if let (Some(probe), Some(probe_room)) = (&self.probe, &mut room.probe) {
            return probe.weighted_gradient(x, of_centre, &room.weights, probe_room, gradient);
        }
        let mut points = self.neighbourhood.around(x);
        points.push(x);
        let cotangents: Vec<f32> = room.weights.iter().copied().chain([of_centre]).collect();
        let mut scores = vec![0.0; points.len()];
        let mut gradients = Points::zeros(points.len(), x.len());
        model.vjp_into(&points, &cotangents, &mut scores, &mut gradients);
        sum_rows(&gradients, gradient);
    }

    /// The stability with the longest gradient for `gamma`, at the point and its neighbours; and
    /// its gradient, if requested: `1/k sum dm(x_i) - width H(x*) g / norm(g)`, with `g` the
    /// longest, found at `x*`.
    fn gradient_stability(
        &self,
        network: &Mlp,
        x: &[f32],
        gradient: Option<&mut [f32]>,
    ) -> Reading {
        let mut points = self.neighbourhood.around(x);
        points.push(x);
        let (scores, gradients) = network.score_and_gradient(&points);
        let count = self.neighbourhood.samples();
        let share = 1.0 / count as f64;
        let mean = scores[..count].iter().map(|&s| f64::from(s)).sum::<f64>() * share;
        let norms = gradients.rows().map(norm).enumerate();
        let (steepest, gamma) =
            norms.fold((0, 0.0), |best, (i, norm)| if norm > best.1 { (i, norm) } else { best });
        let width = self.neighbourhood.mean_distance();
        if let Some(out) = gradient {
            // Where all gradients are zero their norm has its kink; its slope there is 0.
            let inverse = if gamma > 0.0 { 1.0 / gamma } else { 0.0 };
            let longest = gradients.row(steepest);
            let direction: Vec<f64> = longest.iter().map(|&g| f64::from(g) * inverse).collect();
            let of_gamma = network.hessian_vector(points.row(steepest), &direction);
            for (coordinate, (out, of_gamma)) in out.iter_mut().zip(of_gamma).enumerate() {
                let neighbours = gradients.rows().take(count);
                let of_mean = neighbours.map(|g| f64::from(g[coordinate])).sum::<f64>() * share;
                *out = (of_mean - width * of_gamma) as f32;
            }
        }
        Reading { score: scores[count], value: mean - gamma * width }
    }
}

impl DetachedGauge {
    /// The gauge again, for the model it was made for.
    pub(crate) fn attached<'a>(&self, model: &'a dyn Model) -> Result<Gauge<'a>> {
        let probe = match (model.network(), &self.shifts) {
            (Some(network), Some(shifts)) => Some(Probe::with_shifts(network, shifts)),
            _ => None,
        };
        Ok(Gauge {
            measure: self.measure,
            way: match &self.formula {
                Some(formula) => Evaluation::Scores(Arc::clone(formula)),
                None => self.measure.kind().way(model)?,
            },
            model,
            neighbourhood: Arc::clone(&self.neighbourhood),
            probe,
        })
    }

    /// The neighbours.
    pub(crate) fn neighbourhood(&self) -> &Neighbourhood {
        &self.neighbourhood
    }
}

/// From the scores along the path; the last is the point's.
fn path_reading(scores: &[f32]) -> Reading {
    let total: f64 = scores.iter().map(|&score| f64::from(score)).sum();
    Reading { score: scores[scores.len() - 1], value: total / scores.len() as f64 }
}

/// `||g||`
fn norm(g: &[f32]) -> f64 {
    g.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

/// `1/s x, 2/s x, .., x`
fn path(x: &[f32], steps: usize) -> Points {
    let mut points = Points::zeros(steps, x.len());
    for step in 0..steps {
        let factor = (step + 1) as f32 / steps as f32;
        for (value, &coordinate) in points.row_mut(step).iter_mut().zip(x) {
            *value = factor * coordinate;
        }
    }
    points
}

fn sum_rows(rows: &Points, total: &mut [f32]) {
    total.fill(0.0);
    for row in rows.rows() {
        for (total, value) in total.iter_mut().zip(row) {
            *total += value;
        }
    }
}
