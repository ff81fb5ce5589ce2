//! A measure, made ready for one model.

use rayon::prelude::*;

use super::{Gamma, Measure, Neighbourhood, Reading};
use crate::error::{Error, Result};
use crate::model::probe::{Probe, ProbeRoom};
use crate::model::{DifferentiableModel, Model};
use crate::points::Points;

/// A measure, ready to be read at any point of one model.
pub struct Gauge<'a> {
    measure: Measure,
    model: &'a dyn Model,
    neighbourhood: Neighbourhood,
    probe: Option<Probe<'a>>,
}

/// The room one thread needs to read a [`Gauge`], to be used again at every point.
pub struct GaugeRoom {
    probe: Option<ProbeRoom>,
    scores: Vec<f32>,
    /// The derivative of the measure with respect to each neighbour's score.
    weights: Vec<f32>,
}

/// The value of a measure, and its derivative with respect to the centre's score.
struct Weighed {
    value: f64,
    of_centre: f64,
}

impl<'a> Gauge<'a> {
    /// Prepares a measure for a model.
    pub fn new(
        measure: Measure,
        model: &'a dyn Model,
        neighbourhood: &Neighbourhood,
    ) -> Result<Self> {
        match measure {
            Measure::Stability { gamma: Gamma::Given(gamma) }
                if !(gamma >= 0.0 && gamma.is_finite()) =>
            {
                return Err(Error::param("gamma", gamma, "a number of at least 0"));
            }
            Measure::PathIntegral { steps: 0 } => {
                return Err(Error::param("steps", 0, "at least 1"));
            }
            _ => {}
        }
        if neighbourhood.offsets().dim() != model.dim() {
            return Err(Error::Dimension {
                what: "coordinates of a neighbourhood".into(),
                expected: model.dim(),
                got: neighbourhood.offsets().dim(),
            });
        }
        // A network without a hidden layer is cheap as it is.
        let probe =
            model.network().and_then(|network| Probe::new(network, neighbourhood.offsets()).ok());
        Ok(Self { measure, model, neighbourhood: neighbourhood.clone(), probe })
    }

    /// The measure.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// The neighbours.
    #[must_use]
    pub fn neighbourhood(&self) -> &Neighbourhood {
        &self.neighbourhood
    }

    /// Room for one thread.
    #[must_use]
    pub fn room(&self) -> GaugeRoom {
        GaugeRoom {
            probe: self.probe.as_ref().map(Probe::room),
            scores: vec![0.0; self.neighbourhood.samples()],
            weights: vec![0.0; self.neighbourhood.samples()],
        }
    }

    /// Reads the measure at every point.
    ///
    /// # Panics
    /// If the points are of another dimension than the model.
    #[must_use]
    pub fn read(&self, points: &Points) -> Vec<Reading> {
        assert_eq!(points.dim(), self.model.dim(), "the dimension of the points");
        (0..points.len())
            .into_par_iter()
            .map_init(|| self.room(), |room, index| self.read_in(room, points.row(index)))
            .collect()
    }

    /// Reads the measure at every point, with its gradient with respect to the point.
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

    /// Reads the measure at one point, on this thread.
    ///
    /// # Panics
    /// If the point is of another dimension than the model, or the room another gauge's.
    #[must_use]
    pub fn read_in(&self, room: &mut GaugeRoom, x: &[f32]) -> Reading {
        match (self.measure, &self.probe, &mut room.probe) {
            (Measure::Prediction, Some(probe), Some(room)) => {
                let score = probe.score(x, room);
                Reading { score, value: f64::from(score) }
            }
            (Measure::Prediction, ..) => {
                let score = self.model.score(&one(x))[0];
                Reading { score, value: f64::from(score) }
            }
            (Measure::PathIntegral { steps }, ..) => {
                let path = self.model.score(&path(x, steps));
                let total: f64 = path.iter().map(|&score| f64::from(score)).sum();
                Reading { score: path[steps - 1], value: total / steps as f64 }
            }
            _ => {
                let score = self.scores(x, room);
                Reading { score, value: self.weigh(score, room).value }
            }
        }
    }

    /// Reads the measure at one point, on this thread, and writes its gradient.
    ///
    /// # Panics
    /// If the point or the gradient is of another dimension than the model, or the room
    /// another gauge's.
    pub fn read_with_gradient_in(
        &self,
        room: &mut GaugeRoom,
        x: &[f32],
        gradient: &mut [f32],
    ) -> Result<Reading> {
        let model = self.differentiable()?;
        match (self.measure, &self.probe, &mut room.probe) {
            (Measure::Prediction, Some(probe), Some(room)) => {
                let score = probe.score_with_gradient(x, room, gradient);
                Ok(Reading { score, value: f64::from(score) })
            }
            (Measure::Prediction, ..) => {
                let (scores, gradients) = model.score_and_gradient(&one(x));
                gradient.copy_from_slice(gradients.row(0));
                Ok(Reading { score: scores[0], value: f64::from(scores[0]) })
            }
            (Measure::PathIntegral { steps }, ..) => {
                let points = path(x, steps);
                let mut scores = vec![0.0; steps];
                let mut gradients = Points::zeros(steps, x.len());
                let share = 1.0 / steps as f32;
                // d/dx m(j/s x) = j/s dm(j/s x)
                let cotangents: Vec<f32> =
                    (1..=steps).map(|step| step as f32 * share * share).collect();
                model.vjp_into(&points, &cotangents, &mut scores, &mut gradients);
                sum_rows(&gradients, gradient);
                let total: f64 = scores.iter().map(|&score| f64::from(score)).sum();
                Ok(Reading { score: scores[steps - 1], value: total / steps as f64 })
            }
            (Measure::RelaxedStability, Some(probe), Some(room)) => {
                let (score, value) = probe.relaxed_stability(x, room, gradient);
                Ok(Reading { score, value })
            }
            _ => {
                let score = self.scores(x, room);
                let weighed = self.weigh(score, room);
                self.weighted_gradient(model, x, weighed.of_centre as f32, room, gradient);
                Ok(Reading { score, value: weighed.value })
            }
        }
    }

