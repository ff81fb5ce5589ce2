//! Functions of one number without branches, so that loops over them become vectors.
//!
//! Each is within a few units in the last place of the true value (tested), and gives the
//! same bits on every machine, which the system's mathematics library does not promise.
#![allow(clippy::inline_always)] // they must be inlined into loops that have the vector features

/// `exp(x)`: `2^n exp(r)` with `|r| <= ln 2 / 2`, and Taylor's series for `exp(r)`, whose
/// remainder there is below `6e-9`. Results below the normal numbers or above the finite
/// ones stop at about `1e-38` and `2e38`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let series = (1.0_f32 / 5040.0)
        .mul_add(r, 1.0 / 720.0)
        .mul_add(r, 1.0 / 120.0)
        .mul_add(r, 1.0 / 24.0)
        .mul_add(r, 1.0 / 6.0)
        .mul_add(r, 0.5)
        .mul_add(r, 1.0)
        .mul_add(r, 1.0);
    f32::from_bits(series.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// `1 / (1 + exp(-x))`
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `tanh(x)`: Taylor's series near zero, `1 - 2 / (exp(2|x|) + 1)` elsewhere.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let s = x * x;
    let series = (21_844.0_f32 / 6_081_075.0)
        .mul_add(s, -1382.0 / 155_925.0)
        .mul_add(s, 62.0 / 2835.0)
        .mul_add(s, -17.0 / 315.0)
        .mul_add(s, 2.0 / 15.0)
        .mul_add(s, -1.0 / 3.0);
    let near = (series * s).mul_add(x, x);
    let far = (1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0)).copysign(x);
    if x.abs() < 0.35 { near } else { far }
}

/// `ln(1 + x)` for `0 <= x <= 1`: `2 artanh(s)` with `s = x / (2 + x) <= 1/3`, by its series,
/// whose remainder there is below `1e-9`.
#[inline(always)]
pub(super) fn ln_1p_unit(x: f32) -> f32 {
    let s = x / (2.0 + x);
    let t = s * s;
    let series = (1.0_f32 / 17.0)
        .mul_add(t, 1.0 / 15.0)
        .mul_add(t, 1.0 / 13.0)
        .mul_add(t, 1.0 / 11.0)
        .mul_add(t, 1.0 / 9.0)
        .mul_add(t, 1.0 / 7.0)
        .mul_add(t, 1.0 / 5.0)
        .mul_add(t, 1.0 / 3.0);
    2.0 * (series * t).mul_add(s, s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest distance from the truth, relative to the truth or to `floor`.
    fn worst(f: fn(f32) -> f32, truth: fn(f64) -> f64, low: f32, high: f32, floor: f64) -> f64 {
        let steps = 200_000;
        (0..=steps)
            .map(|i| {
                let x = low + (high - low) * i as f32 / steps as f32;
                let expected = truth(f64::from(x));
                (f64::from(f(x)) - expected).abs() / expected.abs().max(floor)
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_within_a_few_units_in_the_last_place() {
        // One unit in the last place is 6e-8 to 1.2e-7, relative.
        assert!(worst(exp, f64::exp, -87.0, 88.0, 0.0) < 2e-7);
        assert!(worst(sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 80.0, 0.0) < 4e-7);
        assert!(worst(ln_1p_unit, f64::ln_1p, 0.0, 1.0, 1e-30) < 2e-7);
        assert!(worst(tanh, f64::tanh, -12.0, 12.0, 1e-30) < 4e-7);
    }

    #[test]
    fn extremes_stay_finite_and_ordered() {
        for x in [f32::MIN, -1e9, -100.0, 100.0, 1e9, f32::MAX] {
            assert!(exp(x).is_finite());
            assert!((0.0..=1.0).contains(&sigmoid(x)));
            assert!((-1.0..=1.0).contains(&tanh(x)));
        }
        assert_eq!(sigmoid(f32::MAX), 1.0);
        assert_eq!(tanh(0.0), 0.0);
        assert!(exp(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan() && tanh(f32::NAN).is_nan());
    }
}
