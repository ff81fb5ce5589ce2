//! Training the model again: the ensembles that answers are tested on.

use std::ops::ControlFlow;
use std::path::Path;

use super::{Explainer, check_output};
use crate::change::{Ensemble, ModelChange, Plan};
use crate::error::{Error, Result};
use crate::file::Overwrite;
use crate::model::train::EpochReport;
use crate::model::{Examples, Mlp, Model, TrainParams};
use crate::seed::Seed;

/// How a model is to be changed.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrainingTerms {
    /// What is different for every model.
    pub change: ModelChange,
    /// The number of models.
    pub models: usize,
    /// How they are trained, but for what the change says.
    pub params: TrainParams,
    /// Where their randomness comes from.
    pub seed: Seed,
}

impl RetrainingTerms {
    /// The epochs that all models take, about: for how long it will be.
    #[must_use]
    pub fn epochs(&self) -> u64 {
        (self.models as f64 * self.change.epochs(&self.params)).round() as u64
    }
}

impl Explainer {
    /// How the model would be trained again: as it was trained, or, for a model from a file,
    /// with its layers and the usual training.
    pub fn training_params(&self) -> Result<TrainParams> {
        if let Some(training) = self.training() {
            return Ok(training.params.clone());
        }
        let layers = self.base()?.layers();
        let hidden = &layers[..layers.len().saturating_sub(1)];
        let mut params = TrainParams {
            hidden: hidden.iter().map(|layer| layer.bias.len()).collect(),
            ..TrainParams::default()
        };
        if let Some(first) = hidden.first() {
            params.activation = first.activation;
        }
        Ok(params)
    }

    /// Changes the model many times, on the rows it was trained on: the training rows of the
    /// data, or all rows where the data name none. A change that takes in new rows draws from
    /// all others that have a label.
    ///
    /// `watch` hears of every epoch of every model, from whichever thread trains it.
    pub fn retrain(
        &self,
        terms: &RetrainingTerms,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Ensemble> {
        self.with_plan(terms, |base, plan| Ensemble::train(base, plan, watch))
    }

    /// Some of the models that [`retrain`](Self::retrain) makes, by their numbers: one at a time
    /// or all at once, they have the same bits.
    pub fn retrain_members(
        &self,
        terms: &RetrainingTerms,
        members: &[usize],
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Mlp>> {
        self.with_plan(terms, |base, plan| plan.make_members(&base, members, watch))
    }

    /// The ensemble of models that [`retrain_members`](Self::retrain_members) made.
    pub fn ensemble_of(&self, terms: &RetrainingTerms, members: Vec<Mlp>) -> Result<Ensemble> {
        let RetrainingTerms { change, params, seed, .. } = terms.clone();
        Ensemble::from_parts(self.base()?.clone(), members, change, seed, params)
    }

    /// All of them, with every model written into a folder as soon as it is there, together with
    /// the schema and the encoder. If it is interrupted, the same call goes on where it was;
    /// see [`Ensemble::train_into`].
    pub fn retrain_into(
        &self,
        folder: &Path,
        terms: &RetrainingTerms,
        overwrite: Overwrite,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Ensemble> {
        let metadata = self.export_metadata()?;
        self.with_plan(terms, |base, plan| {
            Ensemble::train_into(folder, base, plan, &metadata, overwrite, watch)
        })
    }

    fn with_plan<T>(
        &self,
        terms: &RetrainingTerms,
        carry_out: impl FnOnce(Mlp, &Plan<'_>) -> Result<T>,
    ) -> Result<T> {
        let RetrainingTerms { change, models, params, seed } = terms;
        check_output(params)?;
        let base = self.base()?.clone();
        let rows = self.training_rows();
        if rows.is_empty() {
            return Err(Error::Table {
                file: self.reference().source().to_owned(),
                problem: format!(
                    "no row to train on, expected labels in column `{}` of the reference",
                    self.schema().label.column
                ),
            });
        }
        let mut labels = vec![0; self.points().len()];
        let mut fresh = vec![true; self.points().len()];
        for &row in &rows {
            let favourable = self.reference().is_favourable(row).ok_or_else(|| Error::Table {
                file: self.reference().source().to_owned(),
                problem: format!(
                    "row {} has no label, expected one in column `{}` of every row that trains",
                    self.reference().table_rows()[row],
                    self.schema().label.column
                ),
            })?;
            labels[row] = u32::from(favourable);
            fresh[row] = false;
        }
        let mut others = Vec::new();
        for row in (0..fresh.len()).filter(|&row| fresh[row]) {
            if let Some(favourable) = self.reference().is_favourable(row) {
                labels[row] = u32::from(favourable);
                others.push(row);
            }
        }
        let plan = Plan {
            examples: Examples::new(self.points(), &labels).with_rows(&rows),
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
    pub fn write_ensemble(
        &self,
        ensemble: &Ensemble,
        folder: &Path,
        overwrite: Overwrite,
    ) -> Result<()> {
        ensemble.write(folder, &self.export_metadata()?, overwrite)
    }

    /// Reads an ensemble from its folder, which must be one of this model.
    pub fn read_ensemble(&self, folder: &Path) -> Result<Ensemble> {
        let ensemble = Ensemble::read(folder)?;
        self.check_ensemble(&ensemble).map_err(|error| match error {
            Error::InvalidModel(problem) => Error::Model { file: folder.to_owned(), problem },
            other => other,
        })?;
        Ok(ensemble)
    }

    /// Refuses an ensemble of another model: nothing it says is about this one.
    pub fn check_ensemble(&self, ensemble: &Ensemble) -> Result<()> {
        check_base(self.model(), ensemble)
    }

    fn base(&self) -> Result<&Mlp> {
        self.network().ok_or_else(|| {
            Error::InvalidModel(
                "only networks can be trained again, not trees or black boxes".to_owned(),
            )
        })
    }
}

/// Refuses an ensemble of another model.
pub(super) fn check_base(model: &dyn Model, ensemble: &Ensemble) -> Result<()> {
    if model.network() == Some(ensemble.base()) {
        return Ok(());
    }
    let own = match model.identity() {
        Some(own) => format!("this model, {own}"),
        None => "this model".to_owned(),
    };
    Err(Error::InvalidModel(format!(
        "an ensemble of the model with fingerprint {}, expected one of {own}",
        ensemble.base().fingerprint()
    )))
}
