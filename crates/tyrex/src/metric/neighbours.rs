//! The nearest training points, exactly.
//!
//! `L_k(x)`: the `k` training points at the smallest Euclidean distances from `x`, the earlier
//! of equals first.
//!
//! In tens of columns a tree visits nearly every point, so every point is looked at, quickly:
//! sixteen squared distances at a time in single precision. That only preselects. Each of its
//! sums has `d` terms of one sign, so it is right to a relative `(d + 3) 2^-24`; what may be
//! among the nearest by this bound is measured again in double precision.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::{check_points, check_training};
use crate::counterfactual::Norm;
use crate::error::{Error, Result};
use crate::points::Points;

/// Training points side by side in a panel.
const LANES: usize = 16;

/// Queries that read a panel while it is in the nearest cache.
const QUERIES: usize = 8;

/// A training point near another point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its index among the training points.
    pub index: usize,
    /// `||x - x_i||`
    pub distance: f64,
}

/// `1/k sum_i ||x - x_i||` over the neighbours given; 0 for none.
#[must_use]
pub fn mean_distance(nearest: &[Neighbour]) -> f64 {
    let sum: f64 = nearest.iter().map(|neighbour| neighbour.distance).sum();
    if nearest.is_empty() { 0.0 } else { sum / nearest.len() as f64 }
}

/// Training points, ready to say which are nearest.
///
/// The neighbours of the training points themselves are found when they are first needed, and
/// kept. They do not depend on who asks first.
#[derive(Debug)]
pub struct NeighbourIndex {
    points: Points,
    /// Column by column within sixteen points; the last panel is filled up with its last point.
    panels: Vec<[f32; LANES]>,
    most: usize,
    own: Vec<OnceLock<Box<[Neighbour]>>>,
}

impl NeighbourIndex {
    /// An index for up to `most` neighbours, or one fewer than there are training points.
    pub fn fit(training: &Points, most: usize) -> Result<Self> {
        check_training(training, 2)?;
        if most == 0 {
            return Err(Error::param("neighbours", most, "at least 1"));
        }
        let (len, dim) = (training.len(), training.dim());
        let panels = (0..len)
            .step_by(LANES)
            .flat_map(|start| {
                (0..dim).map(move |column| {
                    std::array::from_fn(|lane| training.row((start + lane).min(len - 1))[column])
                })
            })
            .collect();
        Ok(Self {
            points: training.clone(),
            panels,
            most: most.min(len - 1),
            own: (0..len).map(|_| OnceLock::new()).collect(),
        })
    }

    /// The training points.
    #[must_use]
    pub fn points(&self) -> &Points {
        &self.points
    }

    /// The number of neighbours it finds.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// The nearest training points of every point, nearest first. A training point is its own
    /// nearest neighbour.
    pub fn nearest(&self, points: &Points) -> Result<Vec<Vec<Neighbour>>> {
        check_points(points, self.points.dim())?;
        let rows: Vec<(&[f32], Option<usize>)> = points.rows().map(|row| (row, None)).collect();
        Ok(self.search(&rows))
    }

    /// The nearest other training points of a training point.
    pub(super) fn of_training(&self, index: usize) -> &[Neighbour] {
        self.own[index].get_or_init(|| {
            let found = self.search(&[(self.points.row(index), Some(index))]);
            found.into_iter().flatten().collect()
        })
    }

    /// Finds the neighbours of the training points given, many at a time.
    pub(super) fn prepare(&self, indices: impl Iterator<Item = usize>) {
        let mut wanted = vec![false; self.points.len()];
        for index in indices {
            wanted[index] = self.own[index].get().is_none();
        }
        let missing: Vec<usize> = (0..wanted.len()).filter(|&index| wanted[index]).collect();
        let rows: Vec<(&[f32], Option<usize>)> =
            missing.iter().map(|&index| (self.points.row(index), Some(index))).collect();
        for (&index, nearest) in missing.iter().zip(self.search(&rows)) {
            self.own[index].get_or_init(|| nearest.into());
        }
    }

    /// The nearest of each point; of a training point, given with its index, the nearest others.
    fn search(&self, queries: &[(&[f32], Option<usize>)]) -> Vec<Vec<Neighbour>> {
        let padded = self.points.len().next_multiple_of(LANES);
        let blocks = queries.par_chunks(QUERIES).map_init(
            || vec![0.0; QUERIES * padded],
            |squares, block| {
                self.squares_of(block, squares);
                let nearest = |(&(point, own), squares): (&(&[f32], Option<usize>), &mut [f32])| {
                    self.select(point, own, &mut squares[..self.points.len()])
                };
                block.iter().zip(squares.chunks_exact_mut(padded)).map(nearest).collect::<Vec<_>>()
            },
        );
        blocks.flatten_iter().collect()
    }

    /// Writes `||x - x_i||^2` of each query and every training point.
    fn squares_of(&self, queries: &[(&[f32], Option<usize>)], squares: &mut [f32]) {
        let padded = self.points.len().next_multiple_of(LANES);
        for (at, panel) in self.panels.chunks_exact(self.points.dim()).enumerate() {
            for ((point, _), squares) in queries.iter().zip(squares.chunks_exact_mut(padded)) {
                let mut sums = [0.0_f32; LANES];
                for (column, &x) in panel.iter().zip(*point) {
                    for (sum, other) in sums.iter_mut().zip(column) {
                        let gap = x - other;
                        *sum += gap * gap;
                    }
                }
                squares[at * LANES..(at + 1) * LANES].copy_from_slice(&sums);
            }
        }
    }

    fn select(&self, point: &[f32], own: Option<usize>, squares: &mut [f32]) -> Vec<Neighbour> {
        if let Some(own) = own {
            squares[own] = f32::INFINITY;
        }
        let dim = point.len() as f32;
        // Two bounds of (d + 3) 2^-24, one up and one down, and what is lost below the smallest
        // normal numbers.
        let slack = 1.0 + 4.0 * (dim + 4.0) * f32::EPSILON;
        let limit = smallest(squares, self.most) * slack + dim * f32::MIN_POSITIVE;
        let mut nearest: Vec<Neighbour> = squares
            .iter()
            .enumerate()
            .filter(|&(index, &square)| square <= limit && Some(index) != own)
            .map(|(index, _)| Neighbour {
                index,
                distance: Norm::L2.distance(point, self.points.row(index)),
            })
            .collect();
        nearest
            .sort_unstable_by(|a, b| a.distance.total_cmp(&b.distance).then(a.index.cmp(&b.index)));
        nearest.truncate(self.most);
        nearest
    }
}

/// The `count`-th smallest number.
fn smallest(numbers: &[f32], count: usize) -> f32 {
    let mut best = Vec::with_capacity(count + 1);
    let mut worst = f32::INFINITY;
    for &number in numbers {
        if number < worst || best.len() < count {
            let place = best.partition_point(|other| *other <= number);
            best.insert(place, number);
            best.truncate(count);
            if best.len() == count {
                worst = best[count - 1];
            }
        }
    }
    best.last().copied().unwrap_or(f32::INFINITY)
}
