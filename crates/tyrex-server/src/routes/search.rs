//! Common parts of several questions: search options and neighbours.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use tyrex::counterfactual::MethodSpec;
use tyrex::data::Table;
use tyrex::explain::{Applicant, Ask, Request, Threshold};

use crate::engine::{Error, Served};
use crate::problem::Problem;
use crate::rows::{ARROW, Rows, write_arrow};
use crate::state::AppState;

/// Maximum number of neighbours of a point.
pub(super) const MOST_SAMPLES: usize = 20_000;
/// The default number of neighbours.
const USUAL_SAMPLES: usize = 1000;
/// Up to this many rows are parsed on the thread of the connection; more on the compute threads.
const FEW: usize = 64;
/// Why a question cannot have models of its own.
const OWN_MODELS: &str = "the service certifies with the models that it has retrained already";

/// Why a question cannot have a promise, and no method that searches over models.
const NO_SEARCH_MODELS: &str = "the model has no retrained models to search over";

/// The library's request for a client's question. `promises` says whether the answers may have a
/// promise: an audit and a calibration have none.
pub(super) fn request(served: &Served, ask: &Ask, promises: bool) -> Result<Request, Problem> {
    let can_promise = promises && served.can_promise();
    ask.check_features(served.explainer().schema())?;
    check_neighbours(served, "k", ask.k, ask.sigma)?;
    match ask.tau {
        Some(Threshold::Given(tau)) if !(tau > 0.0 && tau < 1.0) => {
            return Err(Problem::field("tau", "expected a number between 0 and 1"));
        }
        Some(Threshold::Auto(_)) => {
            let problem = "a job calibrates the threshold: POST /v1/calibrate, then send its \
                           number";
            return Err(Problem::field("tau", problem));
        }
        Some(Threshold::Given(_)) | None => {}
    }
    let usual = Ask::default();
    let refused = [
        (
            "protocol",
            ask.protocol != usual.protocol,
            "the service returns rows; expected `product`",
        ),
        ("params", !ask.params.is_empty(), "parameters of methods cannot be set over HTTP"),
        ("promise", ask.promise.is_some() && !can_promise, NO_SEARCH_MODELS),
        ("models", ask.models.is_some(), OWN_MODELS),
        ("change", ask.change != usual.change, OWN_MODELS),
    ];
    for (field, is_set, problem) in refused {
        if is_set {
            return Err(Problem::field(field, format!("{problem}; leave this field out")));
        }
    }
    ask.budget.check()?;
    let settled = ask.settled(served.explainer(), can_promise);
    let fresh = served.fresh_models();
    if let Some(promise) = settled.promised()?.filter(|promise| !promise.can_be_shown(fresh)) {
        let problem = format!(
            "it takes {} fresh models to show it, and the model has {fresh}; expected a lower \
             promise, or a service that is started with a larger `--models`",
            promise.least_models()
        );
        return Err(Problem::field("promise", problem));
    }
    let request = Ask { models: Some(fresh), ..settled }.request()?;
    let model = served.explainer().model();
    if !request.method.takes(model) {
        let others = MethodSpec::listed(|method| method.takes(model));
        let problem = format!("it {}; expected {others}", request.method.refusal());
        return Err(Problem::field("method", problem));
    }
    if request.method.needs_models() && !can_promise {
        let others = MethodSpec::listed(|method| !method.needs_models());
        return Err(Problem::field("method", format!("{NO_SEARCH_MODELS}; expected {others}")));
    }
    Ok(request)
}

/// Rejects numbers of neighbours that are zero or would exhaust the memory.
pub(super) fn check_neighbours(
    served: &Served,
    field: &'static str,
    samples: Option<usize>,
    sigma: Option<f64>,
) -> Result<(), Problem> {
    if samples.is_some_and(|samples| !(1..=MOST_SAMPLES).contains(&samples)) {
        return Err(Problem::field(field, format!("expected 1 to {MOST_SAMPLES}")));
    }
    served.check_neighbours(field, samples.unwrap_or(USUAL_SAMPLES))?;
    if sigma.is_some_and(|sigma| !(1e-30..=1e6).contains(&sigma)) {
        return Err(Problem::field("sigma", "expected a number from 1e-30 to 1e6"));
    }
    Ok(())
}

/// The applicants of a question.
pub(super) async fn applicants(
    state: &AppState,
    served: &Arc<Served>,
    rows: &Arc<Rows>,
) -> Result<Vec<Applicant>, Problem> {
    if rows.len() <= FEW {
        return rows.applicants(served);
    }
    let (served, rows) = (Arc::clone(served), Arc::clone(rows));
    // An error in the rows is an answer, not a failure of the thread.
    let read = move |_: &_| Ok::<_, Error>(rows.applicants(&served));
    state.engine.run_now(read).await?
}

/// A table as a response.
pub(super) fn arrow(table: &Table) -> Result<Response, Problem> {
    Ok(([(CONTENT_TYPE, ARROW)], write_arrow(table)?).into_response())
}
