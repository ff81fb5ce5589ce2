//! How stable the model's answer is, row by row.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::table::table;
use super::{Applicant, Explainer, FORMAT_VERSION};
use crate::data::Table;
use crate::error::{Error, Result};
use crate::measure::{Gamma, Gauge, Measure, Neighbourhood, Sampling};
use crate::points::Points;
use crate::seed::Seed;

/// The neighbours that are scored between two looks at whether to go on.
const AT_ONCE: usize = 40_000;

/// What is asked of the measures.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `samples` | 1000 | neighbours of each row | at least 1 |
/// | `sigma` | 0.1 | how far they lie, in encoded columns | positive |
/// | `sampling` | Monte Carlo | how they are drawn | |
/// | `gamma` | sampled slopes | the Lipschitz constant in `R` | |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StabilityTerms {
    /// How neighbours are drawn.
    pub sampling: Sampling,
    /// `k`, the number of neighbours.
    pub samples: usize,
    /// `sigma`, their standard deviation in encoded columns.
    pub sigma: f64,
    /// The Lipschitz constant in `R`.
    pub gamma: Gamma,
    /// Where they are drawn from.
    pub seed: Seed,
}

impl Default for StabilityTerms {
    fn default() -> Self {
        Self {
            sampling: Sampling::MonteCarlo,
            samples: 1000,
            sigma: 0.1,
            gamma: Gamma::SampledSlopes,
            seed: Seed(0),
        }
    }
}

/// What the measures say of one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RowStability {
    /// The row in the table, counted from 0 without the header.
    pub row: usize,
    /// `m(x)`
    pub score: f32,
    /// The mean score of the neighbours.
    pub mean: f64,
    /// `R^`
    pub relaxed_stability: f64,
    /// `R`
    pub stability: f64,
    /// `gamma`, the Lipschitz constant in `R`.
    pub gamma: f64,
}

impl Explainer {
    /// The measures of rows, in their order; threads change nothing.
    ///
    /// `watch` hears of every row, some at a time. After a `Break` there is no answer.
    pub fn stability(
        &self,
        applicants: &[Applicant],
        terms: &StabilityTerms,
        watch: impl Fn() -> ControlFlow<()>,
    ) -> Result<Vec<RowStability>> {
        let StabilityTerms { sampling, samples, sigma, gamma, seed } = *terms;
        let model = self.model();
        let cloud = Neighbourhood::draw(sampling, model.dim(), samples, sigma, seed)?;
        let gauges = [Measure::Mean, Measure::RelaxedStability, Measure::Stability { gamma }];
        let gauges = gauges.map(|measure| Gauge::new(measure, model, &cloud));
        let [mean, relaxed, stable] = gauges;
        let (mean, relaxed, stable) = (mean?, relaxed?, stable?);
        let distance = cloud.mean_distance();
        let mut measured = Vec::with_capacity(applicants.len());
        for some in applicants.chunks((AT_ONCE / samples.max(1)).clamp(1, 64)) {
            let mut points = Points::new(model.dim());
            for applicant in some {
                points.push(&applicant.point);
            }
            let readings = mean.read(&points).into_iter().zip(relaxed.read(&points));
            let readings = readings.zip(stable.read(&points));
            for (applicant, ((mean, relaxed), stable)) in some.iter().zip(readings) {
                measured.push(RowStability {
                    row: applicant.row,
                    score: mean.score,
                    mean: mean.value,
                    relaxed_stability: relaxed.value,
                    stability: stable.value,
                    // R = mean - gamma * distance
                    gamma: (mean.value - stable.value) / distance,
                });
                if watch().is_break() {
                    return Err(Error::Cancelled("not all rows were measured".to_owned()));
                }
            }
        }
        Ok(measured)
    }

    /// The measures as a table to write: a column for each, then what they rest on.
    pub fn stability_table(&self, terms: &StabilityTerms, rows: &[RowStability]) -> Result<Table> {
        let names = [
            "row",
            "score",
            "mean",
            "relaxed_stability",
            "stability",
            "gamma",
            "samples",
            "sigma",
            "model",
            "seed",
            "format_version",
        ];
        let model = self.fingerprint().to_string();
        let line = |row: &RowStability| {
            vec![
                row.row.to_string(),
                row.score.to_string(),
                row.mean.to_string(),
                row.relaxed_stability.to_string(),
                row.stability.to_string(),
                row.gamma.to_string(),
                terms.samples.to_string(),
                terms.sigma.to_string(),
                model.clone(),
                terms.seed.0.to_string(),
                FORMAT_VERSION.to_string(),
            ]
        };
        table("stability", &names, rows.iter().map(line))
    }
}
