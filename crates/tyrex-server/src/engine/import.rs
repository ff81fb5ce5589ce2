//! Models from uploads, files and the database.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use tyrex::change::ModelChange;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::schema::Split;
use tyrex::data::{Catalogue, Schema, Table, TableLimits};
use tyrex::explain::{
    Applicant, Ask, PROMISE, PerformanceTally, Promise, Reference, RetrainingTerms, SEARCH_MODELS,
    TUNING_MODELS, UnlabelledRows, embedded_schema, import_bytes,
};
use tyrex::model::TrainParams;
use tyrex::model::files::{Favourable, ImportOptions, ModelFile};
use tyrex::{Explainer, Seed};

use super::Engine;
use super::error::{Error, Result};
use super::given::GivenUpload;
use super::served::{Retraining, SearchSet, Served, TrainedModels};
use super::store::StoredModel;
use crate::rows;

/// Maximum number of retrained versions of a model.
pub(crate) const MOST_MODELS: usize = 1000;
/// Maximum width of a layer. Scoring needs memory for many points at a time.
const WIDEST: usize = 16_384;
/// Maximum number of weights of a network.
const MOST_WEIGHTS: usize = 16 << 20;
/// Maximum number of weights of all retrained versions of a model.
const MOST_RETRAINED: usize = 128 << 20;
/// Maximum size of a schema, in bytes.
const LARGEST_SCHEMA: usize = 1 << 20;
/// Maximum length of a name.
const LONGEST_NAME: usize = 40;

/// A model that is uploaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upload {
    /// Its name.
    pub(crate) name: Option<String>,
    /// The ONNX file.
    pub(crate) onnx: Vec<u8>,
    /// The schema in TOML, unless the model contains it.
    pub(crate) schema: Option<String>,
    /// The rows to explain: the format of the file, and the file.
    pub(crate) data: Option<(String, Vec<u8>)>,
    /// The rows the model was trained on, likewise.
    pub(crate) reference: Option<(String, Vec<u8>)>,
    /// How to read the model.
    pub(crate) reading: Reading,
    /// The number of models to retrain.
    pub(crate) ensemble: usize,
    /// Models that were retrained already, instead.
    pub(crate) given: Option<GivenUpload>,
    /// Their training parameters that differ from the model's recipe.
    pub(crate) training: Map<String, Value>,
    /// Whether the model was trained on `data`. Only for models in databases of earlier versions,
    /// which kept such rows there; an upload sends them as `reference`.
    pub(crate) data_trains: bool,
    /// Whether a model is accepted that ranks its rows the wrong way round: models in databases of
    /// earlier versions were not checked.
    pub(crate) accept_reversed: bool,
}

/// How to read a model file that is ambiguous.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "they are the names of the parts of an upload")]
pub(crate) struct Reading {
    /// The favourable class, by its name.
    pub(crate) model_class: Option<String>,
    /// The output that holds the scores.
    pub(crate) model_output: Option<String>,
    /// Whether the output holds logits.
    pub(crate) model_logits: bool,
}

impl Reading {
    pub(super) fn options(&self) -> ImportOptions {
        ImportOptions {
            output: self.model_output.clone(),
            favourable: self.model_class.clone().map(Favourable::Label),
            logits: self.model_logits,
        }
    }
}

