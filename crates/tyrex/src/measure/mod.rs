//! Measures: how sure is this point, looking at its neighbourhood?
//!
//! With `m_0 = m(x)` and `m_i = m(x_i)` for the neighbours `x_i = x + n_i`:
//!
//! | measure | formula |
//! |---|---|
//! | prediction | `m_0` |
//! | mean | `1/k sum m_i` |
//! | relaxed stability | `1/k sum (m_i - abs(m_0 - m_i)) = m_0 - 2/k sum max(0, m_0 - m_i)` |
//! | stability | `1/k sum (m_i - gamma norm(n_i))` |
//! | mean minus deviation | `mean - sqrt(1/k sum (m_i - mean)^2)` |
//! | path integral | `1/s sum_{j=1..s} m(j/s x)` |
//!
//! The first five are functions of `m_0 .. m_k`, so their gradients are weighted sums of
//! gradients of the model, `c_0 dm(x) + sum c_i dm(x_i)` with `c_i` the derivative of the
//! formula with respect to `m_i`. One piece of code ([`Gauge`]) serves them all.

pub mod neighbourhood;
pub mod normal;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::{DifferentiableModel, Model, Probe};
use crate::points::Points;
pub use neighbourhood::{Neighbourhood, Sampling};

/// Which measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Measure {
    /// `m(x)`: the ablation's first baseline.
    Prediction,
    /// The mean score of the neighbours: the ablation's second baseline.
    Mean,
    /// The paper's `R^`, what T-Rex climbs.
    RelaxedStability,
    /// The paper's `R`, what its theorem speaks of.
    Stability {
        /// The Lipschitz constant in it.
        gamma: Gamma,
    },
    /// The measure of `RobX`.
    MeanMinusDeviation,
    /// What Stable Neighbour Search climbs: the score along the way from the origin.
    PathIntegral {
        /// The number of steps `s`.
        steps: usize,
    },
}

/// The Lipschitz constant in the stability `R`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gamma {
    /// A number.
    Given(f64),
    /// The paper's estimate, `max_i abs(m_0 - m_i) / norm(n_i)`. It is not a bound.
    SampledSlopes,
}

/// What a measure says of one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// `m(x)`
    pub score: f32,
    /// The measure's value.
    pub value: f64,
}

/// A measure, ready to be read at any point of one model.
pub struct Gauge<'a> {
    measure: Measure,
    model: &'a dyn Model,
    neighbourhood: &'a Neighbourhood,
    probe: Option<Probe<'a>>,
}

/// The value of a measure, and its derivative with respect to every score.
struct Weighed {
    value: f64,
    of_centre: f64,
    of_neighbours: Vec<f32>,
}

impl<'a> Gauge<'a> {
    /// Prepares a measure for a model.
    pub fn new(
        measure: Measure,
        model: &'a dyn Model,
        neighbourhood: &'a Neighbourhood,
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
        Ok(Self { measure, model, neighbourhood, probe })
    }

    /// The measure.
    #[must_use]
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Reads the measure at every point.
    ///
    /// # Panics
    /// If the points are of another dimension than the model.
    #[must_use]
    pub fn read(&self, points: &Points) -> Vec<Reading> {
        assert_eq!(points.dim(), self.model.dim(), "the dimension of the points");
        (0..points.len()).into_par_iter().map(|index| self.read_one(points.row(index))).collect()
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
            .map(|(index, gradient)| self.read_one_with_gradient(points.row(index), gradient))
            .collect::<Result<_>>()?;
        Ok((readings, gradients))
    }

    /// Reads the measure at one point.
    fn read_one(&self, x: &[f32]) -> Reading {
        match self.measure {
            Measure::Prediction => {
                let score = self.model.score(&one(x))[0];
                Reading { score, value: f64::from(score) }
            }
            Measure::PathIntegral { steps } => {
                let path = self.model.score(&path(x, steps));
                let total: f64 = path.iter().map(|&score| f64::from(score)).sum();
                Reading { score: path[steps - 1], value: total / steps as f64 }
            }
            _ => {
                let (score, scores) = self.scores(x);
                Reading { score, value: self.weigh(score, &scores).value }
            }
        }
    }

