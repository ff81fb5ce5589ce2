//! The command line arguments. Types only; `commands` acts on them.

mod audit;
mod calibrate;
mod certify;
mod experiment;
mod explain;
mod ledger;
mod report;
mod retrain;
#[cfg(feature = "service")]
mod serve;
mod stability;

use std::num::NonZeroUsize;
use std::path::PathBuf;

pub use audit::{AuditArgs, AuditCommand, AuditJoinArgs};
pub use calibrate::CalibrateArgs;
pub use certify::CertifyArgs;
pub use experiment::{ExperimentCommand, ExperimentRunArgs, ExperimentShowArgs};
pub use explain::{ExplainArgs, SearchArgs};
pub use ledger::{
    FilterArgs, Holds, LedgerArgs, LedgerCloseArgs, LedgerCommand, LedgerExportArgs,
    LedgerForgetArgs, LedgerListArgs, LedgerRecordArgs, LedgerShowArgs, LedgerVerifyArgs,
    RecordArgs,
};
pub use report::ReportArgs;
pub use retrain::{ChangeArgs, RetrainArgs};
#[cfg(feature = "service")]
pub use serve::{
    CreateTokenArgs, LimitArgs, ReachArgs, RevokeTokenArgs, ServeArgs, TokenArgs, TokenCommand,
};
pub use stability::StabilityArgs;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Parser, Subcommand};
use clap_complete::Shell;
use tyrex::choice::Choice;
use tyrex::counterfactual::Protocol;
use tyrex::model::Activation;

use crate::version::version;

/// Counterfactual explanations that still hold after the model is retrained.
#[derive(Debug, Parser)]
#[command(
    name = "tyrex",
    version = version(),
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Examples:
  tyrex explain --dataset german
  tyrex schema infer loans.csv --label approved --favourable yes --out loans.toml
  tyrex train --data loans.csv --schema loans.toml --out loans.onnx
  tyrex explain --data applicants.csv --model loans.onnx --out advice.csv
  tyrex retrain --dataset german --change leave-out --models 50 --out german-ensemble

Exit codes: 0 done; 1 the answer is \"no\"; 2 bad input."
)]
pub struct Args {
    /// Flags of every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Print only errors (and a schema or a completion script, if requested)
    #[arg(long, short, global = true, conflicts_with = "json")]
    pub quiet: bool,
    /// Threads to use; the result is the same with any number [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = between::<u16, 1, 1024>)]
    pub threads: Option<u16>,
    /// Folder of the data sets that are not built in; searched first, and the target of `data
    /// fetch`
    #[arg(long, global = true, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
}