impl Upload {
    /// Reads the model and its rows through the library's hardened reader: the model with its
    /// reference, and the applicants if they are separate.
    ///
    /// Rows of `data` are the reference only if the schema has a split, which names those that
    /// train. Otherwise they are applicants.
    pub(super) fn read(&self, limits: TableLimits) -> Result<(Explainer, Option<Vec<Applicant>>)> {
        let options = self.reading.options();
        let mut schema = self.checked_schema(&options)?;
        schema.model.accept_reversed |= self.accept_reversed;
        let model = import_bytes(&self.onnx, &schema, &options).map_err(at("model"))?;
        check_size(&model).map_err(|problem| Error::field("model", problem))?;
        let read = |part: &'static str, file: &(String, Vec<u8>)| {
            UnlabelledRows::read(&schema, table(part, &file.0, &file.1, limits)?).map_err(at(part))
        };
        let trains = self.data_trains || !matches!(schema.split, Split::AllTrain);
        let (rows, apart) = match (&self.reference, &self.data) {
            (Some(file), apart) => {
                (Reference::Unlabelled(read("reference", file)?), apart.as_ref())
            }
            (None, Some(file)) if trains => (Reference::Unlabelled(read("data", file)?), None),
            (None, apart) => (Reference::none(&schema)?, apart.as_ref()),
        };
        let explainer = Explainer::with_model(rows, model).map_err(at("model"))?;
        let applicants = match apart {
            None => None,
            Some((format, file)) => {
                let table = table("data", format, file, limits)?;
                let applicants = explainer.applicants().read(&table).map_err(at("data"))?;
                let mut tally = PerformanceTally::default();
                applicants.iter().for_each(|own| tally.add(own.score, own.favourable));
                explainer.check_applicants(&tally).map_err(at("model"))?;
                Some(applicants)
            }
        };
        Ok((explainer, applicants))
    }

    /// The schema that was sent, or the model's own.
    pub(super) fn checked_schema(&self, options: &ImportOptions) -> Result<Schema> {
        let schema = match &self.schema {
            Some(text) if text.len() > LARGEST_SCHEMA => {
                let problem = format!("{} bytes, expected at most {LARGEST_SCHEMA}", text.len());
                return Err(Error::field("schema", problem));
            }
            Some(text) => Schema::from_toml(text).map_err(at("schema"))?,
            None => {
                let model = ModelFile::from_bytes(self.onnx.clone(), options);
                embedded_schema(&model.map_err(at("model"))?)
                    .map_err(at("model"))?
                    .ok_or_else(|| Error::field("schema", "missing, and the model contains none"))?
            }
        };
        // A path in a request would refer to this machine.
        if matches!(schema.split, Split::File { .. }) {
            let problem = "a split by file cannot be uploaded, expected one by column or fraction";
            return Err(Error::field("schema", problem));
        }
        Ok(schema)
    }
}

/// Rejects a network that would need too much memory to score.
pub(super) fn check_size(model: &ModelFile) -> Result<(), String> {
    let summary = model.model().summary();
    let Some(&widest) = summary.widths().iter().max() else { return Ok(()) };
    if widest.max(model.model().dim()) > WIDEST {
        return Err(format!("a layer has {widest} neurons, expected at most {WIDEST}"));
    }
    let found = summary.parameters();
    if found > MOST_WEIGHTS {
        return Err(format!("it has {found} weights, expected at most {MOST_WEIGHTS}"));
    }
    Ok(())
}

/// Rejects retrained versions without rows to train on, and more than fit into memory.
fn check_ensemble(explainer: &Explainer, models: usize) -> Result<()> {
    if models == 0 {
        return Ok(());
    }
    if !explainer.retraining().is_possible() {
        let problem = "expected 0, or labelled rows that the model was trained on: send them as \
                       `reference`, or a schema with a split";
        return Err(Error::field("ensemble", problem));
    }
    let weights = explainer.model().summary().parameters();
    let search = SEARCH_MODELS + TUNING_MODELS;
    match weights.checked_mul(models + search) {
        Some(all) if all <= MOST_RETRAINED => Ok(()),
        _ => {
            let most = (MOST_RETRAINED / weights.max(1)).saturating_sub(search);
            let problem = format!("expected at most {most} for a model of this size");
            Err(Error::field("ensemble", problem))
        }
    }
}

/// The rows of an uploaded file.
pub(crate) fn table(
    part: &'static str,
    format: &str,
    file: &[u8],
    limits: TableLimits,
) -> Result<Table> {
    if matches!(format, "arrow" | "arrows" | "ipc" | "feather") {
        return rows::read_arrow(file, limits)
            .map_err(|problem| Error::field(part, problem.detail().to_owned()));
    }
    let name = format!("{part}.{format}");
    Table::from_bytes_within(Path::new(&name), file.to_vec(), limits).map_err(at(part))
}

/// Adds the part of an upload to an error of the library.
fn at(part: &'static str) -> impl Fn(tyrex::Error) -> Error {
    move |error| match &error {
        tyrex::Error::Io { .. } | tyrex::Error::Cancelled(_) => Error::Library(error),
        tyrex::Error::Cell { row, column, value, expected, .. } => Error::field(
            format!("{part}[{row}].{column}"),
            format!("found `{value}`, expected {expected}"),
        ),
        tyrex::Error::Table { problem, .. }
        | tyrex::Error::SchemaFile { problem, .. }
        | tyrex::Error::Model { problem, .. }
        | tyrex::Error::InvalidModel(problem) => Error::field(part, problem.clone()),
        other => Error::field(part, other.to_string()),
    }
}

