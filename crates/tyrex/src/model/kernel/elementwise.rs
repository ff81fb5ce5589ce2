//! Loops over numbers that do not meet: activations and Adam.

#![allow(clippy::inline_always)] // they must be inlined into loops that have the vector features

use super::math::{exp, sigmoid, tanh};
use super::{LANES, Line};
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
    (z.max(0.0) + libm::log1pf(exp(-z.abs())), sigmoid(z))
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
        for (a, b) in a.iter_mut().zip(b) {
            for lane in 0..LANES {
                a.0[lane] *= b.0[lane];
            }
        }
    }
}

dispatched! {
    /// `gradient <- gradient where the unit was on, else 0`: the slope of ReLU, from its value.
    pub(crate) fn relu_slope(gradients: &mut [Line], values: &[Line]) {
        for (gradient, value) in gradients.iter_mut().zip(values) {
            for lane in 0..LANES {
                gradient.0[lane] = if value.0[lane] > 0.0 { gradient.0[lane] } else { 0.0 };
            }
        }
    }
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
    pub(crate) fn adam(
        step: AdamStep,
        weights: &mut [Line],
        gradients: &[Line],
        first: &mut [Line],
        second: &mut [Line],
    ) {
        let lines = weights.iter_mut().zip(gradients).zip(first.iter_mut().zip(second));
        for ((weight, gradient), (first, second)) in lines {
            for lane in 0..LANES {
                let w = weight.0[lane];
                let g = step.decay.mul_add(w, gradient.0[lane]);
                let m = (1.0 - step.beta1).mul_add(g - first.0[lane], first.0[lane]);
                let v = (1.0 - step.beta2).mul_add(g.mul_add(g, -second.0[lane]), second.0[lane]);
                first.0[lane] = m;
                second.0[lane] = v;
                weight.0[lane] = w - step.rate * m / (v.sqrt() + step.epsilon);
            }
        }
    }
}
