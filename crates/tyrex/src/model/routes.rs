//! The scores of a tree ensemble along one feature, or over the values of two, in one walk.
//!
//! A sum of trees is constant on the cells between its borders. If only some columns of a point
//! change, and those only to `n` listed values, then in each tree a walk follows both branches at
//! the nodes of these columns and one branch elsewhere. Every leaf it reaches adds its weight to a
//! range of the `n` values, as two numbers in a list of differences; the sums of that list are the
//! outputs at all `n` values. A tree is visited once and not `n` times.

use super::trees::{Aggregate, Comparison, Substitute, Transform, TreeNode};
use super::{Model as _, TreeEnsemble};

/// The nodes of a sum of trees, for walks.
#[derive(Debug)]
pub(crate) struct Routes {
    dim: usize,
    nodes: Vec<Node>,
    roots: Vec<u32>,
    /// Output and weight, leaf by leaf.
    weights: Vec<(u32, f64)>,
    sets: Vec<Vec<f32>>,
    divisor: f64,
    base: Vec<f64>,
    transform: Transform,
    substitutes: Vec<Substitute>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    question: Question,
    /// Whether NaN goes to `low`.
    missing: bool,
    column: u32,
    threshold: f32,
    /// The next node on "yes"; in a leaf, the index of its first weight.
    low: u32,
    /// The next node on "no"; in a leaf, the index after its last weight.
    high: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// `x <= t`
    AtMost,
    /// `x == t`
    Equal,
    /// `x` is in a set.
    Member(u32),
    Leaf,
}

/// Values of neighbouring columns to try: one choice per row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The first column.
    pub(crate) start: usize,
    /// The number of columns.
    pub(crate) width: usize,
    /// The values, choice by choice.
    pub(crate) values: &'a [f32],
}

impl Line<'_> {
    /// The number of choices.
    pub(crate) fn len(&self) -> usize {
        self.values.len() / self.width
    }
}

/// A map of all points, column by column: `x_j -> factor x_j + shift_j`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shift<'a> {
    /// The factor.
    pub(crate) factor: f32,
    /// The shifts; none if they are 0.
    pub(crate) by: Option<&'a [f32]>,
}

impl Shift<'_> {
    /// No change.
    pub(crate) const NONE: Self = Self { factor: 1.0, by: None };

    fn of(&self, column: usize, x: f32) -> f32 {
        let scaled = if self.factor == 1.0 { x } else { self.factor * x };
        self.by.map_or(scaled, |by| by[column] + scaled)
    }
}

/// Scratch space of one thread for walks.
#[derive(Debug, Default)]
pub(crate) struct RoutesScratch {
    point: Vec<f32>,
    free: [Free; 2],
    sums: Vec<f64>,
    /// The scores at every choice of a line.
    pub(crate) scores: Vec<f32>,
    /// Their logits, not clipped.
    pub(crate) logits: Vec<f64>,
}

/// The columns that a line changes, and their values at every choice.
#[derive(Debug, Default)]
struct Free {
    /// For each column of the points, its place among the changed ones, or `FIXED`.
    places: Vec<u32>,
    columns: Vec<usize>,
    /// Place by place, choice by choice.
    values: Vec<f32>,
    /// Whether the values at a place ascend.
    ascending: Vec<bool>,
    count: usize,
}

const FIXED: u32 = u32::MAX;

impl Routes {
    /// The routes of an ensemble whose outputs are sums; `None` for one that takes the least or the
    /// largest weight.
    pub(crate) fn of(ensemble: &TreeEnsemble) -> Option<Self> {
        if matches!(ensemble.aggregate(), Aggregate::Minimum | Aggregate::Maximum) {
            return None;
        }
        let trees = ensemble.as_given();
        let is_average = ensemble.aggregate() == Aggregate::Average;
        let mut routes = Self {
            dim: ensemble.dim(),
            nodes: Vec::new(),
            roots: Vec::new(),
            weights: Vec::new(),
            sets: Vec::new(),
            divisor: if is_average { trees.len().max(1) as f64 } else { 1.0 },
            base: ensemble.base().iter().map(|&base| f64::from(base)).collect(),
            transform: ensemble.transform(),
            substitutes: ensemble.substitutes().to_vec(),
        };
        trees.iter().for_each(|tree| routes.push(tree));
        Some(routes)
    }

