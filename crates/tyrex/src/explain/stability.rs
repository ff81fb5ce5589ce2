//! The stability of the model's score, row by row.

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::table::table;
use super::{Applicant, Explainer, FORMAT_VERSION};
use crate::data::Table;
use crate::error::{Error, Result};
use crate::measure::{
    DetachedGauge, Gamma, Gauge, GaugeScratch, NeighbourReadings, Neighbourhood, Sampling,
    Stability,
};
use crate::model::Model;
use crate::seed::Seed;

/// The number of neighbours scored between two checks for cancellation.
const AT_ONCE: usize = 40_000;

/// The parameters of the measures.
///
/// | name | default | meaning | range |
/// |---|---|---|---|
/// | `samples` | 1000 | neighbours of each row | at least 1 |
/// | `sigma` | 0.1 | their standard deviation, in encoded columns | positive |
/// | `sampling` | Monte Carlo | how they are drawn | |
/// | `gamma` | sampled slopes | the Lipschitz constant in `R` | |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// The seed of the draws.
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

impl StabilityTerms {
    /// Checks what can be checked before there is a model.
    pub fn check(&self) -> Result<()> {
        Neighbourhood::check(self.samples, self.sigma)
    }
}

/// The measures of one row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

/// Neighbours drawn once and prepared for one model, to measure any rows. It can be kept and shared
/// between threads.
#[derive(Debug, Clone)]
pub struct StabilityGauge {
    model: Arc<dyn Model>,
    terms: StabilityTerms,
    gauge: DetachedGauge,
}

impl StabilityGauge {
    /// The parameters.
    #[must_use]
    pub fn terms(&self) -> &StabilityTerms {
        &self.terms
    }

    /// The measures of rows, in their order. They depend neither on the number of threads nor on
    /// the other rows.
    ///
    /// `watch` is called with the number of rows done, several at a time. A `Break` is an error.
    pub fn read(
        &self,
        applicants: &[Applicant],
        watch: impl Fn() -> ControlFlow<()>,
    ) -> Result<Vec<RowStability>> {
        let gauge = self.gauge.attached(&*self.model)?;
        let distance = self.gauge.neighbourhood().mean_distance();
        let read = |room: &mut GaugeScratch, applicant: &Applicant| {
            let NeighbourReadings { score, mean, relaxed_stability, value } =
                gauge.read_all_in(room, &applicant.point);
            RowStability {
                row: applicant.row,
                score,
                mean,
                relaxed_stability,
                stability: value,
                // R = mean - gamma * distance
                gamma: (mean - value) / distance,
            }
        };
        let mut measured = Vec::with_capacity(applicants.len());
        for some in applicants.chunks((AT_ONCE / self.terms.samples.max(1)).clamp(1, 64)) {
            match some {
                // One row is measured on the calling thread.
                [only] => measured.push(read(&mut gauge.room(), only)),
                some => measured.par_extend(some.par_iter().map_init(|| gauge.room(), read)),
            }
            if some.iter().any(|_| watch().is_break()) {
                return Err(Error::Cancelled("not all rows were measured".to_owned()));
            }
        }
        Ok(measured)
    }
}

impl Explainer {
    /// Draws neighbours and prepares them for the model.
    pub fn stability_gauge(&self, terms: &StabilityTerms) -> Result<StabilityGauge> {
        let StabilityTerms { sampling, samples, sigma, gamma, seed } = *terms;
        let model = self.model();
        let cloud = Neighbourhood::draw(sampling, model.dim(), samples, sigma, seed)?;
        let gauge = Gauge::new(Stability { gamma }, model, &cloud)?.detached();
        Ok(StabilityGauge { model: Arc::clone(&self.model), terms: *terms, gauge })
    }

    /// The measures of rows, with a temporary [`StabilityGauge`].
    pub fn stability(
        &self,
        applicants: &[Applicant],
        terms: &StabilityTerms,
        watch: impl Fn() -> ControlFlow<()>,
    ) -> Result<Vec<RowStability>> {
        self.stability_gauge(terms)?.read(applicants, watch)
    }

    /// The measures as a table to write: a column for each, then the provenance.
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
