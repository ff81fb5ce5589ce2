//! The work behind the service: models, a bounded compute pool, batches and jobs.
//!
//! This module is independent of HTTP. A question is about rows of a [`Served`] model; the `pool`
//! answers questions of many clients in batches. Long work is a job (`jobs`).

mod audit;
pub(crate) mod error;
mod given;
mod import;
pub(crate) mod jobs;
mod kept;
mod own;
mod playground;
pub(crate) mod pool;
pub(crate) mod questions;
mod recording;
mod served;
mod store;
mod training;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::metrics::histogram::Histogram;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tyrex::change::ModelChange;
use tyrex::explain::{Applicant, SERVED_MODELS};

pub(crate) use audit::{Contender, GateQuestion};
pub use error::{Error, Result};
pub(crate) use import::Upload;
pub use own::{Loaded, OwnModel};
pub(crate) use playground::{MapAnswer, MapQuestion, PathsAnswer, PathsQuestion};
pub(crate) use recording::Recording;
pub(crate) use served::EnsembleSummary;
pub use served::Served;

use jobs::Jobs;
use pool::{Pool, Question, Stop};
use store::Store;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;

/// The limits of the engine, and its initial model.
///
/// | name | default | meaning |
/// |---|---|---|
/// | `threads` | the machine's cores | threads that answer; jobs have as many of their own |
/// | `questions` | 2048 | questions that may wait; further ones are rejected |
/// | `dataset` | none | a named data set to train a model on, unless it is trained already |
/// | `data_dir` | none | the folder that is searched first for named data sets |
/// | `ensemble` | 61 | models to retrain for this model |
/// | `change` | `reinitialise` | how retrained models differ, of uploaded models too |
/// | `models` | 32 | served models |
/// | `jobs` | 100 | unfinished jobs |
/// | `keep_jobs` | 7 days | how long finished jobs, and the personal data in them, are kept |
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Threads that answer.
    pub threads: usize,
    /// Questions that may wait.
    pub questions: usize,
    /// A named data set to train a model on.
    pub dataset: Option<String>,
    /// The folder that is searched first for named data sets.
    pub data_dir: Option<PathBuf>,
    /// Models to retrain for this model.
    pub ensemble: usize,
    /// How retrained models differ from their model. A model of the database keeps the change that
    /// it was imported with.
    pub change: ModelChange,
    /// Training parameters of the models that the service is started with, by their names in
    /// files; the others are those of the model's recipe, or the defaults.
    pub training: Map<String, Value>,
    /// Maximum number of served models.
    pub models: usize,
    /// Maximum number of unfinished jobs.
    pub jobs: usize,
    /// How long finished jobs are kept.
    pub keep_jobs: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            questions: 2048,
            dataset: None,
            data_dir: None,
            ensemble: SERVED_MODELS,
            change: ModelChange::default(),
            training: Map::new(),
            models: 32,
            jobs: 100,
            keep_jobs: Duration::from_hours(7 * 24),
        }
    }
}

/// The models, the threads and the jobs of one service.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    store: Store,
    ledger: Ledger,
    pool: Pool,
    models: RwLock<Models>,
    jobs: Jobs,
    playground: playground::Playground,
    /// One permit, to read one uploaded model file at a time.
    reading: Arc<Semaphore>,
    /// Set when the service shuts down.
    parking: Stop,
}

#[derive(Debug, Default)]
struct Models {
    served: BTreeMap<String, Arc<Served>>,
    active: Option<String>,
}

impl Engine {
    /// Restores the models and jobs of the database, and trains the model of the named data set if
    /// it is missing. Models are retrained in the background.
    pub async fn start(
        config: EngineConfig,
        database: Database,
        ledger: Ledger,
    ) -> Result<Arc<Self>> {
        let engine = Arc::new(Self {
            store: Store::new(database),
            ledger,
            pool: Pool::new(config.threads, config.questions)?,
            models: RwLock::default(),
            jobs: Jobs::default(),
            playground: playground::Playground::default(),
            reading: Arc::new(Semaphore::new(1)),
            parking: Stop::default(),
            config,
        });
        engine.restore_models().await?;
        engine.start_dataset().await?;
        engine.start_jobs().await?;
        Ok(engine)
    }

