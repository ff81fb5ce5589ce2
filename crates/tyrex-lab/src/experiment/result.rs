//! The results of a suite: plain values, the same in memory and in files.

use serde::{Deserialize, Serialize};
use tyrex::calibrate::Calibration;
use tyrex::counterfactual::{Norm, Reason};
use tyrex::metric::{PointMetrics, Summary};
use tyrex::seed::Seed;

use super::contender::Contender;
use super::spec::Experiment;

/// The family of models trained again from new weights.
pub(super) const REINITIALISE: &str = "reinitialise";
/// The family of models trained again without some rows.
pub(super) const LEAVE_OUT: &str = "leave-out";

/// The results of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The layout of the file.
    pub format_version: u32,
    /// The version of this library.
    pub version: String,
    /// The suite's name.
    pub suite: String,
    /// Its title.
    pub title: String,
    /// The seed of all randomness.
    pub seed: Seed,
    /// Whether it was the short run.
    pub quick: bool,
    /// The result of each experiment, in the order of the suite.
    pub experiments: Vec<Shown>,
}

/// The result of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// The experiment.
    pub experiment: Experiment,
    /// The outcome.
    pub finding: Finding,
}

/// The outcome of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Finding {
    /// A comparison of methods.
    Comparison(Comparison),
    /// Maps of a model, its retrained versions and the stability.
    Moons(Moons),
    /// The distribution of a measure.
    Histograms(Histograms),
    /// Stated probabilities of certificates and observed validity.
    Certificates(Certificates),
}

/// Methods compared on one data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The data.
    pub data: DataSummary,
    /// How far the retrained models moved from the first base.
    pub changes: Vec<ChangeSummary>,
    /// How the calibrated thresholds were chosen.
    pub calibrations: Vec<Calibrated>,
    /// One contender, norm and base each.
    pub cells: Vec<Cell>,
}

/// The data of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataSummary {
    /// The data set.
    pub dataset: String,
    /// Its encoded columns.
    pub columns: usize,
    /// Rows that train.
    pub train: usize,
    /// Rows that test.
    pub test: usize,
    /// The base models.
    pub bases: Vec<BaseSummary>,
}

/// A base model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaseSummary {
    /// Its fingerprint.
    pub model: String,
    /// Its accuracy on the test rows.
    pub accuracy: f64,
    /// The test rows it rejects, whose label is not favourable either.
    pub rejected: usize,
    /// The number of explained ones.
    pub factuals: usize,
}

/// How far retrained models moved from the first base, on the test rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeSummary {
    /// The change.
    pub change: String,
    /// The retrained models.
    pub models: usize,
    /// `mean |M(x) - m(x)|`: the left side of the paper's Lemma 1.
    pub mean_change: f64,
    /// `sqrt(nu)`, with `nu` the largest variance of any point: the right side.
    pub lemma_bound: f64,
    /// `mean |E M(x) - m(x)|`, which the paper takes to be zero.
    pub bias: f64,
    /// The share of changed decisions.
    pub flipped: f64,
}

/// How a threshold was chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The contender's label.
    pub contender: String,
    /// The norm.
    pub norm: Norm,
    /// The threshold that is used: the one that was chosen, or, if none could be, the smallest of
    /// those tried whose p-value is at most one half, or else the one with the highest validity.
    pub tau: f64,
    /// The choice, over the factuals of all bases together.
    pub calibration: Calibration,
}

/// One contender on one base with one norm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The norm.
    pub norm: Norm,
    /// The base model, from 0.
    pub base: usize,
    /// The method with all its parameters.
    pub contender: Contender,
    /// The result for each factual.
    pub answers: Vec<Answered>,
    /// Validity under each family of retrained models.
    pub families: Vec<Family>,
}

impl Cell {
    /// The validities of a family with the number of each model, which is the same for every base:
    /// those from new weights are counted from the first base on, and a base is not evaluated on
    /// itself.
    pub fn judged<'a>(&self, family: &'a Family) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let left_out = (family.change == REINITIALISE).then_some(self.base);
        family.validities.iter().enumerate().map(move |(place, &validity)| {
            (place + usize::from(left_out.is_some_and(|base| place >= base)), validity)
        })
    }
}

/// The result for one factual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The row of the table.
    pub row: usize,
    /// Why nothing was found, if nothing was.
    pub reason: Option<Reason>,
    /// The counterfactual.
    pub found: Option<Found>,
}

/// A counterfactual in numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// `m(x')`
    pub score: f32,
    /// The reading of the method's test there.
    pub value: f64,
    /// Cost, sparsity, plausibility.
    #[serde(flatten)]
    pub metrics: PointMetrics,
    /// Whether it is an inlier among the favourable training points, by the local outlier factor with
    /// [`FAVOURABLE_NEIGHBOURS`]. Results of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_favourable_inlier: Option<bool>,
    /// The share of retrained models that accept it, for each family.
    pub survival: Vec<f64>,
}

/// The neighbours of the local outlier factor among favourable points.
pub const FAVOURABLE_NEIGHBOURS: usize = 20;

