//! Common parts of several questions: search options and neighbours.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use tyrex::counterfactual::MethodSpec;
use tyrex::data::{Schema, Table, nearest_name};
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

/// The library's request for a client's question.
pub(super) fn request(served: &Served, ask: &Ask) -> Result<Request, Problem> {
    let schema = served.explainer().schema();
    check_features(schema, "keep", &ask.keep)?;
    check_features(schema, "vary", ask.vary.as_deref().unwrap_or_default())?;
    let actions: Vec<String> = ask.actions.keys().cloned().collect();
    check_features(schema, "actions", &actions)?;
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
        ("protocol", ask.protocol != usual.protocol, "HTTP returns rows: product"),
        ("params", !ask.params.is_empty(), "method parameters cannot be set over HTTP: nothing"),
        ("models", ask.models.is_some(), "the models of the service certify: nothing"),
        ("change", ask.change != usual.change, "the models of the service certify: nothing"),
    ];
    for (field, is_set, expected) in refused {
        if is_set {
            return Err(Problem::field(field, expected));
        }
    }
    ask.budget.check().map_err(|error| Problem::from(error).within("budget"))?;
    let request = ask.for_model(served.explainer()).request()?;
    if request.method.needs_gradients() && served.explainer().differentiable().is_none() {
        let problem = format!(
            "it needs gradients, which trees do not have; expected {}",
            MethodSpec::listed(|method| !method.needs_gradients())
        );
        return Err(Problem::field("method", problem));
    }
    Ok(request)
}

/// Rejects names that are not features.
fn check_features(schema: &Schema, field: &str, names: &[String]) -> Result<(), Problem> {
    for (place, name) in names.iter().enumerate() {
        if schema.position(name).is_none() {
            let known = schema.features.iter().map(|feature| feature.name.as_str());
            let hint = nearest_name(name, known)
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            let problem = format!("the model has no feature `{name}`{hint}");
            return Err(Problem::field(format!("{field}[{place}]"), problem));
        }
    }
    Ok(())
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
