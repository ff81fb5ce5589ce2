//! Exact bounds against scipy's, and against what they promise.
//!
//! `golden/statistics.py` made the numbers.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use super::{
    Proportion, beta_quantile, betting, binomial_cumulative, fisher_exact, hoeffding_bentkus, holm,
    incomplete_beta, student_quantile,
};

fn golden() -> BTreeMap<String, Vec<Vec<f64>>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/statistics.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Within 1e-9 of the expected number, relative to it; scipy gives 0 for the tiniest.
fn agree(got: f64, expected: f64, case: &[f64]) {
    let tolerance = 1e-9 * expected.abs() + 1e-250;
    assert!((got - expected).abs() <= tolerance, "{case:?}: {got:e}, not {expected:e}");
}

#[test]
fn agree_with_scipy() {
    let golden = golden();
    for case in &golden["incomplete_beta"] {
        agree(incomplete_beta(case[0], case[1], case[2]), case[3], case);
    }
    for case in &golden["beta_quantile"] {
        agree(beta_quantile(case[0], case[1], case[2]), case[3], case);
    }
    for case in &golden["binomial"] {
        agree(binomial_cumulative(case[0] as usize, case[1] as usize, case[2]), case[3], case);
    }
    for case in &golden["bounds"] {
        let proportion = Proportion::new(case[0] as usize, case[1] as usize).unwrap();
        let alpha = case[2];
        agree(proportion.lower(alpha).unwrap(), case[3], case);
        agree(proportion.upper(alpha).unwrap(), case[4], case);
        let (low, high) = proportion.between(alpha).unwrap();
        agree(low, case[5], case);
        agree(high, case[6], case);
        agree(proportion.posterior_lower(alpha).unwrap(), case[7], case);
    }
    for case in &golden["hoeffding_bentkus"] {
        agree(hoeffding_bentkus(case[0], case[1] as usize, case[2]).unwrap(), case[3], case);
    }
    for case in &golden["student"] {
        agree(student_quantile(case[0], case[1]).unwrap(), case[2], case);
    }
    for case in &golden["fisher"] {
        let group = |at: usize| Proportion::new(case[at] as usize, case[at + 1] as usize).unwrap();
        agree(fisher_exact(group(0), group(2)), case[4], case);
        agree(fisher_exact(group(2), group(0)), case[4], case);
    }
    for case in &golden["holm"] {
        for (got, expected) in holm(&case[..3]).into_iter().zip(&case[3..]) {
            agree(got, *expected, case);
        }
    }
    let sizes: Vec<usize> = golden.values().map(Vec::len).collect();
    assert!(sizes.iter().all(|&size| size > 100), "{sizes:?}");
}

#[test]
fn the_sizes_of_ensembles_that_are_known() {
    // With no dissent the lower bound is alpha^(1/n): 29, 59 and 299 models for .90, .95, .99.
    for (models, target) in [(29, 0.90), (59, 0.95), (299, 0.99)] {
        let lower = |n: usize| Proportion::new(n, n).unwrap().lower(0.05).unwrap();
        assert!(lower(models) >= target && lower(models - 1) < target, "{models}");
        agree(lower(models), 0.05_f64.powf(1.0 / models as f64), &[target]);
    }
    // The p-value of no loss at all is (1 - level)^n.
    agree(hoeffding_bentkus(0.0, 59, 0.05).unwrap(), 0.95_f64.powi(59), &[]);
    // 3/59 times 59 is a little more than 3: it still counts as 3 losses.
    let mean = 3.0 / 59.0;
    let bentkus = std::f64::consts::E * binomial_cumulative(3, 59, 0.3);
    assert!(hoeffding_bentkus(mean, 59, 0.3).unwrap() <= bentkus);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let message = |result: crate::Result<f64>| result.unwrap_err().to_string();
    let half = Proportion::new(1, 2).unwrap();
    for (got, expected) in [
        (message(half.lower(0.0)), "parameter `alpha` is 0, expected a number between 0 and 1"),
        (message(half.upper(1.0)), "parameter `alpha` is 1, expected a number between 0 and 1"),
        (
            message(half.posterior_lower(f64::NAN)),
            "parameter `alpha` is NaN, expected a number between 0 and 1",
        ),
        (
            message(hoeffding_bentkus(1.5, 3, 0.1)),
            "parameter `loss` is 1.5, expected a mean between 0 and 1",
        ),
        (
            message(hoeffding_bentkus(0.5, 3, 1.0)),
            "parameter `level` is 1, expected a number between 0 and 1",
        ),
        (
            Proportion::new(3, 2).unwrap_err().to_string(),
            "parameter `successes` is 3, expected at most 2 trials",
        ),
    ] {
        assert_eq!(got, expected);
    }
    for (x, a, b) in [(f64::NAN, 1.0, 1.0), (0.5, 0.0, 1.0), (0.5, 1.0, f64::INFINITY)] {
        assert!(incomplete_beta(x, a, b).is_nan() && beta_quantile(x, a, b).is_nan());
    }
    assert!(beta_quantile(1.1, 1.0, 1.0).is_nan() && binomial_cumulative(1, 2, -0.1).is_nan());
    // No trials, no knowledge.
    let nothing = Proportion::new(0, 0).unwrap();
    assert_eq!(nothing.between(0.1).unwrap(), (0.0, 1.0));
    assert_eq!(hoeffding_bentkus(0.0, 0, 0.1).unwrap(), 1.0);
}

