//! The nearest training points, exactly.
//!
//! `L_k(x)`: the `k` training points at the smallest Euclidean distances from `x`, the earlier
//! of equals first.
//!
//! With tens of columns a tree would visit nearly every point, so all points are scanned: single
//! precision finds the nearest point of every panel of sixteen. Take the `k` panels whose nearest
//! points are nearest: these are `k` points, so the `k`-th neighbour is no farther than the
//! farthest of them, and no other panel can hold one. The points of these panels are then measured
//! in double precision.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::{check_points, check_training};
use crate::error::{Error, Result};
use crate::model::panels::Panels;
use crate::points::Points;

/// Queries that read a panel while it is in the nearest cache.
const QUERIES: usize = 16;

/// A training point near another point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Neighbour {
    /// Its index among the training points.
    pub(super) index: usize,
    /// `||x - x_i||`
    pub(super) distance: f64,
}

/// `1/k sum_i ||x - x_i||` over the neighbours given; 0 for none.
pub(super) fn mean_distance(nearest: &[Neighbour]) -> f64 {
    let sum: f64 = nearest.iter().map(|neighbour| neighbour.distance).sum();
    if nearest.is_empty() { 0.0 } else { sum / nearest.len() as f64 }
}

/// An index of the nearest training points.
///
/// The neighbours of the training points themselves are computed when first needed, and cached.
/// They do not depend on the order of queries.
#[derive(Debug)]
pub struct NeighbourIndex {
    points: Points,
    panels: Panels,
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
        let len = training.len();
        Ok(Self {
            points: training.clone(),
            panels: Panels::new(training),
            most: most.min(len - 1),
            own: (0..len).map(|_| OnceLock::new()).collect(),
        })
    }

    /// The training points.
    pub(super) fn points(&self) -> &Points {
        &self.points
    }

    /// The number of neighbours it finds.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The nearest training points of every point, nearest first. A training point is its own
    /// nearest neighbour.
    pub(super) fn nearest(&self, points: &Points) -> Result<Vec<Vec<Neighbour>>> {
        check_points(points, self.points.dim())?;
        let rows: Vec<(&[f32], Option<usize>)> = points.rows().map(|row| (row, None)).collect();
        Ok(self.search(&rows))
    }

    /// The nearest other training points of a training point.
    pub(super) fn of_training(&self, index: usize) -> &[Neighbour] {
        // On this thread only: a thread that waits for others may be given work that waits for this
        // result.
        self.own[index].get_or_init(|| {
            let found = self.search_block(&[(self.points.row(index), Some(index))]);
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
        queries.par_chunks(QUERIES).flat_map_iter(|block| self.search_block(block)).collect()
    }

    fn search_block(&self, block: &[(&[f32], Option<usize>)]) -> Vec<Vec<Neighbour>> {
        let points: Vec<&[f32]> = block.iter().map(|(point, _)| *point).collect();
        let least = self.panels.least(&points);
        block
            .iter()
            .zip(least)
            .map(|(&(point, own), least)| self.select(point, own, &least))
            .collect()
    }

    /// The nearest points, given the squared distance to each panel's nearest.
    fn select(&self, point: &[f32], own: Option<usize>, least: &[f32]) -> Vec<Neighbour> {
        // The nearest point of one panel may be the point itself.
        let panels = self.most + usize::from(own.is_some());
        let dim = point.len() as f32;
        // A bound on rounding in both directions, and on the loss below the normal numbers.
        let slack = 1.0 + 4.0 * (dim + 4.0) * f32::EPSILON;
        let limit = smallest(least, panels) * slack + dim * f32::MIN_POSITIVE;
        let mut nearest = Vec::with_capacity(panels * Panels::WIDTH);
        for panel in (0..least.len()).filter(|&panel| least[panel] <= limit) {
            for (lane, square) in self.panels.squares(panel, point).into_iter().enumerate() {
                let index = panel * Panels::WIDTH + lane;
                if index < self.points.len() && Some(index) != own {
                    nearest.push(Neighbour { index, distance: square.sqrt() });
                }
            }
        }
        let order = |a: &Neighbour, b: &Neighbour| {
            a.distance.total_cmp(&b.distance).then(a.index.cmp(&b.index))
        };
        if self.most < nearest.len() {
            nearest.select_nth_unstable_by(self.most, order);
            nearest.truncate(self.most);
        }
        nearest.sort_unstable_by(order);
        nearest
    }
}

/// The `count`-th smallest number; infinite if there are fewer.
fn smallest(numbers: &[f32], count: usize) -> f32 {
    let mut best: Vec<f32> = Vec::with_capacity(count + 1);
    for &number in numbers {
        if best.len() < count || number < best[count - 1] {
            best.insert(best.partition_point(|other| *other <= number), number);
            best.truncate(count);
        }
    }
    if best.len() < count { f32::INFINITY } else { best[count - 1] }
}
