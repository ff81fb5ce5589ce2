//! Models that score points, and their gradients.
//!
//! `m : R^d -> [0, 1]` is the probability of the *favourable* class.

mod activation;
mod committee;
mod curvature;
pub mod files;
mod fingerprint;
pub(crate) mod interval;
mod kernel;
mod mlp;
pub mod onnx;
pub(crate) mod panels;
mod pass;
pub(crate) mod probe;
pub(crate) mod routes;
mod summary;
pub mod train;
pub mod trees;

pub use activation::Activation;
pub(crate) use committee::Committee;
pub(crate) use committee::CommitteeScratch;
pub use fingerprint::Fingerprint;
pub use mlp::{Dense, Mlp, Output};
pub(crate) use probe::Probe;
pub use summary::ModelSummary;
pub use train::{Examples, TrainParams, Trained, train, train_all};
pub use trees::TreeEnsemble;

use std::fmt;

use crate::data::Row;
use crate::points::Points;

/// A model accepts a point if its score is at least this.
pub const THRESHOLD: f32 = 0.5;

/// Whether a score is a probability, up to rounding. A score beyond 1 is no certainty: it may be a
/// logit, for which 0.5 is no threshold.
pub(crate) fn is_probability(score: f32) -> bool {
    (-1e-3..=1.001).contains(&score)
}

/// A model: the probability of the favourable class, for many points at once.
pub trait Model: fmt::Debug + Send + Sync {
    /// The number of coordinates of a point.
    fn dim(&self) -> usize;

    /// Writes `m(x)` of every point to `scores`.
    ///
    /// # Panics
    /// If the dimension of the points or the length of `scores` does not match.
    fn score_into(&self, points: &Points, scores: &mut [f32]);

    /// `m(x)` of every point.
    fn score(&self, points: &Points) -> Vec<f32> {
        let mut scores = vec![0.0; points.len()];
        self.score_into(points, &mut scores);
        scores
    }

    /// `m` of rows, for a model that takes rows. The scores of their points may differ in the last
    /// digits, since points are `f32`. `None` for models of points.
    fn score_rows(&self, _rows: &[Row]) -> Option<Vec<f32>> {
        None
    }

    /// The same model with its gradients, if it has them. Trees and black boxes do not.
    fn differentiable(&self) -> Option<&dyn DifferentiableModel> {
        None
    }

    /// The native network, if the model is one: some computations are faster for it.
    fn network(&self) -> Option<&Mlp> {
        None
    }

    /// The trees, if the model is an ensemble of them: their cells are known exactly.
    fn trees(&self) -> Option<&TreeEnsemble> {
        None
    }

    /// The summary of the model.
    fn summary(&self) -> ModelSummary {
        ModelSummary::Function { inputs: self.dim() }
    }

    /// The fingerprint, if the model has one. Black boxes do not.
    fn identity(&self) -> Option<Fingerprint> {
        None
    }
}

/// Models are equal if they have the same architecture and weights. A black box equals itself only.
impl<'a> PartialEq<dyn Model + 'a> for dyn Model + '_ {
    fn eq(&self, other: &(dyn Model + 'a)) -> bool {
        match (self.network(), other.network()) {
            (Some(own), Some(other)) => own == other,
            (None, None) => match (self.identity(), other.identity()) {
                (None, None) => std::ptr::addr_eq(self, other),
                (own, other) => own == other,
            },
            _ => false,
        }
    }
}

/// A model with gradients with respect to its input.
pub trait DifferentiableModel: Model {
    /// Writes `m(x)` of every point to `scores` and `v dm/dx` to `gradients`, with one
    /// cotangent `v` per point.
    ///
    /// # Panics
    /// If a size does not match.
    fn vjp_into(
        &self,
        points: &Points,
        cotangents: &[f32],
        scores: &mut [f32],
        gradients: &mut Points,
    );

    /// `m(x)` and `dm/dx` of every point.
    fn score_and_gradient(&self, points: &Points) -> (Vec<f32>, Points) {
        let mut scores = vec![0.0; points.len()];
        let mut gradients = Points::zeros(points.len(), points.dim());
        self.vjp_into(points, &vec![1.0; points.len()], &mut scores, &mut gradients);
        (scores, gradients)
    }
}

/// The vector instructions that networks run with on this machine: `AVX-512`, `AVX2` or
/// `portable`. The results have the same bits with each.
pub fn instruction_set() -> &'static str {
    kernel::Isa::detected().name()
}
