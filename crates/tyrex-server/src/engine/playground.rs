//! The playground: a model on two moons, its retrained versions, and search paths of methods.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tyrex::change::{Ensemble, ModelChange, Reinitialise};
use tyrex::counterfactual::{MethodSpec, Norm, Protocol, Reason};
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{Adviser, Applicant, Request, RetrainingTerms, StabilityTerms};
use tyrex::model::TrainParams;
use tyrex::{Explainer, Points, Seed};
use tyrex_lab::experiment::{map_bounds, map_grid};
use utoipa::ToSchema;

use super::Engine;
use super::error::{Error, Result};
use super::pool::Stop;

/// Retrained versions of the model.
const MODELS: usize = 20;
/// Maximum number of data points on a map.
const MOST_POINTS: usize = 400;
/// Maximum number of map points along a side.
const LARGEST_MAP: usize = 100;
/// Maximum number of retrained models to show.
const MOST_SHOWN: usize = 6;
/// Maximum number of neighbours of a point.
const MOST_SAMPLES: usize = 2000;
/// Map points measured between two checks for cancellation.
const AT_ONCE: usize = 256;

/// The model and its retrained versions, made at first use.
#[derive(Debug, Default)]
pub(super) struct Playground(OnceCell<Arc<Moons>>);

#[derive(Debug)]
struct Moons {
    explainer: Explainer,
    ensemble: Ensemble,
}

/// A map to draw.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct MapQuestion {
    /// Neighbours of each point.
    #[schema(minimum = 1, maximum = 2000, example = 500)]
    pub(crate) samples: usize,
    /// Their standard deviation.
    #[schema(exclusive_minimum = 0.0, maximum = 1.0, example = 0.1)]
    pub(crate) sigma: f64,
    /// Points along each side.
    #[schema(minimum = 2, maximum = 100, example = 60)]
    pub(crate) resolution: usize,
    /// Retrained models to show.
    #[schema(minimum = 0, maximum = 6, example = 4)]
    pub(crate) shown: usize,
}

/// Maps of the plane, and the data on it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct MapAnswer {
    /// Left, right, bottom, top.
    #[schema(value_type = Vec<f64>)]
    pub(crate) bounds: [f64; 4],
    /// Points along the horizontal side.
    pub(crate) width: usize,
    /// Points along the vertical side.
    pub(crate) height: usize,
    /// The base model, the retrained models, and the stability of the base model.
    pub(crate) maps: Vec<PlaneMap>,
    /// Data points: both coordinates, and whether the label is favourable.
    #[schema(value_type = Vec<Vec<serde_json::Value>>)]
    pub(crate) points: Vec<(f32, f32, bool)>,
    /// The number of retrained models.
    pub(crate) models: usize,
}

/// A value for every point of the plane, row by row from the bottom.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct PlaneMap {
    /// The title.
    pub(crate) title: String,
    /// The values.
    pub(crate) values: Vec<f32>,
}

/// Search paths to compute from a point.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct PathsQuestion {
    /// The start: both coordinates, as on the map.
    #[schema(value_type = Vec<f32>, min_items = 2, max_items = 2, example = json!([0.3, 0.7]))]
    pub(crate) at: [f32; 2],
    /// Neighbours of each point.
    #[schema(minimum = 1, maximum = 2000, example = 1000)]
    pub(crate) samples: usize,
    /// Their standard deviation.
    #[schema(exclusive_minimum = 0.0, maximum = 1.0, example = 0.1)]
    pub(crate) sigma: f64,
    /// The required stability.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0, example = 0.8)]
    pub(crate) tau: f64,
    /// The methods; all if absent.
    #[serde(default)]
    pub(crate) methods: Option<Vec<String>>,
}

/// The search paths of the methods from a point.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct PathsAnswer {
    /// `m(x)` there.
    pub(crate) score: f32,
    /// `R^` there.
    pub(crate) stability: f64,
    /// The number of retrained models that accept it.
    pub(crate) survival: usize,
    /// The number of retrained models.
    pub(crate) models: usize,
    /// One for each method.
    pub(crate) paths: Vec<MethodPath>,
}

