//! Implications: where some features change, others must.
//!
//! They do not form a convex set, so the search ignores them. Rows obey them exactly: a row that
//! breaks one is replaced by the nearest row of the branches in which the implication holds, either
//! because its consequence does or because a part of its condition does not. Every branch limits
//! the values of features and keeps the implication from being broken again, so a row is found
//! after at most as many divisions as there are implications.

use std::collections::BTreeMap;

use super::options::{Narrow, Numbers, Options};
use super::rows::Answers;
use super::rule::ROUNDING;
use crate::data::Value;
use crate::data::schema::{Change, Interval, Relation, Schema};

/// An implication for one factual.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Implication {
    /// Its place among the schema's rules.
    pub(super) index: usize,
    condition: Vec<Shift>,
    consequence: Vec<Shift>,
}

/// A change of one feature, for one factual.
#[derive(Debug, Clone, PartialEq)]
struct Shift {
    position: usize,
    name: String,
    change: Change,
    start: Value,
    /// The levels in their order; none for a number.
    levels: Vec<Value>,
}

impl Implication {
    /// The implications of a rule for this factual; none if a value is missing or special, or if
    /// the condition cannot be met.
    pub(super) fn all(schema: &Schema, index: usize, options: &[Options]) -> Vec<Self> {
        let pair = |(a, b): (&String, &String), change: Change| {
            (vec![(a.clone(), change.clone())], vec![(b.clone(), change)])
        };
        let implied = match &schema.rules[index].relation {
            Relation::Sum { .. } | Relation::Ratio { .. } => Vec::new(),
            Relation::Monotone { leader, follower } => {
                [Change::Up, Change::Down].map(|change| pair((leader, follower), change)).into()
            }
            Relation::Implication { condition, consequence } => {
                let list = |all: &BTreeMap<String, Change>| {
                    all.iter().map(|(name, change)| (name.clone(), change.clone())).collect()
                };
                vec![(list(condition), list(consequence))]
            }
        };
        let shifts = |changes: Vec<(String, Change)>| -> Option<Vec<Shift>> {
            let shift = |(name, change): (String, Change)| {
                let position = schema.position(&name)?;
                let own = options.get(position).filter(|own| own.is_ordinary)?;
                let levels = schema.features[position].kind.levels().to_vec();
                Some(Shift { position, name, change, start: own.start().clone(), levels })
            };
            changes.into_iter().map(shift).collect()
        };
        let bound = implied.into_iter().filter_map(|(condition, consequence)| {
            let (condition, consequence) = (shifts(condition)?, shifts(consequence)?);
            let can_be_met =
                condition.iter().all(|shift| !options[shift.position].choice().is_fixed());
            can_be_met.then_some(Self { index, condition, consequence })
        });
        bound.collect()
    }

    /// All but its place among the rules.
    pub(super) fn parts(&self) -> impl PartialEq + use<'_> {
        (&self.condition, &self.consequence)
    }

    /// Whether a row keeps the implication.
    pub(super) fn holds(&self, values: &[Value]) -> bool {
        let of = |shift: &Shift| values.get(shift.position).cloned().unwrap_or(Value::Missing);
        let is_met = |shift: &Shift| {
            let value = of(shift);
            value != shift.start && shift.is_made_by(&value)
        };
        !self.condition.iter().all(is_met)
            || self.consequence.iter().all(|shift| shift.is_made_by(&of(shift)))
    }

    /// Whether it is about the feature.
    pub(super) fn is_about(&self, position: usize) -> bool {
        self.condition.iter().chain(&self.consequence).any(|shift| shift.position == position)
    }

    /// The branches in which it holds: first those where the consequence does, then those
    /// without one of the changes of the condition.
    pub(super) fn branches(&self, answers: &Answers) -> Vec<Answers> {
        let mut branches = vec![answers.clone()];
        for shift in &self.consequence {
            let narrowed = branches.iter().flat_map(|branch| {
                let numbers = branch.options[shift.position].numbers();
                branch.narrowed(shift.position, &shift.made(numbers))
            });
            branches = narrowed.collect();
        }
        for shift in &self.condition {
            let numbers = answers.options[shift.position].numbers();
            branches.extend(answers.narrowed(shift.position, &shift.avoided(numbers)));
        }
        branches
    }

    /// In words, how a row breaks it, and which values the row may have.
    pub(super) fn violation(&self, values: &[Value]) -> (String, String) {
        let of = |shift: &Shift| values.get(shift.position).cloned().unwrap_or(Value::Missing);
        let has = |shift: &Shift| format!("{} `{}`", shift.name, of(shift));
        let missing: Vec<&Shift> =
            self.consequence.iter().filter(|shift| !shift.is_made_by(&of(shift))).collect();
        let changed: Vec<String> = self.condition.iter().map(has).collect();
        let beside: Vec<String> = missing.iter().map(|shift| has(shift)).collect();
        let needed: Vec<String> = missing
            .iter()
            .map(|shift| {
                format!("{} {} (from `{}`)", shift.name, shift.change.in_words(), shift.start)
            })
            .collect();
        let found = format!("{} with {}", changed.join(" and "), beside.join(" and "));
        (found, needed.join(" and "))
    }
}

