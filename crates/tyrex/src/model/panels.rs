//! Points in panels of sixteen, for distances to many of them at once.

use super::kernel::{LANES, Line, TOGETHER, least_squares, squared_distances};
use crate::points::Points;

/// Points in panels. The last panel is filled up with points at infinity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panels {
    lines: Vec<Line>,
    dim: usize,
}

impl Panels {
    /// The points of one panel.
    pub(crate) const WIDTH: usize = LANES;

    pub(crate) fn new(points: &Points) -> Self {
        let (len, dim) = (points.len(), points.dim());
        let coordinate =
            |at: usize, column| if at < len { points.row(at)[column] } else { f32::INFINITY };
        let lines = (0..len)
            .step_by(LANES)
            .flat_map(|start| {
                (0..dim).map(move |column| {
                    Line(std::array::from_fn(|lane| coordinate(start + lane, column)))
                })
            })
            .collect();
        Self { lines, dim }
    }

    /// The number of panels.
    pub(crate) fn len(&self) -> usize {
        self.lines.len() / self.dim
    }

    /// The squared distance to the nearest point of every panel, for each of the queries, in
    /// single precision. A sum of `d` squares is right to a relative `(d + 3) 2^-24` unless it
    /// is beyond the range of normal numbers.
    pub(crate) fn least(&self, queries: &[&[f32]]) -> Vec<Vec<f32>> {
        let per_panel = queries.len().div_ceil(TOGETHER);
        let blocks: Vec<[f32; TOGETHER]> = queries
            .chunks(TOGETHER)
            .flat_map(|block| {
                (0..self.dim).map(move |column| {
                    std::array::from_fn(|at| block.get(at).map_or(0.0, |query| query[column]))
                })
            })
            .collect();
        let mut least = vec![[0.0; TOGETHER]; self.len() * per_panel];
        least_squares(&self.lines, self.dim, &blocks, &mut least);
        let of_query = |query: usize| {
            let of_block = least.iter().skip(query / TOGETHER).step_by(per_panel);
            of_block.map(|least| least[query % TOGETHER]).collect()
        };
        (0..queries.len()).map(of_query).collect()
    }

    /// `||x - x_i||^2` of the points of one panel; infinite behind the last point.
    pub(crate) fn squares(&self, panel: usize, point: &[f32]) -> [f64; LANES] {
        let mut squares = [[0.0; LANES]];
        let lines = &self.lines[panel * self.dim..(panel + 1) * self.dim];
        squared_distances(lines, point, &mut squares);
        squares[0]
    }

    /// The same of all points; infinite behind the last.
    pub(crate) fn all_squares(&self, point: &[f32]) -> Vec<[f64; LANES]> {
        let mut squares = vec![[0.0; LANES]; self.len()];
        squared_distances(&self.lines, point, &mut squares);
        squares
    }
}
