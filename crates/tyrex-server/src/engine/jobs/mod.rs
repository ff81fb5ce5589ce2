//! Jobs: long work that runs in the background and continues after a restart.
//!
//! One job runs at a time, on the background threads. A job that gives advice stores every finished
//! row; other jobs start over. The personal data of a job is removed when the job expires.

mod audit;
mod calibrate;
mod explain;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use audit::AuditWork;
pub(crate) use calibrate::CalibrateWork;
pub(crate) use explain::{ExplainAnswer, ExplainWork, KeptCertifying, KeptQuestion, KeptRows};

use super::error::{Error, Result};
use super::pool::Stop;
use super::store::StoredJob;
use super::{Engine, Served};
use crate::problem::Problem;

/// The interval of progress reports.
const BEAT: Duration = Duration::from_millis(200);
/// The interval between removals of expired jobs.
const TIDYING: Duration = Duration::from_mins(1);

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobKind {
    /// Advice for many rows.
    Explain,
    /// A threshold for a required validity.
    Calibrate,
    /// The ledger's promises under other models.
    Audit,
}

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobState {
    /// It waits for its turn.
    Queued,
    /// It runs.
    Running,
    /// The service is shutting down; the job continues after the next start.
    Parked,
    /// It is finished and has a result.
    Done,
    /// It was cancelled.
    Cancelled,
    /// It failed; `problem` says why.
    Failed,
}

impl JobState {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Parked, Self::Done, Self::Cancelled, Self::Failed];

    /// Whether the state is final.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }

    /// The name, as in documents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Parked => "parked",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Queued, Self::Running, Self::Parked, Self::Done, Self::Cancelled, Self::Failed]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// A job and its progress.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Job {
    /// Its name.
    pub(crate) id: Uuid,
    /// Its description.
    pub(crate) kind: JobKind,
    /// Its state.
    pub(crate) state: JobState,
    /// Its model.
    pub(crate) model: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created: Timestamp,
    /// The finished part: rows of an explanation, steps of another job.
    pub(crate) done: usize,
    /// The total.
    pub(crate) total: usize,
    /// The estimated remaining time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seconds_left: Option<f64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// The token that started it; jobs of a service without tokens, and of earlier versions, have
    /// none.
    #[serde(skip)]
    pub(crate) owner: Option<String>,
}

/// The question of a job, as stored in the database.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Work {
    /// Advice for many rows.
    Explain(Box<ExplainWork>),
    /// A threshold for a required validity.
    Calibrate(CalibrateWork),
    /// The ledger's promises under other models.
    Audit(AuditWork),
}

impl Work {
    fn kind(&self) -> JobKind {
        match self {
            Self::Explain(_) => JobKind::Explain,
            Self::Calibrate(_) => JobKind::Calibrate,
            Self::Audit(_) => JobKind::Audit,
        }
    }
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum JobResult {
    /// Advice.
    Explain(Box<ExplainAnswer>),
    /// A document of the library.
    Document(JobKind, Box<RawValue>),
}

/// A job in memory.
#[derive(Debug)]
pub(super) struct JobEntry {
    id: Uuid,
    model: String,
    progress: watch::Sender<Job>,
    stop: Stop,
    /// Set by `stop`, or when the service shuts down.
    halt: Stop,
    /// Steps of the current piece of work.
    steps: AtomicUsize,
    /// The work, until it is done.
    work: Mutex<Option<Arc<Work>>>,
}

impl JobEntry {
    fn job(&self) -> Job {
        self.progress.borrow().clone()
    }

    fn state(&self) -> JobState {
        self.progress.borrow().state
    }

    /// Counts a step, and returns whether to continue.
    pub(super) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// All jobs of the database.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// By their ids, which sort by time.
    entries: Mutex<BTreeMap<Uuid, Arc<JobEntry>>>,
    arrived: Arc<Notify>,
    runner: Mutex<Option<JoinHandle<()>>>,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<JobEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, id: Uuid) -> Result<Arc<JobEntry>> {
        self.lock().get(&id).cloned().ok_or_else(|| Error::absent("job", id.to_string()))
    }

