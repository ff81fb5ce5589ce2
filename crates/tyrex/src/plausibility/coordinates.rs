//! The coordinates of the density: standardised numbers, and indicators of levels.

use std::ops::Range;

use crate::data::Encoder;
use crate::data::encode::{Block, Coding};
use crate::points::Points;

/// An affine function of the columns of a point, `constant + sum_i factor_i x_i`.
#[derive(Debug, Clone, PartialEq)]
struct Form {
    terms: Vec<(usize, f64)>,
    constant: f64,
}

impl Form {
    fn column(column: usize) -> Self {
        Self { terms: vec![(column, 1.0)], constant: 0.0 }
    }

    fn of(&self, x: &[f32]) -> f64 {
        self.terms.iter().fold(self.constant, |sum, &(column, f)| sum + f * f64::from(x[column]))
    }

    /// `(self - offset) / scale`
    fn scaled(mut self, offset: f64, scale: f64) -> Self {
        self.constant = (self.constant - offset) / scale;
        self.terms.iter_mut().for_each(|(_, factor)| *factor /= scale);
        self
    }

    /// `1 - sum` of the others.
    fn rest(others: &[Self]) -> Self {
        let terms = others.iter().flat_map(|form| form.terms.iter().map(|&(c, f)| (c, -f)));
        let constant = 1.0 - others.iter().map(|form| form.constant).sum::<f64>();
        Self { terms: terms.collect(), constant }
    }
}

/// The coordinates of a point: numbers first, then the levels of all groups.
///
/// A coordinate is an affine function of the columns, so the density has a gradient at relaxed
/// points too. A number is standardised. A group has one indicator per state of a feature: its
/// levels, or a number beside "missing" and special values. The indicators of a group sum to 1, and
/// at the point of a row one of them is 1. Where a number has no value, its coordinate is the mean.
#[derive(Debug, Clone)]
pub(super) struct Coordinates {
    numbers: Vec<Form>,
    levels: Vec<Form>,
    /// The levels of each group.
    groups: Vec<Range<usize>>,
}

/// A number with a smaller spread is standardised by this one.
const LEAST_SPREAD: f64 = 0.01;

impl Coordinates {
    /// The coordinates of an encoder's points, standardised on some of them.
    pub(super) fn of(encoder: &Encoder, points: &Points) -> Self {
        let mut own = Self { numbers: Vec::new(), levels: Vec::new(), groups: Vec::new() };
        for (block, columns, _) in encoder.placed() {
            own.add(block, columns, points);
        }
        own
    }

    /// The coordinates of points whose columns are all numbers.
    pub(super) fn of_numbers(points: &Points) -> Self {
        let mut own = Self { numbers: Vec::new(), levels: Vec::new(), groups: Vec::new() };
        (0..points.dim()).for_each(|column| own.add_number(column, &[], points));
        own
    }

    fn add(&mut self, block: &Block, columns: Range<usize>, points: &Points) {
        let beside: Vec<Form> = match &block.coding {
            Coding::OneHot { .. } => Vec::new(),
            _ => (columns.start + 1..columns.end).map(Form::column).collect(),
        };
        match &block.coding {
            Coding::OneHot { affines, .. } => {
                let level = columns.zip(affines).map(|(column, affine)| {
                    let (off, on) = (affine.apply(0.0), affine.apply(1.0));
                    Form::column(column).scaled(off, on - off)
                });
                self.add_group(level.collect());
            }
            // Two levels in one column are 0 or 1 between their codes.
            Coding::Code { codes, affine, .. } if codes.len() == 2 && codes[0] != codes[1] => {
                let (off, on) = (affine.apply(codes[0]), affine.apply(codes[1]));
                let mut second = Form::column(columns.start).scaled(off, on - off);
                // Without either level the column is 0.
                let apart = off / (on - off);
                second.terms.extend(beside.iter().map(|form| (form.terms[0].0, apart)));
                let mut states = vec![second];
                states.extend(beside);
                states.push(Form::rest(&states));
                self.add_group(states);
            }
            Coding::Number { .. } | Coding::Code { .. } => {
                self.add_number(columns.start, &beside, points);
                if !beside.is_empty() {
                    let rest = Form::rest(&beside);
                    self.add_group(beside.into_iter().chain([rest]).collect());
                }
            }
        }
    }

    /// A group; one level alone says nothing.
    fn add_group(&mut self, states: Vec<Form>) {
        if states.len() > 1 {
            self.groups.push(self.levels.len()..self.levels.len() + states.len());
            self.levels.extend(states);
        }
    }

    fn add_number(&mut self, column: usize, beside: &[Form], points: &Points) {
        let has_value = |x: &&[f32]| beside.iter().all(|form| form.of(x) < 0.5);
        let values: Vec<f64> =
            points.rows().filter(has_value).map(|x| f64::from(x[column])).collect();
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let mut form = Form::column(column);
        form.terms.extend(beside.iter().map(|beside| (beside.terms[0].0, mean)));
        self.numbers.push(form.scaled(mean, square.sqrt().max(LEAST_SPREAD)));
    }

    /// The number of numbers.
    pub(super) fn numbers(&self) -> usize {
        self.numbers.len()
    }

    /// The number of numbers and levels.
    pub(super) fn len(&self) -> usize {
        self.numbers.len() + self.levels.len()
    }

    /// The levels of each group, counted from the first level.
    pub(super) fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    fn forms(&self) -> impl Iterator<Item = &Form> {
        self.numbers.iter().chain(&self.levels)
    }

    /// The coordinates of a point.
    pub(super) fn read(&self, x: &[f32]) -> Vec<f64> {
        self.forms().map(|form| form.of(x)).collect()
    }

    /// The gradient with respect to the columns, from that with respect to the coordinates.
    pub(super) fn gradient(&self, of_coordinates: &[f64], gradient: &mut [f64]) {
        gradient.fill(0.0);
        for (form, &slope) in self.forms().zip(of_coordinates) {
            form.terms.iter().for_each(|&(column, factor)| gradient[column] += slope * factor);
        }
    }

    /// The coordinates that depend on some columns: each with its factors of these columns, and 0
    /// for those it does not have.
    pub(super) fn of_columns(&self, columns: &Range<usize>) -> Vec<(usize, Vec<f64>)> {
        let factors = |form: &Form| {
            let mut factors = vec![0.0; columns.len()];
            for &(column, factor) in form.terms.iter().filter(|(c, _)| columns.contains(c)) {
                factors[column - columns.start] += factor;
            }
            factors
        };
        let all = self.forms().map(factors).enumerate();
        all.filter(|(_, factors)| factors.iter().any(|&factor| factor != 0.0)).collect()
    }

    /// `ln |dy/dx|` of the numbers: the density of the columns is that of the coordinates times
    /// this factor.
    pub(super) fn log_volume(&self) -> f64 {
        self.numbers.iter().map(|form| libm::log(form.terms[0].1.abs())).sum()
    }
}
