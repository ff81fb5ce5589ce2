//! The allowed values of one feature of one factual.

use std::ops::Range;

use crate::data::encode::{Affine, Block, Coding};
use crate::data::schema::{Action, Feature, Interval, Schema, SpecialAs};
use crate::data::{FeatureKind, Step, Value, listed};
use crate::error::Result;

/// The allowed values of one feature of one factual.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// The feature's columns in a point.
    pub(super) columns: Range<usize>,
    /// Whether the factual's value is neither missing nor special.
    pub(super) is_ordinary: bool,
    /// The factual's value, and its columns.
    start: Value,
    start_columns: Vec<f32>,
    choice: Choice,
    /// The columns of the missing value, if a number may be missing. Levels list it.
    missing: Option<Vec<f32>>,
}

/// The values other than the factual's own.
#[derive(Debug, Clone)]
pub(super) enum Choice {
    /// None.
    Fixed,
    /// Numbers.
    Number(Numbers),
    /// Levels with their columns, the factual's own among them, in the schema's order.
    Levels(Vec<(Value, Vec<f32>)>),
}

/// The numbers a feature may become: those of an interval, or the multiples of a step there.
/// The factual's own number is allowed wherever it lies.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    interval: Interval,
    step: Option<Step>,
    affine: Affine,
    start: f64,
    /// Whether the factual's own number is allowed outside the interval.
    keeps_start: bool,
}

/// A limit of the values of a feature.
#[derive(Debug, Clone)]
pub(super) enum Narrow {
    /// The factual's own value.
    Start,
    /// Numbers of an interval, and the factual's own if it is kept.
    Numbers { interval: Interval, keeps_start: bool },
    /// These levels.
    Levels(Vec<Value>),
}

impl Choice {
    /// Whether there is none.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed)
    }
}

impl Options {
    /// The options of a feature, from the factual's value and its columns.
    pub(super) fn new(
        schema: &Schema,
        feature: &Feature,
        block: &Block,
        columns: Range<usize>,
        start: Value,
        start_columns: Vec<f32>,
    ) -> Result<Self> {
        let is_ordinary = !is_special(schema, feature, block, &start);
        let is_missing = start == Value::Missing;
        let may_be_missing =
            if is_missing { feature.may_become.known() } else { feature.may_become.missing() };
        let of_missing = || -> Result<Vec<f32>> {
            let mut own = vec![0.0; columns.len()];
            block.encode(&Value::Missing, &mut own)?;
            Ok(own)
        };
        let may_change = is_ordinary || (is_missing && may_be_missing);
        let mut missing = None;
        let choice = match (&block.coding, &start) {
            _ if !may_change || feature.action == Action::Fixed => Choice::Fixed,
            (Coding::Number { affine, range, clip, .. }, Value::Number(_) | Value::Missing) => {
                let interval = range.intersection(*clip);
                let own = Numbers::new(feature, interval, *affine, start.number());
                if own.is_some() && may_be_missing {
                    missing = Some(of_missing()?);
                }
                own.map_or(Choice::Fixed, Choice::Number)
            }
            (Coding::Number { .. }, _) => Choice::Fixed,
            (Coding::Code { .. } | Coding::OneHot { .. }, _) => {
                let mut levels = Vec::new();
                for level in allowed_levels(feature, &start) {
                    let mut own = vec![0.0; columns.len()];
                    block.encode(level, &mut own)?;
                    levels.push((level.clone(), own));
                }
                if may_be_missing {
                    levels.push((Value::Missing, of_missing()?));
                }
                if levels.len() > 1 { Choice::Levels(levels) } else { Choice::Fixed }
            }
        };
        Ok(Self { columns, is_ordinary, start, start_columns, choice, missing })
    }

    /// The values other than the factual's own.
    pub(super) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The numbers to choose from, if the feature is a number with a choice.
    pub(super) fn numbers(&self) -> Option<&Numbers> {
        match &self.choice {
            Choice::Number(numbers) => Some(numbers),
            Choice::Fixed | Choice::Levels(_) => None,
        }
    }

    /// The factual's value.
    pub(super) fn start(&self) -> &Value {
        &self.start
    }

