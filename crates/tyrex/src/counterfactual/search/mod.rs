//! The four searches, each generic over the field and the threshold.

pub(crate) mod ascent;
pub(crate) mod cells;
pub(crate) mod levers;
pub(crate) mod min_cost;
pub(crate) mod neighbours;
pub(crate) mod settle;

use super::field::{Field, Forecast, Plane};
use crate::data::Row;
use crate::error::Result;
use crate::measure::Reading;

/// A point of a search, with the values there.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) point: Vec<f32>,
    pub(crate) reading: Reading,
    /// Its row, once it has settled.
    pub(crate) row: Option<Row>,
}

impl Candidate {
    /// A point of no particular row.
    pub(crate) fn new(point: Vec<f32>, reading: Reading) -> Self {
        Self { point, reading, row: None }
    }
}

/// The condition for a point: `m >= 0.5`, and the measure at its threshold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Test {
    pub(crate) threshold: f64,
}

impl Test {
    /// Every point that the model accepts, for fields that are nowhere negative.
    pub(crate) const ACCEPTED: Self = Self { threshold: 0.0 };

    pub(crate) fn passes(self, reading: Reading) -> bool {
        self.foresees(reading.into())
    }

    /// Whether a point with this forecast would pass.
    pub(crate) fn foresees(self, forecast: Forecast) -> bool {
        forecast.accepts && forecast.value >= self.threshold
    }

    /// The next target: the point passed this test, but has only `value` on independent draws,
    /// where it needs `tau`.
    ///
    /// No measure exceeds 1, so the distance to 1 is reduced by the factor by which it was too
    /// large, with a small margin.
    pub(crate) fn raised(self, tau: f64, value: f64) -> Self {
        let too_large = ((1.0 - value) / (1.0 - tau)).max(1.0);
        Self { threshold: 1.0 - (1.0 - self.threshold) / (1.005 * too_large.powf(1.2)) }
    }
}

/// A candidate with the gradient there.
pub(crate) struct Slope {
    pub(crate) at: Candidate,
    pub(crate) gradient: Vec<f32>,
    /// Its two conditions, if the field has two.
    pub(crate) planes: Option<[Plane; 2]>,
}

impl Slope {
    /// Evaluates a point; `None` if the budget is spent.
    pub(crate) fn read(
        field: &mut dyn Field,
        point: Vec<f32>,
        meter: &mut super::Meter,
    ) -> Result<Option<Self>> {
        let mut gradient = vec![0.0; point.len()];
        let reading = meter.climb(field, &point, &mut gradient)?;
        let planes = field.planes();
        Ok(reading.map(|reading| Self { at: Candidate::new(point, reading), gradient, planes }))
    }

    /// The Euclidean length of the gradient; 0 if it is not finite, since it then gives no
    /// direction.
    pub(crate) fn steepness(&self) -> f64 {
        let square: f64 = self.gradient.iter().map(|&g| f64::from(g).powi(2)).sum();
        if square.is_finite() { square.sqrt() } else { 0.0 }
    }
}