    /// The finished ones.
    fn finished(&self) -> Vec<Uuid> {
        self.lock().values().filter(|entry| entry.state().is_final()).map(|it| it.id).collect()
    }

    /// The next one to run.
    fn next(&self) -> Option<Arc<JobEntry>> {
        self.lock().values().find(|entry| entry.state() == JobState::Queued).cloned()
    }

    pub(super) fn unfinished(&self) -> usize {
        self.lock().values().filter(|entry| !entry.state().is_final()).count()
    }

    pub(super) fn any_unfinished(&self, model: &str) -> bool {
        let waits = |entry: &Arc<JobEntry>| entry.model == model && !entry.state().is_final();
        self.lock().values().any(waits)
    }

    /// Waits until the runner has stopped.
    pub(super) async fn parked(&self) {
        self.arrived.notify_one();
        let runner = self.runner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runner) = runner {
            // A runner that panicked has stopped too.
            let _ = runner.await;
        }
        // Followers of a waiting job learn that it continues after the next start.
        for entry in self.lock().values().filter(|entry| !entry.state().is_final()) {
            entry.progress.send_modify(|job| job.state = JobState::Parked);
        }
    }
}

impl Engine {
    /// Loads the jobs of the database and continues the unfinished ones.
    pub(super) async fn start_jobs(self: &Arc<Self>) -> Result<()> {
        for stored in self.store.jobs().await? {
            match restored(&stored) {
                Some(entry) => {
                    self.jobs.lock().insert(entry.id, Arc::new(entry));
                }
                None => tracing::error!(job = stored.id, "a job cannot be restored"),
            }
        }
        let (engine, arrived) = (Arc::downgrade(self), Arc::clone(&self.jobs.arrived));
        let runner = tokio::spawn(run_all(engine, arrived));
        *self.jobs.runner.lock().unwrap_or_else(PoisonError::into_inner) = Some(runner);
        Ok(())
    }

    /// Adds a job of an owner.
    pub(crate) async fn submit(
        &self,
        served: &Served,
        work: Work,
        total: usize,
        owner: Option<String>,
    ) -> Result<Job> {
        if self.parking.is_set() {
            return Err(Error::Ending);
        }
        if self.jobs.unfinished() >= self.config.jobs {
            return Err(Error::Busy {
                what: "too many jobs are waiting",
                retry_after: Duration::from_mins(1),
            });
        }
        let job = Job {
            id: tyrex_ledger::new_id(),
            kind: work.kind(),
            state: JobState::Queued,
            model: served.id().to_owned(),
            created: Self::now(),
            done: 0,
            total,
            seconds_left: None,
            problem: None,
            owner,
        };
        let question = serde_json::to_string(&work)
            .map_err(|error| Error::Broken(format!("a job without text: {error}")))?;
        self.store
            .add_job(&StoredJob {
                id: job.id.to_string(),
                kind: kind_name(job.kind).to_owned(),
                state: job.state.name().to_owned(),
                model: job.model.clone(),
                question,
                total,
                created: job.created,
                finished: None,
                problem: None,
                owner: job.owner.clone(),
                rows: 0,
            })
            .await?;
        self.jobs.lock().insert(job.id, Arc::new(entry(job.clone(), Some(work))));
        self.jobs.arrived.notify_one();
        Ok(job)
    }

