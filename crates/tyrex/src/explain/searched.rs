//! The retrained models that took part in a search. They must not certify what it found.
//!
//! A file of advice names them by the first digits of their fingerprints, in the document in its
//! column `parameters`, so that a later certificate can tell them from others.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Explainer, Fresh, Progress, RetrainingView};
use crate::certificate::SearchRecord;
use crate::change::{Ensemble, Given, Origin};
use crate::counterfactual::SearchModels;
use crate::data::encode::Scale;
use crate::error::{Error, Result};
use crate::model::Model;

/// The digits of a fingerprint that are kept. Of 10,000 models that searched and 10,000 others, two
/// have the same with a probability of less than `10^8 / 16^12 = 4e-7`.
const DIGITS: usize = 12;
/// Models that an error names.
const NAMED: usize = 5;

/// The retrained models that took part in a search: that it ran over, or that chose its margin or
/// its threshold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchedModels {
    /// Their number.
    models: usize,
    /// The first digits of their fingerprints; fewer than models if some have no fingerprint.
    fingerprints: BTreeSet<String>,
    /// The scale of numbers that the models took, if it is not that of the model file: a model has
    /// another fingerprint on another scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<Scale>,
}

/// The models of an ensemble that may certify advice.
#[derive(Debug)]
struct Unsearched {
    /// The ensemble without the models that took part in the search.
    ensemble: Ensemble,
    /// The known facts about the models that searched.
    record: Option<SearchRecord>,
    /// The number of models that took part in the search and were left out.
    left_out: usize,
}

impl SearchedModels {
    /// These models, each once.
    pub(super) fn of<'a>(models: impl IntoIterator<Item = &'a dyn Model>) -> Self {
        let mut searched = Self::default();
        for model in models {
            let is_new = digits(model).is_none_or(|digits| searched.fingerprints.insert(digits));
            searched.models += usize::from(is_new);
        }
        searched
    }

    /// The scale of numbers of the models, if it is not that of the model file.
    pub fn scale(&self) -> Option<&Scale> {
        self.scale.as_ref()
    }

    /// Adds the models of another search. Models on different scales cannot be compared, so none of
    /// them is known then.
    pub(super) fn add(&mut self, other: &Self) {
        if self.models == 0 {
            self.clone_from(other);
            return;
        }
        if other.models > 0 && self.scale != other.scale {
            self.models += other.models;
            self.fingerprints.clear();
            return;
        }
        let unnamed = |own: &Self| own.models.saturating_sub(own.fingerprints.len());
        let unnamed = unnamed(self) + unnamed(other);
        self.fingerprints.extend(other.fingerprints.iter().cloned());
        self.models = self.fingerprints.len() + unnamed;
    }

    /// Whether the model took part.
    fn has(&self, model: &dyn Model) -> bool {
        digits(model).is_some_and(|digits| self.fingerprints.contains(&digits))
    }

    /// The known facts about the search, given that none of these models is known to have taken part.
    /// `None` if no retrained model searched.
    fn record<'a>(&self, mut models: impl Iterator<Item = &'a dyn Model>) -> Option<SearchRecord> {
        let is_whole = self.models == self.fingerprints.len();
        match self.models {
            0 => None,
            models_that_searched if is_whole && models.all(|model| digits(model).is_some()) => {
                Some(SearchRecord::Others { models: models_that_searched })
            }
            _ => Some(SearchRecord::Unknown),
        }
    }

    /// The known facts about the search if these models certify.
    fn known_of(&self, ensemble: &Ensemble) -> Option<SearchRecord> {
        let members = || ensemble.members().iter().map(|member| &**member);
        match members().filter(|member| self.has(*member)).count() {
            0 => self.record(members()),
            models => Some(SearchRecord::Among { models }),
        }
    }

    /// The models of an ensemble that may certify advice. `searched` are those that a file of advice
    /// records, if it does.
    ///
    /// If the user chose the sets of the ensemble, all fresh ones must be others than those that
    /// searched; from other ensembles a search takes some at random, and those are left out.
    fn without(searched: Option<&Self>, ensemble: Ensemble) -> Result<Unsearched> {
        let is_chosen = matches!(ensemble.origin(), Origin::Given(Given { sets: Some(_), .. }));
        let ensemble = ensemble.fresh();
        let Some(searched) = searched else {
            let record = Some(SearchRecord::Unknown);
            return Ok(Unsearched { ensemble, record, left_out: 0 });
        };
        let (took_part, others): (Vec<_>, Vec<_>) = ensemble
            .members()
            .iter()
            .cloned()
            .enumerate()
            .partition(|(_, member)| searched.has(&**member));
        let record = searched.record(others.iter().map(|(_, member)| &**member));
        if took_part.is_empty() {
            return Ok(Unsearched { ensemble, record, left_out: 0 });
        }
        if is_chosen || others.is_empty() {
            let name = |(place, member): &(usize, Arc<dyn Model>)| {
                let digits = digits(&**member).unwrap_or_default();
                format!("number {} with the fingerprint {digits}...", place + 1)
            };
            let mut names: Vec<String> = took_part.iter().take(NAMED).map(name).collect();
            if let Some(more) = took_part.len().checked_sub(NAMED).filter(|more| *more > 0) {
                names.push(format!("{more} more"));
            }
            return Err(Error::param(
                "ensemble",
                format!("{} models that took part in the search", took_part.len()),
                format!(
                    "models that did not, since no others can certify this advice; found {}",
                    names.join(", ")
                ),
            ));
        }
        let left_out = took_part.len();
        let others: Vec<_> = others.into_iter().map(|(_, member)| member).collect();
        Ok(Unsearched { ensemble: ensemble.with_fresh(&others), record, left_out })
    }
}

