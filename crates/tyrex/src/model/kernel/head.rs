//! The last layer: few outputs, so its weights are kept in rows, one per output.

#![allow(clippy::inline_always)] // inlined into the functions that have the vector features

use super::{LANES, Line, flat, flat_mut};

dispatched! {
    /// `logits[r][j] = bias[j] + values[r] . weights[j]`, with `width` lines to a row.
    pub(crate) fn logits(
        width: usize,
        values: &[Line],
        weights: &[Line],
        bias: &[f32],
        logits: &mut [f32],
    ) {
        let classes = bias.len();
        for (value, logits) in values.chunks_exact(width).zip(logits.chunks_exact_mut(classes)) {
            for ((weight, bias), logit) in weights.chunks_exact(width).zip(bias).zip(logits) {
                let mut sums = [0.0_f32; LANES];
                for (a, b) in value.iter().zip(weight) {
                    for ((sum, a), b) in sums.iter_mut().zip(a.0).zip(b.0) {
                        *sum = a.mul_add(b, *sum);
                    }
                }
                // A fixed order, whatever the vector width.
                let mut half = LANES / 2;
                while half > 0 {
                    for lane in 0..half {
                        sums[lane] += sums[lane + half];
                    }
                    half /= 2;
                }
                *logit = sums[0] + bias;
            }
        }
    }
}

/// `y += factor * x`
#[inline(always)]
fn add_multiple(factor: f32, x: &[f32], y: &mut [f32]) {
    for (x, y) in x.iter().zip(y) {
        *y = factor.mul_add(*x, *y);
    }
}

dispatched! {
    /// `gradients[r] = sum_j cotangents[r][j] weights[j]`: from the logits back to the values.
    pub(crate) fn spread(
        width: usize,
        classes: usize,
        cotangents: &[f32],
        weights: &[Line],
        gradients: &mut [Line],
    ) {
        let width = width * LANES;
        let rows = flat_mut(gradients).chunks_exact_mut(width);
        for (gradient, cotangent) in rows.zip(cotangents.chunks_exact(classes)) {
            gradient.fill(0.0);
            for (weight, &factor) in flat(weights).chunks_exact(width).zip(cotangent) {
                add_multiple(factor, weight, gradient);
            }
        }
    }
}

dispatched! {
    /// `gradients[j] = sum_r cotangents[r][j] values[r]`: the gradient of the head's weights.
    pub(crate) fn collect(
        width: usize,
        classes: usize,
        cotangents: &[f32],
        values: &[Line],
        gradients: &mut [Line],
    ) {
        let width = width * LANES;
        let gradients = flat_mut(gradients);
        gradients.fill(0.0);
        let rows = flat(values).chunks_exact(width).zip(cotangents.chunks_exact(classes));
        for (value, cotangent) in rows {
            for (gradient, &factor) in gradients.chunks_exact_mut(width).zip(cotangent) {
                add_multiple(factor, value, gradient);
            }
        }
    }
}

dispatched! {
    /// `total = sum_r rows[r]`: the gradient of a bias.
    pub(crate) fn sum_rows(width: usize, rows: &[Line], total: &mut [Line]) {
        let total = flat_mut(total);
        total.fill(0.0);
        for row in flat(rows).chunks_exact(width * LANES) {
            for (t, r) in total.iter_mut().zip(row) {
                *t += r;
            }
        }
    }
}
