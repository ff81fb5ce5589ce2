//! The nodes of a tree ensemble as the kernel takes them.
//!
//! Every question becomes `x < cut`: `x <= t` is `x < t+` with the next larger `f32`, and a set is
//! a search among the borders of its members.

use super::{Aggregate, Comparison, FlatNode, Question, TreeEnsemble};
use crate::model::kernel::trees::{
    NAN_LOW, Rank, RankColumn, RankSet, RankTree, Ranked, Sides, Step, WalkNode, WalkNodes,
};

/// The most leaves of a tree that is answered by ranks. With more, a walk has fewer questions.
const MOST_LEAVES: usize = 256;

/// The nodes of an ensemble, made for scoring.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Layout {
    /// The node of each index is the ensemble's of that index; nodes of sets come after them.
    pub(super) walk: WalkNodes,
    /// The output that each tree adds one number to, if every tree has only one and outputs are
    /// sums. Leaves of `walk` have the number as their cut then.
    pub(super) single: Option<Vec<usize>>,
    pub(super) ranks: Ranks,
}

/// The trees for ranks, with the nodes of each one's leaves where these are more than one number;
/// `None` if some tree is large.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Ranks {
    Bytes(Ranked<u8>, Vec<Vec<u32>>),
    Words(Ranked<u16>, Vec<Vec<u32>>),
    #[default]
    None,
}

/// A question in normal form.
enum Normal {
    /// `x < cut`; whether that is "yes".
    Cut(f32, bool),
    /// The answer is the same for all numbers.
    Constant(bool),
    /// Whether `x` is one of these numbers; whether that is "yes".
    Set(Vec<f32>, bool),
}

impl Layout {
    pub(super) fn new(ensemble: &TreeEnsemble) -> Self {
        let single = single(ensemble);
        let walk = walk(ensemble, single.is_some());
        let ranks = Compiler::ranks(ensemble, single.as_deref());
        Self { walk, single, ranks }
    }
}

/// The one output of each tree.
fn single(ensemble: &TreeEnsemble) -> Option<Vec<usize>> {
    if matches!(ensemble.aggregate, Aggregate::Minimum | Aggregate::Maximum) {
        return None;
    }
    let of_tree = |nodes: &[FlatNode]| {
        let mut output = None;
        for node in nodes.iter().filter(|node| node.question == Question::Leaf) {
            match ensemble.leaf(node) {
                [] => {}
                [(own, _)] if output.is_none_or(|output| output == *own) => output = Some(*own),
                _ => return None,
            }
        }
        Some(output.unwrap_or(0) as usize)
    };
    ensemble.by_tree().map(|(_, nodes)| of_tree(nodes)).collect()
}

fn normal(ensemble: &TreeEnsemble, node: &FlatNode) -> Option<Normal> {
    Some(match node.question {
        Question::Leaf => return None,
        Question::Member(set) => Normal::Set(ensemble.sets[set as usize].clone(), true),
        Question::Compare(comparison @ (Comparison::Equal | Comparison::NotEqual), t) => {
            Normal::Set(vec![t + 0.0], comparison == Comparison::Equal)
        }
        Question::Compare(comparison, t) => {
            let low_is_yes = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
            match comparison.cuts(t)[0] {
                Some(f32::NEG_INFINITY) => Normal::Constant(!low_is_yes),
                Some(cut) => Normal::Cut(cut, low_is_yes),
                None => Normal::Constant(low_is_yes),
            }
        }
    })
}

/// The numbers where a set begins and where it ends, in turn.
fn borders(set: &[f32]) -> Vec<f32> {
    let mut borders: Vec<f32> = Vec::with_capacity(2 * set.len());
    for &value in set {
        if borders.last() == Some(&value) {
            borders.pop();
        } else {
            borders.push(value);
        }
        if value < f32::INFINITY {
            borders.push(value.next_up());
        }
    }
    borders
}

