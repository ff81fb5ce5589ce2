//! The threshold of a method, calibrated on the rows a model rejects.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{Adviser, Applicant, Explainer, Request};
use crate::calibrate::{Calibration, Goal, calibrate};
use crate::change::Ensemble;
use crate::counterfactual::{MethodSpec, Reason, Tick};
use crate::error::{Error, Result};
use crate::model::Model;

/// The terms of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CalibrationTerms {
    /// The required validity and confidence.
    pub goal: Goal,
    /// The thresholds to try.
    pub taus: Vec<f64>,
    /// The search; its threshold is ignored.
    pub request: Request,
    /// The maximum number of rejected rows; the first ones are used.
    pub factuals: usize,
}

impl CalibrationTerms {
    /// The applicants to search for: the first rejected ones.
    pub fn searched(&self, applicants: &[Applicant]) -> Vec<Applicant> {
        let rejected = applicants.iter().filter(|applicant| applicant.is_rejected());
        rejected.take(self.factuals).cloned().collect()
    }
}

impl Explainer {
    /// Searches for counterfactuals of the first rejected applicants with every threshold, and
    /// chooses the threshold by their validity under retrained models.
    ///
    /// `watch` is called for every answer, for every threshold, and for every evaluation.
    pub fn calibrate(
        &self,
        applicants: &[Applicant],
        terms: &CalibrationTerms,
        ensemble: &Ensemble,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Calibration> {
        self.retraining().check(ensemble)?;
        let mut request = terms.request.clone();
        if request.method.robustness().is_none() {
            let robust = MethodSpec::listed(MethodSpec::is_robust);
            let expected = format!("a method with a threshold of stability: {robust}");
            return Err(Error::param("method", request.method.name(), expected));
        }
        let rows = terms.searched(applicants);
        if rows.is_empty() {
            return Err(Error::param(
                "applicants",
                "none that the model rejects",
                "at least one to search for",
            ));
        }
        // The first models choose the threshold, and the others report its validity.
        let members = ensemble.shuffled(request.seed.derive("given models"));
        let members: Vec<&dyn Model> = members.iter().map(|member| &**member).collect();
        calibrate(&terms.goal, &terms.taus, &members, |tau| {
            if let Some(robustness) = request.method.robustness_mut() {
                robustness.tau = tau;
            }
            let outcomes = Adviser::new(self, request.clone())?.search(&rows, &watch)?;
            if outcomes.iter().any(|outcome| outcome.reason() == Some(Reason::Cancelled)) {
                return Err(Error::Cancelled("not all thresholds were tried".to_owned()));
            }
            Ok(outcomes)
        })
    }
}