    /// Stops the work: jobs and training continue after the next start.
    pub async fn park(&self) {
        self.parking.set();
        self.jobs.parked().await;
    }

    /// The number of waiting questions.
    #[must_use]
    pub fn queue_length(&self) -> usize {
        self.pool.waiting()
    }

    /// The batch sizes so far.
    pub(crate) fn batches(&self) -> Histogram {
        self.pool.batches()
    }

    /// The number of answering threads, and of busy ones.
    #[must_use]
    pub fn threads(&self) -> (usize, usize) {
        (self.pool.threads(), self.pool.busy())
    }

    /// The number of answered pieces, and of calls of the library for them.
    #[must_use]
    pub fn answered(&self) -> (u64, u64) {
        self.pool.answered()
    }

    /// The number of unfinished jobs.
    #[must_use]
    pub fn unfinished_jobs(&self) -> usize {
        self.jobs.unfinished()
    }

    /// Whether the initial model is ready, if there is one.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.parking.is_set() && (self.config.dataset.is_none() || self.active().is_some())
    }

    /// All models, by name.
    pub(crate) fn models(&self) -> Vec<Arc<Served>> {
        self.read_models(|models| models.served.values().cloned().collect())
    }

    /// The active model.
    pub(crate) fn active(&self) -> Option<Arc<Served>> {
        self.read_models(|models| models.served.get(models.active.as_ref()?).cloned())
    }

    /// The model with this name, or the active one.
    pub(crate) fn model(&self, id: Option<&str>) -> Result<Arc<Served>> {
        match id {
            Some(id) => {
                let found = self.read_models(|models| models.served.get(id).cloned());
                found.ok_or_else(|| Error::absent("model", id))
            }
            None => self.active().ok_or_else(|| {
                Error::Conflict("no model is active; upload one or name one".to_owned())
            }),
        }
    }

    fn read_models<T>(&self, read: impl FnOnce(&Models) -> T) -> T {
        read(&self.models.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change_models<T>(&self, change: impl FnOnce(&mut Models) -> T) -> T {
        change(&mut self.models.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a model the active one.
    pub(crate) async fn activate(&self, id: &str) -> Result<Arc<Served>> {
        let served = self.model(Some(id))?;
        self.store.activate(id).await?;
        self.change_models(|models| models.active = Some(id.to_owned()));
        Ok(served)
    }

    /// Removes a model. Fails for the active one and for one with unfinished jobs.
    pub(crate) async fn remove(&self, id: &str) -> Result<()> {
        let served = self.model(Some(id))?;
        if self.jobs.any_unfinished(id) {
            let problem = format!("unfinished jobs need the model `{id}`");
            return Err(Error::Conflict(problem));
        }
        let is_active = |models: &Models| models.active.as_deref() == Some(id);
        if self.read_models(|models| is_active(models) && models.served.len() > 1) {
            let problem = format!("the model `{id}` is active; activate another one first");
            return Err(Error::Conflict(problem));
        }
        served.removed.set();
        self.store.remove_model(id).await?;
        self.change_models(|models| {
            models.served.remove(id);
            models.active.take_if(|active| active == id);
        });
        Ok(())
    }

    /// Asks about rows.
    pub(crate) async fn ask<Q: Question>(
        &self,
        model: &Arc<Served>,
        question: Q,
        applicants: Vec<Applicant>,
    ) -> Result<Vec<Q::Answer>> {
        self.pool.ask(model, question, applicants).await
    }

    /// Runs other work for a waiting client.
    pub(crate) async fn run_now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.pool.run_now(work).await
    }

    /// The current time.
    fn now() -> Timestamp {
        Timestamp::now()
    }
}
