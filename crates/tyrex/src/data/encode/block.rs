//! One feature's part of a point: the columns, and the arithmetic both ways.

use serde::{Deserialize, Serialize};

use crate::data::cell::listed;
use crate::data::number::Step;
use crate::data::schema::Interval;
use crate::data::value::Value;
use crate::error::{Error, Result};

/// `x -> (x - offset) * scale`, and back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Affine {
    /// The number that is subtracted.
    pub offset: f64,
    /// The factor of the difference; not 0.
    pub scale: f64,
}

impl Affine {
    /// `x -> x`.
    pub(crate) const IDENTITY: Self = Self { offset: 0.0, scale: 1.0 };

    /// `(x - offset) * scale`.
    pub(crate) fn apply(&self, x: f64) -> f64 {
        (x - self.offset) * self.scale
    }

    /// The coordinate of a point that `x` becomes: `(x - offset) * scale`, rounded to a finite
    /// `f32`. Never smaller for a larger `x` if the scale is above 0, since every step rounds
    /// in order.
    pub fn coordinate(&self, x: f64) -> f32 {
        rounded(self.apply(x))
    }

    /// `y / scale + offset`.
    pub fn invert(&self, y: f64) -> f64 {
        y / self.scale + self.offset
    }

    /// The affine from what this one gives to what the other one gives:
    /// `(y / s1 + o1 - o2) s2 = (y - (o2 - o1) s1) s2 / s1`.
    pub(crate) fn to(self, other: Self) -> Self {
        Self { offset: (other.offset - self.offset) * self.scale, scale: other.scale / self.scale }
    }
}

/// How a feature becomes columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Coding {
    /// One column: `affine(clip(x))`.
    Number {
        /// The scaling.
        affine: Affine,
        /// Numbers are moved into this interval first.
        clip: Interval,
        /// Decoding gives a number in this interval, or a special one.
        range: Interval,
        /// Decoding gives a multiple of this step, if there is one.
        step: Option<f64>,
        /// Numbers that are allowed outside the range and off the step.
        special: Vec<f64>,
    },
    /// One column: the affine of the level's code.
    Code {
        /// The levels.
        levels: Vec<Value>,
        /// The code of each level.
        codes: Vec<f64>,
        /// The scaling.
        affine: Affine,
    },
    /// One column per level: the affine of 1 for the level, of 0 for the others.
    OneHot {
        /// The levels, in the order of their columns.
        levels: Vec<Value>,
        /// The scaling of each column; the identity in the plain case.
        affines: Vec<Affine>,
    },
}

/// One feature's part of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// The feature's name.
    pub feature: String,
    /// How its values become columns.
    pub coding: Coding,
    /// Values with a column of their own beside a number or a code: 1 when the feature has
    /// that value, else 0. The first column is 0 when one of them is 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Value>,
    /// Whether the column of the missing value, the last one, is not a column of the model: it gets
    /// the missing value in the first column.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes: bool,
}

/// The meaning of a part of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Number(f64),
    Level(usize),
    Beside(usize),
}

impl Block {
    /// A scaled number, `(x - offset) * scale`.
    pub(crate) fn number(feature: impl Into<String>, affine: Affine) -> Self {
        let coding = Coding::Number {
            affine,
            clip: Interval::ALL,
            range: Interval::ALL,
            step: None,
            special: Vec::new(),
        };
        Self { feature: feature.into(), coding, beside: Vec::new(), passes: false }
    }

    /// The same with a missing value that the model gets as such; an error for a block of levels.
    pub(crate) fn passing(mut self) -> Result<Self> {
        if matches!(self.coding, Coding::OneHot { .. }) {
            return Err(Error::feature(
                &self.feature,
                "`missing = \"pass\"` needs a feature that is one number for the model, but it has \
                 one column per level; set its `missing` to \"reject\", \"drop-row\", \"level\" or \
                 { fill = value }",
            ));
        }
        self.beside.push(Value::Missing);
        self.passes = true;
        Ok(self)
    }

    /// One column of zeros and ones per level.
    pub(crate) fn one_hot(feature: impl Into<String>, levels: Vec<Value>) -> Self {
        let affines = vec![Affine::IDENTITY; levels.len()];
        Self {
            feature: feature.into(),
            coding: Coding::OneHot { levels, affines },
            beside: Vec::new(),
            passes: false,
        }
    }

    /// One column: the place of the level in the list, from 0.
    pub(crate) fn codes(feature: impl Into<String>, levels: Vec<Value>) -> Self {
        let codes = (0..levels.len()).map(|code| code as f64).collect();
        let coding = Coding::Code { levels, codes, affine: Affine::IDENTITY };
        Self { feature: feature.into(), coding, beside: Vec::new(), passes: false }
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        match &self.coding {
            Coding::Number { .. } | Coding::Code { .. } => 1 + self.beside.len(),
            Coding::OneHot { levels, .. } => levels.len(),
        }
    }

