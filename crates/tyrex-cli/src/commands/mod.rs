//! One file per verb. A command calls the library and reports what it answers.

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
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tyrex::Overwrite;

use crate::args::{ForceArgs, GlobalArgs};
use crate::printer::Printer;
use crate::progress::{Progress, Stages, Unit};

/// What every command is given.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    /// The flags of every command.
    pub(crate) global: GlobalArgs,
    /// Where the answer goes.
    pub(crate) printer: &'a mut Printer,
}

/// What a command found out: the program ends with 0 or with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What was asked for is so.
    Yes,
    /// It is not.
    No,
}

/// Waits for what runs beside: the database, the service. Connections live as long as the
/// program, so there is one runtime.
pub(crate) fn block_on<F: Future>(work: F) -> anyhow::Result<F::Output> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| Builder::new_current_thread().enable_all().build());
    let runtime =
        made.as_ref().map_err(|error| anyhow::anyhow!("cannot start a runtime: {error}"))?;
    Ok(runtime.block_on(work))
}

impl Context<'_> {
    /// A progress bar, for people only.
    fn progress(&self, title: &'static str, unit: Unit) -> Progress {
        Progress::new(title, unit, self.printer.is_for_people())
    }

    /// A bar for every stage of the library's work, for people only.
    fn stages(&self) -> Stages {
        Stages::new(self.printer.is_for_people())
    }
}

impl ForceArgs {
    fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Force } else { Overwrite::Refuse }
    }
}
