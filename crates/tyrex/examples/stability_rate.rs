//! How many rows a second the library measures: the other side of `bench/load`.
//!
//! `cargo run --release -p tyrex --example stability_rate -- 2 5` measures the rejected German applicants
//! with two threads, over and over for five seconds, every time a line comes in. It answers with
//! lines of JSON: first what was measured, then a rate for every line.
#![allow(clippy::print_stdout)] // an example shows

use std::io::BufRead as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use tyrex::Seed;
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{Explainer, StabilityTerms};
use tyrex::model::TrainParams;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let threads = args.next().context("the number of threads")?.parse()?;
    let seconds = Duration::from_secs_f64(args.next().context("seconds")?.parse()?);
    let catalogue = Catalogue::with_folders(Vec::new());
    let german = catalogue.load("german", Variant::Product, Direction::Favourable)?;
    let params = TrainParams::default();
    let explainer = Explainer::train(german, &params, Seed(0), |_| ControlFlow::Continue(()))?;
    let rows = explainer.applicants().rejected(explainer.reference().applicants());
    let gauge = explainer.stability(&StabilityTerms::default())?;
    let go_on = || ControlFlow::Continue(());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let answers = pool.install(|| gauge.read(&rows, go_on))?;
    let fingerprint = explainer.fingerprint();
    println!("{}", json!({ "fingerprint": fingerprint, "threads": threads, "rows": answers }));
    for line in std::io::stdin().lock().lines() {
        line?;
        let (started, mut measured) = (Instant::now(), 0);
        while started.elapsed() < seconds {
            measured += pool.install(|| gauge.read(&rows, go_on))?.len();
        }
        let rate = measured as f64 / started.elapsed().as_secs_f64();
        println!("{}", json!({ "rows": measured, "rate": rate }));
    }
    Ok(())
}