    /// The number of columns that a model of another tool takes.
    pub(crate) fn model_width(&self) -> usize {
        self.width() - usize::from(self.passes)
    }

    /// The names of the columns: `age`, `purpose=car (new)`, `workclass is missing`.
    pub(crate) fn columns(&self) -> impl Iterator<Item = String> {
        let (first, levels) = match &self.coding {
            Coding::Number { .. } | Coding::Code { .. } => (true, &self.beside),
            Coding::OneHot { levels, .. } => (false, levels),
        };
        let named = levels.iter().map(|level| match level {
            Value::Missing => format!("{} is missing", self.feature),
            level => format!("{}={level}", self.feature),
        });
        first.then(|| self.feature.clone()).into_iter().chain(named)
    }

    /// Checks that the block can be computed both ways, and prepares its step.
    pub(super) fn prepare(&self) -> Result<Option<Step>> {
        let wrong = |problem: String| Err(Error::feature(&self.feature, problem));
        let affines = match &self.coding {
            Coding::Number { affine, .. } | Coding::Code { affine, .. } => {
                std::slice::from_ref(affine)
            }
            Coding::OneHot { affines, .. } => affines,
        };
        let good = |affine: &Affine| {
            affine.offset.is_finite()
                && affine.scale.is_normal()
                && (1.0 / affine.scale).is_normal()
        };
        if let Some(affine) = affines.iter().find(|affine| !good(affine)) {
            return wrong(format!(
                "is scaled by {} after subtracting {}, expected finite numbers and a scale that is \
                 not 0",
                affine.scale, affine.offset
            ));
        }
        if self.passes && self.beside.last() != Some(&Value::Missing) {
            return wrong("passes missing values and has no column for them".to_owned());
        }
        match &self.coding {
            Coding::Number { clip, range, step, special, .. } => {
                let ends = [clip.lower, clip.upper, range.lower, range.upper];
                if ends.iter().chain(special).any(|end| end.is_nan())
                    || clip.lower > clip.upper
                    || range.lower > range.upper
                {
                    return wrong("its range or clip holds no number".to_owned());
                }
                match step {
                    None => Ok(None),
                    Some(size) if *size > 0.0 && size.is_finite() => match Step::new(*size, *range)
                    {
                        Some(step) => Ok(Some(step)),
                        None => wrong(format!("no multiple of {size} lies in its range")),
                    },
                    Some(size) => wrong(format!("step is {size}, expected a number above 0")),
                }
            }
            Coding::Code { levels, codes: numbers, .. } => {
                if levels.is_empty() || levels.len() != numbers.len() {
                    return wrong(format!("{} levels with {} codes", levels.len(), numbers.len()));
                }
                if numbers.iter().any(|code| !code.is_finite()) {
                    return wrong("a code is not a finite number".to_owned());
                }
                Ok(None)
            }
            Coding::OneHot { levels, affines } => {
                if levels.is_empty() || levels.len() != affines.len() {
                    return wrong(format!(
                        "{} levels with {} columns",
                        levels.len(),
                        affines.len()
                    ));
                }
                if !self.beside.is_empty() {
                    return wrong("a one-hot block lists all its values as levels".to_owned());
                }
                Ok(None)
            }
        }
    }

    /// Writes the columns of a value.
    pub(crate) fn encode(&self, value: &Value, out: &mut [f32]) -> Result<()> {
        let state = self.state_of(value).ok_or_else(|| {
            let levels = match &self.coding {
                Coding::Number { .. } => &self.beside,
                Coding::Code { levels, .. } | Coding::OneHot { levels, .. } => levels,
            };
            let expected = match &self.coding {
                Coding::Number { .. } if levels.is_empty() => "a number".to_owned(),
                Coding::Number { .. } => format!("a number or one of {}", listed(levels)),
                _ => format!("one of {}", listed(levels)),
            };
            let found = match value {
                Value::Missing => "a missing value".to_owned(),
                value => format!("`{value}`"),
            };
            Error::feature(&self.feature, format!("found {found}, expected {expected}"))
        })?;
        self.write(state, out);
        Ok(())
    }

    /// The value whose columns are nearest.
    pub(super) fn decode(&self, step: Option<&Step>, point: &[f32]) -> Value {
        match (self.nearest(step, point), &self.coding) {
            (State::Number(number), _) => Value::Number(number),
            (State::Beside(index), _) => self.beside[index].clone(),
            (State::Level(index), Coding::Code { levels, .. } | Coding::OneHot { levels, .. }) => {
                levels[index].clone()
            }
            // `nearest` gives a level only for codings that have levels.
            (State::Level(_), Coding::Number { .. }) => Value::Missing,
        }
    }

