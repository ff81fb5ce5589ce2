//! Tasks about boosted trees: the scores of rows, the closest point that the model accepts, and its
//! proof.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::json;
use tyrex::action::FeasibleSet;
use tyrex::counterfactual::{
    Answer, Budget, Counterfactual, Factual, MethodSpec, MinCost, Norm, Outcome, Problem,
    SearchModels, find_all,
};
use tyrex::model::Model;
use tyrex::model::files::{Core, ImportOptions, ModelFile};

use super::{Options, read_rows, serve};

/// A cost that is larger than the proved bound by less, relatively, is the least.
const SAME_COST: f64 = 1e-6;

/// The scores of all training rows.
pub(crate) fn score(options: &Options) -> Result<()> {
    let folder = options.problem.as_ref().context("this task needs --problem")?;
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let file = ModelFile::read(&folder.join("model.json"), &ImportOptions::default())?;
    let (rows, _) = read_rows(&folder.join("rows.bin"))?;
    let round = || {
        let start = std::time::Instant::now();
        let scores = file.model().score(&rows);
        let seconds = start.elapsed().as_secs_f64();
        let mean = scores.iter().map(|&score| f64::from(score)).sum::<f64>() / rows.len() as f64;
        Ok(json!({"seconds": seconds, "units": rows.len(), "mean": mean}))
    };
    round()?;
    serve(round)
}

/// `min-cost`, with a proof or without.
pub(crate) fn min_cost(prove: bool) -> MethodSpec {
    MethodSpec::MinCost(MinCost { prove, ..MinCost::default() })
}

/// A method in L1, one factual after the other, from nothing: its preparation is timed too. `trex-e`
/// searches over the models `search-N.json` of the folder.
pub(crate) fn advise(options: &Options, spec: &MethodSpec) -> Result<()> {
    let folder = options.problem.as_ref().context("this task needs --problem")?;
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let model = read_model(&folder.join("model.json"))?;
    let points = |name: &str| read_rows(&folder.join(name)).map(|(points, _)| points);
    let (rows, factuals) = (points("rows.bin")?, points("factuals.bin")?);
    let mut question = Problem::new(&*model, Norm::L1, &rows)?;
    let prove = matches!(spec, MethodSpec::MinCost(method) if method.prove);
    let models;
    if matches!(spec, MethodSpec::TrexE(_)) {
        models = SearchModels::new(Arc::clone(&model), search_models(folder)?, Vec::new())?;
        question = question.with_search_models(&models);
    }
    let anywhere = FeasibleSet::everywhere(factuals.dim());
    let factuals: Vec<Factual> =
        factuals.rows().map(|point| Factual::new(point, &anywhere)).collect();
    let round = || {
        let start = std::time::Instant::now();
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
        let times: Vec<f64> = outcomes.iter().map(|outcome| outcome.seconds).collect();
        let is_proved = |found: &&Counterfactual| {
            found.least_cost.is_some_and(|least| found.cost - least <= SAME_COST * found.cost)
        };
        let proved = outcomes.iter().filter_map(Outcome::found).filter(is_proved).count();
        let mut reply =
            json!({"seconds": seconds, "units": points.len(), "points": points, "times": times});
        if prove {
            reply["proved"] = json!(proved as f64 / points.len().max(1) as f64);
        }
        Ok(reply)
    };
    round()?;
    serve(round)
}

/// The models `search-N.json` of a folder.
fn search_models(folder: &Path) -> Result<Vec<Arc<dyn Model>>> {
    let files = (1..).map(|number| folder.join(format!("search-{number}.json")));
    files.take_while(|path| path.exists()).map(|path| read_model(&path)).collect()
}

fn read_model(path: &Path) -> Result<Arc<dyn Model>> {
    Ok(match ModelFile::read(path, &ImportOptions::default())?.core {
        Core::Trees(trees) => Arc::new(trees),
        Core::Mlp(network) => Arc::new(network),
    })
}
