//! `tyrex completions`

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Session;
use crate::args::Args;

pub(crate) fn run(session: &mut Session<'_>, shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tyrex", &mut script);
    session.printer.product(&String::from_utf8(script)?)
}
