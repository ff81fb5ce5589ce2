//! Trees: the leaf of every point, by one of two ways.
//!
//! *Ranked*: for blocks of points and trees of few leaves. Every coordinate becomes its rank among
//! the cuts of its column, once for all trees, in as few bits as it needs. Then every node of a tree
//! is answered for all points of the block, and the leaf's number is selected from the bottom up,
//! `leaf = if rank < t { leaf of low } else { leaf of high }`: no step waits for another one's
//! answer, and one instruction serves 64 points.
//!
//! *Walked*: from the root to the leaf, several trees or points at once, since each step waits for
//! the memory.
//!
//! A question is `x < cut`. NaN takes the side that the node says.

#![allow(clippy::inline_always)] // inlined into loops that have the vector features

/// The most points of a block.
pub(crate) const BLOCK: usize = 256;
/// The points that are computed at once.
const LANES: usize = 64;
/// How many trees, or points, are walked at once.
pub(crate) const ABREAST: usize = 8;

// ---------------------------------------------------------------------------------- walked

/// A node that is walked through. A leaf leads to itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WalkNode {
    /// The cut; in a leaf, what the caller stores there.
    pub(crate) cut: f32,
    /// The column, and whether NaN takes the low side, in the highest bit.
    pub(crate) column: u32,
    /// The next node where `x < cut`, and where not.
    pub(crate) next: [u32; 2],
}

/// The bit of [`WalkNode::column`] that says that NaN takes the low side.
pub(crate) const NAN_LOW: u32 = 1 << 31;

/// Nodes whose indices have been checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct WalkNodes {
    nodes: Vec<WalkNode>,
    dim: usize,
}

impl WalkNodes {
    /// Nodes over points of this dimension.
    ///
    /// # Panics
    /// If a node leads nowhere, or asks about a coordinate that is not there.
    pub(crate) fn new(nodes: Vec<WalkNode>, dim: usize) -> Self {
        for node in &nodes {
            assert!(((node.column & !NAN_LOW) as usize) < dim, "a column that is not there");
            assert!(node.next.iter().all(|&next| (next as usize) < nodes.len()), "a lost node");
        }
        Self { nodes, dim }
    }

    /// Walks from each of the nodes `at` to a leaf, through the point of the same place.
    ///
    /// # Panics
    /// If a node is not there, or a point has too few coordinates.
    #[inline]
    pub(crate) fn walk(&self, at: &mut [u32; ABREAST], points: [&[f32]; ABREAST]) {
        assert!(at.iter().all(|&at| (at as usize) < self.nodes.len()), "a node that is not there");
        assert!(points.iter().all(|point| point.len() >= self.dim), "a point that is too short");
        loop {
            let mut moved = 0;
            for (at, point) in at.iter_mut().zip(&points) {
                // SAFETY: `at` was checked above or is the next of a checked node; the columns of
                // checked nodes are less than `dim`, and so than the length of the point.
                let (node, x) = unsafe {
                    let node = self.nodes.get_unchecked(*at as usize);
                    (node, *point.get_unchecked((node.column & !NAN_LOW) as usize))
                };
                let nan_low = node.column & NAN_LOW != 0;
                let low = x < node.cut || nan_low && x.is_nan();
                let next = if low { node.next[0] } else { node.next[1] };
                moved |= next ^ *at;
                *at = next;
            }
            if moved == 0 {
                break;
            }
        }
    }

    /// A node.
    pub(crate) fn node(&self, at: u32) -> &WalkNode {
        &self.nodes[at as usize]
    }
}

// ---------------------------------------------------------------------------------- ranked

/// A rank in a column, or a leaf's number.
pub(crate) trait Rank:
    Copy + Ord + Default + Into<usize> + std::fmt::Debug + 'static
{
    /// The rank of NaN where it takes the high side, more than any other.
    const NAN_HIGH: Self;

    /// A number that fits.
    fn of(number: usize) -> Self;

    /// Computes the ranks of a block of points.
    fn rank(ranked: &Ranked<Self>, dim: usize, points: &[f32], scratch: &mut RankScratch<Self>);

    /// Adds the leaves' values of some of the trees to the sums of a block of points, in order.
    fn add(
        ranked: &Ranked<Self>,
        trees: std::ops::Range<usize>,
        scratch: &mut RankScratch<Self>,
        sums: &mut [f64],
    );

    /// Finds the leaves of one tree for the first points of a block.
    fn select(ranked: &Ranked<Self>, tree: usize, count: usize, scratch: &mut RankScratch<Self>);
}

