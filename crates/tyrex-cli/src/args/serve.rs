//! Arguments of `serve` and `token`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Subcommand, value_parser};
use tyrex_server::access::Role;
use tyrex_server::log::LogFormat;

use tyrex::explain::SERVED_MODELS;

use super::{ModelArgs, choice, whole};

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

docs/service.md says how to run it for others.",
    group = ArgGroup::new("served").args(["dataset", "data"])
)]
pub struct ServeArgs {
    /// Data set of the catalogue to train a model on; `tyrex data list` shows them
    #[arg(long, value_name = "NAME", help_heading = "What is served", conflicts_with = "model")]
    pub dataset: Option<String>,
    /// Your own rows, to explain: a .csv, .jsonl, .ndjson or .parquet file. Without --reference
    /// they are also the rows that train
    #[arg(long, value_name = "FILE", help_heading = "What is served")]
    pub data: Option<PathBuf>,
    /// Rows the model was trained on, apart from the rows to explain
    #[arg(long, value_name = "FILE", help_heading = "What is served", requires = "data")]
    pub reference: Option<PathBuf>,
    /// What the columns of --data mean [default: what the model says]
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "What is served",
        requires = "data",
        conflicts_with = "dataset"
    )]
    pub schema: Option<PathBuf>,
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Models to retrain, to see what survives
    #[arg(long, value_name = "N", default_value_t = SERVED_MODELS, value_parser = whole::<usize>, allow_negative_numbers = true, help_heading = "What is served")]
    pub models: usize,
    /// Folder of `tyrex experiment run` to show, or a folder of such folders [default: a small
    /// suite that ships]
    #[arg(long, value_name = "FOLDER", help_heading = "What is served")]
    pub results: Option<PathBuf>,
    /// Where promises, models, jobs and tokens are kept: a SQLite file, or postgres://...
    /// [default: what `TYREX_LEDGER` says, or tyrex.db]
    #[arg(long, value_name = "ADDRESS", help_heading = "State")]
    pub ledger: Option<String>,
    /// How it is reached.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// How much it takes on.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// How the service is reached.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How it is reached")]
pub struct ReachArgs {
    /// Address and port to listen on; any but 127.0.0.1 and `::1` demands tokens
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8080")]
    pub address: SocketAddr,
    /// Port to listen on, at 127.0.0.1; 0 for any that is free
    #[arg(long, value_name = "PORT", conflicts_with = "address")]
    pub port: Option<u16>,
    /// Demand tokens on this machine, too; for use behind a reverse proxy
    #[arg(long)]
    pub require_tokens: bool,
    /// Certificate and its chain, in PEM, for HTTPS; read again on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// How to write the log, to standard error
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = choice::<LogFormat>())]
    pub log: LogFormat,
}

/// How much the service takes on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Largest body of a request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = value_parser!(u32).range(1..=65536))]
    pub max_body: u32,
    /// Largest body with files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = value_parser!(u32).range(1..=65536))]
    pub max_upload: u32,
    /// Memory for the bodies of all requests at one time, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = value_parser!(u32).range(1..=1048576))]
    pub max_bodies: u32,
    /// Most rows of one request
    #[arg(long, value_name = "N", default_value = "10000")]
    pub max_rows: NonZeroUsize,
    /// Most rows to advise while the client waits; more become a job
    #[arg(long, value_name = "N", default_value = "64")]
    pub max_rows_at_once: NonZeroUsize,
    /// Time until an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub timeout: Duration,
    /// Time until the headers of a request are there; idle connections end after it, too
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time)]
    pub header_timeout: Duration,
    /// Time without a byte while a body is sent or an answer taken
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub idle_timeout: Duration,
    /// Connections at one time
    #[arg(long, value_name = "N", default_value = "4096")]
    pub connections: NonZeroUsize,
    /// Questions that may wait for a thread; the next is refused with 503
    #[arg(long, value_name = "N", default_value = "2048")]
    pub queue: NonZeroUsize,
    /// Requests per second of one token, or of one address where there are no tokens [default:
    /// 100 with tokens, else no limit]
    #[arg(long, value_name = "N")]
    pub rate: Option<NonZeroU32>,
    /// Time between the signal to end and the end
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub drain: Duration,
}

/// What to do with tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token; it is shown once
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
    /// End a token, at once
    #[command(after_help = "\
Examples:
  tyrex token revoke 9f86d081884c7d65")]
    Revoke(RevokeTokenArgs),
}

/// Where tokens are kept.
#[derive(Debug, clap::Args)]
pub struct TokenArgs {
    /// Database of the service: a SQLite file, or postgres://... [default: what `TYREX_LEDGER`
    /// says, or tyrex.db]
    #[arg(long, value_name = "ADDRESS")]
    pub ledger: Option<String>,
}

/// Arguments of `token create`.
#[derive(Debug, clap::Args)]
pub struct CreateTokenArgs {
    /// What it allows
    #[arg(long, value_name = "NAME", value_parser = choice::<Role>())]
    pub role: Role,
    /// What to call it in lists
    #[arg(long, value_name = "NAME", default_value = "")]
    pub name: String,
    /// When it ends by itself, such as 12h, 90d or 1y [default: never]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub expires: Option<Duration>,
    /// Where it is kept.
    #[command(flatten)]
    pub place: TokenArgs,
}

/// Arguments of `token revoke`.
#[derive(Debug, clap::Args)]
pub struct RevokeTokenArgs {
    /// Public part of the token; `tyrex token list` shows it
    #[arg(value_name = "ID")]
    pub id: String,
    /// Where it is kept.
    #[command(flatten)]
    pub place: TokenArgs,
}

/// A time with its unit: `20s`, `5m`, `12h`, `90d`, `2w`, `1y`.
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
