//! Retrained models that the operator gives: files in the database, numbered as they are given.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tyrex::Explainer;
use tyrex::change::{Ensemble, Origin};
use tyrex::explain::{Ask, Fresh, GivenFile, GivenSet, RetrainingTerms};
use tyrex::model::onnx::{self, ExportMetadata};

use super::Engine;
use super::error::{Error, Result};
use super::import::Reading;
use super::served::Served;
use super::training::read;

/// Retrained models, as they are read from a folder.
#[derive(Debug, Clone)]
pub(crate) struct GivenUpload {
    from: String,
    pub(super) files: Vec<GivenFile>,
    /// The ensemble of a folder that `tyrex retrain` wrote.
    trained: Option<Ensemble>,
}

/// Retrained models whose files are in the database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct GivenModels {
    from: String,
    /// The names and sets of the files.
    files: Vec<(String, Option<GivenSet>)>,
    reading: Reading,
    /// How they were trained, if `tyrex retrain` trained them.
    trained: Option<RetrainingTerms>,
    /// Whether those models take points on the scale of the explainer. Those that earlier versions
    /// trained have the scale of the model file.
    #[serde(default)]
    common_scale: bool,
    /// The number of models that certify.
    pub(super) fresh: usize,
    /// The number of models that searches use.
    pub(super) search: usize,
    /// Where they come from, in words.
    pub(super) description: String,
}

impl GivenUpload {
    /// The models of a folder, as `tyrex explain --ensemble` reads it.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let from = format!("the folder {}", folder.display());
        if !Ensemble::is_in(folder) {
            return Ok(Self { from, files: GivenFile::all_in(folder)?, trained: None });
        }
        let ensemble = Ensemble::read(folder)?;
        let networks = ensemble.members().iter().filter_map(|member| member.network());
        let file = |(index, network)| GivenFile {
            name: format!("member {index}"),
            set: None,
            onnx: onnx::write(network, &ExportMetadata::default()),
        };
        Ok(Self { from, files: networks.enumerate().map(file).collect(), trained: Some(ensemble) })
    }

    /// The description of the models, for the database, once they are known to fit the model.
    pub(super) fn checked(&self, explainer: &Explainer, reading: &Reading) -> Result<GivenModels> {
        let retraining = explainer.retraining();
        let common_scale = !self.trained.as_ref().is_some_and(|own| retraining.has_file_scale(own));
        let trained = match self.trained.as_ref().map(|own| (own, own.origin())) {
            Some((ensemble, Origin::Trained { change, seed, params })) => {
                if common_scale {
                    retraining.check(ensemble)?;
                }
                Some(RetrainingTerms {
                    change: change.clone(),
                    models: self.files.len(),
                    params: params.clone(),
                    seed: *seed,
                })
            }
            _ => None,
        };
        let mut given = GivenModels {
            from: self.from.clone(),
            files: self.files.iter().map(|file| (file.name.clone(), file.set)).collect(),
            reading: reading.clone(),
            trained,
            common_scale,
            fresh: 0,
            search: 0,
            description: String::new(),
        };
        let onnx = self.files.iter().map(|file| file.onnx.clone()).collect();
        let ensemble = given.ensemble(explainer, onnx)?;
        let (fresh, searching) = divided(explainer, &ensemble)?;
        given.fresh = fresh.members().len();
        given.search = searching.map_or(0, |_| ensemble.members().len() - given.fresh);
        given.description = ensemble.origin().description();
        Ok(given)
    }
}

impl GivenModels {
    /// The ensemble of the files.
    fn ensemble(&self, explainer: &Explainer, onnx: Vec<Vec<u8>>) -> Result<Ensemble> {
        if onnx.len() != self.files.len() {
            let (found, expected) = (onnx.len(), self.files.len());
            let problem = format!("{found} retrained models, expected {expected}");
            return Err(Error::Broken(problem));
        }
        let retraining = explainer.retraining();
        if let Some(terms) = &self.trained {
            let network = |onnx| {
                let network = read(onnx)?;
                if self.common_scale { Ok(network) } else { Ok(retraining.rescaled(network)?) }
            };
            let members = onnx.into_iter().map(network).collect::<Result<_>>()?;
            return Ok(retraining.ensemble(terms, members)?);
        }
        let file = |((name, set), onnx): (&(String, Option<GivenSet>), Vec<u8>)| GivenFile {
            name: name.clone(),
            set: *set,
            onnx,
        };
        let files: Vec<GivenFile> = self.files.iter().zip(onnx).map(file).collect();
        Ok(retraining.given_files(self.from.clone(), &files, &self.reading.options())?)
    }
}

/// The fresh models of an ensemble, and the explainer that searches over the others, if there are
/// enough for the default promise.
fn divided(explainer: &Explainer, ensemble: &Ensemble) -> Result<(Ensemble, Option<Explainer>)> {
    let ask = Ask::default();
    if ask.for_model(explainer, Some(ensemble)).promise.is_none() {
        return Ok((ensemble.clone().fresh(), None));
    }
    let go_on = |_| ControlFlow::Continue(());
    let (searching, fresh) = explainer.for_search(&ask, Some(ensemble), &go_on)?;
    Ok((fresh.unwrap_or_else(|| ensemble.clone()), Some(searching)))
}

impl Engine {
    /// The models of the database, ready for questions.
    pub(super) async fn assembled(
        &self,
        served: &Arc<Served>,
        given: &GivenModels,
    ) -> Result<(Arc<Fresh>, Option<Arc<Explainer>>)> {
        let stored = self.store.members(served.id()).await?;
        let (served, given, parking) = (Arc::clone(served), given.clone(), self.parking.clone());
        let assemble = move || {
            let explainer = served.explainer();
            let onnx = stored.into_iter().map(|(_, onnx)| onnx).collect();
            let (fresh, searching) = divided(explainer, &given.ensemble(explainer, onnx)?)?;
            let fresh = explainer.retraining().fresh(fresh, false, &|_| parking.go_on())?;
            Ok((Arc::new(fresh), searching.map(Arc::new)))
        };
        self.pool.run_in_background(assemble).await
    }
}
