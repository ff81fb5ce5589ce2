//! Walks through trees, by the answers to their questions.

use super::answers::{Answers, FIXED, FreeLine};
use super::{LEAF, Line, Node, Routes, RoutesScratch, Shift};

/// The lines that a walk has asked in a tree.
#[derive(Debug, Default)]
pub(super) struct Asked {
    lines: Vec<u32>,
    /// The last tree that asked each line.
    by: Vec<u32>,
}

/// A walk along lines, and what it adds up.
struct Walk<'a> {
    routes: &'a Routes,
    answers: &'a Answers,
    lines: &'a [FreeLine],
    /// The differences of one output.
    width: usize,
    sums: &'a mut [f64],
}

impl Routes {
    /// The sums of all trees at every choice of every line. False if two lines decide about the
    /// same column.
    pub(super) fn sum_along(
        &self,
        x: &[f32],
        lines: &[Line<'_>],
        shift: Shift<'_>,
        scratch: &mut RoutesScratch,
    ) -> bool {
        let RoutesScratch { answers, sums, common, asked, .. } = scratch;
        if !self.answer(answers, x, lines, shift) {
            return false;
        }
        let width = answers.width();
        sums.clear();
        sums.resize(self.base.len() * width, 0.0);
        common.clear();
        common.resize(self.base.len(), 0.0);
        asked.by.clear();
        asked.by.resize(lines.len(), u32::MAX);
        let mut walk = Walk { routes: self, answers, lines: &answers.lines, width, sums };
        for (tree, &root) in (0..).zip(&self.roots) {
            walk.fan(tree, root, asked, common);
        }
        for (sums, &common) in sums.chunks_exact_mut(width.max(1)).zip(&*common) {
            for line in &answers.lines {
                let mut total = common;
                for sum in &mut sums[line.range()] {
                    total += *sum;
                    *sum = total;
                }
            }
        }
        true
    }

    /// The logits at a point with each pair of choices of two lines, in the scratch space: the
    /// choices of the second line follow each other. False, and no logits, if one line decides
    /// whether a value of the other is missing.
    pub(crate) fn logits_over(
        &self,
        x: &[f32],
        lines: [Line<'_>; 2],
        scratch: &mut RoutesScratch,
    ) -> bool {
        let RoutesScratch { answers, sums, common, logits, paths, .. } = scratch;
        if !self.answer(answers, x, &lines, Shift::NONE) {
            return false;
        }
        paths.follow(self, answers);
        paths.choose(lines.iter().flat_map(|line| self.columns_of(line)));
        let [rows, count] = lines.map(|line| line.len());
        let row = count + 1;
        let block = (rows + 1) * row;
        sums.clear();
        sums.resize(self.base.len() * block, 0.0);
        common.clone_from(&paths.sums);
        let mut walk = Walk { routes: self, answers, lines: &answers.lines, width: block, sums };
        for &tree in &paths.chosen {
            let tree = tree as usize;
            for &(output, weight) in self.leaf(&self.nodes[paths.leaves[tree] as usize]) {
                common[output as usize] -= weight;
            }
            walk.both(self.roots[tree], [0, rows, 0, count], common);
        }
        for (sums, &common) in sums.chunks_exact_mut(block).zip(&*common) {
            sums[0] += common;
            for index in 0..rows {
                let (before, here) = sums.split_at_mut(index * row);
                let here = &mut here[..row];
                let mut total = 0.0;
                if let Some(above) = index.checked_sub(1) {
                    let above = &before[above * row..];
                    for (sum, above) in here.iter_mut().zip(above) {
                        total += *sum;
                        *sum = total + above;
                    }
                } else {
                    for sum in here {
                        total += *sum;
                        *sum = total;
                    }
                }
            }
        }
        logits.clear();
        for row in (0..rows).map(|index| index * row..index * row + count) {
            logits.extend(row.map(|at| self.logit(sums, block, at)));
        }
        true
    }
}

/// The paths of one point through all trees.
#[derive(Debug, Default)]
pub(super) struct Paths {
    point: Vec<f32>,
    /// The trees whose path asks each column.
    asking: Vec<Vec<u32>>,
    /// The leaf of each tree.
    leaves: Vec<u32>,
    /// Their sums, output by output.
    sums: Vec<f64>,
    /// The trees whose path asks some columns.
    chosen: Vec<u32>,
}

impl Paths {
    /// Follows the paths of the point whose answers are known, unless they are known too.
    fn follow(&mut self, routes: &Routes, answers: &Answers) {
        let point = answers.point();
        let is_known = self.point.len() == point.len()
            && self.point.iter().zip(point).all(|(a, b)| a.to_bits() == b.to_bits());
        if is_known && !self.asking.is_empty() {
            return;
        }
        self.point.clear();
        self.point.extend_from_slice(point);
        self.asking.resize_with(routes.dim, Vec::new);
        self.asking.iter_mut().for_each(Vec::clear);
        self.leaves.clear();
        self.sums.clear();
        self.sums.resize(routes.base.len(), 0.0);
        for (tree, &root) in (0..).zip(&routes.roots) {
            let mut at = root;
            let leaf = loop {
                let node = &routes.nodes[at as usize];
                if node.question == LEAF {
                    break node;
                }
                let question = node.question as usize;
                let asking = &mut self.asking[routes.questions[question].column as usize];
                if asking.last() != Some(&tree) {
                    asking.push(tree);
                }
                at = if answers.all[question].low { node.low } else { node.high };
            };
            self.leaves.push(at);
            for &(output, weight) in routes.leaf(leaf) {
                self.sums[output as usize] += weight;
            }
        }
    }

    /// Chooses the trees whose path asks one of some columns. All others have the same leaf whatever
    /// the values of these columns are.
    fn choose(&mut self, columns: impl Iterator<Item = usize>) {
        let Self { asking, chosen, .. } = self;
        chosen.clear();
        columns.for_each(|column| chosen.extend_from_slice(&asking[column]));
        chosen.sort_unstable();
        chosen.dedup();
    }
}

impl Walk<'_> {
    fn node(&self, at: u32) -> &Node {
        &self.routes.nodes[at as usize]
    }

    /// Walks from the root by the point; along each line from the first node that asks it.
    fn fan(&mut self, tree: u32, root: u32, asked: &mut Asked, common: &mut [f64]) {
        asked.lines.clear();
        let mut at = root;
        loop {
            let &Node { question, low, high } = self.node(at);
            if question == LEAF {
                for &(output, weight) in &self.routes.weights[low as usize..high as usize] {
                    common[output as usize] += weight;
                    for &line in &asked.lines {
                        let start = self.lines[line as usize].start;
                        self.sums[output as usize * self.width + start] -= weight;
                    }
                }
                return;
            }
            let answer = self.answers.all[question as usize];
            if answer.line != FIXED && asked.by[answer.line as usize] != tree {
                asked.by[answer.line as usize] = tree;
                asked.lines.push(answer.line);
                self.along(at, answer.line, (0, self.lines[answer.line as usize].count));
            }
            at = if answer.low { low } else { high };
        }
    }

    /// Adds the leaves reached by the choices `from..to` of a line to the differences.
    fn along(&mut self, mut at: u32, line: u32, (mut from, to): (usize, usize)) {
        loop {
            let &Node { question, low, high } = self.node(at);
            if question == LEAF {
                let start = self.lines[line as usize].start;
                for &(output, weight) in &self.routes.weights[low as usize..high as usize] {
                    let row = output as usize * self.width + start;
                    self.sums[row + from] += weight;
                    self.sums[row + to] -= weight;
                }
                return;
            }
            let answer = self.answers.all[question as usize];
            let mut is_low = answer.low;
            if answer.line == line {
                is_low = self.answers.is_low(&answer, from);
                // The last part is followed here, the others by calls.
                while let Some(cut) = self.answers.cut(&answer, from, to) {
                    self.along(if is_low { low } else { high }, line, (from, cut));
                    from = cut;
                    is_low = !is_low;
                }
            }
            at = if is_low { low } else { high };
        }
    }

    /// The same for pairs of choices `[from, to, from, to]` of the two lines. Leaves that all pairs
    /// reach are added to `common`.
    fn both(&mut self, mut at: u32, mut ranges: [usize; 4], common: &mut [f64]) {
        loop {
            let &Node { question, low, high } = self.node(at);
            if question == LEAF {
                let [rows, count] = [self.lines[0].count, self.lines[1].count];
                let row = count + 1;
                let [a, b, c, d] = ranges;
                for &(output, weight) in &self.routes.weights[low as usize..high as usize] {
                    if ranges == [0, rows, 0, count] {
                        common[output as usize] += weight;
                        continue;
                    }
                    let sums = &mut self.sums[output as usize * self.width..][..self.width];
                    sums[a * row + c] += weight;
                    sums[a * row + d] -= weight;
                    sums[b * row + c] -= weight;
                    sums[b * row + d] += weight;
                }
                return;
            }
            let answer = self.answers.all[question as usize];
            let mut is_low = answer.low;
            if answer.line != FIXED {
                let (from, to) = (2 * answer.line as usize, 2 * answer.line as usize + 1);
                is_low = self.answers.is_low(&answer, ranges[from]);
                while let Some(cut) = self.answers.cut(&answer, ranges[from], ranges[to]) {
                    let mut part = ranges;
                    part[to] = cut;
                    self.both(if is_low { low } else { high }, part, common);
                    ranges[from] = cut;
                    is_low = !is_low;
                }
            }
            at = if is_low { low } else { high };
        }
    }
}
