//! The top layer: a model and its reference, ready for questions about applicants.
//!
//! The front ends (command line, Python, HTTP) call this module and convert its results; they
//! compute nothing themselves.

mod advice;
mod adviser;
mod applicant;
mod ask;
mod audit;
mod calibrate;
mod carried;
mod certify;
mod defaults;
mod document;
mod feature;
mod given;
mod import;
mod input;
mod meaning;
mod path;
mod performance;
mod pipeline;
mod portfolio;
mod promise;
mod recipe;
mod recode;
mod reference;
mod retrain;
mod scale;
mod searched;
mod sentence;
mod siblings;
mod stability;
mod survival;
mod table;
mod usual;
mod warning;

pub use advice::{Advice, AdviceFile, Costs, FeatureChange, Request, check_advice_names};
pub use adviser::Adviser;
pub use applicant::{Applicant, ApplicantsView};
pub use ask::{
    Ask, Auto, CALIBRATED_ROWS, METHOD, MODELS, PROMISE_DAYS, RETRAINED_MODELS, SERVED_MODELS,
    TRIES, Threshold,
};
pub use audit::{
    Gate, GateCandidate, GateReport, GateVerdict, Group, GroupTable, Grouping, JudgedCandidate,
    JudgedPromise, PromiseRepairs, PromiseStatus, Repair, RepairPart, RepairSearch, RepairSummary,
    Stated, Tally, Update, Updates, Values, WrittenPromise,
};
pub use calibrate::CalibrationTerms;
pub use carried::CarriedModels;
pub use certify::{AdviceRows, verify_certificates};
pub use defaults::Defaults;
pub use document::{
    Advised, AnswerDocument, Explained, HighestPromise, NamedValues, Proof, Unchanged,
};
pub use feature::{FeatureDocument, FeatureForm};
pub use given::{GivenFile, GivenModel, GivenSet};
pub use import::{embedded_schema, import, import_bytes, import_embedded};
pub use meaning::Meaning;
pub use path::{AdvicePath, PathStep};
pub use performance::{Part, Performance, PerformanceTally};
pub use pipeline::{Answered, Answering, Counter, Progress, Stage};
pub use portfolio::{PortfolioDocument, PortfolioTerms, PromisedPoints, QuestionPortfolio};
pub use promise::{
    CONFIDENCE, PROMISE, Promise, PromisedProbability, SEARCH_MODELS, ShownPromise, TUNING_MODELS,
};
pub use recipe::Recipe;
pub use reference::{Reference, UnlabelledRows};
pub use retrain::{Fresh, RetrainingTerms, RetrainingView};
pub use searched::SearchedModels;
pub use sentence::ChangeWords;
pub use siblings::{LEVEL, ROWS, SIBLINGS};
pub use stability::{RowStability, StabilityGauge, StabilityTerms};
pub use survival::RowSurvival;
pub use usual::{Apart, PartAdvice};

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use promise::MadeModels;
use scale::RawModel;
use serde::Serialize;
use warning::{Imported, Warnings};

use crate::counterfactual::SearchModels;
use crate::data::schema::MissingPolicy;
use crate::data::{Dataset, Encoder, Feature, Row, Schema};
use crate::error::{Error, Result};
use crate::model::files::ModelFile;
use crate::model::onnx::{self, ExportMetadata};
use crate::model::train::{EpochReport, Job, OutputLayer};
use crate::model::{Examples, Fingerprint, Model, TrainParams, train_all};
use crate::points::Points;
use crate::seed::Seed;

/// The version of the files and documents that describe an explainer's answers.
pub const FORMAT_VERSION: u32 = 1;

/// A model, its encoder and its reference. Clones share all of them.
#[derive(Debug, Clone)]
pub struct Explainer {
    reference: Arc<Reference>,
    encoder: Arc<Encoder>,
    /// The encoding of the columns that model files take, before their own operations; `None` if
    /// they take raw columns.
    columns: Option<Arc<Encoder>>,
    model: Arc<dyn Model>,
    /// The model of a file that takes raw columns, on its own scale.
    raw: Option<Arc<RawModel>>,
    training: Option<Arc<Training>>,
    recipe: Option<Arc<Recipe>>,
    /// Whether the training rows of the reference are those of the recipe.
    has_own_rows: Arc<OnceLock<bool>>,
    /// The parameters to retrain with, if they are not the model's own.
    params: Option<Arc<TrainParams>>,
    points: Arc<Points>,
    scores: Arc<[f32]>,
    /// The fingerprint of the model, which takes a pass over its weights.
    fingerprint: Arc<OnceLock<Fingerprint>>,
    /// The points of the training rows, which methods return or start from.
    reference_points: Arc<Points>,
    /// Models retrained for searches over models.
    search_models: Option<Arc<SearchModels>>,
    /// Retrained models that chose the threshold of searches.
    calibrated_by: Option<Arc<[Arc<dyn Model>]>>,
    /// Models that judge the repairs of an audit.
    judges: Option<Arc<Fresh>>,
    /// Models retrained for the last question.
    made: Arc<MadeModels>,
    /// The density of the favourable training rows.
    plausibility: Arc<usual::Fitted>,
    warnings: Arc<Warnings>,
}

