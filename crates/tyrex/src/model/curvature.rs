//! Second derivatives: the Hessian of the score times a vector.
//!
//! Along `x + t v` every quantity of the two passes has a derivative with respect to `t`, written
//! with a prime. Forward, `z'_l = h'_{l-1} W_l` and `h'_l = f'(z_l) z'_l`. Backward, with
//! `u_l = g_l f'(z_l)` the gradient of the sums, `u'_l = g'_l f'(z_l) + g_l f''(z_l) z'_l` and
//! `g'_{l-1} = u'_l W_l^T`. The result at the input is `H v`.
//!
//! One point at a time, in double precision.

use super::interval::sigmoid;
use super::kernel::{self, LANES};
use super::mlp::{Hidden, Mlp, Output};

/// A vector, and its derivative along the direction.
#[derive(Clone)]
struct Moving {
    value: Vec<f64>,
    rate: Vec<f64>,
}

impl Moving {
    fn zeros(len: usize) -> Self {
        Self { value: vec![0.0; len], rate: vec![0.0; len] }
    }
}

impl Mlp {
    /// `H(x) v`, with `H` the matrix of second derivatives of `m` with respect to the point.
    /// At a kink of an activation, with the slope to the right of it.
    ///
    /// # Panics
    /// If a size does not match.
    pub fn hessian_vector(&self, x: &[f32], direction: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.dim, "the dimension of the point");
        assert_eq!(direction.len(), self.dim, "the dimension of the direction");
        let value = x.iter().map(|&coordinate| f64::from(coordinate)).collect();
        let mut values = Moving { value, rate: direction.to_vec() };
        let mut sums = Vec::with_capacity(self.hidden.len());
        for layer in &self.hidden {
            let z = sums_of(layer, &values);
            values = activated(layer, &z);
            sums.push(z);
        }
        let cotangents = cotangents(self.output(), &self.logits_of(&values));
        let mut gradient = self.through_head(&cotangents);
        for (layer, z) in self.hidden.iter().zip(&sums).rev() {
            gradient = through_layer(layer, z, &gradient);
        }
        gradient.rate
    }

    fn logits_of(&self, values: &Moving) -> Moving {
        let mut logits = Moving::zeros(self.classes());
        let rows = self.head.weights.chunks_exact(self.head.width()).map(kernel::flat);
        for (class, row) in rows.enumerate() {
            logits.value[class] =
                f64::from(kernel::flat(&self.head.bias)[class]) + dot(row, &values.value);
            logits.rate[class] = dot(row, &values.rate);
        }
        logits
    }

    fn through_head(&self, cotangents: &Moving) -> Moving {
        let mut gradient = Moving::zeros(self.head.inputs);
        let rows = self.head.weights.chunks_exact(self.head.width()).map(kernel::flat);
        for (class, row) in rows.enumerate() {
            add_multiple(cotangents.value[class], row, &mut gradient.value);
            add_multiple(cotangents.rate[class], row, &mut gradient.rate);
        }
        gradient
    }
}

/// `h W + b`
fn sums_of(layer: &Hidden, values: &Moving) -> Moving {
    let mut sums = Moving::zeros(layer.outputs);
    for (sum, &bias) in sums.value.iter_mut().zip(kernel::flat(&layer.bias)) {
        *sum = f64::from(bias);
    }
    for (panel, lines) in layer.weights.chunks_exact(layer.inputs).enumerate() {
        let columns = panel * LANES..((panel + 1) * LANES).min(layer.outputs);
        for (input, line) in lines.iter().enumerate() {
            add_multiple(values.value[input], &line.0, &mut sums.value[columns.clone()]);
            add_multiple(values.rate[input], &line.0, &mut sums.rate[columns.clone()]);
        }
    }
    sums
}

fn activated(layer: &Hidden, sums: &Moving) -> Moving {
    let f = layer.activation;
    Moving {
        value: sums.value.iter().map(|&z| f.value(z)).collect(),
        rate: sums.value.iter().zip(&sums.rate).map(|(&z, rate)| f.slope(z) * rate).collect(),
    }
}

/// From the gradient of a layer's values to that of its inputs.
fn through_layer(layer: &Hidden, sums: &Moving, gradient: &Moving) -> Moving {
    let f = layer.activation;
    let mut of_sums = gradient.clone();
    for unit in 0..layer.outputs {
        let z = sums.value[unit];
        of_sums.value[unit] = gradient.value[unit] * f.slope(z);
        of_sums.rate[unit] = gradient.rate[unit] * f.slope(z)
            + gradient.value[unit] * f.curvature(z) * sums.rate[unit];
    }
    let mut of_inputs = Moving::zeros(layer.inputs);
    for (panel, lines) in layer.weights.chunks_exact(layer.inputs).enumerate() {
        let columns = panel * LANES..((panel + 1) * LANES).min(layer.outputs);
        for (input, line) in lines.iter().enumerate() {
            of_inputs.value[input] += dot(&line.0, &of_sums.value[columns.clone()]);
            of_inputs.rate[input] += dot(&line.0, &of_sums.rate[columns.clone()]);
        }
    }
    of_inputs
}

/// `dm/dz`, and its derivative along the direction.
fn cotangents(output: Output, logits: &Moving) -> Moving {
    match output {
        Output::Sigmoid { favourable } => {
            let sign = if favourable { 1.0 } else { -1.0 };
            let m = sigmoid(sign * logits.value[0]);
            let slope = m * (1.0 - m);
            let rate = slope * (1.0 - 2.0 * m) * logits.rate[0];
            Moving { value: vec![sign * slope], rate: vec![rate] }
        }
        Output::Softmax { favourable } => {
            let largest = logits.value.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let shares: Vec<f64> = logits.value.iter().map(|z| (z - largest).exp()).collect();
            let total: f64 = shares.iter().sum();
            let shares: Vec<f64> = shares.iter().map(|share| share / total).collect();
            let mean: f64 = shares.iter().zip(&logits.rate).map(|(p, rate)| p * rate).sum();
            // p'_j = p_j (z'_j - sum_i p_i z'_i)
            let rate = |class: usize| shares[class] * (logits.rate[class] - mean);
            let own = |class: usize| f64::from(u8::from(class == favourable));
            let classes = 0..shares.len();
            Moving {
                value: classes
                    .clone()
                    .map(|class| shares[favourable] * (own(class) - shares[class]))
                    .collect(),
                rate: classes
                    .map(|class| {
                        rate(favourable) * (own(class) - shares[class])
                            - shares[favourable] * rate(class)
                    })
                    .collect(),
            }
        }
    }
}

/// Over the length of the vector, since rows of weights are padded.
fn dot(weights: &[f32], vector: &[f64]) -> f64 {
    weights.iter().zip(vector).map(|(&weight, value)| f64::from(weight) * value).sum()
}

fn add_multiple(factor: f64, weights: &[f32], sums: &mut [f64]) {
    for (sum, &weight) in sums.iter_mut().zip(weights) {
        *sum += factor * f64::from(weight);
    }
}
