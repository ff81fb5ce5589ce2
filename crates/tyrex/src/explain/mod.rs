//! The façade: a model and its reference, ready for questions about applicants.
//!
//! The front ends (command line, Python, HTTP) call this module and translate what it
//! answers; they compute nothing themselves.

mod advice;
mod adviser;
mod applicant;
mod ask;
mod audit;
mod calibrate;
mod certify;
mod document;
mod feature;
mod import;
mod input;
mod meaning;
mod performance;
mod pipeline;
mod reference;
mod retrain;
mod sentence;
mod stability;
mod survival;
mod table;

pub use advice::{Advice, Costs, FeatureChange, Request, check_advice_names};
pub use adviser::Adviser;
pub use applicant::Applicant;
pub use ask::{
    Ask, Auto, CALIBRATED_ROWS, METHOD, MODELS, PROMISE_DAYS, RELAXED_ROWS, SERVED_MODELS, TRIES,
    Threshold,
};
pub use audit::{
    Candidate, Gate, GateReport, GateVerdict, Group, GroupTable, Grouping, JudgedCandidate,
    JudgedPromise, PromiseRepairs, PromiseStatus, Repair, RepairSearch, RepairSummary, Tally,
    Values, WrittenPromise,
};
pub use calibrate::CalibrationTerms;
pub use certify::{AdviceRows, Fresh, verify_certificates};
pub use document::{Advised, Explained, Named};
pub use feature::{FeatureDocument, FeatureForm};
pub use import::{embedded_schema, import, import_bytes};
pub use meaning::Meaning;
pub use performance::{Part, Performance, PerformanceTally};
pub use pipeline::{Answered, Counter, Progress, Stage};
pub use reference::{Reference, UnlabelledRows};
pub use retrain::RetrainingTerms;
pub use stability::{RowStability, StabilityGauge, StabilityTerms};
pub use survival::RowSurvival;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::data::{Dataset, Encoder, Row, Schema};
use crate::error::{Error, Result};
use crate::file::{Overwrite, write_whole};
use crate::model::onnx::{self, ExportMetadata, OnnxModel};
use crate::model::train::{EpochReport, Job, OutputLayer};
use crate::model::{
    DifferentiableModel, Examples, Fingerprint, Mlp, Model, TrainParams, train_all,
};
use crate::points::Points;
use crate::seed::Seed;

/// The version of the files and documents that describe an explainer's answers.
pub const FORMAT_VERSION: u32 = 1;

/// A model, how rows become its points, and its reference. A clone shares all of it.
#[derive(Debug, Clone)]
pub struct Explainer {
    reference: Arc<Reference>,
    encoder: Arc<Encoder>,
    model: Arc<dyn Model>,
    training: Option<Arc<Training>>,
    points: Arc<Points>,
    scores: Arc<[f32]>,
    /// The points of the rows that train: what methods answer with and start from.
    reference_points: Arc<Points>,
}

/// How a model that was trained here came about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Training {
    /// What was set.
    pub params: TrainParams,
    /// Where the randomness came from.
    pub seed: Seed,
    /// Every epoch.
    pub history: Vec<EpochReport>,
    /// The epoch whose weights were kept.
    pub kept_epoch: usize,
}

/// Whether the network's classes are those of a data set.
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

impl Explainer {
    /// Trains a network on the training rows of a data set.
    ///
    /// `watch` hears of every epoch; after a `Break` training ends with the network it has.
    pub fn train(
        dataset: Dataset,
        params: &TrainParams,
        seed: Seed,
        watch: impl Fn(&EpochReport) -> ControlFlow<()> + Sync,
    ) -> Result<Self> {
        check_output(params)?;
        let labels: Vec<u32> = dataset.labels().iter().map(|&label| u32::from(label)).collect();
        let examples = Examples::new(dataset.points(), &labels).with_rows(dataset.train());
        let trained = train_all(&[Job::new(examples, params, seed)], |_, report| watch(report))?
            .pop()
            .ok_or_else(|| Error::Training("no model came back".to_owned()))?;
        let training = Training {
            params: params.clone(),
            seed,
            history: trained.history,
            kept_epoch: trained.kept_epoch,
        };
        let encoder = dataset.encoder().clone();
        let model = Arc::new(trained.network);
        Self::assemble(Reference::Labelled(dataset), encoder, model, Some(training))
    }

