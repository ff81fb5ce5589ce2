//! Audits the open promises of the ledger under candidate models.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tyrex::Explainer;
use tyrex::counterfactual::Tick;
use tyrex::data::Schema;
use tyrex::explain::{
    Gate, GateCandidate, GateReport, Meaning, Reference, WrittenPromise, embedded_schema,
    import_bytes,
};
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex_ledger::ledger::Entry;

use super::error::{Error, Result};
use super::import::check_size;
use super::pool::Stop;
use super::{Engine, Served};

/// A candidate model.
#[derive(Debug, Clone)]
pub(crate) enum Contender {
    /// A served model.
    Served(Arc<Served>),
    /// A model file and its name.
    File {
        /// Its name.
        name: String,
        /// Its bytes.
        onnx: Vec<u8>,
    },
}

/// The question.
#[derive(Debug, Clone)]
pub(crate) struct GateQuestion {
    pub(crate) contenders: Vec<Contender>,
    pub(crate) gate: Gate,
}

impl Engine {
    /// The open promises, as recorded. Those of earlier versions do not name the promised outcome;
    /// the model they were given for does, if it is still served.
    pub(crate) async fn open_promises(&self) -> Result<Vec<WrittenPromise>> {
        let entries = self.ledger.open_promises().await?;
        let models = self.models();
        let promised_by = |entry: &Entry| {
            let model = &entry.promise()?.model;
            // A fingerprint is one of weights: a later model may have the same ones and another
            // meaning.
            let same = models.iter().filter(|served| served.fingerprint() == model);
            let served = same.min_by_key(|served| served.created())?;
            Some(Meaning::of(served.explainer().schema()))
        };
        let written = |entry: &Entry| {
            let mut written = entry.written()?;
            written.meaning = written.meaning.or_else(|| promised_by(entry));
            Some(written)
        };
        Ok(entries.iter().filter_map(written).collect())
    }

    /// The audit of the ledger's open promises under the candidates.
    pub(crate) async fn judge(&self, question: GateQuestion) -> Result<GateReport> {
        let promises = self.open_promises().await?;
        let active = self.active();
        let is_file = |contender: &Contender| matches!(contender, Contender::File { .. });
        let files = question.contenders.iter().any(is_file);
        let alone = files.then(|| self.model_reading_permit()).transpose()?;
        self.pool
            .run_now(move |stop| question.judged(active.as_deref(), &promises, alone, stop, || {}))
            .await
    }
}

impl GateQuestion {
    /// The gate's report. `step` is called for two answers per promise and candidate. Files are
    /// read only while holding `alone`.
    pub(super) fn judged(
        &self,
        active: Option<&Served>,
        promises: &[WrittenPromise],
        alone: Option<OwnedSemaphorePermit>,
        stop: &Stop,
        step: impl Fn() + Sync,
    ) -> Result<GateReport> {
        let read: Vec<Read<'_>> = self
            .contenders
            .iter()
            .enumerate()
            .map(|(place, contender)| contender.read(place, active, promises))
            .collect::<Result<_>>()?;
        drop(alone);
        let candidates: Vec<GateCandidate<'_>> = read.iter().map(Read::candidate).collect();
        let report = self.gate.judge(&candidates, promises, |tick| {
            if tick == Tick::Answered {
                step();
            }
            stop.go_on()
        })?;
        if stop.is_set() {
            let what = "the search for repairs was stopped".to_owned();
            return Err(tyrex::Error::Cancelled(what).into());
        }
        Ok(report)
    }
}

/// A candidate, ready for the audit.
enum Read<'a> {
    Served(&'a Served),
    File { name: &'a str, explainer: Box<Explainer>, has_only_promises: bool },
}

impl Read<'_> {
    fn candidate(&self) -> GateCandidate<'_> {
        match self {
            Self::Served(served) => GateCandidate {
                name: served.id().to_owned(),
                explainer: served.explainer(),
                has_only_promises: false,
            },
            Self::File { name, explainer, has_only_promises } => GateCandidate {
                name: (*name).to_owned(),
                explainer,
                has_only_promises: *has_only_promises,
            },
        }
    }
}

impl Contender {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Served(served) => served.id(),
            Self::File { name, .. } => name,
        }
    }

    /// Reads a model file. Its data rows are those of the active model if it takes the same
    /// features; otherwise the promises are its only rows.
    fn read<'a>(
        &'a self,
        place: usize,
        active: Option<&Served>,
        promises: &[WrittenPromise],
    ) -> Result<Read<'a>> {
        let (name, onnx) = match self {
            Self::Served(served) => return Ok(Read::Served(served)),
            Self::File { name, onnx } => (name, onnx),
        };
        let wrong = |error: tyrex::Error| {
            Error::field(format!("model[{place}]"), format!("{name}: {error}"))
        };
        let options = ImportOptions::default();
        let own = match ModelFile::from_bytes(onnx.clone(), &options) {
            Ok(model) => embedded_schema(&model).map_err(wrong)?,
            // With three or more classes the schema names the favourable one.
            Err(error) if active.is_none() => return Err(wrong(error)),
            Err(_) => None,
        };
        let (data, has_only_promises) = match (own, active.map(Served::explainer)) {
            (Some(own), Some(active)) if is_of(&own, active.schema()) => {
                (active.reference().clone(), false)
            }
            (None, Some(active)) => (active.reference().clone(), false),
            (Some(own), _) => (Reference::of_promises(&own, promises).map_err(wrong)?, true),
            (None, None) => {
                let problem = format!("{name}: it has no schema, and no model is active");
                return Err(Error::field(format!("model[{place}]"), problem));
            }
        };
        let model = import_bytes(onnx, data.schema(), &options).map_err(wrong)?;
        check_size(&model).map_err(|problem| wrong(tyrex::Error::InvalidModel(problem)))?;
        let explainer = Box::new(Explainer::with_model(data, model).map_err(wrong)?);
        Ok(Read::File { name, explainer, has_only_promises })
    }
}

/// Whether two schemas have the same features.
fn is_of(one: &Schema, other: &Schema) -> bool {
    let features = |schema: &Schema| {
        let features = schema.features.iter();
        features.map(|each| (each.name.clone(), each.kind.clone())).collect::<Vec<_>>()
    };
    one.model == other.model && features(one) == features(other)
}