/// One step of a tree: selects leaves for all points. Numbers are taken from a stack of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step<T> {
    /// The row of ranks, or a set, counted after the rows.
    pub(crate) slot: u32,
    /// The row of the stack that takes the result.
    pub(crate) row: u8,
    /// The low side is that of ranks up to this one.
    pub(crate) last_low: T,
    /// The two sides.
    pub(crate) sides: Sides<T>,
}

/// Where the leaves of the low and of the high side are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sides<T> {
    /// Two leaves.
    Leaves(T, T),
    /// Low: a leaf. High: the row that takes the result.
    LowLeaf(T),
    /// High: a leaf. Low: the row that takes the result.
    HighLeaf(T),
    /// Low: the row that takes the result. High: the row above it.
    LowBelow,
    /// High: the row that takes the result. Low: the row above it.
    HighBelow,
}

/// A column's ranks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankColumn {
    /// The column.
    pub(crate) column: usize,
    /// Its cuts, sorted; so few that no rank is [`Rank::NAN_HIGH`].
    pub(crate) cuts: Vec<f32>,
    /// The row of ranks in which NaN takes the low side, and in which the high side, if any node
    /// asks so.
    pub(crate) slots: [Option<u32>; 2],
}

/// A set of ranks; its low side is that of its members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankSet {
    /// A row of ranks in which NaN takes the high side.
    pub(crate) slot: u32,
    /// 0 for members, else 1: for every rank, and at last for NaN.
    pub(crate) sides: Vec<u8>,
}

/// A tree: its steps and its leaves' values. One without steps has one leaf.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankTree {
    /// Its steps among all.
    pub(crate) steps: std::ops::Range<usize>,
    /// Its leaves among all.
    pub(crate) leaves: std::ops::Range<usize>,
}

/// Trees whose leaves are found by ranks; checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ranked<T> {
    columns: Vec<RankColumn>,
    sets: Vec<RankSet>,
    steps: Vec<Step<T>>,
    values: Vec<f64>,
    trees: Vec<RankTree>,
    slots: usize,
    rows: usize,
}

impl<T: Rank> Ranked<T> {
    /// Trees from their parts.
    ///
    /// # Panics
    /// If a step reads a row that no step of its tree has written, or gives a leaf that its tree
    /// does not have; these are mistakes of the caller.
    pub(crate) fn new(
        columns: Vec<RankColumn>,
        sets: Vec<RankSet>,
        steps: Vec<Step<T>>,
        values: Vec<f64>,
        trees: Vec<RankTree>,
    ) -> Self {
        let slots = columns.iter().flat_map(|column| column.slots).flatten().count();
        let rows = steps.iter().map(|step| usize::from(step.row) + 1).max().unwrap_or(1);
        let numbered = columns.iter().flat_map(|column| column.slots).flatten();
        assert!(numbered.into_iter().all(|slot| (slot as usize) < slots), "a slot's number");
        assert!(sets.iter().all(|set| (set.slot as usize) < slots && !set.sides.is_empty()));
        let most: usize = T::NAN_HIGH.into();
        assert!(columns.iter().all(|column| column.cuts.len() < most), "too many cuts");
        for tree in &trees {
            let leaves = tree.leaves.len();
            assert!(leaves > 0 && tree.leaves.end <= values.len(), "a tree without leaves");
            let mut written = 0;
            for step in &steps[tree.steps.clone()] {
                assert!((step.slot as usize) < slots + sets.len(), "no such rank");
                let row = usize::from(step.row);
                let has = |leaf: T| -> bool { leaf.into() < leaves };
                written = match step.sides {
                    Sides::Leaves(low, high) => {
                        assert!(has(low) && has(high) && row == written, "a leaf");
                        written + 1
                    }
                    Sides::LowLeaf(leaf) | Sides::HighLeaf(leaf) => {
                        assert!(has(leaf) && row + 1 == written, "a leaf beside a row");
                        written
                    }
                    Sides::LowBelow | Sides::HighBelow => {
                        assert!(row + 2 == written, "two rows");
                        written - 1
                    }
                };
            }
            assert!(written == usize::from(!tree.steps.is_empty()), "one result");
        }
        Self { columns, sets, steps, values, trees, slots, rows }
    }

    /// Working memory for blocks of these trees.
    pub(crate) fn scratch(&self) -> RankScratch<T> {
        RankScratch {
            ranks: vec![[T::default(); BLOCK]; self.slots],
            stack: vec![[T::default(); BLOCK]; self.rows + 1],
            sides: [T::default(); BLOCK],
            leaves: [[T::default(); BLOCK]; TOGETHER],
        }
    }
}

