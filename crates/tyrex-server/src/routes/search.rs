//! What several questions have in common: how to search, and on which neighbours.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use tyrex::Seed;
use tyrex::action::Overrides;
use tyrex::counterfactual::{Budget, MethodSpec, Norm, Protocol};
use tyrex::data::schema::Action;
use tyrex::data::{Schema, Table, nearest_name};
use tyrex::explain::{Applicant, Request};

use crate::engine::{Error, Served};
use crate::problem::Problem;
use crate::rows::{ARROW, Rows, write_arrow};
use crate::state::AppState;

/// The most neighbours of a point.
pub(super) const MOST_SAMPLES: usize = 20_000;
/// As many as there are, unless told otherwise.
const USUAL_SAMPLES: usize = 1000;
/// Rows that are read where they arrive; more are read on the compute threads.
const FEW: usize = 64;

/// How to search, as it is asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    pub(super) method: Option<String>,
    pub(super) norm: Option<Norm>,
    pub(super) tau: Option<f64>,
    pub(super) samples: Option<usize>,
    pub(super) sigma: Option<f64>,
    pub(super) keep: Vec<String>,
    pub(super) vary: Option<Vec<String>>,
    pub(super) budget: Budget,
    pub(super) seed: u64,
}

impl Search {
    /// The library's request for a model. The seed is derived as the command line does it: the
    /// same seed gives the same advice.
    pub(super) fn request(&self, served: &Served) -> Result<Request, Problem> {
        let schema = served.explainer().schema();
        check_features(schema, "keep", &self.keep)?;
        check_features(schema, "vary", self.vary.as_deref().unwrap_or_default())?;
        check_neighbours(served, self.samples, self.sigma)?;
        if let Some(tau) = self.tau
            && !(tau > 0.0 && tau < 1.0)
        {
            return Err(Problem::field("tau", "expected a number between 0 and 1"));
        }
        self.budget.check().map_err(|error| Problem::from(error).within("budget"))?;
        let method = self.method.as_deref().unwrap_or("trex-i");
        let (norm, seed) = (self.norm.unwrap_or_default(), Seed(self.seed).derive("search"));
        let mut request = Request::new(method, Protocol::Product, norm, seed)?;
        if request.method.needs_gradients() && served.explainer().differentiable().is_none() {
            let problem = format!(
                "it needs gradients, which trees do not have; expected {}",
                MethodSpec::listed(|method| !method.needs_gradients())
            );
            return Err(Problem::field("method", problem));
        }
        request.set_test(self.tau, self.samples, self.sigma)?;
        request.budget = self.budget;
        let fixed = self.keep.iter().map(|feature| (feature.clone(), Action::Fixed));
        request.overrides = Overrides { vary: self.vary.clone(), actions: fixed.collect() };
        Ok(request)
    }
}

/// Refuses names that are no features.
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

/// Refuses neighbours that would fill the memory, or are none.
pub(super) fn check_neighbours(
    served: &Served,
    samples: Option<usize>,
    sigma: Option<f64>,
) -> Result<(), Problem> {
    if samples.is_some_and(|samples| !(1..=MOST_SAMPLES).contains(&samples)) {
        return Err(Problem::field("samples", format!("expected 1 to {MOST_SAMPLES}")));
    }
    served.check_neighbours(samples.unwrap_or(USUAL_SAMPLES))?;
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
    // What is wrong with rows is an answer, not a failure of the thread.
    let read = move |_: &_| Ok::<_, Error>(rows.applicants(&served));
    state.engine.aside(read).await?
}

/// A table as an answer.
pub(super) fn arrow(table: &Table) -> Result<Response, Problem> {
    Ok(([(CONTENT_TYPE, ARROW)], write_arrow(table)?).into_response())
}
