//! Compiles trees for their means: paths become sets of cells.

use super::{Column, Motion, Runs, Split, Tree};
use crate::model::trees::{Comparison, FlatNode, Question, TreeEnsemble};

/// The columns that trees ask about, and for each of all columns the place among them.
pub(super) fn columns(ensemble: &TreeEnsemble) -> (Vec<Column>, Vec<usize>) {
    let dim = ensemble.dim;
    let thresholds = ensemble.thresholds();
    let (mut used, mut codes, mut nan_below) =
        (vec![false; dim], vec![false; dim], vec![0_i64; dim]);
    for node in &ensemble.nodes {
        let column = node.feature as usize;
        let (below, is_code) = match node.question {
            Question::Compare(Comparison::LessOrEqual | Comparison::Less, _) => (true, false),
            Question::Compare(Comparison::GreaterOrEqual | Comparison::Greater, _) => {
                (false, false)
            }
            Question::Compare(..) | Question::Member(_) => (true, true),
            Question::Leaf => continue,
        };
        used[column] = true;
        codes[column] |= is_code;
        // Nearly all sets of cells are one run if NaN is at the end where it counts most often.
        nan_below[column] += if below == node.missing { 1 } else { -1 };
    }
    let (mut columns, mut place, mut offset) = (Vec::new(), vec![usize::MAX; dim], 0);
    for index in (0..dim).filter(|&index| used[index]) {
        let substitute = ensemble.substitutes.iter().rfind(|own| own.column == index).copied();
        let is_mark = ensemble.substitutes.iter().any(|own| own.indicator == index);
        let motion = match () {
            () if is_mark => Motion::Switch,
            () if codes[index] => Motion::Still,
            () => Motion::Gaussian,
        };
        let cuts = thresholds.column(index).cuts().to_vec();
        place[index] = columns.len();
        let nan_first = nan_below[index] > 0;
        let entries = cuts.len() + 3;
        columns.push(Column { index, motion, nan_first, cuts, offset, substitute });
        offset += entries;
    }
    (columns, place)
}

/// Builds the trees of a [`SmoothedTrees`].
pub(super) struct Builder<'a> {
    pub(super) ensemble: &'a TreeEnsemble,
    pub(super) columns: &'a [Column],
    pub(super) place: &'a [usize],
    pub(super) k: usize,
}

/// Cells of a column, as sorted runs that do not touch.
pub(super) type Cells = Vec<(u32, u32)>;

