//! Retraining of models in the background.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use tyrex::Explainer;
use tyrex::explain::{Fresh, RetrainingTerms};
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::model::onnx::{self, ExportMetadata};
use tyrex::model::{Mlp, Model};

use super::Engine;
use super::error::{Error, Result};
use super::served::{Retraining, Served, Training};

impl Engine {
    /// Trains the missing retrained models. Each is stored as soon as it is trained, so that a
    /// restart continues from there.
    pub(super) async fn train(self: Arc<Self>, served: Arc<Served>) {
        match self.trained(&served).await {
            Ok((fresh, searching)) => served.set_training(Training::Ready(fresh, searching)),
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

    /// Trains the fresh models, then those that searches use.
    async fn trained(&self, served: &Arc<Served>) -> Result<(Arc<Fresh>, Option<Arc<Explainer>>)> {
        let retraining = match served.retraining() {
            Some(Retraining::Trained(trained)) => trained,
            Some(Retraining::Given(given)) => return self.assembled(served, given).await,
            None => return Err(Error::Broken("no retrained models were requested".to_owned())),
        };
        let mut stored = BTreeMap::new();
        for (number, onnx) in self.store.members(served.id()).await? {
            let network = read(onnx)?;
            let network = if retraining.common_scale {
                network
            } else {
                served.explainer().retraining().rescaled(network)?
            };
            stored.insert(number, network);
        }
        let (mut first, mut sets) = (0, Vec::new());
        let mut fresh = None;
        for terms in retraining.terms().into_iter().map(Arc::new) {
            let next = first + terms.models;
            sets.push(self.trained_set(served, &terms, first, &mut stored, fresh.as_ref()).await?);
            if fresh.is_none() {
                let made = self.compared(served, &terms, sets.remove(0)).await?;
                fresh = Some(Arc::new(made));
            }
            first = next;
        }
        let fresh = fresh.ok_or_else(|| Error::Broken("no set of models".to_owned()))?;
        let searching = match <[Vec<Mlp>; 2]>::try_from(sets) {
            Ok(sets) => {
                let served = Arc::clone(served);
                let shared = |network| Arc::new(network) as Arc<dyn Model>;
                let prepare = move || {
                    let [search, tune] =
                        sets.map(|networks| networks.into_iter().map(shared).collect());
                    Ok(served.explainer().with_search_models(search, tune)?)
                };
                Some(Arc::new(self.pool.run_in_background(prepare).await?))
            }
            Err(_) => None,
        };
        Ok((fresh, searching))
    }

    /// One set of models: the stored ones, and those that are missing. Its numbers start at `first`.
    /// `fresh` are the fresh models, if this is another set.
    async fn trained_set(
        &self,
        served: &Arc<Served>,
        terms: &Arc<RetrainingTerms>,
        first: usize,
        stored: &mut BTreeMap<usize, Mlp>,
        fresh: Option<&Arc<Fresh>>,
    ) -> Result<Vec<Mlp>> {
        let mut members: Vec<Option<Mlp>> = vec![None; terms.models];
        for (number, member) in members.iter_mut().enumerate() {
            *member = stored.remove(&(first + number));
        }
        let mut missing: Vec<usize> =
            (0..members.len()).filter(|&number| members[number].is_none()).collect();
        while !missing.is_empty() {
            let so_far: Vec<Mlp> = members.iter().flatten().cloned().collect();
            let done = first + so_far.len();
            let known = match fresh {
                Some(fresh) => Some(Arc::clone(fresh)),
                None if so_far.is_empty() => None,
                None => Some(Arc::new(self.compared(served, terms, so_far).await?)),
            };
            served.set_training(Training::Under(done, known));
            let some: Vec<usize> =
                missing.drain(..missing.len().min(self.pool.threads())).collect();
            let (numbers, served_now, terms_now) =
                (some.clone(), Arc::clone(served), Arc::clone(terms));
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
                self.store.add_member(served.id(), first + number, &onnx).await?;
                members[number] = Some(member);
            }
        }
        Ok(members.into_iter().flatten().collect())
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

pub(super) fn read(onnx: Vec<u8>) -> Result<Mlp> {
    Ok(ModelFile::from_bytes(onnx, &ImportOptions::default())?.core.into_network()?)
}
