//! Progress of a run.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tyrex::error::Result;

/// The progress of a run, in steps.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The current step.
    pub doing: &'a str,
    /// The finished steps, with the finished share of the current one.
    pub done: f64,
    /// All steps.
    pub total: usize,
}

/// A callback for progress; a `Break` stops the run.
pub type Watch<'a> = dyn Fn(Progress<'_>) -> ControlFlow<()> + Sync + 'a;

/// Turns shares of steps into progress of the whole.
pub(super) struct Tracker<'a> {
    total: usize,
    finished: Mutex<usize>,
    watch: &'a Watch<'a>,
}

/// The callback of a step, with the finished share.
pub(super) type Share<'a> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'a;

impl<'a> Tracker<'a> {
    pub(super) fn new(total: usize, watch: &'a Watch<'a>) -> Self {
        Self { total, finished: Mutex::new(0), watch }
    }

    /// Works on one step.
    pub(super) fn step<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&Share<'_>) -> Result<T>,
    ) -> Result<T> {
        let before = *self.finished();
        let at = |share: f64| {
            let done = before as f64 + share.clamp(0.0, 1.0);
            (self.watch)(Progress { doing, done, total: self.total })
        };
        let result = work(&at);
        *self.finished() += 1;
        let _ = at(1.0);
        result
    }

    fn finished(&self) -> MutexGuard<'_, usize> {
        // After a panic elsewhere the number is still usable.
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
