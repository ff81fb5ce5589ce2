//! Retraining: the ensembles on which answers are tested.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Explainer, Progress, check_output};
use crate::certificate::{Likeness, SearchRecord};
use crate::change::{Ensemble, ModelChange, Plan};
use crate::error::{Error, Result};
use crate::file::Overwrite;
use crate::model::train::EpochReport;
use crate::model::{Examples, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// The terms of a retraining.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetrainingTerms {
    /// The change of each model.
    pub change: ModelChange,
    /// The number of models.
    pub models: usize,
    /// The training parameters, except those that the change sets.
    pub params: TrainParams,
    /// The seed.
    pub seed: Seed,
}

impl RetrainingTerms {
    /// The approximate number of epochs of all models, to estimate the time.
    pub fn epochs(&self) -> u64 {
        (self.models as f64 * self.change.epochs(&self.params)).round() as u64
    }
}

/// The retraining of an explainer's model: its parameters, and the ensembles that it makes.
#[derive(Debug, Clone, Copy)]
pub struct RetrainingView<'a> {
    pub(super) explainer: &'a Explainer,
}

/// Retrained models that no search has used, to certify answers with.
#[derive(Debug, Clone)]
pub struct Fresh {
    /// The models.
    pub ensemble: Ensemble,
    /// Whether a search has used them after all; then the certificates say so.
    pub steered: bool,
    /// The known facts about the models that searched, if they were compared.
    pub search: Option<SearchRecord>,
    /// Whether the model looks like one of them.
    pub likeness: Likeness,
    /// The number of answers to the same question that they have judged before. A certificate has the
    /// confidence [`confidence`](Self::confidence), so that a choice among all of them is certified.
    pub looks: u32,
}

impl Fresh {
    /// Whether these are the same models, not only equal ones, and the same is known of them.
    pub fn are(&self, other: &Self) -> bool {
        let Self { ensemble, steered, search, looks, .. } = self;
        let (own, others) = (ensemble.members(), other.ensemble.members());
        (*steered, *search, *looks) == (other.steered, other.search, other.looks)
            && own.len() == others.len()
            && own.iter().zip(others).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// The most looks.
    pub const MOST_LOOKS: u32 = 30;

    /// `1 - (1 - g) / 2^looks`, the confidence of a certificate for a confidence `g` of all.
    ///
    /// A person who sees the judgement of the models and then asks for another answer chooses among
    /// answers by them. The levels of the further answers add up to at most `1 - g`, since
    /// `1/2 + 1/4 + ... <= 1`: with probability `g` none of their bounds is too high, whichever is
    /// chosen, and after however many.
    pub fn confidence(&self, confidence: f64) -> f64 {
        // Rounded to be read.
        let raised =
            1.0 - (1.0 - confidence) / f64::from(1_u32 << self.looks.min(Self::MOST_LOOKS));
        if self.looks == 0 { confidence } else { (raised * 1e12).round() / 1e12 }
    }
}

impl Explainer {
    /// The retraining of the model.
    pub fn retraining(&self) -> RetrainingView<'_> {
        RetrainingView { explainer: self }
    }
}

