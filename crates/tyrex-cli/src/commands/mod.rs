//! One file per command. A command calls the library and reports its answer.

pub(crate) mod audit;
mod batches;
pub(crate) mod calibrate;
pub(crate) mod certify;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod ledger;
pub(crate) mod model;
mod record;
pub(crate) mod report;
pub(crate) mod retrain;
pub(crate) mod schema;
#[cfg(feature = "service")]
pub(crate) mod serve;
mod source;
pub(crate) mod stability;
mod summary;
#[cfg(feature = "service")]
pub(crate) mod token;
pub(crate) mod train;

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Builder, Runtime};
use tyrex::Overwrite;
use tyrex::data::CellFormat;

use crate::args::{CellsArgs, ForceArgs, GlobalArgs};
use crate::printer::Printer;
use crate::progress::{Progress, Stages, Unit};

/// The context of every command.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The flags of every command.
    pub(crate) global: GlobalArgs,
    /// The output.
    pub(crate) printer: &'a mut Printer,
}

/// The answer of a command: the exit code is 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The answer is "yes".
    Yes,
    /// The answer is "no".
    No,
}

/// Runs asynchronous work: the database, the service. Connections live as long as the program, so
/// there is one runtime.
pub(crate) fn block_on<F: Future>(work: F) -> anyhow::Result<F::Output> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| Builder::new_current_thread().enable_all().build());
    let runtime =
        made.as_ref().map_err(|error| anyhow::anyhow!("cannot start a runtime: {error}"))?;
    Ok(runtime.block_on(work))
}

impl Context<'_> {
    /// A progress bar; none with `--json` or `--quiet`.
    fn progress(&self, title: &'static str, unit: Unit) -> Progress {
        Progress::new(title, unit, self.printer.is_for_people())
    }

    /// Does work under a progress bar. The work calls its argument after each of `total` rows.
    fn counted<T>(
        &self,
        title: &'static str,
        total: u64,
        work: impl FnOnce(&(dyn Fn() -> ControlFlow<()> + Sync)) -> T,
    ) -> T {
        let progress = self.progress(title, Unit::Rows);
        let done = AtomicU64::new(0);
        progress.at(0, total, String::new());
        let result = work(&|| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress.at(done, total, String::new());
            ControlFlow::Continue(())
        });
        progress.finish();
        result
    }

    /// A bar for every stage of the library's work; none with `--json` or `--quiet`.
    fn stages(&self) -> Stages {
        Stages::new(self.printer.is_for_people())
    }
}

impl ForceArgs {
    fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Force } else { Overwrite::Refuse }
    }
}

impl CellsArgs {
    fn cells(&self) -> CellFormat {
        if self.spreadsheet_safe { CellFormat::SpreadsheetSafe } else { CellFormat::Exact }
    }
}