/// The validity of a cell under one family of retrained models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// The change.
    pub change: String,
    /// For each model, the share of *all* factuals whose counterfactual it accepts.
    pub validities: Vec<f64>,
    /// The share of counterfactuals on which they agree with the base: what the authors' code
    /// calls validity. None if nothing was found.
    pub agreement: Option<f64>,
}

/// The time of a cell; stored separately, since it differs between runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// The experiment.
    pub experiment: String,
    /// The timed part.
    pub what: String,
    /// The norm, where there is one.
    pub norm: Option<Norm>,
    /// The base, where there is one.
    pub base: Option<usize>,
    /// Seconds by the clock.
    pub seconds: f64,
    /// Seconds one thread spent on one factual, where factuals were searched.
    pub per_factual: Option<Summary>,
}

/// A line of a table: one contender with one norm, over all bases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The norm.
    pub norm: Norm,
    /// The method with all its parameters.
    pub contender: Contender,
    /// The factuals, of all bases together.
    pub factuals: usize,
    /// The share with a counterfactual, which is also the validity under the base itself.
    pub coverage: Summary,
    /// The cost by the line's norm. This interval and those below are over factuals: the results of
    /// one factual with several bases are not independent.
    pub cost: Option<Summary>,
    /// The cost by each norm.
    pub cost_l1: Option<Summary>,
    /// The cost by each norm.
    pub cost_l2: Option<Summary>,
    /// The cost in median absolute deviations.
    pub cost_mad: Option<Summary>,
    /// Encoded columns that change.
    pub changed: Option<Summary>,
    /// The outlier factor itself, for each number of neighbours.
    pub outlier_factor: Vec<(usize, Summary)>,
    /// The mean distance to the nearest training points.
    pub neighbour_distance: Option<Summary>,
    /// The isolation forest's score.
    pub isolation: Option<Summary>,
    /// The Mahalanobis distance to the training points.
    pub mahalanobis: Option<Summary>,
    /// The logarithm of the density of the training points.
    pub log_density: Option<Summary>,
    /// The mean of +1 for inliers and -1 for outliers, for each number of neighbours.
    pub lof: Vec<(usize, Summary)>,
    /// The share of inliers among the favourable training points.
    pub favourable_inliers: Option<Summary>,
    /// Validity under each family: over its models, for all bases together. The interval is for
    /// these bases, and counts the results of one model with several bases as one observation.
    pub validity: Vec<(String, Summary)>,
    /// The mean over the bases of the validity as in the authors' code.
    pub agreement: Vec<(String, f64)>,
    /// For each base: mean cost, and validity under each family.
    pub bases: Vec<BaseLine>,
}

/// A line for one base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaseLine {
    /// The base.
    pub base: usize,
    /// The mean cost by the line's norm.
    pub cost: Option<f64>,
    /// The share with a counterfactual.
    pub coverage: f64,
    /// The mean validity under each family.
    pub validity: Vec<f64>,
}

/// The figure of the two moons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moons {
    /// The bounds of the maps: `[left, right, bottom, top]`.
    pub bounds: [f64; 4],
    /// Values per row of a map.
    pub width: usize,
    /// Rows of a map; the first is at the bottom.
    pub height: usize,
    /// The maps: base model, retrained models, stability.
    pub maps: Vec<Map>,
    /// The data: both coordinates, and whether the label is favourable.
    pub points: Vec<(f32, f32, bool)>,
    /// One factual and the answers of methods to it.
    pub answers: Vec<Placed>,
}

/// A map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Map {
    /// Its title.
    pub title: String,
    /// The values, row by row.
    pub values: Vec<f32>,
}

/// A point on the maps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The method, or `factual`.
    pub label: String,
    /// Its coordinates.
    pub at: (f32, f32),
    /// The stability there.
    pub stability: f64,
    /// The share of the retrained models that accept it.
    pub survival: f64,
}

/// Histograms of a measure over different points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histograms {
    /// The edges of the bins, one more than there are bins.
    pub edges: Vec<f64>,
    /// The histograms.
    pub histograms: Vec<Histogram>,
}

/// One histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// The points.
    pub title: String,
    /// The count of each bin.
    pub counts: Vec<usize>,
    /// Of all values.
    pub summary: Option<Summary>,
}

/// Stated probabilities of certificates, beside the behaviour of unseen models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificates {
    /// The data set.
    pub dataset: String,
    /// The retrained models a certificate is made of.
    pub models: usize,
    /// The models it is evaluated on.
    pub judges: usize,
    /// Tier by tier.
    pub tiers: Vec<StatedTier>,
}

/// One tier of many certificates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatedTier {
    /// The tier.
    pub tier: String,
    /// Certificates in which it is certified, empirical, vacuous.
    pub verdicts: [usize; 3],
    /// The bins of stated probability that are not empty.
    pub bins: Vec<StatedBin>,
}

/// The certificates that state about the same probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatedBin {
    /// The mean probability stated.
    pub stated: f64,
    /// Certificates.
    pub certificates: usize,
    /// The share of judging models under which the point is valid, over the bin: its mean, and
    /// a 95 % interval over the models.
    pub observed: Summary,
}
