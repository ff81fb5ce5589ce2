//! Advice that is promised for one change, judged under another: the table of RESULTS.md.
//!
//! `TYREX_DATA=data cargo run --release --example pairs -- german ctg heloc` reads the data sets,
//! which `tyrex data fetch` stores. For every change, 20 rejected applicants are advised with a
//! promise of 0.9 at confidence 0.95 for that change. The advice with a kept promise is judged by
//! 60 models of every change, which nothing else uses. A cell is the share of these judgements
//! that accept, in percent.
//! The same rows give the same tables, on any number of threads.
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::Result;
use tyrex::Seed;
use tyrex::change::ModelChange;
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{Answered, Applicant, Ask, Explainer, PromisedProbability, RetrainingTerms};
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
    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let catalogue = Catalogue::new(folder.as_deref());
    for name in std::env::args().skip(1) {
        let set = catalogue.load(&name, Variant::Product, Direction::Favourable)?;
        let params = TrainParams::default();
        let explainer = Explainer::train(set, &params, Seed(0), |_| ControlFlow::Continue(()))?;
        println!("{name}\n\n{}", table(&explainer)?);
    }
    Ok(())
}

/// The table of one data set.
fn table(explainer: &Explainer) -> Result<String> {
    let mut applicants = explainer.applicants().rejected(explainer.reference().applicants());
    applicants.truncate(APPLICANTS);
    let judges = CHANGES.iter().map(judges(explainer)).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = CHANGES.iter().map(|[name, ..]| *name).collect();
    let mut text = format!("| promised for | kept | cost | {} |\n", names.join(" | "));
    text += &format!("|---|---|---|{}\n", "---|".repeat(CHANGES.len()));
    for (own, [title, name, params]) in CHANGES.iter().enumerate() {
        let change = ModelChange::with_params(name, params)?;
        let (points, cost) = promised(explainer, &applicants, change)?;
        let cells = judges.iter().enumerate().map(|(place, judges)| {
            let accepting: usize =
                judges.iter().map(|judge| judge.score(&points)).map(accepted).sum();
            let share = 100.0 * accepting as f64 / (points.len() * judges.len()) as f64;
            if place == own { format!("**{share:.1}**") } else { format!("{share:.1}") }
        });
        let cells: Vec<String> = cells.collect();
        let kept = points.len();
        text += &format!("| {title} | {kept} | {cost:.2} | {} |\n", cells.join(" | "));
    }
    Ok(text)
}

fn accepted(scores: Vec<f32>) -> usize {
    scores.into_iter().filter(|score| *score >= 0.5).count()
}

/// Makes the models that judge advice under a change. No question derives the same seed.
fn judges(explainer: &Explainer) -> impl Fn(&[&str; 3]) -> Result<Vec<Arc<dyn Model>>> {
    |[_, name, params]| {
        let terms = RetrainingTerms {
            change: ModelChange::with_params(name, params)?,
            models: JUDGES,
            params: explainer.retraining().params()?,
            seed: Seed(0).derive("judges of pairs"),
        };
        let judges = explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(()))?;
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
