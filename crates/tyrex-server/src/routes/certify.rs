//! Certificates of rows for a changed model.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tyrex::certificate::{CertificateDocument, Terms, Verified, WrittenCertificate};
use tyrex::explain::{Ask, SearchedModels};
use utoipa::ToSchema;

use super::search::{applicants, arrow, check_neighbours};
use crate::access::Reader;
use crate::ask;
use crate::engine::questions::Certifying;
use crate::extract::Json;
use crate::problem::Problem;
use crate::rows::{Asked, JsonRows, Rows};
use crate::state::AppState;

/// Rows to certify.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct CertifyQuestion {
    /// The model; the active one if absent.
    model: Option<String>,
    /// Rows to certify.
    rows: Option<JsonRows>,
    /// Instead of `rows`: row numbers of the model's own data, which need the role `explain`.
    indices: Option<Vec<usize>>,
    /// The terms of the certificates.
    #[schema(value_type = Option<Terms>)]
    terms: Option<Map<String, Value>>,
    /// The seed of the draws; 0 if absent.
    seed: Option<u64>,
    /// The models that took part in the search for the rows: `searched` of its answer.
    searched: Option<SearchedModels>,
    /// Whether the rows were chosen by the judgement of the retrained models, which `/v1/survival`
    /// shows. If this is absent and so is `searched`, it is not known, and nothing that rests on
    /// these models is certified.
    steered: Option<bool>,
    /// The number of answers for the same person that the retrained models have judged before, and
    /// that led to these rows; 0 if absent.
    #[schema(maximum = 30)]
    looks: Option<u32>,
}

/// Certificates of rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CertifyAnswer {
    /// The model.
    model: String,
    /// Its fingerprint, which depends on the weights.
    fingerprint: String,
    /// The number of retrained models used.
    models: usize,
    /// One element per row.
    rows: Vec<CertifiedRow>,
}

/// The certificate of one row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CertifiedRow {
    /// The row.
    row: usize,
    /// In words.
    sentence: String,
    /// In full.
    certificate: CertificateDocument,
}

/// Certifies rows: bounds on their scores when the model changes.
#[utoipa::path(post, path = "/v1/certify", tag = "rows",
    request_body(content(
        (CertifyQuestion = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    responses((status = OK, content(
        (CertifyAnswer = "application/json"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn certify(
    _: Reader,
    State(state): State<AppState>,
    Asked { question, table, arrow: wants_arrow, caller }: Asked<CertifyQuestion>,
) -> Result<Response, Problem> {
    let CertifyQuestion { model, rows, indices, terms, seed, searched, steered, looks } = question;
    let terms: Terms = ask::terms(terms.as_ref(), &["theorem", "delta"])?;
    let served = state.engine.model(model.as_deref())?;
    if let Some(theorem) = &terms.theorem {
        let checked = check_neighbours(&served, "samples", Some(theorem.samples), theorem.sigma);
        checked.map_err(|problem| problem.within("terms.theorem"))?;
    }
    let rows = Rows::of(&served, &state.config.limits, &caller, rows, indices, table)?;
    let applicants = applicants(&state, &served, &Arc::new(rows)).await?;
    let numbers: Vec<usize> = applicants.iter().map(|applicant| applicant.row).collect();
    let scale = served.explainer().scale();
    let fresh = served.fresh_after(looks.unwrap_or_default())?;
    let fresh = fresh.map(|fresh| Arc::new(fresh.beside(searched.as_ref(), scale, steered)));
    let models = fresh.as_ref().map_or(0, |fresh| fresh.ensemble.members().len());
    let ask = Ask { seed: seed.unwrap_or_default(), ..Ask::default() };
    let question = Certifying { terms, seed: ask.certificate_seed(), fresh };
    let certificates = state.engine.ask(&served, question, applicants).await?;
    if wants_arrow {
        let table = served.explainer().certificate_table(
            &numbers,
            &certificates,
            ask.certificate_seed(),
        )?;
        return arrow(&table);
    }
    let rows = numbers
        .into_iter()
        .zip(certificates)
        .map(|(row, certificate)| CertifiedRow {
            row,
            sentence: certificate.sentence(),
            certificate: certificate.into(),
        })
        .collect();
    let (model, fingerprint) = (served.id().to_owned(), served.fingerprint().to_owned());
    Ok(Json(CertifyAnswer { model, fingerprint, models, rows }).into_response())
}

/// Certificates to verify.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct VerifyQuestion {
    /// The model of the certificates; the active one if absent.
    model: Option<String>,
    /// A certificate, a list of them, or a document with certificates, such as an answer of
    /// `/v1/certify` or `/v1/explain`.
    #[schema(value_type = Object)]
    certificates: Value,
}

/// The result for each certificate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VerifyAnswer {
    /// The model.
    model: String,
    /// Its fingerprint, which depends on the weights.
    fingerprint: String,
    /// The number of certificates that were confirmed.
    confirmed: usize,
    /// One element per certificate, in the order of the document.
    certificates: Vec<Verified>,
}

/// Recomputes certificates, each from its own point, seed and terms, and compares every field.
#[utoipa::path(post, path = "/v1/certify/verify", tag = "rows",
    responses((status = OK, body = VerifyAnswer), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn verify(
    _: Reader,
    State(state): State<AppState>,
    Json(question): Json<VerifyQuestion>,
) -> Result<Json<VerifyAnswer>, Problem> {
    let served = state.engine.model(question.model.as_deref())?;
    let written = WrittenCertificate::all(&question.certificates)?;
    let most = state.config.limits.rows;
    if written.len() > most {
        return Err(Problem::field("certificates", format!("expected at most {most}")));
    }
    for each in &written {
        if let Some(theorem) = &each.certificate.terms().theorem {
            let checked =
                check_neighbours(&served, "samples", Some(theorem.samples), theorem.sigma);
            let place = format!("certificates.{}.terms.theorem", each.place);
            checked.map_err(|problem| problem.within(&place))?;
        }
    }
    let (model, fingerprint) = (served.id().to_owned(), served.fingerprint().to_owned());
    let verified = state
        .engine
        .run_now(move |stop| {
            let fresh = served.fresh();
            let ensemble = fresh.as_deref().map(|fresh| &fresh.ensemble);
            Ok(served.explainer().verify(&written, ensemble, || stop.go_on())?)
        })
        .await?;
    let confirmed = verified.iter().filter(|each| each.confirmed).count();
    Ok(Json(VerifyAnswer { model, fingerprint, confirmed, certificates: verified }))
}
