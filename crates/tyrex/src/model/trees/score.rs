//! The scores and logits of a tree ensemble.

use super::layout::{Layout, Ranks};
use super::{Aggregate, Substitute, Transform, TreeEnsemble};
use crate::model::committee::of_score;
use crate::model::kernel::trees::{ABREAST, BLOCK, Rank, RankScratch, Ranked};
use crate::points::Points;

/// Fewer points than these are walked, since ranks are computed for whole blocks.
const FEW: usize = 24;

/// Some points, and the sums of their trees.
struct Block<'a> {
    /// Row by row.
    values: &'a [f32],
    count: usize,
    /// Output by output.
    sums: &'a mut [f64],
}

impl TreeEnsemble {
    /// Writes the logit of the favourable class at every point: the margin itself for
    /// [`Transform::Logistic`], `z_f - ln sum_(j != f) exp z_j` for [`Transform::Softmax`], and
    /// `ln(p / (1 - p))` for trees that give probabilities, at most 27.6 from zero.
    ///
    /// # Panics
    /// If the dimension of the points or the length of `logits` does not match.
    pub(crate) fn logit_into(&self, points: &Points, logits: &mut [f32]) {
        self.each(points, logits, |outputs| self.logit_of(outputs));
    }

    /// The logit of one point.
    ///
    /// # Panics
    /// If the dimension of the point does not match.
    pub fn logit(&self, x: &[f32]) -> f32 {
        let mut logit = [0.0];
        self.of_rows(x, &mut logit, |outputs| self.logit_of(outputs));
        logit[0]
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
        assert_eq!(points.dim(), self.dim, "points of another dimension");
        self.of_rows(points.as_slice(), results, of);
    }

