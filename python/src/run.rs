//! Long work: without the interpreter's lock, with progress, and stopped by Ctrl-C.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error;

/// The interval of checks for Ctrl-C and of progress reports.
const BEAT: Duration = Duration::from_millis(50);

/// The shared state of the work and the waiting thread.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
}

impl Watch {
    /// Sets the total.
    pub(crate) fn expect(&self, total: usize) {
        self.total.store(total as u64, Ordering::Relaxed);
    }

    /// Sets the progress and the total.
    pub(crate) fn at(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Counts one piece, and returns whether to continue.
    pub(crate) fn count(&self) -> ControlFlow<()> {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.go_on()
    }

    /// Whether to continue.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// The result of the work, and the exception that stopped it, if any.
pub(crate) struct Ended<T> {
    pub(crate) value: T,
    pub(crate) interrupt: Option<PyErr>,
}

impl<T> Ended<T> {
    /// The value of work that has no partial result.
    pub(crate) fn whole(self) -> PyResult<T> {
        self.interrupt.map_or(Ok(self.value), Err)
    }
}

/// Runs the work on other threads. This thread waits, calls `progress(done, total)`, and checks for
/// Ctrl-C: then the work is stopped, and its partial result is returned.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send,
) -> PyResult<Ended<T>> {
    let watch = Watch::default();
    if rayon::current_thread_index().is_some() {
        // A function called by a search calls tyrex itself. All threads may be waiting for such
        // functions, so the work runs on this thread.
        let work = AssertUnwindSafe(|| work(&watch));
        let value = py.detach(|| catch_unwind(work)).map_err(|_| internal())?;
        return Ok(Ended { value, interrupt: None });
    }
    let pool = pool()?;
    let mut interrupt = None;
    let answer = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let watch = &watch;
        scope.spawn(move || {
            let work = AssertUnwindSafe(|| pool.install(|| work(watch)));
            // The receiver exists: the waiting thread holds it.
            let _ = sender.send(catch_unwind(work));
        });
        // A receiver cannot be shared, so it moves into every wait.
        let mut waiting = Some(receiver);
        loop {
            let receiver = waiting.take()?;
            let (said, receiver) = py.detach(move || (receiver.recv_timeout(BEAT), receiver));
            match said {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => waiting = Some(receiver),
            }
            if interrupt.is_none() {
                interrupt = beat(py, progress, watch).err();
                watch.stop.store(interrupt.is_some(), Ordering::Relaxed);
            }
        }
    });
    match answer {
        Some(Ok(value)) => {
            if interrupt.is_none() {
                interrupt = beat(py, progress, &watch).err();
            }
            Ok(Ended { value, interrupt })
        }
        _ => Err(internal()),
    }
}

fn internal() -> PyErr {
    PyRuntimeError::new_err("internal error in tyrex: please report it with the output above")
}

fn beat(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, watch: &Watch) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        let (done, total) = (&watch.done, &watch.total);
        progress.call1((done.load(Ordering::Relaxed), total.load(Ordering::Relaxed)))?;
    }
    Ok(())
}

/// The threads of this process: a forked process does not have its parent's threads.
struct Pool {
    process: u32,
    threads: Arc<ThreadPool>,
}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(pool) = pool.as_ref().filter(|pool| pool.process == process) {
        return Ok(Arc::clone(&pool.threads));
    }
    let threads = Arc::new(build(0)?);
    // Waiting for the parent's threads would never end.
    std::mem::forget(pool.replace(Pool { process, threads: Arc::clone(&threads) }));
    Ok(threads)
}

fn build(threads: usize) -> PyResult<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("tyrex-{index}"))
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))
}

/// Sets how many threads work; as many as the machine has cores if this is never called. The
/// results do not depend on it.
#[pyfunction]
pub(crate) fn set_threads(threads: usize) -> PyResult<()> {
    if threads == 0 || threads > 1024 {
        return Err(error::parameter(format!(
            "parameter `threads` is {threads}, expected a number from 1 to 1024"
        )));
    }
    let threads = Arc::new(build(threads)?);
    let process = std::process::id();
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let last = pool.replace(Pool { process, threads });
    // Threads of a parent process cannot be ended here.
    if last.as_ref().is_some_and(|last| last.process != process) {
        std::mem::forget(last);
    }
    Ok(())
}