    /// Whether the feature may have this value.
    pub(super) fn allow(&self, value: &Value) -> bool {
        match &self.choice {
            Choice::Fixed => *value == self.start,
            Choice::Number(_) if *value == Value::Missing => self.missing.is_some(),
            Choice::Number(numbers) => value.number().is_some_and(|number| numbers.allow(number)),
            Choice::Levels(levels) => levels.iter().any(|(level, _)| level == value),
        }
    }

    /// Whether a number may be missing, as it is or as it becomes.
    pub(super) fn may_be_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// The same with fewer values; `None` if none is left.
    pub(super) fn narrowed(&self, to: &Narrow) -> Option<Self> {
        let keeps_start = match to {
            Narrow::Start => true,
            Narrow::Numbers { keeps_start, .. } => *keeps_start,
            Narrow::Levels(levels) => levels.contains(&self.start),
        };
        let fixed = (keeps_start && self.allow(&self.start)).then_some(Choice::Fixed);
        let choice = match (&self.choice, to) {
            (Choice::Number(numbers), Narrow::Numbers { interval, .. }) => {
                let left = numbers.within(*interval, keeps_start).map(Choice::Number);
                left.or(fixed)
            }
            (Choice::Levels(own), Narrow::Levels(levels)) => {
                let left = own.iter().filter(|(level, _)| levels.contains(level));
                let left: Vec<_> = left.cloned().collect();
                (!left.is_empty()).then_some(Choice::Levels(left))
            }
            _ => fixed,
        };
        Some(Self { choice: choice?, ..self.clone() })
    }

    /// The columns of one of its values.
    pub(super) fn columns_of(&self, value: &Value) -> Vec<f32> {
        match (&self.choice, value) {
            (Choice::Number(numbers), Value::Number(number)) if *value != self.start => {
                let mut own = vec![0.0; self.columns.len()];
                own[0] = numbers.affine.coordinate(*number);
                own
            }
            (Choice::Number(_), Value::Missing) => {
                self.missing.as_ref().unwrap_or(&self.start_columns).clone()
            }
            (Choice::Levels(levels), _) => levels
                .iter()
                .find(|(level, _)| level == value)
                .map_or_else(|| self.start_columns.clone(), |(_, own)| own.clone()),
            _ => self.start_columns.clone(),
        }
    }

    /// The allowed value whose columns are nearest; the factual's own among equals.
    pub(super) fn nearest(&self, columns: &[f32]) -> Value {
        let distance = |own: &[f32]| -> f64 {
            own.iter().zip(columns).map(|(a, b)| f64::from(a - b).powi(2)).sum()
        };
        match &self.choice {
            Choice::Fixed => self.start.clone(),
            Choice::Number(numbers) => {
                let number = numbers
                    .nearest(self.number_at(numbers, columns[0]), Interval::ALL)
                    .map_or_else(|| self.start.clone(), Value::Number);
                match &self.missing {
                    Some(missing) if distance(missing) < distance(&self.columns_of(&number)) => {
                        Value::Missing
                    }
                    _ => number,
                }
            }
            Choice::Levels(levels) => {
                let start = levels.iter().filter(|(level, _)| *level == self.start);
                let in_order = start.chain(levels);
                let nearest = in_order.min_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
                nearest.map_or_else(|| self.start.clone(), |(level, _)| level.clone())
            }
        }
    }

    /// The number of a column: exact if it is the factual's column.
    pub(super) fn number_at(&self, numbers: &Numbers, column: f32) -> f64 {
        if column == self.start_columns[0] && self.start != Value::Missing {
            numbers.start
        } else {
            numbers.affine.invert(f64::from(column))
        }
    }

    /// The smallest and largest value of each of its columns, over everything allowed.
    pub(super) fn bounds(&self) -> Vec<(f32, f32)> {
        let mut bounds: Vec<(f32, f32)> = self.start_columns.iter().map(|&x| (x, x)).collect();
        match &self.choice {
            Choice::Fixed => {}
            Choice::Number(numbers) => {
                let Interval { lower, upper } = numbers.interval;
                for end in [lower, upper] {
                    let x = numbers.affine.apply(end) as f32;
                    bounds[0] = (bounds[0].0.min(x), bounds[0].1.max(x));
                }
                if let Some(missing) = &self.missing {
                    // The columns beside a number are 0 where it is known.
                    let known = std::iter::once(missing[0]).chain(missing[1..].iter().map(|_| 0.0));
                    let known: Vec<f32> = known.collect();
                    include(&mut bounds, missing);
                    include(&mut bounds, &known);
                }
            }
            Choice::Levels(levels) => levels.iter().for_each(|(_, own)| include(&mut bounds, own)),
        }
        bounds
    }