    /// The value that the columns stand for, with numbers that may lie between the steps and
    /// outside the range. A number of the grid whose column is exactly this one is returned
    /// unchanged.
    pub(super) fn decode_freely(&self, step: Option<&Step>, point: &[f32]) -> Value {
        let nearest = self.decode(step, point);
        match (&self.coding, nearest.number()) {
            (Coding::Number { affine, .. }, Some(number)) => {
                let column = self.first_column(State::Number(number)) as f32;
                let exact = clean(column) == clean(point[0]);
                Value::Number(if exact { number } else { affine.invert(clean(point[0])) })
            }
            _ => nearest,
        }
    }

    /// Moves the columns to the nearest ones that a value has.
    pub(super) fn snap(&self, step: Option<&Step>, point: &mut [f32]) {
        let state = self.nearest(step, point);
        if let (State::Number(number), Coding::Number { affine, range, .. }) = (state, &self.coding)
        {
            // A real number in its range is encodable already; recomputing it would only add
            // rounding errors.
            let free = step.is_none() && range.contains(affine.invert(clean(point[0])));
            if free && range.contains(number) {
                point[0] = clean(point[0]) as f32;
                point[1..].fill(0.0);
                return;
            }
        }
        self.write(state, point);
    }

    fn state_of(&self, value: &Value) -> Option<State> {
        if let Some(index) = self.beside.iter().position(|own| own == value) {
            return Some(State::Beside(index));
        }
        match &self.coding {
            Coding::Number { .. } => {
                value.number().filter(|number| number.is_finite()).map(State::Number)
            }
            Coding::Code { levels, .. } | Coding::OneHot { levels, .. } => {
                levels.iter().position(|level| level == value).map(State::Level)
            }
        }
    }

    fn write(&self, state: State, out: &mut [f32]) {
        match (&self.coding, state) {
            (Coding::OneHot { affines, .. }, state) => {
                for (index, (column, affine)) in out.iter_mut().zip(affines).enumerate() {
                    let on = state == State::Level(index);
                    *column = affine.coordinate(f64::from(u8::from(on)));
                }
            }
            (_, state) => {
                out.fill(0.0);
                match state {
                    State::Beside(index) => out[1 + index] = 1.0,
                    main => out[0] = rounded(self.first_column(main)),
                }
            }
        }
    }

    /// The first column of a number or a code.
    fn first_column(&self, state: State) -> f64 {
        match (&self.coding, state) {
            (Coding::Number { affine, clip, .. }, State::Number(number)) => {
                affine.apply(clip.nearest(number))
            }
            (Coding::Code { codes, affine, .. }, State::Level(index)) => affine.apply(codes[index]),
            _ => 0.0,
        }
    }

    /// The meaning of the nearest encodable columns.
    fn nearest(&self, step: Option<&Step>, point: &[f32]) -> State {
        let main = match &self.coding {
            Coding::OneHot { affines, .. } => {
                // Among the points with one level on, the distance differs by the level's
                // own column only: (x - on)^2 instead of (x - off)^2.
                return State::Level(first_smallest(point.iter().zip(affines).map(
                    |(&x, affine)| {
                        let (x, off, on) = (clean(x), affine.apply(0.0), affine.apply(1.0));
                        (off - on) * (2.0 * x - off - on)
                    },
                )));
            }
            Coding::Code { codes, affine, .. } => {
                let code = affine.invert(clean(point[0]));
                State::Level(first_smallest(codes.iter().map(|own| (own - code).abs())))
            }
            Coding::Number { affine, range, special, .. } => {
                let number = affine.invert(clean(point[0]));
                let ordinary = step.map_or(range.nearest(number), |step| step.nearest(number));
                let candidates = std::iter::once(ordinary).chain(special.iter().copied());
                let index = first_smallest(candidates.map(|own| (own - number).abs()));
                State::Number(index.checked_sub(1).map_or(ordinary, |index| special[index]))
            }
        };
        if self.beside.is_empty() {
            return main;
        }
        let x = clean(point[0]);
        let distance_main = (x - self.first_column(main)).powi(2);
        // Switching a column on changes its square by (x - 1)^2 - x^2.
        let distances_beside = point[1..].iter().map(|&other| x.powi(2) + 1.0 - 2.0 * clean(other));
        match first_smallest(std::iter::once(distance_main).chain(distances_beside)) {
            0 => main,
            index => State::Beside(index - 1),
        }
    }
}

/// A coordinate as a finite number: one that is not a number counts as 0.
fn clean(x: f32) -> f64 {
    if x.is_nan() { 0.0 } else { f64::from(x.clamp(f32::MIN, f32::MAX)) }
}

/// A number as a coordinate of a point.
fn rounded(number: f64) -> f32 {
    clean(number as f32) as f32
}

/// The index of the smallest number; the first of equals.
fn first_smallest(numbers: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::INFINITY);
    for (index, number) in numbers.enumerate() {
        if number < best.1 {
            best = (index, number);
        }
    }
    best.0
}
