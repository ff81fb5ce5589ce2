//! Arguments of `certify`.

use std::path::PathBuf;

use tyrex::certificate::{DELTA, Terms, TheoremTerms, Verdict};

use super::{CellsArgs, ChangeArgs, ForceArgs, ImportArgs, TrainingArgs, one_of, real, whole};

/// Arguments of `certify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex certify --counterfactuals cf.parquet --model loans.onnx
  tyrex certify --counterfactuals cf.csv --model loans.onnx --ensemble fresh --require certified
  tyrex certify --counterfactuals cf.csv --model loans.onnx --ensemble fresh --out certificates.csv
  tyrex certify --counterfactuals cf.csv --model loans.onnx --reference loans.csv --models 60
  tyrex certify --counterfactuals cf.csv --model xgb.onnx --schema loans.toml --ensemble xgb-retrained
  tyrex certify --verify certificates.json --model loans.onnx --ensemble fresh")]
pub struct CertifyArgs {
    /// Counterfactuals: the file that `explain` wrote, or any with the features under their names
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "verify",
        conflicts_with = "verify",
        help_heading = "Data"
    )]
    pub counterfactuals: Option<PathBuf>,
    /// Verify the certificates in a JSON document of `certify`, `explain`, the service or Python
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "reference", "change", "change_params", "models", "steered", "unsteered", "delta", "radius", "probability", "confidence", "k", "sigma", "seed", "require", "out"
        ],
        help_heading = "Data"
    )]
    pub verify: Option<PathBuf>,
    /// Schema of its columns [default: the schema in the model file]
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub schema: Option<PathBuf>,
    /// Labelled rows that the model was trained on: models are retrained on them, and compared with
    /// the model on them
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub reference: Option<PathBuf>,
    /// Model file: ONNX, XGBoost, LightGBM, CatBoost or a scorecard
    #[arg(long, value_name = "FILE", help_heading = "Model file")]
    pub model: PathBuf,
    /// How to read the file.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Folder of retrained models: from `tyrex retrain`, or model files that you retrained
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["change", "change_params", "models"], help_heading = "Change")]
    pub ensemble: Option<PathBuf>,
    /// How models that are trained now differ.
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Models to retrain for the certificates [default: none]
    #[arg(long, value_name = "N", requires = "reference", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Change")]
    pub models: Option<usize>,
    /// Training parameters.
    #[command(flatten, next_help_heading = "Training of retrained models")]
    pub training: TrainingArgs,
    /// The search used these retrained models, so they are not independent of the counterfactuals
    #[arg(long, requires = "ensemble", help_heading = "Change")]
    pub steered: bool,
    /// The search did not use these retrained models, though the file does not record which it used
    #[arg(long, conflicts_with = "steered", help_heading = "Change")]
    pub unsteered: bool,
    /// Largest change of any weight, or of any leaf of trees, for the interval tier
    #[arg(
        long,
        value_name = "DELTA",
        value_parser = real,
        default_value_t = DELTA,
        allow_negative_numbers = true,
        help_heading = "Change"
    )]
    pub delta: f64,
    /// Largest change of any threshold of trees, for the interval tier [default: 0.01]
    #[arg(long, value_name = "RADIUS", value_parser = real, allow_negative_numbers = true, help_heading = "Change")]
    pub radius: Option<f64>,
    /// Probability with which the theorem's bound holds
    #[arg(
        long,
        value_name = "P",
        value_parser = real,
        default_value_t = Terms::default().probability,
        allow_negative_numbers = true,
        help_heading = "Certificate"
    )]
    pub probability: f64,
    /// Confidence of the conclusions from retrained models
    #[arg(
        long,
        value_name = "P",
        value_parser = real,
        default_value_t = Terms::default().confidence,
        allow_negative_numbers = true,
        help_heading = "Certificate"
    )]
    pub confidence: f64,
    /// Draws for the theorem
    #[arg(long, value_name = "N", default_value_t = TheoremTerms::default().samples, value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Certificate")]
    pub k: usize,
    /// Width of the draws in encoded columns [default: the one with the best bound]
    #[arg(long, value_name = "SIGMA", value_parser = real, allow_negative_numbers = true, help_heading = "Certificate")]
    pub sigma: Option<f64>,
    /// Seed of the draws; those of a search with the same seed are others
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Certificate")]
    pub seed: u64,
    /// Verdict that every certificate must reach, or the answer is "no"
    #[arg(long, value_name = "VERDICT", default_value = "empirical", value_parser = one_of(&[Verdict::Empirical, Verdict::Certified]), help_heading = "Certificate")]
    pub require: Verdict,
    /// Certificates to show or write [default: 10 to show, all to write]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Output")]
    pub limit: Option<usize>,
    /// Write verdicts and numbers to a .csv, .jsonl, .ndjson or .parquet file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
    /// How to write CSV.
    #[command(flatten)]
    pub cells: CellsArgs,
}