    /// All jobs, the newest first.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        self.jobs.lock().values().rev().map(|entry| entry.job()).collect()
    }

    /// A job with its updates.
    pub(crate) async fn job(&self, id: Uuid) -> Result<watch::Receiver<Job>> {
        Ok(self.present(id).await?.progress.subscribe())
    }

    /// Cancels a job, or removes a finished one and returns `None`.
    pub(crate) async fn cancel(&self, id: Uuid) -> Result<Option<Job>> {
        let entry = self.present(id).await?;
        if entry.state().is_final() {
            self.store.remove_job(&id.to_string()).await?;
            self.jobs.lock().remove(&id);
            return Ok(None);
        }
        entry.stop.set();
        // A running job notices the flag soon, and updates its own state.
        if entry.state() != JobState::Running {
            self.end(&entry, JobState::Cancelled, None).await?;
        }
        Ok(Some(entry.job()))
    }

    /// The result of a job.
    pub(crate) async fn result(&self, id: Uuid) -> Result<JobResult> {
        let job = self.present(id).await?.job();
        if job.state != JobState::Done {
            let problem = format!("the job is {}, not done", job.state.name());
            return Err(Error::Conflict(problem));
        }
        if job.kind == JobKind::Explain {
            return self.explained(id).await.map(|answer| JobResult::Explain(Box::new(answer)));
        }
        let result = self.store.result(&id.to_string()).await?;
        let result = result.and_then(|text| RawValue::from_string(text).ok());
        let result = result.ok_or_else(|| Error::Broken("a job without a result".to_owned()))?;
        Ok(JobResult::Document(job.kind, result))
    }

    /// Drops finished jobs that are no longer in the database: `tyrex ledger forget` may have
    /// removed them.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        // The order matters: a job is added to the database before it is added here.
        let finished = self.jobs.finished();
        if finished.is_empty() {
            return Ok(());
        }
        let there = self.store.job_ids().await?;
        let mut entries = self.jobs.lock();
        for id in finished.iter().filter(|id| !there.contains(&id.to_string())) {
            entries.remove(id);
        }
        Ok(())
    }

    /// The job with this id, if it exists.
    async fn present(&self, id: Uuid) -> Result<Arc<JobEntry>> {
        if self.jobs.entry(id)?.state().is_final() {
            self.catch_up().await?;
        }
        self.jobs.entry(id)
    }

    /// Runs one job until it ends or the service shuts down.
    async fn run(&self, entry: &Arc<JobEntry>) {
        if let Err(error) = self.begin(entry).await {
            tracing::error!(job = %entry.id, %error, "cannot start the job");
            // The database may be back soon.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return;
        }
        let work = entry.work.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let done = match work.as_deref() {
            Some(Work::Explain(work)) => self.run_explain(entry, work).await,
            Some(Work::Calibrate(work)) => self.run_calibrate(entry, work).await,
            Some(Work::Audit(work)) => self.run_audit(entry, work).await,
            None => Err(Error::Broken("a job without work".to_owned())),
        };
        let (state, problem) = match done {
            Ok(()) => (JobState::Done, None),
            Err(_) if entry.stop.is_set() => (JobState::Cancelled, None),
            Err(_) if self.parking.is_set() => (JobState::Parked, None),
            Err(error) => (JobState::Failed, Some(Problem::from(error).detail().to_owned())),
        };
        if let Err(error) = self.end(entry, state, problem).await {
            tracing::error!(job = %entry.id, %error, "cannot store the state of the job");
        }
    }

    async fn begin(&self, entry: &JobEntry) -> Result<()> {
        self.store.set_job(&entry.id.to_string(), JobState::Running.name(), None, None).await?;
        entry.progress.send_modify(|job| job.state = JobState::Running);
        Ok(())
    }

    /// Ends a job, finally or until the next start.
    async fn end(&self, entry: &JobEntry, state: JobState, problem: Option<String>) -> Result<()> {
        let finished = state.is_final().then(Self::now);
        let kept = self
            .store
            .set_job(&entry.id.to_string(), state.name(), finished, problem.as_deref())
            .await;
        if state.is_final() {
            entry.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        entry.progress.send_modify(|job| {
            job.state = state;
            job.seconds_left = None;
            job.problem = problem;
            if state == JobState::Done {
                job.done = job.total;
            }
        });
        kept
    }

    /// The model of a job, if it has not been replaced.
    fn model_of(&self, entry: &JobEntry, fingerprint: &str) -> Result<Arc<Served>> {
        let served = self.model(Some(&entry.model))?;
        if served.fingerprint() == fingerprint {
            return Ok(served);
        }
        Err(Error::Conflict(format!("the model `{}` has been replaced", entry.model)))
    }

    /// Waits for a piece of work and reports its progress.
    async fn told<T>(
        &self,
        entry: &JobEntry,
        before: usize,
        pace: &Pace,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        entry.steps.store(0, Ordering::Relaxed);
        let mut work = std::pin::pin!(work);
        loop {
            let ended = tokio::time::timeout(BEAT, &mut work).await;
            let done = before + entry.steps.load(Ordering::Relaxed);
            entry.progress.send_if_modified(|job| {
                let changed = job.done != done.min(job.total);
                job.done = done.min(job.total);
                job.seconds_left = pace.seconds_left(job.done, job.total);
                changed
            });
            if let Ok(ended) = ended {
                return ended;
            }
        }
    }

    /// Removes expired jobs.
    async fn tidy(&self) {
        let kept = jiff::SignedDuration::try_from(self.config.keep_jobs).unwrap_or_default();
        let Ok(before) = Self::now().checked_sub(kept) else { return };
        match self.store.remove_finished(before).await {
            Ok(removed) => {
                for id in removed.iter().filter_map(|id| Uuid::parse_str(id).ok()) {
                    self.jobs.lock().remove(&id);
                }
            }
            Err(error) => tracing::error!(%error, "cannot remove old jobs"),
        }
        if let Err(error) = self.catch_up().await {
            tracing::error!(%error, "cannot list the jobs of the database");
        }
    }
}