/// The search path of one method.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct MethodPath {
    /// The method.
    pub(crate) method: &'static str,
    /// Whether it found a counterfactual.
    pub(crate) status: PathStatus,
    /// The reason, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    /// The points of the path, from the start to the answer, or to the last step.
    #[schema(value_type = Vec<Vec<f32>>)]
    pub(crate) path: Vec<[f32; 2]>,
    /// `m(x')` of the last.
    pub(crate) score: f32,
    /// `R^` of the last.
    pub(crate) stability: f64,
    /// The number of retrained models that accept the last.
    pub(crate) survival: usize,
    /// The number of retrained models.
    pub(crate) models: usize,
    /// Its state.
    pub(crate) cost: f64,
}

/// Whether a method found a counterfactual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PathStatus {
    /// It found one.
    Found,
    /// It found none.
    NotFound,
}

/// Rejects a number outside its range.
fn within<T: PartialOrd + std::fmt::Display + Copy>(
    field: &str,
    value: T,
    least: T,
    most: T,
) -> Result<()> {
    if value >= least && value <= most {
        return Ok(());
    }
    Err(Error::field(field, format!("found {value}, expected {least} to {most}")))
}

impl Engine {
    /// Maps of the plane.
    pub(crate) async fn playground_map(&self, question: MapQuestion) -> Result<MapAnswer> {
        let MapQuestion { samples, sigma, resolution, shown } = question;
        within("samples", samples, 1, MOST_SAMPLES)?;
        within("sigma", sigma, 1e-6, 1.0)?;
        within("resolution", resolution, 2, LARGEST_MAP)?;
        within("shown", shown, 0, MOST_SHOWN)?;
        let moons = self.moons().await?;
        self.pool.run_now(move |stop| moons.map(&question, stop)).await
    }

    /// The search paths of methods from a point.
    pub(crate) async fn playground_paths(&self, question: PathsQuestion) -> Result<PathsAnswer> {
        within("samples", question.samples, 1, MOST_SAMPLES)?;
        within("sigma", question.sigma, 1e-6, 1.0)?;
        within("tau", question.tau, 1e-6, 1.0 - 1e-6)?;
        for (place, &coordinate) in question.at.iter().enumerate() {
            within(&format!("at[{place}]"), coordinate, -10.0, 10.0)?;
        }
        let moons = self.moons().await?;
        self.pool.run_now(move |stop| moons.paths(&question, stop)).await
    }

    async fn moons(&self) -> Result<Arc<Moons>> {
        let train = || self.pool.run_in_background(|| Ok(Arc::new(Moons::train()?)));
        self.playground.0.get_or_try_init(train).await.cloned()
    }
}

