//! The differentiable world: models that score points.
//!
//! `m : R^d -> [0, 1]` is the probability of the *favourable* class.

pub mod activation;
pub mod mlp;

pub use activation::Activation;
pub use mlp::{Dense, Mlp, Output};

use crate::points::Points;

/// A model: the probability of the favourable class, for many points at once.
pub trait Model: Send + Sync {
    /// The number of coordinates of a point.
    fn dim(&self) -> usize;

    /// Writes `m(x)` of every point to `scores`.
    ///
    /// # Panics
    /// If the dimension of the points or the length of `scores` does not fit.
    fn score_into(&self, points: &Points, scores: &mut [f32]);

    /// `m(x)` of every point.
    fn score(&self, points: &Points) -> Vec<f32> {
        let mut scores = vec![0.0; points.len()];
        self.score_into(points, &mut scores);
        scores
    }
}
