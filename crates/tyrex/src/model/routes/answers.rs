//! The answers to the questions of trees: at a point, and at the values of lines.

use super::{Asks, Line, Routes, Shift};
use crate::model::trees::Substitute;

/// The answers at a point, and along the lines that are free.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Question by question.
    pub(super) all: Vec<Answer>,
    /// For each question whose answer changes more than once along its line, where it does; empty
    /// if there is none.
    changes: Vec<Vec<usize>>,
    /// Column by column, the number there.
    point: Vec<f32>,
    columns: Vec<Column>,
    pub(super) lines: Vec<FreeLine>,
    next: Vec<f32>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    /// The line that changes its column, or `FIXED`.
    pub(super) line: u32,
    /// The first choice of the line whose answer differs from that of the first choice; or the
    /// question, if there are more.
    cut: u32,
    /// The answer at the point.
    pub(super) low: bool,
    /// The answer at the first choice.
    first_low: bool,
    /// Whether it changes more than once along the line.
    is_many: bool,
}

/// A column: the line that changes it now, and the values for which its cuts are known.
#[derive(Debug, Clone, Default)]
struct Column {
    line: Option<u32>,
    values: Vec<f32>,
}

/// A line that is free.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreeLine {
    /// The number of choices.
    pub(super) count: usize,
    /// The place of its first difference among those of one output; there are `count + 1`.
    pub(super) start: usize,
}

impl FreeLine {
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.count
    }
}

pub(super) const FIXED: u32 = u32::MAX;

impl Answers {
    /// The point, with its substitutes.
    pub(super) fn point(&self) -> &[f32] {
        &self.point
    }

    /// The differences of one output.
    pub(super) fn width(&self) -> usize {
        self.lines.last().map_or(0, |line| line.start + line.count + 1)
    }

    /// The answer at a choice.
    pub(super) fn is_low(&self, answer: &Answer, choice: usize) -> bool {
        let before = if answer.is_many {
            let changes = &self.changes[answer.cut as usize];
            changes.partition_point(|&change| change <= choice) % 2 == 0
        } else {
            choice < answer.cut as usize
        };
        before == answer.first_low
    }

    /// The first choice in a range whose answer differs from that of the range's first one.
    pub(super) fn cut(&self, answer: &Answer, from: usize, to: usize) -> Option<usize> {
        let cut = if answer.is_many {
            let changes = &self.changes[answer.cut as usize];
            *changes.get(changes.partition_point(|&change| change <= from))?
        } else {
            answer.cut as usize
        };
        (from < cut && cut < to).then_some(cut)
    }
}

