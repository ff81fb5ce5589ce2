//! Models, their features and their applicants.

use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tyrex::counterfactual::{MethodSpec, Protocol};
use tyrex::data::FeatureValue;
use tyrex::explain::{Applicant, CONFIDENCE, FeatureDocument, NamedValues, PROMISE, Performance};
use utoipa::{IntoParams, ToSchema};

use crate::access::{Admin, Explaining, Reader};
use crate::engine::{EnsembleSummary, Served, Upload};
use crate::extract::{Json, Path, Query};
use crate::problem::Problem;
use crate::state::AppState;

/// Maximum number of applicants in a response.
const MOST_APPLICANTS: usize = 1000;

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The active model, which answers requests that name no model.
    active: Option<String>,
    /// All of them, by name.
    models: Vec<ModelSummary>,
}

/// The fields that a list and a description of a model share.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelHead {
    /// Its name.
    #[schema(example = "german")]
    id: String,
    /// Whether it is the active model.
    active: bool,
    /// Its fingerprint, which depends on the weights.
    fingerprint: String,
    /// Its kind: `network` (with gradients) or `trees` (without).
    #[schema(example = "network")]
    kind: &'static str,
    /// The number of its rows.
    rows: usize,
    /// The number of rows that it was trained on, as far as they are known.
    reference: usize,
    /// The number of rejected applicants among them.
    rejected: usize,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// Its source.
    #[schema(example = "dataset german")]
    origin: String,
    /// Its retrained versions.
    ensemble: EnsembleSummary,
}

/// A summary of a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelSummary {
    #[serde(flatten)]
    head: ModelHead,
    /// The number of features.
    #[serde(rename = "features")]
    feature_count: usize,
}

/// A model in full.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelDetail {
    #[serde(flatten)]
    head: ModelHead,
    /// The features it takes, in their order.
    features: Vec<FeatureDocument>,
    /// The promises that its retrained models can show, if it has models to search over.
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<PromiseRange>,
    /// The label that it predicts.
    label: LabelDocument,
    /// The methods that support it; the first is the default.
    methods: Vec<MethodDocument>,
    /// Its accuracy on its rows.
    performances: Vec<Performance>,
}

/// The promises that the retrained models of a model can show.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PromiseRange {
    /// The default.
    #[schema(example = 0.9)]
    usual: f64,
    /// Its default confidence.
    #[schema(example = 0.95)]
    confidence: f64,
    /// The highest at that confidence, if all fresh models accept.
    #[schema(example = 0.952)]
    most: f64,
}

impl PromiseRange {
    fn of(served: &Served) -> Option<Self> {
        let models = served.fresh_models();
        // All of `n` models accept with probability `p^n`, which is at least `1 - confidence`.
        let most = (1.0 - CONFIDENCE).powf(1.0 / models.max(1) as f64);
        served.can_promise().then_some(Self { usual: PROMISE, confidence: CONFIDENCE, most })
    }
}

/// The label that a model predicts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabelDocument {
    /// The column.
    column: String,
    /// The favourable values.
    #[schema(value_type = Vec<FeatureValue>)]
    favourable: Vec<FeatureValue>,
    /// The unfavourable values; all other values if absent.
    #[schema(value_type = Vec<FeatureValue>)]
    unfavourable: Vec<FeatureValue>,
}

/// A method and its defaults.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodDocument {
    /// Its name.
    #[schema(example = "trex-i")]
    name: &'static str,
    /// Whether it requires stability.
    robust: bool,
    /// Whether it searches over retrained models, and its answers have a promise.
    needs_models: bool,
    /// The required stability.
    #[serde(skip_serializing_if = "Option::is_none")]
    tau: Option<f64>,
    /// The number of neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<usize>,
    /// The standard deviation of the neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    sigma: Option<f64>,
    /// Its description.
    sentence: &'static str,
}

