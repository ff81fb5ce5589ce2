//! Advice that is promised for one change, judged under another: the table of RESULTS.md.
//!
//! `TYREX_DATA=data cargo run --release -p tyrex --example pairs -- german ctg heloc` reads the data sets,
//! which `tyrex data fetch` stores. For every change, 20 rejected applicants are advised with a
//! promise of 0.9 at confidence 0.95 for that change. The advice with a kept promise is judged by
//! 60 models of every change, which nothing else uses. A cell is the share of these judgements
//! that accept, in percent.
//! The same rows give the same tables, on any number of threads.
//!
//! With `--folder pairs` the judging models and the rows of the tables are kept in a folder, and an
//! interrupted run continues. `--judges 20` judges with fewer models of every change.
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use tyrex::Seed;
use tyrex::change::ModelChange;
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{Answered, Applicant, Ask, Explainer, PromisedProbability, RetrainingTerms};
use tyrex::file::Overwrite;
use tyrex::model::{Model, TrainParams};
use tyrex::points::Points;

const APPLICANTS: usize = 20;
const JUDGES: usize = 60;
const PROMISE: f64 = 0.9;

/// The changes, by the name of their row, with the name and the parameters of the catalogue.
const CHANGES: [[&str; 3]; 12] = [
    ["reinitialise", "reinitialise", ""],
    ["leave-out", "leave-out", ""],
    ["bootstrap", "bootstrap", ""],
    ["architecture", "architecture", "hidden = [[64], [128], [64, 64], [128, 128]]"],
    ["linear", "architecture", "hidden = [[]]"],
    ["hyperparameters", "hyperparameters", ""],
    ["fine-tune", "fine-tune", ""],
    ["weight-noise", "weight-noise", ""],
    ["dropout", "dropout", ""],
    ["adversarial-weights", "adversarial-weights", ""],
    ["moved-threshold", "moved-threshold", ""],
    ["reinitialise,bootstrap", "reinitialise,bootstrap", ""],
];

fn main() -> Result<()> {
    let (mut judges, mut kept, mut names) = (JUDGES, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} has no value"));
        match argument.as_str() {
            "--judges" => judges = value()?.parse().context("--judges")?,
            "--folder" => kept = Some(PathBuf::from(value()?)),
            _ => names.push(argument),
        }
    }
    let folder = std::env::var_os("TYREX_DATA").map(PathBuf::from);
    let catalogue = Catalogue::new(folder.as_deref());
    for name in names {
        let set = catalogue.load(&name, Variant::Product, Direction::Favourable)?;
        let params = TrainParams::default();
        let explainer = Explainer::train(set, &params, Seed(0), |_| ControlFlow::Continue(()))?;
        println!("{name}\n");
        let kept = kept.as_ref().map(|folder| folder.join(format!("{name}-{judges}")));
        table(&explainer, judges, kept.as_deref())?;
        println!();
    }
    Ok(())
}

/// Prints the table of one data set.
fn table(explainer: &Explainer, judges: usize, kept: Option<&Path>) -> Result<()> {
    let mut applicants = explainer.applicants().rejected(explainer.reference().applicants());
    applicants.truncate(APPLICANTS);
    let of_change = judges_of(explainer, judges, kept);
    let judges = CHANGES.iter().map(of_change).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = CHANGES.iter().map(|[name, ..]| *name).collect();
    println!("| promised for | kept | cost | {} |", names.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(CHANGES.len()));
    for (own, [title, name, params]) in CHANGES.iter().enumerate() {
        let file = kept.map(|folder| folder.join(format!("{title}.md")));
        if let Some(file) = file.as_ref().filter(|file| file.is_file()) {
            println!("{}", std::fs::read_to_string(file)?);
            continue;
        }
        let change = ModelChange::with_params(name, params)?;
        let (points, cost) = promised(explainer, &applicants, change)?;
        let cells = judges.iter().enumerate().map(|(place, judges)| {
            let accepting: usize =
                judges.iter().map(|judge| judge.score(&points)).map(accepted).sum();
            let share = 100.0 * accepting as f64 / (points.len() * judges.len()) as f64;
            if place == own { format!("**{share:.1}**") } else { format!("{share:.1}") }
        });
        let cells: Vec<String> = cells.collect();
        let row = format!("| {title} | {} | {cost:.2} | {} |", points.len(), cells.join(" | "));
        if let Some(file) = file {
            std::fs::write(file, &row)?;
        }
        println!("{row}");
    }
    Ok(())
}

fn accepted(scores: Vec<f32>) -> usize {
    scores.into_iter().filter(|score| *score >= 0.5).count()
}

/// Makes the models that judge advice under a change. No question derives the same seed.
fn judges_of(
    explainer: &Explainer,
    models: usize,
    kept: Option<&Path>,
) -> impl Fn(&[&str; 3]) -> Result<Vec<Arc<dyn Model>>> {
    move |[title, name, params]| {
        let terms = RetrainingTerms {
            change: ModelChange::with_params(name, params)?,
            models,
            params: explainer.retraining().params()?,
            seed: Seed(0).derive("judges of pairs"),
        };
        let go_on = |_, _: &_| ControlFlow::Continue(());
        let retraining = explainer.retraining();
        let judges = match kept.map(|folder| folder.join(title)) {
            Some(folder) => retraining.train_into(&folder, &terms, Overwrite::Refuse, go_on)?,
            None => retraining.train(&terms, go_on)?,
        };
        Ok(judges.members().to_vec())
    }
}

/// The advice with a kept promise for this change, and its mean cost.
fn promised(
    explainer: &Explainer,
    applicants: &[Applicant],
    change: ModelChange,
) -> Result<(Points, f64)> {
    let ask = Ask { promise: Some(PROMISE), change, relax: Some(false), ..Ask::default() };
    let Answered { advice, certificates, .. } =
        explainer.answer(applicants, &ask, None, |_| ControlFlow::Continue(()))?;
    let mut points = Points::new(explainer.encoder().dim());
    let mut cost = 0.0;
    for (advice, certificate) in advice.iter().zip(&certificates) {
        let shown = certificate.as_ref().and_then(PromisedProbability::of);
        if let (Some(found), Some(shown)) = (advice.found(), shown)
            && shown.probability >= PROMISE
        {
            points.push(&found.point);
            cost += found.cost;
        }
    }
    let mean = cost / points.len() as f64;
    Ok((points, mean))
}