    /// The allowed values in words.
    pub(super) fn in_words(&self) -> String {
        let start = match &self.start {
            Value::Missing => "missing".to_owned(),
            value => format!("`{value}`"),
        };
        match &self.choice {
            Choice::Fixed => format!("{start}, as it is"),
            Choice::Levels(levels) => {
                let levels: Vec<&Value> = levels.iter().map(|(level, _)| level).collect();
                format!("one of {}", listed(&levels))
            }
            Choice::Number(numbers) => {
                let Interval { lower, upper } = numbers.interval;
                let multiple = numbers.step.map_or_else(String::new, |step| match step.size() {
                    1.0 => "a whole number ".to_owned(),
                    size => format!("a multiple of {size} "),
                });
                let range = match (lower.is_finite(), upper.is_finite()) {
                    (true, true) => format!("from {lower} to {upper}"),
                    (true, false) => format!("from {lower}"),
                    (false, true) => format!("up to {upper}"),
                    (false, false) => "of any size".to_owned(),
                };
                let own = match &self.start {
                    Value::Missing => format!(", or {start} as it is"),
                    _ if numbers.interval.contains(numbers.start) => String::new(),
                    _ => format!(", or {start} as it is"),
                };
                let missing = match &self.missing {
                    Some(_) if self.start != Value::Missing => ", or missing",
                    _ => "",
                };
                format!("{multiple}{range}{own}{missing}")
            }
        }
    }
}

impl Numbers {
    /// The numbers that the feature's range and action leave, inside what can be encoded;
    /// `None` if there are none.
    ///
    /// A missing start has no direction to go in, and no number of its own: the number in its place
    /// is the allowed one whose column is nearest to that of the missing value, 0.
    fn new(
        feature: &Feature,
        encodable: Interval,
        affine: Affine,
        start: Option<f64>,
    ) -> Option<Self> {
        let all = Interval::ALL;
        let asked = match (&feature.action, start) {
            (Action::OnlyUp, Some(start)) => Interval { lower: start, ..all },
            (Action::OnlyDown, Some(start)) => Interval { upper: start, ..all },
            (Action::Within(interval), _) => *interval,
            _ => all,
        };
        let interval = asked.intersection(feature.range.unwrap_or(all)).intersection(encodable);
        if interval.lower > interval.upper {
            return None;
        }
        let size = if feature.kind == FeatureKind::Integer { Some(1.0) } else { feature.step };
        let step = match size {
            Some(size) => Some(Step::new(size, interval)?),
            None => None,
        };
        // From the first to the last multiple; an infinite end stays.
        let interval = step
            .map_or(interval, |step| Interval {
                lower: step.nearest(interval.lower),
                upper: step.nearest(interval.upper),
            })
            .intersection(interval);
        if interval.lower > interval.upper {
            return None;
        }
        let own = Self { interval, step, affine, start: f64::NAN, keeps_start: false };
        match start {
            Some(start) => Some(Self { start, keeps_start: true, ..own }),
            None => Some(Self { start: own.nearest(affine.invert(0.0), all)?, ..own }),
        }
    }

    /// Those in an interval, and the factual's own if it is kept; `None` if the interval has none.
    fn within(&self, interval: Interval, keeps_start: bool) -> Option<Self> {
        let interval = self.interval.intersection(interval);
        if interval.lower > interval.upper {
            return None;
        }
        let step = match self.step {
            Some(step) => Some(step.within(interval)?),
            None => None,
        };
        // The multiples at the ends; one that is a rounding error outside lies in it.
        let interval = step.map_or(interval, |step| Interval {
            lower: step.nearest(interval.lower),
            upper: step.nearest(interval.upper),
        });
        let keeps_start = keeps_start && self.keeps_start;
        Some(Self { interval, step, keeps_start, ..self.clone() })
    }