impl ModelHead {
    fn of(served: &Served, active: Option<&str>) -> Self {
        Self {
            id: served.id().to_owned(),
            active: active == Some(served.id()),
            fingerprint: served.fingerprint().to_owned(),
            kind: served.explainer().model().summary().kind(),
            rows: served.rows(),
            reference: served.explainer().reference().training_rows().len(),
            rejected: served.rejected(),
            created: served.created(),
            origin: served.origin().to_owned(),
            ensemble: served.ensemble_summary(),
        }
    }
}

impl ModelSummary {
    fn of(served: &Served, active: Option<&str>) -> Self {
        let feature_count = served.explainer().schema().features.len();
        Self { head: ModelHead::of(served, active), feature_count }
    }
}

impl ModelDetail {
    fn of(served: &Served, active: Option<&str>) -> Result<Self, Problem> {
        let explainer = served.explainer();
        let label = &explainer.schema().label;
        Ok(Self {
            head: ModelHead::of(served, active),
            features: explainer.features(),
            promise: PromiseRange::of(served),
            label: LabelDocument {
                column: label.column.clone(),
                favourable: label.favourable.clone(),
                unfavourable: label.unfavourable.clone(),
            },
            methods: methods(served)?,
            performances: served.performances(),
        })
    }
}

fn methods(served: &Served) -> Result<Vec<MethodDocument>, Problem> {
    let model = served.explainer().model();
    let mut methods = Vec::new();
    for name in MethodSpec::NAMES {
        let method = MethodSpec::named(name, Protocol::Product)?;
        if !method.takes(model) || method.needs_models() && !served.can_promise() {
            continue;
        }
        let test = method.robustness();
        methods.push(MethodDocument {
            name: method.name(),
            robust: test.is_some(),
            needs_models: method.needs_models(),
            tau: test.map(|test| test.tau),
            samples: test.map(|test| test.samples),
            sigma: test.map(|test| test.sigma),
            sentence: method.sentence(),
        });
    }
    // The first is the default: the method with a promise, if there are models for it.
    let usual = served.explainer().usual_method();
    methods.sort_by_key(|method| (!method.needs_models, method.name != usual));
    Ok(methods)
}

fn active(state: &AppState) -> Option<String> {
    state.engine.active().map(|served| served.id().to_owned())
}

/// All models.
#[utoipa::path(get, path = "/v1/models", tag = "models",
    responses((status = OK, body = ModelList)))]
pub(crate) async fn list(_: Reader, State(state): State<AppState>) -> Json<ModelList> {
    let active = active(&state);
    let models = state.engine.models();
    let models = models.iter().map(|served| ModelSummary::of(served, active.as_deref())).collect();
    Json(ModelList { active, models })
}

/// One model.
#[utoipa::path(get, path = "/v1/models/{id}", tag = "models",
    params(("id" = String, Path, description = "The model's name")),
    responses((status = OK, body = ModelDetail), (status = NOT_FOUND)))]
pub(crate) async fn show(
    _: Reader,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<ModelDetail>, Problem> {
    let served = state.engine.model(Some(&id))?;
    ModelDetail::of(&served, active(&state).as_deref()).map(Json)
}

/// Makes a model the active one, which answers requests that name no model.
#[utoipa::path(post, path = "/v1/models/{id}/activate", tag = "models",
    params(("id" = String, Path, description = "The model's name")),
    responses((status = OK, body = ModelDetail), (status = NOT_FOUND)))]
pub(crate) async fn activate(
    _: Admin,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<ModelDetail>, Problem> {
    let served = state.engine.activate(&id).await?;
    ModelDetail::of(&served, Some(&id)).map(Json)
}

/// Removes a model.
///
/// Fails for the active model, unless it is the only one, and for a model with waiting jobs.
#[utoipa::path(delete, path = "/v1/models/{id}", tag = "models",
    params(("id" = String, Path, description = "The model's name")),
    responses((status = NO_CONTENT), (status = NOT_FOUND), (status = CONFLICT)))]
