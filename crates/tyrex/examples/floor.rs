//! The least cost of a promise: the default advice beside the cheapest rows that a wide search
//! finds when it knows the models that judge. For information only: no such advice can be given.
//!
//! `TYREX_DATA=data cargo run --release -p tyrex --example floor -- german 60` advises the first 60 rejected
//! applicants of the test part with the default promise, and with `trex-o` at `tau` 0.8. Then it
//! looks for the cheapest rows that satisfy the rules and that
//!
//! - *polished*: as many of the search and tuning models accept as accept the advice, or a share
//!   of them, the next argument, if that is less;
//! - *fresh*: enough of the fresh models accept to certify the promise;
//! - *population*: the promised share of 200 other models accepts;
//! - *own*: the model in use accepts, with no promise.
//!
//! The search starts at the default advice. It makes any change, and any two changes at once, of
//! which the result is cheaper, until there is none; so its costs are at least those of the best
//! rows, and at most those of the default.
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Context, Result};
use rayon::prelude::*;
use tyrex::Seed;
use tyrex::action::{Actions, FeasibleSet};
use tyrex::change::Ensemble;
use tyrex::counterfactual::Norm;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Row};
use tyrex::explain::{
    Answered, Ask, Explainer, PROMISE, PromisedProbability, RetrainingTerms, Threshold,
};
use tyrex::model::{Model, TrainParams};
use tyrex::points::Points;

/// Models that judge as the population of retrained models.
const POPULATION: usize = 200;
/// Changes that are combined to pairs: those that save most, and all that follow.
const FIRSTS: usize = 60;
/// The pairs of a round that are tested, cheapest first.
const PAIRS: usize = 20_000;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().context("expected a data set")?;
    let limit: usize = arguments.next().map_or(Ok(40), |text| text.parse()).context("limit")?;
    let share: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse()).context("a share")?;
    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let catalogue = Catalogue::new(folder.as_deref());
    let set = catalogue.load(&name, Variant::Product, Direction::Favourable)?;
    let explainer =
        Explainer::train(set, &TrainParams::default(), Seed(0), |_| ControlFlow::Continue(()))?;
    let mut applicants = explainer.applicants().rejected(explainer.reference().applicants());
    applicants.truncate(limit);

    let ask = Ask { promise: Some(PROMISE), relax: Some(false), ..Ask::default() };
    let [search, tune] = ask.search_terms(&explainer)?;
    let train = |terms: &RetrainingTerms| -> Result<Vec<Arc<dyn Model>>> {
        let made = explainer.retraining().train(terms, |_, _| ControlFlow::Continue(()))?;
        Ok(members(&made))
    };
    let population = RetrainingTerms {
        models: POPULATION,
        seed: Seed(0).derive("population of floor"),
        ..search.clone()
    };
    let (search, tune, population) = (train(&search)?, train(&tune)?, train(&population)?);
    let chosen: Vec<Arc<dyn Model>> = search.iter().chain(&tune).cloned().collect();
    let explainer = explainer.with_search_models(search, tune)?;
    let Answered { advice, certificates, fresh, .. } =
        explainer.answer(&applicants, &ask, None, |_| ControlFlow::Continue(()))?;
    let fresh = members(&fresh.context("no fresh models")?.ensemble);
    let other = Ask {
        method: Some("trex-o".to_owned()),
        tau: Some(Threshold::Given(0.8)),
        certify: false,
        ..Ask::default()
    };
    let Answered { advice: of_other, .. } =
        explainer.answer(&applicants, &other, None, |_| ControlFlow::Continue(()))?;
    let actions = Actions::new(explainer.schema(), explainer.encoder())?;

    let own = |point: &Points| explainer.model().score(point);
    let lines: Vec<Result<Option<Line>>> = advice
        .par_iter()
        .zip(&certificates)
        .zip(&of_other)
        .map(|((advice, certificate), other)| {
            let (Some(found), Some(row)) = (advice.found(), advice.advised.clone()) else {
                return Ok(None);
            };
            let applicant = &advice.applicant;
            let set = actions.for_factual(&applicant.values)?;
            let start = State { row, point: found.point.clone(), cost: 0.0 };
            let floor = |models: &[Arc<dyn Model>], least: usize| {
                let accepts = |points: &Points| accepted(&own, models, least, points);
                cheapest(&set, &applicant.point, start.clone(), accepts)
            };
            let count = |models: &[Arc<dyn Model>]| accepting(models, &found.point);
            let dissenting = tolerated(fresh.len());
            let shown = certificate.as_ref().and_then(PromisedProbability::of);
            let most = (share * chosen.len() as f64).ceil() as usize;
            let polished = floor(&chosen, count(&chosen).min(most));
            let enough = fresh.len() - dissenting;
            Ok(Some(Line {
                row: applicant.row,
                is_kept: shown.is_some_and(|shown| shown.probability >= PROMISE),
                trex_o: other.found().map(|found| found.cost),
                default: found.cost,
                in_population: count(&population) as f64 / POPULATION as f64,
                polished: polished.cost,
                polished_kept: accepting(&fresh, &polished.point) >= enough,
                polished_in_population: accepting(&population, &polished.point) as f64
                    / POPULATION as f64,
                fresh: (count(&fresh) >= enough).then(|| floor(&fresh, enough).cost),
                population: floor(
                    &population,
                    count(&population).min((PROMISE * POPULATION as f64).ceil() as usize),
                )
                .cost,
                own: floor(&[], 0).cost,
            }))
        })
        .collect();
    let mut all = Vec::new();
    println!("row kept default in-population polished kept fresh population own");
    for line in lines {
        let Some(line) = line? else { continue };
        let Line { row, default, in_population, polished, own, .. } = line;
        println!(
            "{row} {} {default:.3} {in_population:.3} {polished:.3} {} {:.3} {:.3} {own:.3}",
            line.is_kept,
            line.polished_kept,
            line.fresh.unwrap_or(f64::NAN),
            line.population
        );
        all.push(line);
    }
    // The means are over the same people.
    let both: Vec<&Line> =
        all.iter().filter(|line| line.fresh.is_some() && line.trex_o.is_some()).collect();
    let mean = |value: &dyn Fn(&Line) -> f64| {
        both.iter().map(|line| value(line)).sum::<f64>() / both.len() as f64
    };
    println!(
        "{name}: {} of {} found; means over {}: trex-o {:.3}, default {:.3}, polished {:.3} (kept {} of {}, {:.3} after {:.3}), fresh \
         {:.3}, population {:.3}, own {:.3}",
        all.len(),
        applicants.len(),
        both.len(),
        mean(&|line| line.trex_o.unwrap_or(f64::NAN)),
        mean(&|line| line.default),
        mean(&|line| line.polished),
        all.iter().filter(|line| line.polished_kept).count(),
        all.iter().filter(|line| line.is_kept).count(),
        mean(&|line| line.polished_in_population),
        mean(&|line| line.in_population),
        mean(&|line| line.fresh.unwrap_or(f64::NAN)),
        mean(&|line| line.population),
        mean(&|line| line.own),
    );
    Ok(())
}

