//! The cells between the thresholds of a tree ensemble.

use super::{Comparison, Question, Substitute, TreeEnsemble};

/// The cells of every column.
///
/// Two points whose coordinates lie in the same cells fall to the same leaf of every tree. Every
/// question about `x` is one about half-open cells `[c_k, c_{k+1})`, since between a number and
/// the next larger `f32` there is nothing:
///
/// | question | cuts |
/// |---|---|
/// | `x < t`, `x >= t` | `t` |
/// | `x <= t`, `x > t` | the next `f32` above `t` |
/// | `x == t`, `x != t`, `x` in a set with `t` | both |
///
/// Where a column counts as another number beside a missing value, the column of that mark has
/// the cut 1/2.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    columns: Vec<Cells>,
}

/// The cells of one column, from the least to the largest: cell `k` is `[c_k, c_{k+1})`, the first
/// one begins at minus infinity and the last one has no end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cells {
    cuts: Vec<f32>,
}

impl Thresholds {
    /// The cells of each column.
    pub fn columns(&self) -> &[Cells] {
        &self.columns
    }

    /// The cells of one column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, column: usize) -> &Cells {
        &self.columns[column]
    }
}

impl Cells {
    /// The cells between these cuts.
    fn between(mut cuts: Vec<f32>) -> Self {
        // Every number is at least minus infinity. The cell of plus infinity begins after
        // `f32::MAX`.
        cuts.retain(|cut| *cut > f32::NEG_INFINITY);
        cuts.sort_by(f32::total_cmp);
        cuts.dedup();
        Self { cuts }
    }

    /// The first number of every cell but the first, in order.
    pub fn cuts(&self) -> &[f32] {
        &self.cuts
    }

    /// The number of cells, at least 1.
    pub fn count(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The cell of a number: how many cuts are at most `x`. NaN, which is in no cell, gives 0.
    pub fn of(&self, x: f32) -> usize {
        self.cuts.partition_point(|&cut| cut <= x)
    }

    /// The least number of a cell; minus infinity for the first one.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn least(&self, cell: usize) -> f32 {
        match cell {
            0 => f32::NEG_INFINITY,
            _ => self.cuts[cell - 1],
        }
    }

    /// The largest number of a cell; infinity for the last one.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn largest(&self, cell: usize) -> f32 {
        if cell == self.cuts.len() { f32::INFINITY } else { self.cuts[cell].next_down() }
    }

    /// The number of a cell that is nearest to `x`: `x` itself, or one `f32` inside the border.
    ///
    /// # Panics
    /// If there is no such cell, or `x` is NaN.
    pub fn nearest(&self, cell: usize, x: f32) -> f32 {
        x.clamp(self.least(cell), self.largest(cell))
    }
}

impl TreeEnsemble {
    /// The cells of every column.
    pub fn thresholds(&self) -> Thresholds {
        let mut cuts = vec![Vec::new(); self.dim];
        for node in &self.nodes {
            let cuts = &mut cuts[node.feature as usize];
            match node.question {
                Question::Compare(comparison, threshold) => {
                    cuts.extend(comparison.cuts(threshold).into_iter().flatten());
                }
                Question::Member(set) => {
                    let each = self.sets[set as usize].iter();
                    cuts.extend(each.flat_map(|&value| Comparison::Equal.cuts(value)).flatten());
                }
                Question::Leaf => {}
            }
        }
        for &Substitute { indicator, .. } in &self.substitutes {
            cuts[indicator].push(0.5);
        }
        Thresholds { columns: cuts.into_iter().map(Cells::between).collect() }
    }
}

