//! The local outlier factor: the density around a point, relative to its neighbours.

use rayon::prelude::*;

use super::neighbours::{Neighbour, NeighbourIndex};
use crate::error::{Error, Result};
use crate::points::Points;

/// A point whose factor is at most this is an inlier, by scikit-learn's `contamination="auto"`.
pub(crate) const INLIER: f64 = 1.5;

/// Added to a mean distance, as in scikit-learn: among duplicates the mean may be 0.
const GUARD: f64 = 1e-10;

/// Whether a point with this factor is an inlier: `+1` in scikit-learn's `predict`.
pub(super) fn is_inlier(factor: f64) -> bool {
    factor <= INLIER
}

/// `LOF_k(x) = 1/k sum_{x' in L_k(x)} lrd_k(x') / lrd_k(x)`, for points that are not training
/// points, with
///
/// - `lrd_k(x) = 1 / ( 1/k sum_{x' in L_k(x)} max(||x - x'||, d_k(x')) + 1e-10 )`, the density,
/// - `d_k(x')`, the distance from the training point `x'` to its `k`-th nearest other one,
/// - `L_k(x)`, the `k` training points nearest to `x`; for a training point the others.
///
/// About 1 inside the data, above 1.5 for an outlier, never below 0. Equal to
/// scikit-learn's `-LocalOutlierFactor(n_neighbors=k, novelty=True).score_samples(x)`, but for
/// ties: where several points are at the distance of the `k`-th, the earliest are taken here
/// and any of them there.
#[derive(Debug, Clone, Copy)]
pub struct LocalOutlierFactor<'a> {
    index: &'a NeighbourIndex,
    neighbours: usize,
}

impl<'a> LocalOutlierFactor<'a> {
    /// The factor with `k` neighbours, cut to one fewer than there are training points.
    pub fn new(index: &'a NeighbourIndex, neighbours: usize) -> Result<Self> {
        let others = index.points().len() - 1;
        if neighbours == 0 || neighbours.min(others) > index.most() {
            let expected = format!("1 to {}, for which the index was made", index.most());
            return Err(Error::param("neighbours", neighbours, expected));
        }
        Ok(Self { index, neighbours: neighbours.min(others) })
    }

    /// The factor of every point.
    pub fn of(&self, points: &Points) -> Result<Vec<f64>> {
        Ok(self.of_nearest(&self.index.nearest(points)?))
    }

    /// The factor of every point, from its nearest training points.
    pub(super) fn of_nearest(&self, nearest: &[Vec<Neighbour>]) -> Vec<f64> {
        let k = self.neighbours;
        // The densities of the neighbours need their neighbours, and those theirs.
        let first = || nearest.iter().flat_map(|nearest| &nearest[..k]).map(|each| each.index);
        self.index.prepare(first());
        let second = first().flat_map(|index| &self.index.of_training(index)[..k]);
        self.index.prepare(second.map(|each| each.index));
        nearest
            .par_iter()
            .map(|nearest| {
                let nearest = &nearest[..k];
                let densities = nearest
                    .iter()
                    .map(|each| self.density(&self.index.of_training(each.index)[..k]));
                densities.sum::<f64>() / k as f64 / self.density(nearest)
            })
            .collect()
    }

    /// `lrd_k` of a point with these `k` nearest.
    fn density(&self, nearest: &[Neighbour]) -> f64 {
        let k = self.neighbours;
        let reach = nearest
            .iter()
            .map(|each| each.distance.max(self.index.of_training(each.index)[k - 1].distance));
        1.0 / (reach.sum::<f64>() / k as f64 + GUARD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(training: &[f32], points: &[f32], neighbours: usize) -> Vec<f64> {
        let on_a_line = |values: &[f32]| Points::from_rows(1, values.to_vec()).unwrap();
        let index = NeighbourIndex::fit(&on_a_line(training), neighbours).unwrap();
        LocalOutlierFactor::new(&index, neighbours).unwrap().of(&on_a_line(points)).unwrap()
    }

    #[test]
    fn inside_beside_and_far_from_a_line_of_points() {
        let line: Vec<f32> = (0..20_u8).map(f32::from).collect();
        // One neighbour, one unit away from its own: the density is 1 everywhere on the line.
        let got = factors(&line, &[7.25, 20.0, 21.0, 29.0], 1);
        for (got, expected) in got.iter().zip([1.0, 1.0, 2.0, 10.0]) {
            assert!((got - expected).abs() < 1e-8, "{got}, not {expected}");
        }
        let inlier: Vec<bool> = got.iter().map(|factor| is_inlier(*factor)).collect();
        assert_eq!(inlier, [true, true, false, false]);
    }

    #[test]
    fn among_more_duplicates_than_neighbours() {
        // The densities are 1 / 1e-10: on the point 1, away from it the mean reach over 1e-10.
        let got = factors(&[0.5; 30], &[0.5, 1.5], 5);
        assert!((got[0] - 1.0).abs() < 1e-12 && (got[1] - 1e10).abs() < 10.0, "{got:?}");
    }

    #[test]
    fn the_threshold_belongs_to_the_inliers() {
        assert!(is_inlier(INLIER) && is_inlier(0.0) && !is_inlier(INLIER + 1e-12));
    }
}
