//! Arguments of `explain`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use tyrex::counterfactual::{MethodSpec, Norm};
use tyrex::explain::{Grouping, Threshold};

use super::audit::grouping;
use super::{
    CellsArgs, ChangeArgs, ForceArgs, ModelArgs, RecordArgs, ReferenceArgs, SourceArgs,
    TrainingArgs, choice, real, whole,
};

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex explain --dataset german
  tyrex explain --dataset german --promise 0.95 --limit 3 --details
  tyrex explain --dataset german --method trex-i --norm l2 --tau 0.9
  tyrex explain --dataset german --limit 110 --by personal_status --amount credit_amount
  tyrex explain --dataset german --plausible 0.1 --path --details
  tyrex explain --dataset german --vary duration,credit_amount --limit 20
  tyrex explain --data loans.csv --schema loans.toml --tau auto --out advice.csv
  tyrex explain --data applicants.csv --model loans.onnx --out advice.parquet --json
  tyrex explain --data applicants.csv --reference loans.csv --model loans.onnx --method trex-nn
  tyrex explain --data applicants.csv --model loans.onnx --ledger advice.db \
    --subject-column customer --holds 90d")]
pub struct ExplainArgs {
    /// The source of the rows.
    #[command(flatten)]
    pub source: SourceArgs,
    /// The reference.
    #[command(flatten)]
    pub reference: ReferenceArgs,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Search options.
    #[command(flatten)]
    pub search: SearchArgs,
    /// Probability with which the next model must accept the advice: the search runs over retrained
    /// models (trex-e), and others certify it [default: 0.9 where models can be retrained and no
    /// other method is chosen]
    #[arg(long, value_name = "P", value_parser = real, allow_negative_numbers = true, conflicts_with_all = ["tau", "k", "sigma"], help_heading = "Search")]
    pub promise: Option<f64>,
    /// With a promise, also state the share of promises that the next model keeps by group: by a
    /// column's levels or quartiles, or intervals between edges (age:25,40,60); may be repeated
    #[arg(long, value_name = "COLUMN[:EDGES]", value_parser = grouping, help_heading = "Search")]
    pub by: Vec<Grouping>,
    /// With a promise, also state that share weighted by the amounts in a column
    #[arg(long, value_name = "COLUMN", help_heading = "Search")]
    pub amount: Option<String>,
    /// Confidence of certificates, and of the promise [default: 0.95]
    #[arg(long, value_name = "C", value_parser = real, allow_negative_numbers = true, help_heading = "Search")]
    pub confidence: Option<f64>,
    /// Folder of retrained models: from `tyrex retrain`, or model files that you retrained, named
    /// search*, tune*, fresh*, or divided at random
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["change", "change_params", "models"], help_heading = "Change")]
    pub ensemble: Option<PathBuf>,
    /// How models that are trained now differ.
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Models to retrain for the certificates [default: 61 for a promise of 0.9; without a promise
    /// 20, or none for a model file]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Change")]
    pub models: Option<usize>,
    /// Training parameters.
    #[command(flatten, next_help_heading = "Training of retrained models")]
    pub training: TrainingArgs,
    /// The ledger for the advice.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Rejected applicants to advise [default: 5 to show, all to write or record]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "Output")]
    pub limit: Option<usize>,
    /// Show scores, costs, stability and certificates as well
    #[arg(long, help_heading = "Output")]
    pub details: bool,
    /// Write the advice to a .csv, .jsonl, .ndjson or .parquet file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
    /// How to write CSV.
    #[command(flatten)]
    pub cells: CellsArgs,
}

/// Search options.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Method [default: trex-e with a promise; else trex-o, or trex-nn for a black
    /// box]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(MethodSpec::NAMES))]
    pub method: Option<String>,
    /// Norm that measures the cost of a change [default: l1]
    #[arg(long, value_name = "NAME", value_parser = choice::<Norm>())]
    pub norm: Option<Norm>,
    /// Required stability: a number, or `auto` for the lowest that keeps 95 % valid under retrained
    /// models [default: the protocol's; 0.8]
    #[arg(long, value_name = "TAU", value_parser = threshold, allow_negative_numbers = true)]
    pub tau: Option<Threshold>,
    /// Neighbours in the test of stability [default: the protocol's; 1000]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub k: Option<usize>,
    /// Standard deviation of the neighbours, in encoded columns [default: the protocol's; 0.1]
    #[arg(long, value_name = "SIGMA", value_parser = real, allow_negative_numbers = true)]
    pub sigma: Option<f64>,
    /// Score that the model must give to an answer of `--method margin` [default: 0.7]
    #[arg(long, value_name = "S", value_parser = score, allow_negative_numbers = true)]
    pub score: Option<f64>,
    /// Least p-value of the advised row among accepted applicants of the reference: at 0.1, about one
    /// accepted applicant of ten is less usual. Such advice costs more, takes longer, and is found for
    /// fewer applicants [default: none]
    #[arg(long, value_name = "P", value_parser = real, allow_negative_numbers = true)]
    pub plausible: Option<f64>,
    /// Show the way to the advised row in steps, each to a row with at least half of the p-value that
    /// --plausible asks for, or with 0.05
    #[arg(long)]
    pub path: bool,
    /// Features that may change [default: those that the schema allows to change]
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    pub vary: Option<Vec<String>>,
    /// Features that must not change
    #[arg(long, value_name = "FEATURES", value_delimiter = ',')]
    pub keep: Vec<String>,
    /// Maximum number of steps for one applicant
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub max_steps: Option<u64>,
    /// Maximum number of points that the model scores for one applicant [default: as many as 1000
    /// tests of stability, at least 1000000, if no other limit is given]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub max_evaluations: Option<u64>,
    /// Maximum number of seconds for one applicant; the result then depends on the machine
    #[arg(long, value_name = "SECONDS", value_parser = real, allow_negative_numbers = true)]
    pub max_seconds: Option<f64>,
    /// Do not compute R^ for the answers of methods that do not test it; min-cost then takes half
    /// the time
    #[arg(long)]
    pub no_stability: bool,
    /// Prove that no advice is cheaper, or state the gap: min-cost and margin, on trees
    #[arg(long)]
    pub prove: bool,
    /// Seed of the search, and of models trained by this command [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

fn score(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|score| (0.5..1.0).contains(score));
    number.ok_or_else(|| "expected a number of at least 0.5 and below 1".into())
}

fn threshold(text: &str) -> Result<Threshold, String> {
    if text == "auto" {
        return Ok(Threshold::AUTO);
    }
    let number = text.parse::<f64>().ok().filter(|tau| *tau > 0.0 && *tau < 1.0);
    number
        .map(Threshold::Given)
        .ok_or_else(|| "expected a number between 0 and 1, or `auto`".into())
}
