//! A network evaluated on fixed offsets around a moving centre.
//!
//! With `x_i = x + n_i` and fixed offsets `n_i`, two of the three layers of the paper's network
//! cost almost nothing:
//!
//! - the first layer's sums are `x W_1 + b_1 + n_i W_1`, and `n_i W_1` never changes;
//! - a weighted sum of gradients needs the first layer only once,
//!   `sum_i c_i dm(x_i)/dx = (sum_i c_i delta_i) W_1^T` with `delta_i` the gradient of the
//!   first layer's sums.

use std::sync::Arc;

use super::kernel::{self, Line};
use super::mlp::{BLOCK, Mlp};
use super::pass::Pass;
use crate::error::{Error, Result};
use crate::points::Points;

/// A network and its offsets.
pub(crate) struct Probe<'a> {
    network: &'a Mlp,
    shifts: Arc<Shifts>,
}

/// The contributions of the offsets to the first layer's sums: a [`Probe`] without its network.
#[derive(Debug)]
pub(crate) struct Shifts {
    count: usize,
    /// `n_i W_1`, row by row.
    lines: Vec<Line>,
}

/// The scratch space of one thread for a [`Probe`].
pub(crate) struct ProbeScratch {
    pass: Pass,
    /// `x W_1 + b_1`
    centre: Vec<Line>,
    /// The sum of the first layer's gradients.
    total: Vec<Line>,
    part: Vec<Line>,
    /// A block's scores.
    scores: Vec<f32>,
    active: Vec<usize>,
    /// The gradient of the point, padded.
    of_point: Vec<Line>,
}

impl<'a> Probe<'a> {
    /// Prepares the offsets for the network. A network without a hidden layer is an error.
    pub(crate) fn new(network: &'a Mlp, offsets: &Points) -> Result<Self> {
        let Some(first) = network.hidden.first() else {
            return Err(Error::InvalidModel("a probe needs a hidden layer".into()));
        };
        if offsets.dim() != network.dim {
            return Err(Error::Dimension {
                what: "coordinates of an offset".into(),
                expected: network.dim,
                got: offsets.dim(),
            });
        }
        let width = first.width();
        let mut shifts = kernel::zeros(offsets.len() * width);
        kernel::product(
            [offsets.len(), first.inputs, width],
            kernel::Left { values: offsets.as_slice(), row: network.dim, step: 1 },
            kernel::Right { lines: &first.weights, panel: first.inputs, step: 1 },
            &mut kernel::Out { lines: &mut shifts, row: width, panel: 1 },
            None,
        );
        let shifts = Shifts { count: offsets.len(), lines: shifts };
        Ok(Self { network, shifts: Arc::new(shifts) })
    }

    /// The part that does not borrow the network.
    pub(crate) fn shifts(&self) -> Arc<Shifts> {
        Arc::clone(&self.shifts)
    }

    /// The probe from its shifts and the same network.
    pub(crate) fn with_shifts(network: &'a Mlp, shifts: &Arc<Shifts>) -> Self {
        Self { network, shifts: Arc::clone(shifts) }
    }

    /// Scratch space for one thread.
    pub(crate) fn room(&self) -> ProbeScratch {
        let width = self.width();
        ProbeScratch {
            pass: Pass::new(self.network, BLOCK),
            centre: kernel::zeros(width),
            total: kernel::zeros(width),
            part: kernel::zeros(width),
            scores: vec![0.0; BLOCK],
            active: Vec::with_capacity(BLOCK),
            of_point: kernel::zeros(kernel::lines_for(self.network.dim)),
        }
    }

    /// The lines of the first layer's sums.
    fn width(&self) -> usize {
        self.network.hidden[0].width()
    }

    /// `m(x)`.
    ///
    /// # Panics
    /// If a size does not match.
    pub(crate) fn score(&self, x: &[f32], room: &mut ProbeScratch) -> f32 {
        self.centre(x, room)
    }

    /// `m(x)`, and writes `dm(x)/dx` to `gradient`.
    ///
    /// # Panics
    /// If a size does not match.
    pub(crate) fn score_with_gradient(
        &self,
        x: &[f32],
        room: &mut ProbeScratch,
        gradient: &mut [f32],
    ) -> f32 {
        let score = self.centre(x, room);
        room.total.fill(Line::default());
        self.add_centre(1.0, room);
        self.finish(room, gradient);
        score
    }

    /// Writes `m(x_i)` to `scores` and returns `m(x)`.
    ///
    /// # Panics
    /// If a size does not match.
    pub(crate) fn scores(&self, x: &[f32], room: &mut ProbeScratch, scores: &mut [f32]) -> f32 {
        assert_eq!(scores.len(), self.shifts.count, "one score per offset");
        let score = self.centre(x, room);
        for (index, scores) in scores.chunks_mut(BLOCK).enumerate() {
            self.block_forward(index * BLOCK, scores.len(), room, false);
            let logits = &room.pass.logits[..scores.len() * self.network.classes()];
            self.network.output().scores(logits, scores);
        }
        score
    }