pub(crate) async fn remove(
    _: Admin,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    state.engine.remove(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The parts of an uploaded model.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes the parts; they are read one by one")]
pub(crate) struct ModelUpload {
    /// The model, as ONNX.
    #[schema(value_type = String, format = Binary, content_media_type = "application/octet-stream")]
    model: Vec<u8>,
    /// The schema, in TOML. Models that tyrex wrote contain it.
    schema: Option<String>,
    /// The rows to explain; the file's name ends in `.csv`, `.jsonl`, `.parquet` or `.arrow`.
    /// They are used as the reference only if the schema has a split, which names those that the
    /// model was trained on.
    #[schema(value_type = Option<String>, format = Binary,
        content_media_type = "application/octet-stream")]
    data: Option<Vec<u8>>,
    /// The rows the model was trained on, separate from the rows to explain: searches restart from
    /// them, `nn` and `trex-nn` return them, and models are retrained on them. Without `data` they
    /// are also the rows to explain.
    #[schema(value_type = Option<String>, format = Binary,
        content_media_type = "application/octet-stream")]
    reference: Option<Vec<u8>>,
    /// Its name: lower-case letters, digits and hyphens.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    name: Option<String>,
    /// The number of models to retrain.
    #[schema(maximum = 1000)]
    ensemble: Option<usize>,
    /// The favourable class, by its name, if the model has three or more.
    model_class: Option<String>,
    /// The output that holds the scores, if several could.
    model_output: Option<String>,
    /// Whether the output holds logits.
    model_logits: Option<bool>,
}

/// Uploads a model.
#[utoipa::path(post, path = "/v1/models", tag = "models",
    request_body(content = ModelUpload, content_type = "multipart/form-data"),
    responses((status = CREATED, body = ModelDetail), (status = CONFLICT)))]
pub(crate) async fn upload(
    _: Admin,
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, Problem> {
    let mut parts = multipart(request, &state).await?;
    let mut upload = Upload::default();
    let mut seen: Vec<String> = Vec::new();
    while let Some(part) = parts.next_field().await.map_err(|error| broken(&error))? {
        let name = part.name().unwrap_or_default().to_owned();
        if seen.contains(&name) {
            return Err(Problem::field(name, "found twice, expected once"));
        }
        match name.as_str() {
            "model" => upload.onnx = bytes(part).await?,
            "schema" => upload.schema = Some(text(part).await?),
            "data" => upload.data = Some(rows(part).await?),
            "reference" => upload.reference = Some(rows(part).await?),
            "name" => upload.name = Some(text(part).await?),
            "ensemble" => upload.ensemble = number(&name, &text(part).await?)?,
            "model_class" => upload.reading.model_class = Some(text(part).await?),
            "model_output" => upload.reading.model_output = Some(text(part).await?),
            "model_logits" => upload.reading.model_logits = number(&name, &text(part).await?)?,
            _ => return Err(Problem::field(name, "unknown part of an upload")),
        }
        seen.push(name);
    }
    if upload.onnx.is_empty() {
        return Err(Problem::field("model", "missing or empty, expected an ONNX file"));
    }
    let served = state.engine.upload(upload).await?;
    let detail = ModelDetail::of(&served, active(&state).as_deref())?;
    let location = format!("/v1/models/{}", served.id());
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(detail)).into_response())
}

/// The parts of a body.
pub(super) async fn multipart(request: Request, state: &AppState) -> Result<Multipart, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/form-data")) {
        let detail = "expected a body of the type multipart/form-data";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    Multipart::from_request(request, state)
        .await
        .map_err(|rejection| Problem::new(rejection.status(), rejection.body_text()))
}

pub(super) fn broken(error: &MultipartError) -> Problem {
    Problem::new(error.status(), error.body_text())
}

pub(super) async fn bytes(part: Field<'_>) -> Result<Vec<u8>, Problem> {
    part.bytes().await.map(Into::into).map_err(|error| broken(&error))
}

