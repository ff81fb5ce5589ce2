//! The normal distribution, fast.

use std::sync::LazyLock;

/// `Phi` and `phi` are 0 or 1 to double precision beyond.
const FAR: f64 = 8.5;
/// Steps to one.
const STEPS: f64 = 64.0;

/// `Phi(z)` and `phi(z)` at every step.
static NORMAL: LazyLock<Vec<[f64; 2]>> = LazyLock::new(|| {
    let count = (2.0 * FAR * STEPS) as usize + 1;
    let at = |index: usize| {
        let z = index as f64 / STEPS - FAR;
        let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
        [0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2), density]
    };
    (0..count).map(at).collect()
});

/// `Phi(z)` and `phi(z)`, within 1e-14: by Taylor's formula from the nearest step,
/// `Phi(z + d) = Phi(z) + phi(z) sum_i (-1)^(i-1) He_(i-1)(z) d^i / i!`.
#[inline]
pub(super) fn normal(z: f64) -> [f64; 2] {
    if z.abs() >= FAR {
        return [f64::from(u8::from(z > 0.0)), 0.0];
    }
    let step = ((z + FAR) * STEPS + 0.5).floor();
    let (at, d) = (step / STEPS - FAR, z - (step / STEPS - FAR));
    let [cumulative, density] = NORMAL[step as usize];
    let two = at * at;
    let he = [1.0, at, two - 1.0, at * (two - 3.0), (two - 6.0) * two + 3.0];
    let five = at * ((two - 10.0) * two + 15.0);
    let sum = d
        * (he[0]
            - d * (he[1] / 2.0
                - d * (he[2] / 6.0 - d * (he[3] / 24.0 - d * (he[4] / 120.0 - d * five / 720.0)))));
    let slope = he[0]
        - d * (he[1]
            - d * (he[2] / 2.0 - d * (he[3] / 6.0 - d * (he[4] / 24.0 - d * five / 120.0))));
    [cumulative + density * sum, density * slope]
}