/// The trees whose values are added in one pass over the sums.
const TOGETHER: usize = 4;

/// The working memory for blocks.
pub(crate) struct RankScratch<T> {
    /// Slot by slot.
    ranks: Vec<[T; BLOCK]>,
    stack: Vec<[T; BLOCK]>,
    /// The sides of a set.
    sides: [T; BLOCK],
    leaves: [[T; BLOCK]; TOGETHER],
}

impl<T> RankScratch<T> {
    /// The numbers of the points' leaves, after [`Rank::select`].
    pub(crate) fn leaves(&self) -> &[T; BLOCK] {
        &self.stack[0]
    }
}

/// `rank = number of cuts <= x` of all points of a block.
#[inline(always)]
fn rank_rows<T: Rank>(
    ranked: &Ranked<T>,
    dim: usize,
    points: &[f32],
    scratch: &mut RankScratch<T>,
) {
    /// The points that are searched for in lockstep.
    const ABREAST: usize = 16;
    for RankColumn { column, cuts, slots } in &ranked.columns {
        let mut ranks = [T::default(); BLOCK];
        let mut values = [0.0_f32; BLOCK];
        for (value, row) in values.iter_mut().zip(points.chunks_exact(dim)) {
            *value = row[*column];
        }
        let count = points.len() / dim;
        for (x, ranks) in values[..count.next_multiple_of(ABREAST).min(BLOCK)]
            .as_chunks::<ABREAST>()
            .0
            .iter()
            .zip(ranks.as_chunks_mut::<ABREAST>().0)
        {
            let mut base = [0_u32; ABREAST];
            let mut size = cuts.len();
            while size > 0 {
                let half = size.div_ceil(2);
                for (base, &x) in base.iter_mut().zip(x) {
                    // SAFETY: always `base + size <= cuts.len()`: a step takes `half` from `size`
                    // and adds at most `half` to `base`; and `1 <= half <= size`.
                    let cut = unsafe { *cuts.get_unchecked(*base as usize + half - 1) };
                    *base += if cut <= x { half as u32 } else { 0 };
                }
                size -= half;
            }
            for (rank, base) in ranks.iter_mut().zip(base) {
                *rank = T::of(base as usize);
            }
        }
        let [low, high] = *slots;
        if let Some(slot) = low {
            scratch.ranks[slot as usize] = ranks;
        }
        if let Some(slot) = high {
            for (rank, x) in ranks.iter_mut().zip(values) {
                *rank = if x.is_nan() { T::NAN_HIGH } else { *rank };
            }
            scratch.ranks[slot as usize] = ranks;
        }
    }
}

/// Answers all questions of a tree for the first `count` points, rounded up to whole lanes.
#[inline(always)]
fn select_rows<T: Rank>(
    ranked: &Ranked<T>,
    tree: usize,
    count: usize,
    scratch: &mut RankScratch<T>,
) {
    let tree = &ranked.trees[tree];
    let used = count.next_multiple_of(LANES).min(BLOCK);
    if tree.steps.is_empty() {
        scratch.stack[0].fill(T::default());
    }
    for step in &ranked.steps[tree.steps.clone()] {
        let (slot, last) = (step.slot as usize, step.last_low);
        let ranks = if let Some(set) = slot.checked_sub(ranked.slots) {
            let RankSet { slot, sides } = &ranked.sets[set];
            let ranks = &scratch.ranks[*slot as usize];
            for (side, &rank) in scratch.sides.iter_mut().zip(ranks) {
                let rank: usize = rank.into();
                *side = T::of(usize::from(sides[rank.min(sides.len() - 1)]));
            }
            &scratch.sides
        } else {
            &scratch.ranks[slot]
        };
        let (below, above) = scratch.stack.split_at_mut(step.row as usize + 1);
        let (row, above) = (&mut below[step.row as usize], &above[0]);
        match step.sides {
            Sides::Leaves(low, high) => {
                select(used, ranks, last, row, above, |is_low, _, _| pick(is_low, low, high));
            }
            Sides::LowLeaf(low) => {
                select(used, ranks, last, row, above, |is_low, own, _| pick(is_low, low, own));
            }
            Sides::HighLeaf(high) => {
                select(used, ranks, last, row, above, |is_low, own, _| pick(is_low, own, high));
            }
            Sides::LowBelow => {
                select(used, ranks, last, row, above, |is_low, own, above| {
                    pick(is_low, own, above)
                });
            }
            Sides::HighBelow => {
                select(used, ranks, last, row, above, |is_low, own, above| {
                    pick(is_low, above, own)
                });
            }
        }
    }
}