    /// Writes `v dm(x)/dx + sum_i c_i dm(x_i)/dx` to `gradient`. Offsets with `c_i = 0` need no
    /// backward pass.
    ///
    /// # Panics
    /// If a size does not match.
    pub(crate) fn weighted_gradient(
        &self,
        x: &[f32],
        of_centre: f32,
        coefficients: &[f32],
        room: &mut ProbeScratch,
        gradient: &mut [f32],
    ) {
        assert_eq!(coefficients.len(), self.shifts.count, "one coefficient per offset");
        self.centre(x, room);
        room.total.fill(Line::default());
        self.add_centre(of_centre, room);
        for (index, coefficients) in coefficients.chunks(BLOCK).enumerate() {
            if coefficients.iter().all(|&c| c == 0.0) {
                continue;
            }
            self.block_forward(index * BLOCK, coefficients.len(), room, true);
            self.block_backward(coefficients.len(), room, |row, _| coefficients[row]);
        }
        self.finish(room, gradient);
    }

    /// `m(x)` and the relaxed stability
    /// `R^ = m(x) - (2/k) sum_i max(0, m(x) - m(x_i))`, with its gradient.
    ///
    /// One pass suffices: `m(x)` is known first, and only the offsets that score below it
    /// have a gradient, `c_i = 2/k`; the centre's is `1 - (2/k) #{m(x_i) < m(x)}`.
    ///
    /// # Panics
    /// If a size does not match.
    pub(crate) fn relaxed_stability(
        &self,
        x: &[f32],
        room: &mut ProbeScratch,
        gradient: &mut [f32],
    ) -> (f32, f64) {
        let share = 2.0 / self.shifts.count as f32;
        let score = self.centre(x, room);
        room.total.fill(Line::default());
        let (mut shortfall, mut below) = (0.0_f64, 0_usize);
        for first in (0..self.shifts.count).step_by(BLOCK) {
            let rows = BLOCK.min(self.shifts.count - first);
            self.block_forward(first, rows, room, true);
            self.block_backward(rows, room, |_, of_row| {
                if of_row < score {
                    shortfall += f64::from(score - of_row);
                    below += 1;
                    share
                } else {
                    0.0
                }
            });
        }
        self.add_centre(1.0 - share * below as f32, room);
        self.finish(room, gradient);
        (score, f64::from(score) - 2.0 * shortfall / self.shifts.count as f64)
    }

    /// The first layer's sums of the centre, and `m(x)`.
    fn centre(&self, x: &[f32], room: &mut ProbeScratch) -> f32 {
        assert_eq!(x.len(), self.network.dim, "the dimension of the point");
        let first = &self.network.hidden[0];
        let input = kernel::Left { values: x, row: self.network.dim, step: 1 };
        first.sums(1, input, &mut room.centre);
        room.pass.values[0][..room.centre.len()].copy_from_slice(&room.centre);
        room.pass.forward_from_sums(self.network, 1, false);
        self.network.output().score(&room.pass.logits[..self.network.classes()])
    }

    /// Adds `factor` times the centre's gradient to the total.
    fn add_centre(&self, factor: f32, room: &mut ProbeScratch) {
        room.pass.values[0][..room.centre.len()].copy_from_slice(&room.centre);
        room.pass.forward_from_sums(self.network, 1, true);
        self.block_backward(1, room, |_, _| factor);
    }

    /// The forward pass of some offsets.
    fn block_forward(&self, first: usize, rows: usize, room: &mut ProbeScratch, with_slopes: bool) {
        let width = self.width();
        let shifts = &self.shifts.lines[first * width..(first + rows) * width];
        let sums = &mut room.pass.values[0][..rows * width];
        kernel::add_to_rows(width, &room.centre, shifts, sums);
        room.pass.forward_from_sums(self.network, rows, with_slopes);
    }

    /// The backward pass of the offsets of a block with a nonzero coefficient, added to the total.
    fn block_backward(
        &self,
        rows: usize,
        room: &mut ProbeScratch,
        mut coefficient: impl FnMut(usize, f32) -> f32,
    ) {
        let classes = self.network.classes();
        let output = self.network.output();
        room.active.clear();
        output.scores(&room.pass.logits[..rows * classes], &mut room.scores[..rows]);
        let logits = room.pass.logits.chunks_exact_mut(classes);
        for (row, (&score, logits)) in room.scores[..rows].iter().zip(logits).enumerate() {
            let factor = coefficient(row, score);
            if factor != 0.0 {
                output.cotangent(score, logits, factor);
                room.active.push(row);
            }
        }
        if room.active.is_empty() {
            return;
        }
        if room.active.len() < rows {
            room.pass.keep(self.network, &room.active);
        }
        let of_sums = room.pass.backward_to_sums(self.network, room.active.len());
        kernel::sum_rows(self.width(), of_sums, &mut room.part);
        kernel::add(&mut room.total, &room.part);
    }

    /// From the total of the first layer's gradients to the gradient of the point.
    fn finish(&self, room: &mut ProbeScratch, gradient: &mut [f32]) {
        let first = &self.network.hidden[0];
        first.input_gradient(1, &room.total, &mut room.of_point);
        gradient.copy_from_slice(&kernel::flat(&room.of_point)[..self.network.dim]);
    }
}
