//! The compute pool: a fixed number of threads that answer questions about rows.
//!
//! Waiting questions of the same kind, model and terms are answered in one batch. A free thread
//! takes the waiting questions at once and does not wait for more. A large question is split into
//! pieces, so that other questions run in between.
//!
//! Every thread answers by itself: it is a rayon pool of one thread. Long work runs on a separate
//! rayon pool with as many threads, and the operating system shares the cores.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tyrex::explain::Applicant;

use super::Served;
use super::error::{Error, Result};

/// A question about rows of a model. Equal questions are answered together.
pub(crate) trait Question: PartialEq + Send + Sync + 'static {
    /// The answer for one row.
    type Answer: Send + 'static;

    /// Maximum number of rows in a batch.
    const AT_ONCE: usize;

    /// The answers, one per row; each must not depend on the other rows.
    fn answer(
        &self,
        model: &Served,
        applicants: &[Applicant],
        go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Self::Answer>>;
}

/// A flag that cancels work without a waiting client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag for the library.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Sets the flag when the waiting future is dropped.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(pub(crate) Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Some rows of one question.
trait Piece: Send {
    fn rows(&self) -> usize;
    fn is_stopped(&self) -> bool;
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    /// Whether both can be answered in one batch.
    fn joins(&self, other: &dyn Piece) -> bool;
    /// Maximum number of rows in a batch.
    fn at_once(&self) -> usize;
    /// Answers this piece and the others of its batch.
    fn answer(self: Box<Self>, others: Vec<Box<dyn Piece>>);
}

struct Asked<Q: Question> {
    model: Arc<Served>,
    question: Arc<Q>,
    applicants: Vec<Applicant>,
    stop: Stop,
    reply: oneshot::Sender<Result<Vec<Q::Answer>>>,
}

impl<Q: Question> Piece for Asked<Q> {
    fn rows(&self) -> usize {
        self.applicants.len()
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn joins(&self, other: &dyn Piece) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| {
            Arc::ptr_eq(&self.model, &other.model) && self.question == other.question
        })
    }

    fn at_once(&self) -> usize {
        Q::AT_ONCE
    }

    fn answer(self: Box<Self>, others: Vec<Box<dyn Piece>>) {
        let mut pieces = vec![*self];
        let others = others.into_iter().filter_map(|other| other.into_any().downcast().ok());
        pieces.extend(others.map(|other| *other));
        let counts: Vec<usize> = pieces.iter().map(Piece::rows).collect();
        let (model, question) = (Arc::clone(&pieces[0].model), Arc::clone(&pieces[0].question));
        let stops: Vec<Stop> = pieces.iter().map(|piece| piece.stop.clone()).collect();
        let go_on = move || {
            let wanted = stops.iter().any(|stop| !stop.is_set());
            if wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let together: Vec<Applicant> =
            pieces.iter_mut().flat_map(|piece| std::mem::take(&mut piece.applicants)).collect();
        let mut rest = together.as_slice();
        match answered(&*question, &model, &together, &go_on) {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for (piece, count) in pieces.into_iter().zip(counts) {
                    // The client has disconnected.
                    let _ = piece.reply.send(Ok(answers.by_ref().take(count).collect()));
                }
            }
            Err(error) if pieces.len() == 1 => {
                let _ = pieces.remove(0).reply.send(Err(error));
            }
            // One question caused the error; the others must not fail with it.
            Err(_) => {
                for (piece, count) in pieces.into_iter().zip(counts) {
                    let (own, others) = rest.split_at(count);
                    rest = others;
                    let _ = piece.reply.send(answered(&*question, &model, own, &go_on));
                }
            }
        }
    }
}

/// The answers; a panic becomes an error.
fn answered<Q: Question>(
    question: &Q,
    model: &Served,
    applicants: &[Applicant],
    go_on: &(dyn Fn() -> ControlFlow<()> + Sync),
) -> Result<Vec<Q::Answer>> {
    let work = AssertUnwindSafe(|| question.answer(model, applicants, go_on));
    let answers = catch_unwind(work).unwrap_or_else(|_| Err(panicked()))?;
    if answers.len() == applicants.len() {
        return Ok(answers);
    }
    let (got, expected) = (answers.len(), applicants.len());
    Err(Error::Broken(format!("{got} answers for {expected} rows")))
}

