//! The share of promises that updates keep, bounded from below after every update.
//!
//! `K_t(m) = mean over u of prod_{i <= t} (1 + u (s_i - m) / m)`
//!
//! `s_i` in `[0, 1]` is the share of promises that update `i` keeps. One update is one observation:
//! the promises that it judges are judged by the same model, so they are not independent. `u / m`
//! is the stake of a bet on higher shares, and `u` runs over the `STAKES` midpoints of equal parts
//! of `(0, 1)`. The bound is `L_t = sup { m : K_t(m) >= 1/alpha }`.
//!
//! **Claim.** If the expected share of every update, given the earlier ones, is at most `mu`, then
//! `P( L_t > mu for some t ) <= alpha`. The bound holds after every update at once, so it may be
//! computed after each of them, and the number of updates may depend on it.
//!
//! **Proof.** At `m = mu` the conditional expectation of every factor is at most 1 and no factor is
//! negative, since `u < 1`. So for each `u` the product is a supermartingale that starts at 1, and
//! so is the mean of the products. By Ville's inequality it reaches `1/alpha` with a probability of
//! at most `alpha`. Every factor `1 - u + u s_i / m` falls with `m`, so `L_t > mu` implies
//! `K_t(mu) >= 1/alpha`.
//!
//! The proof holds for any set of stakes in `(0, 1)`. The sum is not an approximation of the integral
//! that has to be bounded: a coarser set gives another valid bound, which is slightly lower.

use crate::error::{Error, Result};

/// The number of stakes. With 256 of them the bound after 96 updates that keep everything differs
/// from that of the integral by less than 0.0002.
const STAKES: usize = 256;
/// Factors that are multiplied before a logarithm is taken. A factor is between `1 / (2 STAKES)` and
/// `2^HALVINGS`, so the product neither overflows nor vanishes.
const BLOCK: usize = 16;
/// Steps of the bisection.
const HALVINGS: u32 = 50;
/// The rounding of `ln K`, added to its limit, so that rounding cannot raise the bound.
const ROUNDING: f64 = 1e-9;

/// The shares of promises that successive updates keep.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeptShares {
    shares: Vec<f64>,
}

impl KeptShares {
    /// Shares between 0 and 1, one for each update.
    pub fn new(shares: Vec<f64>) -> Result<Self> {
        if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(Error::param("share", share, "a number between 0 and 1"));
        }
        Ok(Self { shares })
    }

    /// `ln K_t(m)`, for a positive `m`.
    pub fn log_capital(&self, m: f64) -> f64 {
        let ratios: Vec<f64> = self.shares.iter().map(|share| share / m).collect();
        let logs: Vec<f64> = (0..STAKES)
            .map(|index| {
                let stake = (index as f64 + 0.5) / STAKES as f64;
                let product = |block: &[f64]| {
                    block.iter().map(|ratio| 1.0 - stake + stake * ratio).product::<f64>()
                };
                ratios.chunks(BLOCK).map(|block| libm::log(product(block))).sum()
            })
            .collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| libm::exp(log - largest)).sum();
        largest + libm::log(sum / STAKES as f64)
    }

    /// `L_t` at a confidence of `1 - alpha`; 0 without updates.
    pub fn lower(&self, confidence: f64) -> Result<f64> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(Error::param("confidence", confidence, "a number between 0 and 1"));
        }
        let limit = -libm::log1p(-confidence) + ROUNDING;
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.log_capital(middle) >= limit { low = middle } else { high = middle }
        }
        Ok(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(shares: &[f64]) -> f64 {
        KeptShares::new(shares.to_vec()).unwrap().lower(0.95).unwrap()
    }

    /// `K = ((1 + a)^(t + 1) - 1) / (a (t + 1))` with `a = 1/m - 1`, if all is kept.
    #[test]
    fn without_a_broken_promise_the_bound_is_that_of_the_closed_form() {
        for (updates, rounded) in [(6, 0.49), (12, 0.69), (24, 0.83), (48, 0.91), (96, 0.95)] {
            let capital = |m: f64| {
                let (a, power) = (1.0 / m - 1.0, updates + 1);
                ((1.0 + a).powi(power) - 1.0) / (a * f64::from(power))
            };
            let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if capital(middle) >= 20.0 { low = middle } else { high = middle }
            }
            let bound = lower(&vec![1.0; updates as usize]);
            assert!(bound <= low && low - bound < 2e-4, "{updates}: {bound} {low}");
            assert!((bound - rounded).abs() < 0.006, "{updates}: {bound}");
        }
    }

    /// The capital by plain products and a plain sum, and the bound by a scan.
    #[test]
    fn the_bound_is_that_of_a_brute_force_scan() {
        let plain = |shares: &[f64], m: f64| {
            let mut sum = 0.0;
            for index in 0..STAKES {
                let bet = (index as f64 + 0.5) / STAKES as f64 / m;
                sum += shares.iter().map(|share| 1.0 + bet * (share - m)).product::<f64>();
            }
            sum / STAKES as f64
        };
        let mut rng = crate::seed::Seed(3).rng();
        for count in [0, 1, 2, 5, 17, 40] {
            let shares: Vec<f64> = (0..count)
                .map(|_| rand::RngExt::random_range(&mut rng, 0.0..=1.0))
                .map(|share: f64| if share < 0.2 { 0.0 } else { share.sqrt() })
                .collect();
            let scanned = (1..10_000)
                .map(|step| f64::from(step) / 1e4)
                .filter(|m| plain(&shares, *m) >= 20.0)
                .fold(0.0, f64::max);
            let bound = lower(&shares);
            assert!((-1e-6..1.1e-4).contains(&(bound - scanned)), "{count}: {bound} {scanned}");
            let m = 0.37;
            let kept = KeptShares::new(shares.clone()).unwrap();
            let log = plain(&shares, m).ln();
            assert!((kept.log_capital(m) - log).abs() < 1e-9, "{count}");
        }
    }

    /// By the package confseq: `tests/golden/make_anytime.py`.
    #[test]
    fn another_package_gives_the_same_bounds() {
        let mixed = [0.982, 0.991, 1.0, 1.0, 0.991, 0.991];
        for (shares, bound) in [
            (&[1.0; 12][..], 0.693_871_612_3),
            (&[1.0, 0.5, 0.0], 0.049_205_161_9),
            (&mixed, 0.486_793_986_4),
        ] {
            assert!((lower(shares) - bound).abs() < 1e-8, "{shares:?}: {}", lower(shares));
        }
    }

    #[test]
    fn extreme_shares_have_a_bound() {
        assert_eq!(lower(&[]).to_bits(), 0.0_f64.to_bits());
        assert!(lower(&[0.0; 50]) < 1e-9);
        assert!(lower(&vec![0.0; 5000]) < 1e-9);
        let many = lower(&vec![1.0; 5000]);
        assert!((0.998..1.0).contains(&many), "{many}");
        // A broken update lowers the bound, a kept one raises it, and the order has no effect.
        assert!(lower(&[1.0, 1.0, 0.0]) < lower(&[1.0, 1.0]));
        assert!(lower(&[1.0, 1.0, 1.0]) > lower(&[1.0, 1.0]));
        assert!((lower(&[0.5, 1.0, 0.9]) - lower(&[0.9, 0.5, 1.0])).abs() < 1e-12);
    }

    #[test]
    fn shares_and_confidences_are_checked() {
        for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(KeptShares::new(vec![0.5, share]).is_err(), "{share}");
        }
        for confidence in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(KeptShares::default().lower(confidence).is_err(), "{confidence}");
        }
    }
}
