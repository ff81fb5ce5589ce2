//! The forward and backward pass of one block of points.

use super::Activation;
use super::kernel::{self, Left, Line};
use super::mlp::{Hidden, Mlp, pad_rows, rows_of};

/// Some consecutive points of a batch.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    /// The index of the first.
    pub(super) first: usize,
    /// Their coordinates.
    pub(super) values: &'a [f32],
}

/// The scratch space of one block.
pub(super) struct Pass {
    /// The input in padded rows, used only when the head reads it directly.
    input: Vec<Line>,
    /// The values of each hidden layer.
    pub(super) values: Vec<Vec<Line>>,
    slopes: Vec<Vec<Line>>,
    /// Logits after the forward pass, replaced by their cotangents before the backward pass.
    pub(super) logits: Vec<f32>,
    gradient: Vec<Line>,
    other: Vec<Line>,
}

impl Pass {
    pub(super) fn new(network: &Mlp, rows: usize) -> Self {
        let input_width = kernel::lines_for(network.dim);
        let widest = network.hidden.iter().map(Hidden::width).max().unwrap_or(0).max(input_width);
        let room = || network.hidden.iter().map(|l| kernel::zeros(rows * l.width())).collect();
        Self {
            input: if network.hidden.is_empty() {
                kernel::zeros(rows * input_width)
            } else {
                Vec::new()
            },
            values: room(),
            slopes: room(),
            logits: vec![0.0; rows * network.classes()],
            gradient: kernel::zeros(rows * widest),
            other: kernel::zeros(rows * widest),
        }
    }

    /// Fills `values` and `logits`, and the slopes if a backward pass follows.
    pub(super) fn forward(&mut self, network: &Mlp, rows: usize, block: Block, with_slopes: bool) {
        if let Some(first) = network.hidden.first() {
            let input = Left { values: block.values, row: network.dim, step: 1 };
            first.sums(rows, input, &mut self.values[0][..rows * first.width()]);
        } else {
            pad_rows(block.values, network.dim, &mut self.input);
        }
        self.forward_from_sums(network, rows, with_slopes);
    }

    /// The same when the first hidden layer's sums are in `values[0]` already.
    pub(super) fn forward_from_sums(&mut self, network: &Mlp, rows: usize, with_slopes: bool) {
        for (index, layer) in network.hidden.iter().enumerate() {
            let (before, rest) = self.values.split_at_mut(index);
            let values = &mut rest[0][..rows * layer.width()];
            if let Some(previous) = before.last() {
                layer.sums(rows, rows_of(previous, network.hidden[index - 1].width()), values);
            }
            let values = kernel::flat_mut(values);
            if with_slopes && layer.activation != Activation::Relu {
                let slopes = kernel::flat_mut(&mut self.slopes[index][..rows * layer.width()]);
                kernel::activate_with_slope(layer.activation, values, slopes);
            } else {
                kernel::activate(layer.activation, values);
            }
        }
        let last: &[Line] = self.values.last().map_or(&self.input, Vec::as_slice);
        let head = &network.head;
        head.logits(last, &mut self.logits[..rows * head.classes]);
    }

    /// Keeps only the given rows, in order; they must be ascending. They are moved to the front,
    /// ready for the backward pass.
    pub(super) fn keep(&mut self, network: &Mlp, rows: &[usize]) {
        for (index, layer) in network.hidden.iter().enumerate() {
            let width = layer.width();
            for (to, &from) in rows.iter().enumerate() {
                self.values[index].copy_within(from * width..(from + 1) * width, to * width);
                if layer.activation != Activation::Relu {
                    self.slopes[index].copy_within(from * width..(from + 1) * width, to * width);
                }
            }
        }
        let classes = network.classes();
        for (to, &from) in rows.iter().enumerate() {
            self.logits.copy_within(from * classes..(from + 1) * classes, to * classes);
        }
    }

    /// From cotangents of the logits, in `logits`, to gradients of the points.
    pub(super) fn backward(&mut self, network: &Mlp, rows: usize, gradients: &mut [f32]) {
        self.backward_to_sums(network, rows);
        if let Some(first) = network.hidden.first() {
            let of_sums = &self.gradient[..rows * first.width()];
            first.input_gradient(rows, of_sums, &mut self.other);
            std::mem::swap(&mut self.gradient, &mut self.other);
        }
        let width = kernel::lines_for(network.dim);
        for (padded, row) in
            self.gradient.chunks_exact(width).zip(gradients.chunks_exact_mut(network.dim))
        {
            row.copy_from_slice(&kernel::flat(padded)[..network.dim]);
        }
    }

    /// From cotangents of the logits to gradients of the first hidden layer's sums, which
    /// it returns; of the points themselves if there is no hidden layer.
    pub(super) fn backward_to_sums(&mut self, network: &Mlp, rows: usize) -> &[Line] {
        let head = &network.head;
        let cotangents = &self.logits[..rows * head.classes];
        let gradient = &mut self.gradient[..rows * head.width()];
        kernel::spread(head.width(), head.classes, cotangents, &head.weights, gradient);
        for (index, layer) in network.hidden.iter().enumerate().rev() {
            let count = rows * layer.width();
            let gradient = &mut self.gradient[..count];
            if layer.activation == Activation::Relu {
                kernel::relu_slope(gradient, &self.values[index][..count]);
            } else {
                kernel::multiply(gradient, &self.slopes[index][..count]);
            }
            if index > 0 {
                layer.input_gradient(rows, gradient, &mut self.other);
                std::mem::swap(&mut self.gradient, &mut self.other);
            }
        }
        let width = network.hidden.first().map_or_else(|| head.width(), Hidden::width);
        &self.gradient[..rows * width]
    }
}
