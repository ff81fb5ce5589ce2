//! A bar with the time left, on standard error, for work that takes longer than two seconds.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work needs no bar.
const WORTH_A_BAR: Duration = Duration::from_secs(2);
/// The first guess of the whole time is made after this much of it.
const FIRST_GUESS: Duration = Duration::from_millis(200);

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    /// Passes over the training rows.
    Epochs,
    /// Rows that were dealt with.
    Rows,
    /// Seconds of work, as guessed beforehand.
    Seconds,
    /// Bytes of a download.
    Bytes,
}

/// A bar that stays hidden until the work proves to be long.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    wanted: bool,
}

impl Progress {
    /// A bar; never shown if `wanted` is false or standard error is not a terminal.
    pub(crate) fn new(title: &'static str, unit: Unit, wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let counts = match unit {
            Unit::Epochs | Unit::Rows => "{pos}/{len}",
            Unit::Seconds => "{percent} %",
            Unit::Bytes => "{bytes}/{total_bytes}",
        };
        let template = format!("{{prefix}} [{{bar:32}}] {counts}, {{eta}} left {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(title);
        Self { bar, started: Instant::now(), wanted }
    }

    /// So much of the total is done.
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

    /// Takes the bar away; the time since the start.
    pub(crate) fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
    }
}