pub(super) async fn text(part: Field<'_>) -> Result<String, Problem> {
    let name = part.name().unwrap_or_default().to_owned();
    String::from_utf8(bytes(part).await?)
        .map_err(|_| Problem::field(name, "found invalid UTF-8, expected text"))
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, Problem> {
    let expected = if name == "ensemble" { "a whole number" } else { "true or false" };
    text.trim().parse().map_err(|_| Problem::field(name, format!("expected {expected}")))
}

/// A file of rows: its format, and its bytes.
async fn rows(part: Field<'_>) -> Result<(String, Vec<u8>), Problem> {
    let format = format(part.file_name().unwrap_or_default())?;
    Ok((format, bytes(part).await?))
}

/// The format of a file of rows, by the end of its name.
fn format(file: &str) -> Result<String, Problem> {
    const KNOWN: [&str; 8] =
        ["csv", "jsonl", "ndjson", "parquet", "arrow", "arrows", "ipc", "feather"];
    let end = file.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let known = end.filter(|end| KNOWN.contains(&end.as_str()));
    known.ok_or_else(|| {
        let problem = "expected a file name that ends in .csv, .jsonl, .parquet or .arrow";
        Problem::field("data", problem)
    })
}

/// Filter of the applicants.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApplicantQuery {
    /// Only those that the model rejects.
    rejected: bool,
    /// Number of applicants to skip.
    offset: usize,
    /// Maximum number of elements.
    #[param(maximum = 1000)]
    limit: usize,
    /// Only the applicant in this row of the data.
    row: Option<usize>,
}

impl Default for ApplicantQuery {
    fn default() -> Self {
        Self { rejected: true, offset: 0, limit: 50, row: None }
    }
}

/// Applicants of a model's data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApplicantList {
    /// The total number.
    total: usize,
    /// The applicants of this page, in the order of the data.
    applicants: Vec<ApplicantDocument>,
}

/// A row and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApplicantDocument {
    /// Its row in the data, from 0.
    row: usize,
    /// `m(x)`
    score: f32,
    /// Its label, as in the data.
    label: Option<String>,
    /// Whether that label is favourable.
    favourable: Option<bool>,
    /// Its values.
    #[schema(value_type = std::collections::BTreeMap<String, FeatureValue>)]
    features: Box<serde_json::value::RawValue>,
}

impl ApplicantDocument {
    fn of(served: &Served, applicant: Applicant) -> Result<Self, Problem> {
        let features = NamedValues::Row(served.explainer().schema(), &applicant.values);
        let features = serde_json::value::to_raw_value(&features).map_err(Problem::internal)?;
        let Applicant { row, score, label, favourable, .. } = applicant;
        Ok(Self { row, score, label, favourable, features })
    }
}

/// The applicants among a model's rows.
#[utoipa::path(get, path = "/v1/models/{id}/applicants", tag = "models",
    params(("id" = String, Path, description = "The model's name"), ApplicantQuery),
    responses((status = OK, body = ApplicantList), (status = NOT_FOUND)))]
pub(crate) async fn applicants(
    _: Explaining,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Query(query): Query<ApplicantQuery>,
) -> Result<Json<ApplicantList>, Problem> {
    let served = state.engine.model(Some(&id))?;
    if query.limit > MOST_APPLICANTS {
        return Err(Problem::field("limit", format!("expected at most {MOST_APPLICANTS}")));
    }
    let (total, applicants) = match query.row {
        Some(row) => {
            let applicant = served.applicant(row);
            let absent = || Problem::not_found(format!("the model has no row {row}"));
            (1, vec![applicant.ok_or_else(absent)?])
        }
        None => served.applicants(query.rejected, query.offset, query.limit),
    };
    let documents = applicants.into_iter().map(|each| ApplicantDocument::of(&served, each));
    let applicants = documents.collect::<Result<_, _>>()?;
    Ok(Json(ApplicantList { total, applicants }))
}
