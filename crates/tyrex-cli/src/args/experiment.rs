//! Arguments of `experiment`.

use std::path::PathBuf;

use clap::Subcommand;

/// Commands for experiments.
#[derive(Debug, Subcommand)]
pub enum ExperimentCommand {
    /// Run experiments, or continue a run that was stopped
    ///
    /// The file is a suite, which names the files of its experiments, or one experiment. The folder
    /// keeps every finished piece: after an interrupt the same command continues, and the numbers
    /// are those of an uninterrupted run.
    #[command(after_help = "\
Examples:
  tyrex experiment run experiments/paper.toml --out results
  tyrex experiment run experiments/paper.toml --quick --out quick
  tyrex experiment run experiments/german.toml --out german && tyrex report german")]
    Run(ExperimentRunArgs),
    /// List the experiments of a file, without running them
    #[command(after_help = "\
Examples:
  tyrex experiment show experiments/paper.toml")]
    Show(ExperimentShowArgs),
}

/// Arguments of `experiment run`.
#[derive(Debug, clap::Args)]
pub struct ExperimentRunArgs {
    /// Suite or experiment to run
    pub file: PathBuf,
    /// Folder of the results; created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// The short run: 10 models, 100 factuals, one base model
    #[arg(long)]
    pub quick: bool,
}

/// Arguments of `experiment show`.
#[derive(Debug, clap::Args)]
pub struct ExperimentShowArgs {
    /// Suite or experiment
    pub file: PathBuf,
    /// Show the short run
    #[arg(long)]
    pub quick: bool,
}