    /// The smallest multiple of the step above a number; none for real numbers.
    pub(super) fn above(&self, number: f64) -> Option<f64> {
        let step = self.step?;
        let near = step.nearest(number);
        let next = if near > number { near } else { step.nearest(near + step.size()) };
        (next > number).then_some(next)
    }

    /// The largest multiple of the step below a number; none for real numbers.
    pub(super) fn below(&self, number: f64) -> Option<f64> {
        let step = self.step?;
        let near = step.nearest(number);
        let next = if near < number { near } else { step.nearest(near - step.size()) };
        (next < number).then_some(next)
    }

    /// How the numbers become a column.
    pub(super) fn affine(&self) -> Affine {
        self.affine
    }

    /// The factual's own number.
    pub(super) fn start(&self) -> f64 {
        self.start
    }

    fn kept_start(&self) -> Option<f64> {
        Some(self.start).filter(|_| self.keeps_start)
    }

    /// Whether every number between two that are allowed is allowed too.
    pub(super) fn are_connected(&self) -> bool {
        self.step.is_none() && (self.interval.contains(self.start) || !self.keeps_start)
    }

    /// The distance of neighbours in the encoded column; 0 for real numbers.
    pub(super) fn encoded_step(&self) -> f64 {
        self.step.map_or(0.0, |step| (step.size() * self.affine.scale).abs())
    }

    /// From the smallest to the largest number allowed.
    pub(super) fn hull(&self) -> Interval {
        if !self.keeps_start {
            return self.interval;
        }
        Interval {
            lower: self.interval.lower.min(self.start),
            upper: self.interval.upper.max(self.start),
        }
    }

    /// Whether the number is allowed.
    pub(super) fn allow(&self, number: f64) -> bool {
        (number == self.start && self.keeps_start)
            || (self.interval.contains(number)
                && f64::abs(number) <= f64::from(f32::MAX)
                && self.step.is_none_or(|step| step.nearest(number) == number))
    }

    /// The allowed number whose column lies between two others and is nearest to `near`, the end
    /// on the factual's side.
    pub(super) fn in_cell(&self, low: f32, high: f32, near: f32) -> Option<f64> {
        let wanted = self.affine.invert(f64::from(near));
        let fits = |number: &f64| {
            let x = self.affine.coordinate(*number);
            low <= x && x <= high && self.allow(*number)
        };
        if let Some(step) = self.step {
            let middle = step.nearest(wanted);
            let sides = [middle, middle - step.size(), middle + step.size()];
            let inside = sides.into_iter().map(|side| step.nearest(side)).filter(fits);
            let distance = |number: &f64| (number - self.start).abs();
            return inside.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        }
        // Libraries compare the number itself, in single precision: if it is scaled, it moves a few
        // of its own steps inward, beyond the rounding of both scales. Else conversion to the number
        // and back may round out of the cell.
        let sign = if (near == low) == (self.affine.scale > 0.0) { 1.0 } else { -1.0 };
        let size = wanted.abs() + self.affine.offset.abs();
        let inside = f64::from((wanted + sign * STEPS_INWARD * size) as f32);
        let moved = Some(inside).filter(|_| self.affine != Affine::IDENTITY);
        let inward = if near == low { f32::next_up } else { f32::next_down };
        let ends = std::iter::successors(Some(near), |x| Some(inward(*x))).take(3);
        let ends = ends.map(|x| self.affine.invert(f64::from(x)));
        moved.into_iter().chain(ends).map(|number| self.interval.nearest(number)).find(fits)
    }

    /// The allowed number whose column is nearest.
    pub(super) fn at(&self, x: f32) -> Option<f64> {
        self.nearest(self.affine.invert(f64::from(x)), Interval::ALL)
    }

    /// The allowed number in `region` that is nearest; the factual's own among equals.
    pub(super) fn nearest(&self, wanted: f64, region: Interval) -> Option<f64> {
        let region_here = self.interval.intersection(region);
        let ordinary = match self.step {
            _ if region_here.lower > region_here.upper => None,
            None => Some(region_here.nearest(wanted)),
            Some(step) => step.within(region_here).map(|step| step.nearest(wanted)),
        };
        let own = self.kept_start().filter(|&start| region.contains(start));
        match (own, ordinary.filter(|&number| self.allow(number))) {
            (Some(own), Some(other)) if (own - wanted).abs() <= (other - wanted).abs() => Some(own),
            (own, None) => own,
            (_, other) => other,
        }
    }

