//! `1/k sum (m_i - abs(m_0 - m_i)) = m_0 - 2/k sum max(0, m_0 - m_i)`

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::formula::{Formula, Weighed, share};
use super::{Evaluation, Kind};
use crate::error::Result;
use crate::model::probe::ProbeScratch;
use crate::model::{Model, Probe};
use crate::neighbourhood::Neighbourhood;

/// The paper's `R^`, which T-Rex climbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RelaxedStability {}

impl Kind for RelaxedStability {
    fn symbol(&self) -> &'static str {
        "R^"
    }

    fn way<'a>(&self, _: &'a dyn Model) -> Result<Evaluation<'a>> {
        Ok(Evaluation::Scores(Arc::new(*self)))
    }
}

impl Formula for RelaxedStability {
    fn weigh(&self, _: &Neighbourhood, score: f32, scores: &[f32], weights: &mut [f32]) -> Weighed {
        let share = share(scores);
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

    fn shortfall(&self, score: f32, neighbour: f32) -> Option<f64> {
        Some(2.0 * f64::from(score - neighbour).max(0.0))
    }

    fn shortcut(
        &self,
        probe: &Probe<'_>,
        x: &[f32],
        room: &mut ProbeScratch,
        gradient: &mut [f32],
    ) -> Option<(f32, f64)> {
        Some(probe.relaxed_stability(x, room, gradient))
    }
}
