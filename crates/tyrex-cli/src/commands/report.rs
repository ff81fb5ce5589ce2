//! `tyrex report`

use std::path::Path;

use serde::Serialize;
use tyrex::file::{check_writable, write_whole};
use tyrex::{Overwrite, Result};
use tyrex_lab::experiment::{RESULTS, Results, TIMINGS, read_timings};
use tyrex_lab::report::{self, ClaimVerdict, PaperClaim};

use super::summary::{counted, shown};
use super::{Context, source};
use crate::args::ReportArgs;
use crate::help::Usage;
use crate::interrupt;
use crate::printer::{Page, Report, Stand};

pub(crate) fn run(context: &mut Context<'_>, args: &ReportArgs) -> anyhow::Result<()> {
    let folder = &args.results;
    let overwrite = args.force.overwrite();
    let out = args.out.clone().unwrap_or_else(|| folder.join("report.html"));
    let results = Results::read(folder)?;
    let inputs = [folder.join(RESULTS), folder.join(TIMINGS)];
    for file in std::iter::once(&out).chain(&args.markdown) {
        source::keep_inputs(file, &[Some(&inputs[0]), Some(&inputs[1])])?;
        check_writable(file, overwrite)?;
    }
    if args.markdown.as_ref() == Some(&out) {
        return Err(Usage {
            problem: format!("--out and --markdown are both {}", out.display()),
            help: "give them different names".to_owned(),
        }
        .into());
    }
    let timings = read_timings(folder);
    write(&out, overwrite, &report::html(&results, &timings)?)?;
    if let Some(file) = &args.markdown {
        write(file, overwrite, &report::markdown(&results, &timings)?)?;
    }
    context.printer.show(&WrittenReport {
        suite: results.suite.clone(),
        title: results.title.clone(),
        experiments: results.experiments.len(),
        claims: report::claims(&results)?,
        out: shown(&out),
        markdown: args.markdown.as_deref().map(shown),
    })
}

fn write(path: &Path, overwrite: Overwrite, text: &str) -> Result<()> {
    interrupt::whole(|| write_whole(path, overwrite, |out| out.write_all(text.as_bytes())))
}

/// The report of `report`.
#[derive(Debug, Serialize)]
struct WrittenReport {
    suite: String,
    title: String,
    experiments: usize,
    claims: Vec<PaperClaim>,
    out: String,
    markdown: Option<String>,
}

impl Report for WrittenReport {
    const COMMAND: &'static str = "report";

    fn page(&self, page: &mut Page) {
        page.title(&format!("{}, {}", self.title, counted(self.experiments, "experiment")));
        let mut titles: Vec<&str> = Vec::new();
        for claim in &self.claims {
            if !titles.contains(&claim.title.as_str()) {
                titles.push(&claim.title);
            }
        }
        let verdicts = [
            ClaimVerdict::Holds,
            ClaimVerdict::DoesNot,
            ClaimVerdict::Undecided,
            ClaimVerdict::NotTested,
        ];
        let rows: Vec<Vec<String>> = titles
            .iter()
            .map(|title| {
                let of_title = || self.claims.iter().filter(|claim| claim.title == *title);
                let counts = verdicts
                    .map(|verdict| of_title().filter(|claim| claim.verdict == verdict).count());
                std::iter::once((*title).to_owned())
                    .chain(counts.map(|count| count.to_string()))
                    .collect()
            })
            .collect();
        if !rows.is_empty() {
            let mut header = vec![("claim", Stand::Left)];
            header.extend(verdicts.map(|verdict| (verdict.name(), Stand::Right)));
            page.table(&header, &rows);
        }
        let files: Vec<&str> =
            std::iter::once(self.out.as_str()).chain(self.markdown.as_deref()).collect();
        page.title(&format!("Wrote {}", files.join(" and ")));
    }
}
