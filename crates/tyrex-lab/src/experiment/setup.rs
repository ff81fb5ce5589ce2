//! The data and the models of an experiment, trained or read from an earlier run.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tyrex::action::{Actions, FeasibleSet};
use tyrex::change::{Ensemble, LeaveOut, ModelChange, Origin, Plan, Reinitialise};
use tyrex::counterfactual::{
    Budget, Factual, Memory, Norm, Outcome, Plausible, Problem, Reason, SearchModels, Tick,
    find_all,
};
use tyrex::data::Dataset;
use tyrex::data::catalogue::Catalogue;
use tyrex::error::{Error, Result};
use tyrex::file::Overwrite;
use tyrex::metric::{LocalOutlierFactor, MetricParams, Metrics, NeighbourIndex};
use tyrex::model::onnx::ExportMetadata;
use tyrex::model::{Examples, Mlp, Model, THRESHOLD, train};
use tyrex::plausibility::Plausibility;
use tyrex::points::Points;
use tyrex::seed::Seed;

use super::contender::Contender;
use super::progress::Tracker;
use super::result::{
    BaseSummary, ChangeSummary, DataSummary, FAVOURABLE_NEIGHBOURS, LEAVE_OUT, REINITIALISE,
};
use super::spec::World;
use super::store::{Store, digest};

/// A point with a larger local outlier factor is an outlier.
const INLIER: f64 = 1.5;

/// The data and the models of an experiment, with its own number of bases and factuals.
#[derive(Clone)]
pub(super) struct Setup {
    world: World,
    stock: Arc<Stock>,
}

/// The common state of experiments on the same data with the same models.
struct Stock {
    data: Dataset,
    /// The training points.
    train: Points,
    /// All models trained from new weights: the first base, then the retrained ones.
    models: Vec<Mlp>,
    left_out: Option<Ensemble>,
    calibration: Option<Ensemble>,
    search: Option<Ensemble>,
    tuning: Option<Ensemble>,
    changes: Vec<ChangeSummary>,
    metrics: OnceLock<Metrics>,
    /// The density of the favourable training points, and their neighbours.
    density: OnceLock<Plausibility>,
    favourable: OnceLock<NeighbourIndex>,
    memory: Memory,
    seed: Seed,
}

/// The retrained models of one change that evaluate a base.
pub(super) struct Judges<'a> {
    /// The change.
    pub(super) change: &'static str,
    /// The models; the base is not among them.
    pub(super) models: Vec<&'a dyn Model>,
}

impl Setup {
    /// The identity of the models of a world, independent of their number.
    fn family(world: &World, seed: Seed) -> Result<String> {
        let World { dataset, variant, direction, training, .. } = world;
        let digest = digest(&(dataset, variant, direction, training, seed))?;
        Ok(format!("{dataset}-{digest}"))
    }

    /// The same with their number.
    pub(super) fn key(world: &World, seed: Seed) -> Result<String> {
        let World { reinitialise, leave_out, calibration, search, tuning, .. } = world;
        let family = Self::family(world, seed)?;
        let mut key = format!("{family}-{reinitialise}-{leave_out}-{calibration}");
        if search + tuning > 0 {
            let _ = write!(key, "-{search}-{tuning}");
        }
        Ok(key)
    }