/// Whether a text can be the name of a model.
fn check_name(name: &str) -> Result<()> {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let good = (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(|letter| fits(letter) || letter == '-');
    if good {
        return Ok(());
    }
    let problem = format!("expected 1 to {LONGEST_NAME} lower-case letters, digits and hyphens");
    Err(Error::field("name", problem))
}

impl Engine {
    /// The permit to read uploaded model files: one at a time, since a file may need much memory.
    /// The work holds it, and may outlive its client.
    pub(super) fn model_reading_permit(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.reading).try_acquire_owned().map_err(|_| Error::Busy {
            what: "another model is being read",
            retry_after: Duration::from_secs(2),
        })
    }

    /// Imports an uploaded model.
    pub(crate) async fn upload(self: &Arc<Self>, upload: Upload) -> Result<Arc<Served>> {
        if let Some(name) = &upload.name {
            check_name(name)?;
            if self.model(Some(name)).is_ok() {
                return Err(Error::Conflict(format!("there is a model `{name}` already")));
            }
        }
        if upload.ensemble > MOST_MODELS {
            return Err(Error::field("ensemble", format!("expected at most {MOST_MODELS}")));
        }
        if self.models().len() >= self.config.models {
            let problem =
                format!("the limit of {} models is reached; remove one first", self.config.models);
            return Err(Error::Conflict(problem));
        }
        let alone = self.model_reading_permit()?;
        let change = self.config.change.clone();
        let (upload, explainer, applicants, retraining) = self
            .run_now(move |_| {
                let _alone = alone;
                let (explainer, applicants) = upload.read(rows::UPLOADED)?;
                check_ensemble(&explainer, upload.ensemble)?;
                let retraining = match (&upload.given, upload.ensemble) {
                    (Some(given), _) => {
                        Some(Retraining::Given(given.checked(&explainer, &upload.reading)?))
                    }
                    (None, 0) => None,
                    (None, models) => {
                        explainer.retraining().params().map_err(at("ensemble"))?;
                        let explainer = explainer.retraining().with(&upload.training)?;
                        Some(retraining(&explainer, models, change)?)
                    }
                };
                Ok((upload, explainer, applicants, retraining))
            })
            .await?;
        let fingerprint = explainer.fingerprint().to_string();
        let name = upload.name.unwrap_or_else(|| fingerprint.chars().take(12).collect());
        let stored = StoredModel {
            id: name.clone(),
            created: Self::now(),
            fingerprint,
            dataset: None,
            onnx: upload.onnx,
            schema: upload.schema,
            data: upload.data,
            reference: upload.reference,
            options: text(&upload.reading)?,
            retraining: retraining.as_ref().map(text).transpose()?,
            active: false,
        };
        if !self.store.add_model(&stored).await? {
            return Err(Error::Conflict(format!("there is a model `{name}` already")));
        }
        for (number, file) in upload.given.iter().flat_map(|given| &given.files).enumerate() {
            self.store.add_member(&name, number, &file.onnx).await?;
        }
        let first = self.models().is_empty();
        let served = self.serve(&stored, explainer, applicants, retraining);
        if first {
            self.activate(&name).await?;
        }
        Ok(served)
    }

    /// Adds a model to the served ones, and starts to retrain it.
    fn serve(
        self: &Arc<Self>,
        stored: &StoredModel,
        explainer: Explainer,
        applicants: Option<Vec<Applicant>>,
        retraining: Option<Retraining>,
    ) -> Arc<Served> {
        let origin = match &stored.dataset {
            Some(dataset) => format!("dataset {dataset}"),
            None => "upload".to_owned(),
        };
        let (id, created) = (stored.id.clone(), stored.created);
        // Models of every purpose are retrained alike.
        let explainer = match &retraining {
            Some(Retraining::Trained(retraining)) => explainer
                .retraining()
                .with_params(retraining.params.clone())
                .unwrap_or_else(|_| explainer.clone()),
            Some(Retraining::Given(_)) | None => explainer,
        };
        let served = Served::new(id.clone(), explainer, applicants, origin, created, retraining);
        let served = Arc::new(served);
        self.change_models(|models| models.served.insert(id, Arc::clone(&served)));
        if served.retraining().is_some() {
            tokio::spawn(Arc::clone(self).train(Arc::clone(&served)));
        }
        served
    }

    /// Restores the models of the database. A model that cannot be read is skipped and logged.
    pub(super) async fn restore_models(self: &Arc<Self>) -> Result<()> {
        for stored in self.store.models().await? {
            let (own, data_dir) = (stored.clone(), self.config.data_dir.clone());
            let restored =
                self.pool.run_in_background(move || restored(&own, data_dir.as_deref())).await;
            match restored {
                Ok((explainer, applicants, retraining)) => {
                    self.serve(&stored, explainer, applicants, retraining);
                    if stored.active {
                        self.change_models(|models| models.active = Some(stored.id));
                    }
                }
                Err(error) => {
                    tracing::error!(model = stored.id, %error, "a model cannot be restored");
                }
            }
        }
        Ok(())
    }

    /// Trains the model of the named data set, if it is missing, and activates it.
    pub(super) async fn start_dataset(self: &Arc<Self>) -> Result<()> {
        let Some(name) = self.config.dataset.clone() else { return Ok(()) };
        if self.model(Some(&name)).is_err() {
            let (dataset, data_dir) = (name.clone(), self.config.data_dir.clone());
            let params = TrainParams::default().with(&self.config.training)?;
            let (explainer, onnx) = self
                .pool
                .run_in_background(move || {
                    let dataset = named(&dataset, data_dir.as_deref())?;
                    let go_on = |_: &_| std::ops::ControlFlow::Continue(());
                    let explainer = Explainer::train(dataset, &params, Seed(0), go_on)?;
                    let onnx = explainer.to_onnx()?;
                    Ok((explainer, onnx))
                })
                .await?;
            let retraining = match self.config.ensemble {
                0 => None,
                models => {
                    let change = self.config.change.clone();
                    Some(retraining(&explainer, models.min(MOST_MODELS), change)?)
                }
            };
            let stored = StoredModel {
                id: name.clone(),
                created: Self::now(),
                fingerprint: explainer.fingerprint().to_string(),
                dataset: Some(name.clone()),
                onnx,
                schema: None,
                data: None,
                reference: None,
                options: text(&Reading::default())?,
                retraining: retraining.as_ref().map(text).transpose()?,
                active: true,
            };
            if !self.store.add_model(&stored).await? {
                // It is in the database and cannot be read: report that instead of hiding it.
                let problem = format!("the model `{name}` of the database cannot be read");
                return Err(Error::Conflict(problem));
            }
            self.serve(&stored, explainer, None, retraining);
        }
        self.activate(&name).await.map(|_| ())
    }
}

