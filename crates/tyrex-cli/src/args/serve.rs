//! Arguments of `serve` and `token`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Subcommand};
use tyrex_server::access::Role;
use tyrex_server::log::LogFormat;

use tyrex::explain::SERVED_MODELS;

use super::{ChangeArgs, ModelArgs, TrainingArgs, between, choice};

/// The most models that a service retrains for one model.
const MOST_SERVED: u64 = 1000;

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  tyrex serve --dataset german
  tyrex serve --data loans.csv --schema loans.toml --model loans.onnx --ledger advice.db
  tyrex serve --ledger postgres://tyrex@localhost/tyrex --port 9000 --require-tokens
  tyrex token create --role admin && tyrex serve --address 0.0.0.0:8443 \\
      --tls-cert server.pem --tls-key server.key --log json

docs/service.md explains how to run the service for other users.",
    group = ArgGroup::new("served").args(["dataset", "data"])
)]
pub struct ServeArgs {
    /// Data set of the catalogue to train a model on; `tyrex data list` shows them
    #[arg(long, value_name = "NAME", help_heading = "Model and data", conflicts_with = "model")]
    pub dataset: Option<String>,
    /// Your own rows, to explain: a .csv, .jsonl, .ndjson or .parquet file. Without --reference
    /// they are also the rows that train
    #[arg(long, value_name = "FILE", help_heading = "Model and data")]
    pub data: Option<PathBuf>,
    /// Rows the model was trained on, apart from the rows to explain
    #[arg(long, value_name = "FILE", help_heading = "Model and data", requires = "data")]
    pub reference: Option<PathBuf>,
    /// Schema of --data [default: the schema in the model file]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Model and data",
        requires = "data",
        conflicts_with = "dataset"
    )]
    pub schema: Option<PathBuf>,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Models to retrain, to test which advice stays valid
    #[arg(long, value_name = "N", default_value_t = SERVED_MODELS, value_parser = between::<usize, 0, MOST_SERVED>, allow_negative_numbers = true, help_heading = "Model and data")]
    pub models: usize,
    /// Folder of retrained models, in place of those that the service would retrain: from `tyrex
    /// retrain`, or model files that you retrained, named search*, tune*, fresh*, or divided at
    /// random
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "model",
        conflicts_with_all = ["change", "change_params", "models"],
        help_heading = "Model and data"
    )]
    pub ensemble: Option<PathBuf>,
    /// How the retrained models differ.
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Training parameters.
    #[command(flatten, next_help_heading = "Training of retrained models")]
    pub training: TrainingArgs,
    /// Folder of `tyrex experiment run` to show, or a folder of such folders [default: a small
    /// built-in suite]
    #[arg(long, value_name = "FOLDER", help_heading = "Model and data")]
    pub results: Option<PathBuf>,
    /// Database of promises, models, jobs and tokens: a SQLite file, or postgres://... [default:
    /// the variable `TYREX_LEDGER`, or tyrex.db]
    #[arg(long, value_name = "ADDRESS", help_heading = "State")]
    pub ledger: Option<String>,
    /// Network options.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Network options of the service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Network")]
pub struct ReachArgs {
    /// Address and port to listen on; all addresses except 127.0.0.1 and `::1` require tokens
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// Port to listen on, at 127.0.0.1; 0 for any free port
    #[arg(long, value_name = "PORT", conflicts_with = "address")]
    pub port: Option<u16>,
    /// Require tokens from this machine too; for use behind a reverse proxy
    #[arg(long)]
    pub require_tokens: bool,
    /// Certificate and its chain, in PEM, for HTTPS; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Format of the log on standard error
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = choice::<LogFormat>())]
    pub log: LogFormat,
}

/// Limits of the service.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Largest body of a request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = between::<u32, 1, 65_536>)]
    pub max_body: u32,
    /// Largest body with files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = between::<u32, 1, 65_536>)]
    pub max_upload: u32,
    /// Memory for the bodies of all concurrent requests, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = between::<u32, 1, 1_048_576>)]
    pub max_bodies: u32,
    /// Maximum number of rows in one request
    #[arg(long, value_name = "N", default_value = "10000")]
    pub max_rows: NonZeroUsize,
    /// Maximum number of rows that `explain` answers directly; a request with more becomes a job
    #[arg(long, value_name = "N", default_value = "64")]
    pub max_rows_at_once: NonZeroUsize,
    /// Time limit of a request
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub timeout: Duration,
    /// Time limit for the headers of a request, and for idle connections
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time)]
    pub header_timeout: Duration,
    /// Time limit without progress while a body is sent or a response is read
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub idle_timeout: Duration,
    /// Maximum number of concurrent connections
    #[arg(long, value_name = "N", default_value = "4096")]
    pub connections: NonZeroUsize,
    /// Maximum number of questions that wait for a thread; more are refused with 503
    #[arg(long, value_name = "N", default_value = "2048")]
    pub queue: NonZeroUsize,
    /// Requests per second for each token, or for each address without tokens [default: 100 with
    /// tokens, else no limit]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Time limit of a graceful shutdown
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub drain: Duration,
}

/// Commands for tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token; it is shown once
    #[command(after_help = "\
Examples:
  tyrex token create --role read
  tyrex token create --role explain --name 'nightly job' --expires 90d --ledger advice.db")]
    Create(CreateTokenArgs),
    /// List the tokens, without their secrets
    #[command(after_help = "\
Examples:
  tyrex token list
  tyrex token list --ledger postgres://tyrex@localhost/tyrex --json")]
    List(TokenArgs),
    /// Revoke a token, with immediate effect
    #[command(after_help = "\
Examples:
  tyrex token revoke 9f86d081884c7d65")]
    Revoke(RevokeTokenArgs),
}

/// The database of the tokens.
#[derive(Debug, clap::Args)]
pub struct TokenArgs {
    /// Database of the service: a SQLite file, or postgres://... [default: the variable
    /// `TYREX_LEDGER`, or tyrex.db]
    #[arg(long, value_name = "ADDRESS")]
    pub ledger: Option<String>,
}

/// Arguments of `token create`.
#[derive(Debug, clap::Args)]
pub struct CreateTokenArgs {
    /// Role of the token
    #[arg(long, value_name = "NAME", value_parser = choice::<Role>())]
    pub role: Role,
    /// Name of the token in lists
    #[arg(long, value_name = "NAME", default_value = "")]
    pub name: String,
    /// Lifetime, such as 12h, 90d or 1y [default: unlimited]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub expires: Option<Duration>,
    /// The database of the tokens.
    #[command(flatten)]
    pub place: TokenArgs,
}

/// Arguments of `token revoke`.
#[derive(Debug, clap::Args)]
pub struct RevokeTokenArgs {
    /// Public part of the token; `tyrex token list` shows it
    #[arg(value_name = "ID")]
    pub id: String,
    /// The database of the tokens.
    #[command(flatten)]
    pub place: TokenArgs,
}

/// A duration with its unit: `20s`, `5m`, `12h`, `90d`, `2w`, `1y`.
fn time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a number of at least 1 and its unit, such as 30s, 12h or 90d";
    let end = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(end);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        "y" => 365 * 24 * 3600,
        _ => return Err(expected().to_owned()),
    };
    let number = number.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(expected)?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(|| expected().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let day = 24 * 3600;
        let good =
            [("1s", 1), ("5m", 300), ("12h", 12 * 3600), ("90d", 90 * day), ("1y", 365 * day)];
        for (text, seconds) in good {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "0s",
            "-1d",
            "1.5h",
            "1 d",
            "90D",
            "99999999999999999999y",
            "9999999999999999999y",
        ] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