fn walk(ensemble: &TreeEnsemble, single: bool) -> WalkNodes {
    let mut nodes: Vec<WalkNode> = Vec::with_capacity(ensemble.nodes.len());
    let mut sets = Vec::new();
    for (index, node) in ensemble.nodes.iter().enumerate() {
        let missing = if node.missing { node.yes } else { node.no };
        let place = |cut, nan_low: bool, next| {
            let column = node.feature | if nan_low { NAN_LOW } else { 0 };
            WalkNode { cut, column, next }
        };
        nodes.push(match normal(ensemble, node) {
            None => {
                let weight = ensemble.leaf(node).first().map_or(0.0, |(_, weight)| *weight);
                let cut = if single { weight } else { 0.0 };
                WalkNode { cut, column: 0, next: [index as u32; 2] }
            }
            Some(Normal::Cut(cut, low_is_yes)) => {
                let next = if low_is_yes { [node.yes, node.no] } else { [node.no, node.yes] };
                place(cut, node.missing == low_is_yes, next)
            }
            // No number is less than NaN.
            Some(Normal::Constant(yes)) => {
                place(f32::NAN, true, [missing, if yes { node.yes } else { node.no }])
            }
            Some(Normal::Set(set, is_yes)) => {
                let inside = if is_yes { node.yes } else { node.no };
                let outside = if is_yes { node.no } else { node.yes };
                sets.push((index, borders(&set), [outside, inside], missing == inside));
                place(0.0, false, [0; 2])
            }
        });
    }
    for (index, borders, sides, nan_inside) in sets {
        // Cell 0 is before the first border, cell 1 after it: outside, inside, and so on. Ranges
        // of cells, each with the node that finds the cell; NaN is led to cell 0 or 1.
        let column = nodes[index].column;
        let mut ranges = vec![(index, 0_usize, borders.len() + 1)];
        while let Some((at, from, to)) = ranges.pop() {
            let middle = from.midpoint(to);
            let mut side = |from: usize, to: usize, nodes: &mut Vec<WalkNode>| {
                if to - from == 1 {
                    return sides[from % 2];
                }
                nodes.push(WalkNode { cut: 0.0, column, next: [0; 2] });
                ranges.push((nodes.len() - 1, from, to));
                (nodes.len() - 1) as u32
            };
            let next = [side(from, middle, &mut nodes), side(middle, to, &mut nodes)];
            let nan_low = usize::from(nan_inside) < middle;
            let cut = borders[middle - 1];
            nodes[at] = WalkNode { cut, column: column | if nan_low { NAN_LOW } else { 0 }, next };
        }
    }
    WalkNodes::new(nodes, ensemble.dim)
}

/// Compiles trees to steps.
struct Compiler<'a, T> {
    ensemble: &'a TreeEnsemble,
    columns: Vec<RankColumn>,
    place: Vec<usize>,
    slots: u32,
    sets: Vec<RankSet>,
    /// The steps; a step of a set has the set's index and a mark.
    steps: Vec<(bool, Step<T>)>,
    /// The leaves of the tree at hand.
    leaves: Vec<u32>,
}

/// Where the leaves of a subtree are.
#[derive(Clone, Copy)]
enum Place<T> {
    Leaf(T),
    Row,
}

impl Compiler<'_, u8> {
    /// The trees for ranks, if all are small and no column has too many cuts.
    fn ranks(ensemble: &TreeEnsemble, single: Option<&[usize]>) -> Ranks {
        let is_leaf = |node: &&FlatNode| node.question == Question::Leaf;
        let leaves = |nodes: &[FlatNode]| nodes.iter().filter(is_leaf).count();
        if ensemble.by_tree().any(|(_, nodes)| leaves(nodes) > MOST_LEAVES) {
            return Ranks::None;
        }
        let thresholds = ensemble.thresholds();
        let most = thresholds.columns().iter().map(|cells| cells.cuts().len()).max().unwrap_or(0);
        if most < usize::from(u8::MAX) {
            let (ranked, leaves) = Compiler::<u8>::new(ensemble).compile(single.is_some());
            Ranks::Bytes(ranked, leaves)
        } else if most < usize::from(u16::MAX) {
            let (ranked, leaves) = Compiler::<u16>::new(ensemble).compile(single.is_some());
            Ranks::Words(ranked, leaves)
        } else {
            Ranks::None
        }
    }
}

impl<'a, T: Rank> Compiler<'a, T> {
    fn new(ensemble: &'a TreeEnsemble) -> Self {
        let (mut columns, mut place) = (Vec::new(), vec![usize::MAX; ensemble.dim]);
        let thresholds = ensemble.thresholds();
        for node in ensemble.nodes.iter().filter(|node| node.question != Question::Leaf) {
            let column = node.feature as usize;
            if place[column] == usize::MAX {
                place[column] = columns.len();
                let cuts = thresholds.column(column).cuts().to_vec();
                columns.push(RankColumn { column, cuts, slots: [None; 2] });
            }
        }
        let (sets, steps, leaves) = (Vec::new(), Vec::new(), Vec::new());
        Self { ensemble, columns, place, slots: 0, sets, steps, leaves }
    }

