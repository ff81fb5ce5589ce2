//! The protocol of `ElliCE`: advice that every model of almost the same loss accepts.
//!
//! `TYREX_DATA=data cargo run --release -p tyrex --example ellice -- heloc german` reads the data sets,
//! which `tyrex data fetch` stores. A point is robust if *all* judging models accept it. They come
//! from one of three changes (retraining, dropout, adversarial weights), and only models whose
//! training loss is at most 10 % above that of the model in use take part. `trex-e` searches over
//! models of the same change, which judge nothing. Costs are in L2, in the encoding of tyrex.
//! The same rows give the same tables, on any number of threads.
#![allow(clippy::print_stdout)] // an example shows

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};
use tyrex::Seed;
use tyrex::change::ModelChange;
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Dataset};
use tyrex::explain::{Answered, Applicant, Ask, Explainer, RetrainingTerms, Threshold};
use tyrex::model::{Model, TrainParams};
use tyrex::points::Points;

const APPLICANTS: usize = 50;
const JUDGES: usize = 40;
const SEARCH: usize = 40;
const TUNING: usize = 30;
/// Models are made for each one that is needed: some have too high a loss.
const MADE: usize = 2;
/// The most training loss of a model, relative to that of the model in use.
const SLACK: f64 = 1.1;

/// The changes, by their name in the protocol, with the name and the parameters of the catalogue.
const CHANGES: [[&str; 3]; 3] = [
    ["retrain", "reinitialise", ""],
    ["dropout", "dropout", "rate = 0.05"],
    ["AWP", "adversarial-weights", "slack = 0.1"],
];
/// The shares of models that the tuning models of `trex-e` aim at.
const AIMS: [f64; 2] = [0.98, 0.9999];

fn main() -> Result<()> {
    let folder = std::env::var_os("TYREX_DATA").map(std::path::PathBuf::from);
    let catalogue = Catalogue::new(folder.as_deref());
    println!("| data | judged under | models | method | robust | accepted | cost, L2 | found |");
    println!("|---|---|---|---|---|---|---|---|");
    for name in std::env::args().skip(1) {
        let load = || catalogue.load(&name, Variant::Product, Direction::Favourable);
        let set = load()?;
        let go_on = |_: &_| ControlFlow::Continue(());
        let explainer = Explainer::train(load()?, &TrainParams::default(), Seed(0), go_on)?;
        let mut applicants = explainer.applicants().rejected(explainer.reference().applicants());
        applicants.truncate(APPLICANTS);
        for [title, change, params] in CHANGES {
            let change = ModelChange::with_params(change, params)?;
            let models = |part, count| like(&explainer, &set, &change, part, count);
            let judges = models("judges", JUDGES)?;
            let own = explainer
                .with_search_models(models("search", SEARCH)?, models("tuning", TUNING)?)?;
            for (method, ask) in questions() {
                let found = advised(&own, &applicants, &ask)?;
                let line = judged(&found, &judges, applicants.len());
                println!("| {name} | {title} | {} | {method} | {line} |", judges.len());
            }
        }
    }
    Ok(())
}

/// Models of a change, of almost the same loss as the model in use; at most `count`.
fn like(
    explainer: &Explainer,
    set: &Dataset,
    change: &ModelChange,
    part: &str,
    count: usize,
) -> Result<Vec<Arc<dyn Model>>> {
    let terms = RetrainingTerms {
        change: change.clone(),
        models: MADE * count,
        params: explainer.retraining().params()?,
        seed: Seed(0).derive("ellice").derive(part),
    };
    let made = explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(()))?;
    let most = SLACK * loss(&**made.base(), set);
    let like: Vec<Arc<dyn Model>> = made
        .members()
        .iter()
        .filter(|model| loss(&***model, set) <= most)
        .take(count)
        .cloned()
        .collect();
    ensure!(!like.is_empty(), "no {part} model has a loss within {SLACK} times the model's");
    Ok(like)
}

/// The mean cross-entropy of the training rows.
fn loss(model: &dyn Model, set: &Dataset) -> f64 {
    let rows = set.train();
    let scores = model.score(&set.points().select(rows));
    let each = scores.iter().zip(rows).map(|(&score, &row)| {
        let right = if set.labels()[row] { score } else { 1.0 - score };
        -f64::from(right).max(1e-12).ln()
    });
    each.sum::<f64>() / rows.len() as f64
}

/// The methods, by name.
fn questions() -> Vec<(String, Ask)> {
    let ask = |method: &str, params: Map<String, Value>| Ask {
        method: Some(method.to_owned()),
        protocol: Protocol::Paper,
        norm: Norm::L2,
        params,
        certify: false,
        stability: false,
        relax: Some(false),
        ..Ask::default()
    };
    let one = |name: &str, value: f64| Map::from_iter([(name.to_owned(), json!(value))]);
    let mut all = vec![
        ("min-cost".to_owned(), ask("min-cost", Map::new())),
        ("margin 0.8".to_owned(), ask("margin", one("score", 0.8))),
        (
            "trex-o 0.8".to_owned(),
            Ask { tau: Some(Threshold::Given(0.8)), ..ask("trex-o", Map::new()) },
        ),
    ];
    all.extend(AIMS.map(|aim| (format!("trex-e {aim}"), ask("trex-e", one("aim", aim)))));
    all
}

/// The points that a method found, with their costs.
fn advised(
    explainer: &Explainer,
    applicants: &[Applicant],
    ask: &Ask,
) -> Result<Vec<(Vec<f32>, f64)>> {
    let go_on = |_| ControlFlow::Continue(());
    let Answered { advice, .. } = explainer.answer(applicants, ask, None, go_on)?;
    let found = advice.iter().filter_map(|advice| advice.found());
    Ok(found.map(|found| (found.point.clone(), found.cost)).collect())
}

/// The share of applicants whose point all models accept, the share of judgements that accept, the
/// mean cost and the share found.
fn judged(found: &[(Vec<f32>, f64)], judges: &[Arc<dyn Model>], applicants: usize) -> String {
    let mut points = Points::new(judges[0].dim());
    found.iter().for_each(|(point, _)| points.push(point));
    let accepting: Vec<Vec<bool>> = judges
        .iter()
        .map(|judge| judge.score(&points).iter().map(|score| *score >= 0.5).collect())
        .collect();
    let by_all = |index: &usize| accepting.iter().all(|judge| judge[*index]);
    let robust = (0..found.len()).filter(by_all).count() as f64 / applicants as f64;
    let accepted = accepting.iter().flatten().filter(|accepted| **accepted).count() as f64
        / (judges.len() * applicants) as f64;
    let cost = found.iter().map(|(_, cost)| cost).sum::<f64>() / found.len() as f64;
    let share = found.len() as f64 / applicants as f64;
    format!("{robust:.2} | {accepted:.3} | {cost:.3} | {share:.2}")
}
