//! `tyrex completions`

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Args;
use crate::printer;

pub(crate) fn run(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "tyrex", &mut script);
    printer::product(&String::from_utf8(script)?)
}
