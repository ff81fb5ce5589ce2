//! The leaves of trees as boxes of choices.

use super::answers::{Answers, FIXED};
use super::{LEAF, Line, Routes, Shift};
use crate::model::trees::Transform;

/// The next step of a visit of all leaves of a tree.
enum Visit {
    Node(u32),
    /// The choices of a line from here on.
    Range(usize, (usize, usize)),
}

/// The leaves of trees with the choices that reach them.
#[derive(Debug, Default)]
pub(crate) struct LeafBoxes {
    /// The end of each tree among the leaves.
    pub(crate) ends: Vec<usize>,
    /// The contribution of each leaf to the sum.
    pub(crate) weights: Vec<f64>,
    /// The line of each slot: a slot is a line that a tree asks.
    pub(crate) slots: Vec<usize>,
    all_spans: Vec<Span>,
    span_ends: Vec<usize>,
}

/// The choices of a line, from one to before another, that reach a leaf.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) slot: u32,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl LeafBoxes {
    /// The lines whose choices do not all reach a leaf.
    pub(crate) fn spans(&self, leaf: usize) -> &[Span] {
        let start = leaf.checked_sub(1).map_or(0, |before| self.span_ends[before]);
        &self.all_spans[start..self.span_ends[leaf]]
    }
}

/// By how much a score may be rounded up, generously.
const ROUNDING: f64 = 1e-6;

impl Routes {
    /// Whether the score rises with one sum over the trees.
    pub(crate) fn is_one_sum(&self) -> bool {
        self.favour(0).is_some()
    }

    /// The factor with which a weight of an output enters the sum with which the score rises: the
    /// difference of two classes, or the one output. `None` for more classes.
    fn favour(&self, output: usize) -> Option<f64> {
        match self.transform {
            Transform::Identity | Transform::Logistic => Some(1.0),
            Transform::Softmax { favourable } if self.base.len() == 2 => {
                Some(if output == favourable { 1.0 } else { -1.0 })
            }
            Transform::Softmax { .. } => None,
        }
    }

    /// The least sum over the trees at which the score may be at least `score`, a little lower
    /// because scores are rounded.
    pub(crate) fn least_sum(&self, score: f64) -> f64 {
        let base: f64 = (0..).zip(&self.base).filter_map(|(o, b)| Some(self.favour(o)? * b)).sum();
        let aim = match self.transform {
            Transform::Identity => score - ROUNDING,
            Transform::Logistic | Transform::Softmax { .. } => {
                let rounded = ROUNDING * (1.0 + 0.1 / (score * (1.0 - score)));
                (score / (1.0 - score)).ln() - rounded
            }
        };
        (aim - base) * self.divisor
    }

    /// The leaves of all trees with the choices of the lines that reach them. `None` if the score
    /// does not rise with one sum, or two lines decide about the same column.
    pub(crate) fn leaf_boxes(&self, x: &[f32], lines: &[Line<'_>]) -> Option<LeafBoxes> {
        let mut answers = Answers::default();
        if !self.is_one_sum() || !self.answer(&mut answers, x, lines, Shift::NONE) {
            return None;
        }
        let mut boxes = LeafBoxes::default();
        let whole: Vec<(usize, usize)> = answers.lines.iter().map(|line| (0, line.count)).collect();
        let mut ranges = whole.clone();
        let mut slots = vec![None; lines.len()];
        for &root in &self.roots {
            slots.fill(None);
            let mut open = vec![Visit::Node(root)];
            while let Some(visit) = open.pop() {
                let at = match visit {
                    Visit::Range(line, range) => {
                        ranges[line] = range;
                        continue;
                    }
                    Visit::Node(at) => at,
                };
                let node = &self.nodes[at as usize];
                if node.question == LEAF {
                    let weights = self.leaf(node).iter();
                    let weights = weights.map(|&(o, w)| Some(self.favour(o as usize)? * w));
                    boxes.weights.push(weights.sum::<Option<f64>>()?);
                    for (line, &(from, to)) in ranges.iter().enumerate() {
                        if (from, to) != whole[line] {
                            let slot = *slots[line].get_or_insert_with(|| {
                                boxes.slots.push(line);
                                boxes.slots.len() as u32 - 1
                            });
                            boxes.all_spans.push(Span { slot, from, to });
                        }
                    }
                    boxes.span_ends.push(boxes.all_spans.len());
                    continue;
                }
                let answer = answers.all[node.question as usize];
                let next = |is_low: bool| Visit::Node(if is_low { node.low } else { node.high });
                if answer.line == FIXED {
                    open.push(next(answer.low));
                    continue;
                }
                let line = answer.line as usize;
                let (mut from, to) = ranges[line];
                open.push(Visit::Range(line, (from, to)));
                while from < to {
                    let cut = answers.cut(&answer, from, to).unwrap_or(to);
                    open.push(next(answers.is_low(&answer, from)));
                    open.push(Visit::Range(line, (from, cut)));
                    from = cut;
                }
            }
            boxes.ends.push(boxes.weights.len());
        }
        Some(boxes)
    }
}
