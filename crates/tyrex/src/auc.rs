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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn one_class_has_no_pairs() {
        assert_eq!(auc(&[], &[0.5]), None);
        assert_eq!(auc(&[0.5], &[]), None);
    }
}
