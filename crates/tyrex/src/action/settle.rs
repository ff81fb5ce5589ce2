//! From a point to a row that obeys every rule.

use super::feasible::FeasibleSet;
use super::options::{Numbers, Options};
use super::rows::Answers;
use super::slab::Slabs;
use crate::data::schema::Interval;
use crate::data::{Row, Value};

/// Choices tried before the search gives up looking for a nearer row.
const TRIES: usize = 4000;

impl Answers {
    /// A row near the point that obeys everything; see [`FeasibleSet::settle`].
    pub(super) fn settle(&self, set: &FeasibleSet, point: &[f32]) -> Option<Row> {
        let clean = |x: &f32| if x.is_nan() { 0.0 } else { x.clamp(f32::MIN, f32::MAX) };
        let point: Vec<f32> = point.iter().map(clean).collect();
        let nearest = |options: &Options| options.nearest(&point[options.columns.clone()]);
        let values: Vec<Value> = self.options.iter().map(nearest).collect();
        if self.hold(&values) {
            return Some(Row::from_checked(values));
        }
        Search::new(self, set, &point, values).best().map(Row::from_checked)
    }
}

/// One number that linear rules speak about.
struct Variable<'a> {
    position: usize,
    numbers: &'a Numbers,
    /// The number that was asked for, and the one nearest to it that rules would allow if
    /// there were no steps.
    asked: f64,
    target: f64,
}

/// A search over the numbers in linear rules: depth first, the nearest choice first.
///
/// Numbers with gaps (steps, or a factual outside its interval) are chosen one after the
/// other, the coarsest first; each only among those that leave the rules a chance. The real
/// numbers then follow by projection.
struct Search<'a> {
    answers: &'a Answers,
    slabs: Slabs,
    /// For each column of the slabs, its place among the variables.
    order: Vec<usize>,
    /// Numbers with gaps first.
    variables: Vec<Variable<'a>>,
    with_gaps: usize,
    values: Vec<Value>,
    tries: usize,
    best: Option<(f64, Vec<Value>)>,
}

impl<'a> Search<'a> {
    fn new(answers: &'a Answers, set: &FeasibleSet, point: &[f32], values: Vec<Value>) -> Self {
        let mut projected = point.to_vec();
        set.project(&mut projected);
        let slabs = answers.slabs();
        let mut variables: Vec<(usize, Variable)> = answers
            .options
            .iter()
            .enumerate()
            .filter_map(|(position, options)| {
                let (numbers, column) = (options.numbers()?, options.columns.start);
                let place = slabs.columns().iter().position(|&own| own == column)?;
                let asked = options.number_at(numbers, point[column]);
                let target = options.number_at(numbers, projected[column]);
                Some((place, Variable { position, numbers, asked, target }))
            })
            .collect();
        variables.sort_by(|(_, a), (_, b)| {
            let connected = a.numbers.are_connected().cmp(&b.numbers.are_connected());
            connected.then(b.numbers.encoded_step().total_cmp(&a.numbers.encoded_step()))
        });
        let mut order = vec![0; slabs.columns().len()];
        for (index, (place, _)) in variables.iter().enumerate() {
            order[*place] = index;
        }
        let variables: Vec<Variable> = variables.into_iter().map(|(_, found)| found).collect();
        let with_gaps = variables.iter().filter(|v| !v.numbers.are_connected()).count();
        Self { answers, slabs, order, variables, with_gaps, values, tries: TRIES, best: None }
    }

    fn best(mut self) -> Option<Vec<Value>> {
        self.choose(0, 0.0);
        self.best.map(|(_, values)| values)
    }

    /// Chooses the numbers with gaps from this one on; `spent` is the squared distance so far.
    fn choose(&mut self, depth: usize, spent: f64) {
        if self.best.as_ref().is_some_and(|(best, _)| spent >= *best) {
            return;
        }
        if depth == self.with_gaps {
            self.finish(spent);
            return;
        }
        let Variable { position, numbers, asked, target, .. } = self.variables[depth];
        for number in numbers.around(target, self.implied(depth)) {
            if self.tries == 0 {
                return;
            }
            self.tries -= 1;
            self.values[position] = Value::Number(number);
            self.choose(depth + 1, spent + squared(numbers, number - asked));
        }
    }

