//! Progress of a run.

use std::ops::ControlFlow;
use std::sync::Mutex;

use tyrex::error::Result;

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The current step.
    pub doing: &'a str,
    /// Work that is done, in seconds of one thread, roughly.
    pub done: f64,
    /// All the work.
    pub total: f64,
}

/// A callback for progress; a `Break` stops the run.
pub type Watch<'a> = dyn Fn(Progress<'_>) -> ControlFlow<()> + Sync + 'a;

/// Turns shares of steps into progress of the whole.
pub(super) struct Tracker<'a> {
    total: f64,
    finished: Mutex<f64>,
    watch: &'a Watch<'a>,
}

/// The callback of a step, with the finished share.
pub(super) type Share<'a> = dyn Fn(f64) -> ControlFlow<()> + Sync + 'a;

impl<'a> Tracker<'a> {
    pub(super) fn new(total: f64, watch: &'a Watch<'a>) -> Self {
        Self { total, finished: Mutex::new(0.0), watch }
    }

    /// A step that takes about `weight` seconds of one thread.
    pub(super) fn step<T>(
        &self,
        doing: &str,
        weight: f64,
        work: impl FnOnce(&Share<'_>) -> Result<T>,
    ) -> Result<T> {
        let before = self.locked(0.0);
        let at = |share: f64| {
            let done = before + share.clamp(0.0, 1.0) * weight;
            (self.watch)(Progress { doing, done, total: self.total })
        };
        let result = work(&at);
        self.locked(weight);
        let _ = at(1.0);
        result
    }

    /// Adds to the finished work; returns the previous value.
    fn locked(&self, more: f64) -> f64 {
        // After a panic elsewhere the number is still usable.
        let mut finished = self.finished.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = *finished;
        *finished += more;
        before
    }
}
