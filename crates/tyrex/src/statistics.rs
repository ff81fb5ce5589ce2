//! Exact statistics of counts: bounds and tests from a number of successes among trials.
//!
//! Everything rests on the regularised incomplete beta function,
//! `I_x(a, b) = 1/B(a, b) integral_0^x t^(a-1) (1-t)^(b-1) dt`, since
//! `P(Bin(n, p) <= k) = I_{1-p}(n - k, k + 1)`.

use crate::error::{Error, Result};

/// The mean of some numbers; `None` if there are none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Terms of the continued fraction before giving up; it needs about the square root of the
/// larger parameter.
const TERMS: usize = 200_000;

/// `I_x(a, b)`: the probability that a `Beta(a, b)` variable is at most `x`.
///
/// Not a number unless `a` and `b` are positive and finite.
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    let is_positive = |v: f64| v > 0.0 && v.is_finite();
    if !is_positive(a) || !is_positive(b) || x.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges quickly below the mean; above it the complement does.
    if x <= (a + 1.0) / (a + b + 2.0) {
        beta_weight(x, a, b) * continued_fraction(x, a, b) / a
    } else {
        1.0 - beta_weight(x, a, b) * continued_fraction(1.0 - x, b, a) / b
    }
}

/// `x^a (1-x)^b / B(a, b)`
///
/// By Stirling's formula with its error `d`, `ln Gamma(z) = (z - 1/2) ln z - z + ln sqrt(2 pi) +
/// d(z)`, the large terms cancel on paper instead of in floating point: with `s = a + b` and
/// `t = x s - a` the logarithm is
/// `a ln(1 + t/a) + b ln(1 - t/b) + 1/2 ln(a b / (2 pi s)) + d(s) - d(a) - d(b)`.
fn beta_weight(x: f64, a: f64, b: f64) -> f64 {
    let s = a + b;
    // Of the two equal forms, the one that loses no digits of a small x or 1 - x.
    let t = if x < 0.5 { x * s - a } else { b - (1.0 - x) * s };
    let from_a = if x < 0.25 * a / s { libm::log(x * s / a) } else { libm::log1p(t / a) };
    let from_b =
        if 1.0 - x < 0.25 * b / s { libm::log((1.0 - x) * s / b) } else { libm::log1p(-t / b) };
    let scale = (a / s * b / (2.0 * std::f64::consts::PI)).sqrt();
    let errors = stirling_error(s) - stirling_error(a) - stirling_error(b);
    scale * libm::exp(a * from_a + b * from_b + errors)
}

/// `ln Gamma(z) - ((z - 1/2) ln z - z + ln sqrt(2 pi))`
fn stirling_error(z: f64) -> f64 {
    if z < 16.0 {
        let half_log_two_pi = 0.918_938_533_204_672_8;
        return libm::lgamma(z) - ((z - 0.5) * libm::log(z) - z + half_log_two_pi);
    }
    // 1/12z - 1/360z^3 + 1/1260z^5 - 1/1680z^7 + 1/1188z^9
    let square = 1.0 / (z * z);
    let tail = 1.0 / 1680.0 - square / 1188.0;
    (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * tail))) / z
}

/// The continued fraction of `I_x(a, b)`, by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for index in 1..TERMS {
        let m = index as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            step = c * d;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

/// The `x` with `I_x(a, b) = p`; not a number where there is none.
///
/// Newton's steps on `ln I` as a function of `ln x`, which is nearly a line in the lower tail;
/// kept inside the bracket they shrink.
pub(crate) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let is_positive = |v: f64| v > 0.0 && v.is_finite();
    if !(0.0..=1.0).contains(&p) || !is_positive(a) || !is_positive(b) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return p;
    }
    let (mut low, mut high) = (0.0, 1.0);
    let mut x = a / (a + b);
    for _ in 0..400 {
        let below = incomplete_beta(x, a, b);
        if below > p {
            high = x;
        } else {
            low = x;
        }
        // d ln I / d ln x = x^a (1-x)^(b-1) / (B I)
        let slope = beta_weight(x, a, b) / ((1.0 - x) * below);
        let next = x * libm::exp((libm::log(p) - libm::log(below)) / slope);
        let next = if next > low && next < high { next } else { 0.5 * (low + high) };
        if (next - x).abs() <= 2e-16 * x {
            return next;
        }
        x = next;
    }
    x
}

