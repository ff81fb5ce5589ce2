//! The last layer: few outputs, so its weights are kept in rows, one per output.

use super::{LANES, Line};

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
                    for lane in 0..LANES {
                        sums[lane] = a.0[lane].mul_add(b.0[lane], sums[lane]);
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

dispatched! {
    /// `gradients[r] = sum_j cotangents[r][j] weights[j]`: from the logits back to the values.
    pub(crate) fn spread(
        width: usize,
        classes: usize,
        cotangents: &[f32],
        weights: &[Line],
        gradients: &mut [Line],
    ) {
        let rows = gradients.chunks_exact_mut(width).zip(cotangents.chunks_exact(classes));
        for (gradient, cotangent) in rows {
            gradient.fill(Line([0.0; LANES]));
            for (weight, &factor) in weights.chunks_exact(width).zip(cotangent) {
                for (g, w) in gradient.iter_mut().zip(weight) {
                    for lane in 0..LANES {
                        g.0[lane] = factor.mul_add(w.0[lane], g.0[lane]);
                    }
                }
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
        gradients.fill(Line([0.0; LANES]));
        let rows = values.chunks_exact(width).zip(cotangents.chunks_exact(classes));
        for (value, cotangent) in rows {
            for (gradient, &factor) in gradients.chunks_exact_mut(width).zip(cotangent) {
                for (g, v) in gradient.iter_mut().zip(value) {
                    for lane in 0..LANES {
                        g.0[lane] = factor.mul_add(v.0[lane], g.0[lane]);
                    }
                }
            }
        }
    }
}

dispatched! {
    /// `total = sum_r rows[r]`: the gradient of a bias.
    pub(crate) fn sum_rows(width: usize, rows: &[Line], total: &mut [Line]) {
        total.fill(Line([0.0; LANES]));
        for row in rows.chunks_exact(width) {
            for (t, r) in total.iter_mut().zip(row) {
                for lane in 0..LANES {
                    t.0[lane] += r.0[lane];
                }
            }
        }
    }
}
