//! The mean of some numbers, their spread, and a confidence interval of the mean.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::statistics::{Proportion, student_quantile};

/// One minus the confidence of every interval here.
const ALPHA: f64 = 0.05;

/// An interval narrower than this is rounding.
const POINT: f64 = 1e-9;

/// Numbers beyond this have squares that overflow.
const LARGEST: f64 = 1e150;

/// A mean with its spread and its interval.
///
/// `sd` is the spread of the numbers (the paper's plus-minus); the interval is about their
/// expectation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// `n`, the number of values.
    pub count: usize,
    /// `1/n sum_i x_i`
    pub mean: f64,
    /// `sqrt( 1/(n-1) sum_i (x_i - mean)^2 )`; `None` for one number.
    pub sd: Option<f64>,
    /// The lower end of the 95 % interval of the mean; `None` if unbounded.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Summary {
    /// `mean +- t_{n-1} sd / sqrt(n)`, Student's interval; `None` without numbers.
    ///
    /// Exact for normal numbers, and close for any others of finite variance once there are
    /// some tens of them. It needs no bounds, which costs, distances and seconds do not have.
    pub fn of(numbers: &[f64]) -> Result<Option<Self>> {
        if let Some(wrong) = numbers.iter().find(|x| !(-LARGEST..=LARGEST).contains(*x)) {
            let expected = format!("a number within {LARGEST:e} of zero");
            return Err(Error::param("number to summarise", wrong, expected));
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        let count = numbers.len();
        let n = count as f64;
        let mean = numbers.iter().sum::<f64>() / n;
        if count == 1 {
            return Ok(Some(Self { count, mean, sd: None, low: None, high: None }));
        }
        let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
        let sd = (squares / (n - 1.0)).sqrt();
        let margin = student_quantile(ALPHA, n - 1.0)? * sd / n.sqrt();
        let (low, high) = (Some(mean - margin), Some(mean + margin));
        Ok(Some(Self { count, mean, sd: Some(sd), low, high }))
    }

    /// The same for shares, which lie in `[0, 1]`: Student's interval, cut to `[0, 1]`.
    ///
    /// A share over hundreds of factuals is nearly normal over models. Where all shares are the
    /// same number `s` Student's interval would be that point, as if no other model could
    /// differ. There the interval is `s a^(1/n)` to `1 - (1 - s) a^(1/n)` with `a = 0.025`: it
    /// needs no distribution, since `P(all of n are >= s) <= (E[S] / s)^n` by Markov's
    /// inequality.
    pub fn of_shares(shares: &[f64]) -> Result<Option<Self>> {
        Self::of_grouped_shares(&shares.iter().copied().enumerate().collect::<Vec<_>>())
    }

    /// The same for numbers in groups, where only the groups are independent: the costs of one
    /// factual for several base models are one group, not several independent numbers.
    ///
    /// `mean +- t_{g-1} sqrt( g/(g-1) sum_c (sum_{i in c} (x_i - mean))^2 ) / n` with `g` groups
    /// `c`. Where all groups are of one size, that is Student's interval of the groups' means.
    pub fn of_groups<K: Ord>(numbers: &[(K, f64)]) -> Result<Option<Self>> {
        let all: Vec<f64> = numbers.iter().map(|(_, number)| *number).collect();
        let Some(summary) = Self::of(&all)? else { return Ok(None) };
        let mut sums: BTreeMap<&K, f64> = BTreeMap::new();
        for (group, number) in numbers {
            *sums.entry(group).or_default() += number - summary.mean;
        }
        if sums.len() == 1 {
            return Ok(Some(Self { low: None, high: None, ..summary }));
        }
        let g = sums.len() as f64;
        let squares: f64 = sums.values().map(|sum| sum * sum).sum();
        let error = (g / (g - 1.0) * squares).sqrt() / all.len() as f64;
        let margin = student_quantile(ALPHA, g - 1.0)? * error;
        let (low, high) = (Some(summary.mean - margin), Some(summary.mean + margin));
        Ok(Some(Self { low, high, ..summary }))
    }

    /// The same for shares in groups, such as those that one retrained model gives for several
    /// base models; cut, and widened where all groups have the same mean, as in
    /// [`Summary::of_shares`].
    pub fn of_grouped_shares<K: Ord>(shares: &[(K, f64)]) -> Result<Option<Self>> {
        if let Some((_, wrong)) = shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(Error::param("share", wrong, "a number between 0 and 1"));
        }
        let Some(summary) = Self::of_groups(shares)? else { return Ok(None) };
        let mean = summary.mean;
        let is_point = |(low, high): (f64, f64)| high - low < POINT;
        let (low, high) = if summary.low.zip(summary.high).is_none_or(is_point) {
            let groups: BTreeSet<&K> = shares.iter().map(|(group, _)| group).collect();
            let shrink = libm::pow(0.5 * ALPHA, 1.0 / groups.len() as f64);
            (Some(mean * shrink), Some(1.0 - (1.0 - mean) * shrink))
        } else {
            (summary.low.map(|low| low.max(0.0)), summary.high.map(|high| high.min(1.0)))
        };
        Ok(Some(Self { low, high, ..summary }))
    }

    /// The share of events that happened, of independent ones: Clopper and Pearson's interval,
    /// exact for any number of events, also if all or none happened.
    pub fn of_events(happened: usize, of: usize) -> Result<Option<Self>> {
        let proportion = Proportion::new(happened, of)?;
        if of == 0 {
            return Ok(None);
        }
        let n = of as f64;
        let mean = happened as f64 / n;
        let sd = (of > 1).then(|| (mean * (1.0 - mean) * n / (n - 1.0)).sqrt());
        let (low, high) = proportion.between(ALPHA)?;
        Ok(Some(Self { count: of, mean, sd, low: Some(low), high: Some(high) }))
    }

    /// The mean of `+1` for events that happened and `-1` for those that did not, as the paper
    /// prints the local outlier factor's verdict: `2 p - 1`, with the exact interval of `p`.
    pub fn of_signs(positive: usize, of: usize) -> Result<Option<Self>> {
        let sign = |share: f64| 2.0 * share - 1.0;
        Ok(Self::of_events(positive, of)?.map(|share| Self {
            count: share.count,
            mean: sign(share.mean),
            sd: share.sd.map(|sd| 2.0 * sd),
            low: share.low.map(sign),
            high: share.high.map(sign),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Option<f64>, expected: f64) {
        let got = got.unwrap();
        assert!((got - expected).abs() < 1e-9, "{got}, not {expected}");
    }

    #[test]
    fn nothing_one_and_more() {
        assert_eq!(Summary::of(&[]).unwrap(), None);
        let one = Summary::of(&[3.0]).unwrap().unwrap();
        assert_eq!(one, Summary { count: 1, mean: 3.0, sd: None, low: None, high: None });
        // t_{0.975} is 12.706 with one degree of freedom and 4.303 with two.
        let two = Summary::of(&[1.0, 3.0]).unwrap().unwrap();
        close(two.sd, 2.0_f64.sqrt());
        close(two.low, 2.0 - 12.706_204_736_174_7);
        let three = Summary::of(&[1.0, 2.0, 3.0]).unwrap().unwrap();
        close(three.sd, 1.0);
        close(three.high, 2.0 + 4.302_652_729_749_462 / 3.0_f64.sqrt());
        let same = Summary::of(&[4.0; 5]).unwrap().unwrap();
        assert_eq!((same.low, same.mean, same.high), (Some(4.0), 4.0, Some(4.0)));
    }

    #[test]
    fn shares_stay_between_0_and_1_and_claim_no_certainty() {
        assert_eq!(Summary::of_shares(&[]).unwrap(), None);
        let all = Summary::of_shares(&[1.0; 50]).unwrap().unwrap();
        assert_eq!((all.mean, all.sd, all.high), (1.0, Some(0.0), Some(1.0)));
        close(all.low, 0.025_f64.powf(0.02));
        let none = Summary::of_shares(&[0.0; 50]).unwrap().unwrap();
        assert_eq!((none.mean, none.low), (0.0, Some(0.0)));
        close(none.high, 1.0 - 0.025_f64.powf(0.02));
        let half = Summary::of_shares(&[0.0, 1.0]).unwrap().unwrap();
        assert_eq!((half.low, half.mean, half.high), (Some(0.0), 0.5, Some(1.0)));
        let one = Summary::of_shares(&[0.9]).unwrap().unwrap();
        close(one.low, 0.9 * 0.025);
        assert_eq!(one.sd, None);
    }

    #[test]
    fn numbers_of_one_group_are_one_witness() {
        assert_eq!(Summary::of_groups::<u8>(&[]).unwrap(), None);
        // Each number three times over: the interval is that of the numbers once.
        let thrice: Vec<(usize, f64)> = (0..9).map(|i| (i % 3, (i % 3 + 1) as f64)).collect();
        let grouped = Summary::of_groups(&thrice).unwrap().unwrap();
        let once = Summary::of(&[1.0, 2.0, 3.0]).unwrap().unwrap();
        assert_eq!((grouped.count, grouped.mean), (9, 2.0));
        close(grouped.low, once.low.unwrap());
        close(grouped.high, once.high.unwrap());
        // Groups of one are the numbers themselves.
        let alone = Summary::of_groups(&[(7, 1.0), (3, 2.0), (5, 3.0)]).unwrap().unwrap();
        close(alone.low, once.low.unwrap());
        let one = Summary::of_groups(&[(0, 1.0), (0, 2.0)]).unwrap().unwrap();
        assert_eq!((one.mean, one.low, one.high), (1.5, None, None));
        let same: Vec<(usize, f64)> = (0..100).map(|i| (i % 50, 1.0)).collect();
        close(Summary::of_grouped_shares(&same).unwrap().unwrap().low, 0.025_f64.powf(0.02));
        // Two bases that differ, and two models that do not: the interval is not a point.
        let flat = Summary::of_grouped_shares(&[(0, 1.0), (0, 0.8), (1, 1.0), (1, 0.8)]);
        let flat = flat.unwrap().unwrap();
        close(flat.low, 0.9 * 0.025_f64.sqrt());
        close(flat.high, 1.0 - 0.1 * 0.025_f64.sqrt());
    }

    #[test]
    fn events_at_none_all_and_half() {
        assert_eq!(Summary::of_events(0, 0).unwrap(), None);
        let none = Summary::of_events(0, 10).unwrap().unwrap();
        assert_eq!((none.mean, none.sd, none.low), (0.0, Some(0.0), Some(0.0)));
        close(none.high, 1.0 - 0.025_f64.powf(0.1));
        let all = Summary::of_events(10, 10).unwrap().unwrap();
        close(all.low, 0.025_f64.powf(0.1));
        let half = Summary::of_events(5, 10).unwrap().unwrap();
        close(half.sd, (2.5_f64 / 9.0).sqrt());
        let signs = Summary::of_signs(5, 10).unwrap().unwrap();
        assert_eq!(signs.mean, 0.0);
        close(signs.sd, (10.0_f64 / 9.0).sqrt());
        close(signs.low, 2.0 * half.low.unwrap() - 1.0);
        assert_eq!(Summary::of_signs(10, 10).unwrap().unwrap().mean, 1.0);
        assert_eq!(Summary::of_signs(0, 10).unwrap().unwrap().mean, -1.0);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
            assert!(Summary::of(&[1.0, wrong]).is_err(), "{wrong}");
            assert!(Summary::of_shares(&[0.5, wrong]).is_err(), "{wrong}");
        }
        assert!(Summary::of_shares(&[1.1]).is_err());
        assert!(Summary::of_events(3, 2).is_err());
    }
}
