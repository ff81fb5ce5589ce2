//! The features that can change, each with a list of values to try, for a search over the cells of
//! trees.

use std::ops::Range;

use super::feasible::FeasibleSet;
use super::options::{Choice, Options};
use super::rows::Answers;
use crate::data::{Row, Value};

/// A feature that can change alone, with values to try.
#[derive(Debug, Clone)]
pub(crate) struct Lever {
    /// Its position in a row; for sets without rows, its column.
    pub(crate) position: usize,
    /// Its columns in a point.
    pub(crate) columns: Range<usize>,
    /// The values in a row; empty for sets without rows.
    pub(crate) values: Vec<Value>,
    /// The columns of the values, value by value. Numbers ascend.
    pub(crate) points: Vec<f32>,
    /// Whether it is a number, and not one of several levels.
    pub(crate) is_number: bool,
    /// Whether the last value of a number is the missing one.
    pub(crate) ends_missing: bool,
    /// Whether a rule between features is about it.
    pub(crate) is_bound: bool,
}

impl Lever {
    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.points.len() / self.columns.len()
    }

    /// The columns of a value.
    pub(crate) fn point(&self, index: usize) -> &[f32] {
        let width = self.columns.len();
        &self.points[index * width..(index + 1) * width]
    }

    /// The same with at most `most` numbers: the factual's own, and others that divide the list
    /// evenly.
    pub(crate) fn thinned(mut self, most: usize, own: &[f32]) -> Self {
        let count = self.len();
        if !self.is_number || count <= most {
            return self;
        }
        let kept: Vec<usize> = (0..count)
            .filter(|&index| {
                let is_next = (index + 1) * most / count > index * most / count;
                let is_missing = self.ends_missing && index + 1 == count;
                is_next || is_missing || self.point(index) == own
            })
            .collect();
        self.points = kept.iter().flat_map(|&index| self.point(index).to_vec()).collect();
        if !self.values.is_empty() {
            self.values = kept.into_iter().map(|index| self.values[index].clone()).collect();
        }
        self
    }
}

/// The numbers of a column to try.
pub(crate) struct Tried<'a> {
    /// The numbers after which a cell ends, ascending.
    pub(crate) borders: &'a [f32],
    /// Other numbers.
    pub(crate) others: &'a [f32],
}

impl FeasibleSet {
    /// The features that can change, in their order, with values to try: all levels; of numbers
    /// those of the given columns, at most `most` of them.
    ///
    /// Of each cell the allowed number nearest to the factual's is tried. The factual's own value
    /// is always in the list.
    pub(crate) fn levers<'a>(
        &self,
        factual: &[f32],
        most: usize,
        tried: impl Fn(usize) -> Tried<'a>,
    ) -> Vec<Lever> {
        let levers: Vec<Lever> = match &self.answers {
            Some(answers) => answers.levers(tried),
            None => (0..self.dim())
                .filter(|&column| self.lower()[column] < self.upper()[column])
                .map(|column| self.free_lever(column, factual[column], &tried(column)))
                .collect(),
        };
        let usable = levers.into_iter().filter(|lever| lever.len() > 1);
        usable
            .map(|lever| {
                let own = factual[lever.columns.clone()].to_vec();
                lever.thinned(most, &own)
            })
            .collect()
    }

    /// A column of a set without rows.
    fn free_lever(&self, column: usize, own: f32, tried: &Tried<'_>) -> Lever {
        let (lower, upper) = (self.lower()[column], self.upper()[column]);
        let mut points: Vec<f32> = edges(tried.borders, own)
            .map(|edge| edge.near)
            .chain(tried.others.iter().copied())
            .filter(|x| x.is_finite() && lower <= *x && *x <= upper)
            .chain([own])
            .collect();
        points.sort_by(f32::total_cmp);
        points.dedup();
        Lever {
            position: column,
            columns: column..column + 1,
            values: Vec::new(),
            points,
            is_number: true,
            ends_missing: false,
            is_bound: false,
        }
    }

    /// Whether a row satisfies the rules between features.
    pub(crate) fn rules_hold(&self, values: &[Value]) -> bool {
        self.answers.as_ref().is_none_or(|answers| answers.rules_hold(values))
    }

    /// A row with the changed value of one feature, in which others have changed as little as the
    /// rules require, and its point.
    pub(crate) fn adjusted(&self, values: Vec<Value>, changed: usize) -> Option<(Row, Vec<f32>)> {
        let answers = self.answers.as_ref()?;
        let row = Row::from_checked(answers.adjusted(values, changed)?);
        let point = answers.encode(&row)?;
        Some((row, point))
    }
}

