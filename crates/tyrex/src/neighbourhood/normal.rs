//! The standard normal distribution.

/// `Phi(x)`
pub(crate) fn cumulative(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// `Phi^-1(p)`: the `x` with `Phi(x) = p`; minus or plus infinity at 0 and 1, not a number
/// outside.
///
/// Newton's steps on `ln Phi`, which is concave, so that far out in the tail they are as
/// quick as in the middle; kept inside the bracket they shrink.
pub(crate) fn quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    if p > 0.5 {
        // The lower tail keeps its digits.
        return -quantile(1.0 - p);
    }
    let (mut low, mut high) = (-38.5_f64, 0.0_f64);
    let mut x = -(-2.0 * p.ln()).sqrt().min(37.5);
    for _ in 0..100 {
        let below = cumulative(x);
        if below > p {
            high = x;
        } else {
            low = x;
        }
        let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let next = x - (below.ln() - p.ln()) * below / density;
        let next = if next > low && next < high { next } else { 0.5 * (low + high) };
        if (next - x).abs() <= 1e-15 * x.abs().max(1e-3) {
            return next;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_undoes_the_cumulative() {
        for p in [1e-300, 1e-20, 1e-6, 0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999_999] {
            let x = quantile(p);
            assert!((cumulative(x) / p - 1.0).abs() < 1e-11, "{p}: {x}");
        }
        // scipy.stats.norm.ppf
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-13);
        assert!((quantile(1e-9) + 5.997_807_015_007_687).abs() < 1e-11);
        assert!(quantile(-0.1).is_nan() && quantile(f64::NAN).is_nan());
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
    }
}
