//! The retrained models of a question, carried between processes.
//!
//! Many processes that answer one question need the same retrained models. They are made once, in
//! one process or with one model per task, and [`Explainer::carry`] gives them to the others. A
//! model has the same bits wherever it is made, so answers do not depend on it.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Ask, Explainer, Fresh, Progress, RetrainingTerms};
use crate::certificate::Likeness;
use crate::change::Ensemble;
use crate::counterfactual::SearchModels;
use crate::error::{Error, Result};
use crate::model::{Mlp, Model};

/// The models that are retrained for a question: each set with its terms, those to search over and
/// those that choose the margin before those that certify.
#[derive(Debug, Clone)]
pub struct CarriedModels {
    /// The sets.
    pub sets: Vec<(RetrainingTerms, Vec<Mlp>)>,
    /// The result of comparing the model with those that certify, if it was made.
    pub likeness: Option<Likeness>,
}

impl Explainer {
    /// The terms of the models that are retrained for a question; none if it needs no models, or if
    /// this explainer was given some.
    pub fn carried_terms(&self, ask: &Ask) -> Result<Vec<RetrainingTerms>> {
        let ask = ask.for_model(self, None);
        let request = ask.request()?;
        let mut terms = Vec::new();
        if request.method.needs_models() && self.search_models.is_none() {
            terms.extend(ask.search_terms(self)?);
        }
        if request.promise.is_some() || ask.certify {
            terms.extend(ask.retraining(self)?);
        }
        Ok(terms)
    }

    /// The models of these terms, made for an earlier question or now.
    pub fn carried_models(
        &self,
        ask: &Ask,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<CarriedModels> {
        let ask = ask.for_model(self, None);
        let mut terms = self.carried_terms(&ask)?.into_iter();
        let mut carried = CarriedModels { sets: Vec::new(), likeness: None };
        let (searching, _) = self.for_search(&ask, None, watch)?;
        if let Some(models) = searching.search_models.filter(|_| self.search_models.is_none()) {
            let mut own = models.retrained().into_iter();
            for terms in terms.by_ref().take(2) {
                let set = own.by_ref().take(terms.models).map(network).collect::<Result<_>>()?;
                carried.sets.push((terms, set));
            }
        }
        if let Some(terms) = terms.next()
            && let Some(fresh) = self.fresh(&ask, None, watch)?
        {
            let members = fresh.ensemble.members().iter();
            let set = members.map(|member| network(&**member)).collect::<Result<_>>()?;
            carried.sets.push((terms, set));
            carried.likeness = Some(fresh.likeness.clone());
        }
        Ok(carried)
    }

    /// Uses these models for the question, in place of models retrained here.
    ///
    /// `watch` is called while the model is compared with those that certify, if nothing is known
    /// of that; a `Break` is an error.
    pub fn carry(
        &self,
        ask: &Ask,
        models: CarriedModels,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<()> {
        let terms = self.carried_terms(ask)?;
        let CarriedModels { sets, likeness } = models;
        let (given, mut sets): (Vec<_>, Vec<_>) = sets.into_iter().unzip();
        let complete = terms.iter().zip(&sets).all(|(terms, set)| set.len() == terms.models);
        if given != terms || !complete {
            return Err(Error::InvalidModel(
                "retrained models of another question, expected those of this one".to_owned(),
            ));
        }
        let fresh = if terms.len() == 2 { None } else { sets.pop() };
        if let [search, tune] = sets.as_slice() {
            let shared = |set: &Vec<Mlp>| -> Vec<Arc<dyn Model>> {
                set.iter().map(|each| Arc::new(each.clone()) as _).collect()
            };
            let models = SearchModels::new(Arc::clone(&self.model), shared(search), shared(tune))?;
            self.made.keep_search([terms[0].clone(), terms[1].clone()], models);
        }
        if let Some((terms, set)) = terms.last().zip(fresh) {
            let ensemble: Ensemble = self.retraining().ensemble(terms, set)?;
            let fresh = match likeness {
                Some(likeness) => {
                    Fresh { ensemble, steered: false, search: None, likeness, looks: 0 }
                }
                None => self.retraining().fresh(ensemble, false, watch)?,
            };
            self.made.keep_fresh(terms.clone(), fresh);
        }
        Ok(())
    }
}

fn network(model: &dyn Model) -> Result<Mlp> {
    let network = model.network().cloned();
    network.ok_or_else(|| Error::InvalidModel("only networks are retrained here".to_owned()))
}
