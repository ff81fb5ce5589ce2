//! The votes of a forest: the score as the mean of one number from 0 to 1 per tree.

use super::{Aggregate, Question, Transform, TreeEnsemble};

/// How far a leaf may be outside `[0, 1]` by rounding.
const SLACK: f64 = 1e-4;
/// Votes nearer to 0 or 1 than this are 0 or 1: leaves are stored as 32-bit shares of the score.
const ROUNDING: f64 = 1e-6;

/// Trees whose votes have the score as their mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Voters<'a> {
    trees: &'a TreeEnsemble,
    base: f64,
    /// From the weight of a leaf to its vote.
    scale: f64,
}

impl TreeEnsemble {
    /// The trees as voters. `None` if the score is not the mean of numbers that every leaf keeps
    /// between 0 and 1: sums of raw scores, as those of boosting, are none.
    ///
    /// `score = base + sum_i w_i = mean_i (base + N w_i)` for sums, `mean_i (base + w_i)` for means.
    /// A forest has the base 0, or 1 for the other class, so its leaves have one sign. The leaves of
    /// boosted trees correct a base in both directions, and a few small ones around 1/2 would lie
    /// between 0 and 1 too.
    pub(crate) fn voters(&self) -> Option<Voters<'_>> {
        if self.transform != Transform::Identity || self.roots.is_empty() {
            return None;
        }
        let scale = match self.aggregate {
            Aggregate::Sum => self.roots.len() as f64,
            Aggregate::Average => 1.0,
            Aggregate::Minimum | Aggregate::Maximum => return None,
        };
        let base = f64::from(self.base[0]);
        if ![0.0, 1.0].contains(&base) {
            return None;
        }
        let voters = Voters { trees: self, base, scale };
        let leaves = self.nodes.iter().enumerate().filter(|(_, n)| n.question == Question::Leaf);
        let mut votes = leaves.map(|(leaf, _)| voters.raw(leaf));
        votes.all(|vote| (-SLACK..=1.0 + SLACK).contains(&vote)).then_some(voters)
    }
}

impl Voters<'_> {
    /// The number of trees.
    pub(crate) fn count(&self) -> usize {
        self.trees.roots.len()
    }

    /// Appends the vote of every tree.
    pub(crate) fn vote_into(&self, x: &[f32], votes: &mut Vec<f64>) {
        // Thresholds that do not move let one leaf of each tree be reached.
        let reach = self.trees.reach(x, 0.0);
        votes.extend(reach.leaves().iter().map(|&leaf| {
            let vote = self.raw(leaf as usize);
            match () {
                () if vote < ROUNDING => 0.0,
                () if vote > 1.0 - ROUNDING => 1.0,
                () => vote,
            }
        }));
    }

    fn raw(&self, leaf: usize) -> f64 {
        let weights = self.trees.leaf(&self.trees.nodes[leaf]);
        let weight: f64 = weights.iter().map(|(_, weight)| f64::from(*weight)).sum();
        self.base + self.scale * weight
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Comparison, TreeNode};
    use super::*;
    use crate::model::Model as _;
    use crate::points::Points;

    fn stump(threshold: f32, [below, above]: [f32; 2]) -> Vec<TreeNode> {
        let leaf = |weight| TreeNode::Leaf { weights: vec![(0, weight)] };
        let (feature, comparison) = (0, Comparison::LessOrEqual);
        let branch =
            TreeNode::Branch { feature, comparison, threshold, missing: true, yes: 1, no: 2 };
        vec![branch, leaf(below), leaf(above)]
    }

    fn made(trees: &[Vec<TreeNode>], aggregate: Aggregate, base: f32) -> TreeEnsemble {
        TreeEnsemble::new(1, trees, aggregate, vec![base], Transform::Identity).unwrap()
    }

    #[test]
    fn the_score_is_the_mean_of_the_votes() {
        let third = 1.0_f32 / 3.0;
        let sums = [[0.0, third], [0.2, 0.1], [third, 0.0]];
        let sum: Vec<_> = (0_u8..3).zip(sums).map(|(t, w)| stump(f32::from(t), w)).collect();
        // The other class: 1 less the same.
        let minus = sums.map(|leaves| leaves.map(|w| -w));
        let other: Vec<_> = (0_u8..3).zip(minus).map(|(t, w)| stump(f32::from(t), w)).collect();
        let mean = [stump(0.0, [0.0, 1.0]), stump(1.0, [0.25, 0.75])];
        for ensemble in [
            made(&sum, Aggregate::Sum, 0.0),
            made(&other, Aggregate::Sum, 1.0),
            made(&mean, Aggregate::Average, 0.0),
        ] {
            let voters = ensemble.voters().unwrap();
            for x in [-1.0, 0.0, 0.5, 1.5, 3.0, f32::NAN] {
                let mut votes = Vec::new();
                voters.vote_into(&[x], &mut votes);
                assert_eq!(votes.len(), voters.count());
                assert!(votes.iter().all(|vote| (0.0..=1.0).contains(vote)), "{votes:?}");
                let mean = votes.iter().sum::<f64>() / votes.len() as f64;
                let score = f64::from(ensemble.score(&Points::one(&[x]))[0]);
                assert!((mean - score).abs() < 1e-6, "{x}: {mean} {score}");
            }
        }
        // Whole votes are exactly 0 and 1, though a third has no exact 32 bits.
        let mut votes = Vec::new();
        made(&sum, Aggregate::Sum, 0.0).voters().unwrap().vote_into(&[0.5], &mut votes);
        assert_eq!((votes[0].to_bits(), votes[2].to_bits()), (1_f64.to_bits(), 1_f64.to_bits()));
    }

    #[test]
    fn sums_of_raw_scores_have_no_votes() {
        let tree = stump(0.0, [-0.3, 0.4]);
        assert!(made(&[tree.clone(), tree.clone()], Aggregate::Sum, 0.5).voters().is_none());
        // Two boosted trees with small leaves.
        let small = [stump(0.0, [-0.1, 0.2]), stump(1.0, [0.15, -0.2])];
        assert!(made(&small, Aggregate::Sum, 0.5).voters().is_none());
        assert!(made(&small, Aggregate::Sum, 0.0).voters().is_none());
        assert!(made(&[], Aggregate::Sum, 0.0).voters().is_none());
        let whole = [stump(0.0, [0.0, 1.0])];
        assert!(made(&whole, Aggregate::Maximum, 0.0).voters().is_none());
        assert!(made(&whole, Aggregate::Sum, 0.0).voters().is_some());
        let boosted =
            TreeEnsemble::new(1, &whole, Aggregate::Sum, vec![0.0], Transform::Logistic).unwrap();
        assert!(boosted.voters().is_none());
    }
}
