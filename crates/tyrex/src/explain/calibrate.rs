//! The threshold of a method, calibrated on the rows a model rejects.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{Adviser, Applicant, Explainer, Request};
use crate::calibrate::{Calibration, Goal, calibrate};
use crate::change::Ensemble;
use crate::counterfactual::{MethodSpec, Reason, Tick};
use crate::error::{Error, Result};
use crate::model::Model;

/// What is calibrated, and on what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CalibrationTerms {
    /// The promise.
    pub goal: Goal,
    /// The thresholds to try.
    pub taus: Vec<f64>,
    /// How the search is done; its own threshold is not read.
    pub request: Request,
    /// The most rejected rows to search for; the first ones are taken.
    pub factuals: usize,
}

impl CalibrationTerms {
    /// The applicants whose advice is searched for: the first ones that are rejected.
    #[must_use]
    pub fn searched(&self, applicants: &[Applicant]) -> Vec<Applicant> {
        let rejected = applicants.iter().filter(|applicant| applicant.is_rejected());
        rejected.take(self.factuals).cloned().collect()
    }
}

impl Explainer {
    /// Searches for counterfactuals of the first rejected applicants with every threshold, and
    /// chooses the threshold by what retrained models say of them.
    ///
    /// `watch` hears of every row's answer, for every threshold, and of every reading.
    pub fn calibrate(
        &self,
        applicants: &[Applicant],
        terms: &CalibrationTerms,
        ensemble: &Ensemble,
        watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
    ) -> Result<Calibration> {
        self.check_ensemble(ensemble)?;
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
        let members: Vec<&dyn Model> =
            ensemble.members().iter().map(|member| member as &dyn Model).collect();
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
