//! tyrex's side of `bench/compare`: loads once, then does one timed round per "go".
//!
//! `bench/README.md` describes the protocol.
#![allow(clippy::print_stdout)] // the protocol runs over stdout

mod problem;
mod search;
mod trees;

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use serde_json::{Value, json};
use tyrex::counterfactual::{MethodSpec, Protocol};
use tyrex::model::train::Trainer;
use tyrex::model::{Activation, Dense, Examples, Mlp, Output, TrainParams};
use tyrex::{Points, Seed};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let task = arguments.next().with_context(|| format!("expected a task: {TASKS}"))?;
    let options = Options::read(arguments)?;
    match task.as_str() {
        "train" => train(&options),
        "gemm" => gemm(),
        "stability" => search::stability(&options),
        "interval" => search::interval(&options),
        "trex-i" | "trex-e" | "trex-nn" | search::PLAUSIBLE => search::explain(&task, &options),
        "tree-score" => trees::score(&options),
        "tree-advice" | "tree-proof" => {
            trees::advise(&options, &trees::min_cost(task == "tree-proof"))
        }
        "tree-trex-o" | "tree-trex-e" => {
            let method = task.trim_start_matches("tree-");
            trees::advise(&options, &MethodSpec::named(method, Protocol::Product)?)
        }
        _ => bail!("unknown task `{task}`, expected {TASKS}"),
    }
}

const TASKS: &str = "train, gemm, stability, trex-i, trex-e, trex-nn, plausible, interval, tree-advice, \
     tree-proof, tree-trex-o, tree-trex-e or tree-score";

/// The settings of every worker.
struct Options {
    rows: Option<PathBuf>,
    problem: Option<PathBuf>,
    threads: usize,
    seed: Seed,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self { rows: None, problem: None, threads: 1, seed: Seed(0) };
        while let Some(name) = arguments.next() {
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--rows" => options.rows = Some(value.into()),
                "--problem" => options.problem = Some(value.into()),
                "--threads" => options.threads = value.parse().context("--threads")?,
                "--seed" => options.seed = Seed(value.parse().context("--seed")?),
                _ => bail!(
                    "unknown option `{name}`, expected --rows, --problem, --threads or --seed"
                ),
            }
        }
        Ok(options)
    }
}

/// Says ready, then answers every "go" with what the round returns.
fn serve(mut round: impl FnMut() -> Result<Value>) -> Result<()> {
    let mut replies = std::io::stdout().lock();
    let version = concat!("tyrex ", env!("CARGO_PKG_VERSION"));
    writeln!(replies, "{}", json!({"ready": true, "version": version}))?;
    replies.flush()?;
    for line in std::io::stdin().lock().lines() {
        if line?.trim() != "go" {
            break;
        }
        writeln!(replies, "{}", round()?)?;
        replies.flush()?;
    }
    Ok(())
}

/// One epoch per round; with several threads, one model on each.
fn train(options: &Options) -> Result<()> {
    let file = options.rows.as_ref().context("train needs --rows")?;
    let (points, labels) = read_rows(file)?;
    let examples = Examples::new(&points, &labels);
    let params = TrainParams::paper();
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;

    let mut spare = Trainer::new(examples, &params, options.seed)?;
    for _ in 0..2 {
        spare.epoch()?;
    }
    let mut trainers = (0..options.threads)
        .map(|index| Trainer::new(examples, &params, options.seed.index(index)))
        .collect::<tyrex::Result<Vec<_>>>()?;

    serve(|| {
        let start = Instant::now();
        if let [only] = trainers.as_mut_slice() {
            only.epoch()?;
        } else {
            trainers.par_iter_mut().try_for_each(|trainer| trainer.epoch().map(|_| ()))?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let fits: Vec<_> =
            trainers.iter().map(|trainer| fit(&trainer.network(), &points, &labels)).collect();
        let mean =
            |of: fn(&(f64, f64)) -> f64| fits.iter().map(of).sum::<f64>() / fits.len() as f64;
        Ok(json!({
            "seconds": seconds,
            "units": trainers.len(),
            "steps": trainers.iter().map(Trainer::steps).min(),
            "loss": mean(|fit| fit.0),
            "accuracy": mean(|fit| fit.1),
        }))
    })
}

/// Mean loss and accuracy of a network on all rows.
fn fit(network: &Mlp, points: &Points, labels: &[u32]) -> (f64, f64) {
    let (mut loss, mut right) = (0.0, 0);
    for (&logit, &label) in network.logits(points).iter().zip(labels) {
        let logit = f64::from(logit);
        loss += logit.max(0.0) + (-logit.abs()).exp().ln_1p() - f64::from(label) * logit;
        right += usize::from((logit > 0.0) == (label == 1));
    }
    (loss / labels.len() as f64, right as f64 / labels.len() as f64)
}

/// The rate of the matrix kernel, seen through a stack of square layers: 1000 rows through
/// two products with 128 x 128 weights.
fn gemm() -> Result<()> {
    const ROWS: usize = 1000;
    const WIDTH: usize = 128;
    const LAYERS: usize = 2;
    let layer = |outputs: usize| Dense {
        weights: (0..WIDTH * outputs).map(|i| ((i % 17) as f32 - 8.0) / 128.0).collect(),
        bias: vec![0.0; outputs],
        activation: Activation::Relu,
    };
    let mut layers: Vec<Dense> = (0..LAYERS).map(|_| layer(WIDTH)).collect();
    layers.push(Dense { activation: Activation::Identity, ..layer(1) });
    let network = Mlp::new(WIDTH, &layers, Output::Sigmoid { favourable: true })?;
    let points = Points::from_rows(WIDTH, (0..ROWS * WIDTH).map(|i| (i % 13) as f32).collect())?;
    let operations = (2 * ROWS * WIDTH * WIDTH * LAYERS) as f64;
    serve(|| {
        let shortest = (0..300)
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(network.logits(std::hint::black_box(&points)));
                start.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        Ok(json!({
            "gflops": operations / shortest / 1e9,
            "shape": format!("{ROWS}x{WIDTH}x{WIDTH}"),
        }))
    })
}

/// Reads `u32 n, u32 d`, then `n * d` coordinates and `n` labels as `f32`, little-endian.
fn read_rows(file: &Path) -> Result<(Points, Vec<u32>)> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let (words, rest) = bytes.as_chunks::<4>();
    let [rows, columns, values @ ..] = words else {
        bail!("{}: too short for a header", file.display());
    };
    let (rows, columns) =
        (u32::from_le_bytes(*rows) as usize, u32::from_le_bytes(*columns) as usize);
    if !rest.is_empty() || values.len() != rows * (columns + 1) {
        bail!(
            "{}: {} values, expected {} for {rows} rows of {columns} columns",
            file.display(),
            values.len(),
            rows * (columns + 1)
        );
    }
    let mut numbers: Vec<f32> = values.iter().map(|word| f32::from_le_bytes(*word)).collect();
    let labels = numbers.split_off(rows * columns).into_iter().map(|y| u32::from(y > 0.5));
    Ok((Points::from_rows(columns, numbers)?, labels.collect()))
}