impl RetrainingView<'_> {
    /// Whether the reference has rows with labels to train on.
    pub fn is_possible(self) -> bool {
        !self.explainer.reference_points().is_empty() && self.explainer.reference().has_labels()
    }

    /// Retrains the model many times on its training rows, or on all rows if the data name none. A
    /// change that adds rows draws them from the other rows with a label.
    ///
    /// `watch` is called after every epoch of every model, from any thread.
    pub fn train(
        self,
        terms: &RetrainingTerms,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Ensemble> {
        self.with_plan(terms, |base, plan| Ensemble::train(base, plan, watch))
    }

    /// Some of the models that [`train`](Self::train) makes, by their indices. A model has the
    /// same bits whether it is trained alone or with others.
    pub fn members(
        self,
        terms: &RetrainingTerms,
        members: &[usize],
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Mlp>> {
        self.with_plan(terms, |base, plan| plan.make_members(&base, members, watch))
    }

    /// The ensemble of models that [`members`](Self::members) made.
    pub fn ensemble(self, terms: &RetrainingTerms, members: Vec<Mlp>) -> Result<Ensemble> {
        let RetrainingTerms { change, params, seed, .. } = terms.clone();
        Ensemble::of_networks(self.explainer.base()?.clone(), members, change, seed, params)
    }

    /// All of them, with every model written to a folder as soon as it is trained, together with
    /// the schema and the encoder. After an interruption the same call continues; see
    /// [`Ensemble::train_into`].
    pub fn train_into(
        self,
        folder: &Path,
        terms: &RetrainingTerms,
        overwrite: Overwrite,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Ensemble> {
        let metadata = self.explainer.export_metadata()?;
        self.with_plan(terms, |base, plan| {
            Ensemble::train_into(folder, base, plan, &metadata, overwrite, watch)
        })
    }

    fn with_plan<T>(
        self,
        terms: &RetrainingTerms,
        carry_out: impl FnOnce(Mlp, &Plan<'_>) -> Result<T>,
    ) -> Result<T> {
        let RetrainingTerms { change, models, params, seed } = terms;
        let explainer = self.explainer;
        check_output(params)?;
        let base = self.explainer.base()?.clone();
        let rows = explainer.training_rows();
        if rows.is_empty() {
            return Err(Error::Table {
                file: explainer.reference().source().to_owned(),
                problem: format!(
                    "no row to train on, expected labels in column `{}` of the reference",
                    explainer.schema().label.column
                ),
            });
        }
        let mut labels = vec![0; explainer.points().len()];
        let mut fresh = vec![true; explainer.points().len()];
        for &row in &rows {
            let favourable =
                explainer.reference().is_favourable(row).ok_or_else(|| Error::Table {
                    file: explainer.reference().source().to_owned(),
                    problem: format!(
                        "row {} has no label, expected one in column `{}` of every row that trains",
                        explainer.reference().table_rows()[row],
                        explainer.schema().label.column
                    ),
                })?;
            labels[row] = u32::from(favourable);
            fresh[row] = false;
        }
        let mut others = Vec::new();
        for row in (0..fresh.len()).filter(|&row| fresh[row]) {
            if let Some(favourable) = explainer.reference().is_favourable(row) {
                labels[row] = u32::from(favourable);
                others.push(row);
            }
        }
        let plan = Plan {
            examples: Examples::new(explainer.points(), &labels).with_rows(&rows),
            fresh: &others,
            params,
            change,
            members: *models,
            seed: *seed,
        };
        carry_out(base, &plan)
    }

    /// Writes an ensemble of this model into a folder, with the schema and the encoder in every
    /// model file.
    pub fn write(self, ensemble: &Ensemble, folder: &Path, overwrite: Overwrite) -> Result<()> {
        ensemble.write(folder, &self.explainer.export_metadata()?, overwrite)
    }

    /// Rejects an ensemble of another model.
    pub fn check(self, ensemble: &Ensemble) -> Result<()> {
        check_base(self.explainer.model(), ensemble).map_err(|error| {
            match (&self.explainer.raw, error) {
                (Some(_), Error::InvalidModel(problem)) => Error::InvalidModel(format!(
                    "{problem}, on the same scale of numbers, which the reference decides"
                )),
                (_, error) => error,
            }
        })
    }

    /// The models of an ensemble, to certify answers with: the model is compared with them
    /// ([`likeness`](Self::likeness)). `steered` says that a search has used them. If the user chose
    /// the sets of given models, these are the fresh ones.
    pub fn fresh(
        self,
        ensemble: Ensemble,
        steered: bool,
        watch: &(impl Fn(Progress) -> ControlFlow<()> + Sync),
    ) -> Result<Fresh> {
        let ensemble = ensemble.fresh();
        if ensemble.members().is_empty() {
            return Err(Error::param(
                "ensemble",
                "a set without fresh models",
                "at least one model whose name begins with `fresh`, to certify with",
            ));
        }
        let likeness = self.likeness(&ensemble, watch)?;
        Ok(Fresh { ensemble, steered, search: None, likeness, looks: 0 })
    }
}

impl Explainer {
    /// The network to train again.
    pub(super) fn base(&self) -> Result<&Mlp> {
        self.model().network().ok_or_else(|| {
            Error::InvalidModel(
                "only networks can be trained again, not trees or black boxes".to_owned(),
            )
        })
    }
}

/// Rejects an ensemble of another model.
pub(super) fn check_base(model: &dyn Model, ensemble: &Ensemble) -> Result<()> {
    if *model == **ensemble.base() {
        return Ok(());
    }
    let own = match model.identity() {
        Some(own) => format!("this model, {own}"),
        None => "this model".to_owned(),
    };
    let base = match ensemble.base().identity() {
        Some(base) => format!("the model with fingerprint {base}"),
        None => "another function".to_owned(),
    };
    Err(Error::InvalidModel(format!("an ensemble of {base}, expected one of {own}")))
}
