//! The effect of the choices of a line on `ln p`, without reading the density at each.
//!
//! With the pull `P (y - mu)` of a component at a point, and `d` the change of the coordinates by a
//! choice, its value changes by `-d . pull - d^T P d / 2` for the numbers and by `d_k ln theta_k` for
//! the levels. A choice changes one number or the levels of one group, so that takes `O(1)`.

use super::component::Reading;
use super::coordinates::Coordinates;
use super::mixture::{Mixture, log_sum_exp};
use crate::model::routes::Line;

/// The changes by the choices of a line.
pub(super) struct Effect {
    components: usize,
    /// The change of every component's value, choice by choice.
    values: Vec<f64>,
    /// The numbers that change.
    numbers: Vec<usize>,
    /// Their changes, choice by choice.
    moved: Vec<f64>,
}

impl Effect {
    pub(super) fn of(
        mixture: &Mixture,
        coordinates: &Coordinates,
        readings: &[Reading],
        x: &[f32],
        line: Line<'_>,
    ) -> Self {
        let columns = line.start..line.start + line.width;
        let affected = coordinates.of_columns(&columns);
        let (numbers, levels): (Vec<_>, Vec<_>) =
            affected.into_iter().partition(|(place, _)| *place < coordinates.numbers());
        let components = mixture.components.len();
        let mut own = Self {
            components,
            values: Vec::with_capacity(line.len() * components),
            numbers: numbers.iter().map(|(place, _)| *place).collect(),
            moved: Vec::with_capacity(line.len() * numbers.len()),
        };
        let precisions: Vec<Vec<f64>> = mixture
            .components
            .iter()
            .map(|component| {
                let pairs =
                    numbers.iter().flat_map(|(i, _)| numbers.iter().map(move |(j, _)| (i, j)));
                pairs.map(|(&i, &j)| component.precision(i, j)).collect()
            })
            .collect();
        for choice in line.values.chunks_exact(line.width) {
            let change = |factors: &[f64]| {
                let each = factors.iter().zip(choice).zip(&x[columns.clone()]);
                each.map(|((f, &to), &from)| f * (f64::from(to) - f64::from(from))).sum::<f64>()
            };
            let start = own.moved.len();
            own.moved.extend(numbers.iter().map(|(_, factors)| change(factors)));
            let moved = &own.moved[start..];
            let levels: Vec<(usize, f64)> = levels
                .iter()
                .map(|(place, factors)| (place - coordinates.numbers(), change(factors)))
                .collect();
            for ((component, reading), precision) in
                mixture.components.iter().zip(readings).zip(&precisions)
            {
                let linear: f64 =
                    own.numbers.iter().zip(moved).map(|(&j, d)| d * reading.pull[j]).sum();
                let curved: f64 = precision
                    .chunks_exact(moved.len().max(1))
                    .zip(moved)
                    .map(|(row, a)| a * row.iter().zip(moved).map(|(p, b)| p * b).sum::<f64>())
                    .sum();
                let of_levels: f64 =
                    levels.iter().map(|&(level, d)| d * component.log_levels[level]).sum();
                own.values.push(of_levels - linear - 0.5 * curved);
            }
        }
        own
    }

    fn of_choice(&self, choice: usize) -> &[f64] {
        &self.values[choice * self.components..(choice + 1) * self.components]
    }

    fn moved(&self, choice: usize) -> &[f64] {
        let width = self.numbers.len();
        &self.moved[choice * width..(choice + 1) * width]
    }

    /// `ln p` with a choice.
    pub(super) fn log_density(&self, readings: &[Reading], choice: usize) -> f64 {
        let each = readings.iter().zip(self.of_choice(choice));
        let values: Vec<f64> = each.map(|(reading, change)| reading.value + change).collect();
        log_sum_exp(&values)
    }

    /// For every component the entries of the precision between the numbers of two lines.
    pub(super) fn common(&self, other: &Self, mixture: &Mixture) -> Vec<Vec<f64>> {
        let of = |component: &super::component::Component| {
            let own = self.numbers.iter();
            let pairs = own.flat_map(|&i| other.numbers.iter().map(move |&j| (i, j)));
            pairs.map(|(i, j)| component.precision(i, j)).collect()
        };
        mixture.components.iter().map(of).collect()
    }

    /// `ln p` with a choice of this line and one of another.
    pub(super) fn log_density_of_pair(
        &self,
        other: &Self,
        common: &[Vec<f64>],
        readings: &[Reading],
        (own, of_other): (usize, usize),
    ) -> f64 {
        let changes = self.of_choice(own).iter().zip(other.of_choice(of_other));
        let (first, second) = (self.moved(own), other.moved(of_other));
        let each = readings.iter().zip(changes).zip(common);
        let values: Vec<f64> = each
            .map(|((reading, (a, b)), common)| {
                let rows = common.chunks_exact(second.len().max(1)).zip(first);
                let both: f64 = rows
                    .map(|(row, d)| d * row.iter().zip(second).map(|(p, e)| p * e).sum::<f64>())
                    .sum();
                reading.value + a + b - both
            })
            .collect();
        log_sum_exp(&values)
    }
}