/// The `t` with `P(|T| > t) = alpha` for Student's `T` with `degrees` degrees of freedom:
/// `sqrt(degrees (1 - x) / x)` with the `x` for which `I_x(degrees/2, 1/2) = alpha`, since
/// `degrees / (degrees + T^2)` has that beta distribution.
pub(crate) fn student_quantile(alpha: f64, degrees: f64) -> Result<f64> {
    check(alpha)?;
    if !(degrees > 0.0 && degrees.is_finite()) {
        return Err(Error::param("degrees of freedom", degrees, "a positive number"));
    }
    let x = beta_quantile(alpha, 0.5 * degrees, 0.5);
    // With many degrees x is near 1. Then 1 - x has its digits from its own quantile, unless
    // 1 - alpha has even fewer.
    let ratio = if 1.0 - x >= alpha {
        (1.0 - x) / x
    } else {
        let rest = beta_quantile(1.0 - alpha, 0.5, 0.5 * degrees);
        rest / (1.0 - rest)
    };
    Ok((degrees * ratio).sqrt())
}

/// `P(Bin(n, p) <= k)`
pub(crate) fn binomial_cumulative(k: usize, n: usize, p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if k >= n {
        return 1.0;
    }
    // The complement of I_p(k + 1, n - k), so that p itself keeps its digits when it is small.
    let (a, b) = ((k + 1) as f64, (n - k) as f64);
    if p <= 0.0 || p >= 1.0 {
        return 1.0 - p;
    }
    if p <= (a + 1.0) / (a + b + 2.0) {
        1.0 - incomplete_beta(p, a, b)
    } else {
        beta_weight(p, a, b) * continued_fraction(1.0 - p, b, a) / b
    }
}

/// A number of successes among independent trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proportion {
    successes: usize,
    trials: usize,
}

impl Proportion {
    /// `successes` among `trials`.
    pub fn new(successes: usize, trials: usize) -> Result<Self> {
        if successes > trials {
            return Err(Error::param("successes", successes, format!("at most {trials} trials")));
        }
        Ok(Self { successes, trials })
    }

    /// Clopper and Pearson's lower bound: the `p` with `P(Bin(n, p) >= s) = alpha`, 0 if `s = 0`.
    /// It exceeds the true probability in at most a share `alpha` of all samples.
    pub fn lower(self, alpha: f64) -> Result<f64> {
        check(alpha)?;
        let (s, failures) = self.counts();
        Ok(if self.successes == 0 { 0.0 } else { beta_quantile(alpha, s, failures + 1.0) })
    }

    /// Clopper and Pearson's upper bound: the `p` with `P(Bin(n, p) <= s) = alpha`, 1 if `s = n`.
    pub fn upper(self, alpha: f64) -> Result<f64> {
        check(alpha)?;
        let (s, failures) = self.counts();
        Ok(if failures == 0.0 { 1.0 } else { 1.0 - beta_quantile(alpha, failures, s + 1.0) })
    }

    /// Clopper and Pearson's interval: both bounds at `alpha / 2`.
    pub fn between(self, alpha: f64) -> Result<(f64, f64)> {
        check(alpha)?;
        Ok((self.lower(0.5 * alpha)?, self.upper(0.5 * alpha)?))
    }

    /// The `alpha` quantile of the posterior `Beta(s + 1/2, n - s + 1/2)`, that is under
    /// Jeffreys' prior.
    pub(crate) fn posterior_lower(self, alpha: f64) -> Result<f64> {
        check(alpha)?;
        let (s, failures) = self.counts();
        Ok(beta_quantile(alpha, s + 0.5, failures + 0.5))
    }

    /// `s / (n + 1)`: the probability that the next of `n + 1` exchangeable trials succeeds is on
    /// average at least this, over the draw of all of them.
    pub fn predictive(self) -> f64 {
        self.successes as f64 / (self.trials + 1) as f64
    }

    fn counts(self) -> (f64, f64) {
        (self.successes as f64, (self.trials - self.successes) as f64)
    }
}

fn check(alpha: f64) -> Result<()> {
    if alpha > 0.0 && alpha < 1.0 {
        return Ok(());
    }
    Err(Error::param("alpha", alpha, "a number between 0 and 1"))
}

fn check_level(level: f64) -> Result<()> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(Error::param("level", level, "a number between 0 and 1"))
}

