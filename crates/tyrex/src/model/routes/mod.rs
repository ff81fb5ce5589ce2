//! The outputs of a tree ensemble along features, or over the values of two, in one walk.
//!
//! A sum of trees is constant on the cells between its borders. Let a *line* be `n` listed values of
//! one feature. For the values of one line, a walk follows both branches at the nodes that ask the
//! feature and one branch elsewhere; every leaf it reaches adds its weight to a range of the `n`
//! values, as two numbers in a list of differences, whose sums are the outputs at all values.
//!
//! For all lines at once, a tree is walked from the point itself. Where that walk asks a line for the
//! first time, a walk of that line begins; a line that is never asked changes nothing in this tree:
//!
//! `f(x with value c of line l) = sum_trees leaf(x) + sum_(trees that ask l) (leaf(x, c) - leaf(x))`
//!
//! So one walk through a tree of depth `d` reads all values of all features and passes about `d^2`
//! nodes.
//!
//! Trees ask the same questions again and again. Each is answered once, for the point and for the
//! values of its line ([`Answers`](answers::Answers)), and not again until one of them changes.

mod answers;
mod leaves;
mod walk;

use super::trees::{Aggregate, Comparison, Substitute, Transform, TreeNode};
use super::{Model as _, TreeEnsemble};

use self::answers::Answers;
pub(crate) use self::leaves::LeafBoxes;

/// The nodes of a sum of trees, for walks.
#[derive(Debug)]
pub(crate) struct Routes {
    dim: usize,
    nodes: Vec<Node>,
    roots: Vec<u32>,
    /// Output and weight, leaf by leaf.
    weights: Vec<(u32, f64)>,
    /// Each once, column by column, the thresholds of a column ascending.
    questions: Vec<Question>,
    /// The first question of each column, and the number of all.
    of_columns: Vec<u32>,
    sets: Vec<Vec<f32>>,
    divisor: f64,
    base: Vec<f64>,
    transform: Transform,
    substitutes: Vec<Substitute>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The index of the question, or `LEAF`.
    question: u32,
    /// The next node on "yes"; in a leaf, the index of its first weight.
    low: u32,
    /// The next node on "no"; in a leaf, the index after its last weight.
    high: u32,
}

const LEAF: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Question {
    column: u32,
    asks: Asks,
    threshold: f32,
    /// Whether NaN is "yes".
    missing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    /// `x <= t`
    AtMost,
    /// `x == t`
    Equal,
    /// `x` is in a set.
    Member(u32),
}

