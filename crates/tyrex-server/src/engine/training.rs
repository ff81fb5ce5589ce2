//! Retraining of models in the background.

use std::ops::ControlFlow;
use std::sync::Arc;

use tyrex::explain::{Fresh, RetrainingTerms};
use tyrex::model::Mlp;
use tyrex::model::onnx::{self, ExportMetadata, ImportOptions, OnnxModel};

use super::Engine;
use super::error::{Error, Result};
use super::served::{Served, Training};

impl Engine {
    /// Trains the missing retrained models. Each is stored as soon as it is trained, so that a
    /// restart continues from there.
    pub(super) async fn train(self: Arc<Self>, served: Arc<Served>) {
        match self.trained(&served).await {
            Ok(ensemble) => served.set_training(Training::Ready(Arc::new(ensemble))),
            Err(_) if self.parking.is_set() || served.removed.is_set() => {}
            Err(error) => {
                tracing::error!(model = served.id(), %error, "cannot retrain the model");
                // Errors of the library are about the data; other errors are only logged.
                let reason = match error {
                    Error::Library(error) => error.to_string(),
                    _ => "The models could not be trained; the log has the reason.".to_owned(),
                };
                served.set_training(Training::Failed(reason));
            }
        }
    }

    async fn trained(&self, served: &Arc<Served>) -> Result<Fresh> {
        let Some(retraining) = served.retraining() else {
            return Err(Error::Broken("no retrained models were requested".to_owned()));
        };
        let terms = Arc::new(retraining.terms());
        let mut members: Vec<Option<Mlp>> = vec![None; terms.models];
        for (number, onnx) in self.store.members(served.id()).await? {
            if let Some(member) = members.get_mut(number) {
                *member = Some(read(onnx)?);
            }
        }
        let mut missing: Vec<usize> =
            (0..members.len()).filter(|&number| members[number].is_none()).collect();
        while !missing.is_empty() {
            let so_far: Vec<Mlp> = members.iter().flatten().cloned().collect();
            if !so_far.is_empty() {
                let so_far = self.compared(served, &terms, so_far).await?;
                served.set_training(Training::Under(Some(Arc::new(so_far))));
            }
            let some: Vec<usize> =
                missing.drain(..missing.len().min(self.pool.threads())).collect();
            let (numbers, served_now, terms_now) =
                (some.clone(), Arc::clone(served), Arc::clone(&terms));
            let parking = self.parking.clone();
            let made = self.pool.run_in_background(move || {
                let watch = |_, _: &_| match (parking.go_on(), served_now.removed.go_on()) {
                    (ControlFlow::Continue(()), go_on) => go_on,
                    (stop, _) => stop,
                };
                Ok(served_now.explainer().retraining().members(&terms_now, &numbers, watch)?)
            });
            for (number, member) in some.into_iter().zip(made.await?) {
                let onnx = onnx::write(&member, &ExportMetadata::default());
                self.store.add_member(served.id(), number, &onnx).await?;
                members[number] = Some(member);
            }
        }
        self.compared(served, &terms, members.into_iter().flatten().collect()).await
    }

    /// The ensemble of these models, compared with the model.
    async fn compared(
        &self,
        served: &Arc<Served>,
        terms: &Arc<RetrainingTerms>,
        members: Vec<Mlp>,
    ) -> Result<Fresh> {
        let (served, terms) = (Arc::clone(served), Arc::clone(terms));
        let parking = self.parking.clone();
        let compare = move || {
            let retraining = served.explainer().retraining();
            let ensemble = retraining.ensemble(&terms, members)?;
            Ok(retraining.fresh(ensemble, false, &|_| parking.go_on())?)
        };
        self.pool.run_in_background(compare).await
    }
}

fn read(onnx: Vec<u8>) -> Result<Mlp> {
    Ok(OnnxModel::from_bytes(onnx, &ImportOptions::default())?.core.into_network()?)
}
