//! A bar with the time left, on standard error, for work that takes longer than two seconds.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tyrex::explain::{self, Stage};

use crate::interrupt;

/// Shorter work shows no bar.
const WORTH_A_BAR: Duration = Duration::from_secs(2);
/// The first estimate of the total time is made after this share of it.
const FIRST_GUESS: Duration = Duration::from_millis(200);

/// The unit of progress.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    /// Passes over the training rows.
    Epochs,
    /// Processed rows.
    Rows,
    /// Seconds of work, by an estimate.
    Seconds,
    /// A share of the whole.
    Share,
    /// Bytes of a download.
    Bytes,
}

/// A bar that stays hidden until the work has taken a while.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    wanted: bool,
}

impl Progress {
    /// A bar; never shown if `wanted` is false or standard error is not a terminal. Work that reports
    /// nothing for a while shows it too.
    pub(crate) fn new(title: &'static str, unit: Unit, wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let counts = match unit {
            Unit::Epochs | Unit::Rows => "{pos}/{len}",
            Unit::Seconds | Unit::Share => "{percent} %",
            Unit::Bytes => "{bytes}/{total_bytes}",
        };
        let template = format!("{{prefix}} [{{bar:32}}] {counts}, {{eta}} left {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(title);
        if wanted {
            let weak = bar.downgrade();
            std::thread::spawn(move || {
                std::thread::sleep(WORTH_A_BAR);
                if let Some(bar) = weak.upgrade().filter(|bar| !bar.is_finished()) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(FIRST_GUESS);
                }
            });
        }
        Self { bar, started: Instant::now(), wanted }
    }

    /// Sets how much of the total is done.
    pub(crate) fn at(&self, done: u64, total: u64, message: String) {
        self.bar.set_length(total);
        self.bar.set_message(message);
        self.bar.set_position(done);
        if self.wanted && self.bar.is_hidden() && self.is_long(done, total) {
            // This target stays silent if standard error is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn is_long(&self, done: u64, total: u64) -> bool {
        let elapsed = self.started.elapsed();
        let share = done as f64 / total.max(1) as f64;
        let whole = elapsed.as_secs_f64() / share.max(f64::EPSILON);
        elapsed >= FIRST_GUESS && whole >= WORTH_A_BAR.as_secs_f64()
    }

    /// Removes the bar; returns the time since the start.
    pub(crate) fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
    }
}

/// One bar after another, for each stage of the library's work.
#[derive(Debug)]
pub(crate) struct Stages {
    wanted: bool,
    current: Mutex<Option<(Stage, Progress)>>,
}

/// The total of a bar that shows a share.
const WHOLE: u64 = 1000;

impl Stages {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, current: Mutex::new(None) }
    }

    /// Shows the progress of the library.
    pub(crate) fn at(&self, progress: explain::Progress) -> ControlFlow<()> {
        let explain::Progress { stage, done, total } = progress;
        let unit = if stage == Stage::Retraining { Unit::Epochs } else { Unit::Rows };
        self.show(stage, unit, done, total)
    }

    /// Sets the share of a stage that is done, if it is known.
    pub(crate) fn share(&self, stage: Stage, share: Option<f64>) -> ControlFlow<()> {
        let done = share.map_or(0, |share| (share * WHOLE as f64) as u64);
        self.show(stage, Unit::Share, done, WHOLE)
    }

    /// Shows how far a stage is. Work that an interrupt waits for is told to end.
    fn show(&self, stage: Stage, unit: Unit, done: u64, total: u64) -> ControlFlow<()> {
        if interrupt::requested() {
            return ControlFlow::Break(());
        }
        // Another thread is about to report the same.
        let Ok(mut current) = self.current.try_lock() else { return ControlFlow::Continue(()) };
        if current.as_ref().is_none_or(|(shown, _)| *shown != stage) {
            if let Some((_, last)) = current.take() {
                last.finish();
            }
            let title = match stage {
                Stage::Retraining => "training again",
                Stage::Calibrating => "calibrating",
                Stage::Searching => "searching",
                Stage::Certifying => "certifying",
            };
            *current = Some((stage, Progress::new(title, unit, self.wanted)));
        }
        if let Some((_, bar)) = &*current {
            bar.at(done, total, String::new());
        }
        ControlFlow::Continue(())
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        let current = self.current.get_mut().map_or(None, Option::take);
        if let Some((_, bar)) = current {
            bar.finish();
        }
    }
}
