//! How well scores order rows.

/// `AUC = P(s(x+) > s(x-)) + P(s(x+) = s(x-)) / 2` over all pairs of a favourable and an
/// unfavourable row: the area under the ROC curve, as scikit-learn's `roc_auc_score`.
///
/// 1 if every favourable row has a higher score than every unfavourable one, 0.5 for scores that
/// carry no information. `None` if there is no pair.
#[must_use]
pub fn auc(favourable: &[f32], unfavourable: &[f32]) -> Option<f64> {
    let mut others = unfavourable.to_vec();
    others.sort_unstable_by(f32::total_cmp);
    // Halves of pairs, so that the count is exact.
    let won = |score: &f32| {
        let lower = others.partition_point(|other| other < score);
        let equal = others[lower..].partition_point(|other| other <= score);
        (2 * lower + equal) as u128
    };
    let won: u128 = favourable.iter().map(won).sum();
    let pairs = favourable.len() as f64 * others.len() as f64;
    (pairs > 0.0).then(|| won as f64 / (2.0 * pairs))
}

/// The 99.9 % quantile of the standard normal distribution.
const Z: f64 = 3.090_232_306_167_813;

/// The AUC, and the upper end of its one-sided 99.9 % interval,
/// `AUC + z sqrt((m + n + 1) / (12 m n))`: the deviation is that of scores that carry no information
/// about `m` favourable and `n` unfavourable rows (Wilcoxon, Mann and Whitney).
///
/// If it is below 1/2, the scores rank the rows the wrong way round. Fewer than seven rows of each
/// class cannot show that.
pub(crate) fn upper_end(favourable: &[f32], unfavourable: &[f32]) -> Option<(f64, f64)> {
    let (m, n) = (favourable.len() as f64, unfavourable.len() as f64);
    let area = auc(favourable, unfavourable)?;
    Some((area, area + Z * ((m + n + 1.0) / (12.0 * m * n)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt as _;

    #[test]
    fn the_order_decides_from_all_wrong_to_all_right() {
        assert_eq!(auc(&[0.1, 0.2], &[0.8, 0.3, 0.9]), Some(0.0));
        assert_eq!(auc(&[0.9, 0.81], &[0.8, 0.3, 0.1]), Some(1.0));
        // Five of six pairs, and three of six.
        assert_eq!(auc(&[0.5, 0.3], &[0.2, 0.4, 0.1]), Some(5.0 / 6.0));
        assert_eq!(auc(&[0.3, 0.15], &[0.2, 0.4, 0.1]), Some(0.5));
    }

    #[test]
    fn ties_count_half() {
        assert_eq!(auc(&[0.5; 3], &[0.5; 4]), Some(0.5));
        // One pair is right, one is a tie, one is wrong, one is right.
        assert_eq!(auc(&[0.5, 0.7], &[0.5, 0.6]), Some(2.5 / 4.0));
        assert_eq!(auc(&[0.0], &[-0.0]), Some(0.5));
    }

    #[test]
    fn few_rows_do_not_show_a_reversed_order() {
        let upper = |rows: usize| upper_end(&vec![0.1; rows], &vec![0.9; rows]).unwrap().1;
        assert!(upper(6) > 0.5);
        assert!(upper(7) < 0.5);
        // Scores without information exceed the interval in about one of 1000 samples.
        let mut rng = crate::seed::Seed(1).rng();
        let mut draw = || -> Vec<f32> { (0..40).map(|_| rng.random()).collect() };
        let reversed = (0..4000).filter(|_| upper_end(&draw(), &draw()).unwrap().1 < 0.5).count();
        assert!((1..=12).contains(&reversed), "{reversed}");
    }

    #[test]
    fn one_class_has_no_pairs() {
        assert_eq!(auc(&[], &[0.5]), None);
        assert_eq!(auc(&[0.5], &[]), None);
    }
}