/// The command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find changes that get rejected applicants accepted, also after the model is retrained
    ///
    /// Without --model, a network is trained first. The applicants are the test rows, or all rows
    /// if the schema names no split. A model that tyrex wrote contains its schema; new applicants
    /// then need no label column, and models are retrained as it was trained, unless the training
    /// flags differ. The answer is "no" (exit code 1) if nothing is found for any applicant.
    Explain(Box<ExplainArgs>),
    /// Train a network and write it as an ONNX file
    ///
    /// The file holds the schema, the encoding and the training parameters too, so `explain` needs
    /// nothing else. Flags override --params.
    Train(TrainArgs),
    /// Make many changed versions of a model and write them as an ensemble
    ///
    /// Advice that was found for one model is tested on its ensemble. Models are retrained as the
    /// model was trained, if its file says how; training flags override that. The folder holds every model
    /// as an ONNX file, written as soon as it is trained: after an interrupt, repeat the command to
    /// continue. Another --seed gives independent models of the same kind.
    Retrain(RetrainArgs),
    /// Show how stable a model's scores are, row by row
    ///
    /// The model scores random neighbours of each row. R^ is the paper's relaxed stability; R is
    /// its stability, with the Lipschitz constant gamma.
    Stability(StabilityArgs),
    /// Certify that counterfactuals stay valid when the model changes
    ///
    /// Each counterfactual is certified in up to four ways: by the paper's theorem, for small
    /// changes of the weights, by retrained models, and for a random forest by the votes of their
    /// trees. With --reference the model is compared with the retrained models; if it does not look
    /// like one of them, they certify nothing. The answer is "no" if a counterfactual has no
    /// certificate.
    Certify(CertifyArgs),
    /// Choose the stability threshold that reaches a required validity
    ///
    /// Half of the retrained models select the smallest threshold that reaches the validity; the
    /// other half measure it. The answer is "no" if no threshold is shown to reach it.
    Calibrate(CalibrateArgs),
    /// Check whether a new model keeps the recorded promises, and repair the broken ones
    ///
    /// A gate for deployment: the answer is "no" (exit code 1) if more promises are broken than
    /// --allow. With several models, the one that keeps the most promises decides. A promise that a
    /// model cannot read counts as broken. The ledger is only read; an audit writes nothing to it.
    Audit(AuditArgs),
    /// Manage promises: the advice that `explain --ledger` recorded
    ///
    /// The ledger is a file, or a PostgreSQL database. Entries are only appended, and each holds
    /// the hash of the previous one, so changes are detected.
    #[command(
        subcommand,
        after_help = "\
Examples:
  tyrex explain --dataset german --ledger advice.db --holds 90d
  tyrex ledger list --ledger advice.db
  tyrex ledger verify --ledger advice.db"
    )]
    Ledger(LedgerCommand),
    /// Run experiments: the paper's tables and figures, or your own
    #[command(
        subcommand,
        after_help = "\
Examples:
  tyrex experiment run experiments/paper.toml --out results
  tyrex experiment show experiments/paper.toml"
    )]
    Experiment(ExperimentCommand),
    /// Write one page with the results of experiments beside the paper's numbers
    ///
    /// The HTML file holds everything, tables and figures, and needs no network. The results decide
    /// which claims of the paper hold.
    Report(ReportArgs),
    /// List, show and fetch data sets
    #[command(
        subcommand,
        after_help = "\
Examples:
  tyrex data list
  tyrex data show german
  tyrex data fetch heloc --data-dir ~/data"
    )]
    Data(DataCommand),
    /// Draft or check a schema
    #[command(
        subcommand,
        after_help = "\
Examples:
  tyrex schema infer loans.csv --label approved --favourable yes --out loans.toml
  tyrex schema check loans.toml --data loans.csv"
    )]
    Schema(SchemaCommand),
    /// Inspect a model file
    #[command(
        subcommand,
        after_help = "\
Examples:
  tyrex model show loans.onnx"
    )]
    Model(ModelCommand),
    /// Serve the API and the web page
    ///
    /// Only this machine can connect, unless tokens exist. One database holds all persistent state:
    /// promises, models, jobs and tokens. Ctrl-C shuts down gracefully; jobs continue after the
    /// next start.
    #[cfg(feature = "service")]
    Serve(ServeArgs),
    /// Serve the API and the web page (not in this build)
    #[cfg(not(feature = "service"))]
    Serve(AbsentArgs),
    /// Create, list and revoke access tokens of the service (not in this build)
    #[cfg(not(feature = "service"))]
    Token(AbsentArgs),
    /// Create, list and revoke access tokens of the service
    #[cfg(feature = "service")]
    #[command(
        subcommand,
        after_help = "\
Examples:
  tyrex token create --role admin
  tyrex token list
  tyrex token revoke 9f86d081884c7d65"
    )]
    Token(TokenCommand),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  tyrex completions bash > ~/.local/share/bash-completion/completions/tyrex
  tyrex completions zsh > ~/.zfunc/_tyrex
  tyrex completions fish > ~/.config/fish/completions/tyrex.fish")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Any arguments, for a command that this build lacks: the error says how to get it.
#[cfg(not(feature = "service"))]
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct AbsentArgs {
    /// The arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub rest: Vec<String>,
}

/// The source of the rows.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Data",
    group = ArgGroup::new("source").required(true).args(["dataset", "data"])
)]
pub struct SourceArgs {
    /// Data set of the catalogue; `tyrex data list` shows them
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
    /// Your own rows: a .csv, .jsonl, .ndjson or .parquet file
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Schema of --data: what its columns mean; `tyrex schema infer` drafts one
    #[arg(long, value_name = "FILE", conflicts_with = "dataset")]
    pub schema: Option<PathBuf>,
    /// Encoding of the data set, and parameters of the search
    #[arg(long, value_name = "NAME", default_value = "product", value_parser = choice::<Protocol>(), conflicts_with = "data")]
    pub protocol: Protocol,
}

/// The rows that a model was trained on, apart from the rows to explain.
#[derive(Debug, clap::Args)]
pub struct ReferenceArgs {
    /// Rows the model was trained on, or compares with: searches restart from them, and nn and
    /// trex-nn return them [default: the training rows of --dataset, or of the split in --schema]
    #[arg(long, value_name = "FILE", requires = "data", help_heading = "Data")]
    pub reference: Option<PathBuf>,
}

/// The model of a file, if there is one.
#[derive(Debug, clap::Args)]
pub struct ModelArgs {
    /// Model file, from tyrex or another tool: ONNX, XGBoost, LightGBM, CatBoost or a scorecard
    /// [default: a network is trained]
    #[arg(long, value_name = "FILE", help_heading = "Model file")]
    pub model: Option<PathBuf>,
    /// How to read the file.
    #[command(flatten)]
    pub import: ImportArgs,
}

