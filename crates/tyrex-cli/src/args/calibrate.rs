//! Arguments of `calibrate`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use tyrex::calibrate::{CalibrationMissing, CalibrationTest, TAUS};
use tyrex::counterfactual::{MethodSpec, Norm};
use tyrex::explain::CALIBRATED_ROWS;

use super::{ChangeArgs, ModelArgs, ReferenceArgs, SourceArgs, TrainingArgs, choice, real, whole};

/// Arguments of `calibrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex calibrate --dataset german
  tyrex calibrate --dataset german --target 0.9 --confidence 0.9 --method trex-nn --norm l2
  tyrex calibrate --data loans.csv --schema loans.toml --model loans.onnx --ensemble ensemble")]
pub struct CalibrateArgs {
    /// The source of the rows.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The reference.
    #[command(flatten)]
    pub reference: ReferenceArgs,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Expected share of valid counterfactuals under a retrained model [default: 0.95]
    #[arg(long, value_name = "SHARE", value_parser = real, allow_negative_numbers = true, help_heading = "Promise")]
    pub target: Option<f64>,
    /// Confidence that the chosen threshold reaches it [default: 0.95]
    #[arg(long, value_name = "P", value_parser = real, allow_negative_numbers = true, help_heading = "Promise")]
    pub confidence: Option<f64>,
    /// How to count an applicant without a counterfactual [default: left-out]
    #[arg(long, value_name = "NAME", value_parser = choice::<CalibrationMissing>(), help_heading = "Promise")]
    pub missing: Option<CalibrationMissing>,
    /// Test that gives the p-values; choose it before you see results [default: betting]
    #[arg(long, value_name = "NAME", value_parser = choice::<CalibrationTest>(), help_heading = "Promise")]
    pub test: Option<CalibrationTest>,
    /// Method to calibrate [default: trex-o]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(MethodSpec::NAMES), help_heading = "Search")]
    pub method: Option<String>,
    /// Norm that measures the cost of a change [default: l1]
    #[arg(long, value_name = "NAME", value_parser = choice::<Norm>(), help_heading = "Search")]
    pub norm: Option<Norm>,
    /// Thresholds to try
    #[arg(
        long,
        value_name = "TAUS",
        value_delimiter = ',',
        default_values_t = TAUS,
        allow_negative_numbers = true,
        help_heading = "Search"
    )]
    pub tau: Vec<f64>,
    /// Neighbours in the test of stability [default: the protocol's; 1000]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Search")]
    pub k: Option<usize>,
    /// Standard deviation of the neighbours, in encoded columns [default: the protocol's; 0.1]
    #[arg(long, value_name = "SIGMA", value_parser = real, allow_negative_numbers = true, help_heading = "Search")]
    pub sigma: Option<f64>,
    /// Number of rejected applicants, from the first
    #[arg(long, value_name = "N", default_value_t = CALIBRATED_ROWS, value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Search")]
    pub limit: usize,
    /// Seed of the search, and of models trained by this command
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Search")]
    pub seed: Option<u64>,
    /// Folder of retrained models: from `tyrex retrain`, or model files that you retrained [default:
    /// models are trained now]
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["change", "change_params", "models"], help_heading = "Change")]
    pub ensemble: Option<PathBuf>,
    /// How models that are trained now differ.
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Models to train [default: twice the minimum that can show the validity]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Change")]
    pub models: Option<usize>,
    /// Training parameters.
    #[command(flatten, next_help_heading = "Training of retrained models")]
    pub training: TrainingArgs,
}
