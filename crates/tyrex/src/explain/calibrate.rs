//! The threshold of a method, calibrated on the rows a model rejects.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{Adviser, Applicant, Explainer, Request};
use crate::calibrate::{Calibration, Goal, calibrate};
use crate::change::{Ensemble, MOST_MEMBERS};
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
    /// Checks what can be checked before there are models; `models` is their number.
    pub fn check(&self, models: usize) -> Result<()> {
        if self.request.method.robustness().is_none() {
            let robust = MethodSpec::listed(MethodSpec::is_robust);
            let expected = format!("a method with a threshold of stability: {robust}");
            return Err(Error::param("method", self.request.method.name(), expected));
        }
        if self.taus.is_empty() {
            return Err(Error::param("tau", "missing", "at least one threshold to try"));
        }
        for (index, &tau) in self.taus.iter().enumerate() {
            if !(tau > 0.0 && tau < 1.0) {
                return Err(Error::param("tau", tau, "numbers between 0 and 1"));
            }
            if self.taus[..index].contains(&tau) {
                return Err(Error::param("tau", tau, "every threshold once"));
            }
        }
        if !(2..=MOST_MEMBERS).contains(&models) {
            let expected = format!("2 to {MOST_MEMBERS}, to choose and to report");
            return Err(Error::param("models", models, expected));
        }
        if self.factuals == 0 {
            return Err(Error::param("limit", 0, "at least 1 applicant to search for"));
        }
        Ok(())
    }

    /// The applicants to search for: the first rejected ones.
    #[must_use]
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
        terms.check(ensemble.members().len())?;
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
