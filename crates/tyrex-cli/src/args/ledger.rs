//! Arguments of `ledger`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use tyrex_ledger::ledger::{Closing, Hash, Status};

use super::{CellsArgs, ForceArgs, choice, whole};

/// Commands for the ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// List promises, the oldest first
    #[command(after_help = "\
Examples:
  tyrex ledger list --ledger advice.db
  tyrex ledger list --ledger advice.db --status open --model 3fb1
  tyrex ledger list --ledger postgres://tyrex@db.example/advice --after 100 --json")]
    List(LedgerListArgs),
    /// Show one entry: the promise, its subject and its model
    #[command(after_help = "\
Examples:
  tyrex ledger show 3 --ledger advice.db
  tyrex ledger show 0198c2f4-7a51-7cc1-a03c-5d5bd0d7a9a4 --ledger advice.db --json")]
    Show(LedgerShowArgs),
    /// Write all entries, including closings and erasures, to a file
    #[command(after_help = "\
Examples:
  tyrex ledger export --ledger advice.db --out advice.parquet
  tyrex ledger export --ledger advice.db --status open --out open.csv --force")]
    Export(LedgerExportArgs),
    /// Check that no entry was edited, removed, reordered or inserted
    ///
    /// The answer is "no" (exit code 1) if one was; the first such entry is named. Store the head
    /// outside the database: an attacker with full control of the database could rewrite all of it,
    /// and only a head stored earlier shows that.
    #[command(after_help = "\
Examples:
  tyrex ledger verify --ledger advice.db
  tyrex ledger verify --ledger advice.db --head \"$(cat head-of-last-week.txt)\"")]
    Verify(LedgerVerifyArgs),
    /// Erase the personal data of a subject; the chain still verifies
    ///
    /// This removes the subject, the rows and the certificates of its promises, and the service's
    /// finished jobs in the same database that recorded advice for the subject or audited its
    /// promises. The existence, time and model of each promise stay. Nothing is removed while an
    /// unfinished job may hold the subject (exit code 2). The answer is "no" (exit code 1) if the
    /// subject is in neither the ledger nor a job. Backups are not changed.
    #[command(after_help = "\
Examples:
  tyrex ledger forget customer-4711 --ledger advice.db --yes")]
    Forget(LedgerForgetArgs),
    /// Record the promises in files of answers, such as the parts that Spark or Ray wrote
    ///
    /// Answers carry promises if their adviser was made with `promises=True` in Python. The files may
    /// be recorded in any order: a promise that the ledger has already is not recorded again.
    #[command(after_help = "\
Examples:
  tyrex ledger record answers/*.parquet --subject-column customer --ledger advice.db
  tyrex ledger record night.parquet --subject-column id --ledger postgres://host/advice --json")]
    Record(LedgerRecordArgs),
    /// Close a promise that was fulfilled or withdrawn
    #[command(after_help = "\
Examples:
  tyrex ledger close 3 --as fulfilled --ledger advice.db
  tyrex ledger close 0198c2f4-7a51-7cc1-a03c-5d5bd0d7a9a4 --as withdrawn --ledger advice.db")]
    Close(LedgerCloseArgs),
}

/// The ledger.
#[derive(Debug, clap::Args)]
pub struct LedgerArgs {
    /// Ledger: a file, or the URL of a PostgreSQL database [default: the variable `TYREX_LEDGER`]
    #[arg(long, value_name = "LEDGER")]
    pub ledger: Option<String>,
}

/// Arguments of `ledger list`.
#[derive(Debug, clap::Args)]
pub struct LedgerListArgs {
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// Filter of the promises.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Only entries after this number
    #[arg(long, value_name = "N", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub after: Option<u64>,
    /// Maximum number of promises
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub limit: usize,
}

/// Filter of the promises.
#[derive(Debug, clap::Args)]
pub struct FilterArgs {
    /// Only promises with this status
    #[arg(long, value_name = "STATUS", value_parser = choice::<Status>())]
    pub status: Option<Status>,
    /// Only promises to this subject
    #[arg(long, value_name = "SUBJECT")]
    pub subject: Option<String>,
    /// Only promises for this model: its fingerprint, or a prefix of it
    #[arg(long, value_name = "FINGERPRINT")]
    pub model: Option<String>,
}

/// Arguments of `ledger show`.
#[derive(Debug, clap::Args)]
pub struct LedgerShowArgs {
    /// Entry, by its number or its id
    pub entry: String,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// Arguments of `ledger export`.
#[derive(Debug, clap::Args)]
pub struct LedgerExportArgs {
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// Filter of the promises; with a filter, only promises are written.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The .csv, .jsonl, .ndjson or .parquet file to write
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,
    /// Whether to overwrite it.
    #[command(flatten)]
    pub force: ForceArgs,
    /// How to write CSV.
    #[command(flatten)]
    pub cells: CellsArgs,
}

/// Arguments of `ledger verify`.
#[derive(Debug, clap::Args)]
pub struct LedgerVerifyArgs {
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// A head that was stored earlier; it must still be in the chain
    #[arg(long, value_name = "HASH")]
    pub head: Option<Hash>,
}

/// Arguments of `ledger record`.
#[derive(Debug, clap::Args)]
pub struct LedgerRecordArgs {
    /// Files of answers: .parquet, .csv, .jsonl or .ndjson; or folders of Parquet files
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Column that names the subject of each promise
    #[arg(long, value_name = "COLUMN")]
    pub subject_column: String,
    /// The ledger, which is created if it does not exist.
    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// Arguments of `ledger forget`.
#[derive(Debug, clap::Args)]
pub struct LedgerForgetArgs {
    /// Subject, as it was recorded
    pub subject: String,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// Confirm the erasure, which cannot be undone; only needed on a terminal
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `ledger close`.
#[derive(Debug, clap::Args)]
pub struct LedgerCloseArgs {
    /// Promise, by its number or its id
    pub entry: String,
    /// How it ended
    #[arg(long = "as", value_name = "HOW", value_parser = choice::<Closing>())]
    pub closing: Closing,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// How `explain` records advice.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Ledger")]
pub struct RecordArgs {
    /// Record the advice in this ledger: a file, created if it does not exist, or the URL of a
    /// PostgreSQL database
    #[arg(long, value_name = "LEDGER")]
    pub ledger: Option<String>,
    /// Column of the data that names the subject [default: file or data set, and row]
    #[arg(long, value_name = "COLUMN", requires = "ledger")]
    pub subject_column: Option<String>,
    /// How long the promise is valid, such as 90d, 12w or 36h, or `for-good` [default: 90d]
    #[arg(long, value_name = "TIME", requires = "ledger", value_parser = holds)]
    pub holds: Option<Holds>,
}

/// How long a promise holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A span of time.
    For(Duration),
    /// Without an end.
    ForGood,
}

/// A span of time, a whole number and its unit, or `for-good`.
fn holds(text: &str) -> Result<Holds, String> {
    const HOUR: u64 = 3600;
    let wrong = || {
        "expected a whole number of days (90d), weeks (12w) or hours (36h), or `for-good`"
            .to_owned()
    };
    if text == "for-good" {
        return Ok(Holds::ForGood);
    }
    let unit = match text.chars().last() {
        Some('h') => HOUR,
        Some('d') => 24 * HOUR,
        Some('w') => 7 * 24 * HOUR,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match number.checked_mul(unit).filter(|&seconds| seconds > 0) {
        Some(seconds) => Ok(Holds::For(Duration::from_secs(seconds))),
        None => Err(wrong()),
    }
}