impl Comparison {
    /// Where the answer changes: the first numbers of the cells that begin there.
    pub(super) fn cuts(self, threshold: f32) -> [Option<f32>; 2] {
        // -0 and 0 are one number, and so is what follows them.
        let at = threshold + 0.0;
        let after = (at < f32::INFINITY).then(|| at.next_up());
        match self {
            Self::Less | Self::GreaterOrEqual => [Some(at), None],
            Self::LessOrEqual | Self::Greater => [after, None],
            Self::Equal | Self::NotEqual => [Some(at), after],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Aggregate, Transform, TreeNode};
    use super::*;
    use crate::model::Model as _;
    use crate::points::Points;
    use proptest::prelude::*;

    const ALL: [Comparison; 6] = [
        Comparison::LessOrEqual,
        Comparison::Less,
        Comparison::GreaterOrEqual,
        Comparison::Greater,
        Comparison::Equal,
        Comparison::NotEqual,
    ];

    fn leaf(weight: f32) -> TreeNode {
        TreeNode::Leaf { weights: vec![(0, weight)] }
    }

    fn ensemble(roots: Vec<TreeNode>) -> TreeEnsemble {
        let trees: Vec<_> =
            roots.into_iter().map(|root| vec![root, leaf(1.0), leaf(0.0)]).collect();
        TreeEnsemble::new(1, &trees, Aggregate::Sum, vec![0.0], Transform::Identity).unwrap()
    }

    fn compare(comparison: Comparison, threshold: f32) -> TreeNode {
        TreeNode::Branch { feature: 0, comparison, threshold, missing: false, yes: 1, no: 2 }
    }

    fn member(values: &[f32]) -> TreeNode {
        TreeNode::Member { feature: 0, values: values.to_vec(), missing: false, yes: 1, no: 2 }
    }

    /// The answers of all trees at a number.
    fn answers(trees: &[TreeEnsemble], x: f32) -> Vec<f32> {
        let point = Points::from_rows(1, vec![x]).unwrap();
        trees.iter().map(|tree| tree.score(&point)[0]).collect()
    }

    fn thresholds() -> impl Strategy<Value = f32> {
        let odd = [
            0.0,
            -0.0,
            f32::from_bits(1),
            -f32::from_bits(1),
            f32::MIN_POSITIVE,
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1.0,
            16_777_216.0,
        ];
        prop_oneof![prop::sample::select(odd.to_vec()), -3.0..3.0_f32]
    }

    proptest! {
        #[test]
        fn the_answers_are_constant_within_a_cell_and_change_at_its_border(
            comparison in prop::sample::select(ALL.to_vec()), threshold in thresholds(),
            set in prop::collection::vec(thresholds(), 1..5),
        ) {
            for (root, is_set) in [(compare(comparison, threshold), false), (member(&set), true)] {
                let tree = [ensemble(vec![root])];
                let cells = tree[0].thresholds().column(0).clone();
                for cell in 0..cells.count() {
                    let (least, largest) = (cells.least(cell), cells.largest(cell));
                    prop_assert!(least <= largest);
                    prop_assert_eq!(cells.of(least), cell);
                    prop_assert_eq!(cells.of(largest), cell);
                    let inside = answers(&tree, least);
                    prop_assert_eq!(&inside, &answers(&tree, largest));
                    let middle = (f64::from(least.max(f32::MIN)) / 2.0
                        + f64::from(largest.min(f32::MAX)) / 2.0) as f32;
                    prop_assert_eq!(&inside, &answers(&tree, cells.nearest(cell, middle)));
                    if cell > 0 {
                        let before = cells.largest(cell - 1);
                        prop_assert_eq!(before, least.next_down());
                        // Two numbers of a set may follow each other.
                        let set_goes_on = is_set && set.contains(&before) && set.contains(&least);
                        prop_assert!(set_goes_on || inside != answers(&tree, before));
                    }
                }
            }
        }

        #[test]
        fn the_nearest_number_of_a_cell_is_in_it(
            cuts in prop::collection::vec(thresholds(), 0..6), x in -4.0..4.0_f32,
        ) {
            let trees = cuts.iter().map(|&cut| compare(Comparison::Less, cut)).collect();
            let cells = ensemble(trees).thresholds().column(0).clone();
            for cell in 0..cells.count() {
                let nearest = cells.nearest(cell, x);
                prop_assert_eq!(cells.of(nearest), cell);
                prop_assert!((cells.of(x) == cell) == (nearest == x));
            }
        }
    }

    #[test]
    fn a_missing_mark_has_a_cut_of_its_own() {
        let trees = [vec![compare(Comparison::Less, 1.0), leaf(1.0), leaf(0.0)]];
        let plain =
            TreeEnsemble::new(3, &trees, Aggregate::Sum, vec![0.0], Transform::Identity).unwrap();
        let mark = Substitute { column: 0, indicator: 2, value: f32::NAN };
        let cells = plain.with_substitutes(&[mark]).thresholds();
        assert_eq!(cells.column(0).cuts(), [1.0]);
        assert_eq!(cells.column(1).count(), 1);
        assert_eq!(cells.column(2).cuts(), [0.5]);
    }
}
