//! Element-wise loops: activations and Adam.

#![allow(clippy::inline_always)] // they must be inlined into loops that have the vector features

use super::math::{exp, ln_1p_unit, sigmoid, tanh};
use super::{LANES, Line, flat, flat_mut};
use crate::model::Activation;

/// Value and slope of an activation at one sum.
type ValueAndSlope = (f32, f32);

#[inline(always)]
fn relu(z: f32) -> ValueAndSlope {
    (if z > 0.0 { z } else { 0.0 }, if z > 0.0 { 1.0 } else { 0.0 })
}

#[inline(always)]
fn leaky_relu(z: f32, slope: f32) -> ValueAndSlope {
    if z > 0.0 { (z, 1.0) } else { (slope * z, slope) }
}

#[inline(always)]
fn elu(z: f32, alpha: f32) -> ValueAndSlope {
    // Near zero exp(z) - 1 loses its digits; there the series has them.
    let series = (1.0_f32 / 120.0)
        .mul_add(z, 1.0 / 24.0)
        .mul_add(z, 1.0 / 6.0)
        .mul_add(z, 0.5)
        .mul_add(z, 1.0)
        * z;
    let e = exp(z);
    let minus_one = if z > -0.1 { series } else { e - 1.0 };
    if z > 0.0 { (z, 1.0) } else { (alpha * minus_one, alpha * e) }
}

/// `z Phi(z)`, slope `Phi(z) + z phi(z)`.
#[inline(always)]
fn gelu(z: f32) -> ValueAndSlope {
    const INVERSE_SQRT_2_PI: f32 = 0.398_942_3;
    // The complement keeps its digits where Phi is small.
    let phi = 0.5 * libm::erfcf(-z * std::f32::consts::FRAC_1_SQRT_2);
    (z * phi, (z * INVERSE_SQRT_2_PI).mul_add(exp(-0.5 * z * z), phi))
}

#[inline(always)]
fn gelu_tanh(z: f32) -> ValueAndSlope {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    const CUBIC: f32 = 0.044_715;
    let s = z * z;
    let t = tanh(SQRT_2_OVER_PI * z * CUBIC.mul_add(s, 1.0));
    let inner_slope = SQRT_2_OVER_PI * (3.0 * CUBIC).mul_add(s, 1.0);
    (0.5 * z * (1.0 + t), 0.5 * (1.0 + t) + 0.5 * z * (1.0 - t * t) * inner_slope)
}

#[inline(always)]
fn tanh_and_slope(z: f32) -> ValueAndSlope {
    let t = tanh(z);
    (t, 1.0 - t * t)
}

#[inline(always)]
fn sigmoid_and_slope(z: f32) -> ValueAndSlope {
    let p = sigmoid(z);
    (p, p * (1.0 - p))
}

/// `ln(1 + exp(z)) = max(z, 0) + ln(1 + exp(-|z|))`, which cannot overflow.
#[inline(always)]
fn softplus(z: f32) -> ValueAndSlope {
    (z.max(0.0) + ln_1p_unit(exp(-z.abs())), sigmoid(z))
}

#[inline(always)]
fn silu(z: f32) -> ValueAndSlope {
    let p = sigmoid(z);
    (z * p, (z * (1.0 - p)).mul_add(p, p))
}

/// Calls `$run` with the function of the activation, so that each has a loop of its own.
macro_rules! with_activation {
    ($activation:expr, $run:ident, $($args:expr),*) => {
        match $activation {
            Activation::Identity => $run($($args),*, |z| (z, 1.0)),
            Activation::Relu => $run($($args),*, relu),
            Activation::LeakyRelu { slope } => $run($($args),*, |z| leaky_relu(z, slope)),
            Activation::Elu { alpha } => $run($($args),*, |z| elu(z, alpha)),
            Activation::Gelu => $run($($args),*, gelu),
            Activation::GeluTanh => $run($($args),*, gelu_tanh),
            Activation::Tanh => $run($($args),*, tanh_and_slope),
            Activation::Sigmoid => $run($($args),*, sigmoid_and_slope),
            Activation::Softplus => $run($($args),*, softplus),
            Activation::Silu => $run($($args),*, silu),
        }
    };
}

dispatched! {
    /// `z <- activation(z)`
    pub(crate) fn activate(activation: Activation, sums: &mut [f32]) {
        #[inline(always)]
        fn run(sums: &mut [f32], f: impl Fn(f32) -> ValueAndSlope) {
            for z in sums {
                *z = f(*z).0;
            }
        }
        with_activation!(activation, run, sums);
    }
}

