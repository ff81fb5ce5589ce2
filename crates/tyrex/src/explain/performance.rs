//! How well a model does on a part of the rows.

use serde::Serialize;

use super::Explainer;
use crate::model::THRESHOLD;

/// Scores are kept this far from 0 and 1 before their logarithm is taken, as Keras does.
const CLAMP: f64 = 1e-7;

/// A part of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The training rows.
    Train,
    /// The test rows.
    Test,
    /// All rows that were kept.
    All,
}

/// What the model makes of a part of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Performance {
    /// Which rows.
    pub part: Part,
    /// How many there are.
    pub rows: usize,
    /// How many the model rejects.
    pub rejected: usize,
    /// The part of the rows with labels on the right side of 0.5; `None` without any.
    pub accuracy: Option<f64>,
    /// The mean cross-entropy, `-ln m(x)` or `-ln(1 - m(x))`, of the same rows.
    pub loss: Option<f64>,
}

impl Explainer {
    /// Training and test rows apart; all rows together if there are no test rows.
    #[must_use]
    pub fn performances(&self) -> Vec<Performance> {
        let parts: &[Part] = match self.data().applicants() {
            Part::Test => &[Part::Train, Part::Test],
            _ => &[Part::All],
        };
        parts.iter().map(|&part| self.performance(part)).collect()
    }

    /// What the model makes of a part of the rows.
    #[must_use]
    pub fn performance(&self, part: Part) -> Performance {
        let rows = self.data().part(part);
        let scores = self.scores();
        let judged: Vec<(f32, bool)> = rows
            .iter()
            .filter_map(|&row| self.data().is_favourable(row).map(|label| (scores[row], label)))
            .collect();
        let mean = |per_row: &dyn Fn(f32, bool) -> f64| {
            let sum: f64 = judged.iter().map(|&(score, label)| per_row(score, label)).sum();
            (!judged.is_empty()).then(|| sum / judged.len() as f64)
        };
        let right = |score: f32, label: bool| f64::from(u8::from((score >= THRESHOLD) == label));
        let loss = |score: f32, label: bool| {
            let score = f64::from(score).clamp(CLAMP, 1.0 - CLAMP);
            -libm::log(if label { score } else { 1.0 - score })
        };
        Performance {
            part,
            rows: rows.len(),
            rejected: rows.iter().filter(|&&row| scores[row] < THRESHOLD).count(),
            accuracy: mean(&right),
            loss: mean(&loss),
        }
    }
}
