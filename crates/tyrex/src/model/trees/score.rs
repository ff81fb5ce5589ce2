//! The scores and logits of a tree ensemble.

use super::{Aggregate, Comparison, FlatNode, Question, Substitute, Transform, TreeEnsemble};
use crate::model::committee::of_score;
use crate::points::Points;

impl TreeEnsemble {
    /// Writes the logit of the favourable class at every point: the margin itself for
    /// [`Transform::Logistic`], `z_f - ln sum_(j != f) exp z_j` for [`Transform::Softmax`], and
    /// `ln(p / (1 - p))` for trees that give probabilities, at most 27.6 from zero.
    ///
    /// # Panics
    /// If the dimension of the points or the length of `logits` does not match.
    pub fn logit_into(&self, points: &Points, logits: &mut [f32]) {
        self.each(points, logits, |outputs| self.logit_of(outputs));
    }

    /// The logit of one point.
    ///
    /// # Panics
    /// If the dimension of the point does not match.
    pub fn logit(&self, x: &[f32]) -> f32 {
        let mut point = Points::new(x.len());
        point.push(x);
        let mut logit = [0.0];
        self.logit_into(&point, &mut logit);
        logit[0]
    }

    /// The leaf a point falls to.
    #[inline]
    fn fall(&self, root: u32, point: &[f32]) -> &FlatNode {
        let mut node = &self.nodes[root as usize];
        while let Some(yes) = self.answer(node, point) {
            node = &self.nodes[if yes { node.yes } else { node.no } as usize];
        }
        node
    }

    /// The answer to a node's question; `None` at a leaf.
    #[inline]
    fn answer(&self, node: &FlatNode, point: &[f32]) -> Option<bool> {
        let x = point[node.feature as usize];
        let yes = match node.question {
            Question::Compare(comparison, t) => comparison.holds(x, t),
            Question::Member(set) => self.sets[set as usize].contains(&x),
            Question::Leaf => return None,
        };
        Some(if x.is_nan() { node.missing } else { yes })
    }

    /// The score of one point's outputs.
    pub(super) fn transformed(&self, outputs: &[f64]) -> f32 {
        match self.transform {
            Transform::Identity => outputs[0] as f32,
            Transform::Logistic => (1.0 / (1.0 + (-outputs[0]).exp())) as f32,
            Transform::Softmax { favourable } => {
                let own = outputs[favourable];
                (1.0 / outputs.iter().map(|z| (z - own).exp()).sum::<f64>()) as f32
            }
        }
    }

    /// The logit of one point's outputs.
    fn logit_of(&self, outputs: &[f64]) -> f32 {
        match self.transform {
            Transform::Identity => of_score(outputs[0] as f32),
            Transform::Logistic => outputs[0] as f32,
            Transform::Softmax { .. } if outputs.len() == 1 => of_score(1.0),
            Transform::Softmax { favourable } => {
                let rivals = || {
                    let others = outputs.iter().enumerate();
                    others.filter(|(class, _)| *class != favourable).map(|(_, z)| *z)
                };
                let highest = rivals().fold(f64::NEG_INFINITY, f64::max);
                let odds: f64 = rivals().map(|z| libm::exp(z - highest)).sum();
                (outputs[favourable] - highest - libm::log(odds)) as f32
            }
        }
    }

    /// Writes a function of the outputs of every point.
    pub(super) fn each(&self, points: &Points, results: &mut [f32], of: impl Fn(&[f64]) -> f32) {
        // A tree stays in the cache while it scores a block of points.
        const BLOCK: usize = 64;
        assert_eq!(points.dim(), self.dim, "points of another dimension");
        assert_eq!(points.len(), results.len(), "one score per point");
        let k = self.base.len();
        let mut outputs = vec![0.0_f64; BLOCK * k];
        let empty = match self.aggregate {
            Aggregate::Sum | Aggregate::Average => 0.0,
            Aggregate::Minimum => f64::INFINITY,
            Aggregate::Maximum => f64::NEG_INFINITY,
        };
        let mut substituted = Vec::new();
        if !self.substitutes.is_empty() {
            substituted.extend_from_slice(points.as_slice());
            for point in substituted.chunks_exact_mut(self.dim) {
                self.substitute(point);
            }
        }
        let values = if substituted.is_empty() { points.as_slice() } else { &substituted };
        let block_of_values = values.chunks(BLOCK * self.dim);
        for (values, results) in block_of_values.zip(results.chunks_mut(BLOCK)) {
            outputs.fill(empty);
            for &root in &self.roots {
                let rows = values.chunks_exact(self.dim).zip(outputs.chunks_exact_mut(k));
                for (point, outputs) in rows {
                    for &(output, weight) in self.leaf(self.fall(root, point)) {
                        let sum = &mut outputs[output as usize];
                        let weight = f64::from(weight);
                        *sum = match self.aggregate {
                            Aggregate::Sum | Aggregate::Average => *sum + weight,
                            Aggregate::Minimum => sum.min(weight),
                            Aggregate::Maximum => sum.max(weight),
                        };
                    }
                }
            }
            for (outputs, result) in outputs.chunks_exact_mut(k).zip(results) {
                for (sum, &base) in outputs.iter_mut().zip(&self.base) {
                    if self.aggregate == Aggregate::Average {
                        *sum /= self.roots.len().max(1) as f64;
                    }
                    *sum = if sum.is_finite() { *sum } else { 0.0 } + f64::from(base);
                }
                *result = of(outputs);
            }
        }
    }

    /// Puts the other numbers in place of missing ones.
    fn substitute(&self, point: &mut [f32]) {
        for &Substitute { column, indicator, value } in &self.substitutes {
            if point[indicator] >= 0.5 {
                point[column] = value;
            }
        }
    }
}

impl Comparison {
    /// The answer for numbers.
    #[inline]
    pub(crate) fn holds(self, x: f32, t: f32) -> bool {
        match self {
            Self::LessOrEqual => x <= t,
            Self::Less => x < t,
            Self::GreaterOrEqual => x >= t,
            Self::Greater => x > t,
            Self::Equal => x == t,
            Self::NotEqual => x != t,
        }
    }
}
