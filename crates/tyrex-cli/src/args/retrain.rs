//! Arguments of `retrain`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{ForceArgs, ModelArgs, SourceArgs, TrainingArgs, whole};

/// Arguments of `retrain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex retrain --dataset german --out german-ensemble
  tyrex retrain --dataset german --change leave-out --fraction 0.05 --models 20 --out left-out
  tyrex retrain --data loans.csv --schema loans.toml --model loans.onnx --seed 1 --out fresh")]
pub struct RetrainArgs {
    /// Where the rows come from.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The base model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// What was set about the training.
    #[command(flatten)]
    pub training: TrainingArgs,
    /// What is different for every model.
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Models to train
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Change")]
    pub models: usize,
    /// Seed of the new models, and of the base model if that is trained here
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Training")]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
    /// Whether it may be overwritten.
    #[command(flatten)]
    pub force: ForceArgs,
}

/// What is different for every model.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Change")]
pub struct ChangeArgs {
    /// What is different for every model
    #[arg(long, value_name = "NAME", default_value = "reinitialise")]
    pub change: ChangeName,
    /// Share of the training rows that leave-out leaves out [default: 0.01]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub fraction: Option<f64>,
}

/// Changes by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChangeName {
    /// New weights and another order of the rows
    Reinitialise,
    /// The same, without some of the rows
    LeaveOut,
}