impl Moons {
    fn train() -> Result<Self> {
        let dataset =
            Catalogue::new(None).load("moons", Variant::Product, Direction::Favourable)?;
        // Enough for a border that follows the moons.
        let params = TrainParams {
            hidden: vec![64, 64],
            epochs: 100,
            learning_rate: 3e-3,
            ..TrainParams::paper()
        };
        let go_on = |_: &_| ControlFlow::Continue(());
        let explainer = Explainer::train(dataset, &params, Seed(0), go_on)?;
        let terms = RetrainingTerms {
            change: ModelChange::Reinitialise(Reinitialise::default()),
            models: MODELS,
            params,
            seed: Seed(0),
        };
        let ensemble = explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(()))?;
        Ok(Self { explainer, ensemble })
    }

    fn terms(samples: usize, sigma: f64) -> StabilityTerms {
        StabilityTerms { samples, sigma, ..StabilityTerms::default() }
    }

    /// A point of the plane as an applicant.
    fn applicant(&self, at: &[f32]) -> Result<Applicant> {
        let values = self.explainer.encoder().decode(at);
        let point = self.explainer.encoder().encode(&values)?.into_vec();
        Ok(self.at(values, point))
    }

    fn at(&self, values: tyrex::data::Row, point: Vec<f32>) -> Applicant {
        let one = Points::one(&point);
        let score = self.explainer.model().score(&one)[0];
        Applicant { row: 0, values, point, score, label: None, favourable: None }
    }

    fn map(&self, question: &MapQuestion, stop: &Stop) -> Result<MapAnswer> {
        let train = self.explainer.reference().part(tyrex::explain::Part::Train);
        let bounds = map_bounds(&self.explainer.points().select(&train));
        let grid = map_grid(bounds, question.resolution);
        let map = |title: String, model: &dyn tyrex::model::Model| PlaneMap {
            title,
            values: model.score(&grid),
        };
        let mut maps = vec![map("base model".to_owned(), self.explainer.model())];
        for (index, member) in self.ensemble.members().iter().take(question.shown).enumerate() {
            maps.push(map(format!("retrained model {}", index + 1), &**member));
        }
        let terms = Self::terms(question.samples, question.sigma);
        let gauge = self.explainer.stability(&terms)?;
        let row = self.explainer.encoder().decode(grid.row(0));
        let mut stability = Vec::with_capacity(grid.len());
        let places: Vec<usize> = (0..grid.len()).collect();
        for some in places.chunks(AT_ONCE) {
            let points: Vec<Applicant> = some
                .iter()
                .map(|&place| Applicant {
                    row: place,
                    // Only the point is read.
                    values: row.clone(),
                    point: grid.row(place).to_vec(),
                    score: 0.0,
                    label: None,
                    favourable: None,
                })
                .collect();
            let read = gauge.read(&points, || stop.go_on())?;
            stability.extend(read.iter().map(|reading| reading.relaxed_stability as f32));
        }
        let title = "stability of the base model".to_owned();
        maps.push(PlaneMap { title, values: stability });
        let points = self.explainer.points();
        let favourable = |row| self.explainer.reference().is_favourable(row).unwrap_or(false);
        // The points alternate between the moons: an odd step keeps both.
        let step = points.len().div_ceil(MOST_POINTS) | 1;
        let shown = (0..points.len()).step_by(step);
        Ok(MapAnswer {
            bounds,
            width: question.resolution,
            height: question.resolution,
            maps,
            points: shown
                .map(|row| (points.row(row)[0], points.row(row)[1], favourable(row)))
                .collect(),
            models: self.ensemble.members().len(),
        })
    }

    fn paths(&self, question: &PathsQuestion, stop: &Stop) -> Result<PathsAnswer> {
        let names: Vec<&str> = match &question.methods {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => {
                let all = MethodSpec::all();
                all.iter().filter(|method| !method.needs_models()).map(MethodSpec::name).collect()
            }
        };
        if names.len() > MethodSpec::NAMES.len() {
            let problem = format!("expected at most {}", MethodSpec::NAMES.len());
            return Err(Error::field("methods", problem));
        }
        let applicant = self.applicant(&question.at)?;
        let gauge = self.explainer.stability(&Self::terms(question.samples, question.sigma))?;
        let judged = |applicant: &Applicant| -> Result<(f64, usize)> {
            let one = std::slice::from_ref(applicant);
            let stability = gauge.read(one, || stop.go_on())?;
            let survival = self.explainer.survival(one, &self.ensemble)?;
            Ok((stability[0].relaxed_stability, survival[0].survives))
        };
        let models = self.ensemble.members().len();
        let mut paths = Vec::with_capacity(names.len());
        for (place, name) in names.iter().enumerate() {
            let seed = Seed(0).derive("search");
            let mut request = Request::new(name, Protocol::Product, Norm::L2, seed)
                .map_err(|error| Error::field(format!("methods[{place}]"), error.to_string()))?;
            if request.method.needs_models() {
                let problem = "the playground has no retrained models to search over";
                return Err(Error::field(format!("methods[{place}]"), problem));
            }
            if let Some(test) = request.method.robustness_mut() {
                test.tau = question.tau;
                test.samples = question.samples;
                test.sigma = question.sigma;
            }
            let adviser = Adviser::new(&self.explainer, request)?;
            let (advice, way) = adviser.trace(&applicant, |_| stop.go_on())?;
            if stop.is_set() {
                let what = "the search for paths was stopped".to_owned();
                return Err(tyrex::Error::Cancelled(what).into());
            }
            let end = match (advice.found(), way.len()) {
                (Some(found), _) => found.point.clone(),
                (None, 0) => applicant.point.clone(),
                (None, steps) => way.row(steps - 1).to_vec(),
            };
            let cost = Norm::L2.distance(&end, &applicant.point);
            let end = self.at(applicant.values.clone(), end);
            let (stability, survival) = judged(&end)?;
            paths.push(MethodPath {
                method: adviser.request().method.name(),
                status: match advice.found() {
                    Some(_) => PathStatus::Found,
                    None => PathStatus::NotFound,
                },
                reason: advice.outcome.reason(),
                path: way.rows().map(|point| [point[0], point[1]]).collect(),
                score: end.score,
                stability,
                survival,
                models,
                cost,
            });
        }
        let (stability, survival) = judged(&applicant)?;
        Ok(PathsAnswer { score: applicant.score, stability, survival, models, paths })
    }
}
