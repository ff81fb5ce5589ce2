//! Which training does best on rows that it has not seen: the comparison that chose
//! `TrainParams::default`. The test rows take no part in it.
//!
//! `TYREX_DATA=data cargo run --release -p tyrex --example recipes` reads the five data sets, which
//! `tyrex data fetch` stores. For every seed a fifth of the training rows is put aside, every
//! candidate is trained on the rest, and its mean log loss on that fifth is taken. The excess of a
//! candidate is the mean over the data sets of `loss / lowest loss - 1`. A second table compares
//! the paper's training with the default on the test rows.
//! The same rows give the same tables, on any number of threads.
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;

use anyhow::Result;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use tyrex::Seed;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Dataset};
use tyrex::explain::Explainer;
use tyrex::model::train::{EarlyStopping, Schedule, train};
use tyrex::model::{Examples, Model, TrainParams};

const DATA: [&str; 5] = ["german", "heloc", "adult", "ctg", "taiwan"];
const SEEDS: usize = 5;

fn main() -> Result<()> {
    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let catalogue = Catalogue::new(folder.as_deref());
    let load = |name| catalogue.load(name, Variant::Product, Direction::Favourable);
    let sets: Vec<Dataset> = DATA.into_iter().map(load).collect::<tyrex::Result<_>>()?;
    let candidates = candidates();
    let mut losses = Vec::new();
    for set in &sets {
        let params = candidates.iter().map(|(_, params)| params);
        losses.push(params.map(|params| validated(set, params)).collect::<Result<Vec<_>>>()?);
    }
    let lowest = |set: &Vec<[f64; 2]>| set.iter().map(|one| one[0]).fold(f64::INFINITY, f64::min);
    println!("| training | excess | epochs | {} |", DATA.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(DATA.len()));
    for (index, (name, _)) in candidates.iter().enumerate() {
        let of_sets = || losses.iter().map(|set| (set[index], lowest(set)));
        let mean = |sum: f64| sum / DATA.len() as f64;
        let excess = mean(of_sets().map(|([loss, _], lowest)| loss / lowest - 1.0).sum());
        let epochs = mean(of_sets().map(|([_, epochs], _)| epochs).sum());
        let cells: Vec<String> = of_sets().map(|([loss, _], _)| format!("{loss:.4}")).collect();
        println!("| {name} | {:.1} % | {epochs:.0} | {} |", 100.0 * excess, cells.join(" | "));
    }
    println!();
    println!("| data | training | part | accuracy | AUC | calibration error | loss |");
    println!("|---|---|---|---|---|---|---|");
    for (name, set) in DATA.into_iter().zip(&sets) {
        for (training, params) in
            [("paper", TrainParams::paper()), ("default", TrainParams::default())]
        {
            let parts = performances(set, &params)?;
            for (part, [accuracy, auc, error, loss]) in [("train", parts[0]), ("test", parts[1])] {
                print!("| {name} | {training} | {part} | {accuracy:.3} | {auc:.3} ");
                println!("| {error:.3} | {loss:.3} |");
            }
        }
    }
    Ok(())
}

