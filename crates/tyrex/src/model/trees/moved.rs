//! The worst case over trees of the same shape whose numbers have moved.
//!
//! The family: every threshold `t` becomes any number from `t - r` to `t + r`, every weight of a
//! leaf any number within `delta` of it, each independently. The shape stays: which columns are
//! asked about, where the leaves are, and where missing values go. Tests for equality and sets stay,
//! since they compare codes and not magnitudes; so do the base values and the values in place of
//! missing ones.
//!
//! A node is on a path only once, so every combination of answers along a path occurs where each
//! answer alone does: `x <= t'` is "yes" for some `t'` iff `x <= t + r`, and "no" iff `x > t - r`. A
//! tree reaches exactly the leaves below such answers, and its own choice hinders no other tree. So
//! with `D_j = z_j - z_f` for every output but the favourable one (`-z` for a single output)
//!
//! `max D_j = base_j - base_f + share * sum over trees of max over leaves in reach of
//! ( sum of (w_j + delta) + sum of (-w_f + delta) )`,
//!
//! exactly, and the lowest score is that of the highest `D_j`. That is exact, too, for one or two
//! outputs, and if each tree adds to one output only: a tree's worst leaf for one `D_j` is its worst
//! for all then. Else it is a lower bound.

use std::cmp::Ordering;

use super::{Aggregate, Comparison, Question, Transform, TreeEnsemble};

/// The leaves of each tree that a point reaches.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    /// Tree by tree, the indices of nodes.
    leaves: Vec<u32>,
    /// The end of each tree.
    ends: Vec<usize>,
}

impl Reach {
    /// The leaves of all trees, tree by tree.
    pub(super) fn leaves(&self) -> &[u32] {
        &self.leaves
    }
}

impl TreeEnsemble {
    /// Whether the outputs are sums or means of the trees', for which [`lowest`](Self::lowest) is
    /// defined.
    pub(crate) fn is_sum(&self) -> bool {
        matches!(self.aggregate, Aggregate::Sum | Aggregate::Average)
    }

    /// The leaves that a point reaches if every threshold moves by at most `radius`.
    pub(crate) fn reach(&self, x: &[f32], radius: f64) -> Reach {
        let mut x = x.to_vec();
        self.substitute(&mut x);
        let (mut leaves, mut ends) = (Vec::new(), Vec::new());
        let mut open = Vec::new();
        for &root in &self.roots {
            open.push(root);
            while let Some(index) = open.pop() {
                let node = &self.nodes[index as usize];
                let value = x[node.feature as usize];
                let [yes, no] = match node.question {
                    Question::Leaf => {
                        leaves.push(index);
                        continue;
                    }
                    _ if value.is_nan() => [node.missing, !node.missing],
                    Question::Compare(comparison, t) => comparison.answers(value, t, radius),
                    Question::Member(set) => {
                        let is_in = self.sets[set as usize].contains(&value);
                        [is_in, !is_in]
                    }
                };
                open.extend([(yes, node.yes), (no, node.no)].iter().filter(|c| c.0).map(|c| c.1));
            }
            ends.push(leaves.len());
        }
        Reach { leaves, ends }
    }

    /// The lowest score if every weight moves by at most `delta`, for trees that are added up.
    pub(crate) fn lowest(&self, reach: &Reach, delta: f64) -> f64 {
        let favourable = match self.transform {
            Transform::Softmax { favourable } => favourable,
            Transform::Identity | Transform::Logistic => 0,
        };
        let outputs = self.base.len();
        let rival = |class: usize| self.highest_rival(reach, favourable, class, delta);
        match self.transform {
            // The share of the one output is 1, whatever it is.
            Transform::Softmax { .. } if outputs == 1 => 1.0,
            Transform::Identity => (-rival(favourable)).clamp(0.0, 1.0),
            Transform::Logistic => 1.0 / (1.0 + libm::exp(rival(favourable))),
            Transform::Softmax { .. } => {
                let others = (0..outputs).filter(|&class| class != favourable);
                1.0 / (1.0 + others.map(|class| libm::exp(rival(class))).sum::<f64>())
            }
        }
    }

