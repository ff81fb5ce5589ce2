//! The measures that are functions of the scores `m_0 .. m_k`: their values, and their
//! derivatives with respect to each score.

use crate::neighbourhood::Neighbourhood;

/// A formula in the scores.
#[derive(Debug, Clone, Copy)]
pub(super) enum Formula {
    Mean,
    RelaxedStability,
    /// With a constant `gamma`.
    Stability {
        gamma: f64,
    },
    /// With the largest slope between the point and a neighbour for `gamma`.
    SlopeStability,
    MeanMinusDeviation,
}

/// The value of a formula, and its derivative with respect to the centre's score.
pub(super) struct Weighed {
    pub(super) value: f64,
    pub(super) of_centre: f64,
}

impl Formula {
    /// The formula's value; its derivatives with respect to the neighbours' scores go to
    /// `weights`.
    pub(super) fn weigh(
        self,
        cloud: &Neighbourhood,
        score: f32,
        scores: &[f32],
        weights: &mut [f32],
    ) -> Weighed {
        let share = 1.0 / scores.len() as f64;
        let mean = scores.iter().map(|&s| f64::from(s)).sum::<f64>() * share;
        weights.fill(share as f32);
        match self {
            Self::Mean => Weighed { value: mean, of_centre: 0.0 },
            Self::RelaxedStability => {
                let (mut shortfall, mut below) = (0.0, 0.0);
                for (weight, &s) in weights.iter_mut().zip(scores) {
                    if s < score {
                        shortfall += f64::from(score - s);
                        below += 1.0;
                        *weight = 2.0 * share as f32;
                    } else {
                        *weight = 0.0;
                    }
                }
                Weighed {
                    value: f64::from(score) - 2.0 * shortfall * share,
                    of_centre: 1.0 - 2.0 * below * share,
                }
            }
            Self::Stability { gamma } => {
                Weighed { value: mean - gamma * cloud.mean_distance(), of_centre: 0.0 }
            }
            Self::SlopeStability => {
                let slopes = scores.iter().zip(cloud.distances());
                let slopes = slopes.map(|(&s, distance)| f64::from((score - s).abs()) / distance);
                let (steepest, gamma) = slopes.enumerate().fold((0, 0.0), |best, (i, slope)| {
                    if slope > best.1 { (i, slope) } else { best }
                });
                let width = cloud.mean_distance();
                // The steepest neighbour moves gamma too.
                let pull = width / cloud.distances()[steepest];
                let sign = f64::from((score - scores[steepest]).signum());
                weights[steepest] += (pull * sign) as f32;
                Weighed { value: mean - gamma * width, of_centre: -pull * sign }
            }
            Self::MeanMinusDeviation => {
                let squares = scores.iter().map(|&s| (f64::from(s) - mean).powi(2));
                let deviation = (squares.sum::<f64>() * share).sqrt();
                // Where all neighbours agree the deviation has its kink; its slope there is 0.
                let inverse = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
                for (weight, &s) in weights.iter_mut().zip(scores) {
                    *weight = (share * (1.0 - (f64::from(s) - mean) * inverse)) as f32;
                }
                Weighed { value: mean - deviation, of_centre: 0.0 }
            }
        }
    }
}
