//! Every metric of a counterfactual, for many at once.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::check_points;
use super::cost::{MedianDeviations, changed_columns, changed_features, check_features};
use super::density::Density;
use super::isolation::IsolationForest;
use super::lof::{LocalOutlierFactor, is_inlier};
use super::mahalanobis::Mahalanobis;
use super::neighbours::{NeighbourIndex, mean_distance};
use crate::counterfactual::Norm;
use crate::error::{Error, Result};
use crate::points::Points;
use crate::seed::Seed;

/// The parameters of the metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricParams {
    /// The numbers of neighbours of the local outlier factor, each a number of its own.
    pub outlier_neighbours: Vec<usize>,
    /// The number of neighbours whose mean distance is taken.
    pub distance_neighbours: usize,
    /// The width of the kernel density; Scott's rule if there is none.
    pub bandwidth: Option<f64>,
    /// A column that moves by no more than this has not changed.
    pub tolerance: f64,
    /// The columns of every feature, to count changed features; empty if they are unknown.
    pub features: Vec<Range<usize>>,
}

impl Default for MetricParams {
    fn default() -> Self {
        Self {
            outlier_neighbours: vec![1, 5, 20],
            distance_neighbours: 5,
            bandwidth: None,
            tolerance: 1e-4,
            features: Vec::new(),
        }
    }
}

/// The metrics of one counterfactual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointMetrics {
    /// `||x' - x||_1`
    pub cost_l1: f64,
    /// `||x' - x||_2`
    pub cost_l2: f64,
    /// The cost in median absolute deviations.
    pub cost_mad: f64,
    /// The number of columns that change.
    pub changed_columns: usize,
    /// The number of features that change, if their columns are known.
    pub changed_features: Option<usize>,
    /// [`LocalOutlierFactor`], one for each requested number of neighbours.
    pub outlier_factors: Vec<f64>,
    /// Whether each of these is an inlier's.
    pub inlier: Vec<bool>,
    /// The mean distance to the nearest training points.
    pub neighbour_distance: f64,
    /// [`IsolationForest`]'s score; results of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<f64>,
    /// Mahalanobis' distance.
    pub mahalanobis: f64,
    /// The distance of the point from the subspace in which the training points vary.
    pub outside: f64,
    /// The logarithm of the density.
    pub log_density: f64,
}

/// The metrics, fitted on the training points.
#[derive(Debug)]
pub struct Metrics {
    params: MetricParams,
    index: NeighbourIndex,
    deviations: MedianDeviations,
    forest: IsolationForest,
    mahalanobis: Mahalanobis,
    density: Density,
}

/// The seed of the isolation forest: scores are those of one forest, in every program.
const FOREST: Seed = Seed(0);

impl Metrics {
    /// Fits the metrics on the training points.
    pub fn fit(training: &Points, params: &MetricParams) -> Result<Self> {
        if let Some(&wrong) = params
            .outlier_neighbours
            .iter()
            .chain([&params.distance_neighbours])
            .find(|count| **count == 0)
        {
            return Err(Error::param("neighbours", wrong, "at least 1"));
        }
        if !(params.tolerance >= 0.0 && params.tolerance.is_finite()) {
            let expected = "a number, at least 0";
            return Err(Error::param("tolerance", params.tolerance, expected));
        }
        check_features(&params.features, training.dim())?;
        let outlier = params.outlier_neighbours.iter().copied();
        let most = outlier.fold(params.distance_neighbours, usize::max);
        Ok(Self {
            params: params.clone(),
            index: NeighbourIndex::fit(training, most)?,
            deviations: MedianDeviations::fit(training)?,
            forest: IsolationForest::fit(training, FOREST)?,
            mahalanobis: Mahalanobis::fit(training)?,
            density: match params.bandwidth {
                Some(width) => Density::with_bandwidth(training, width)?,
                None => Density::fit(training)?,
            },
        })
    }

    /// The parameters of the metrics.
    pub fn params(&self) -> &MetricParams {
        &self.params
    }

    /// The metrics of every counterfactual, for the factual at the same place; in their order. They
    /// do not depend on the number of threads.
    pub fn of(&self, factuals: &Points, counterfactuals: &Points) -> Result<Vec<PointMetrics>> {
        let dim = self.index.points().dim();
        check_points(factuals, dim)?;
        check_points(counterfactuals, dim)?;
        if factuals.len() != counterfactuals.len() {
            return Err(Error::Dimension {
                what: "counterfactuals, one for each factual".into(),
                expected: factuals.len(),
                got: counterfactuals.len(),
            });
        }
        let nearest = self.index.nearest(counterfactuals)?;
        let factors = self
            .params
            .outlier_neighbours
            .iter()
            .map(|&k| Ok(LocalOutlierFactor::new(&self.index, k)?.of_nearest(&nearest)))
            .collect::<Result<Vec<Vec<f64>>>>()?;
        let offsets = self.mahalanobis.of(counterfactuals)?;
        let isolation = self.forest.of(counterfactuals)?;
        let densities = self.density.logarithms(counterfactuals)?;
        let near = self.params.distance_neighbours.min(self.index.most());
        (0..counterfactuals.len())
            .into_par_iter()
            .map(|at| {
                let (factual, point) = (factuals.row(at), counterfactuals.row(at));
                let MetricParams { tolerance, features, .. } = &self.params;
                let changed_features = if features.is_empty() {
                    None
                } else {
                    Some(changed_features(factual, point, features, *tolerance)?)
                };
                let outlier_factors: Vec<f64> = factors.iter().map(|of| of[at]).collect();
                Ok(PointMetrics {
                    cost_l1: Norm::L1.distance(factual, point),
                    cost_l2: Norm::L2.distance(factual, point),
                    cost_mad: self.deviations.distance(factual, point)?,
                    changed_columns: changed_columns(factual, point, *tolerance)?,
                    changed_features,
                    inlier: outlier_factors.iter().map(|factor| is_inlier(*factor)).collect(),
                    outlier_factors,
                    neighbour_distance: mean_distance(&nearest[at][..near]),
                    isolation: Some(isolation[at]),
                    mahalanobis: offsets[at].distance,
                    outside: offsets[at].outside,
                    log_density: densities[at],
                })
            })
            .collect()
    }
}
