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

/// The most branches that are looked at where implications fail; fewer for single changes.
const BRANCHES: usize = 256;
const BRANCHES_FOR_A_CHANGE: usize = 32;

impl Answers {
    /// A row near the point that satisfies all rules; see [`FeasibleSet::settle`].
    pub(super) fn settle(&self, set: &FeasibleSet, point: &[f32]) -> Option<Row> {
        let clean = |x: &f32| if x.is_nan() { 0.0 } else { x.clamp(f32::MIN, f32::MAX) };
        let point: Vec<f32> = point.iter().map(clean).collect();
        let mut wish = Wish { point, projected: Vec::new(), row: None, tries: TRIES };
        let values = wish.nearest_values(self);
        if self.hold(&values) {
            return Some(Row::from_checked(values));
        }
        wish.projected = wish.point.clone();
        set.project(&mut wish.projected);
        self.granted(&wish, BRANCHES).map(Row::from_checked)
    }

    /// The row with one value changed, and the others changed as little as the rules require.
    pub(super) fn adjusted(&self, values: Vec<Value>, changed: usize) -> Option<Vec<Value>> {
        if self.implications.is_empty() {
            return Wish::of(values, changed).nearest(self);
        }
        let bound = self.with(changed, &values[changed])?;
        let mut wish = Wish::of(values, changed);
        wish.point = self.encode(&Row::from_checked(wish.own_values()))?;
        bound.granted(&wish, BRANCHES_FOR_A_CHANGE)
    }

    /// The row nearest to what is wished that satisfies all rules.
    fn granted(&self, wish: &Wish, branches: usize) -> Option<Vec<Value>> {
        let nearest = wish.nearest(self)?;
        if self.first_broken(&nearest).is_none() {
            return Some(nearest);
        }
        let mut granting = Granting { wish, branches, best: None };
        granting.visit(self, nearest);
        granting.best.map(|(_, values)| values)
    }

    /// The squared distance of a row from a point.
    fn distance(&self, values: &[Value], point: &[f32]) -> f64 {
        let each = self.options.iter().zip(values).map(|(options, value)| {
            let own = options.columns_of(value);
            let pairs = own.iter().zip(&point[options.columns.clone()]);
            pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
        });
        each.sum()
    }
}

/// The row that a search asks for.
struct Wish {
    /// Its point.
    point: Vec<f32>,
    /// The nearest point of the set.
    projected: Vec<f32>,
    /// Its values and the feature whose value must stay, where it is a row with one change.
    row: Option<(Vec<Value>, usize)>,
    /// The maximum number of choices in a search among the linear rules.
    tries: usize,
}

impl Wish {
    /// A row with one change.
    fn of(values: Vec<Value>, changed: usize) -> Self {
        let row = Some((values, changed));
        Self { point: Vec::new(), projected: Vec::new(), row, tries: TRIES_FOR_A_CHANGE }
    }

    fn own_values(&self) -> Vec<Value> {
        self.row.as_ref().map_or_else(Vec::new, |(values, _)| values.clone())
    }

    /// The nearest allowed value of each feature.
    fn nearest_values(&self, answers: &Answers) -> Vec<Value> {
        let nearest = |options: &Options| options.nearest(&self.point[options.columns.clone()]);
        answers.options.iter().map(nearest).collect()
    }

    /// The nearest row that satisfies the rules for single features and the linear rules.
    fn nearest(&self, answers: &Answers) -> Option<Vec<Value>> {
        if let Some((own, changed)) = &self.row {
            let allowed = |(options, value): (&Options, &Value)| {
                if options.allow(value) || self.point.is_empty() {
                    value.clone()
                } else {
                    options.nearest(&self.point[options.columns.clone()])
                }
            };
            let values: Vec<Value> = answers.options.iter().zip(own).map(allowed).collect();
            if !self.point.is_empty() && answers.fit(&values) {
                return Some(values);
            }
            let wanted = values.clone();
            let numbers_at = |_: &Options, numbers: &Numbers, position: usize| {
                let number = wanted[position].number().unwrap_or(numbers.hull().lower);
                (number, number)
            };
            return Search::new(answers, values, Some(*changed), self.tries, numbers_at).best();
        }
        let values = self.nearest_values(answers);
        if answers.fit(&values) {
            return Some(values);
        }
        let numbers_at = |options: &Options, numbers: &Numbers, _| {
            let column = options.columns.start;
            let at = |point: &[f32]| options.number_at(numbers, point[column]);
            (at(&self.point), at(&self.projected))
        };
        Search::new(answers, values, None, self.tries, numbers_at).best()
    }
}

/// A search over the branches of implications: depth first, and no branch whose nearest row is
/// farther than the best one.
struct Granting<'a> {
    wish: &'a Wish,
    branches: usize,
    best: Option<(f64, Vec<Value>)>,
}

impl Granting<'_> {
    /// Looks at a branch, of which `nearest` is the nearest row without implications.
    fn visit(&mut self, answers: &Answers, nearest: Vec<Value>) {
        let distance = answers.distance(&nearest, &self.wish.point);
        if self.best.as_ref().is_some_and(|(best, _)| distance >= *best) {
            return;
        }
        let Some(broken) = answers.first_broken(&nearest) else {
            self.best = Some((distance, nearest));
            return;
        };
        for branch in broken.branches(answers) {
            if self.branches == 0 {
                return;
            }
            self.branches -= 1;
            if let Some(nearest) = self.wish.nearest(&branch) {
                self.visit(&branch, nearest);
            }
        }
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
        if nearer && self.answers.fit(&self.values) {
            self.best = Some((distance, self.values.clone()));
        }
    }

    /// Where rounding has left the projection outside, a little back towards the factual, and
    /// at last all the way.
    fn pull_real_numbers(&mut self) {
        let placed = self.values.clone();
        for part in [1e-9, 1e-6, 1e-3, 1.0] {
            if self.answers.fit(&self.values) {
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