    /// Loads the data and trains the missing models.
    pub(super) fn new(
        world: &World,
        catalogue: &Catalogue,
        seed: Seed,
        store: &Store,
        tracker: &Tracker<'_>,
    ) -> Result<Self> {
        let data = catalogue.load(&world.dataset, world.variant, world.direction)?;
        if data.test().is_empty() {
            return Err(Error::Catalogue {
                name: world.dataset.clone(),
                problem: "it has no test rows, expected some to explain".to_owned(),
            });
        }
        let folder = store.folder(&Path::new("models").join(Self::family(world, seed)?))?;
        let labels: Vec<u32> = data.labels().iter().map(|&label| u32::from(label)).collect();
        let examples = Examples::new(data.points(), &labels).with_rows(data.train());
        let seed = seed.derive(&world.dataset);
        let doing = format!("training models on {}", world.dataset);
        let retrained = (world.models() - 1).max(1);
        let total = world.training.epochs as f64 * retrained as f64;
        let (base, [reinitialised, left_out, calibration, search, tuning]) =
            tracker.step(&doing, |share| {
                let base = train(examples, &world.training, seed.derive("base"))?.network;
                let epochs = AtomicU64::new(0);
                let ensemble = |name: &str, change, members| {
                    if members == 0 {
                        return Ok(None);
                    }
                    let plan = Plan {
                        examples,
                        fresh: &[],
                        params: &world.training,
                        change: &change,
                        members,
                        seed: seed.derive(name),
                    };
                    let metadata = ExportMetadata::of(data.schema(), data.encoder())?;
                    let watch = |_: usize, _: &_| {
                        let done = epochs.fetch_add(1, Ordering::Relaxed) + 1;
                        share(done as f64 / total)
                    };
                    let (folder, base) = (folder.join(name), base.clone());
                    let force = Overwrite::Force;
                    Ensemble::train_into(&folder, base, &plan, &metadata, force, watch).map(Some)
                };
                let reinitialise = ModelChange::Reinitialise(Reinitialise {});
                let leave_out = ModelChange::LeaveOut(LeaveOut::default());
                let like = |name, members| ensemble(name, leave_out.clone(), members);
                let ensembles = [
                    ensemble("reinitialise", reinitialise, world.reinitialise)?,
                    like("leave-out", world.leave_out)?,
                    like("calibration", world.calibration)?,
                    like("search", world.search)?,
                    like("tuning", world.tuning)?,
                ];
                Ok((base, ensembles))
            })?;
        let test = data.points().select(data.test());
        let changes = [&reinitialised, &left_out]
            .into_iter()
            .flatten()
            .filter(|ensemble| ensemble.members().len() > 1)
            .map(|ensemble| {
                let observed = ensemble.observed_change(&test)?;
                Ok(ChangeSummary {
                    change: ensemble
                        .origin()
                        .change()
                        .map_or("given", ModelChange::name)
                        .to_owned(),
                    models: observed.models,
                    mean_change: observed.mean_change,
                    lemma_bound: observed.lemma_bound(),
                    bias: observed.bias,
                    flipped: observed.flipped,
                })
            })
            .collect::<Result<_>>()?;
        let mut models = vec![base];
        if let Some(ensemble) = &reinitialised {
            models.extend(ensemble.members().iter().filter_map(|member| member.network()).cloned());
        }
        let stock = Stock {
            train: data.points().select(data.train()),
            data,
            models,
            left_out,
            calibration,
            search,
            tuning,
            changes,
            metrics: OnceLock::new(),
            density: OnceLock::new(),
            favourable: OnceLock::new(),
            memory: Memory::default(),
            seed,
        };
        Ok(Self { world: world.clone(), stock: Arc::new(stock) })
    }

    /// The same data and models with another world's number of bases and factuals.
    pub(super) fn of(&self, world: &World) -> Self {
        Self { world: world.clone(), stock: Arc::clone(&self.stock) }
    }

    /// The training points.
    pub(super) fn train(&self) -> &Points {
        &self.stock.train
    }

    /// The name of the data set.
    pub(super) fn dataset(&self) -> &str {
        &self.world.dataset
    }

    /// The number of base models.
    pub(super) fn bases(&self) -> usize {
        self.world.bases.min(self.stock.models.len())
    }

    /// A base model.
    pub(super) fn base(&self, base: usize) -> &Mlp {
        &self.stock.models[base]
    }

    /// All models from new weights but one.
    pub(super) fn reinitialised(&self, base: usize) -> impl Iterator<Item = &Mlp> {
        self.stock
            .models
            .iter()
            .enumerate()
            .filter(move |(index, _)| *index != base)
            .map(|(_, m)| m)
    }