/// Takes both, so that there is no branch.
#[inline(always)]
fn pick<T>(is_low: bool, low: T, high: T) -> T {
    if is_low { low } else { high }
}

/// `row <- of(rank <= last, row, above)` for the points of a block. Each group is copied, so that
/// the compiler knows the rows to be distinct.
#[inline(always)]
fn select<T: Rank>(
    used: usize,
    ranks: &[T; BLOCK],
    last: T,
    row: &mut [T; BLOCK],
    above: &[T; BLOCK],
    of: impl Fn(bool, T, T) -> T,
) {
    for at in (0..used).step_by(LANES) {
        let (ranks, above): ([T; LANES], [T; LANES]) = (*lanes(ranks, at), *lanes(above, at));
        let own: &mut [T; LANES] = lanes_mut(row, at);
        let mut result = *own;
        for i in 0..LANES {
            result[i] = of(ranks[i] <= last, result[i], above[i]);
        }
        *own = result;
    }
}

#[inline(always)]
fn lanes<T>(row: &[T; BLOCK], at: usize) -> &[T; LANES] {
    row[at..].first_chunk().expect("a block is whole lanes")
}

#[inline(always)]
fn lanes_mut<T>(row: &mut [T; BLOCK], at: usize) -> &mut [T; LANES] {
    row[at..].first_chunk_mut().expect("a block is whole lanes")
}

#[inline(always)]
fn add_trees<T: Rank>(
    ranked: &Ranked<T>,
    trees: std::ops::Range<usize>,
    scratch: &mut RankScratch<T>,
    sums: &mut [f64],
) {
    assert!(trees.end <= ranked.trees.len() && sums.len() <= BLOCK, "no such trees");
    let mut next = trees.start;
    while next < trees.end {
        let together = (trees.end - next).min(TOGETHER);
        for which in 0..together {
            select_rows(ranked, next + which, sums.len(), scratch);
            scratch.leaves[which] = scratch.stack[0];
        }
        // SAFETY: the numbers come from steps of these trees, which `new` has checked against
        // their leaves; a tree without steps has leaf 0.
        let value = |which: usize, leaf: T| unsafe {
            let first = ranked.trees[next + which].leaves.start;
            *ranked.values.get_unchecked(first + leaf.into())
        };
        let leaves = &scratch.leaves;
        if together == TOGETHER {
            for (i, sum) in sums.iter_mut().enumerate() {
                let mut total = *sum;
                for (which, leaves) in leaves.iter().enumerate() {
                    total += value(which, leaves[i]);
                }
                *sum = total;
            }
        } else {
            for (which, leaves) in leaves[..together].iter().enumerate() {
                for (sum, &leaf) in sums.iter_mut().zip(leaves) {
                    *sum += value(which, leaf);
                }
            }
        }
        next += together;
    }
}

/// Implements [`Rank`] by functions that are compiled for each instruction set.
macro_rules! rank {
    ($rank:ty, $module:ident) => {
        mod $module {
            use super::{RankScratch, Ranked};
            use std::ops::Range;

            dispatched! {
                pub(super) fn rank(ranked: &Ranked<$rank>, dim: usize, points: &[f32], scratch: &mut RankScratch<$rank>) {
                    super::rank_rows(ranked, dim, points, scratch);
                }
            }

            dispatched! {
                pub(super) fn add(ranked: &Ranked<$rank>, trees: Range<usize>, scratch: &mut RankScratch<$rank>, sums: &mut [f64]) {
                    super::add_trees(ranked, trees, scratch, sums);
                }
            }

            dispatched! {
                pub(super) fn select(ranked: &Ranked<$rank>, tree: usize, count: usize, scratch: &mut RankScratch<$rank>) {
                    super::select_rows(ranked, tree, count, scratch);
                }
            }
        }

        impl Rank for $rank {
            const NAN_HIGH: Self = Self::MAX;

            #[inline(always)]
            fn of(number: usize) -> Self {
                number as Self
            }

            fn rank(ranked: &Ranked<Self>, dim: usize, points: &[f32], scratch: &mut RankScratch<Self>) {
                $module::rank(ranked, dim, points, scratch);
            }

            fn add(
                ranked: &Ranked<Self>,
                trees: std::ops::Range<usize>,
                scratch: &mut RankScratch<Self>,
                sums: &mut [f64],
            ) {
                $module::add(ranked, trees, scratch, sums);
            }

            fn select(ranked: &Ranked<Self>, tree: usize, count: usize, scratch: &mut RankScratch<Self>) {
                $module::select(ranked, tree, count, scratch);
            }
        }
    };
}

rank!(u8, bytes);
rank!(u16, words);
