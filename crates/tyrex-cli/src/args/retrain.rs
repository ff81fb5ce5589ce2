//! Arguments of `retrain`.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use tyrex::change::{ModelChange, Targeted};
use tyrex::explain::RETRAINED_MODELS;

use super::{ForceArgs, ModelArgs, SourceArgs, TrainingArgs, whole};

/// Arguments of `retrain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex retrain --dataset german --out german-ensemble
  tyrex retrain --dataset german --change leave-out --change-params 'fraction = 0.05' --out left
  tyrex retrain --dataset german --change fine-tune --change-params 'epochs = 3' --out tuned
  tyrex retrain --dataset german --change weight-noise --change-params 'delta = 1e-3' --out moved
  tyrex retrain --dataset german --change reinitialise,bootstrap --out mixed
  tyrex retrain --data loans.csv --schema loans.toml --model loans.onnx --seed 1 --out fresh")]
pub struct RetrainArgs {
    /// The source of the rows.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The base model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Training parameters.
    #[command(flatten, next_help_heading = "Training of retrained models")]
    pub training: TrainingArgs,
    /// How the models differ.
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Models to train
    #[arg(long, value_name = "N", default_value_t = RETRAINED_MODELS, value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Change")]
    pub models: usize,
    /// Seed of the new models, and of the base model if this command trains it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Training of retrained models")]
    pub seed: u64,
    /// Folder to write
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
}

/// How the models differ.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Change")]
pub struct ChangeArgs {
    /// Change that makes each model differ; of several, separated by commas, each model gets one at
    /// random
    #[arg(
        long,
        value_name = "NAMES",
        default_value = ModelChange::default().name(),
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(change_names())
    )]
    pub change: Vec<String>,
    /// Parameters of a single change, such as 'fraction = 0.05'; docs/model-change.md lists them
    #[arg(long, value_name = "PAIRS")]
    pub change_params: Option<String>,
}

/// Changes by name.
fn change_names() -> Vec<PossibleValue> {
    // Accepted here, so that the error can say why it is not supported.
    let targeted = PossibleValue::new(Targeted::NAME).hide(true);
    let name = |change: ModelChange| PossibleValue::new(change.name()).help(change.description());
    ModelChange::all().into_iter().map(name).chain([targeted]).collect()
}