impl Answers {
    fn levers<'a>(&self, tried: impl Fn(usize) -> Tried<'a>) -> Vec<Lever> {
        let mut levers: Vec<Lever> = Vec::new();
        for (block, columns, position) in self.blocks() {
            let options = &self.options[position];
            let values: Vec<Value> = match options.choice() {
                Choice::Fixed => continue,
                Choice::Number(_) => options.tried(&tried(columns.start)),
                Choice::Levels(levels) => levels.iter().map(|(level, _)| level.clone()).collect(),
            };
            let is_number = matches!(options.choice(), Choice::Number(_));
            let mut encoded: Vec<(Value, Vec<f32>)> = Vec::with_capacity(values.len());
            for value in values {
                let mut own = vec![0.0; columns.len()];
                if block.encode(&value, &mut own).is_ok() {
                    encoded.push((value, own));
                }
            }
            if is_number {
                // Of numbers with the same column, the factual's own stays. It is the first.
                let own = encoded.first().map(|(_, own)| own[0]);
                let mut place = 0;
                encoded.retain(|(_, x)| {
                    place += 1;
                    place == 1 || Some(x[0]) != own
                });
                encoded.sort_by(|a, b| a.1[0].total_cmp(&b.1[0]));
                encoded.dedup_by(|a, b| a.1 == b.1);
            }
            let ends_missing = is_number && options.may_be_missing();
            if ends_missing {
                encoded.push((Value::Missing, options.columns_of(&Value::Missing)));
            }
            let is_bound = self.is_bound(position);
            let (values, points): (Vec<Value>, Vec<Vec<f32>>) = encoded.into_iter().unzip();
            let points = points.concat();
            levers.push(Lever {
                position,
                columns,
                values,
                points,
                is_number,
                ends_missing,
                is_bound,
            });
        }
        levers.sort_by_key(|lever| lever.position);
        levers
    }
}

impl Options {
    /// The factual's own number, or the one in the place of a missing one, and the allowed ones of the
    /// given columns.
    fn tried(&self, tried: &Tried<'_>) -> Vec<Value> {
        let Some(numbers) = self.numbers() else { return Vec::new() };
        let own = numbers.affine().coordinate(numbers.start());
        let cells = edges(tried.borders, own);
        let nearest = cells.filter_map(|edge| numbers.in_cell(edge.low, edge.high, edge.near));
        let others = tried.others.iter().filter_map(|&x| numbers.at(x));
        let all = std::iter::once(numbers.start()).chain(nearest).chain(others);
        all.map(Value::Number).collect()
    }
}

/// A cell of a column.
struct Edge {
    low: f32,
    high: f32,
    /// Its end that is nearer to the factual.
    near: f32,
}

/// The cells that do not hold the factual.
fn edges(borders: &[f32], own: f32) -> impl Iterator<Item = Edge> {
    (0..=borders.len()).filter_map(move |cell| {
        let low = cell.checked_sub(1).map_or(f32::NEG_INFINITY, |below| borders[below].next_up());
        let high = borders.get(cell).copied().unwrap_or(f32::INFINITY);
        let near = match () {
            () if own < low => low,
            () if own > high => high,
            () => return None,
        };
        near.is_finite().then_some(Edge { low, high, near })
    })
}