/// The first digits of a model's fingerprint.
fn digits(model: &dyn Model) -> Option<String> {
    model.identity().map(|own| own.as_str().chars().take(DIGITS).collect())
}

impl Explainer {
    /// The retrained models that take part in this explainer's searches.
    pub fn searched(&self) -> SearchedModels {
        let scale = self.scale().cloned();
        SearchedModels { scale, ..SearchedModels::of(self.searching()) }
    }

    fn searching(&self) -> impl Iterator<Item = &dyn Model> {
        let search = self.search_models.as_deref().map(SearchModels::retrained).unwrap_or_default();
        let calibrated = self.calibrated_by.iter().flat_map(|models| models.iter());
        search.into_iter().chain(calibrated.map(|model| &**model))
    }

    /// The same retrained models, with what is known of the searches of this explainer.
    #[must_use]
    pub fn recorded(&self, fresh: &Fresh) -> Fresh {
        Fresh { search: self.search_record(&fresh.ensemble), ..fresh.clone() }
    }

    /// The known facts about this explainer's searches if these models certify. The models are there,
    /// so black boxes are compared too, which have no fingerprint.
    pub(super) fn search_record(&self, ensemble: &Ensemble) -> Option<SearchRecord> {
        let searching: Vec<&dyn Model> = self.searching().collect();
        let took_part = |member: &&Arc<dyn Model>| searching.iter().any(|own| **own == ***member);
        match ensemble.members().iter().filter(took_part).count() {
            _ if searching.is_empty() => None,
            0 => {
                let is_new = |place: &usize| !searching[..*place].contains(&searching[*place]);
                let models = (0..searching.len()).filter(is_new).count();
                Some(SearchRecord::Others { models })
            }
            models => Some(SearchRecord::Among { models }),
        }
    }
}

/// What the user says beside a record: nothing more is known of models that are not recorded.
fn declared(record: Option<SearchRecord>, steered: Option<bool>) -> Option<SearchRecord> {
    match (record, steered) {
        (Some(SearchRecord::Unknown), Some(false)) => Some(SearchRecord::NotRecorded),
        _ => record,
    }
}

impl RetrainingView<'_> {
    /// The models of an ensemble that may certify advice, and the number of those that took part in
    /// its search and are left out. `searched` are those that the advice records, if it does;
    /// `steered` is what the user says: whether the search used the models of the ensemble.
    ///
    /// It is an error if none is left, or if the user chose the set of these models. Models on
    /// another scale of numbers than those of the search cannot be compared with them;
    /// [`Explainer::on_scale`] gives the explainer that reads the ensemble on the same scale.
    pub fn unsearched(
        self,
        searched: Option<&SearchedModels>,
        ensemble: Ensemble,
        steered: Option<bool>,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<(Fresh, usize)> {
        if steered == Some(true) {
            return Ok((self.fresh(ensemble, true, watch)?, 0));
        }
        let searched = searched.filter(|own| own.scale() == self.explainer.scale());
        let Unsearched { ensemble, record, left_out } =
            SearchedModels::without(searched, ensemble)?;
        let fresh = self.fresh(ensemble, false, watch)?;
        Ok((Fresh { search: declared(record, steered), ..fresh }, left_out))
    }

    /// The same for models that the model was compared with before.
    pub fn unsearched_of(
        self,
        searched: Option<&SearchedModels>,
        fresh: &Fresh,
        steered: Option<bool>,
    ) -> Result<(Fresh, usize)> {
        if steered == Some(true) {
            return Ok((Fresh { steered: true, ..fresh.clone() }, 0));
        }
        let searched = searched.filter(|own| own.scale() == self.explainer.scale());
        let Unsearched { ensemble, record, left_out } =
            SearchedModels::without(searched, fresh.ensemble.clone())?;
        let search = declared(record, steered);
        Ok((Fresh { ensemble, search, ..fresh.clone() }, left_out))
    }
}

