//! Arguments of `audit`.

use std::path::PathBuf;

use clap::ArgGroup;
use tyrex::explain::{CONFIDENCE, Grouping, RepairPart};

use super::{CellsArgs, ForceArgs, ImportArgs, SearchArgs};

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    group = ArgGroup::new("promises").args(["ledger", "counterfactuals"]),
    after_help = "\
Examples:
  tyrex audit --ledger advice.db --model new.onnx
  tyrex audit --ledger postgres://host/advice --model new.onnx --allow 0.5% --out audit.html
  tyrex audit --counterfactuals cf.csv --data applicants.csv --model a.onnx --model b.onnx
  tyrex audit --counterfactuals cf.csv --dataset german --model new.onnx --by sex --by age:25,40,60
  tyrex audit --ledger advice.db --model january.onnx --model february.onnx --model march.onnx
  tyrex audit --ledger advice.db --model new.onnx --part 2/8 --out part-2.json"
)]
pub struct AuditArgs {
    /// Commands for parts.
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
    /// Ledger with the promises: a file, or the URL of a PostgreSQL database; it is only read
    /// [default: the variable `TYREX_LEDGER`]
    #[arg(long, value_name = "LEDGER", help_heading = "Promises")]
    pub ledger: Option<String>,
    /// Promises in a file, as `explain --out` writes it
    #[arg(long, value_name = "FILE", help_heading = "Promises")]
    pub counterfactuals: Option<PathBuf>,
    /// Rows that `explain` used: the original applicants, and, without --reference, the data rows for
    /// methods that need them
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub data: Option<PathBuf>,
    /// The same, as a data set of the catalogue
    #[arg(long, value_name = "NAME", conflicts_with = "data", help_heading = "Data")]
    pub dataset: Option<String>,
    /// Rows that the models were trained on: searches for repairs start from them, and the scale of
    /// models on raw columns is fitted on them
    #[arg(long, value_name = "FILE", conflicts_with = "dataset", help_heading = "Data")]
    pub reference: Option<PathBuf>,
    /// Schema of the features [default: the schema in each model file, then the data set's]
    #[arg(long, value_name = "FILE", help_heading = "Data")]
    pub schema: Option<PathBuf>,
    /// Model file of a candidate; may be repeated, to compare several, or in the order of use
    /// to bound the share that updates keep
    #[arg(long, value_name = "FILE", required = true, help_heading = "Model file")]
    pub model: Vec<PathBuf>,
    /// How to read the files.
    #[command(flatten)]
    pub import: ImportArgs,
    /// Folder of retrained versions of the one candidate, from `tyrex retrain` or model files: repairs
    /// are searched for over them (trex-e, if there are enough), and each says how many of the
    /// fresh ones accept it
    #[arg(long, value_name = "FOLDER", help_heading = "Model file")]
    pub ensemble: Option<PathBuf>,
    /// Share of promises that may be broken, such as 0.5% or 0.005
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0",
        value_parser = share,
        allow_negative_numbers = true,
        help_heading = "Gate"
    )]
    pub allow: f64,
    /// Also count promises by group: a feature's levels or quartiles, or intervals between edges
    /// (age:25,40,60); may be repeated
    #[arg(long, value_name = "FEATURE[:EDGES]", value_parser = grouping, help_heading = "Gate")]
    pub by: Vec<Grouping>,
    /// Confidence of the intervals, of the test that compares groups, and of the bound over updates
    #[arg(
        long,
        value_name = "P",
        default_value_t = CONFIDENCE,
        value_parser = share,
        allow_negative_numbers = true,
        help_heading = "Gate"
    )]
    pub confidence: f64,
    /// How repairs of broken promises are found.
    #[command(flatten)]
    pub search: SearchArgs,
    /// Search for the repairs of one part of the broken promises only, such as 2/8; `tyrex audit join`
    /// makes the whole report of the .json files of all parts
    #[arg(long, value_name = "I/N", value_parser = part, requires = "out", help_heading = "Repairs")]
    pub part: Option<RepairPart>,
    /// Write the answer to a .html, .json, .csv, .jsonl, .ndjson or .parquet file; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Vec<PathBuf>,
    /// Whether to overwrite them.
    #[command(flatten)]
    pub force: ForceArgs,
    /// How to write CSV.
    #[command(flatten)]
    pub cells: CellsArgs,
}

/// Commands for the parts of an audit.
#[derive(Debug, clap::Subcommand)]
pub enum AuditCommand {
    /// Join the reports of all parts of an audit
    ///
    /// The report is the one of an audit that was not divided.
    #[command(after_help = "\
Examples:
  tyrex audit join part-*.json --out audit.html --out audit.json")]
    Join(AuditJoinArgs),
}

/// Arguments of `audit join`.
#[derive(Debug, clap::Args)]
pub struct AuditJoinArgs {
    /// The .json reports of `tyrex audit --part`, in any order
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Write the answer to a .html, .json, .csv, .jsonl, .ndjson or .parquet file; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Vec<PathBuf>,
    /// Whether to overwrite them.
    #[command(flatten)]
    pub force: ForceArgs,
    /// How to write CSV.
    #[command(flatten)]
    pub cells: CellsArgs,
}

fn part(text: &str) -> Result<RepairPart, String> {
    text.parse::<RepairPart>().map_err(|error| error.to_string())
}

/// A share between 0 and 1, or in per cent. A bare 1 is ambiguous.
fn share(text: &str) -> Result<f64, String> {
    let number = match text.trim().strip_suffix('%') {
        // Parsed with an exponent, not divided by 100, so that 0.7% is exactly the number 0.007.
        Some(percent) if !percent.contains(['e', 'E']) => format!("{}e-2", percent.trim()),
        Some(_) => String::new(),
        None => text.trim().to_owned(),
    };
    let number = number.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    match number {
        Some(1.0) if !text.contains('%') => Err("ambiguous share: write 1% or 100%".to_owned()),
        Some(share) => Ok(share),
        None => Err("expected a share such as 0.5% or 0.005, from 0 to 100%".to_owned()),
    }
}

pub(super) fn grouping(text: &str) -> Result<Grouping, String> {
    text.parse::<Grouping>().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn per_cent_and_shares_are_the_same_numbers() {
        for thousandths in 0..=1000 {
            let plain = f64::from(thousandths) / 1000.0;
            let percent = format!("{}.{}%", thousandths / 10, thousandths % 10);
            assert_eq!(share(&percent), Ok(plain), "{percent}");
            if thousandths < 1000 {
                assert_eq!(share(&plain.to_string()), Ok(plain));
            }
        }
        assert_eq!(share("1"), Err("ambiguous share: write 1% or 100%".to_owned()));
        for wrong in ["-1", "1.1", "101%", "nan", "inf", "half", "", "%", "1e1%", "5 percent"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
