//! The interval tier for trees: every ensemble of the same shape whose thresholds differ by at most
//! `radius` and whose leaves by at most `delta` keeps the point valid.
//!
//! The formula and its proof are in `model::trees`, the family's limits too: trees of another shape,
//! which a retraining usually gives, are not in it. For these there is the ensemble tier.

use super::interval::{check_delta, check_radius, largest};
use crate::error::{Error, Result};
use crate::model::{Model as _, TreeEnsemble};

/// Trees prepared for interval certificates.
#[derive(Debug, Clone)]
pub struct TreeIntervalCertifier<'a> {
    trees: &'a TreeEnsemble,
}

impl<'a> TreeIntervalCertifier<'a> {
    /// Prepares trees; an error if their outputs are neither sums nor means.
    pub fn new(trees: &'a TreeEnsemble) -> Result<Self> {
        if trees.is_sum() {
            return Ok(Self { trees });
        }
        Err(Error::InvalidModel(
            "the least or the largest of many trees has no interval certificate, expected a sum or \
             a mean"
                .into(),
        ))
    }

    /// The lowest score of the point if every leaf moves by at most `delta` and every threshold by
    /// at most `radius`.
    pub fn lowest_score(&self, x: &[f32], delta: f64, radius: f64) -> Result<f64> {
        self.check(x, delta, radius)?;
        Ok(self.trees.lowest(&self.trees.reach(x, radius), delta))
    }

    /// The largest `delta` for which the lowest score is at least 0.5, less at most a millionth of
    /// it, with thresholds that move by up to `radius`; 0 if there is none.
    pub fn largest_delta(&self, x: &[f32], radius: f64) -> Result<f64> {
        self.check(x, 0.0, radius)?;
        let reach = self.trees.reach(x, radius);
        Ok(largest(|delta| self.trees.lowest(&reach, delta) >= 0.5))
    }

    /// The largest `radius` for which the lowest score is at least 0.5, less at most a millionth of
    /// it, with leaves that move by up to `delta`; 0 if there is none.
    pub fn largest_radius(&self, x: &[f32], delta: f64) -> Result<f64> {
        self.check(x, delta, 0.0)?;
        let keeps = |radius: f64| self.trees.lowest(&self.trees.reach(x, radius), delta) >= 0.5;
        Ok(largest(keeps))
    }

    fn check(&self, x: &[f32], delta: f64, radius: f64) -> Result<()> {
        check_delta(delta)?;
        check_radius(radius)?;
        super::check_point(x, self.trees.dim())
    }
}
