//! The rows one change away from a row.

use super::options::Choice;
use super::rows::Answers;
use crate::data::encode::Block;
use crate::data::{Row, Value};
use crate::points::Points;

/// The rows one change away from a row, with their points; see
/// [`FeasibleSet::moves`](super::FeasibleSet::moves).
///
/// A search rates every point and reads few of the rows, so rows are built on request.
#[derive(Debug)]
pub struct Moves<'a> {
    from: &'a Row,
    changes: Vec<Change>,
    points: Points,
}

#[derive(Debug)]
enum Change {
    /// One value changes.
    One(usize, Value),
    /// Rules require other values to change with it.
    Several(Row),
}

impl<'a> Moves<'a> {
    /// No rows.
    pub(super) fn none(from: &'a Row) -> Self {
        Self { from, changes: Vec::new(), points: Points::default() }
    }

    /// The points, in the order of the rows.
    pub fn points(&self) -> impl Iterator<Item = &[f32]> {
        self.points.rows()
    }

    /// The row of a point.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn row(&self, index: usize) -> Row {
        match &self.changes[index] {
            Change::One(position, value) => {
                let mut values = self.from.values().to_vec();
                values[*position] = value.clone();
                Row::from_checked(values)
            }
            Change::Several(row) => row.clone(),
        }
    }
}

impl Answers {
    /// The rows one change away that satisfy all rules.
    pub(super) fn moves<'a>(&self, row: &'a Row) -> Moves<'a> {
        let Some(origin) = self.encode(row) else { return Moves::none(row) };
        let mut moves = Moves { from: row, changes: Vec::new(), points: Points::new(origin.len()) };
        let mut blocks: Vec<Option<&Block>> = vec![None; self.options.len()];
        self.blocks().for_each(|(block, _, position)| blocks[position] = Some(block));
        let is_answer = self.options.iter().zip(row.values()).all(|(o, value)| o.allow(value));
        let (mut values, mut point) = (row.values().to_vec(), origin.clone());
        for (position, (options, value)) in self.options.iter().zip(row.values()).enumerate() {
            let Some(block) = blocks[position] else { continue };
            let others: Vec<Value> = match (options.choice(), value) {
                (Choice::Number(numbers), _) => {
                    let start = numbers.start();
                    let from = value.number().unwrap_or(start);
                    let own = Some(start).filter(|&start| numbers.allow(start));
                    let own = own.filter(|_| *value == Value::Missing);
                    let others = own.into_iter().chain(numbers.moves(from)).map(Value::Number);
                    let missing = options.may_be_missing() && *value != Value::Missing;
                    others.chain(missing.then_some(Value::Missing)).collect()
                }
                (Choice::Levels(levels), _) => {
                    levels.iter().map(|(level, _)| level).filter(|l| *l != value).cloned().collect()
                }
                (Choice::Fixed, _) => Vec::new(),
            };
            for other in others {
                values[position] = other;
                // The options contain every value that is tried, so only rules can fail.
                if is_answer && self.rules_hold(&values) {
                    let columns = &mut point[options.columns.clone()];
                    if block.encode(&values[position], columns).is_ok() {
                        moves.points.push(&point);
                        moves.changes.push(Change::One(position, values[position].clone()));
                    }
                } else if let Some(adjusted) = self.adjusted(values.clone(), position) {
                    moves.add(self, Row::from_checked(adjusted));
                }
            }
            values[position] = value.clone();
            let columns = options.columns.clone();
            point[columns.clone()].copy_from_slice(&origin[columns]);
        }
        moves
    }
}

impl Moves<'_> {
    /// Adds a row with several changes, unless it is there. It differs from every row with one
    /// change, which satisfies the rules without the others.
    fn add(&mut self, answers: &Answers, row: Row) {
        let is_new = |change: &Change| !matches!(change, Change::Several(other) if *other == row);
        if self.changes.iter().all(is_new)
            && let Some(point) = answers.encode(&row)
        {
            self.points.push(&point);
            self.changes.push(Change::Several(row));
        }
    }
}