/// How to read a model file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model file")]
pub struct ImportArgs {
    /// Output that holds the scores, if the file has several
    #[arg(long, value_name = "NAME", requires = "model")]
    pub model_output: Option<String>,
    /// Favourable class, by the model's name for it [default: the schema's favourable label, or
    /// the second of two]
    #[arg(long, value_name = "NAME", requires = "model")]
    pub model_class: Option<String>,
    /// Favourable class, by its number from 0, for models without names
    #[arg(long, value_name = "N", requires = "model", conflicts_with = "model_class", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub model_class_number: Option<usize>,
    /// The output holds logits, not probabilities
    #[arg(long, requires = "model")]
    pub model_logits: bool,
}

/// How output files are written.
#[derive(Debug, clap::Args)]
pub struct ForceArgs {
    /// Overwrite the output file if it exists
    #[arg(long, help_heading = "Output")]
    pub force: bool,
}

/// How a CSV file is written.
#[derive(Debug, clap::Args)]
pub struct CellsArgs {
    /// Write an apostrophe before text cells of CSV that a spreadsheet would run as a formula; the
    /// file is then for people, not for other commands
    #[arg(long, requires = "out", help_heading = "Output")]
    pub spreadsheet_safe: bool,
}

/// Arguments of `train`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex train --dataset german --out german.onnx
  tyrex train --data loans.csv --schema loans.toml --out loans.onnx --hidden 64,32 --epochs 100
  tyrex train --dataset german --out german.onnx --class-weights balanced --early-stopping 20
  tyrex train --dataset german --out german.onnx --params train.toml --seed 7")]
pub struct TrainArgs {
    /// The source of the rows.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Training parameters.
    #[command(flatten, next_help_heading = "Training")]
    pub training: TrainingArgs,
    /// Seed of the training
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, allow_negative_numbers = true, help_heading = "Training")]
    pub seed: u64,
    /// ONNX file to write
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
}

/// Training parameters.
#[derive(Debug, clap::Args)]
pub struct TrainingArgs {
    /// TOML file of parameters, named like the flags below
    #[arg(long, value_name = "FILE")]
    pub params: Option<PathBuf>,
    /// Widths of the hidden layers [default: 128,128]; `none` for a linear model
    #[arg(long, value_name = "WIDTHS", value_parser = widths)]
    pub hidden: Option<Widths>,
    /// Activation of the hidden layers [default: relu]
    #[arg(long, value_name = "NAME", value_parser = choice::<Activation>())]
    pub activation: Option<Activation>,
    /// Passes over the training rows, at most [default: 100]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub epochs: Option<usize>,
    /// Rows per step [default: 32]
    #[arg(long, value_name = "N", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub batch: Option<usize>,
    /// Step size of Adam [default: 0.001]
    #[arg(long, value_name = "RATE", value_parser = real, allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// Penalty on squared weights [default: 0.0001]
    #[arg(long, value_name = "PENALTY", value_parser = real, allow_negative_numbers = true)]
    pub l2: Option<f64>,
    /// Dropout: share of hidden units left out of each step [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = real, allow_negative_numbers = true)]
    pub dropout: Option<f64>,
    /// Weights of the classes in the loss: none, balanced, or two numbers, the unfavourable
    /// class first [default: none]
    #[arg(long, value_name = "WEIGHTS", value_parser = weights)]
    pub class_weights: Option<Weights>,
    /// Hold out a fifth of the training rows, stop after this many epochs without a lower loss on
    /// them, and keep the best network [default: 10]; `none` trains all epochs on all rows
    #[arg(long, value_name = "EPOCHS", num_args = 0..=1, default_missing_value = "10", value_parser = patience)]
    pub early_stopping: Option<Patience>,
}

/// A parser for a library enum: one of its words, each with its help text.
fn choice<C: Choice + Send + Sync>() -> impl TypedValueParser<Value = C> {
    one_of(C::ALL)
}

/// One of some values.
fn one_of<C: Choice + Send + Sync>(choices: &'static [C]) -> impl TypedValueParser<Value = C> {
    let values = choices.iter().map(|choice| PossibleValue::new(choice.word()).help(choice.help()));
    PossibleValuesParser::new(values)
        .try_map(|word| C::of_word(&word).ok_or_else(|| format!("`{word}` is not a known value")))
}

/// A whole number that is not negative.
fn whole<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let number = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// A whole number in a range.
fn between<N: TryFrom<u64>, const LEAST: u64, const MOST: u64>(text: &str) -> Result<N, String> {
    let number = text.parse::<u64>().ok().filter(|number| (LEAST..=MOST).contains(number));
    let number = number.and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number from {LEAST} to {MOST}"))
}