    /// The same for points row by row.
    fn of_rows(&self, values: &[f32], results: &mut [f32], of: impl Fn(&[f64]) -> f32) {
        assert_eq!(values.len(), results.len() * self.dim, "one result per point");
        match &self.layout.ranks {
            Ranks::Bytes(ranked, leaves) if results.len() >= FEW => {
                let find = |block: &mut Block<'_>, scratch: &mut _| {
                    self.by_rank(ranked, leaves, block, scratch);
                };
                self.in_blocks(values, results, &mut ranked.scratch(), find, of);
            }
            Ranks::Words(ranked, leaves) if results.len() >= FEW => {
                let find = |block: &mut Block<'_>, scratch: &mut _| {
                    self.by_rank(ranked, leaves, block, scratch);
                };
                self.in_blocks(values, results, &mut ranked.scratch(), find, of);
            }
            _ => self.in_blocks(values, results, &mut (), |block, ()| self.by_walk(block), of),
        }
    }

    /// Adds up the trees block by block, by `add_up`, and writes a function of the outputs. The
    /// sums of a point are taken tree by tree, whatever the block.
    fn in_blocks<S>(
        &self,
        values: &[f32],
        results: &mut [f32],
        scratch: &mut S,
        add_up: impl Fn(&mut Block<'_>, &mut S),
        of: impl Fn(&[f64]) -> f32,
    ) {
        let k = self.base.len();
        let most = BLOCK.min(results.len());
        let (mut sums, mut outputs) = (vec![0.0; most * k], vec![0.0; k]);
        let empty = match self.aggregate {
            Aggregate::Sum | Aggregate::Average => 0.0,
            Aggregate::Minimum => f64::INFINITY,
            Aggregate::Maximum => f64::NEG_INFINITY,
        };
        let trees = self.roots.len().max(1) as f64;
        let mut substituted = Vec::new();
        for (values, results) in
            values.chunks(most.max(1) * self.dim).zip(results.chunks_mut(BLOCK))
        {
            let count = results.len();
            let values = if self.substitutes.is_empty() {
                values
            } else {
                substituted.clear();
                substituted.extend_from_slice(values);
                substituted.chunks_exact_mut(self.dim).for_each(|point| self.substitute(point));
                &substituted
            };
            let sums = &mut sums[..count * k];
            sums.fill(empty);
            add_up(&mut Block { values, count, sums }, scratch);
            for (row, result) in results.iter_mut().enumerate() {
                let of_row = sums[row..].iter().step_by(count);
                for ((output, &sum), &base) in outputs.iter_mut().zip(of_row).zip(&self.base) {
                    let sum = if self.aggregate == Aggregate::Average { sum / trees } else { sum };
                    *output = if sum.is_finite() { sum } else { 0.0 } + f64::from(base);
                }
                *result = of(&outputs);
            }
        }
    }

    /// Adds up the trees for one block, from the ranks of its coordinates.
    fn by_rank<T: Rank>(
        &self,
        ranked: &Ranked<T>,
        leaves: &[Vec<u32>],
        block: &mut Block<'_>,
        scratch: &mut RankScratch<T>,
    ) {
        let count = block.count;
        T::rank(ranked, self.dim, block.values, scratch);
        if let Some(outputs) = &self.layout.single {
            let mut first = 0;
            for trees in outputs.chunk_by(|a, b| a == b) {
                let sums = &mut block.sums[trees[0] * count..][..count];
                T::add(ranked, first..first + trees.len(), scratch, sums);
                first += trees.len();
            }
            return;
        }
        for (tree, leaves) in leaves.iter().enumerate() {
            T::select(ranked, tree, count, scratch);
            for (row, &leaf) in scratch.leaves()[..count].iter().enumerate() {
                self.add_leaf(leaves[leaf.into()], row, block);
            }
        }
    }

    /// Adds up the trees for one block, from the roots on: several points at once in a tree, or
    /// several trees at once for few points.
    fn by_walk(&self, block: &mut Block<'_>) {
        let Layout { walk, single, .. } = &*self.layout;
        let (dim, values, count) = (self.dim, block.values, block.count);
        let mut add = |tree: usize, row: usize, leaf: u32| match single {
            Some(outputs) => {
                let sum = &mut block.sums[outputs[tree] * count + row];
                *sum += f64::from(walk.node(leaf).cut);
            }
            None => self.add_leaf(leaf, row, block),
        };
        if count < ABREAST {
            for (row, point) in values.chunks_exact(dim).enumerate() {
                for (group, roots) in self.roots.chunks(ABREAST).enumerate() {
                    let mut at = [roots[0]; ABREAST];
                    at[..roots.len()].copy_from_slice(roots);
                    walk.walk(&mut at, [point; ABREAST]);
                    for (place, &leaf) in at[..roots.len()].iter().enumerate() {
                        add(group * ABREAST + place, row, leaf);
                    }
                }
            }
            return;
        }
        for (tree, &root) in self.roots.iter().enumerate() {
            for (group, rows) in values.chunks(ABREAST * dim).enumerate() {
                let mut points = [&rows[..dim]; ABREAST];
                let there = rows.len() / dim;
                for (point, row) in points.iter_mut().zip(rows.chunks_exact(dim)) {
                    *point = row;
                }
                let mut at = [root; ABREAST];
                walk.walk(&mut at, points);
                for (place, &leaf) in at[..there].iter().enumerate() {
                    add(tree, group * ABREAST + place, leaf);
                }
            }
        }
    }

    /// Adds a leaf's weights to the sums of a point.
    #[inline]
    fn add_leaf(&self, leaf: u32, row: usize, block: &mut Block<'_>) {
        for &(output, weight) in self.leaf(&self.nodes[leaf as usize]) {
            let sum = &mut block.sums[output as usize * block.count + row];
            let weight = f64::from(weight);
            *sum = match self.aggregate {
                Aggregate::Sum | Aggregate::Average => *sum + weight,
                Aggregate::Minimum => sum.min(weight),
                Aggregate::Maximum => sum.max(weight),
            };
        }
    }

    /// Puts the other numbers in place of missing ones.
    pub(super) fn substitute(&self, point: &mut [f32]) {
        for &Substitute { column, indicator, value } in &self.substitutes {
            if point[indicator] >= 0.5 {
                point[column] = value;
            }
        }
    }
}

#[cfg(test)]
mod tests;
