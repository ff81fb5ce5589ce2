//! Tasks about a trained network: its stability at points, and its counterfactuals.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tyrex::action::FeasibleSet;
use tyrex::certificate::IntervalCertifier;
use tyrex::counterfactual::{
    Answer, Budget, Effort, Factual, MethodSpec, Norm, Plausible, Problem as Question, Protocol,
    SearchModels, find_all,
};
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability};
use tyrex::model::{Mlp, Model};
use tyrex::plausibility::Plausibility;

use super::problem::Problem;
use super::{Options, serve};

const EVALUATIONS: usize = 100;
const TAU: f64 = 0.85;
const NEIGHBOURS: usize = 1000;
/// The task whose answers have to be usual, and their least p-value.
pub(crate) const PLAUSIBLE: &str = "plausible";
const LEAST: f64 = 0.1;
/// The least tail of the logits of `trex-e`.
const MARGIN: f64 = 0.5;

fn problem(options: &Options) -> Result<Problem> {
    let folder = options.problem.as_ref().context("this task needs --problem")?;
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    Problem::read(folder)
}

/// Relaxed stability and its gradient, point by point.
pub(crate) fn stability(options: &Options) -> Result<()> {
    let problem = problem(options)?;
    let cloud = Neighbourhood::given(problem.offsets.clone())?;
    let gauge = Gauge::new(RelaxedStability {}, &problem.network, &cloud)?;
    let count = EVALUATIONS.min(problem.factuals.len());
    let mut room = gauge.room();
    let mut gradients = vec![vec![0.0; problem.factuals.dim()]; count];
    let mut round = || {
        let start = Instant::now();
        let readings = gradients
            .iter_mut()
            .enumerate()
            .map(|(i, g)| gauge.read_with_gradient_in(&mut room, problem.factuals.row(i), g))
            .collect::<tyrex::Result<Vec<_>>>()?;
        let seconds = start.elapsed().as_secs_f64();
        let norm = |g: &Vec<f32>| g.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        Ok(json!({
            "seconds": seconds,
            "units": count,
            "value": readings.iter().map(|r| r.value).sum::<f64>() / count as f64,
            "gradient": gradients.iter().map(norm).sum::<f64>() / count as f64,
        }))
    };
    round()?;
    serve(round)
}

/// The proof in the interval tier of a certificate: the lowest score in a box of weights.
pub(crate) fn interval(options: &Options) -> Result<()> {
    const DELTA: f64 = 1e-3;
    let problem = problem(options)?;
    let certifier = IntervalCertifier::new(&problem.network);
    let count = EVALUATIONS.min(problem.factuals.len());
    let round = || {
        let start = Instant::now();
        let lowest = (0..count)
            .map(|index| certifier.lowest_score(problem.factuals.row(index), DELTA))
            .collect::<tyrex::Result<Vec<f64>>>()?;
        let seconds = start.elapsed().as_secs_f64();
        let mean = lowest.iter().sum::<f64>() / count as f64;
        Ok(json!({"seconds": seconds, "units": count, "lowest": mean}))
    };
    round()?;
    serve(round)
}

/// A method from nothing: its preparation is timed too. The task `plausible` is `margin` with usual
/// answers, and the density is fitted before.
pub(crate) fn explain(task: &str, options: &Options) -> Result<()> {
    let problem = problem(options)?;
    let mut question = Question::new(&problem.network, Norm::L2, &problem.rows)?;
    let method = if task == PLAUSIBLE { "margin" } else { task };
    let mut spec = MethodSpec::named(method, Protocol::Product)?;
    let density = match task {
        PLAUSIBLE => {
            let accepted: Vec<usize> =
                (0..problem.rows.len()).filter(|&row| problem.labels[row] == 1).collect();
            let accepted = problem.rows.select(&accepted);
            Some(Plausibility::fit_numbers(&accepted, options.seed)?)
        }
        _ => None,
    };
    if let Some(density) = &density {
        question = question.with_plausible(Plausible::new(density, LEAST)?)?;
    }
    if let Some(robustness) = spec.robustness_mut() {
        robustness.tau = TAU;
    }
    if let MethodSpec::TrexNn(method) = &mut spec {
        method.neighbours = Some(NEIGHBOURS);
    }
    let mut models = None;
    if let MethodSpec::TrexE(method) = &mut spec {
        method.margin = MARGIN;
        let shared = |network: &Mlp| Arc::new(network.clone()) as Arc<dyn Model>;
        let search = problem.search.iter().map(shared).collect();
        models = Some(SearchModels::new(shared(&problem.network), search, Vec::new())?);
    }
    if let Some(models) = &models {
        question = question.with_search_models(models);
    }
    // Where the peers search: the unit cube.
    let dim = problem.factuals.dim();
    let cube = FeasibleSet::within(vec![0.0; dim], vec![1.0; dim])?;
    let factuals: Vec<Factual> =
        problem.factuals.rows().map(|point| Factual::new(point, &cube)).collect();
    let round = || {
        let start = Instant::now();
        let method = spec.prepare(&question, options.seed)?;
        let go_on = |_| ControlFlow::Continue(());
        let outcomes = find_all(&question, method.as_ref(), &factuals, Budget::default(), go_on)?;
        let seconds = start.elapsed().as_secs_f64();
        let points: Vec<Option<&Vec<f32>>> = outcomes
            .iter()
            .map(|outcome| match &outcome.answer {
                Answer::Found { counterfactual, .. } => Some(&counterfactual.point),
                Answer::NotFound { .. } => None,
            })
            .collect();
        let per_answer = |work: fn(Effort) -> u64| {
            let total: u64 = outcomes.iter().map(|outcome| work(outcome.effort)).sum();
            total as f64 / points.len() as f64
        };
        Ok(json!({
            "seconds": seconds,
            "units": points.len(),
            "points": points,
            "gradients": per_answer(|effort| effort.steps),
            "evaluations": per_answer(|effort| effort.evaluations),
        }))
    };
    round()?;
    serve(round)
}