/// A number; the library knows which ones make sense.
fn real(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number such as 0.5 or 1e-3".to_owned())
}

/// Widths of hidden layers; none for a linear model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Widths(pub Vec<usize>);

fn widths(text: &str) -> Result<Widths, String> {
    if text == "none" {
        return Ok(Widths(Vec::new()));
    }
    let width = |part: &str| part.trim().parse::<NonZeroUsize>().map(NonZeroUsize::get);
    text.split(',')
        .map(width)
        .collect::<Result<_, _>>()
        .map(Widths)
        .map_err(|_| "expected whole numbers of at least 1 such as 128,128, or `none`".to_owned())
}

/// Weights of the classes in the loss.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// All 1.
    None,
    /// Every class counts the same in total.
    Balanced,
    /// One per class.
    Given(Vec<f64>),
}

fn weights(text: &str) -> Result<Weights, String> {
    match text {
        "none" => return Ok(Weights::None),
        "balanced" => return Ok(Weights::Balanced),
        _ => {}
    }
    let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    numbers
        .filter(|numbers| numbers.len() == 2 && numbers.iter().all(|number| number.is_finite()))
        .map(Weights::Given)
        .ok_or_else(|| "expected `none`, `balanced`, or two numbers such as 1,2.5".to_owned())
}

/// Epochs without improvement before stopping; `None` for no early stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(pub Option<NonZeroUsize>);

fn patience(text: &str) -> Result<Patience, String> {
    if text == "none" {
        return Ok(Patience(None));
    }
    let epochs = text.parse().map(|epochs| Patience(Some(epochs)));
    epochs.map_err(|_| "expected a whole number of at least 1, or `none`".to_owned())
}

/// Commands for data sets.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// List the data sets and their locations
    #[command(after_help = "\
Examples:
  tyrex data list
  tyrex data list --json")]
    List,
    /// Show the contents of a data set
    #[command(after_help = "\
Examples:
  tyrex data show german
  tyrex data show german --protocol reference --rows 0")]
    Show(ShowDataArgs),
    /// Download data sets from their public sources and check them
    ///
    /// An interrupted download resumes where it stopped. `TYREX_DATA_MIRROR` names another server
    /// with the same paths.
    #[command(after_help = "\
Examples:
  tyrex data fetch heloc
  tyrex data fetch ctg adult taiwan --data-dir ~/data")]
    Fetch(FetchDataArgs),
}

/// Arguments of `data show`.
#[derive(Debug, clap::Args)]
pub struct ShowDataArgs {
    /// Data set
    pub name: String,
    /// Encoding and scaling
    #[arg(long, value_name = "NAME", default_value = "product", value_parser = choice::<Protocol>())]
    pub protocol: Protocol,
    /// First rows to show
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub rows: usize,
}

/// Arguments of `data fetch`.
#[derive(Debug, clap::Args)]
pub struct FetchDataArgs {
    /// Data sets
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

/// Commands for schemas.
#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Draft a schema from a file, for a person to correct
    #[command(after_help = "\
Examples:
  tyrex schema infer loans.csv --label approved
  tyrex schema infer loans.csv --label approved --favourable yes --out loans.toml")]
    Infer(InferArgs),
    /// Check a schema, alone or against a file
    #[command(after_help = "\
Examples:
  tyrex schema check loans.toml
  tyrex schema check loans.toml --data loans.csv")]
    Check(CheckArgs),
}

/// Arguments of `schema infer`.
#[derive(Debug, clap::Args)]
pub struct InferArgs {
    /// Rows: a .csv, .jsonl, .ndjson or .parquet file
    #[arg(value_name = "FILE")]
    pub data: PathBuf,
    /// Column to predict
    #[arg(long, value_name = "COLUMN")]
    pub label: Option<String>,
    /// Favourable value of the label; may be repeated [default: a guess]
    #[arg(long, value_name = "VALUE")]
    pub favourable: Vec<String>,
    /// Write the schema to this file instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
}

/// Arguments of `schema check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Schema
    #[arg(value_name = "FILE")]
    pub schema: PathBuf,
    /// Rows to read through it
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
}

/// Commands for model files.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Show the inputs and outputs of a model
    #[command(after_help = "\
Examples:
  tyrex model show loans.onnx
  tyrex model show forest.onnx --model-class approved --json")]
    Show(ShowModelArgs),
}

/// Arguments of `model show`.
#[derive(Debug, clap::Args)]
pub struct ShowModelArgs {
    /// Model file: ONNX, XGBoost, LightGBM, CatBoost or a scorecard
    #[arg(value_name = "FILE")]
    pub model: PathBuf,
    /// How to read the file.
    #[command(flatten)]
    pub import: ImportArgs,
}
