//! A threshold for a required validity.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tyrex::Seed;
use tyrex::change::ModelChange;
use tyrex::counterfactual::Tick;
use tyrex::explain::{CalibrationTerms, RetrainingTerms};

use super::{JobEntry, Pace};
use crate::engine::error::{Error, Result};
use crate::engine::served::Retraining;
use crate::engine::{Engine, Served};

/// A threshold to find. The models that choose it are trained for this purpose and are independent
/// of the models that certificates use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CalibrateWork {
    /// The model's fingerprint.
    pub(crate) fingerprint: String,
    pub(crate) terms: CalibrationTerms,
    /// The number of models to train.
    pub(crate) models: usize,
    pub(crate) seed: Seed,
}

impl CalibrateWork {
    fn retraining(&self, served: &Served) -> Result<RetrainingTerms> {
        // Given models certify, so they cannot choose a threshold as well.
        let change = match served.retraining() {
            Some(Retraining::Trained(trained)) => trained.change.clone(),
            _ => ModelChange::default(),
        };
        Ok(RetrainingTerms {
            change,
            models: self.models,
            params: served.explainer().retraining().params()?,
            seed: self.seed.derive("calibration"),
        })
    }

    /// Its number of steps: epochs first, then answers.
    pub(crate) fn steps(&self, served: &Served) -> Result<usize> {
        let rows = served.rejected().min(self.terms.factuals);
        let epochs = self.retraining(served)?.epochs() as usize;
        Ok(epochs + rows * self.terms.taus.len())
    }
}

impl Engine {
    pub(super) async fn run_calibrate(
        &self,
        entry: &Arc<JobEntry>,
        work: &CalibrateWork,
    ) -> Result<()> {
        let served = self.model_of(entry, &work.fingerprint)?;
        let (own, parking, work) = (Arc::clone(entry), self.parking.clone(), work.clone());
        let calibrated = self.pool.run_in_background(move || {
            let go_on = || match parking.go_on() {
                ControlFlow::Continue(()) => own.stop.go_on(),
                stop @ ControlFlow::Break(()) => stop,
            };
            let ensemble =
                served.explainer().retraining().train(&work.retraining(&served)?, |_, _| {
                    own.step();
                    go_on()
                })?;
            let applicants = served.all_applicants();
            let explainer = served.explainer();
            let calibration = explainer.calibrate(applicants, &work.terms, &ensemble, |tick| {
                if tick == Tick::Answered {
                    own.step();
                }
                go_on()
            })?;
            serde_json::to_string(&calibration)
                .map_err(|error| Error::Broken(format!("a calibration without text: {error}")))
        });
        let result = self.told(entry, 0, &Pace::new(0), calibrated).await?;
        self.store.set_result(&entry.id.to_string(), &result).await
    }
}
