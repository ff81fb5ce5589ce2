//! The feasible set of one factual.

use std::sync::Arc;

use super::Actions;
use super::group::LevelGroup;
use super::imply::Implication;
use super::moves::Moves;
use super::rows::Answers;
use super::slab::Slabs;
use super::violation::Violation;
use crate::data::Row;
use crate::error::{Error, Result};

/// The feasible set of one factual.
///
/// As a set of points it is convex: a box, a scaled simplex for each one-hot group, a slab
/// for each linear rule. If it comes from a factual, only points of rows are answers; see
/// [`FeasibleSet::settle`].
#[derive(Debug, Clone)]
pub struct FeasibleSet {
    lower: Vec<f32>,
    upper: Vec<f32>,
    groups: Vec<LevelGroup>,
    slabs: Slabs,
    prices: Option<Arc<[[f64; 2]]>>,
    /// A point of the set; empty if no slab needs one.
    inside: Vec<f64>,
    pub(super) answers: Option<Answers>,
}

/// The relative tolerance of membership in the set.
const TOLERANCE: f64 = 1e-5;
/// A point that misses a slab by less is not moved, so that projection is idempotent.
const NEAR: f64 = 1e-6;

impl FeasibleSet {
    /// No rules: any point is an answer.
    pub fn everywhere(dim: usize) -> Self {
        Self::boxed(vec![f32::NEG_INFINITY; dim], vec![f32::INFINITY; dim])
    }

    /// Any point of a box is an answer. An end may be infinite.
    pub fn within(lower: Vec<f32>, upper: Vec<f32>) -> Result<Self> {
        if lower.len() != upper.len() {
            return Err(Error::Dimension {
                what: "upper ends of a box".to_owned(),
                expected: lower.len(),
                got: upper.len(),
            });
        }
        for (column, (low, high)) in lower.iter().zip(&upper).enumerate() {
            let holds_a_number = low <= high && *low < f32::INFINITY && *high > f32::NEG_INFINITY;
            if !holds_a_number {
                return Err(Error::param(
                    "box",
                    format!("[{low}, {high}] in column {column}"),
                    "the smaller number first, and a number between them",
                ));
            }
        }
        Ok(Self::boxed(lower, upper))
    }

    fn boxed(lower: Vec<f32>, upper: Vec<f32>) -> Self {
        Self {
            lower,
            upper,
            groups: Vec::new(),
            slabs: Slabs::default(),
            prices: None,
            inside: Vec::new(),
            answers: None,
        }
    }

    /// The set of a factual under the actions and rules in force.
    pub(super) fn new(actions: Actions, factual: Row) -> Result<Self> {
        let point = actions.encoder.encode(&factual)?.into_vec();
        let prices = actions.prices.clone();
        let answers = Answers::new(actions, factual, &point)?;
        let mut set = Self { prices, ..Self::boxed(point.clone(), point.clone()) };
        for options in &answers.options {
            for (column, bounds) in options.columns.clone().zip(options.bounds()) {
                (set.lower[column], set.upper[column]) = bounds;
            }
        }
        set.groups = answers.groups();
        set.slabs = answers.slabs();
        // The factual's columns are rounded, so its sums are too.
        set.slabs.include(&point);
        set.inside = set.slabs.gather(&point);
        set.answers = Some(answers);
        Ok(set)
    }

    /// The number of columns.
    pub(crate) fn dim(&self) -> usize {
        self.lower.len()
    }

    /// The smallest value of each column; `-inf` if there is none.
    pub fn lower(&self) -> &[f32] {
        &self.lower
    }

    /// The largest value of each column; `inf` if there is none. A fixed column has the same
    /// number as smallest and largest.
    pub fn upper(&self) -> &[f32] {
        &self.upper
    }

    /// The same with prices of changes.
    pub(crate) fn priced(self, prices: Option<Arc<[[f64; 2]]>>) -> Self {
        Self { prices, ..self }
    }

    /// The cost of a change of each column by one unit, downward and upward; 1 without prices.
    pub fn prices(&self) -> Option<&[[f64; 2]]> {
        self.prices.as_deref()
    }

    /// The one-hot groups in which there is a choice; all other one-hot columns are fixed.
    pub fn groups(&self) -> &[LevelGroup] {
        &self.groups
    }

    /// Whether every point of the set is an answer; if not, only points of rows are.
    pub(crate) fn is_relaxed(&self) -> bool {
        self.answers.is_none()
    }

