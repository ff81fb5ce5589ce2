//! Arguments of `stability`.

use std::path::PathBuf;

use tyrex::choice::Choice as _;
use tyrex::explain::StabilityTerms;
use tyrex::measure::Gamma;

use super::{CellsArgs, ForceArgs, ModelArgs, SourceArgs, choice, real, whole};

/// Arguments of `stability`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex stability --data applicants.csv --model loans.onnx
  tyrex stability --dataset german --sigma 0.05 --out stability.parquet
  tyrex stability --data applicants.csv --model loans.onnx --limit 100 --json")]
pub struct StabilityArgs {
    /// The source of the rows.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Neighbours of each row
    #[arg(long, value_name = "N", default_value_t = StabilityTerms::default().samples, value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Measure")]
    pub k: usize,
    /// Standard deviation of the neighbours, in encoded columns
    #[arg(
        long,
        value_name = "SIGMA",
        value_parser = real,
        default_value_t = StabilityTerms::default().sigma,
        allow_negative_numbers = true,
        help_heading = "Measure"
    )]
    pub sigma: f64,
    /// Source of the Lipschitz constant in R
    #[arg(long, value_name = "NAME", default_value = Gamma::default().word(), value_parser = choice::<Gamma>(), help_heading = "Measure")]
    pub gamma: Gamma,
    /// Seed of the neighbours, and of the training without --model
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Measure")]
    pub seed: u64,
    /// Rows to show or write [default: 10 to show, all to write]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Output")]
    pub limit: Option<usize>,
    /// Write the rows to a .csv, .jsonl, .ndjson or .parquet file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
    /// How to write CSV.
    #[command(flatten)]
    pub cells: CellsArgs,
}
