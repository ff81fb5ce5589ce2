//! The `tyrex` command.

use std::process::ExitCode;

use clap::Parser as _;
use tyrex_cli::args::Args;

fn main() -> ExitCode {
    tyrex_cli::run(Args::parse())
}
