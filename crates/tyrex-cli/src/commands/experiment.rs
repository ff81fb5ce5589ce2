//! `tyrex experiment`

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use tyrex::data::catalogue::Catalogue;
use tyrex::{Error, Result, Seed};
use tyrex_lab::experiment::result::{Comparison, Finding};
use tyrex_lab::experiment::{self, Experiment, Results, Suite, Task};

use super::Context;
use super::summary::{counted, shown};
use crate::args::{ExperimentRunArgs, ExperimentShowArgs};
use crate::interrupt;
use crate::printer::{Page, Report, Stand};
use crate::progress::Unit;

pub(crate) fn run(context: &mut Context<'_>, args: &ExperimentRunArgs) -> anyhow::Result<()> {
    let suite = read(&args.file, args.quick)?;
    let catalogue = Catalogue::new(context.global.data_dir.as_deref());
    let progress = context.progress("experiments", Unit::Share);
    let ran = experiment::run(&suite, &catalogue, &args.out, &|at| {
        progress.at((1000.0 * at.done) as u64, 1000 * at.total as u64, at.doing.to_owned());
        // Every file is complete at any time, so an interrupt need not wait.
        if interrupt::requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let time = progress.finish();
    let (results, _) = ran?;
    context.printer.show(&RunReport::of(&results, &args.out, time)?)
}

pub(crate) fn show(context: &mut Context<'_>, args: &ExperimentShowArgs) -> anyhow::Result<()> {
    let suite = read(&args.file, args.quick)?;
    context.printer.show(&ShowReport { suite })
}

fn read(path: &Path, quick: bool) -> Result<Suite> {
    let suite = Suite::read(path)?;
    Ok(if quick { suite.quick() } else { suite })
}

/// The report of `experiment run`.
#[derive(Debug, Serialize)]
struct RunReport {
    suite: String,
    quick: bool,
    seed: Seed,
    out: String,
    experiments: Vec<ExperimentLine>,
    // The same seed gives the same document, so times are for people only.
    #[serde(skip)]
    time: Duration,
}

/// One line for an experiment.
#[derive(Debug, Serialize)]
struct ExperimentLine {
    experiment: String,
    title: String,
    outcome: String,
}

impl RunReport {
    fn of(results: &Results, out: &Path, time: Duration) -> Result<Self, Error> {
        let experiments = results
            .experiments
            .iter()
            .map(|shown| {
                Ok(ExperimentLine {
                    experiment: shown.experiment.name.clone(),
                    title: shown.experiment.title.clone(),
                    outcome: match &shown.finding {
                        Finding::Comparison(comparison) => compared(comparison)?,
                        Finding::Moons(moons) => format!("{} maps", moons.maps.len()),
                        Finding::Histograms(found) => {
                            format!("{} histograms", found.histograms.len())
                        }
                        Finding::Certificates(found) => {
                            let bins: usize = found.tiers.iter().map(|tier| tier.bins.len()).sum();
                            format!("{bins} bins of certificates")
                        }
                    },
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            suite: results.suite.clone(),
            quick: results.quick,
            seed: results.seed,
            out: shown(out),
            experiments,
            time,
        })
    }
}

/// The size of a comparison in words.
fn compared(comparison: &Comparison) -> Result<String> {
    let bases = &comparison.data.bases;
    Ok(format!(
        "{}, {}, {}",
        counted(comparison.lines()?.len(), "line"),
        counted(bases.len(), "base model"),
        counted(bases.iter().map(|base| base.factuals).sum(), "factual")
    ))
}

impl Report for RunReport {
    const COMMAND: &'static str = "experiment run";

    fn page(&self, page: &mut Page) {
        let quick = if self.quick { ", the short run" } else { "" };
        page.title(&format!("{}{quick}", self.suite));
        let rows: Vec<Vec<String>> = self
            .experiments
            .iter()
            .map(|line| vec![line.experiment.clone(), line.title.clone(), line.outcome.clone()])
            .collect();
        let left = |name| (name, Stand::Left);
        page.table(&[left("experiment"), left("title"), left("outcome")], &rows);
        page.title(&format!("Wrote {} in {:.0} s", self.out, self.time.as_secs_f64()));
        page.line(&format!("See it with: tyrex report {}", self.out));
    }
}

/// The report of `experiment show`.
#[derive(Debug, Serialize)]
struct ShowReport {
    suite: Suite,
}

impl Report for ShowReport {
    const COMMAND: &'static str = "experiment show";

    fn page(&self, page: &mut Page) {
        page.title(&self.suite.title);
        let rows: Vec<Vec<String>> = self
            .suite
            .experiments
            .iter()
            .map(|experiment| {
                let world = &experiment.world;
                vec![
                    experiment.name.clone(),
                    world.dataset.clone(),
                    world.models().to_string(),
                    world.bases.to_string(),
                    world.factuals.to_string(),
                    work(experiment),
                ]
            })
            .collect();
        let header = [
            ("experiment", Stand::Left),
            ("data", Stand::Left),
            ("models", Stand::Right),
            ("bases", Stand::Right),
            ("factuals", Stand::Right),
            ("work", Stand::Left),
        ];
        page.table(&header, &rows);
    }
}

fn work(experiment: &Experiment) -> String {
    match &experiment.task {
        Task::Comparison(task) => {
            let contenders = task.contenders().map_or(0, |all| all.len());
            let norms: Vec<&str> = task.norms.iter().map(|norm| norm.name()).collect();
            format!("{contenders} contenders, {}, {}", norms.join(" and "), task.protocol.name())
        }
        Task::Moons(task) => format!("{} maps", task.shown + 2),
        Task::Histograms(task) => format!("{} histograms", task.methods.len() + 2),
        Task::Certificates(task) => format!("certificates from {} models", task.models),
    }
}
