//! One file per verb. A command calls the library and reports what it answers.

pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod explain;
pub(crate) mod model;
pub(crate) mod schema;
mod source;
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