    /// [`Gauge::read_in`] in room of its own.
    ///
    /// # Panics
    /// If the point is of another dimension than the model.
    #[must_use]
    pub fn read_one(&self, x: &[f32]) -> Reading {
        self.read_in(&mut self.room(), x)
    }

    /// [`Gauge::read_with_gradient_in`] in room of its own.
    ///
    /// # Panics
    /// If the point or the gradient is of another dimension than the model.
    pub fn read_one_with_gradient(&self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        self.read_with_gradient_in(&mut self.room(), x, gradient)
    }

    fn differentiable(&self) -> Result<&dyn DifferentiableModel> {
        self.model.differentiable().ok_or_else(|| {
            Error::InvalidModel(
                "this needs gradients, which trees and black boxes do not have; use nn or trex-nn"
                    .into(),
            )
        })
    }

    /// Writes `m(x_i)` to the room's scores and returns `m(x)`.
    fn scores(&self, x: &[f32], room: &mut GaugeRoom) -> f32 {
        if let (Some(probe), Some(probe_room)) = (&self.probe, &mut room.probe) {
            return probe.scores(x, probe_room, &mut room.scores);
        }
        self.model.score_into(&self.neighbourhood.around(x), &mut room.scores);
        self.model.score(&one(x))[0]
    }

    /// `of_centre dm(x) + sum_i c_i dm(x_i)`, with the room's weights as the `c_i`.
    fn weighted_gradient(
        &self,
        model: &dyn DifferentiableModel,
        x: &[f32],
        of_centre: f32,
        room: &mut GaugeRoom,
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

    /// The measure, from the scores alone, and its derivatives with respect to them: the
    /// neighbours' go to the room's weights.
    fn weigh(&self, score: f32, room: &mut GaugeRoom) -> Weighed {
        let GaugeRoom { scores, weights, .. } = room;
        let share = 1.0 / scores.len() as f64;
        let centre = f64::from(score);
        let mean = scores.iter().map(|&s| f64::from(s)).sum::<f64>() * share;
        weights.fill(share as f32);
        match self.measure {
            Measure::Prediction | Measure::PathIntegral { .. } => {
                // Neither looks at neighbours; both are read without this function.
                weights.fill(0.0);
                Weighed { value: centre, of_centre: 1.0 }
            }
            Measure::Mean => Weighed { value: mean, of_centre: 0.0 },
            Measure::RelaxedStability => {
                let (mut shortfall, mut number) = (0.0, 0.0);
                for (weight, &s) in weights.iter_mut().zip(scores.iter()) {
                    if s < score {
                        shortfall += f64::from(score - s);
                        number += 1.0;
                        *weight = 2.0 * share as f32;
                    } else {
                        *weight = 0.0;
                    }
                }
                Weighed {
                    value: centre - 2.0 * shortfall * share,
                    of_centre: 1.0 - 2.0 * number * share,
                }
            }
            Measure::Stability { gamma: Gamma::Given(gamma) } => {
                Weighed { value: mean - gamma * self.neighbourhood.mean_distance(), of_centre: 0.0 }
            }
            Measure::Stability { gamma: Gamma::SampledSlopes } => {
                let slopes = scores.iter().zip(self.neighbourhood.distances());
                let slopes = slopes.map(|(&s, distance)| f64::from((score - s).abs()) / distance);
                let (steepest, gamma) = slopes.enumerate().fold((0, 0.0), |best, (i, slope)| {
                    if slope > best.1 { (i, slope) } else { best }
                });
                let width = self.neighbourhood.mean_distance();
                // The steepest neighbour moves gamma too.
                let pull = width / self.neighbourhood.distances()[steepest];
                let sign = f64::from((score - scores[steepest]).signum());
                weights[steepest] += (pull * sign) as f32;
                Weighed { value: mean - gamma * width, of_centre: -pull * sign }
            }
            Measure::MeanMinusDeviation => {
                let variance =
                    scores.iter().map(|&s| (f64::from(s) - mean).powi(2)).sum::<f64>() * share;
                let deviation = variance.sqrt();
                // Where all neighbours agree the deviation has its kink; its slope there is 0.
                let inverse = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
                for (weight, &s) in weights.iter_mut().zip(scores.iter()) {
                    *weight = (share * (1.0 - (f64::from(s) - mean) * inverse)) as f32;
                }
                Weighed { value: mean - deviation, of_centre: 0.0 }
            }
        }
    }
}

/// One point as a batch.
fn one(x: &[f32]) -> Points {
    let mut points = Points::new(x.len());
    points.push(x);
    points
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
