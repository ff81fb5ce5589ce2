//! From a point to a row that satisfies every rule.

use super::feasible::FeasibleSet;
use super::options::{Numbers, Options};
use super::rows::Answers;
use super::rule::ROUNDING;
use super::slab::Slabs;
use crate::data::schema::Interval;
use crate::data::{Row, Value};

/// The maximum number of choices in the search for a nearer row; fewer for single changes of a row.
const TRIES: usize = 4000;
const TRIES_FOR_A_CHANGE: usize = 200;

impl Answers {
    /// A row near the point that satisfies all rules; see [`FeasibleSet::settle`].
    pub(super) fn settle(&self, set: &FeasibleSet, point: &[f32]) -> Option<Row> {
        let clean = |x: &f32| if x.is_nan() { 0.0 } else { x.clamp(f32::MIN, f32::MAX) };
        let point: Vec<f32> = point.iter().map(clean).collect();
        let nearest = |options: &Options| options.nearest(&point[options.columns.clone()]);
        let values: Vec<Value> = self.options.iter().map(nearest).collect();
        if self.hold(&values) {
            return Some(Row::from_checked(values));
        }
        let mut projected = point.clone();
        set.project(&mut projected);
        let numbers_at = |options: &Options, numbers: &Numbers, _| {
            let column = options.columns.start;
            let at = |point: &[f32]| options.number_at(numbers, point[column]);
            (at(&point), at(&projected))
        };
        Search::new(self, values, None, TRIES, numbers_at).best().map(Row::from_checked)
    }

    /// The row with one number changed, and the other numbers changed as little as the linear rules
    /// require.
    pub(super) fn adjusted(&self, values: Vec<Value>, changed: usize) -> Option<Vec<Value>> {
        let own = values.clone();
        let numbers_at = |_: &Options, numbers: &Numbers, position: usize| {
            let number = own[position].number().unwrap_or(numbers.hull().lower);
            (number, number)
        };
        Search::new(self, values, Some(changed), TRIES_FOR_A_CHANGE, numbers_at).best()
    }
}

/// One number in the linear rules.
struct Variable<'a> {
    position: usize,
    numbers: &'a Numbers,
    /// The requested number, and the nearest one that the rules would allow without steps.
    asked: f64,
    target: f64,
    /// Whether only the requested number is allowed.
    is_given: bool,
}

impl Variable<'_> {
    /// Whether its values have to be chosen one by one.
    fn has_gaps(&self) -> bool {
        self.is_given || !self.numbers.are_connected()
    }

    /// Numbers in the region to choose from, nearest first.
    fn choices(&self, region: Interval) -> Vec<f64> {
        if self.is_given {
            return Some(self.asked).filter(|&asked| region.contains(asked)).into_iter().collect();
        }
        self.numbers.around(self.target, region)
    }
}

/// A search over the numbers in linear rules: depth first, the nearest choice first.
///
/// Numbers with gaps (steps, or a factual outside its interval) are chosen one after the other, the
/// coarsest first; each only among those that keep the rules satisfiable. The real numbers then
/// follow by projection.
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
    /// A search from these values. `numbers_at` gives the requested number of each variable and the
    /// region to search.
    fn new(
        answers: &'a Answers,
        values: Vec<Value>,
        given: Option<usize>,
        tries: usize,
        numbers_at: impl Fn(&Options, &Numbers, usize) -> (f64, f64),
    ) -> Self {
        let slabs = answers.slabs();
        let mut variables: Vec<(usize, Variable)> = answers
            .options
            .iter()
            .enumerate()
            .filter_map(|(position, options)| {
                let (numbers, column) = (options.numbers()?, options.columns.start);
                let place = slabs.columns().iter().position(|&own| own == column)?;
                let (asked, target) = numbers_at(options, numbers, position);
                let is_given = given == Some(position);
                Some((place, Variable { position, numbers, asked, target, is_given }))
            })
            .collect();
        variables.sort_by(|(_, a), (_, b)| {
            let key = |v: &Variable| (!v.is_given, !v.has_gaps());
            let coarsest = b.numbers.encoded_step().total_cmp(&a.numbers.encoded_step());
            key(a).cmp(&key(b)).then(coarsest)
        });
        let mut order = vec![0; slabs.columns().len()];
        for (index, (place, _)) in variables.iter().enumerate() {
            order[*place] = index;
        }
        let variables: Vec<Variable> = variables.into_iter().map(|(_, found)| found).collect();
        let with_gaps = variables.iter().filter(|v| v.has_gaps()).count();
        Self { answers, slabs, order, variables, with_gaps, values, tries, best: None }
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
        let Variable { position, numbers, asked, .. } = self.variables[depth];
        for number in self.variables[depth].choices(self.implied(depth)) {
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
            let (mut least, mut most) = (0.0, 0.0);
            let mut size = largest([rule.bounds.lower, rule.bounds.upper]);
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
                        Interval { lower: number, upper: number }
                    }
                };
                let ends = [factor * range.lower, factor * range.upper];
                least += ends[0].min(ends[1]);
                most += ends[0].max(ends[1]);
                size += largest(ends);
            }
            if coefficient == 0.0 {
                continue;
            }
            // Values admitted by rounding are checked again for the row as a whole.
            let slack = ROUNDING * size;
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
        self.pull_real_numbers();
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

    /// Where rounding has left the projection outside, a little back towards the factual, and
    /// at last all the way.
    fn pull_real_numbers(&mut self) {
        let placed = self.values.clone();
        for part in [1e-9, 1e-6, 1e-3, 1.0] {
            if self.answers.hold(&self.values) {
                return;
            }
            for Variable { position, numbers, .. } in &self.variables[self.with_gaps..] {
                if let Some(number) = placed[*position].number() {
                    let back = number + part * (numbers.start() - number);
                    self.values[*position] = Value::Number(numbers.hull().nearest(back));
                }
            }
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

/// The size of the larger end; an infinite one has no rounding errors.
fn largest(ends: [f64; 2]) -> f64 {
    ends.into_iter().filter(|end| end.is_finite()).fold(0.0, |size, end| size.max(end.abs()))
}

/// The squared distance in the encoded column.
fn squared(numbers: &Numbers, difference: f64) -> f64 {
    (difference * numbers.affine().scale).powi(2)
}
