//! Experiments as data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tyrex::calibrate::{CalibrationMissing, Goal};
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::error::{Error, Result, in_short_lines};
use tyrex::file::{DOCUMENT_BYTES, read_text};
use tyrex::model::TrainParams;
use tyrex::seed::Seed;

use super::contender::{Contender, Entrant};

/// Experiments that are run together and share their models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The seed of all randomness.
    pub seed: Seed,
    /// Whether it is the short run.
    pub quick: bool,
    /// The experiments.
    pub experiments: Vec<Experiment>,
}

/// One table or figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "ExperimentFile", into = "ExperimentFile")]
pub struct Experiment {
    /// Its name: a word, since it is part of file names.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub about: String,
    /// The table of the paper to compare it with.
    pub beside: Option<String>,
    /// The data and the models.
    pub world: World,
    /// The task.
    pub task: Task,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A comparison of methods.
    Comparison(ComparisonTask),
    /// The figure of the two moons.
    Moons(MoonsTask),
    /// Histograms of the stability.
    Histograms(HistogramsTask),
    /// Stated probabilities of certificates and observed validity.
    Certificates(CertificatesTask),
}

/// An experiment as in a file: exactly one of the tasks.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExperimentFile {
    name: String,
    title: String,
    #[serde(default)]
    about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beside: Option<String>,
    world: World,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comparison: Option<ComparisonTask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moons: Option<MoonsTask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    histograms: Option<HistogramsTask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificates: Option<CertificatesTask>,
}

impl TryFrom<ExperimentFile> for Experiment {
    type Error = String;

    fn try_from(file: ExperimentFile) -> std::result::Result<Self, String> {
        let ExperimentFile { name, title, about, beside, world, .. } = file;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(format!("`name` is `{name}`, expected letters, digits and hyphens"));
        }
        let mut tasks = [
            file.comparison.map(Task::Comparison),
            file.moons.map(Task::Moons),
            file.histograms.map(Task::Histograms),
            file.certificates.map(Task::Certificates),
        ]
        .into_iter()
        .flatten();
        let (Some(task), None) = (tasks.next(), tasks.next()) else {
            return Err(
                "expected one table of comparison, moons, histograms or certificates".to_owned()
            );
        };
        Ok(Self { name, title, about, beside, world, task })
    }
}

impl From<Experiment> for ExperimentFile {
    fn from(experiment: Experiment) -> Self {
        let Experiment { name, title, about, beside, world, task } = experiment;
        let (mut comparison, mut moons, mut histograms, mut certificates) =
            (None, None, None, None);
        match task {
            Task::Comparison(task) => comparison = Some(task),
            Task::Moons(task) => moons = Some(task),
            Task::Histograms(task) => histograms = Some(task),
            Task::Certificates(task) => certificates = Some(task),
        }
        Self { name, title, about, beside, world, comparison, moons, histograms, certificates }
    }
}

/// The data and the models of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct World {
    /// The data set.
    pub dataset: String,
    /// Its encoding; by default the authors'.
    #[serde(default = "reference")]
    pub variant: Variant,
    /// Which label is the goal.
    #[serde(default)]
    pub direction: Direction,
    /// How models are trained.
    #[serde(default = "TrainParams::paper")]
    pub training: TrainParams,
    /// Models trained again from new weights; the first of them are bases, too.
    #[serde(default = "fifty")]
    pub reinitialise: usize,
    /// Models trained again without 1 % of the rows.
    #[serde(default = "fifty")]
    pub leave_out: usize,
    /// Models trained like those, for calibration and certificates only.
    #[serde(default)]
    pub calibration: usize,
    /// Models trained like those, for the methods that search over models only.
    #[serde(default, skip_serializing_if = "is_none")]
    pub search: usize,
    /// Models trained like those, which choose the margins of such methods only.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tuning: usize,
    /// Base models: the first, and retrained ones used in its place.
    #[serde(default = "one")]
    pub bases: usize,
    /// Maximum number of factuals for each base: test rows that are rejected, with an unfavourable
    /// label.
    #[serde(default = "two_hundred")]
    pub factuals: usize,
}

fn reference() -> Variant {
    Variant::Reference
}
fn fifty() -> usize {
    50
}
fn one() -> usize {
    1
}
fn two_hundred() -> usize {
    200
}
// The signature that serde requires.
#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_none(models: &usize) -> bool {
    *models == 0
}

impl World {
    /// All models, the first base included.
    pub fn models(&self) -> usize {
        1 + self.reinitialise + self.leave_out + self.calibration + self.search + self.tuning
    }
}

/// A comparison of methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ComparisonTask {
    /// The protocol of the methods' parameters.
    pub protocol: Protocol,
    /// The norm of the cost.
    pub norms: Vec<Norm>,
    /// How thresholds are chosen.
    #[serde(default)]
    pub calibration: CalibrationTask,
    /// The methods.
    #[serde(rename = "entrant")]
    pub entrants: Vec<Entrant>,
}

impl ComparisonTask {
    /// All contenders, in order; calibrated ones without their threshold yet.
    pub fn contenders(&self) -> Result<Vec<Contender>> {
        let mut all = Vec::new();
        let mut seen = BTreeSet::new();
        for entrant in &self.entrants {
            for contender in entrant.contenders(self.protocol)? {
                let label = contender.full_label();
                if !seen.insert(label.clone()) {
                    return Err(Error::param("label", label, "every label once"));
                }
                all.push(contender);
            }
        }
        Ok(all)
    }
}

/// How thresholds are chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CalibrationTask {
    /// The required validity, for the factuals of all bases together.
    pub goal: Goal,
    /// The thresholds to try, the largest first.
    pub taus: Vec<f64>,
    /// Maximum number of factuals for each base.
    pub factuals: usize,
}