/// How the models of an ensemble are made: as `tyrex explain` makes them for its certificates and
/// its searches. The parameters are those of the explainer.
fn retraining(explainer: &Explainer, models: usize, change: ModelChange) -> Result<Retraining> {
    let ask = Ask::default();
    let search = ask.search_terms(explainer)?;
    let set = |RetrainingTerms { models, seed, .. }| SearchSet { models, seed };
    // Models to search over are of use only if the promise of an answer can be shown.
    let can_promise = Promise::new(PROMISE, ask.confidence)?.can_be_shown(models);
    Ok(Retraining::Trained(TrainedModels {
        change,
        models,
        params: explainer.retraining().params()?,
        seed: ask.certificate_seed(),
        search: if can_promise { search.map(set).into() } else { Vec::new() },
        common_scale: true,
    }))
}

fn named(name: &str, data_dir: Option<&Path>) -> Result<tyrex::data::Dataset> {
    Ok(Catalogue::new(data_dir).load(name, Variant::Product, Direction::Favourable)?)
}

/// The model of the database.
fn restored(
    stored: &StoredModel,
    data_dir: Option<&Path>,
) -> Result<(Explainer, Option<Vec<Applicant>>, Option<Retraining>)> {
    let damaged = |error: serde_json::Error| Error::Broken(format!("damaged: {error}"));
    let retraining = stored.retraining.as_deref().map(serde_json::from_str).transpose();
    let retraining: Option<Retraining> = retraining.map_err(damaged)?;
    let (explainer, applicants) = match &stored.dataset {
        Some(dataset) => {
            let dataset = named(dataset, data_dir)?;
            let options = ImportOptions::default();
            let model = import_bytes(&stored.onnx, dataset.schema(), &options)?;
            (Explainer::with_model(Reference::Labelled(dataset), model)?, None)
        }
        None => {
            let upload = Upload {
                onnx: stored.onnx.clone(),
                schema: stored.schema.clone(),
                data: stored.data.clone(),
                reference: stored.reference.clone(),
                reading: serde_json::from_str(&stored.options).map_err(damaged)?,
                data_trains: matches!(retraining, Some(Retraining::Trained(_))),
                accept_reversed: true,
                ..Upload::default()
            };
            // Earlier versions accepted larger files.
            upload.read(TableLimits::default())?
        }
    };
    let (found, expected) = (explainer.fingerprint().to_string(), &stored.fingerprint);
    if found != *expected {
        let problem = format!("its fingerprint is {found}, expected {expected}");
        return Err(Error::Broken(problem));
    }
    Ok((explainer, applicants, retraining))
}

fn text(document: &impl Serialize) -> Result<String> {
    serde_json::to_string(document)
        .map_err(|error| Error::Broken(format!("a document without text: {error}")))
}
