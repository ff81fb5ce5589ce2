//! The work behind the service: models, a bounded compute pool, batches and jobs.
//!
//! Nothing here knows HTTP. A [`Served`] model is asked a question about rows; the `pool`
//! answers questions of many clients together. What takes minutes is a job (`jobs`).

pub(crate) mod error;
mod gate;
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
use tokio::sync::Semaphore;
use tyrex::explain::{Applicant, SERVED_MODELS};

pub use error::{Error, Result};
pub(crate) use gate::{Contender, GateQuestion};
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

/// How much the engine takes on, and what it starts with.
///
/// | name | default | meaning |
/// |---|---|---|
/// | `threads` | the machine's cores | threads that answer; as many work on jobs beside them |
/// | `questions` | 2048 | questions that may wait; the next is refused |
/// | `dataset` | none | a named data set to train a model on, unless that was done before |
/// | `data_dir` | none | the folder where named data sets are looked for first |
/// | `ensemble` | 50 | models that this model is retrained to |
/// | `models` | 32 | models at one time |
/// | `jobs` | 100 | jobs that are not finished |
/// | `keep_jobs` | 7 days | how long finished jobs, and the personal data in them, are kept |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineConfig {
    /// Threads that answer.
    pub threads: usize,
    /// Questions that may wait.
    pub questions: usize,
    /// A named data set to train a model on.
    pub dataset: Option<String>,
    /// The folder where named data sets are looked for first.
    pub data_dir: Option<PathBuf>,
    /// Models that this model is retrained to.
    pub ensemble: usize,
    /// Models at one time.
    pub models: usize,
    /// Jobs that are not finished.
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
    /// One permit: whoever reads model files of strangers.
    reading: Arc<Semaphore>,
    /// Set when the service ends.
    parking: Stop,
}

#[derive(Debug, Default)]
struct Models {
    served: BTreeMap<String, Arc<Served>>,
    active: Option<String>,
}

impl Engine {
    /// Brings back the models and jobs of the database, and trains the named data set's model if
    /// it is not among them. Retrained models come in the background.
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

    /// Ends the work: jobs and training stop where they are, to go on after the next start.
    pub async fn park(&self) {
        self.parking.set();
        self.jobs.parked().await;
    }

    /// The number of questions that wait for a thread.
    #[must_use]
    pub fn queue_length(&self) -> usize {
        self.pool.waiting()
    }

    /// The rows that were answered in one go, so far.
    pub(crate) fn batches(&self) -> Histogram {
        self.pool.batches()
    }

    /// The number of threads that answer, and how many of them are at work.
    #[must_use]
    pub fn threads(&self) -> (usize, usize) {
        (self.pool.threads(), self.pool.busy())
    }

    /// Pieces of questions that were answered, and how often the library was called for them.
    #[must_use]
    pub fn answered(&self) -> (u64, u64) {
        self.pool.answered()
    }

    /// The number of jobs that are not finished.
    #[must_use]
    pub fn unfinished_jobs(&self) -> usize {
        self.jobs.unfinished()
    }

    /// Whether there is a model to ask, if one was asked for.
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

    /// The model of a name, or the active one.
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

    /// Removes a model. The active one, and one that jobs wait for, stay.
    pub(crate) async fn remove(&self, id: &str) -> Result<()> {
        let served = self.model(Some(id))?;
        if self.jobs.any_unfinished(id) {
            let problem = format!("jobs that are not finished need the model `{id}`");
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

    /// Does something else that somebody waits for.
    pub(crate) async fn run_now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.pool.run_now(work).await
    }

    /// The moment.
    fn now() -> Timestamp {
        Timestamp::now()
    }
}