dispatched! {
    /// `z <- activation(z)` and `slope <- activation'(z)`
    pub(crate) fn activate_with_slope(activation: Activation, sums: &mut [f32], slopes: &mut [f32]) {
        #[inline(always)]
        fn run(sums: &mut [f32], slopes: &mut [f32], f: impl Fn(f32) -> ValueAndSlope) {
            for (z, slope) in sums.iter_mut().zip(slopes) {
                (*z, *slope) = f(*z);
            }
        }
        with_activation!(activation, run, sums, slopes);
    }
}

dispatched! {
    /// `a <- a * b`
    pub(crate) fn multiply(a: &mut [Line], b: &[Line]) {
        for (a, b) in flat_mut(a).iter_mut().zip(flat(b)) {
            *a *= b;
        }
    }
}

dispatched! {
    /// `a <- a + b`
    pub(crate) fn add(a: &mut [Line], b: &[Line]) {
        for (a, b) in flat_mut(a).iter_mut().zip(flat(b)) {
            *a += b;
        }
    }
}

dispatched! {
    /// `sums[r] = row + shifts[r]`, with `width` lines to a row.
    pub(crate) fn add_to_rows(width: usize, row: &[Line], shifts: &[Line], sums: &mut [Line]) {
        let (row, width) = (flat(row), width * LANES);
        let rows = flat(shifts).chunks_exact(width).zip(flat_mut(sums).chunks_exact_mut(width));
        for (shift, sum) in rows {
            for ((sum, shift), base) in sum.iter_mut().zip(shift).zip(row) {
                *sum = base + shift;
            }
        }
    }
}

dispatched! {
    /// `gradient <- gradient where the unit was on, else 0`: the slope of ReLU, from its value.
    pub(crate) fn relu_slope(gradients: &mut [Line], values: &[Line]) {
        for (gradient, &value) in flat_mut(gradients).iter_mut().zip(flat(values)) {
            *gradient = if value > 0.0 { *gradient } else { 0.0 };
        }
    }
}

dispatched! {
    /// The cross-entropy of a sigmoid and labels 0 or 1, each row times its weight:
    /// `loss = w (max(s, 0) + ln(1 + exp(-|z|)))` with `s = z` for label 0 and `-z` for 1.
    /// The logits become `w share (sigmoid(z) - y)`: the loss' derivative, times `share`.
    pub(crate) fn sigmoid_cross_entropy(
        share: f32,
        labels: &[f32],
        weights: &[f32],
        logits: &mut [f32],
        losses: &mut [f32],
    ) {
        let rows = labels.iter().zip(weights).zip(logits.iter_mut().zip(losses));
        for ((&y, &w), (logit, loss)) in rows {
            let z = *logit;
            let against = (-2.0_f32).mul_add(y, 1.0) * z;
            *loss = w * (against.max(0.0) + ln_1p_unit(exp(-z.abs())));
            *logit = w * share * (sigmoid(z) - y);
        }
    }
}

/// `x`, or 0 if it is smaller than `least`.
#[inline(always)]
fn or_zero(x: f32, least: f32) -> f32 {
    if x.abs() < least { 0.0 } else { x }
}

/// The numbers of one Adam step that are the same for all weights.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdamStep {
    /// `rate * sqrt(1 - beta2^t) / (1 - beta1^t)`
    pub(crate) rate: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) epsilon: f32,
    /// Added to the gradient times the weight: twice the L2 penalty.
    pub(crate) decay: f32,
}