    /// The numbers that the variable may have if those before it are as chosen and those
    /// after it are anything they may be.
    fn implied(&self, depth: usize) -> Interval {
        let chosen = |position: usize| {
            self.variables[..depth].iter().any(|variable| variable.position == position)
        };
        let own = self.variables[depth].position;
        let mut implied = Interval::ALL;
        for rule in &self.answers.rules {
            let mut coefficient = 0.0;
            let (mut least, mut most, mut size) = (0.0, 0.0, 0.0);
            for &(position, factor) in &rule.terms {
                if position == own {
                    coefficient = factor;
                    continue;
                }
                let numbers = self.answers.options[position].numbers();
                let range = match (numbers, &self.values[position]) {
                    (Some(numbers), _) if !chosen(position) => numbers.hull(),
                    (_, value) => {
                        let number = value.number().unwrap_or(0.0);
                        size += (factor * number).abs();
                        Interval { lower: number, upper: number }
                    }
                };
                let ends = [factor * range.lower, factor * range.upper];
                least += ends[0].min(ends[1]);
                most += ends[0].max(ends[1]);
            }
            if coefficient == 0.0 {
                continue;
            }
            let slack = 1e-12 * size;
            let ends = [
                (rule.bounds.lower - most - slack) / coefficient,
                (rule.bounds.upper - least + slack) / coefficient,
            ];
            implied = implied.intersection(Interval {
                lower: ends[0].min(ends[1]),
                upper: ends[0].max(ends[1]),
            });
        }
        implied
    }

    /// Gives the real numbers their values, and keeps the row if it is the nearest so far.
    fn finish(&mut self, spent: f64) {
        self.place_real_numbers();
        let mut distance = spent;
        for Variable { position, numbers, asked, .. } in &self.variables[self.with_gaps..] {
            if let Some(number) = self.values[*position].number() {
                distance += squared(numbers, number - asked);
            }
        }
        let nearer = self.best.as_ref().is_none_or(|(best, _)| distance < *best);
        if nearer && self.answers.hold(&self.values) {
            self.best = Some((distance, self.values.clone()));
        }
    }

    /// The projection of the real numbers onto the rules, the other numbers being chosen.
    fn place_real_numbers(&mut self) {
        if self.with_gaps == self.variables.len() {
            return;
        }
        let (mut point, mut lower, mut upper) = (Vec::new(), Vec::new(), Vec::new());
        for &index in &self.order {
            let Variable { position, numbers, asked, .. } = &self.variables[index];
            let is_chosen = index < self.with_gaps;
            let chosen = self.values[*position].number().filter(|_| is_chosen);
            let range =
                chosen.map_or(numbers.hull(), |number| Interval { lower: number, upper: number });
            let ends = [range.lower, range.upper].map(|end| numbers.affine().apply(end));
            lower.push(ends[0].min(ends[1]));
            upper.push(ends[0].max(ends[1]));
            point.push(numbers.affine().apply(*asked));
        }
        let asked = point.clone();
        self.slabs.solve(&mut point, &lower, &upper);
        for (place, &index) in self.order.iter().enumerate() {
            let Variable { position, numbers, asked: own, .. } = &self.variables[index];
            if index < self.with_gaps {
                continue;
            }
            let stays = point[place] == asked[place];
            let wanted = if stays { *own } else { numbers.affine().invert(point[place]) };
            if let Some(number) = numbers.nearest(wanted, Interval::ALL) {
                self.values[*position] = Value::Number(number);
            }
        }
    }
}

/// The squared distance in the encoded column.
fn squared(numbers: &Numbers, difference: f64) -> f64 {
    (difference * numbers.affine().scale).powi(2)
}
