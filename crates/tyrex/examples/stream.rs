//! A million rows in flat memory: rows come in blocks, advice goes out in blocks.
//!
//! `cargo run --release -p tyrex --example stream -- 1000000`
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, Result};
use tyrex::action::FeasibleSet;
use tyrex::counterfactual::{Budget, Factual, MethodSpec, Norm, Problem, Protocol, find_all};
use tyrex::data::moons::moons;
use tyrex::model::{Examples, Model as _, THRESHOLD, TrainParams, train};
use tyrex::{Points, Seed};

/// Rows in memory at a time.
const BLOCK: usize = 10_000;

fn main() -> Result<()> {
    let rows: usize =
        std::env::args().nth(1).map_or(Ok(100_000), |text| text.parse()).context("rows")?;
    let (points, labels) = block(1000, Seed(0))?;
    let params = TrainParams { hidden: vec![32, 32], epochs: 100, ..TrainParams::default() };
    let model = train(Examples::new(&points, &labels), &params, Seed(0))?.network;
    let problem = Problem::new(&model, Norm::L2, &points)?;
    let method = MethodSpec::named("trex-i", Protocol::Product)?.prepare(&problem, Seed(1))?;
    let set = FeasibleSet::everywhere(2);
    let started = Instant::now();
    let (mut rejected, mut found) = (0, 0);
    let mut next = BLOCK;
    for first in (0..rows).step_by(BLOCK) {
        let (points, _) = block(BLOCK.min(rows - first), Seed(2).index(first))?;
        let scores = model.score(&points);
        let factuals: Vec<Factual> = points
            .rows()
            .zip(&scores)
            .filter(|(_, score)| **score < THRESHOLD)
            .map(|(point, _)| Factual::new(point, &set))
            .collect();
        let outcomes = find_all(&problem, &*method, &factuals, Budget::default(), |_| {
            ControlFlow::Continue(())
        })?;
        rejected += factuals.len();
        found += outcomes.iter().filter(|outcome| outcome.found().is_some()).count();
        let done = first + points.len();
        if done >= next || done == rows {
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{done:>8} rows, {rejected:>7} rejected, {found:>7} found, {seconds:>6.1} s, peak \
                 memory {}",
                peak_memory().unwrap_or_else(|| "unknown".to_owned())
            );
            next *= 10;
        }
    }
    Ok(())
}

fn block(rows: usize, seed: Seed) -> Result<(Points, Vec<u32>)> {
    let sample = moons(rows, 0.15, seed)?;
    let coordinates = sample.iter().flat_map(|p| [p.x1 as f32, p.x2 as f32]).collect();
    let labels = sample.iter().map(|p| u32::from(p.lower)).collect();
    Ok((Points::from_rows(2, coordinates)?, labels))
}

/// The most memory this process has had, as Linux says.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