    /// The trees, and the nodes of each one's leaves.
    fn compile(mut self, single: bool) -> (Ranked<T>, Vec<Vec<u32>>) {
        let (mut trees, mut values, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        for &root in &self.ensemble.roots {
            let (first, first_value) = (self.steps.len(), values.len());
            self.leaves.clear();
            self.subtree(root, 0);
            values.extend(self.leaves.iter().map(|&leaf| {
                let weights = self.ensemble.leaf(&self.ensemble.nodes[leaf as usize]);
                weights.first().filter(|_| single).map_or(0.0, |(_, weight)| f64::from(*weight))
            }));
            let (steps, leaves) = (first..self.steps.len(), first_value..values.len());
            trees.push(RankTree { steps, leaves });
            // Kept only where a leaf is more than one number.
            nodes.push(if single { Vec::new() } else { self.leaves.clone() });
        }
        let (slots, steps) = (self.slots, self.steps.into_iter());
        let numbered = |(is_set, step): (bool, Step<T>)| Step {
            slot: step.slot + if is_set { slots } else { 0 },
            ..step
        };
        let steps = steps.map(numbered).collect();
        (Ranked::new(self.columns, self.sets, steps, values, trees), nodes)
    }

    /// The steps of a subtree, whose result is a leaf or in a row of the stack. A tree has few
    /// leaves, so this is not deep.
    fn subtree(&mut self, index: u32, row: u8) -> Place<T> {
        let node = self.ensemble.nodes[index as usize];
        let Some(question) = normal(self.ensemble, &node) else {
            self.leaves.push(index);
            return Place::Leaf(T::of(self.leaves.len() - 1));
        };
        // The side of low ranks, the last of them, and on which side NaN is.
        let missing = if node.missing { node.yes } else { node.no };
        let either = |low_is_yes: bool| {
            if low_is_yes { [node.yes, node.no] } else { [node.no, node.yes] }
        };
        let place = self.place[node.feature as usize];
        let cell = |cut: f32, columns: &[RankColumn]| {
            columns[place].cuts.partition_point(|&own| own < cut)
        };
        let ([low, high], is_set, slot, last_low) = match question {
            Normal::Cut(cut, low_is_yes) => {
                let nan_high = node.missing != low_is_yes;
                let last = cell(cut, &self.columns);
                (either(low_is_yes), false, self.slot(place, nan_high), T::of(last))
            }
            Normal::Constant(yes) => {
                let numbers = if yes { node.yes } else { node.no };
                if numbers == missing {
                    return self.subtree(numbers, row);
                }
                let most: usize = T::NAN_HIGH.into();
                ([numbers, missing], false, self.slot(place, true), T::of(most - 1))
            }
            Normal::Set(set, is_yes) => {
                let slot = self.slot(place, true);
                let cuts = &self.columns[place].cuts;
                let mut sides = vec![1; cuts.len() + 2];
                for value in set {
                    sides[cuts.partition_point(|&cut| cut <= value)] = 0;
                }
                let sides_of = either(is_yes);
                if let Some(nan) = sides.last_mut() {
                    *nan = u8::from(missing != sides_of[0]);
                }
                self.sets.push(RankSet { slot, sides });
                (sides_of, true, (self.sets.len() - 1) as u32, T::of(0))
            }
        };
        // The side that needs more rows first.
        let low_first = self.rows(low) >= self.rows(high);
        let sides = if low_first {
            let low = self.subtree(low, row);
            let above = row + u8::from(matches!(low, Place::Row));
            (low, self.subtree(high, above))
        } else {
            let high = self.subtree(high, row);
            let above = row + u8::from(matches!(high, Place::Row));
            (self.subtree(low, above), high)
        };
        let sides = match sides {
            (Place::Leaf(low), Place::Leaf(high)) => Sides::Leaves(low, high),
            (Place::Leaf(low), Place::Row) => Sides::LowLeaf(low),
            (Place::Row, Place::Leaf(high)) => Sides::HighLeaf(high),
            (Place::Row, Place::Row) if low_first => Sides::LowBelow,
            (Place::Row, Place::Row) => Sides::HighBelow,
        };
        self.steps.push((is_set, Step { slot, row, last_low, sides }));
        Place::Row
    }

    /// The rows that a subtree needs: at most the binary logarithm of its leaves.
    fn rows(&self, index: u32) -> u32 {
        let node = &self.ensemble.nodes[index as usize];
        if node.question == Question::Leaf {
            return 0;
        }
        match (self.rows(node.yes), self.rows(node.no)) {
            (a, b) if a == b => a + 1,
            (a, b) => a.max(b),
        }
    }

    /// The row of a column's ranks.
    fn slot(&mut self, place: usize, nan_high: bool) -> u32 {
        let slots = &mut self.slots;
        *self.columns[place].slots[usize::from(nan_high)].get_or_insert_with(|| {
            *slots += 1;
            *slots - 1
        })
    }
}