/// The trainings to compare, by name.
fn candidates() -> Vec<(String, TrainParams)> {
    let paper = TrainParams::paper();
    let stop = |fraction, patience, l2| {
        let stopping = Some(EarlyStopping { fraction, patience, min_delta: 0.0 });
        TrainParams { epochs: 100, early_stopping: stopping, l2, ..TrainParams::paper() }
    };
    let usual = stop(0.2, 10, 1e-4);
    let fixed = TrainParams {
        hidden: vec![64, 64],
        schedule: Schedule::Cosine { floor: 0.0 },
        epochs: 30,
        l2: 1e-3,
        ..paper.clone()
    };
    let named = [
        ("paper", paper.clone()),
        ("l2 1e-4", TrainParams { l2: 1e-4, ..paper.clone() }),
        ("l2 1e-3", TrainParams { l2: 1e-3, ..paper.clone() }),
        ("dropout 0.3", TrainParams { dropout: 0.3, ..paper }),
        ("64-64, cosine, 30 epochs, l2 1e-3", fixed.clone()),
        ("64-64, cosine, 30 epochs, l2 1e-3, dropout 0.2", TrainParams { dropout: 0.2, ..fixed }),
        ("stop 0.1/5", stop(0.1, 5, 0.0)),
        ("stop 0.2/10", stop(0.2, 10, 0.0)),
        ("stop 0.1/10, l2 1e-4", stop(0.1, 10, 1e-4)),
        ("stop 0.2/5, l2 1e-4", stop(0.2, 5, 1e-4)),
        ("**stop 0.2/10, l2 1e-4**", usual.clone()),
        ("stop 0.2/20, l2 1e-4", stop(0.2, 20, 1e-4)),
        ("stop 0.3/10, l2 1e-4", stop(0.3, 10, 1e-4)),
        ("stop 0.2/10, l2 3e-4", stop(0.2, 10, 3e-4)),
        ("stop 0.2/10, l2 1e-3", stop(0.2, 10, 1e-3)),
        ("stop 0.2/10, l2 1e-4, dropout 0.3", TrainParams { dropout: 0.3, ..usual.clone() }),
        ("stop 0.2/10, l2 1e-4, 64-64", TrainParams { hidden: vec![64, 64], ..usual.clone() }),
        ("stop 0.2/10, l2 1e-4, 32-32", TrainParams { hidden: vec![32, 32], ..usual.clone() }),
        ("stop 0.2/10, l2 1e-4, rate 5e-4", TrainParams { learning_rate: 5e-4, ..usual.clone() }),
        ("stop 0.2/10, l2 1e-4, rate 2e-3", TrainParams { learning_rate: 2e-3, ..usual.clone() }),
        ("stop 0.2/10, l2 1e-4, batch 64", TrainParams { batch: 64, ..usual }),
    ];
    named.into_iter().map(|(name, params)| (name.to_owned(), params)).collect()
}

/// The mean log loss on rows put aside, and the mean number of epochs, over the seeds.
fn validated(set: &Dataset, params: &TrainParams) -> Result<[f64; 2]> {
    let labels: Vec<u32> = set.labels().iter().map(|&label| u32::from(label)).collect();
    let one = |seed: usize| -> Result<[f64; 2]> {
        let seed = Seed(0).index(seed);
        let mut rows = set.train().to_vec();
        rows.shuffle(&mut seed.derive("validation").rng());
        let aside = rows.split_off(rows.len() * 4 / 5);
        let examples = Examples::new(set.points(), &labels).with_rows(&rows);
        let trained = train(examples, params, seed)?;
        let scores = trained.network.score(&set.points().select(&aside));
        let loss = |(score, row): (f32, usize)| {
            let score = f64::from(score).clamp(1e-7, 1.0 - 1e-7);
            -(if set.labels()[row] { score } else { 1.0 - score }).ln()
        };
        let total: f64 = scores.into_iter().zip(aside.iter().copied()).map(loss).sum();
        Ok([total / aside.len() as f64, trained.history.len() as f64])
    };
    let all = (0..SEEDS).into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
    Ok(mean(&all))
}

/// Accuracy, AUC, calibration error and loss on the training and on the test rows, each the mean
/// over the seeds.
fn performances(set: &Dataset, params: &TrainParams) -> Result<[[f64; 4]; 2]> {
    let one = |seed: usize| -> Result<[[f64; 4]; 2]> {
        let go_on = |_: &_| ControlFlow::Continue(());
        let explainer = Explainer::train(set.clone(), params, Seed(0).index(seed), go_on)?;
        let parts = explainer.performances();
        Ok([&parts[0], &parts[1]].map(|found| {
            [found.accuracy, found.auc, found.calibration_error, found.loss]
                .map(|value| value.unwrap_or(f64::NAN))
        }))
    };
    let all = (0..SEEDS).into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
    let of_part = |part: usize| mean(&all.iter().map(|parts| parts[part]).collect::<Vec<_>>());
    Ok([of_part(0), of_part(1)])
}

fn mean<const N: usize>(values: &[[f64; N]]) -> [f64; N] {
    let count = values.len() as f64;
    std::array::from_fn(|place| values.iter().map(|value| value[place]).sum::<f64>() / count)
}