impl Shift {
    /// Whether the value differs from the factual's in this way.
    fn is_made_by(&self, value: &Value) -> bool {
        let rank = |value: &Value| {
            if self.levels.is_empty() {
                return value.number();
            }
            self.levels.iter().position(|level| level == value).map(|at| at as f64)
        };
        let Some((from, to)) = rank(&self.start).zip(rank(value)) else { return false };
        match &self.change {
            Change::Up => to > from,
            Change::Down => to < from,
            Change::Any => to != from,
            Change::NotUp => to <= from,
            Change::NotDown => to >= from,
            Change::None => to == from,
            Change::By(Interval { lower, upper }) => {
                let slack = ROUNDING * (from.abs() + to.abs());
                lower - slack <= to - from && to - from <= upper + slack
            }
            Change::Within(interval) => interval.contains(to),
            Change::Levels(levels) => levels.contains(value),
        }
    }

    /// The values with this change.
    fn made(&self, numbers: Option<&Numbers>) -> Vec<Narrow> {
        let Some(start) = self.start.number().filter(|_| self.levels.is_empty()) else {
            let made = self.levels.iter().filter(|level| self.is_made_by(level));
            return vec![Narrow::Levels(made.cloned().collect())];
        };
        let numbers_in =
            |interval| Narrow::Numbers { interval, keeps_start: self.is_made_by(&self.start) };
        let all = Interval::ALL;
        let above = || numbers?.above(start).map(|lower| numbers_in(Interval { lower, ..all }));
        let below = || numbers?.below(start).map(|upper| numbers_in(Interval { upper, ..all }));
        match &self.change {
            Change::Up => above().into_iter().collect(),
            Change::Down => below().into_iter().collect(),
            Change::Any => above().into_iter().chain(below()).collect(),
            Change::NotUp => vec![numbers_in(Interval { upper: start, ..all })],
            Change::NotDown => vec![numbers_in(Interval { lower: start, ..all })],
            Change::None => vec![Narrow::Start],
            Change::By(by) => {
                vec![numbers_in(Interval { lower: start + by.lower, upper: start + by.upper })]
            }
            Change::Within(interval) => vec![numbers_in(*interval)],
            Change::Levels(_) => Vec::new(),
        }
    }

    /// The values without this change: the factual's own, and others. A real number that must not
    /// lie in an interval has no nearest one outside it, and takes the factual's own.
    fn avoided(&self, numbers: Option<&Numbers>) -> Vec<Narrow> {
        let Some(start) = self.start.number().filter(|_| self.levels.is_empty()) else {
            let left = self.levels.iter();
            let left = left.filter(|level| **level == self.start || !self.is_made_by(level));
            return vec![Narrow::Levels(left.cloned().collect())];
        };
        let outside = |interval: Interval| {
            let all = Interval::ALL;
            let others = |interval| Narrow::Numbers { interval, keeps_start: false };
            let below = || numbers?.below(interval.lower).map(|upper| Interval { upper, ..all });
            let above = || numbers?.above(interval.upper).map(|lower| Interval { lower, ..all });
            let sides = below().into_iter().chain(above()).map(others);
            std::iter::once(Narrow::Start).chain(sides).collect()
        };
        let up_to = |interval| vec![Narrow::Numbers { interval, keeps_start: true }];
        match &self.change {
            Change::Up => up_to(Interval { upper: start, ..Interval::ALL }),
            Change::Down => up_to(Interval { lower: start, ..Interval::ALL }),
            Change::By(by) => {
                outside(Interval { lower: start + by.lower, upper: start + by.upper })
            }
            Change::Within(interval) => outside(*interval),
            _ => vec![Narrow::Start],
        }
    }
}

impl Answers {
    /// The first implication that a row breaks.
    pub(super) fn first_broken(&self, values: &[Value]) -> Option<&Implication> {
        self.implications.iter().find(|implication| !implication.holds(values))
    }

    /// The same with the values of one feature limited, once for each way; without the ways that
    /// leave it no value.
    fn narrowed(&self, position: usize, ways: &[Narrow]) -> Vec<Self> {
        let narrowed = ways.iter().filter_map(|way| self.options[position].narrowed(way));
        narrowed
            .map(|own| {
                let mut branch = self.clone();
                branch.options[position] = own;
                branch
            })
            .collect()
    }

    /// The same with one feature at one value.
    pub(super) fn with(&self, position: usize, value: &Value) -> Option<Self> {
        let way = match value.number() {
            Some(number) if self.options[position].numbers().is_some() => Narrow::Numbers {
                interval: Interval { lower: number, upper: number },
                keeps_start: *value == *self.options[position].start(),
            },
            _ => Narrow::Levels(vec![value.clone()]),
        };
        self.narrowed(position, &[way]).pop()
    }
}
