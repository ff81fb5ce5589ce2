//! The performance of a model on a part of the rows.

use serde::Serialize;

use super::Explainer;
use crate::metric::{auc, calibration_error};
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

/// The performance of a model on a part of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Performance {
    /// The part.
    pub part: Part,
    /// The number of rows.
    pub rows: usize,
    /// The number of rows that the model rejects.
    pub rejected: usize,
    /// The accuracy on the rows with labels; `None` if there are none.
    pub accuracy: Option<f64>,
    /// The mean cross-entropy, `-ln m(x)` or `-ln(1 - m(x))`, of the same rows.
    pub loss: Option<f64>,
    /// The area under the ROC curve; ties count half. `None` if a class has no rows.
    pub auc: Option<f64>,
    /// The expected calibration error over ten bins of equal mass.
    pub calibration_error: Option<f64>,
}

impl Explainer {
    /// The training and the test rows separately; all rows together if there are no test rows.
    #[must_use]
    pub fn performances(&self) -> Vec<Performance> {
        let parts: &[Part] = match self.reference().applicants() {
            Part::Test => &[Part::Train, Part::Test],
            _ => &[Part::All],
        };
        parts.iter().map(|&part| self.performance(part)).collect()
    }

    /// The performance of a model on a part of the rows.
    #[must_use]
    pub fn performance(&self, part: Part) -> Performance {
        let mut tally = PerformanceTally::default();
        for row in self.reference().part(part) {
            tally.add(self.scores()[row], self.reference().is_favourable(row));
        }
        tally.performance(part)
    }
}

/// Adds up a [`Performance`] row by row. It keeps the scores of rows with labels, four bytes each.
#[derive(Debug, Clone, Default)]
pub struct PerformanceTally {
    rows: usize,
    rejected: usize,
    favourable: Vec<f32>,
    unfavourable: Vec<f32>,
    right: f64,
    loss: f64,
    /// The scores of 0 or 1, up to [`CLAMP`].
    saturated: usize,
    /// The first score, if all others are the same.
    constant: Option<f32>,
}

impl PerformanceTally {
    /// Adds a row: its score, and whether its label is favourable, if it has one.
    pub fn add(&mut self, score: f32, favourable: Option<bool>) {
        self.constant = Some(score).filter(|_| self.rows == 0 || self.constant == Some(score));
        self.rows += 1;
        let open = CLAMP..=1.0 - CLAMP;
        self.saturated += usize::from(!open.contains(&f64::from(score)));
        self.rejected += usize::from(score < THRESHOLD);
        let Some(label) = favourable else { return };
        if label { &mut self.favourable } else { &mut self.unfavourable }.push(score);
        self.right += f64::from(u8::from((score >= THRESHOLD) == label));
        let score = f64::from(score).clamp(CLAMP, 1.0 - CLAMP);
        self.loss += -libm::log(if label { score } else { 1.0 - score });
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The scores of the favourable and of the unfavourable rows.
    pub(super) fn labelled(&self) -> (&[f32], &[f32]) {
        (&self.favourable, &self.unfavourable)
    }

    /// The number of scores that are 0 or 1.
    pub(super) fn saturated(&self) -> usize {
        self.saturated
    }

    /// The score of all rows, if it is the same.
    pub(super) fn constant(&self) -> Option<f32> {
        self.constant
    }

    /// The performance on the rows so far.
    #[must_use]
    pub fn performance(&self, part: Part) -> Performance {
        let labelled = self.favourable.len() + self.unfavourable.len();
        let mean = |sum: f64| (labelled > 0).then(|| sum / labelled as f64);
        Performance {
            part,
            rows: self.rows,
            rejected: self.rejected,
            accuracy: mean(self.right),
            loss: mean(self.loss),
            auc: auc(&self.favourable, &self.unfavourable),
            calibration_error: calibration_error(&self.favourable, &self.unfavourable),
        }
    }
}