/// The p-value of "the expected share is at most `level`", `min(1, prod_i level / s_i)`, from
/// independent shares `s_i` in `[0, 1]`.
///
/// A bet of the whole stake on higher shares turns 1 into `prod_i s_i / level`. If the shares are
/// not higher, its expectation is at most 1, so it exceeds `1/p` with a probability of at most `p`
/// (Markov). Where the shares differ little this needs fewer of them than [`hoeffding_bentkus`]; a
/// single share of 0 makes the p-value 1.
pub(crate) fn betting(shares: &[f64], level: f64) -> Result<f64> {
    if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
        return Err(Error::param("share", share, "a number between 0 and 1"));
    }
    check_level(level)?;
    let logarithm: f64 = shares.iter().map(|share| libm::log(level / share)).sum();
    Ok(libm::exp(logarithm.min(0.0)))
}

/// The p-value of Hoeffding and Bentkus for "the expected loss exceeds `level`":
/// `min( exp(-n h(min(L, level), level)), e P(Bin(n, level) <= ceil(n L)) )`
/// with `h(a, b) = a ln(a/b) + (1-a) ln((1-a)/(1-b))` and `L` the mean of `n` independent
/// losses in `[0, 1]`.
pub(crate) fn hoeffding_bentkus(mean_loss: f64, n: usize, level: f64) -> Result<f64> {
    if !(0.0..=1.0).contains(&mean_loss) {
        return Err(Error::param("loss", mean_loss, "a mean between 0 and 1"));
    }
    check_level(level)?;
    let count = n as f64;
    let least = mean_loss.min(level);
    let relative = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * libm::log(a / b) };
    let divergence = relative(least, level) + relative(1.0 - least, 1.0 - level);
    let hoeffding = libm::exp(-count * divergence);
    // The tolerance restores sums that were whole numbers before the division by n.
    let total = mean_loss * count;
    let whole = total.round();
    let rounding = 4.0 * f64::EPSILON * total;
    let losses = if (total - whole).abs() <= rounding { whole } else { total.ceil() };
    let bentkus = std::f64::consts::E * binomial_cumulative(losses as usize, n, level);
    Ok(hoeffding.min(bentkus).min(1.0))
}

/// Fisher's exact test of two groups, two-sided: the p-value of "a success is as likely in both".
///
/// Given how many successes there are in all, the number `x` in the first group has
/// `P(x) = C(n1, x) C(n2, s - x) / C(n1 + n2, s)`. The p-value is the sum of all `P(x)` that are
/// at most that of the number seen.
pub fn fisher_exact(first: Proportion, second: Proportion) -> f64 {
    /// Equal probabilities computed in two ways differ by less than this.
    const SAME: f64 = 1.0 + 1e-7;
    let (n1, n2) = (first.trials, second.trials);
    let successes = first.successes + second.successes;
    let least = successes.saturating_sub(n2);
    let most = successes.min(n1);
    // P(x + 1) / P(x)
    let ratio = |x: usize| {
        let up = (n1 - x) as f64 * (successes - x) as f64;
        up / ((x + 1) as f64 * (n2 + x + 1 - successes) as f64)
    };
    // Relative to the largest of them no weight overflows, and those that vanish are too small
    // to count.
    let mode = ((n1 + 1) as f64 * (successes + 1) as f64 / (n1 + n2 + 2) as f64) as usize;
    let mode = mode.clamp(least, most);
    let mut weights = vec![0.0; most - least + 1];
    weights[mode - least] = 1.0;
    for x in mode..most {
        weights[x + 1 - least] = weights[x - least] * ratio(x);
    }
    for x in (least..mode).rev() {
        weights[x - least] = weights[x + 1 - least] / ratio(x);
    }
    let seen = weights[first.successes - least] * SAME;
    // The smallest first, so that none of them is lost.
    weights.sort_by(f64::total_cmp);
    let total: f64 = weights.iter().sum();
    let rare: f64 = weights.iter().take_while(|weight| **weight <= seen).sum();
    (rare / total).min(1.0)
}

/// Holm's correction of p-values for multiple tests: the `i`-th smallest of `n` becomes the largest
/// of `(n - j + 1) p_j` over `j <= i`, at most 1.
///
/// Rejecting the hypotheses whose corrected p-value is at most `alpha` keeps the family-wise error
/// rate at most `alpha`, under any dependence between the tests.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max((p_values.len() - rank) as f64 * p_values[index]).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests;
