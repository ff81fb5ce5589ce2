//! A measure of a tree ensemble along features.

use super::formula::Formula;
use super::gauge::Evaluation;
use super::{Gauge, Reading};
use crate::model::routes::{Line, Routes, RoutesScratch, Shift};

impl Gauge<'_> {
    /// Whether the measure is the score of the point.
    pub(crate) fn is_score(&self) -> bool {
        matches!(self.way, Evaluation::Point)
    }

    /// The measure at a point with each choice of each line, from the routes of the gauge's model.
    /// The last digits may differ from those of a reading of the point alone, and values below
    /// `least` are only known to be below it. `None` for a measure
    /// of more than scores.
    pub(crate) fn read_along(
        &self,
        routes: &Routes,
        x: &[f32],
        lines: &[Line<'_>],
        least: f64,
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
                if formula.shortfall(0.0, 0.0).is_some() {
                    let readings =
                        self.shortfalls(&**formula, (routes, scratch), x, (lines, scores), least);
                    return Some(readings);
                }
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

    /// Readings of a formula that every neighbour can only lower. Choices that have fallen below
    /// `least` are not looked at again.
    fn shortfalls(
        &self,
        formula: &dyn Formula,
        (routes, scratch): (&Routes, &mut RoutesScratch),
        x: &[f32],
        (lines, scores): (&[Line<'_>], Vec<f32>),
        least: f64,
    ) -> Vec<Reading> {
        let share = 1.0 / self.neighbourhood.samples() as f64;
        let mut shortfalls = vec![0.0; scores.len()];
        let value = |scores: &[f32], shortfalls: &[f64], choice: usize| {
            f64::from(scores[choice]) - shortfalls[choice] * share
        };
        // The choices of each line that are still of interest, from the first to the last one.
        let mut open: Vec<(usize, Line<'_>)> = Vec::new();
        let mut again = 0;
        for (index, offset) in self.neighbourhood.offsets().rows().enumerate() {
            if index == again {
                open.clear();
                let mut first = 0;
                for line in lines {
                    let own = first..first + line.len();
                    first = own.end;
                    let is_open = |choice: &usize| value(&scores, &shortfalls, *choice) >= least;
                    let from = own.clone().find(is_open);
                    if let Some((from, last)) = from.zip(own.clone().rev().find(is_open)) {
                        open.push((from, line.part(from - own.start..last + 1 - own.start)));
                    }
                }
                again = (2 * index).max(FIRST_LOOK);
            }
            if open.is_empty() {
                break;
            }
            let parts: Vec<Line<'_>> = open.iter().map(|&(_, part)| part).collect();
            routes.scores_along(x, &parts, Shift { factor: 1.0, by: Some(offset) }, scratch);
            let mut of_neighbour = scratch.scores.iter();
            for (from, part) in &open {
                for (choice, &neighbour) in (*from..*from + part.len()).zip(&mut of_neighbour) {
                    let shortfall = formula.shortfall(scores[choice], neighbour);
                    shortfalls[choice] += shortfall.unwrap_or_default();
                }
            }
        }
        let each = scores.iter().enumerate();
        each.map(|(choice, &score)| Reading { score, value: value(&scores, &shortfalls, choice) })
            .collect()
    }
}

/// The neighbours after which choices are looked through for the first time; then after twice as many
/// each time.
const FIRST_LOOK: usize = 8;

/// The scores as the values of the measure.
fn point_readings(scores: &[f32]) -> Vec<Reading> {
    scores.iter().map(|&score| Reading { score, value: f64::from(score) }).collect()
}
