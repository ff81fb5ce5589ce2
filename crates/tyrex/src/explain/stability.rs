//! The stability of the model's score, row by row.

use std::ops::ControlFlow;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::table::table;
use super::{Applicant, Explainer, FORMAT_VERSION};
use crate::data::{Cell, Content, Table};
use crate::error::{Error, Result};
use crate::measure::{
    DetachedGauge, Gamma, Gauge, GaugeScratch, NeighbourReadings, Neighbourhood, Sampling,
    Stability,
};
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
    explainer: Explainer,
    terms: StabilityTerms,
    gauge: DetachedGauge,
}

impl StabilityGauge {
    /// The parameters.
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
        let gauge = self.gauge.attached(self.explainer.model())?;
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

    /// The measures as a table to write: a column for each, then the provenance.
    pub fn table(&self, rows: &[RowStability]) -> Result<Table> {
        let lines = self.lines(rows).into_iter();
        let text = |line: [Cell<'_>; COLUMNS.len()]| line.iter().map(Cell::to_string).collect();
        table("stability", &COLUMNS.map(|(name, _)| name), lines.map(text))
    }

    /// The columns of [`table`](Self::table), and the types of their cells.
    pub fn columns() -> [(&'static str, Content); COLUMNS.len()] {
        COLUMNS
    }

    /// The lines of [`table`](Self::table), with typed cells.
    pub fn lines(&self, rows: &[RowStability]) -> Vec<[Cell<'static>; COLUMNS.len()]> {
        let StabilityTerms { samples, sigma, seed, .. } = self.terms;
        let model = self.explainer.fingerprint().to_string();
        let line = |row: &RowStability| {
            [
                Cell::Integer(row.row as i64),
                Cell::single(row.score),
                Cell::Real(row.mean),
                Cell::Real(row.relaxed_stability),
                Cell::Real(row.stability),
                Cell::Real(row.gamma),
                Cell::Integer(samples as i64),
                Cell::Real(sigma),
                Cell::text(model.clone()),
                // It may be too large for a signed number.
                Cell::text(seed.0.to_string()),
                Cell::Integer(i64::from(FORMAT_VERSION)),
            ]
        };
        rows.iter().map(line).collect()
    }
}

/// The columns of measures, and the types of their cells.
const COLUMNS: [(&str, Content); 11] = [
    ("row", Content::Integer),
    ("score", Content::Real),
    ("mean", Content::Real),
    ("relaxed_stability", Content::Real),
    ("stability", Content::Real),
    ("gamma", Content::Real),
    ("samples", Content::Integer),
    ("sigma", Content::Real),
    ("model", Content::Text),
    ("seed", Content::Real),
    ("format_version", Content::Integer),
];

impl Explainer {
    /// Draws neighbours and prepares them for the model.
    pub fn stability(&self, terms: &StabilityTerms) -> Result<StabilityGauge> {
        let StabilityTerms { sampling, samples, sigma, gamma, seed } = *terms;
        let model = self.model();
        let cloud = Neighbourhood::draw(sampling, model.dim(), samples, sigma, seed)?;
        let gauge = Gauge::new(Stability { gamma }, model, &cloud)?.detached();
        Ok(StabilityGauge { explainer: self.clone(), terms: *terms, gauge })
    }
}
