//! Distances from points to the points of panels.
//!
//! Here a panel is sixteen points side by side: one line per column.

#![allow(clippy::inline_always)] // it must be inlined into loops that have the vector features

use super::{LANES, Line};

/// Points that read a panel together, so that their sums do not wait for each other.
pub(crate) const TOGETHER: usize = 4;

#[inline(always)]
fn smallest(numbers: &[f32; LANES]) -> f32 {
    numbers.iter().fold(f32::INFINITY, |a, &b| if b < a { b } else { a })
}

dispatched! {
    /// `min_i ||x - y_i||^2` over the points `y_i` of each panel, panel by panel, for blocks of
    /// points `x`. A block holds its points side by side: one array per column.
    pub(crate) fn least_squares(
        panels: &[Line],
        columns: usize,
        blocks: &[[f32; TOGETHER]],
        least: &mut [[f32; TOGETHER]],
    ) {
        let per_panel = blocks.len() / columns;
        assert_eq!(least.len(), panels.len() / columns * per_panel, "one place per panel and block");
        for (panel, least) in panels.chunks_exact(columns).zip(least.chunks_exact_mut(per_panel)) {
            for (block, least) in blocks.chunks_exact(columns).zip(least) {
                // Four sums by name: as an array of arrays they do not stay in registers.
                let mut sums = [0.0_f32; LANES];
                let (mut sums_1, mut sums_2, mut sums_3) = (sums, sums, sums);
                for (line, xs) in panel.iter().zip(block) {
                    for lane in 0..LANES {
                        let gaps = xs.map(|x| line.0[lane] - x);
                        sums[lane] += gaps[0] * gaps[0];
                        sums_1[lane] += gaps[1] * gaps[1];
                        sums_2[lane] += gaps[2] * gaps[2];
                        sums_3[lane] += gaps[3] * gaps[3];
                    }
                }
                *least = [sums, sums_1, sums_2, sums_3].map(|sums| smallest(&sums));
            }
        }
    }
}

dispatched! {
    /// `||x - y_i||^2` of one point and the points `y_i` of each panel, in double precision.
    pub(crate) fn squared_distances(panels: &[Line], point: &[f32], squares: &mut [[f64; LANES]]) {
        assert_eq!(squares.len() * point.len(), panels.len(), "one place per panel");
        for (panel, squares) in panels.chunks_exact(point.len()).zip(squares) {
            let mut sums = [0.0_f64; LANES];
            for (line, &x) in panel.iter().zip(point) {
                for (sum, &y) in sums.iter_mut().zip(&line.0) {
                    let gap = f64::from(y) - f64::from(x);
                    *sum += gap * gap;
                }
            }
            *squares = sums;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernel::forced::on_each_isa;
    use crate::seed::Seed;
    use rand::RngExt;

    #[test]
    fn distances_are_sums_of_squares_on_every_instruction_set() {
        let mut rng = Seed(3).rng();
        for (columns, panels, blocks) in [(1, 1, 1), (3, 2, 1), (17, 5, 3), (32, 4, 2)] {
            let mut number = || rng.random_range(-2.0..2.0_f32);
            let lines: Vec<Line> =
                (0..panels * columns).map(|_| Line(std::array::from_fn(|_| number()))).collect();
            let points: Vec<[f32; TOGETHER]> =
                (0..blocks * columns).map(|_| std::array::from_fn(|_| number())).collect();
            let answers = on_each_isa(|| {
                let mut least = vec![[0.0; TOGETHER]; panels * blocks];
                least_squares(&lines, columns, &points, &mut least);
                let point: Vec<f32> = points[..columns].iter().map(|xs| xs[2]).collect();
                let mut squares = vec![[0.0; LANES]; panels];
                squared_distances(&lines, &point, &mut squares);
                (least, squares)
            });
            let (_, (least, squares)) = &answers[0];
            for (isa, (other_least, other_squares)) in &answers {
                assert_eq!((other_least, other_squares), (least, squares), "{isa:?}");
            }
            for panel in 0..panels {
                let lines = &lines[panel * columns..(panel + 1) * columns];
                let square = |block: usize, at: usize, lane: usize| {
                    let xs = points[block * columns..(block + 1) * columns].iter();
                    let gaps =
                        xs.zip(lines).map(|(xs, line)| f64::from(xs[at]) - f64::from(line.0[lane]));
                    gaps.map(|gap| gap * gap).sum::<f64>()
                };
                for (lane, got) in squares[panel].iter().enumerate() {
                    let expected = square(0, 2, lane);
                    assert!((got - expected).abs() <= 1e-12 * expected, "{got}, not {expected}");
                }
                for (block, at) in (0..blocks).flat_map(|b| (0..TOGETHER).map(move |at| (b, at))) {
                    let got = f64::from(least[panel * blocks + block][at]);
                    let all = (0..LANES).map(|lane| square(block, at, lane));
                    let expected = all.fold(f64::INFINITY, f64::min);
                    assert!((got - expected).abs() <= 1e-5 * expected, "{got}, not {expected}");
                }
            }
        }
    }
}
