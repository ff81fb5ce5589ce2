//! Calibration of the threshold.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tyrex::Seed;
use tyrex::calibrate::{Goal, TAUS, usual_models};
use tyrex::counterfactual::MethodSpec;
use tyrex::explain::{Ask, CALIBRATED_ROWS, CalibrationTerms};
use utoipa::ToSchema;

use super::explain::accepted;
use super::search::request;
use crate::access::{Caller, Explaining};
use crate::ask::AskFields;
use crate::engine::jobs::{CalibrateWork, Job, Work};
use crate::extract::Json;
use crate::problem::Problem;
use crate::state::AppState;

/// Maximum number of models to train for a calibration.
const MOST_MODELS: usize = 2000;
/// Maximum number of rows to search for.
const MOST_FACTUALS: usize = 1000;
/// Maximum number of thresholds.
const MOST_TAUS: usize = 50;

/// The validity to find a threshold for. The fields of [`Ask`] are at the same level as these.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub(crate) struct CalibrateQuestion {
    /// The model; the active one if absent.
    model: Option<String>,
    /// The share of advice that stays valid under a retrained model; 0.95 if absent.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0, example = 0.9)]
    validity: Option<f64>,
    /// The confidence of that; 0.95 if absent.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0, example = 0.9)]
    confidence: Option<f64>,
    /// The maximum number of rejected rows to search for; 100 if absent.
    #[schema(minimum = 1, maximum = 1000)]
    factuals: Option<usize>,
    /// The thresholds to try.
    #[schema(min_items = 1, max_items = 50)]
    taus: Option<Vec<f64>>,
    /// The number of models to train; the recommended number if absent.
    #[schema(minimum = 2, maximum = 2000)]
    models: Option<usize>,
    /// The search options; the threshold is ignored.
    #[serde(flatten)]
    #[schema(value_type = Ask)]
    ask: AskFields,
}

/// Finds the smallest threshold that reaches a validity. Starts a job.
#[utoipa::path(post, path = "/v1/calibrate", tag = "jobs",
    request_body = CalibrateQuestion,
    responses((status = ACCEPTED, body = Job, headers(("location" = String))),
        (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn calibrate(
    _: Explaining,
    caller: Caller,
    State(state): State<AppState>,
    Json(question): Json<CalibrateQuestion>,
) -> Result<Response, Problem> {
    let ask = question.ask.ask::<CalibrateQuestion>()?;
    let served = state.engine.model(question.model.as_deref())?;
    let usual = Goal::default();
    let validity = question.validity.unwrap_or(usual.validity);
    let confidence = question.confidence.unwrap_or(usual.confidence);
    let factuals = question.factuals.unwrap_or(CALIBRATED_ROWS);
    for (name, value) in [("validity", validity), ("confidence", confidence)] {
        if !(value > 0.0 && value < 1.0) {
            return Err(Problem::field(name, "expected a number between 0 and 1"));
        }
    }
    if !(1..=MOST_FACTUALS).contains(&factuals) {
        return Err(Problem::field("factuals", format!("expected 1 to {MOST_FACTUALS}")));
    }
    let taus = question.taus.unwrap_or_else(|| TAUS.to_vec());
    let good = |tau: &f64| *tau > 0.0 && *tau < 1.0;
    if !(1..=MOST_TAUS).contains(&taus.len()) || !taus.iter().all(good) {
        let problem = format!("expected 1 to {MOST_TAUS} numbers between 0 and 1");
        return Err(Problem::field("taus", problem));
    }
    let models = match question.models {
        Some(models) => models,
        None => usual_models(validity, confidence)?,
    };
    if !(2..=MOST_MODELS).contains(&models) {
        let problem = format!(
            "this validity needs {models} models, expected 2 to {MOST_MODELS}; lower the \
             validity or the confidence"
        );
        return Err(Problem::field("models", problem));
    }
    let request = request(&served, &ask, false)?;
    if request.method.robustness().is_none() {
        let robust = MethodSpec::listed(MethodSpec::is_robust);
        let problem = format!("expected a method with a threshold: {robust}");
        return Err(Problem::field("method", problem));
    }
    if !served.explainer().retraining().is_possible() {
        let problem = "a calibration retrains the model, which needs the labelled rows that it \
                       was trained on; upload it with them as `reference`";
        return Err(Problem::field("model", problem));
    }
    let goal = Goal { validity, confidence, ..usual };
    let work = CalibrateWork {
        fingerprint: served.fingerprint().to_owned(),
        terms: CalibrationTerms { goal, taus, request, factuals },
        models,
        seed: Seed(ask.seed),
    };
    if served.rejected() == 0 {
        return Err(Problem::conflict("the model rejects none of its rows"));
    }
    let steps = work.steps(&served)?;
    let work = Work::Calibrate(work);
    Ok(accepted(state.engine.submit(&served, work, steps, caller.owner()).await?))
}
