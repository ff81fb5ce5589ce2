//! A measure of a tree ensemble along features.

use super::gauge::Evaluation;
use super::{Gauge, Reading};
use crate::model::routes::{Line, Routes, RoutesScratch, Shift};

impl Gauge<'_> {
    /// Whether the measure is the score of the point.
    pub(crate) fn is_score(&self) -> bool {
        matches!(self.way, Evaluation::Point)
    }

    /// The measure at a point with each choice of each line, from the routes of the gauge's model.
    /// The last digits may differ from those of a reading of the point alone. `None` for a measure
    /// of more than scores.
    pub(crate) fn read_along(
        &self,
        routes: &Routes,
        x: &[f32],
        lines: &[Line<'_>],
        scratch: &mut RoutesScratch,
    ) -> Option<Vec<Reading>> {
        let choices: usize = lines.iter().map(Line::len).sum();
        // A row whose features have no other values, as where all intervals are one number.
        if choices == 0 {
            return Some(Vec::new());
        }
        let mut own = |shift: Shift<'_>| {
            routes.scores_along(x, lines, shift, scratch);
            scratch.scores.clone()
        };
        let readings = match &self.way {
            Evaluation::Point => point_readings(&own(Shift::NONE)),
            &Evaluation::Path { steps } => {
                let mut totals = vec![0.0; choices];
                let mut last = Vec::new();
                for step in 1..=steps {
                    let factor = step as f32 / steps as f32;
                    last = own(Shift { factor, by: None });
                    let pairs = totals.iter_mut().zip(&last);
                    pairs.for_each(|(total, &score)| *total += f64::from(score));
                }
                let each = last.into_iter().zip(totals);
                each.map(|(score, total)| Reading { score, value: total / steps as f64 }).collect()
            }
            Evaluation::Scores(formula) => {
                let scores = own(Shift::NONE);
                let count = self.neighbourhood.samples();
                let mut of_neighbours = vec![0.0; choices * count];
                for (index, offset) in self.neighbourhood.offsets().rows().enumerate() {
                    let shift = Shift { factor: 1.0, by: Some(offset) };
                    routes.scores_along(x, lines, shift, scratch);
                    let column = of_neighbours[index..].iter_mut().step_by(count);
                    column.zip(&scratch.scores).for_each(|(to, &score)| *to = score);
                }
                let mut weights = vec![0.0; count];
                let each = scores.into_iter().zip(of_neighbours.chunks_exact(count));
                each.map(|(score, own)| {
                    let weighed = formula.weigh(&self.neighbourhood, score, own, &mut weights);
                    Reading { score, value: weighed.value }
                })
                .collect()
            }
            Evaluation::Gradients(_) => return None,
        };
        Some(readings)
    }
}

/// The scores as the values of the measure.
fn point_readings(scores: &[f32]) -> Vec<Reading> {
    scores.iter().map(|&score| Reading { score, value: f64::from(score) }).collect()
}