/// How a model was trained by this crate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Training {
    /// The parameters.
    pub params: TrainParams,
    /// The seed.
    pub seed: Seed,
    /// The report of every epoch.
    pub history: Vec<EpochReport>,
    /// The epoch whose weights were kept.
    pub kept_epoch: usize,
}

/// Checks that the network's classes are those of a data set.
fn check_output(params: &TrainParams) -> Result<()> {
    match params.output {
        OutputLayer::Softmax { classes, favourable } if (classes, favourable) != (2, 1) => {
            Err(Error::param(
                "output",
                format!("a softmax over {classes} classes with class {favourable} favourable"),
                "2 classes with class 1 favourable, since the label of a data set is unfavourable \
                 (0) or favourable (1)",
            ))
        }
        _ => Ok(()),
    }
}

/// The points of the training rows.
fn training_points(reference: &Reference, points: &Arc<Points>) -> Arc<Points> {
    let train = reference.training_rows();
    if train.iter().copied().eq(0..points.len()) {
        return Arc::clone(points);
    }
    Arc::new(points.select(&train))
}

impl Explainer {
    /// Trains a network on the training rows of a data set.
    ///
    /// `watch` is called after every epoch; a `Break` ends training with the current network.
    pub fn train(
        dataset: Dataset,
        params: &TrainParams,
        seed: Seed,
        watch: impl Fn(&EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Self> {
        check_output(params)?;
        let schema = dataset.schema();
        let passes = |own: &&Feature| *schema.missing_policy(own) == MissingPolicy::Pass;
        if let Some(feature) = schema.features.iter().find(passes) {
            return Err(Error::feature(
                &feature.name,
                "`missing = \"pass\"` is for models of other tools; a network cannot take missing \
                 values, so set `missing` to \"level\" or { fill = value } to train one",
            ));
        }
        let labels: Vec<u32> = dataset.labels().iter().map(|&label| u32::from(label)).collect();
        let examples = Examples::new(dataset.points(), &labels).with_rows(dataset.train());
        let given_up = AtomicBool::new(false);
        let trained = train_all(&[Job::new(examples, params, seed)], |_, report| {
            let next = watch(report);
            given_up.fetch_or(next.is_break(), Ordering::Relaxed);
            next
        })?
        .pop()
        .ok_or_else(|| Error::Training("training returned no model".to_owned()))?;
        // A training that was ended early cannot be repeated from its parameters.
        let recipe = (!given_up.into_inner()).then(|| Recipe::of(&examples, params, seed));
        let training = Training {
            params: params.clone(),
            seed,
            history: trained.history,
            kept_epoch: trained.kept_epoch,
        };
        let encoder = dataset.encoder().clone();
        let model = Arc::new(trained.network);
        let columns = Some(encoder.clone());
        let made =
            Self::assemble(Reference::Labelled(dataset), encoder, columns, model, recipe, None)?;
        Ok(Self { training: Some(Arc::new(training)), ..made })
    }

    /// Combines an imported model and its reference.
    ///
    /// The schema says what the model takes (`[model] input`): this crate's encoding, or raw
    /// columns that the model file encodes itself. The numbers of the latter are brought to a common
    /// scale, by the schema's `[scaling]`, fitted on the training rows of the reference: without it,
    /// a change by a year would cost as much as one by a penny. If there are no training rows, they
    /// keep the scale of the file. The model stays the same function of a row, up to rounding.
    ///
    /// A file that this crate wrote has the split and the digest of the rows that trained its
    /// network. If that split of the reference gives these rows, they are its training rows.
    pub fn with_model(data: Reference, model: ModelFile) -> Result<Self> {
        let columns = input::columns(&data, &model, data.schema().model.input, None)?;
        let encoder = input::encoder(data.schema(), &model, columns.as_ref())?;
        let recipe = Recipe::read(&model.metadata)?;
        let split = import::stored_schema(&model).ok().flatten().map(|schema| schema.split);
        let imported = Imported::of(&data, &encoder, &model);
        let core = input::core(&encoder, model)?;
        let raw = RawModel::of(&data, &encoder, &core);
        let (encoder, core) = match &raw {
            Some(raw) => raw.scaled()?,
            None => (encoder, core),
        };
        let made = Self::assemble(data, encoder, columns, core.shared(), recipe, Some(&imported))?;
        let made = Self { raw: raw.map(Arc::new), fingerprint: Arc::default(), ..made };
        Ok(split.and_then(|split| made.with_split_of_training(&split)).unwrap_or(made))
    }

    /// Combines a model of any kind and its reference. The model takes the schema's encoding,
    /// fitted on the training rows; `make` gets the encoder, for a model that has to decode points.
    pub fn with_black_box(
        data: Reference,
        make: impl FnOnce(&Encoder) -> Result<Arc<dyn Model>>,
    ) -> Result<Self> {
        let encoder = Encoder::fit(data.schema(), &data.fitting_rows())?;
        let model = make(&encoder)?;
        if model.dim() != encoder.dim() {
            return Err(Error::Dimension {
                what: "coordinates that the model takes".to_owned(),
                expected: encoder.dim(),
                got: model.dim(),
            });
        }
        let columns = Some(encoder.clone());
        Self::assemble(data, encoder, columns, model, None, Some(&Imported::black_box()))
    }

    fn assemble(
        reference: Reference,
        encoder: Encoder,
        columns: Option<Encoder>,
        model: Arc<dyn Model>,
        recipe: Option<Recipe>,
        imported: Option<&Imported>,
    ) -> Result<Self> {
        // The points of a data set are reused if it has the same encoder.
        let points = match reference.points_of(&encoder) {
            Some(points) => points,
            None => encoder.encode_rows(reference.rows())?,
        };
        let (rows, table_rows) = (reference.rows(), reference.table_rows());
        let scores = applicant::scores(&*model, reference.source(), rows, table_rows, &points)?;
        let warnings = Warnings::of(&reference, &scores, imported)?;
        let points = Arc::new(points);
        let reference_points = training_points(&reference, &points);
        Ok(Self {
            reference: Arc::new(reference),
            encoder: Arc::new(encoder),
            columns: columns.map(Arc::new),
            model,
            raw: None,
            training: None,
            recipe: recipe.map(Arc::new),
            has_own_rows: Arc::default(),
            params: None,
            points,
            scores: scores.into(),
            fingerprint: Arc::default(),
            reference_points,
            search_models: None,
            calibrated_by: None,
            judges: None,
            made: Arc::default(),
            plausibility: Arc::default(),
            warnings: Arc::new(warnings),
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        self.reference.schema()
    }

    /// The rows that the model was trained on or is compared with.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The encoder.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The points of the rows, in their order.
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// The points of the training rows.
    pub(crate) fn reference_points(&self) -> &Arc<Points> {
        &self.reference_points
    }

    /// `m(x)` of the rows, in their order.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// How the model was trained, if this crate trained it.
    pub fn training(&self) -> Option<&Training> {
        self.training.as_deref()
    }

    /// The fingerprint of the model, which changes with its weights. It does not depend on the
    /// [scale](Self::scale) of numbers.
    pub fn fingerprint(&self) -> Fingerprint {
        let computed = || {
            let seen = || Fingerprint::of_scores(&self.points, &self.scores);
            let model = self.raw.as_ref().map_or_else(|| self.model(), |raw| raw.model());
            model.identity().unwrap_or_else(seen)
        };
        self.fingerprint.get_or_init(computed).clone()
    }

    /// The fingerprint of what else decides the answer to a row: the encoder of the model's file, and
    /// the outcome that its scores are the probability of.
    pub(crate) fn encoding(&self) -> Result<Fingerprint> {
        let encoder = self.raw.as_ref().map_or(&*self.encoder, |raw| raw.encoder());
        let text = |error| Error::param("encoder", error, "finite numbers");
        let encoder = serde_json::to_string(encoder).map_err(text)?;
        let meaning = serde_json::to_string(&Meaning::of(self.schema())).map_err(text)?;
        Ok(Fingerprint::of_texts([&Some(encoder), &Some(meaning)]))
    }

    /// `m(x)` of other rows of the same schema.
    pub fn score(&self, rows: &[Row]) -> Result<Vec<f32>> {
        Ok(self.model().score(&self.encoder.encode_rows(rows)?))
    }

    /// The training rows, in their order; all rows if the data name none.
    fn training_rows(&self) -> Vec<usize> {
        self.reference.training_rows()
    }

    /// The network as an ONNX file, with the schema, the encoder and the recipe, if it is known, in
    /// its metadata.
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        let Some(network) = self.model.network() else {
            return Err(Error::InvalidModel("only networks can be written".to_owned()));
        };
        let recipe = self.retraining().recipe().map(Recipe::text).transpose()?;
        Ok(onnx::write(network, &ExportMetadata { recipe, ..self.export_metadata()? }))
    }

    /// The metadata of any network of this explainer: the schema and the encoder.
    fn export_metadata(&self) -> Result<ExportMetadata> {
        ExportMetadata::of(self.schema(), &self.encoder.without_passing())
    }
}
