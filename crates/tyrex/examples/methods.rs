//! Every method on one data set, side by side: cost, columns changed, validity under models
//! retrained with other seeds. `trex-e:0.05:1.5` has a tail of 0.05 and a margin of 1.5.
//!
//! `cargo run --release --example methods -- german l1 0.8`
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tyrex::Seed;
use tyrex::action::FeasibleSet;
use tyrex::counterfactual::{
    Budget, ElasticNet, Factual, MethodSpec, Norm, Problem, Protocol, Robustness, SearchModels,
    Step, TrexE, TrexI, find_all,
};
use tyrex::data::catalogue::{Catalogue, Direction, Variant};
use tyrex::model::train::{EarlyStopping, Job};
use tyrex::model::{Examples, Mlp, Model, THRESHOLD, TrainParams, train_all};

/// Models that `trex-e` searches over, those of them that choose its margin, and models that judge all methods.
const SEARCHED: usize = 70;
const TUNED: usize = 30;
const JUDGES: usize = 40;

fn main() -> Result<()> {
    let given = |flag: &str| std::env::args().any(|argument| argument == flag);
    let (boxed, regularised) = (given("--box"), given("--regularised"));
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let name = arguments.next().unwrap_or_else(|| "german".to_owned());
    let norm = match arguments.next().as_deref() {
        None | Some("l1") => Norm::L1,
        Some("l2") => Norm::L2,
        Some(other) => bail!("unknown norm `{other}`, expected l1 or l2"),
    };
    let tau: f64 = arguments.next().map_or(Ok(0.8), |text| text.parse()).context("tau")?;
    let limit: usize = arguments.next().map_or(Ok(200), |text| text.parse()).context("limit")?;
    let only = arguments.next();

    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let data =
        Catalogue::new(folder.as_deref()).load(&name, Variant::Reference, Direction::Favourable)?;
    let labels: Vec<u32> = data.labels().iter().map(|&label| u32::from(label)).collect();
    let examples = Examples::new(data.points(), &labels).with_rows(data.train());
    let mut params = TrainParams::paper();
    if regularised {
        params.early_stopping = Some(EarlyStopping { patience: 5, ..EarlyStopping::default() });
        params.l2 = 1e-4;
    }
    let jobs: Vec<Job> = (0..1 + SEARCHED + JUDGES)
        .map(|index| Job::new(examples, &params, Seed(0).index(index)))
        .collect();
    let networks: Vec<Mlp> = train_all(&jobs, |_, _| ControlFlow::Continue(()))?
        .into_iter()
        .map(|trained| trained.network)
        .collect();
    let (searched, others) = networks.split_at(1 + SEARCHED);
    let model = &searched[0];
    let shared = |networks: &[Mlp]| -> Vec<Arc<dyn Model>> {
        networks.iter().map(|network| Arc::new(network.clone()) as Arc<dyn Model>).collect()
    };
    let (search, tune) = searched[1..].split_at(SEARCHED - TUNED);
    let models = SearchModels::new(Arc::new(model.clone()), shared(search), shared(tune))?;
    let untuned = SearchModels::new(Arc::new(model.clone()), shared(&searched[1..]), Vec::new())?;

    let train = data.points().select(data.train());
    let test = data.points().select(data.test());
    let rejected: Vec<usize> = model
        .score(&test)
        .iter()
        .enumerate()
        .filter(|(_, score)| **score < THRESHOLD)
        .map(|(index, _)| index)
        .take(limit)
        .collect();
    // The paper searches all of encoded space; `--box` stays within the training points.
    let set = if boxed { around(&train)? } else { FeasibleSet::everywhere(model.dim()) };
    let factuals: Vec<Factual> =
        rejected.iter().map(|&index| Factual::new(test.row(index), &set)).collect();
    println!("{name}: {} rejected, tau {tau}, {norm:?}", factuals.len());
    println!(
        "{:16} {:>6} {:>8} {:>8} {:>8} {:>9} {:>9} {:>10} {:>8}",
        "method", "found", "L1", "L2", "columns", "validity", "90 % each", "ms each", "steps"
    );
    let problem = Problem::new(model, norm, &train)?.with_search_models(&models);
    let all = MethodSpec::NAMES.join(",");
    for method in only.as_deref().unwrap_or(&all).split(',') {
        let mut spec = match method.split_once('@') {
            Some((name, "paper")) => MethodSpec::named(name, Protocol::Paper)?,
            Some((name, "reference")) => MethodSpec::named(name, Protocol::Reference)?,
            // The authors' base and steps, with the paper's sigma and most steps.
            Some(("trex-i", "released")) => MethodSpec::TrexI(TrexI {
                base: Box::new(MethodSpec::ElasticNet(ElasticNet::released())),
                robustness: Robustness::paper(),
                step: Step::Unit(0.01),
                steps: 200,
                rescue: false,
            }),
            _ if method.contains(':') => {
                let numbers: Vec<f64> = method
                    .split(':')
                    .skip(1)
                    .map(|text| text.parse().context("a tail and a margin"))
                    .collect::<Result<_>>()?;
                let &[tail, margin] = numbers.as_slice() else {
                    bail!("expected `trex-e:tail:margin`, found `{method}`")
                };
                MethodSpec::TrexE(TrexE { tail, margin, ..TrexE::default() })
            }
            _ => MethodSpec::named(method, Protocol::Product)?,
        };
        if let Some(robustness) = spec.robustness_mut() {
            robustness.tau = tau;
        }
        let started = Instant::now();
        let problem = match &spec {
            MethodSpec::TrexE(_) if method.contains(':') => problem.with_search_models(&untuned),
            _ => problem,
        };
        let prepared = spec.prepare(&problem, Seed(1))?;
        let outcomes = find_all(&problem, &*prepared, &factuals, Budget::default(), |_| {
            ControlFlow::Continue(())
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let mut points = tyrex::Points::new(model.dim());
        let (mut l1, mut l2, mut columns, mut found, mut steps) = (0.0, 0.0, 0, 0, 0);
        for (outcome, factual) in outcomes.iter().zip(&factuals) {
            steps += outcome.effort.steps;
            let Some(counterfactual) = outcome.found() else { continue };
            found += 1;
            l1 += Norm::L1.distance(&counterfactual.point, factual.point);
            l2 += Norm::L2.distance(&counterfactual.point, factual.point);
            let pairs = counterfactual.point.iter().zip(factual.point);
            columns += pairs.filter(|(a, b)| (*a - *b).abs() > 1e-4).count();
            points.push(&counterfactual.point);
        }
        let mut accepting = vec![0_usize; points.len()];
        for other in others {
            let scores = other.score(&points);
            accepting.iter_mut().zip(scores).for_each(|(n, s)| *n += usize::from(s >= THRESHOLD));
        }
        let valid: usize = accepting.iter().sum();
        let often = accepting.iter().filter(|n| **n * 10 >= others.len() * 9).count();
        let count = f64::from(found);
        println!(
            "{method:16} {found:>6} {:>8.3} {:>8.3} {:>8.1} {:>8.1}% {:>8.1}% {:>10.3} {:>8.1}",
            l1 / count,
            l2 / count,
            columns as f64 / count,
            100.0 * valid as f64 / (others.len() * factuals.len()) as f64,
            100.0 * often as f64 / factuals.len() as f64,
            1e3 * seconds / factuals.len() as f64,
            steps as f64 / factuals.len() as f64,
        );
    }
    Ok(())
}

/// The box of the training points.
fn around(points: &tyrex::Points) -> Result<FeasibleSet> {
    let mut lower = points.row(0).to_vec();
    let mut upper = lower.clone();
    for row in points.rows() {
        for ((low, high), &x) in lower.iter_mut().zip(&mut upper).zip(row) {
            *low = low.min(x);
            *high = high.max(x);
        }
    }
    Ok(FeasibleSet::within(lower, upper)?)
}
