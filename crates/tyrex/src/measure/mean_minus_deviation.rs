//! `mean - sqrt(1/k sum (m_i - mean)^2)`

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::formula::{Formula, Weighed, mean, share};
use super::{Evaluation, Kind};
use crate::error::Result;
use crate::model::Model;
use crate::neighbourhood::Neighbourhood;

/// The measure of `RobX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MeanMinusDeviation {}

impl Kind for MeanMinusDeviation {
    fn symbol(&self) -> &'static str {
        "mean - deviation"
    }

    fn way<'a>(&self, _: &'a dyn Model) -> Result<Evaluation<'a>> {
        Ok(Evaluation::Scores(Arc::new(*self)))
    }
}

impl Formula for MeanMinusDeviation {
    fn weigh(&self, _: &Neighbourhood, _: f32, scores: &[f32], weights: &mut [f32]) -> Weighed {
        let (share, mean) = (share(scores), mean(scores, weights));
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
