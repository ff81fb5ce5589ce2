//! The measures that are functions of the scores `m_0 .. m_k`: their values, and their
//! derivatives with respect to each score.

use std::fmt::Debug;

use crate::model::Probe;
use crate::model::probe::ProbeScratch;
use crate::neighbourhood::Neighbourhood;

/// A formula in the scores.
pub(super) trait Formula: Debug + Send + Sync {
    /// The formula's value; its derivatives with respect to the neighbours' scores go to
    /// `weights`.
    fn weigh(
        &self,
        cloud: &Neighbourhood,
        score: f32,
        scores: &[f32],
        weights: &mut [f32],
    ) -> Weighed;

    /// By how much the score of one neighbour lowers the formula, times `k`: at least 0. `None` for
    /// formulas that are not the point's own score less the mean of such terms.
    fn shortfall(&self, _score: f32, _neighbour: f32) -> Option<f64> {
        None
    }

    /// `m(x)`, the value and its gradient by a shorter way through a network, if there is one.
    fn shortcut(
        &self,
        _probe: &Probe<'_>,
        _x: &[f32],
        _room: &mut ProbeScratch,
        _gradient: &mut [f32],
    ) -> Option<(f32, f64)> {
        None
    }
}

/// The value of a formula, and its derivative with respect to the centre's score.
pub(super) struct Weighed {
    pub(super) value: f64,
    pub(super) of_centre: f64,
}

/// `1/k`
pub(super) fn share(scores: &[f32]) -> f64 {
    1.0 / scores.len() as f64
}

/// `1/k sum m_i`; its derivatives go to `weights`.
pub(super) fn mean(scores: &[f32], weights: &mut [f32]) -> f64 {
    let share = share(scores);
    weights.fill(share as f32);
    scores.iter().map(|&s| f64::from(s)).sum::<f64>() * share
}