impl Default for CalibrationTask {
    fn default() -> Self {
        let taus =
            vec![0.999_999, 0.999_99, 0.9999, 0.999, 0.99, 0.97, 0.95, 0.9, 0.85, 0.8, 0.7, 0.5];
        // A method that finds nothing for some rows must not look better for it.
        let goal = Goal { missing: CalibrationMissing::Invalid, ..Goal::default() };
        Self { goal, taus, factuals: 30 }
    }
}

/// The figure of the two moons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MoonsTask {
    /// Values in a row and in a column of a map.
    pub resolution: usize,
    /// Retrained models to show.
    pub shown: usize,
    /// The width of the stability's neighbourhood.
    pub sigma: f64,
    /// The threshold of the methods that have one.
    pub tau: f64,
    /// The methods that answer one factual.
    pub methods: Vec<String>,
}

/// Histograms of the relaxed stability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HistogramsTask {
    /// Bins.
    pub bins: usize,
    /// The width of the neighbourhood.
    pub sigma: f64,
    /// The protocol of the methods' parameters.
    pub protocol: Protocol,
    /// The methods whose counterfactuals are shown, besides the data.
    pub methods: Vec<String>,
    /// The norm of their cost.
    pub norm: Norm,
}

/// Certificates of counterfactuals, judged by models they have not seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CertificatesTask {
    /// The protocol of the methods' parameters.
    pub protocol: Protocol,
    /// The norm of the cost.
    pub norm: Norm,
    /// Retrained models each certificate is made of.
    pub models: usize,
    /// Bins of stated probability.
    pub bins: usize,
    /// The methods whose counterfactuals are certified.
    #[serde(rename = "entrant")]
    pub entrants: Vec<Entrant>,
}

/// A suite as in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SuiteFile {
    name: String,
    title: String,
    #[serde(default = "zero")]
    seed: Seed,
    /// Files of experiments, beside this one.
    include: Vec<PathBuf>,
}

fn zero() -> Seed {
    Seed(0)
}

impl Suite {
    /// Reads a file: a suite, which names the files of its experiments, or one experiment.
    pub fn read(path: &Path) -> Result<Self> {
        let text = read(path)?;
        let wrong = |problem: String| Error::ParamFile { file: path.to_owned(), problem };
        let table: toml::Table =
            toml::from_str(&text).map_err(|error| wrong(in_short_lines(&error.to_string())))?;
        if !table.contains_key("include") {
            let experiment = experiment(path, &text)?;
            return Self::new(
                experiment.name.clone(),
                experiment.title.clone(),
                Seed(0),
                vec![experiment],
            )
            .map_err(|error| wrong(error.to_string()));
        }
        let file: SuiteFile =
            toml::from_str(&text).map_err(|error| wrong(in_short_lines(&error.to_string())))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let experiments = file
            .include
            .iter()
            .map(|name| {
                let path = folder.join(name);
                experiment(&path, &read(&path)?)
            })
            .collect::<Result<_>>()?;
        Self::new(file.name, file.title, file.seed, experiments)
            .map_err(|error| wrong(error.to_string()))
    }

    /// A suite of these experiments.
    pub fn new(
        name: String,
        title: String,
        seed: Seed,
        experiments: Vec<Experiment>,
    ) -> Result<Self> {
        let mut seen = BTreeSet::new();
        for experiment in &experiments {
            if !seen.insert(&experiment.name) {
                return Err(Error::param("name", &experiment.name, "every experiment once"));
            }
            experiment.check()?;
        }
        Ok(Self { name, title, seed, quick: false, experiments })
    }

    /// The short run: few models and factuals, one base, as a check that everything works.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.quick = true;
        for Experiment { world, task, beside, .. } in &mut self.experiments {
            world.reinitialise = world.reinitialise.min(QUICK_JUDGES);
            world.leave_out = world.leave_out.min(QUICK_JUDGES);
            world.calibration = world.calibration.min(QUICK_CALIBRATORS);
            world.search = world.search.min(QUICK_JUDGES);
            world.tuning = world.tuning.min(QUICK_CALIBRATORS);
            world.factuals = world.factuals.saturating_mul(world.bases).min(QUICK_FACTUALS);
            let is_table = world.bases > 1 && beside.is_some();
            world.bases = 1;
            match task {
                Task::Comparison(task) => {
                    task.calibration.factuals = task.calibration.factuals.min(QUICK_FEW);
                    task.calibration.taus = QUICK_TAUS.to_vec();
                }
                Task::Certificates(task) => task.models = task.models.min(QUICK_CALIBRATORS),
                Task::Moons(task) => task.shown = task.shown.min(QUICK_JUDGES),
                Task::Histograms(_) => {}
            }
            // Experiments without a table in the paper use fewer.
            if !is_table {
                world.factuals = world.factuals.min(QUICK_FEW);
                if let Task::Comparison(task) = task {
                    task.norms.truncate(1);
                }
            }
        }
        self
    }
}

/// The short run uses ten models, four of each evaluating kind and two that calibrate, six more for
/// searches over models, and few thresholds.
const QUICK_JUDGES: usize = 4;
const QUICK_CALIBRATORS: usize = 2;
const QUICK_FACTUALS: usize = 100;
const QUICK_FEW: usize = 4;
const QUICK_TAUS: [f64; 4] = [0.999, 0.95, 0.8, 0.5];

fn read(path: &Path) -> Result<String> {
    read_text(path, DOCUMENT_BYTES)
}

fn experiment(path: &Path, text: &str) -> Result<Experiment> {
    toml::from_str(text).map_err(|error| Error::ParamFile {
        file: path.to_owned(),
        problem: in_short_lines(&error.to_string()),
    })
}