    /// Puts an imported model and its reference together.
    ///
    /// The schema says what the model takes (`[model] input`): this crate's encoding, or raw
    /// columns that the model file encodes itself.
    pub fn with_model(data: Reference, model: OnnxModel) -> Result<Self> {
        let encoder = input::encoder(&data, &model)?;
        Self::assemble(data, encoder, model.core.shared(), None)
    }

    /// Puts a model of any kind and its reference together. The model sees the schema's
    /// encoding, fitted on the training rows; `make` is given the encoder, for a model that has
    /// to go back to values.
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
        Self::assemble(data, encoder, model, None)
    }

    /// As [`with_model`](Self::with_model), with points on a common scale: numbers are scaled by
    /// the schema's method (`[scaling]`), whether the model takes them as they are, such as years
    /// and incomes, or, if it is a network, on scales of its own, and the model is rewritten to
    /// take them so. As they are, a change by a year would count as much as one by a penny.
    ///
    /// The rewritten model is the same function of a row, up to rounding; its fingerprint is
    /// another. Rows are scaled by the rows that train; by all rows, if none are named.
    pub fn with_standardised_model(data: Reference, model: OnnxModel) -> Result<Self> {
        let encoder = input::encoder(&data, &model)?;
        let (encoder, core) = input::standardised(&data, encoder, model.core)?;
        Self::assemble(data, encoder, core.shared(), None)
    }

    fn assemble(
        reference: Reference,
        encoder: Encoder,
        model: Arc<dyn Model>,
        training: Option<Training>,
    ) -> Result<Self> {
        // A data set that was encoded by the same encoder has its points already.
        let points = match reference.points_of(&encoder) {
            Some(points) => points,
            None => encoder.encode_rows(reference.rows())?,
        };
        let (rows, table_rows) = (reference.rows(), reference.table_rows());
        let scores = applicant::scores(&*model, reference.source(), rows, table_rows, &points)?;
        let points = Arc::new(points);
        let train = reference.training_rows();
        let reference_points = if train.iter().copied().eq(0..points.len()) {
            Arc::clone(&points)
        } else {
            Arc::new(points.select(&train))
        };
        Ok(Self {
            reference: Arc::new(reference),
            encoder: Arc::new(encoder),
            model,
            training: training.map(Arc::new),
            points,
            scores: scores.into(),
            reference_points,
        })
    }

    /// What the columns mean.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        self.reference.schema()
    }

    /// The rows the model was trained on or is compared with.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// How rows become points.
    #[must_use]
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The points of the rows, in their order.
    #[must_use]
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// The number of rows of the reference: those that train. Without any, searches start from the
    /// applicant alone, and methods that answer with a row have no answer.
    #[must_use]
    pub fn reference_rows(&self) -> usize {
        self.reference_points.len()
    }

    /// The points of the rows that train.
    pub(crate) fn reference_points(&self) -> &Arc<Points> {
        &self.reference_points
    }

    /// `m(x)` of the rows, in their order.
    #[must_use]
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// The model with gradients, if it has them: a network has, trees have not.
    #[must_use]
    pub fn differentiable(&self) -> Option<&dyn DifferentiableModel> {
        self.model.differentiable()
    }

    /// The network, if the model is one.
    #[must_use]
    pub fn network(&self) -> Option<&Mlp> {
        self.model.network()
    }

    /// How the model was trained, if it was trained here.
    #[must_use]
    pub fn training(&self) -> Option<&Training> {
        self.training.as_deref()
    }

    /// The name of the model that changes with its weights.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let seen = || Fingerprint::of_scores(&self.points, &self.scores);
        self.model.identity().unwrap_or_else(seen)
    }

    /// `m(x)` of other rows of the same schema.
    pub fn score(&self, rows: &[Row]) -> Result<Vec<f32>> {
        Ok(self.model().score(&self.encoder.encode_rows(rows)?))
    }

    /// The rows that train, in their order; all rows, where the data name none.
    fn training_rows(&self) -> Vec<usize> {
        self.reference.training_rows()
    }

    /// Writes the network as an ONNX file, with the schema and the encoder in its metadata.
    pub fn write_model(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let bytes = self.to_onnx()?;
        write_whole(path, overwrite, |out| out.write_all(&bytes))
    }

    /// The bytes of that file.
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        let Some(network) = self.network() else {
            return Err(Error::InvalidModel("only networks can be written".to_owned()));
        };
        Ok(onnx::write(network, &self.export_metadata()?))
    }

    /// What goes with a network into its file: the schema and the encoder.
    fn export_metadata(&self) -> Result<ExportMetadata> {
        ExportMetadata::of(self.schema(), &self.encoder)
    }
}
