//! Training the model again: the ensembles that answers are tested on.

use std::ops::ControlFlow;
use std::path::Path;

use super::{Explainer, check_output};
use crate::change::{Ensemble, ModelChange, Plan};
use crate::error::{Error, Result};
use crate::file::Overwrite;
use crate::model::train::EpochReport;
use crate::model::{Examples, Mlp, TrainParams};
use crate::seed::Seed;

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

    /// Trains the model again, `models` times, on the rows it was trained on: the training rows
    /// of the data, or all rows where the data name none.
    ///
    /// `watch` hears of every epoch of every model, from whichever thread trains it.
    pub fn retrain(
        &self,
        change: ModelChange,
        models: usize,
        params: &TrainParams,
        seed: Seed,
        watch: impl Fn(usize, &EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Ensemble> {
        check_output(params)?;
        let base = self.base()?.clone();
        let rows = self.training_rows();
        let mut labels = vec![0; self.points().len()];
        for &row in &rows {
            let favourable = self.data().is_favourable(row).ok_or_else(|| Error::Table {
                file: self.data().source().to_owned(),
                problem: format!(
                    "row {} has no label, expected one in column `{}` of every row that trains",
                    self.data().table_rows()[row],
                    self.schema().label.column
                ),
            })?;
            labels[row] = u32::from(favourable);
        }
        let examples = Examples::new(self.points(), &labels).with_rows(&rows);
        let plan = Plan { examples, params, change, members: models, seed };
        Ensemble::train(base, &plan, watch)
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
        let (own, base) = (self.fingerprint(), ensemble.base().fingerprint());
        if own == base {
            return Ok(ensemble);
        }
        Err(Error::Model {
            file: folder.to_owned(),
            problem: format!(
                "an ensemble of the model with fingerprint {base}, expected one of this model, {own}"
            ),
        })
    }

    fn base(&self) -> Result<&Mlp> {
        self.network().ok_or_else(|| {
            Error::InvalidModel("only networks can be trained again, not trees".to_owned())
        })
    }
}