    /// Allowed numbers in `region` around the wanted one, nearest first: the nearest, its
    /// neighbours if there is a step, and the factual's own.
    pub(super) fn around(&self, wanted: f64, region: Interval) -> Vec<f64> {
        let mut numbers: Vec<f64> = self.nearest(wanted, region).into_iter().collect();
        let ordinary = self.interval.intersection(region);
        if let Some(step) = self.step.and_then(|step| step.within(ordinary)) {
            let middle = step.nearest(wanted);
            let sides = [middle, middle - step.size(), middle + step.size()];
            numbers.extend(sides.map(|side| step.nearest(side)));
        } else if self.step.is_none() && ordinary.lower <= ordinary.upper {
            numbers.push(ordinary.nearest(wanted));
        }
        numbers.extend(self.kept_start().filter(|&start| region.contains(start)));
        numbers.retain(|&number| self.allow(number));
        nearest_first(&mut numbers, wanted);
        numbers
    }

    /// Numbers one change away from `from`, smallest change first: a step up or down, and
    /// some fractions of the interval; and back to the factual's own.
    pub(super) fn moves(&self, from: f64) -> Vec<f64> {
        let width = self.interval.upper - self.interval.lower;
        // One unit of the encoded column is the spread of the data.
        let span = if width.is_finite() { width } else { 1.0 / self.affine.scale.abs() };
        let smallest = self.step.map(|step| step.size());
        let sizes = smallest.into_iter().chain([256.0, 64.0, 16.0, 4.0].map(|part| span / part));
        let mut numbers: Vec<f64> = sizes
            .flat_map(|size| [from - size, from + size])
            .map(|wanted| match self.step {
                Some(step) => step.nearest(wanted),
                None => self.interval.nearest(wanted),
            })
            .chain([self.start])
            .filter(|&number| number != from && self.allow(number))
            .collect();
        nearest_first(&mut numbers, from);
        numbers
    }
}

/// Widens bounds to hold some columns.
fn include(bounds: &mut [(f32, f32)], columns: &[f32]) {
    for (bound, &x) in bounds.iter_mut().zip(columns) {
        *bound = (bound.0.min(x), bound.1.max(x));
    }
}

/// Four steps of single precision, relative to the number.
const STEPS_INWARD: f64 = 2.4e-7;

/// Sorts by the distance from a number, the smaller of equals first, each number once.
fn nearest_first(numbers: &mut Vec<f64>, from: f64) {
    numbers.sort_by(|a, b| (a - from).abs().total_cmp(&(b - from).abs()).then(a.total_cmp(b)));
    numbers.dedup();
}

/// Whether the value is a code rather than an ordinary value.
fn is_special(schema: &Schema, feature: &Feature, block: &Block, value: &Value) -> bool {
    let listed = |treated| {
        value
            .number()
            .is_some_and(|number| schema.special_values(feature, treated).contains(&number))
    };
    let of_block = match (&block.coding, value) {
        (Coding::Number { special, .. }, Value::Number(number)) => special.contains(number),
        _ => false,
    };
    *value == Value::Missing
        || block.beside.contains(value)
        || of_block
        || listed(SpecialAs::Level)
        || listed(SpecialAs::Number)
}

/// The levels a feature may have, the factual's own among them. A missing one has no order to go in.
fn allowed_levels<'a>(feature: &'a Feature, start: &'a Value) -> impl Iterator<Item = &'a Value> {
    let levels = feature.kind.levels();
    let current = levels.iter().position(|level| level == start);
    levels.iter().enumerate().filter_map(move |(position, level)| {
        let allowed = match &feature.action {
            Action::Free => true,
            Action::Fixed | Action::Within(_) => false,
            Action::OnlyUp => current.is_none_or(|current| position >= current),
            Action::OnlyDown => current.is_none_or(|current| position <= current),
            Action::Levels(allowed) => allowed.contains(level),
        };
        (allowed || level == start).then_some(level)
    })
}