struct Line {
    row: usize,
    is_kept: bool,
    trex_o: Option<f64>,
    default: f64,
    in_population: f64,
    polished: f64,
    polished_kept: bool,
    polished_in_population: f64,
    fresh: Option<f64>,
    population: f64,
    own: f64,
}

/// The number of fresh models that may reject when the default promise is certified.
fn tolerated(models: usize) -> usize {
    let is_shown = |rejecting: &usize| {
        let proportion = tyrex::statistics::Proportion::new(models - rejecting, models);
        proportion.and_then(|p| p.lower(0.05)).is_ok_and(|bound| bound >= PROMISE)
    };
    (0..models).take_while(is_shown).count().saturating_sub(1)
}

fn members(ensemble: &Ensemble) -> Vec<Arc<dyn Model>> {
    ensemble.members().to_vec()
}

/// The number of models that accept a point.
fn accepting(models: &[Arc<dyn Model>], point: &[f32]) -> usize {
    let point = Points::one(point);
    models.iter().filter(|model| model.score(&point)[0] >= 0.5).count()
}

/// A row of the search.
#[derive(Clone)]
struct State {
    row: Row,
    point: Vec<f32>,
    cost: f64,
}

/// For each point whether the model in use and at least so many of the models accept it.
fn accepted(
    own: &impl Fn(&Points) -> Vec<f32>,
    models: &[Arc<dyn Model>],
    least: usize,
    points: &Points,
) -> Vec<bool> {
    let by_own: Vec<bool> = own(points).into_iter().map(|score| score >= 0.5).collect();
    let mut open: Vec<usize> = (0..points.len()).filter(|&index| by_own[index]).collect();
    let mut counts = vec![0; points.len()];
    for (asked, model) in models.iter().enumerate() {
        // Points that too many models have rejected are not asked about again.
        open.retain(|&index| asked - counts[index] <= models.len() - least);
        let scores = model.score(&points.select(&open));
        open.iter()
            .zip(scores)
            .for_each(|(&index, score)| counts[index] += usize::from(score >= 0.5));
    }
    let mut result = vec![false; points.len()];
    open.into_iter().filter(|&index| counts[index] >= least).for_each(|index| result[index] = true);
    result
}

/// The cheapest row that single changes and pairs of changes reach.
fn cheapest(
    set: &FeasibleSet,
    factual: &[f32],
    start: State,
    accepts: impl Fn(&Points) -> Vec<bool>,
) -> State {
    let cost = |point: &[f32]| Norm::L1.distance(point, factual);
    let mut here = State { cost: cost(&start.point), ..start };
    let around = |row: &Row| -> Vec<State> {
        let moves = set.moves(row);
        let each = moves.points().enumerate();
        each.map(|(index, point)| State {
            row: moves.row(index),
            point: point.to_vec(),
            cost: cost(point),
        })
        .collect()
    };
    let best = |mut states: Vec<State>, most: usize| -> Option<State> {
        states.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        states.truncate(most);
        for chunk in states.chunks(256) {
            let mut points = Points::new(factual.len());
            chunk.iter().for_each(|state| points.push(&state.point));
            if let Some(at) = accepts(&points).into_iter().position(|accepted| accepted) {
                return Some(chunk[at].clone());
            }
        }
        None
    };
    loop {
        let is_cheaper = |state: &State| state.cost < here.cost - 1e-6;
        let mut near = around(&here.row);
        let single: Vec<State> = near.iter().filter(|state| is_cheaper(state)).cloned().collect();
        if let Some(next) = best(single, usize::MAX) {
            here = next;
            continue;
        }
        near.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        near.truncate(FIRSTS);
        let mut pairs: Vec<State> = near.iter().flat_map(|state| around(&state.row)).collect();
        pairs.retain(|state| is_cheaper(state));
        match best(pairs, PAIRS) {
            Some(next) => here = next,
            None => return here,
        }
    }
}
