//! Arguments of `report`.

use std::path::PathBuf;

use super::ForceArgs;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tyrex report results
  tyrex report results --out paper.html
  tyrex report results --markdown RESULTS.md --force")]
pub struct ReportArgs {
    /// Folder of the results, from `tyrex experiment run`
    #[arg(value_name = "FOLDER")]
    pub results: PathBuf,
    /// HTML file to write [default: report.html in the folder]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Also write this Markdown file: the same tables without the figures
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub markdown: Option<PathBuf>,
    /// Whether to overwrite them.
    #[command(flatten)]
    pub force: ForceArgs,
}