dispatched! {
    /// One step of Adam, in Keras' form:
    /// `m += (1 - beta1)(g - m)`, `v += (1 - beta2)(g^2 - v)`, `w -= rate m / (sqrt(v) + epsilon)`.
    ///
    /// Averages that have decayed to almost 0 are set to 0: they could not change a weight, but as
    /// subnormal numbers they would slow the loop down threefold.
    pub(crate) fn adam(
        step: AdamStep,
        weights: &mut [Line],
        gradients: &[Line],
        first: &mut [Line],
        second: &mut [Line],
    ) {
        let (weights, gradients) = (flat_mut(weights), flat(gradients));
        let count = weights.len();
        let (gradients, first) = (&gradients[..count], &mut flat_mut(first)[..count]);
        let second = &mut flat_mut(second)[..count];
        let (keep1, keep2) = (1.0 - step.beta1, 1.0 - step.beta2);
        for i in 0..count {
            let g = or_zero(step.decay.mul_add(weights[i], gradients[i]), 1e-16);
            let m = keep1.mul_add(g - first[i], first[i]);
            let v = keep2.mul_add(g.mul_add(g, -second[i]), second[i]);
            let (m, v) = (or_zero(m, 1e-20), or_zero(v, 1e-30));
            first[i] = m;
            second[i] = v;
            weights[i] -= step.rate * m / (v.sqrt() + step.epsilon);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{forced::on_each_isa, zeros};
    use super::*;

    #[test]
    fn values_and_slopes_are_those_of_the_definition() {
        let sums: Vec<f32> = (-2000..2000).map(|i| i as f32 * 0.01 + 0.003).collect();
        for activation in Activation::ALL {
            let results = on_each_isa(|| {
                let (mut values, mut slopes) = (sums.clone(), vec![0.0; sums.len()]);
                activate_with_slope(activation, &mut values, &mut slopes);
                let mut alone = sums.clone();
                activate(activation, &mut alone);
                assert_eq!(values, alone);
                (values, slopes)
            });
            for pair in results.windows(2) {
                assert_eq!(pair[0].1, pair[1].1, "{activation:?}, {:?} {:?}", pair[0].0, pair[1].0);
            }
            let (values, slopes) = &results[0].1;
            for ((&z, &value), &slope) in sums.iter().zip(values).zip(slopes) {
                let z = f64::from(z);
                let expected = activation.value(z);
                // A few units in the last place of the value or of the sum it came from.
                let tolerance = 1e-6 * expected.abs() + 3e-7;
                assert!((f64::from(value) - expected).abs() < tolerance, "{activation:?} at {z}");
                let expected = activation.slope(z);
                assert!((f64::from(slope) - expected).abs() < 1e-6, "{activation:?}' at {z}");
            }
        }
    }

    #[test]
    fn adam_follows_its_formula_and_forgets_what_has_faded() {
        let step = AdamStep { rate: 0.01, beta1: 0.9, beta2: 0.999, epsilon: 1e-7, decay: 0.02 };
        let start = |value: f32| vec![Line([value; 16]); 3];
        for (_, (weights, first, second)) in on_each_isa(|| {
            let (mut w, mut m, mut v) = (start(0.5), start(0.25), start(0.0625));
            adam(step, &mut w, &start(-0.125), &mut m, &mut v);
            (w, m, v)
        }) {
            let g = -0.125 + 0.02 * 0.5;
            let m = 0.25 + 0.1 * (g - 0.25);
            let v: f64 = 0.0625 + 0.001 * (g * g - 0.0625);
            let w = 0.5 - 0.01 * m / (v.sqrt() + 1e-7);
            assert!((f64::from(weights[1].0[3]) - w).abs() < 1e-7);
            assert!((f64::from(first[1].0[3]) - m).abs() < 1e-7);
            assert!((f64::from(second[1].0[3]) - v).abs() < 1e-7);
        }
        let (mut w, mut m, mut v) = (start(1.0), start(1e-19), start(1e-29));
        let silent = AdamStep { decay: 0.0, ..step };
        for _ in 0..5000 {
            adam(silent, &mut w, &zeros(3), &mut m, &mut v);
        }
        assert_eq!((m, v, w), (zeros(3), zeros(3), start(1.0)));
    }

    #[test]
    fn cross_entropy_and_its_derivative_are_those_of_the_definition() {
        for z in [-40.0_f32, -3.0, -0.2, 0.0, 0.7, 5.0, 60.0] {
            for y in [0.0_f32, 1.0] {
                let (mut logits, mut losses) = ([z], [0.0]);
                sigmoid_cross_entropy(0.5, &[y], &[3.0], &mut logits, &mut losses);
                let loss = |z: f64| {
                    let against = if y == 1.0 { -z } else { z };
                    3.0 * (against.max(0.0) + (-against.abs()).exp().ln_1p())
                };
                let z = f64::from(z);
                assert!((f64::from(losses[0]) - loss(z)).abs() < 1e-5 * loss(z).max(0.1));
                let slope = 0.5 * (loss(z + 1e-5) - loss(z - 1e-5)) / 2e-5;
                assert!((f64::from(logits[0]) - slope).abs() < 1e-5, "{} {slope}", logits[0]);
            }
        }
    }
}