    /// The highest `D_j`, rounded up; `-z_f` where the class is the favourable one.
    fn highest_rival(&self, reach: &Reach, favourable: usize, class: usize, delta: f64) -> f64 {
        let (mut sum, mut size, mut start, mut most) = (0.0, 0.0_f64, 0, 0);
        for &end in &reach.ends {
            let mut highest = f64::NEG_INFINITY;
            let mut largest = 0.0_f64;
            for &leaf in &reach.leaves[start..end] {
                let (mut total, mut of_leaf) = (0.0, 0.0);
                let weights = self.leaf(&self.nodes[leaf as usize]);
                most = most.max(weights.len());
                for &(output, weight) in weights {
                    let weight = f64::from(weight);
                    if output as usize == favourable {
                        total += delta - weight;
                    } else if output as usize == class {
                        total += delta + weight;
                    } else {
                        continue;
                    }
                    of_leaf += delta + weight.abs();
                }
                highest = highest.max(total);
                largest = largest.max(of_leaf);
            }
            sum += highest;
            size += largest;
            start = end;
        }
        if self.aggregate == Aggregate::Average {
            let trees = self.roots.len().max(1) as f64;
            (sum, size) = (sum / trees, size / trees);
        }
        let base = |class: usize| f64::from(self.base[class]);
        let own = if class == favourable { 0.0 } else { base(class) };
        let (sum, size) = (sum + own - base(favourable), size + own.abs() + base(favourable).abs());
        // Each addition rounds by at most half an epsilon of a partial sum, and none of these is
        // larger than `size`.
        let additions = (2 * most + self.roots.len() + 8) as f64;
        sum + additions * f64::EPSILON * size
    }
}

impl Comparison {
    /// Whether "yes" and whether "no" is the answer for some threshold within `radius` of `t`.
    fn answers(self, x: f32, t: f32, radius: f64) -> [bool; 2] {
        let (x, t) = (f64::from(x), f64::from(t));
        let (low, high) = (against_sum(x, t, -radius), against_sum(x, t, radius));
        match self {
            Self::LessOrEqual => [high != Ordering::Greater, low == Ordering::Greater],
            Self::Less => [high == Ordering::Less, low != Ordering::Less],
            Self::GreaterOrEqual => [low != Ordering::Less, high == Ordering::Less],
            Self::Greater => [low == Ordering::Greater, high != Ordering::Greater],
            Self::Equal => [x == t, x != t],
            Self::NotEqual => [x != t, x == t],
        }
    }
}