impl Routes {
    /// Answers all questions at a shifted point and along lines. False if two lines decide about
    /// the same column.
    pub(super) fn answer(
        &self,
        answers: &mut Answers,
        x: &[f32],
        lines: &[Line<'_>],
        shift: Shift<'_>,
    ) -> bool {
        assert_eq!(x.len(), self.dim, "the dimension of the point");
        let mut next = std::mem::take(&mut answers.next);
        next.clear();
        next.extend(x.iter().enumerate().map(|(column, &x)| shift.of(column, x)));
        let is_free = self.free(answers, &next, lines, shift);
        self.place(answers, &mut next);
        answers.next = next;
        is_free
    }

    /// The answers at a point, which has no substitutes yet.
    fn place(&self, answers: &mut Answers, next: &mut [f32]) {
        for &Substitute { column, indicator, value } in &self.substitutes {
            if next[indicator] >= 0.5 {
                next[column] = value;
            }
        }
        let Answers { all, point, .. } = answers;
        let is_new = point.len() != self.dim;
        if is_new {
            point.clear();
            point.extend_from_slice(next);
        }
        for (column, (old, &x)) in point.iter_mut().zip(&*next).enumerate() {
            if is_new || old.to_bits() != x.to_bits() {
                *old = x;
                let own = self.about(column);
                for (answer, question) in all[own.clone()].iter_mut().zip(&self.questions[own]) {
                    answer.low = self.is_low(question, x);
                }
            }
        }
    }

    /// The answers along lines. The point has no substitutes yet. False if two lines decide about
    /// the same column.
    fn free(
        &self,
        answers: &mut Answers,
        point: &[f32],
        lines: &[Line<'_>],
        shift: Shift<'_>,
    ) -> bool {
        if answers.columns.len() != self.dim {
            let none = Answer { line: FIXED, cut: 0, low: false, first_low: false, is_many: false };
            answers.all = vec![none; self.questions.len()];
            answers.columns = vec![Column::default(); self.dim];
            answers.point.clear();
        }
        let mut of_columns: Vec<Option<u32>> = vec![None; self.dim];
        answers.lines.clear();
        let mut start = 0;
        for (index, line) in (0..).zip(lines) {
            for column in self.columns_of(line) {
                if of_columns[column].replace(index).is_some() {
                    return false;
                }
            }
            let count = line.len();
            answers.lines.push(FreeLine { count, start });
            start += count + 1;
        }
        let mut values = Vec::new();
        for (column, line) in of_columns.into_iter().enumerate() {
            if let Some(line) = line {
                values.clear();
                self.extend(&mut values, column, point, &lines[line as usize], shift);
                let own = &mut answers.columns[column].values;
                let is_known = own.len() == values.len()
                    && own.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits());
                if !is_known {
                    std::mem::swap(own, &mut values);
                    self.cut_column(answers, column);
                }
            }
            if answers.columns[column].line != line {
                answers.columns[column].line = line;
                let line = line.unwrap_or(FIXED);
                answers.all[self.about(column)].iter_mut().for_each(|answer| answer.line = line);
            }
        }
        true
    }

    /// The columns that a line changes: its own, and those that it decides to be missing.
    pub(super) fn columns_of(&self, line: &Line<'_>) -> impl Iterator<Item = usize> {
        let own = line.start..line.start + line.width;
        let decided = self.substitutes.iter().map(|of| (of.indicator, of.column));
        let inside = own.clone();
        let decided = decided.filter(move |(by, of)| inside.contains(by) && !inside.contains(of));
        own.chain(decided.map(|(_, of)| of))
    }

    /// Finds where the answers about a column change along its values.
    fn cut_column(&self, answers: &mut Answers, column: usize) {
        let Answers { all, changes, columns, .. } = answers;
        let values = &columns[column].values;
        let ascend = values.is_sorted() && values.iter().all(|x| !x.is_nan());
        // Thresholds ascend too.
        let mut above = 0;
        let own = self.about(column);
        for (index, question) in own.clone().zip(&self.questions[own]) {
            let answer = &mut all[index];
            if ascend && question.asks == Asks::AtMost {
                while values.get(above).is_some_and(|&x| x <= question.threshold) {
                    above += 1;
                }
                (answer.cut, answer.first_low, answer.is_many) = (above as u32, true, false);
                continue;
            }
            let mut last = values.first().is_some_and(|&x| self.is_low(question, x));
            answer.first_low = last;
            let mut own = Vec::new();
            for (choice, &x) in values.iter().enumerate() {
                let low = self.is_low(question, x);
                if low != last {
                    own.push(choice);
                    last = low;
                }
            }
            answer.is_many = own.len() > 1;
            match own.as_slice() {
                [] => answer.cut = values.len() as u32,
                [only] => answer.cut = *only as u32,
                _ => {
                    changes.resize(self.questions.len(), Vec::new());
                    changes[index] = own;
                    answer.cut = index as u32;
                }
            }
        }
    }

    /// Appends the values of a column at every choice of a line.
    fn extend(
        &self,
        values: &mut Vec<f32>,
        column: usize,
        point: &[f32],
        &Line { start, width, values: choices }: &Line<'_>,
        shift: Shift<'_>,
    ) {
        let substitute = self.substitutes.iter().find(|own| own.column == column);
        let own = start..start + width;
        if substitute.is_none() && own.contains(&column) {
            let column_values = choices[column - start..].iter().step_by(width);
            values.extend(column_values.map(|&x| shift.of(column, x)));
            return;
        }
        values.extend(choices.chunks_exact(width).map(|choice| {
            let at = |column: usize| {
                if own.contains(&column) {
                    shift.of(column, choice[column - start])
                } else {
                    point[column]
                }
            };
            let missing = substitute.filter(|own| at(own.indicator) >= 0.5);
            missing.map_or_else(|| at(column), |own| own.value)
        }));
    }
}