    /// The models that evaluate the counterfactuals of a base.
    pub(super) fn judges(&self, base: usize) -> Vec<Judges<'_>> {
        let reinitialised = Judges {
            change: REINITIALISE,
            models: self.reinitialised(base).map(|model| model as &dyn Model).collect(),
        };
        let left_out = self.stock.left_out.iter().map(|ensemble| Judges {
            change: LEAVE_OUT,
            models: ensemble.members().iter().map(|model| &**model).collect(),
        });
        std::iter::once(reinitialised).chain(left_out).collect()
    }

    /// The models that calibrate and certify, and evaluate nothing.
    pub(super) fn calibrators(&self) -> Vec<&dyn Model> {
        let members = self.stock.calibration.iter().flat_map(Ensemble::members);
        members.map(|model| &**model).collect()
    }

    /// The change of the calibrating models, for display.
    pub(super) fn calibrators_family(&self) -> String {
        let origin = self.stock.calibration.as_ref().map(Ensemble::origin);
        origin.map(Origin::description).unwrap_or_default()
    }

    /// The first test rows that a base rejects and whose label is not favourable: the paper's
    /// true negatives.
    pub(super) fn factuals(&self, base: usize, most: usize) -> Vec<usize> {
        let mut rows = self.rejected(base);
        rows.truncate(most.min(self.world.factuals));
        rows
    }

    fn rejected(&self, base: usize) -> Vec<usize> {
        let test = self.stock.data.points().select(self.stock.data.test());
        let scores = self.base(base).score(&test);
        let pairs = self.stock.data.test().iter().zip(scores);
        pairs
            .filter(|&(&row, score)| score < THRESHOLD && !self.stock.data.labels()[row])
            .map(|(&row, _)| row)
            .collect()
    }

    /// A summary of the data and the bases.
    pub(super) fn summary(&self) -> DataSummary {
        let test = self.stock.data.points().select(self.stock.data.test());
        let bases = (0..self.bases())
            .map(|base| {
                let scores = self.base(base).score(&test);
                let labels =
                    self.stock.data.test().iter().map(|&row| self.stock.data.labels()[row]);
                let right = scores
                    .iter()
                    .zip(labels)
                    .filter(|(score, label)| (**score >= THRESHOLD) == *label);
                BaseSummary {
                    model: self.base(base).fingerprint().to_string(),
                    accuracy: right.count() as f64 / test.len() as f64,
                    rejected: self.rejected(base).len(),
                    factuals: self.factuals(base, usize::MAX).len(),
                }
            })
            .collect();
        DataSummary {
            dataset: self.world.dataset.clone(),
            columns: self.stock.data.points().dim(),
            train: self.stock.data.train().len(),
            test: self.stock.data.test().len(),
            bases,
        }
    }

    /// How far the retrained models moved.
    pub(super) fn changes(&self) -> &[ChangeSummary] {
        &self.stock.changes
    }

    /// All encoded rows.
    pub(super) fn points(&self) -> &Points {
        self.stock.data.points()
    }

    /// Whether a row's label is favourable.
    pub(super) fn is_favourable(&self, row: usize) -> bool {
        self.stock.data.labels()[row]
    }

    /// The row of the table that a row was read from.
    pub(super) fn table_row(&self, row: usize) -> usize {
        self.stock.data.table_rows()[row]
    }

    /// Cost and plausibility, fitted on the training points.
    pub(super) fn metrics(&self) -> Result<&Metrics> {
        if let Some(metrics) = self.stock.metrics.get() {
            return Ok(metrics);
        }
        let features = self.stock.data.encoder().placed().map(|(_, range, _)| range).collect();
        let metrics = Metrics::fit(self.train(), &MetricParams { features, ..Default::default() })?;
        Ok(self.stock.metrics.get_or_init(|| metrics))
    }

    /// The training points with a favourable label.
    fn favourable(&self) -> Points {
        let Stock { data, .. } = &*self.stock;
        let train = data.train().iter().copied();
        let favourable: Vec<usize> = train.filter(|&row| data.labels()[row]).collect();
        data.points().select(&favourable)
    }

    /// The density of these points.
    fn density(&self) -> Result<&Plausibility> {
        let Stock { data, density, seed, .. } = &*self.stock;
        if let Some(density) = density.get() {
            return Ok(density);
        }
        let seed = seed.derive("plausibility");
        let fitted = Plausibility::fit(data.encoder(), &self.favourable(), seed)?;
        Ok(density.get_or_init(|| fitted))
    }

    /// Whether points are inliers among these points; empty if there are too few of them.
    pub(super) fn favourable_inliers(&self, points: &Points) -> Result<Vec<bool>> {
        let index = if let Some(index) = self.stock.favourable.get() {
            index
        } else {
            let favourable = self.favourable();
            if favourable.len() <= FAVOURABLE_NEIGHBOURS {
                return Ok(Vec::new());
            }
            let fitted = NeighbourIndex::fit(&favourable, FAVOURABLE_NEIGHBOURS)?;
            self.stock.favourable.get_or_init(|| fitted)
        };
        let factors = LocalOutlierFactor::new(index, FAVOURABLE_NEIGHBOURS)?.of(points)?;
        Ok(factors.into_iter().map(|factor| factor <= INLIER).collect())
    }

    /// The models that a search for a base runs over, and those that choose its margin.
    fn search_models(&self, base: usize) -> Result<Option<SearchModels>> {
        let shared = |ensemble: &Option<Ensemble>| -> Vec<Arc<dyn Model>> {
            let members = ensemble.iter().flat_map(Ensemble::members);
            members.map(Arc::clone).collect()
        };
        let (search, tuning) = (shared(&self.stock.search), shared(&self.stock.tuning));
        if search.is_empty() {
            return Ok(None);
        }
        SearchModels::new(Arc::new(self.base(base).clone()), search, tuning).map(Some)
    }

    /// Searches counterfactuals of rows for a base.
    pub(super) fn search(
        &self,
        contender: &Contender,
        norm: Norm,
        base: usize,
        rows: &[usize],
        watch: impl Fn() -> ControlFlow<()> + Sync,
    ) -> Result<Vec<Outcome>> {
        let sets: Vec<FeasibleSet> = if let Some(space) = contender.protocol.space(self.train())? {
            vec![space; rows.len()]
        } else {
            let actions = Actions::new(self.stock.data.schema(), self.stock.data.encoder())?;
            let rows = rows.iter().map(|&row| &self.stock.data.rows()[row]);
            rows.map(|row| actions.for_factual(row)).collect::<Result<_>>()?
        };
        let points = self.stock.data.points();
        let factuals: Vec<Factual> =
            rows.iter().zip(&sets).map(|(&row, set)| Factual::new(points.row(row), set)).collect();
        let mut problem =
            Problem::new(self.base(base), norm, &self.stock.train)?.with_memory(&self.stock.memory);
        let models = if contender.method.needs_models() { self.search_models(base)? } else { None };
        if let Some(models) = &models {
            problem = problem.with_search_models(models);
        }
        if let Some(least) = contender.plausible {
            problem = problem.with_plausible(Plausible::new(self.density()?, least)?)?;
        }
        let prepared =
            contender.method.prepare(&problem, self.stock.seed.derive("search").index(base))?;
        let watch = |tick| match tick {
            Tick::Answered => watch(),
            Tick::Reading => ControlFlow::Continue(()),
        };
        let outcomes = find_all(&problem, &*prepared, &factuals, Budget::default(), watch)?;
        if outcomes.iter().any(|outcome| outcome.reason() == Some(Reason::Cancelled)) {
            return Err(Error::Cancelled("the run was stopped; repeat it to continue".to_owned()));
        }
        Ok(outcomes)
    }
}