#[test]
fn a_bet_on_shares_pays_as_they_exceed_the_level() {
    let p = |shares: &[f64], level| betting(shares, level).unwrap();
    assert!((p(&[1.0; 59], 0.95) - 0.95_f64.powi(59)).abs() < 1e-12);
    assert!((p(&[0.9, 0.8], 0.6) - 0.36 / 0.72).abs() < 1e-12);
    assert_eq!(p(&[0.5, 0.6], 0.9), 1.0);
    assert_eq!(p(&[1.0, 0.0, 1.0], 0.1), 1.0);
    assert_eq!(p(&[], 0.5), 1.0);
    for (shares, level) in [(&[1.1][..], 0.5), (&[f64::NAN], 0.5), (&[0.5], 0.0), (&[0.5], 1.0)] {
        assert!(betting(shares, level).is_err(), "{shares:?} {level}");
    }
}

proptest! {
    #[test]
    fn the_quantile_undoes_the_function(
        p in 1e-6..0.999_999_f64, a in 0.3..300.0_f64, b in 0.3..300.0_f64,
    ) {
        let x = beta_quantile(p, a, b);
        prop_assert!((0.0..=1.0).contains(&x));
        // Where x is next to 1 its last digit is worth more than the tolerance.
        let digit = incomplete_beta((x + 1e-15).min(1.0), a, b) - incomplete_beta(x - 1e-15, a, b);
        prop_assert!((incomplete_beta(x, a, b) - p).abs() <= 1e-10 * p + digit);
    }

    #[test]
    fn the_two_tails_are_one(x in 0.0..1.0_f64, a in 0.3..300.0_f64, b in 0.3..300.0_f64) {
        let total = incomplete_beta(x, a, b) + incomplete_beta(1.0 - x, b, a);
        prop_assert!((total - 1.0).abs() < 1e-9, "{}", total);
    }

    #[test]
    fn a_bound_covers_as_often_as_it_says(
        n in 1..60_usize, p in 0.0..1.0_f64, alpha in 0.01..0.5_f64,
    ) {
        // Exactly: the probability of all samples whose bound is wrong.
        let probability =
            |k: usize| binomial_cumulative(k, n, p) - if k == 0 { 0.0 } else { binomial_cumulative(k - 1, n, p) };
        let (mut above, mut below) = (0.0, 0.0);
        for successes in 0..=n {
            let proportion = Proportion::new(successes, n).unwrap();
            if proportion.lower(alpha).unwrap() > p {
                above += probability(successes);
            }
            if proportion.upper(alpha).unwrap() < p {
                below += probability(successes);
            }
        }
        prop_assert!(above <= alpha + 1e-9 && below <= alpha + 1e-9, "{} {}", above, below);
    }
}
