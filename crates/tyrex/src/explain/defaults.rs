//! The defaults that are not fields of a question, for front ends that show them.

use serde::Serialize;

use super::{
    CALIBRATED_ROWS, CONFIDENCE, METHOD, MODELS, PROMISE, PROMISE_DAYS, RETRAINED_MODELS,
    SERVED_MODELS, StabilityTerms,
};
use crate::calibrate::{Goal, TAUS};
use crate::certificate::{RADIUS, Terms};
use crate::change::ModelChange;
use crate::counterfactual::Robustness;

/// Every default outside of [`Ask`](super::Ask), with the constant or type that defines it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Defaults {
    /// The method of a question without a promise.
    pub method: &'static str,
    /// The promise, where models can be retrained.
    pub promise: f64,
    /// The confidence of promises, certificates, calibrations and the gate.
    pub confidence: f64,
    /// The days for which recorded advice is promised to hold.
    pub promise_days: u32,
    /// The test of stability of a method.
    pub robustness: Robustness,
    /// The measures of rows.
    pub stability: StabilityTerms,
    /// The terms of certificates.
    pub certificate: Terms,
    /// The largest change of a threshold of trees in a certificate.
    pub radius: f64,
    /// The models retrained for the certificates of a question without a promise.
    pub models: usize,
    /// The models of an ensemble.
    pub retrained_models: usize,
    /// The fresh models of a service.
    pub served_models: usize,
    /// How retrained models differ.
    pub change: &'static str,
    /// The goal of a calibration.
    pub goal: Goal,
    /// The thresholds that it tries.
    pub taus: [f64; TAUS.len()],
    /// The rejected rows that it searches for.
    pub calibrated_rows: usize,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            method: METHOD,
            promise: PROMISE,
            confidence: CONFIDENCE,
            promise_days: PROMISE_DAYS,
            robustness: Robustness::default(),
            stability: StabilityTerms::default(),
            certificate: Terms::default(),
            radius: RADIUS,
            models: MODELS,
            retrained_models: RETRAINED_MODELS,
            served_models: SERVED_MODELS,
            change: ModelChange::default().name(),
            goal: Goal::default(),
            taus: TAUS,
            calibrated_rows: CALIBRATED_ROWS,
        }
    }
}