    /// Whether both sets hold the same points and rows, as far as their bounds say.
    pub(crate) fn holds_the_same_as(&self, other: &Self) -> bool {
        let implied = |set: &Self| -> Vec<Implication> {
            let answers = set.answers.as_ref();
            answers.map_or_else(Vec::new, |answers| answers.implications.clone())
        };
        (&self.lower, &self.upper, &self.groups, &self.slabs)
            == (&other.lower, &other.upper, &other.groups, &other.slabs)
            && implied(self)
                .iter()
                .map(Implication::parts)
                .eq(implied(other).iter().map(Implication::parts))
    }

    /// Moves a point to the nearest one of the set, by Euclidean distance. A coordinate that
    /// is not a number counts as 0.
    ///
    /// # Panics
    /// If the dimension of the point differs.
    pub fn project(&self, point: &mut [f32]) {
        assert_eq!(point.len(), self.dim(), "a point of another dimension");
        for x in &mut *point {
            *x = if x.is_nan() { 0.0 } else { x.clamp(f32::MIN, f32::MAX) };
        }
        // Before the box: inside a group the box would move the point to another one.
        for group in &self.groups {
            group.project(point);
        }
        self.project_to_slabs(point);
        for (x, (lower, upper)) in point.iter_mut().zip(self.lower.iter().zip(&self.upper)) {
            *x = x.max(*lower).min(*upper);
        }
    }

    fn project_to_slabs(&self, point: &mut [f32]) {
        if self.slabs.is_empty() {
            return;
        }
        let (lower, upper) = (self.slabs.gather(&self.lower), self.slabs.gather(&self.upper));
        let start = self.slabs.gather(point);
        let clamp = |point: &[f64]| -> Vec<f64> {
            point
                .iter()
                .zip(lower.iter().zip(&upper))
                .map(|(x, (l, u))| x.max(*l).min(*u))
                .collect()
        };
        let mut moved = clamp(&start);
        if !self.slabs.hold(&moved, NEAR) {
            moved = start;
            self.slabs.solve(&mut moved, &lower, &upper);
            if !self.slabs.hold(&moved, NEAR) {
                self.slabs.pull(&mut moved, &self.inside);
            }
        }
        for (&column, x) in self.slabs.columns().iter().zip(moved) {
            point[column] = x as f32;
        }
    }

    /// Whether the point is in the set, up to rounding.
    ///
    /// # Panics
    /// If the dimension of the point differs.
    pub fn contains(&self, point: &[f32]) -> bool {
        assert_eq!(point.len(), self.dim(), "a point of another dimension");
        let in_box = point.iter().zip(self.lower.iter().zip(&self.upper)).all(|(&x, (&l, &u))| {
            let slack = TOLERANCE as f32 * x.abs().max(1.0);
            x.is_finite() && l - slack <= x && x <= u + slack
        });
        let in_groups = self
            .groups
            .iter()
            .all(|group| group.distance_from_simplex(&point[group.columns.clone()]) <= TOLERANCE);
        in_box && in_groups && self.slabs.hold(&self.slabs.gather(point), TOLERANCE)
    }

    /// A row near the point that satisfies every rule, and its point.
    ///
    /// Every feature goes to its nearest allowed value: whole numbers, steps, single levels. If a
    /// rule then fails, the values next to these are searched and the nearest row found is taken. Unchanged features keep the factual's exact value, so the factual settles to itself.
    /// `None` if no row is found nearby, and for sets without rows.
    ///
    /// # Panics
    /// If the dimension of the point differs.
    pub fn settle(&self, point: &[f32]) -> Option<(Row, Vec<f32>)> {
        assert_eq!(point.len(), self.dim(), "a point of another dimension");
        let answers = self.answers.as_ref()?;
        let row = answers.settle(self, point)?;
        let point = answers.encode(&row)?;
        Some((row, point))
    }

    /// The rows one change away that satisfy every rule, with their points: for each feature a
    /// number a step up or down (and by some fractions of its interval), another level, or the
    /// factual's value. If a rule then requires other features to change, they change as little as
    /// possible. In the order of the features, small changes first.
    pub fn moves<'a>(&self, row: &'a Row) -> Moves<'a> {
        self.answers.as_ref().map_or_else(|| Moves::none(row), |answers| answers.moves(row))
    }

    /// The violations of a row; empty for a row that is an answer, and for sets without rows.
    pub fn violations(&self, row: &Row) -> Vec<Violation> {
        self.answers.as_ref().map_or_else(Vec::new, |answers| answers.violations(row))
    }
}