    fn push(&mut self, tree: &[TreeNode]) {
        let start = self.nodes.len();
        self.roots.push(start as u32);
        for node in tree {
            let node = match node {
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no } => {
                    let (question, threshold, negated) = at_most(*comparison, *threshold);
                    let (low, high) = if negated { (no, yes) } else { (yes, no) };
                    Node {
                        question,
                        missing: *missing != negated,
                        column: *feature as u32,
                        threshold,
                        low: (start + low) as u32,
                        high: (start + high) as u32,
                    }
                }
                TreeNode::Member { feature, values, missing, yes, no } => {
                    self.sets.push(values.clone());
                    Node {
                        question: Question::Member(self.sets.len() as u32 - 1),
                        missing: *missing,
                        column: *feature as u32,
                        threshold: 0.0,
                        low: (start + yes) as u32,
                        high: (start + no) as u32,
                    }
                }
                TreeNode::Leaf { weights } => {
                    let low = self.weights.len() as u32;
                    let own = weights.iter().map(|&(o, w)| (o as u32, f64::from(w)));
                    self.weights.extend(own);
                    let high = self.weights.len() as u32;
                    let (column, threshold) = (0, 0.0);
                    Node { question: Question::Leaf, missing: false, column, threshold, low, high }
                }
            };
            self.nodes.push(node);
        }
    }

    /// The scores and the logits at a shifted point, with each choice of a line, in the scratch
    /// space.
    pub(crate) fn along(
        &self,
        x: &[f32],
        line: Line<'_>,
        shift: Shift<'_>,
        scratch: &mut RoutesScratch,
    ) {
        let RoutesScratch { point, free: [free, _], sums, .. } = scratch;
        self.place(point, x, shift);
        self.free(free, point, line, shift);
        self.substitute(point);
        let (count, row) = (line.len(), line.len() + 1);
        sums.clear();
        sums.resize(self.base.len() * row, 0.0);
        for &root in &self.roots {
            self.walk(root, point, free, (0, count), sums);
        }
        for sums in sums.chunks_exact_mut(row) {
            let mut total = 0.0;
            for sum in sums {
                total += *sum;
                *sum = total;
            }
        }
        self.logits(scratch, row, |choice| choice, count);
        let RoutesScratch { sums, scores, logits, .. } = scratch;
        scores.clear();
        scores.extend(sums.iter().zip(&*logits).map(|(&sum, &logit)| match self.transform {
            Transform::Identity => (sum / self.divisor + self.base[0]) as f32,
            Transform::Logistic | Transform::Softmax { .. } => {
                (1.0 / (1.0 + (-logit).exp())) as f32
            }
        }));
    }

    /// The logits at a point with each pair of choices of two lines, in the scratch space: the
    /// choices of the second line follow each other. False, and no logits, if one line decides
    /// whether a value of the other is missing.
    pub(crate) fn logits_over(
        &self,
        x: &[f32],
        [first, second]: [Line<'_>; 2],
        scratch: &mut RoutesScratch,
    ) -> bool {
        let RoutesScratch { point, free, sums, .. } = scratch;
        self.place(point, x, Shift::NONE);
        for (free, line) in free.iter_mut().zip([first, second]) {
            self.free(free, point, line, Shift::NONE);
        }
        if free[0].columns.iter().any(|&column| free[1].places[column] != FIXED) {
            return false;
        }
        self.substitute(point);
        let [rows, count] = [first.len(), second.len()];
        let row = count + 1;
        sums.clear();
        sums.resize(self.base.len() * (rows + 1) * row, 0.0);
        for &root in &self.roots {
            self.walk_both(root, point, free, [0, rows, 0, count], sums);
        }
        for sums in sums.chunks_exact_mut((rows + 1) * row) {
            for index in 0..=rows {
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
        let place = |choice: usize| choice / count * row + choice % count;
        self.logits(scratch, (rows + 1) * row, place, rows * count);
        true
    }

    fn place(&self, point: &mut Vec<f32>, x: &[f32], shift: Shift<'_>) {
        assert_eq!(x.len(), self.dim, "the dimension of the point");
        point.clear();
        point.extend(x.iter().enumerate().map(|(column, &x)| shift.of(column, x)));
    }

    fn substitute(&self, point: &mut [f32]) {
        for &Substitute { column, indicator, value } in &self.substitutes {
            if point[indicator] >= 0.5 {
                point[column] = value;
            }
        }
    }

    /// Finds the columns that a line changes, and their values. The point has no substitutes yet.
    fn free(&self, free: &mut Free, point: &[f32], line: Line<'_>, shift: Shift<'_>) {
        let Line { start, width, values } = line;
        let own = start..start + width;
        free.places.clear();
        free.places.resize(self.dim, FIXED);
        free.columns.clear();
        free.columns.extend(own.clone());
        for substitute in &self.substitutes {
            if own.contains(&substitute.indicator) && !own.contains(&substitute.column) {
                free.columns.push(substitute.column);
            }
        }
        free.count = line.len();
        free.values.clear();
        free.ascending.clear();
        for (place, &column) in free.columns.iter().enumerate() {
            free.places[column] = place as u32;
            let substitute = self.substitutes.iter().find(|own| own.column == column);
            for choice in values.chunks_exact(width) {
                let at = |column: usize| {
                    if own.contains(&column) {
                        shift.of(column, choice[column - start])
                    } else {
                        point[column]
                    }
                };
                let missing = substitute.filter(|own| at(own.indicator) >= 0.5);
                free.values.push(missing.map_or_else(|| at(column), |own| own.value));
            }
            let values = &free.values[place * free.count..];
            free.ascending.push(values.is_sorted() && values.iter().all(|x| !x.is_nan()));
        }
    }

    /// Adds the leaves reached by the choices `from..to` to the differences.
    fn walk(
        &self,
        mut at: u32,
        point: &[f32],
        free: &Free,
        (mut from, to): (usize, usize),
        sums: &mut [f64],
    ) {
        loop {
            let node = &self.nodes[at as usize];
            if node.question == Question::Leaf {
                for &(output, weight) in self.leaf(node) {
                    let row = output as usize * (free.count + 1);
                    sums[row + from] += weight;
                    sums[row + to] -= weight;
                }
                return;
            }
            let place = free.places[node.column as usize];
            if place == FIXED {
                at = self.next(node, point[node.column as usize]);
                continue;
            }
            // The last part is followed here, the others by calls.
            let values = free.of(place);
            while let Some(cut) = self.cut(free, node, from, to) {
                self.walk(self.next(node, values[from]), point, free, (from, cut), sums);
                from = cut;
            }
            at = self.next(node, values[from]);
        }
    }

    /// The same for pairs of choices `[from, to, from, to]`.
    fn walk_both(
        &self,
        mut at: u32,
        point: &[f32],
        free: &[Free; 2],
        mut ranges: [usize; 4],
        sums: &mut [f64],
    ) {
        loop {
            let node = &self.nodes[at as usize];
            if node.question == Question::Leaf {
                let row = free[1].count + 1;
                let block = row * (free[0].count + 1);
                let [a, b, c, d] = ranges;
                for &(output, weight) in self.leaf(node) {
                    let sums = &mut sums[output as usize * block..][..block];
                    sums[a * row + c] += weight;
                    sums[a * row + d] -= weight;
                    sums[b * row + c] -= weight;
                    sums[b * row + d] += weight;
                }
                return;
            }
            let column = node.column as usize;
            let which = usize::from(free[0].places[column] == FIXED);
            let place = free[which].places[column];
            if place == FIXED {
                at = self.next(node, point[column]);
                continue;
            }
            let values = free[which].of(place);
            let (from, to) = (2 * which, 2 * which + 1);
            while let Some(cut) = self.cut(&free[which], node, ranges[from], ranges[to]) {
                let mut part = ranges;
                part[to] = cut;
                self.walk_both(self.next(node, values[ranges[from]]), point, free, part, sums);
                ranges[from] = cut;
            }
            at = self.next(node, values[ranges[from]]);
        }
    }

    fn next(&self, node: &Node, x: f32) -> u32 {
        if self.is_low(node, x) { node.low } else { node.high }
    }

    fn is_low(&self, node: &Node, x: f32) -> bool {
        if x.is_nan() {
            return node.missing;
        }
        match node.question {
            Question::AtMost => x <= node.threshold,
            Question::Member(set) => self.sets[set as usize].contains(&x),
            Question::Equal | Question::Leaf => x == node.threshold,
        }
    }

    /// The first choice in the range that leaves the node by another branch than the first one.
    fn cut(&self, free: &Free, node: &Node, from: usize, to: usize) -> Option<usize> {
        let place = free.places[node.column as usize];
        let values = &free.of(place)[from..to];
        let (first, rest) = values.split_first()?;
        if free.ascending[place as usize] && node.question == Question::AtMost {
            if *first > node.threshold || *rest.last().unwrap_or(first) <= node.threshold {
                return None;
            }
            return Some(from + values.partition_point(|&x| x <= node.threshold));
        }
        let is_low = self.is_low(node, *first);
        let other = rest.iter().position(|&x| self.is_low(node, x) != is_low);
        other.map(|other| from + 1 + other)
    }

    fn leaf(&self, node: &Node) -> &[(u32, f64)] {
        &self.weights[node.low as usize..node.high as usize]
    }

    /// The logits from the sums of each output, whose blocks have this length.
    fn logits(
        &self,
        scratch: &mut RoutesScratch,
        block: usize,
        place: impl Fn(usize) -> usize,
        count: usize,
    ) {
        let RoutesScratch { sums, logits, .. } = scratch;
        logits.clear();
        logits.extend((0..count).map(|choice| {
            let at = place(choice);
            let output = |index: usize| sums[index * block + at] / self.divisor + self.base[index];
            match self.transform {
                Transform::Logistic => output(0),
                Transform::Identity => {
                    let score = f64::from(output(0) as f32);
                    score.max(EDGE).ln() - (1.0 - score).max(EDGE).ln()
                }
                Transform::Softmax { favourable } => {
                    let others = (0..self.base.len()).filter(|&other| other != favourable);
                    let highest = others.clone().map(output).fold(f64::NEG_INFINITY, f64::max);
                    if highest == f64::NEG_INFINITY {
                        return f64::INFINITY;
                    }
                    let rest = others.map(|other| (output(other) - highest).exp()).sum::<f64>();
                    output(favourable) - highest - rest.ln()
                }
            }
        }));
    }
}

/// The least distance from 0 and 1 at which the logit of a probability is taken.
const EDGE: f64 = 1e-30;

impl Free {
    fn of(&self, place: u32) -> &[f32] {
        &self.values[place as usize * self.count..][..self.count]
    }
}

/// A comparison as `x <= t` or `x == t`, and whether the answer is negated.
fn at_most(comparison: Comparison, threshold: f32) -> (Question, f32, bool) {
    match comparison {
        Comparison::LessOrEqual => (Question::AtMost, threshold, false),
        Comparison::Greater => (Question::AtMost, threshold, true),
        Comparison::Less => (Question::AtMost, threshold.next_down(), false),
        Comparison::GreaterOrEqual => (Question::AtMost, threshold.next_down(), true),
        Comparison::Equal => (Question::Equal, threshold, false),
        Comparison::NotEqual => (Question::Equal, threshold, true),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::points::Points;
    use crate::seed::Seed;

    const DIM: usize = 4;

    /// A number on a coarse grid, so that points often lie on thresholds.
    fn number(rng: &mut impl rand::Rng) -> f32 {
        (rng.random_range(-8..=8) as f32) / 4.0
    }

    /// Random trees with all kinds of questions.
    fn ensemble(outputs: usize, seed: u64) -> TreeEnsemble {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let kinds = [LessOrEqual, Less, GreaterOrEqual, Greater, Equal, NotEqual];
        let mut rng = Seed(seed).rng();
        let mut trees = Vec::new();
        for _ in 0..6 {
            let mut tree = vec![TreeNode::Leaf { weights: Vec::new() }];
            let mut open = vec![(0, 0)];
            while let Some((at, depth)) = open.pop() {
                if depth == 4 || rng.random_range(0..5) == 0 {
                    let weight = rng.random_range(-1.0..1.0);
                    let weights = vec![(rng.random_range(0..outputs), weight)];
                    tree[at] = TreeNode::Leaf { weights };
                    continue;
                }
                let (yes, no) = (tree.len(), tree.len() + 1);
                let (feature, missing) = (rng.random_range(0..DIM), rng.random());
                tree[at] = if rng.random_range(0..6) == 0 {
                    let values = (0..3).map(|_| number(&mut rng)).collect();
                    TreeNode::Member { feature, values, missing, yes, no }
                } else {
                    let comparison = kinds[rng.random_range(0..kinds.len())];
                    let threshold = number(&mut rng);
                    TreeNode::Branch { feature, comparison, threshold, missing, yes, no }
                };
                tree.extend([const { TreeNode::Leaf { weights: Vec::new() } }; 2]);
                open.extend([(yes, depth + 1), (no, depth + 1)]);
            }
            trees.push(tree);
        }
        let transform = match (outputs, seed % 2) {
            (1, 0) => Transform::Logistic,
            (1, _) => Transform::Identity,
            _ => Transform::Softmax { favourable: 1 },
        };
        let aggregate = if seed.is_multiple_of(3) { Aggregate::Average } else { Aggregate::Sum };
        let ensemble =
            TreeEnsemble::new(DIM, &trees, aggregate, vec![0.25; outputs], transform).unwrap();
        let value = if seed.is_multiple_of(5) { f32::NAN } else { 0.5 };
        ensemble.with_substitutes(&[Substitute { column: 1, indicator: 2, value }])
    }

    /// The scores of all points with the choices of lines, one by one.
    fn one_by_one(
        ensemble: &TreeEnsemble,
        x: &[f32],
        lines: &[Line<'_>],
        shift: Shift<'_>,
    ) -> Vec<f32> {
        let mut points = vec![x.to_vec()];
        for line in lines {
            points = points
                .iter()
                .flat_map(|point| {
                    line.values.chunks_exact(line.width).map(|choice| {
                        let mut point = point.clone();
                        point[line.start..line.start + line.width].copy_from_slice(choice);
                        point
                    })
                })
                .collect();
        }
        let mut all = Points::new(x.len());
        for mut point in points {
            for (column, x) in point.iter_mut().enumerate() {
                *x = shift.of(column, *x);
            }
            all.push(&point);
        }
        ensemble.score(&all)
    }

    proptest! {
        #[test]
        fn a_walk_gives_the_scores_of_all_choices(
            outputs in 1_usize..4, width in 1_usize..3, seed in 0_u64..5000, ascending: bool,
            factor in prop::sample::select(vec![1.0_f32, 0.5]), shifted: bool,
        ) {
            let ensemble = ensemble(outputs, seed);
            let mut rng = Seed(seed).derive("points").rng();
            let x: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
            let mut values: Vec<f32> = (0..width * 20).map(|_| number(&mut rng)).collect();
            if ascending {
                values.sort_by(f32::total_cmp);
            }
            let start = rng.random_range(0..=DIM - width);
            let line = Line { start, width, values: &values };
            let offset: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
            let shift = Shift { factor, by: shifted.then_some(offset.as_slice()) };
            let routes = Routes::of(&ensemble).unwrap();
            let mut scratch = RoutesScratch::default();
            routes.along(&x, line, shift, &mut scratch);
            let expected = one_by_one(&ensemble, &x, &[line], shift);
            prop_assert_eq!(scratch.scores.len(), expected.len());
            for ((score, logit), expected) in scratch.scores.iter().zip(&scratch.logits).zip(&expected) {
                prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
                if (0.01..0.99).contains(expected) {
                    let score = 1.0 / (1.0 + (-logit).exp()) as f32;
                    prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
                }
            }
        }

        #[test]
        fn a_walk_over_two_lines_gives_the_logits_of_all_pairs(
            outputs in 1_usize..4, seed in 0_u64..5000,
        ) {
            let ensemble = ensemble(outputs, seed);
            let mut rng = Seed(seed).derive("points").rng();
            let x: Vec<f32> = (0..DIM).map(|_| number(&mut rng)).collect();
            let mut first: Vec<f32> = (0..9).map(|_| number(&mut rng)).collect();
            first.sort_by(f32::total_cmp);
            let second: Vec<f32> = (0..14).map(|_| number(&mut rng)).collect();
            // The column of the substitute, or the one that decides about it.
            let at = [0, 1][(seed % 2) as usize];
            let lines = [
                Line { start: at, width: 1, values: &first },
                Line { start: 2, width: 2, values: &second },
            ];
            let routes = Routes::of(&ensemble).unwrap();
            let mut scratch = RoutesScratch::default();
            let together = routes.logits_over(&x, lines, &mut scratch);
            prop_assert_eq!(together, at == 0);
            if !together {
                return Ok(());
            }
            let expected = one_by_one(&ensemble, &x, &lines, Shift::NONE);
            prop_assert_eq!(scratch.logits.len(), expected.len());
            for (logit, expected) in scratch.logits.iter().zip(&expected) {
                if (0.01..0.99).contains(expected) {
                    let score = 1.0 / (1.0 + (-logit).exp()) as f32;
                    prop_assert!((score - expected).abs() < 1e-5, "{} {}", score, expected);
                }
            }
        }
    }
}
