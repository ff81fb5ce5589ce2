//! One file per verb. A command calls the library and reports what it answers.

pub(crate) mod audit;
pub(crate) mod calibrate;
pub(crate) mod certify;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod retrain;
pub(crate) mod schema;
mod source;
pub(crate) mod stability;
mod summary;
pub(crate) mod train;

use tyrex::Overwrite;

use crate::args::{ForceArgs, GlobalArgs};
use crate::printer::Printer;
use crate::progress::{Progress, Unit};

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

impl Context<'_> {
    /// A progress bar, for people only.
    fn progress(&self, title: &'static str, unit: Unit) -> Progress {
        Progress::new(title, unit, self.printer.is_for_people())
    }
}

impl ForceArgs {
    fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Force } else { Overwrite::Refuse }
    }
}