/// The order of `x` and the exact `a + b`.
fn against_sum(x: f64, a: f64, b: f64) -> Ordering {
    let sum = a + b;
    if !sum.is_finite() {
        return x.total_cmp(&sum);
    }
    // The rounding error; exact (Knuth).
    let part = sum - a;
    let lost = (a - (sum - part)) + (b - part);
    let (above, below) = (x > sum, x < sum);
    match () {
        () if above => Ordering::Greater,
        () if below => Ordering::Less,
        // x is the rounded sum; the exact one is `lost` above it.
        () => 0.0_f64.partial_cmp(&lost).unwrap_or(Ordering::Equal),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TreeNode;
    use super::*;
    use crate::seed::Seed;
    use proptest::prelude::*;
    use rand::{Rng, RngExt};

    const ALL: [Comparison; 5] = [
        Comparison::LessOrEqual,
        Comparison::Less,
        Comparison::GreaterOrEqual,
        Comparison::Greater,
        Comparison::Equal,
    ];

    /// Numbers on a grid, so that many ties occur.
    fn grid(rng: &mut impl Rng) -> f32 {
        rng.random_range(-4..=4) as f32 / 4.0
    }

    /// Two trees of 3 questions and 4 leaves over 2 columns.
    fn ensemble(
        seed: u64,
        outputs: usize,
        aggregate: Aggregate,
        transform: Transform,
    ) -> TreeEnsemble {
        let mut rng = Seed(seed).rng();
        let mut tree = |own: usize| {
            let mut branch = |yes: usize| {
                let (feature, missing) = (rng.random_range(0..2), rng.random_bool(0.5));
                let (comparison, threshold) = (ALL[rng.random_range(0..5)], grid(&mut rng));
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no: yes + 1 }
            };
            let mut nodes = vec![branch(1), branch(3), branch(5)];
            nodes.extend((0..4).map(|_| {
                let weight = |rng: &mut _| RngExt::random_range(rng, -1.0..1.0_f32);
                let weights = match outputs {
                    2 => vec![(0, weight(&mut rng)), (1, weight(&mut rng))],
                    _ => vec![(own % outputs, weight(&mut rng))],
                };
                TreeNode::Leaf { weights }
            }));
            nodes
        };
        let trees = [tree(0), tree(1)];
        let base = (0..outputs).map(|o| 0.25 * o as f32).collect();
        TreeEnsemble::new(2, &trees, aggregate, base, transform).unwrap()
    }

    /// The lowest score over all thresholds at the ends and the middle of their intervals, and all
    /// weights at the ends of theirs, walked in double precision.
    fn brute(ensemble: &TreeEnsemble, x: &[f32], radius: f64, delta: f64) -> f64 {
        // For each tree, the leaves for each choice of its 3 thresholds.
        let reached: Vec<Vec<usize>> = ensemble
            .by_tree()
            .map(|(start, nodes)| {
                let mut leaves: Vec<usize> = (0..27_u32)
                    .map(|choice| {
                        let mut at = 0;
                        loop {
                            let node = &nodes[at];
                            let Question::Compare(comparison, t) = node.question else { break at };
                            let step = f64::from(choice / 3_u32.pow(at as u32) % 3) - 1.0;
                            let (t0, value) = (f64::from(t), f64::from(x[node.feature as usize]));
                            let t = t0 + step * radius;
                            let yes = match comparison {
                                _ if value.is_nan() => node.missing,
                                Comparison::LessOrEqual => value <= t,
                                Comparison::Less => value < t,
                                Comparison::GreaterOrEqual => value >= t,
                                Comparison::Greater => value > t,
                                Comparison::Equal => value == t0,
                                Comparison::NotEqual => value != t0,
                            };
                            at = (if yes { node.yes } else { node.no } - start) as usize;
                        }
                    })
                    .map(|at| start as usize + at)
                    .collect();
                leaves.sort_unstable();
                leaves.dedup();
                leaves
            })
            .collect();
        let mut lowest = f64::INFINITY;
        for &first in &reached[0] {
            for &second in &reached[1] {
                let weights: Vec<(u32, f32)> = [first, second]
                    .iter()
                    .flat_map(|&leaf| ensemble.leaf(&ensemble.nodes[leaf]).to_vec())
                    .collect();
                for signs in 0..1_u32 << weights.len() {
                    let mut outputs = vec![0.0; ensemble.base.len()];
                    for (place, &(output, weight)) in weights.iter().enumerate() {
                        let sign = if signs >> place & 1 == 1 { 1.0 } else { -1.0 };
                        outputs[output as usize] += f64::from(weight) + sign * delta;
                    }
                    for (output, &base) in outputs.iter_mut().zip(&ensemble.base) {
                        *output /= if ensemble.aggregate == Aggregate::Average { 2.0 } else { 1.0 };
                        *output += f64::from(base);
                    }
                    let score = match ensemble.transform {
                        Transform::Identity => outputs[0].clamp(0.0, 1.0),
                        Transform::Logistic => 1.0 / (1.0 + (-outputs[0]).exp()),
                        Transform::Softmax { favourable } => {
                            let own = outputs[favourable];
                            1.0 / outputs.iter().map(|z| (z - own).exp()).sum::<f64>()
                        }
                    };
                    lowest = lowest.min(score);
                }
            }
        }
        lowest
    }

    proptest! {
        #[test]
        fn the_lowest_score_is_that_of_all_moved_trees(
            seed in 0..100_000_u64, kind in 0..4_usize, radius in 0..4_u8, delta in 0..3_u8,
        ) {
            let (outputs, aggregate, transform) = [
                (1, Aggregate::Sum, Transform::Logistic),
                (1, Aggregate::Average, Transform::Identity),
                (2, Aggregate::Average, Transform::Softmax { favourable: 1 }),
                // Each tree adds to one output.
                (3, Aggregate::Sum, Transform::Softmax { favourable: 0 }),
            ][kind];
            let ensemble = ensemble(seed, outputs, aggregate, transform);
            let mut rng = Seed(seed + 1).rng();
            let missing = rng.random_bool(0.1);
            let x = [grid(&mut rng), if missing { f32::NAN } else { grid(&mut rng) }];
            let (radius, delta) = (f64::from(radius) / 8.0, f64::from(delta) / 16.0);
            let found = ensemble.lowest(&ensemble.reach(&x, radius), delta);
            let expected = brute(&ensemble, &x, radius, delta);
            prop_assert!(found <= expected + 1e-15, "{found} {expected}");
            prop_assert!(expected - found < 1e-12, "{found} {expected}");
        }

        #[test]
        fn sums_are_compared_exactly(a in -8..8_i32, scale in 0..60_i32, b in -8..8_i32, x in -8..8_i32) {
            let b = f64::from(b) * 2_f64.powi(-scale);
            let a = f64::from(a);
            // In units of 2^-60 everything is an integer.
            let unit = |v: f64, bits: i32| (v * 2_f64.powi(bits)) as i128;
            let sum = (unit(a, 0) << 60) + (unit(b, scale) << (60 - scale));
            for x in [f64::from(x), a + b, (a + b).next_up(), a] {
                // Of `x` the parts above and below 2^-30 are exact.
                let whole = (x * 2_f64.powi(30)).floor();
                let rest = x * 2_f64.powi(30) - whole;
                let exact = ((whole as i128) << 30) + (rest * 2_f64.powi(30)) as i128;
                if (exact as f64) * 2_f64.powi(-60) == x {
                    prop_assert_eq!(against_sum(x, a, b), exact.cmp(&sum));
                }
            }
        }
    }
}