impl Builder<'_> {
    /// A tree, whose leaves' values are added to `values`.
    pub(super) fn tree(&self, root: u32, values: &mut Vec<f64>, many: &mut Vec<Cells>) -> Tree {
        /// A node to visit: where it is, the cells of columns that lead to it, the split above.
        struct Visit {
            node: u32,
            path: Vec<(usize, Cells)>,
            parent: Option<(usize, usize)>,
        }
        /// A node of the new tree.
        #[derive(Clone, Copy)]
        enum Next {
            Split(usize),
            Leaf(usize),
        }
        let mut splits: Vec<Split> = Vec::new();
        let mut children: Vec<[Next; 2]> = Vec::new();
        let (first_value, mut leaves) = (values.len(), 0);
        let mut visits = vec![Visit { node: root, path: Vec::new(), parent: None }];
        while let Some(Visit { mut node, path, parent }) = visits.pop() {
            // Past the questions whose answer the path decides.
            let next = loop {
                let flat = &self.ensemble.nodes[node as usize];
                if flat.question == Question::Leaf {
                    self.add_leaf(flat, values);
                    leaves += 1;
                    break Next::Leaf(leaves - 1);
                }
                let place = self.place[flat.feature as usize];
                let column = &self.columns[place];
                let all = path.iter().find(|(own, _)| *own == place).map_or_else(
                    || vec![(0, column.cuts.len() as u32 + 2)],
                    |(_, cells)| cells.clone(),
                );
                let yes = intersection(&all, &self.yes(flat, column));
                let no = difference(&all, &yes);
                if no.is_empty() {
                    node = flat.yes;
                    continue;
                }
                if yes.is_empty() {
                    node = flat.no;
                    continue;
                }
                let [first, other] = if yes.len() <= no.len() {
                    [(yes, flat.yes), (no, flat.no)]
                } else {
                    [(no, flat.no), (yes, flat.yes)]
                };
                let index = splits.len();
                splits.push(Split {
                    column: place as u32,
                    all: column.runs(&all, many),
                    first: column.runs(&first.0, many),
                    children: [0; 2],
                });
                children.push([Next::Leaf(0); 2]);
                // The last one pushed comes first.
                for (which, (cells, node)) in [(1, other), (0, first)] {
                    let mut path = path.clone();
                    path.retain(|(own, _)| *own != place);
                    path.push((place, cells));
                    visits.push(Visit { node, path, parent: Some((index, which)) });
                }
                break Next::Split(index);
            };
            if let Some((split, which)) = parent {
                children[split][which] = next;
            }
        }
        let count = splits.len();
        for (split, children) in splits.iter_mut().zip(children) {
            split.children = children.map(|next| match next {
                Next::Split(index) => index as u32,
                Next::Leaf(index) => (count + index) as u32,
            });
        }
        Tree { splits, values: first_value..values.len() }
    }

    /// Adds a leaf's values.
    fn add_leaf(&self, flat: &FlatNode, values: &mut Vec<f64>) {
        let start = values.len();
        values.resize(start + self.k, 0.0);
        for &(output, weight) in self.ensemble.leaf(flat) {
            values[start + output as usize] += f64::from(weight);
        }
    }

    /// The cells for which a node's answer is "yes".
    fn yes(&self, flat: &FlatNode, column: &Column) -> Cells {
        let numbers = column.numbers();
        let (low, high) = (numbers.start as u32, numbers.end as u32);
        let cell = |x: f32| low + column.cuts.partition_point(|&cut| cut <= x) as u32;
        // The first cell above a number: the one of the next larger number.
        let above = |t: f32| if t == f32::INFINITY { high } else { cell((t + 0.0).next_up()) };
        let mut yes: Cells = match flat.question {
            Question::Compare(Comparison::Less, t) => vec![(low, cell(t))],
            Question::Compare(Comparison::LessOrEqual, t) => vec![(low, above(t))],
            Question::Compare(Comparison::GreaterOrEqual, t) => vec![(cell(t), high)],
            Question::Compare(Comparison::Greater, t) => vec![(above(t), high)],
            Question::Compare(Comparison::Equal, t) => vec![(cell(t), above(t))],
            Question::Compare(Comparison::NotEqual, t) => {
                vec![(low, cell(t)), (above(t), high)]
            }
            Question::Member(set) => {
                let set = &self.ensemble.sets[set as usize];
                set.iter().map(|&value| (cell(value), above(value))).collect()
            }
            Question::Leaf => Vec::new(),
        };
        if flat.missing {
            let nan = if column.nan_first { 0 } else { high };
            yes.push((nan, nan + 1));
        }
        yes.sort_unstable();
        joined(yes)
    }
}

impl Column {
    /// Cells as entries of the tables.
    pub(super) fn runs(&self, cells: &Cells, many: &mut Vec<Cells>) -> Runs {
        let offset = self.offset as u32;
        if let [(from, to)] = cells[..] {
            return Runs { from: offset + from, to: offset + to };
        }
        many.push(cells.iter().map(|&(from, to)| (offset + from, offset + to)).collect());
        Runs { from: u32::MAX, to: (many.len() - 1) as u32 }
    }
}

/// Sorted runs without the empty ones, joined where they touch.
fn joined(runs: Cells) -> Cells {
    let mut joined: Cells = Vec::new();
    for (from, to) in runs.into_iter().filter(|(from, to)| from < to) {
        match joined.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

fn intersection(a: &Cells, b: &Cells) -> Cells {
    let both = a.iter().flat_map(|&(from, to)| {
        b.iter().map(move |&(other, until)| (from.max(other), to.min(until)))
    });
    joined(both.collect())
}

/// What is in `a` and not in `b`, which is a part of `a`.
fn difference(a: &Cells, b: &Cells) -> Cells {
    let mut rest = Vec::new();
    for &(from, to) in a {
        let mut at = from;
        for &(other, until) in b.iter().filter(|(other, _)| (from..to).contains(other)) {
            rest.push((at, other));
            at = until;
        }
        rest.push((at, to));
    }
    joined(rest)
}