    /// Reads the measure at one point and writes its gradient.
    pub(crate) fn read_one_with_gradient(
        &self,
        x: &[f32],
        gradient: &mut [f32],
    ) -> Result<Reading> {
        let model = self.differentiable()?;
        match (self.measure, &self.probe) {
            (Measure::Prediction, _) => {
                let (scores, gradients) = model.score_and_gradient(&one(x));
                gradient.copy_from_slice(gradients.row(0));
                Ok(Reading { score: scores[0], value: f64::from(scores[0]) })
            }
            (Measure::PathIntegral { steps }, _) => {
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
            (Measure::RelaxedStability, Some(probe)) => {
                let (score, value) = probe.relaxed_stability(x, &mut probe.room(), gradient);
                Ok(Reading { score, value })
            }
            (_, Some(probe)) => {
                let mut room = probe.room();
                let mut scores = vec![0.0; probe.count()];
                let score = probe.scores(x, &mut room, &mut scores);
                let weighed = self.weigh(score, &scores);
                let of_centre = weighed.of_centre as f32;
                probe.weighted_gradient(x, of_centre, &weighed.of_neighbours, &mut room, gradient);
                Ok(Reading { score, value: weighed.value })
            }
            (_, None) => {
                let (score, scores) = self.scores(x);
                let weighed = self.weigh(score, &scores);
                let mut points = self.neighbourhood.around(x);
                points.push(x);
                let mut cotangents = weighed.of_neighbours;
                cotangents.push(weighed.of_centre as f32);
                let mut scores = vec![0.0; points.len()];
                let mut gradients = Points::zeros(points.len(), x.len());
                model.vjp_into(&points, &cotangents, &mut scores, &mut gradients);
                sum_rows(&gradients, gradient);
                Ok(Reading { score, value: weighed.value })
            }
        }
    }

    fn differentiable(&self) -> Result<&dyn DifferentiableModel> {
        self.model.differentiable().ok_or_else(|| {
            Error::InvalidModel(
                "this needs gradients, which trees and black boxes do not have; use nn or trex-nn"
                    .into(),
            )
        })
    }

    /// `m(x)` and `m(x_i)`.
    fn scores(&self, x: &[f32]) -> (f32, Vec<f32>) {
        if let Some(probe) = &self.probe {
            let mut scores = vec![0.0; probe.count()];
            let score = probe.scores(x, &mut probe.room(), &mut scores);
            return (score, scores);
        }
        let score = self.model.score(&one(x))[0];
        (score, self.model.score(&self.neighbourhood.around(x)))
    }

    /// The measure and its derivatives, from the scores alone.
    fn weigh(&self, score: f32, scores: &[f32]) -> Weighed {
        let count = scores.len() as f64;
        let share = 1.0 / count;
        let centre = f64::from(score);
        let mean = scores.iter().map(|&s| f64::from(s)).sum::<f64>() * share;
        let even = || vec![share as f32; scores.len()];
        match self.measure {
            Measure::Prediction | Measure::PathIntegral { .. } => {
                // Neither looks at neighbours; both are read without this function.
                Weighed { value: centre, of_centre: 1.0, of_neighbours: vec![0.0; scores.len()] }
            }
            Measure::Mean => Weighed { value: mean, of_centre: 0.0, of_neighbours: even() },
            Measure::RelaxedStability => {
                let below = |s: &&f32| **s < score;
                let shortfall: f64 =
                    scores.iter().filter(below).map(|&s| f64::from(score - s)).sum();
                let number = scores.iter().filter(below).count() as f64;
                let of_neighbours = scores
                    .iter()
                    .map(|&s| if s < score { 2.0 * share as f32 } else { 0.0 })
                    .collect();
                Weighed {
                    value: centre - 2.0 * shortfall * share,
                    of_centre: 1.0 - 2.0 * number * share,
                    of_neighbours,
                }
            }
            Measure::Stability { gamma: Gamma::Given(gamma) } => Weighed {
                value: mean - gamma * self.neighbourhood.mean_distance(),
                of_centre: 0.0,
                of_neighbours: even(),
            },
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
                let mut of_neighbours = even();
                of_neighbours[steepest] += (pull * sign) as f32;
                Weighed { value: mean - gamma * width, of_centre: -pull * sign, of_neighbours }
            }
            Measure::MeanMinusDeviation => {
                let variance =
                    scores.iter().map(|&s| (f64::from(s) - mean).powi(2)).sum::<f64>() * share;
                let deviation = variance.sqrt();
                // Where all neighbours agree the deviation has its kink; its slope there is 0.
                let inverse = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
                let of_neighbours = scores
                    .iter()
                    .map(|&s| (share * (1.0 - (f64::from(s) - mean) * inverse)) as f32)
                    .collect();
                Weighed { value: mean - deviation, of_centre: 0.0, of_neighbours }
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