fn panicked() -> Error {
    Error::Broken("a panic during the work".to_owned())
}

/// The threads and their queue.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    background: Arc<rayon::ThreadPool>,
    aside: Arc<Semaphore>,
}

struct Shared {
    workers: usize,
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// One permit per question in the pool.
    admission: Arc<Semaphore>,
    limit: usize,
    busy: AtomicUsize,
    /// The number of answered pieces, and of calls of the library for them.
    pieces: AtomicU64,
    calls: AtomicU64,
    /// The time per row in nanoseconds: a running mean.
    row_time: AtomicU64,
    /// Rows per batch.
    batches: Histogram,
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<Box<dyn Piece>>,
    closed: bool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.shared.workers).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool with this number of threads and this limit of questions.
    pub(crate) fn new(threads: usize, questions: usize) -> Result<Self> {
        let threads = threads.max(1);
        let limit = questions.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared {
            workers: threads,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            admission: Arc::new(Semaphore::new(limit)),
            limit,
            busy: AtomicUsize::new(0),
            pieces: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            row_time: AtomicU64::new(1_000_000),
            batches: Histogram::new(BATCHES),
        });
        let no_thread = |error: &dyn std::fmt::Display| {
            Error::Broken(format!("cannot start a thread: {error}"))
        };
        let background = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("background-{index}"))
            .build()
            .map_err(|error| no_thread(&error))?;
        let mut handles = Vec::with_capacity(threads);
        for index in 0..threads {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name(format!("answer-{index}"));
            handles.push(builder.spawn(move || shared.work()).map_err(|error| no_thread(&error))?);
        }
        Ok(Self {
            shared,
            threads: handles,
            background: Arc::new(background),
            aside: Arc::new(Semaphore::new(ASIDE * threads)),
        })
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.shared.workers
    }

    /// The number of waiting pieces.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lock().pieces.len()
    }

    /// The number of busy threads.
    pub(crate) fn busy(&self) -> usize {
        self.shared.busy.load(Ordering::Acquire)
    }

    /// The batch sizes so far.
    pub(crate) fn batches(&self) -> Histogram {
        self.shared.batches.clone()
    }

    /// The number of answered pieces, and of calls of the library for them.
    pub(crate) fn answered(&self) -> (u64, u64) {
        let Shared { pieces, calls, .. } = &*self.shared;
        (pieces.load(Ordering::Relaxed), calls.load(Ordering::Relaxed))
    }

    /// Asks about rows. The work is cancelled if the future is dropped.
    pub(crate) async fn ask<Q: Question>(
        &self,
        model: &Arc<Served>,
        question: Q,
        applicants: Vec<Applicant>,
    ) -> Result<Vec<Q::Answer>> {
        let _admitted = self.admit()?;
        let stop = StopOnDrop::default();
        let question = Arc::new(question);
        let mut answers = Vec::with_capacity(applicants.len());
        let size = applicants.len().div_ceil(self.shared.workers).clamp(1, Q::AT_ONCE);
        let mut rest = applicants.into_iter();
        let mut asked = VecDeque::new();
        loop {
            while asked.len() < self.shared.workers {
                let applicants: Vec<Applicant> = rest.by_ref().take(size).collect();
                if applicants.is_empty() {
                    break;
                }
                let (reply, answer) = oneshot::channel();
                let (model, question) = (Arc::clone(model), Arc::clone(&question));
                let stop = stop.0.clone();
                self.shared.add(Box::new(Asked { model, question, applicants, stop, reply }))?;
                asked.push_back(answer);
            }
            let Some(answer) = asked.pop_front() else { return Ok(answers) };
            answers.extend(answer.await.map_err(|_| Error::Ending)??);
        }
    }

    /// Runs other work for a waiting client, such as reading an uploaded model.
    pub(crate) async fn run_now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let full = Error::Busy {
            what: "too many requests of this kind are in progress",
            retry_after: Duration::from_secs(5),
        };
        let permit = Arc::clone(&self.aside).try_acquire_owned().map_err(|_| full)?;
        let stop = StopOnDrop::default();
        let seen = stop.0.clone();
        self.run_in_background(move || {
            let _permit = permit;
            work(&seen)
        })
        .await
    }

    /// Runs long work on the background threads.
    pub(crate) async fn run_in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let background = Arc::clone(&self.background);
        let work = move || {
            let work = AssertUnwindSafe(|| background.install(work));
            catch_unwind(work).unwrap_or_else(|_| Err(panicked()))
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(panicked()))
    }

    /// A permit for one question, if one is free.
    fn admit(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.shared.admission).try_acquire_owned().map_err(|_| {
            let row = Duration::from_nanos(self.shared.row_time.load(Ordering::Relaxed));
            let waiting = u32::try_from(self.shared.limit / self.shared.workers);
            let retry_after = row.saturating_mul(waiting.unwrap_or(u32::MAX));
            Error::Busy {
                what: "the queue is full",
                retry_after: retry_after.clamp(Duration::from_secs(1), Duration::from_mins(1)),
            }
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        queue.pieces.clear();
        drop(queue);
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // The work catches every panic.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, piece: Box<dyn Piece>) -> Result<()> {
        let mut queue = self.lock();
        if queue.closed {
            return Err(Error::Ending);
        }
        queue.pieces.push_back(piece);
        drop(queue);
        self.arrived.notify_one();
        Ok(())
    }

    /// The loop of a thread.
    fn work(&self) {
        // The library sees a pool of this thread only; the other threads answer other questions.
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        if let Err(error) = &alone {
            tracing::error!(%error, "an answering thread shares the global pool");
        }
        while let Some((first, others)) = self.next() {
            let rows = first.rows() + others.iter().map(|piece| piece.rows()).sum::<usize>();
            self.batches.observe(rows as f64);
            self.pieces.fetch_add(1 + others.len() as u64, Ordering::Relaxed);
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.busy.fetch_add(1, Ordering::Release);
            let started = Instant::now();
            first.answer(others);
            let each = started.elapsed().as_nanos() as u64 / rows.max(1) as u64;
            let mean = self.row_time.load(Ordering::Relaxed);
            self.row_time.store((15 * mean + each) / 16, Ordering::Relaxed);
            self.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The next batch: the first piece, with others that it can be answered with.
    #[expect(clippy::type_complexity, reason = "a piece and those it joins")]
    fn next(&self) -> Option<(Box<dyn Piece>, Vec<Box<dyn Piece>>)> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            while let Some(first) = queue.pieces.pop_front() {
                if first.is_stopped() {
                    continue;
                }
                let others = self.company(&*first, &mut queue.pieces);
                return Some((first, others));
            }
            queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The pieces to answer with the first, leaving enough for the other threads.
    fn company(
        &self,
        first: &dyn Piece,
        pieces: &mut VecDeque<Box<dyn Piece>>,
    ) -> Vec<Box<dyn Piece>> {
        let joining: Vec<usize> = (0..pieces.len().min(LOOKED_AT))
            .filter(|&index| first.joins(&*pieces[index]))
            .collect();
        let share = (joining.len() + 1).div_ceil(self.workers) - 1;
        let mut rows = first.rows();
        let mut taken = Vec::new();
        // From the back, so that the other positions do not change.
        let mut chosen: Vec<usize> = joining
            .into_iter()
            .take(share)
            .take_while(|&index| {
                rows += pieces[index].rows();
                rows <= first.at_once()
            })
            .collect();
        while let Some(index) = chosen.pop() {
            taken.extend(pieces.remove(index));
        }
        taken.reverse();
        taken
    }
}

/// Buckets of batch sizes, in rows.
const BATCHES: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1024.0];

/// Maximum amount of other work in progress, per thread.
const ASIDE: usize = 4;
/// Maximum number of pieces to examine for a batch.
const LOOKED_AT: usize = 256;
