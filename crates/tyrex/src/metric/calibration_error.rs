//! Whether scores are probabilities.

/// The number of bins.
const BINS: usize = 10;

/// `ECE = sum_b n_b/n | mean_b s(x) - share_b of favourable rows |`: the expected calibration error
/// over ten bins of equal mass.
///
/// The rows are sorted by score, and bin `b` has those from `b n / 10` to `(b + 1) n / 10`, rounded
/// down. Rows with the same score each count as the share of favourable ones among them, so the
/// order of the rows does not matter. 0 if scores are the shares, at most 1. `None` without rows.
pub(crate) fn calibration_error(favourable: &[f32], unfavourable: &[f32]) -> Option<f64> {
    let labelled = |scores: &[f32], label: f64| -> Vec<(f32, f64)> {
        scores.iter().map(|&score| (score, label)).collect()
    };
    let mut rows = [labelled(favourable, 1.0), labelled(unfavourable, 0.0)].concat();
    rows.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut excess = Vec::with_capacity(rows.len());
    for tied in rows.chunk_by(|(one, _), (other, _)| one == other) {
        let share = tied.iter().map(|(_, label)| label).sum::<f64>() / tied.len() as f64;
        excess.extend(tied.iter().map(|(score, _)| f64::from(*score) - share));
    }
    let edge = |bin: usize| bin * excess.len() / BINS;
    let of_bin = |bin: usize| excess[edge(bin)..edge(bin + 1)].iter().sum::<f64>().abs();
    let total: f64 = (0..BINS).map(of_bin).sum();
    (!excess.is_empty()).then(|| total / excess.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_no_error_and_the_opposite_has_all() {
        assert_eq!(calibration_error(&[1.0; 7], &[0.0; 5]), Some(0.0));
        assert_eq!(calibration_error(&[0.0; 7], &[1.0; 5]), Some(1.0));
        // A quarter of the rows with score 0.25 is favourable.
        assert_eq!(calibration_error(&[0.25; 10], &[0.25; 30]), Some(0.0));
    }

    #[test]
    fn the_difference_of_every_bin_counts_by_its_rows() {
        // Two rows a bin, their scores 0, 1/16, ... in pairs; all are favourable.
        let scores: Vec<f32> = (0..20).map(|row| (row / 2) as f32 / 16.0).collect();
        let expected = 1.0 - (0..10).map(|bin| f64::from(bin) / 16.0).sum::<f64>() / 10.0;
        assert_eq!(calibration_error(&scores, &[]), Some(expected));
        // One more and one less than the score within a bin cancel.
        assert_eq!(calibration_error(&[0.5; 10], &[0.5; 10]), Some(0.0));
        assert_eq!(calibration_error(&[0.75; 10], &[0.75; 10]), Some(0.25));
    }

    #[test]
    fn tied_rows_may_come_in_any_order() {
        // All scores are tied, so every bin has the share of all rows, whatever its own labels.
        assert_eq!(calibration_error(&[0.5; 15], &[0.5; 5]), Some(0.25));
    }

    #[test]
    fn fewer_rows_than_bins_have_a_bin_each() {
        assert_eq!(calibration_error(&[0.75], &[0.25]), Some(0.25));
        assert_eq!(calibration_error(&[], &[]), None);
    }
}