impl Fresh {
    /// The same models for advice of a search that `searched` records, if it does. Models that took
    /// part stay, and the certificates say so. `steered` is what the user says: whether the search
    /// used the models.
    #[must_use]
    pub fn beside(
        &self,
        searched: Option<&SearchedModels>,
        scale: Option<&Scale>,
        steered: Option<bool>,
    ) -> Self {
        let record = match searched.filter(|own| own.scale() == scale) {
            Some(searched) => searched.known_of(&self.ensemble),
            None => Some(SearchRecord::Unknown),
        };
        let steered_by = self.steered || steered == Some(true);
        Self { steered: steered_by, search: declared(record, steered), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ModelChange;
    use crate::data::encode::Affine;
    use crate::model::{Mlp, TrainParams};
    use crate::seed::Seed;

    fn network(bias: f32) -> Mlp {
        Mlp::linear(vec![1.0], bias).unwrap()
    }

    fn ensemble(count: u8) -> Ensemble {
        let members = (1..=count).map(|each| network(f32::from(each))).collect();
        let params = TrainParams::default();
        Ensemble::of_networks(network(0.0), members, ModelChange::default(), Seed(0), params)
            .unwrap()
    }

    fn searched(biases: &[f32]) -> SearchedModels {
        let models: Vec<Mlp> = biases.iter().map(|bias| network(*bias)).collect();
        SearchedModels::of(models.iter().map(|model| model as &dyn Model))
    }

    #[test]
    fn models_that_searched_are_left_out() {
        let own = searched(&[1.0, 3.0, 3.0, 99.0]);
        assert_eq!((own.models, own.fingerprints.len()), (3, 3));
        let left = SearchedModels::without(Some(&own), ensemble(4)).unwrap();
        assert_eq!((left.left_out, left.ensemble.members().len()), (2, 2));
        assert_eq!(left.record, Some(SearchRecord::Others { models: 3 }));
        let expected: [Arc<dyn Model>; 2] = [Arc::new(network(2.0)), Arc::new(network(4.0))];
        assert_eq!(left.ensemble.members(), expected);
        // If all took part, none is left.
        let error = SearchedModels::without(Some(&searched(&[1.0, 2.0])), ensemble(2)).unwrap_err();
        assert!(error.to_string().contains("2 models that took part in the search"), "{error}");
    }

    #[test]
    fn what_is_not_recorded_is_not_claimed() {
        let whole = SearchedModels::without(None, ensemble(2)).unwrap();
        assert_eq!(whole.record, Some(SearchRecord::Unknown));
        assert_eq!((whole.left_out, whole.ensemble.members().len()), (0, 2));
        let none = SearchedModels::without(Some(&SearchedModels::default()), ensemble(2)).unwrap();
        assert_eq!(none.record, None);
        // A model without a fingerprint may be any of them.
        let unnamed = SearchedModels { models: 4, ..searched(&[8.0, 9.0]) };
        let left = SearchedModels::without(Some(&unnamed), ensemble(2)).unwrap();
        assert_eq!(left.record, Some(SearchRecord::Unknown));
        let known_of = |biases: &[f32]| searched(biases).known_of(&ensemble(2));
        assert_eq!(known_of(&[8.0]), Some(SearchRecord::Others { models: 1 }));
        // Two of them searched, and one is known although others have no fingerprint.
        assert_eq!(known_of(&[8.0, 2.0, 1.0]), Some(SearchRecord::Among { models: 2 }));
        let unnamed = SearchedModels { models: 4, ..searched(&[2.0]) };
        assert_eq!(unnamed.known_of(&ensemble(2)), Some(SearchRecord::Among { models: 1 }));
        assert_eq!(declared(whole.record, Some(false)), Some(SearchRecord::NotRecorded));
        assert_eq!(declared(whole.record, None), Some(SearchRecord::Unknown));
        let among = known_of(&[1.0]);
        assert_eq!(declared(among, Some(false)), among);
    }

    #[test]
    fn searches_of_several_files_are_added() {
        let mut both = searched(&[1.0, 2.0]);
        both.add(&SearchedModels { models: 3, ..searched(&[2.0, 3.0]) });
        assert_eq!((both.models, both.fingerprints.len()), (4, 3));
        let mut none = SearchedModels::default();
        none.add(&both);
        assert_eq!(none, both);
        // On another scale the same model has another fingerprint.
        let affine = Affine { offset: 0.0, scale: 2.0 };
        let scale = Some(Scale::from([("income".to_owned(), affine)]));
        both.add(&SearchedModels { scale, ..searched(&[4.0]) });
        assert_eq!((both.models, both.fingerprints.len()), (5, 0));
        assert_eq!(both.known_of(&ensemble(1)), Some(SearchRecord::Unknown));
    }
}