impl Question {
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let key = |own: &Self| (own.column, own.asks, own.missing);
        let (first, second) = (key(self), key(other));
        let threshold = self.threshold.total_cmp(&other.threshold);
        (first.0, first.1).cmp(&(second.0, second.1)).then(threshold).then(first.2.cmp(&second.2))
    }
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

    /// Some of its choices.
    pub(crate) fn part(&self, choices: std::ops::Range<usize>) -> Self {
        let values = &self.values[choices.start * self.width..choices.end * self.width];
        Self { values, ..*self }
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

/// Scratch space of one thread for walks of one ensemble.
#[derive(Debug, Default)]
pub(crate) struct RoutesScratch {
    answers: Answers,
    /// The differences, output by output and line by line.
    sums: Vec<f64>,
    /// The leaves of the point itself, summed by output.
    common: Vec<f64>,
    asked: walk::Asked,
    paths: walk::Paths,
    /// The scores at every choice, line by line.
    pub(crate) scores: Vec<f32>,
    /// Their logits, not clipped.
    pub(crate) logits: Vec<f64>,
}

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
            questions: Vec::new(),
            of_columns: Vec::new(),
            sets: Vec::new(),
            divisor: if is_average { trees.len().max(1) as f64 } else { 1.0 },
            base: ensemble.base().iter().map(|&base| f64::from(base)).collect(),
            transform: ensemble.transform(),
            substitutes: ensemble.substitutes().to_vec(),
        };
        trees.iter().for_each(|tree| routes.push(tree));
        routes.merge_questions();
        Some(routes)
    }

    /// Adds a tree; each node has a question of its own at first.
    fn push(&mut self, tree: &[TreeNode]) {
        let start = self.nodes.len();
        self.roots.push(start as u32);
        for node in tree {
            let (feature, asks, threshold, missing, next) = match node {
                TreeNode::Branch { feature, comparison, threshold, missing, yes, no } => {
                    let (asks, threshold, negated) = at_most(*comparison, *threshold);
                    let next = if negated { [no, yes] } else { [yes, no] };
                    (feature, asks, threshold, *missing != negated, next)
                }
                TreeNode::Member { feature, values, missing, yes, no } => {
                    self.sets.push(values.clone());
                    let asks = Asks::Member(self.sets.len() as u32 - 1);
                    (feature, asks, 0.0, *missing, [yes, no])
                }
                TreeNode::Leaf { weights } => {
                    let low = self.weights.len() as u32;
                    let own = weights.iter().map(|&(o, w)| (o as u32, f64::from(w)));
                    self.weights.extend(own);
                    let high = self.weights.len() as u32;
                    self.nodes.push(Node { question: LEAF, low, high });
                    continue;
                }
            };
            let question = self.questions.len() as u32;
            self.questions.push(Question { column: *feature as u32, asks, threshold, missing });
            let [low, high] = next.map(|next| (start + next) as u32);
            self.nodes.push(Node { question, low, high });
        }
    }

    /// Keeps each question once, in their order.
    fn merge_questions(&mut self) {
        let all = std::mem::take(&mut self.questions);
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|&a, &b| all[a].order(&all[b]));
        let mut places = vec![0; all.len()];
        for index in order {
            let question = all[index];
            if self.questions.last().is_none_or(|last| last.order(&question).is_ne()) {
                self.questions.push(question);
            }
            places[index] = self.questions.len() as u32 - 1;
        }
        for node in self.nodes.iter_mut().filter(|node| node.question != LEAF) {
            node.question = places[node.question as usize];
        }
        let first = |column: usize| {
            self.questions.partition_point(|question| (question.column as usize) < column) as u32
        };
        self.of_columns = (0..=self.dim).map(first).collect();
    }

    /// The questions about a column.
    fn about(&self, column: usize) -> std::ops::Range<usize> {
        self.of_columns[column] as usize..self.of_columns[column + 1] as usize
    }

    fn is_low(&self, question: &Question, x: f32) -> bool {
        if x.is_nan() {
            return question.missing;
        }
        match question.asks {
            Asks::AtMost => x <= question.threshold,
            Asks::Member(set) => self.sets[set as usize].contains(&x),
            Asks::Equal => x == question.threshold,
        }
    }

    fn leaf(&self, node: &Node) -> &[(u32, f64)] {
        &self.weights[node.low as usize..node.high as usize]
    }

    /// The logits at a point with each choice of each line, in the scratch space.
    pub(crate) fn logits_along(&self, x: &[f32], lines: &[Line<'_>], scratch: &mut RoutesScratch) {
        scratch.logits.clear();
        self.each_group(x, lines, Shift::NONE, scratch, Self::add_logits);
    }

    /// The scores at a shifted point with each choice of each line, in the scratch space.
    pub(crate) fn scores_along(
        &self,
        x: &[f32],
        lines: &[Line<'_>],
        shift: Shift<'_>,
        scratch: &mut RoutesScratch,
    ) {
        scratch.scores.clear();
        self.each_group(x, lines, shift, scratch, |routes, scratch| {
            if routes.transform == Transform::Identity {
                let RoutesScratch { answers, sums, scores, .. } = scratch;
                let of = |at: usize| (sums[at] / routes.divisor + routes.base[0]) as f32;
                answers.lines.iter().for_each(|line| scores.extend(line.range().map(of)));
                return;
            }
            scratch.logits.clear();
            routes.add_logits(scratch);
            let of = |&logit: &f64| (1.0 / (1.0 + (-logit).exp())) as f32;
            scratch.scores.extend(scratch.logits.iter().map(of));
        });
    }

    /// Walks along all lines, together if no two of them decide about the same column; then calls
    /// `then` with the sums of each group.
    fn each_group(
        &self,
        x: &[f32],
        lines: &[Line<'_>],
        shift: Shift<'_>,
        scratch: &mut RoutesScratch,
        then: impl Fn(&Self, &mut RoutesScratch),
    ) {
        if self.sum_along(x, lines, shift, scratch) {
            return then(self, scratch);
        }
        for line in lines {
            self.sum_along(x, std::slice::from_ref(line), shift, scratch);
            then(self, scratch);
        }
    }

    /// Appends the logits of all choices, from the sums.
    fn add_logits(&self, scratch: &mut RoutesScratch) {
        let RoutesScratch { answers, sums, logits, .. } = scratch;
        let width = answers.width();
        for line in &answers.lines {
            logits.extend(line.range().map(|at| self.logit(sums, width, at)));
        }
    }

    /// The logit from the sums of each output, whose blocks have this length.
    fn logit(&self, sums: &[f64], block: usize, at: usize) -> f64 {
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
    }
}

/// The least distance from 0 and 1 at which the logit of a probability is taken.
const EDGE: f64 = 1e-30;

/// A comparison as `x <= t` or `x == t`, and whether the answer is negated.
fn at_most(comparison: Comparison, threshold: f32) -> (Asks, f32, bool) {
    match comparison {
        Comparison::LessOrEqual => (Asks::AtMost, threshold, false),
        Comparison::Greater => (Asks::AtMost, threshold, true),
        Comparison::Less => (Asks::AtMost, threshold.next_down(), false),
        Comparison::GreaterOrEqual => (Asks::AtMost, threshold.next_down(), true),
        Comparison::Equal => (Asks::Equal, threshold, false),
        Comparison::NotEqual => (Asks::Equal, threshold, true),
    }
}

#[cfg(test)]
mod tests;