/// The speed of a job.
struct Pace {
    started: Instant,
    before: usize,
}

impl Pace {
    fn new(before: usize) -> Self {
        Self { started: Instant::now(), before }
    }

    fn seconds_left(&self, done: usize, total: usize) -> Option<f64> {
        let own = done.checked_sub(self.before).filter(|&own| own > 0)?;
        let each = self.started.elapsed().as_secs_f64() / own as f64;
        Some((each * total.saturating_sub(done) as f64 * 10.0).round() / 10.0)
    }
}

/// Runs jobs one at a time until the service shuts down.
async fn run_all(engine: Weak<Engine>, arrived: Arc<Notify>) {
    let mut tidied: Option<Instant> = None;
    loop {
        {
            let Some(engine) = engine.upgrade() else { return };
            if engine.parking.is_set() {
                return;
            }
            if tidied.is_none_or(|tidied| tidied.elapsed() >= TIDYING) {
                engine.tidy().await;
                tidied = Some(Instant::now());
            }
            if let Some(next) = engine.jobs.next() {
                engine.run(&next).await;
                continue;
            }
        }
        // No lock is held while waiting.
        let _ = tokio::time::timeout(TIDYING, arrived.notified()).await;
    }
}

fn kind_name(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Explain => "explain",
        JobKind::Calibrate => "calibrate",
        JobKind::Audit => "audit",
    }
}

fn entry(job: Job, work: Option<Work>) -> JobEntry {
    JobEntry {
        id: job.id,
        model: job.model.clone(),
        progress: watch::Sender::new(job),
        stop: Stop::default(),
        halt: Stop::default(),
        steps: AtomicUsize::new(0),
        work: Mutex::new(work.map(Arc::new)),
    }
}

/// Restores a job of the database: it waits again, unless it is finished.
fn restored(stored: &StoredJob) -> Option<JobEntry> {
    let state = JobState::named(&stored.state)?;
    let work: Work = serde_json::from_str(&stored.question).ok()?;
    let job = Job {
        id: Uuid::parse_str(&stored.id).ok()?,
        kind: work.kind(),
        state: if state.is_final() { state } else { JobState::Queued },
        model: stored.model.clone(),
        created: stored.created,
        done: if state == JobState::Done { stored.total } else { stored.rows },
        total: stored.total,
        seconds_left: None,
        problem: stored.problem.clone(),
        owner: stored.owner.clone(),
    };
    Some(entry(job, (!state.is_final()).then_some(work)))
}
