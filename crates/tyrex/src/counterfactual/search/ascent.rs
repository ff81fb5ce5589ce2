//! `Ascent`: increases a field from a start until it passes.

use serde::{Deserialize, Serialize};

use super::{Candidate, Slope, Test};
use crate::action::FeasibleSet;
use crate::counterfactual::Meter;
use crate::counterfactual::field::Field;
use crate::error::Result;

/// How far a step goes along the gradient `g`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// `rate g`: the paper's.
    Raw(f64),
    /// `rate g / ||g||`: the authors' code.
    Unit(f64),
    /// The distance to the threshold by the linear model at the point, adapted to the values found;
    /// then back to the first point that passes.
    Adaptive,
}

/// The region of the search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ball<'a> {
    pub(crate) centre: &'a [f32],
    pub(crate) radius: f64,
}

/// An ascent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ascent<'a> {
    pub(crate) step: Step,
    pub(crate) steps: usize,
    pub(crate) ball: Option<Ball<'a>>,
}

/// The longest, shortest and first adaptive step, in encoded columns.
const LONGEST: f64 = 0.08;
const FIRST: f64 = 0.02;
const SHORTEST: f64 = 1e-4;
/// How many times the interval with the first passing point is halved.
const HALVINGS: usize = 4;

impl Ascent<'_> {
    /// The first point that passes, or the last one reached.
    ///
    /// Without a test all steps are taken, and the last point that the model accepts is returned.
    pub(crate) fn climb(
        &self,
        field: &mut dyn Field,
        set: &FeasibleSet,
        test: Option<Test>,
        start: &[f32],
        meter: &mut Meter,
    ) -> Result<Option<Candidate>> {
        field.aim_at(test.unwrap_or(Test::ACCEPTED).threshold);
        let Some(here) = Slope::read(field, start.to_vec(), meter)? else { return Ok(None) };
        meter.path.step(start);
        match (self.step, test) {
            (Step::Adaptive, Some(test)) => self.adaptive(field, set, test, here, meter),
            (Step::Adaptive, None) => self.fixed(field, set, None, here, (0.01, true), meter),
            (Step::Raw(rate), _) => self.fixed(field, set, test, here, (rate, false), meter),
            (Step::Unit(rate), _) => self.fixed(field, set, test, here, (rate, true), meter),
        }
    }

    fn moved(&self, set: &FeasibleSet, from: &Slope, factor: f64) -> Vec<f32> {
        let along = from.at.point.iter().zip(&from.gradient);
        let mut point: Vec<f32> =
            along.map(|(&x, &g)| (f64::from(x) + factor * f64::from(g)) as f32).collect();
        if let Some(ball) = self.ball {
            ball.hold(&mut point);
        }
        set.project(&mut point);
        point
    }

    fn fixed(
        &self,
        field: &mut dyn Field,
        set: &FeasibleSet,
        test: Option<Test>,
        mut here: Slope,
        (rate, unit): (f64, bool),
        meter: &mut Meter,
    ) -> Result<Option<Candidate>> {
        let mut last = here.at.clone();
        let mut reached = meter.path.mark();
        for _ in 0..self.steps {
            let steepness = here.steepness();
            if test.is_some_and(|test| test.passes(here.at.reading)) || steepness == 0.0 {
                break;
            }
            let factor = if unit { rate / steepness } else { rate };
            let next = self.moved(set, &here, factor);
            if next == here.at.point {
                break;
            }
            let Some(next) = Slope::read(field, next, meter)? else { break };
            here = next;
            meter.path.step(&here.at.point);
            if test.is_some() || Test::ACCEPTED.passes(here.at.reading) {
                last = here.at.clone();
                reached = meter.path.mark();
            }
        }
        meter.path.cut(reached);
        Ok(Some(last))
    }

    fn adaptive(
        &self,
        field: &mut dyn Field,
        set: &FeasibleSet,
        test: Test,
        mut here: Slope,
        meter: &mut Meter,
    ) -> Result<Option<Candidate>> {
        let (mut shortest, mut longest) = (FIRST, LONGEST);
        for _ in 0..self.steps {
            let steepness = here.steepness();
            if test.passes(here.at.reading) || steepness == 0.0 || longest < SHORTEST {
                break;
            }
            let missing = (test.threshold - here.at.reading.value).max(0.0);
            // Longer than the linear model predicts, since a measure flattens near its maximum. A
            // step that is too long is shortened at the end.
            let length = (1.25 * missing / steepness).max(shortest).min(longest);
            let next = self.moved(set, &here, length / steepness);
            if next == here.at.point {
                break;
            }
            let Some(next) = Slope::read(field, next, meter)? else { break };
            if test.passes(next.at.reading) {
                let first = first_passing(field, test, &here.at, next.at, HALVINGS, meter);
                meter.path.step(&first.point);
                return Ok(Some(first));
            }
            if next.at.reading.value > here.at.reading.value {
                longest = (2.0 * length).min(LONGEST);
                shortest = (2.0 * shortest).min(LONGEST);
                here = next;
                meter.path.step(&here.at.point);
            } else {
                longest = 0.25 * length;
                shortest = shortest.min(longest);
            }
        }
        Ok(Some(here.at))
    }
}

/// The point nearest to one that fails, on the way to one that passes.
pub(crate) fn first_passing(
    field: &mut dyn Field,
    test: Test,
    failing: &Candidate,
    mut passing: Candidate,
    halvings: usize,
    meter: &mut Meter,
) -> Candidate {
    let (mut low, mut high) = (0.0_f32, 1.0_f32);
    let end = passing.point.clone();
    for _ in 0..halvings {
        let middle = 0.5 * (low + high);
        let point: Vec<f32> =
            failing.point.iter().zip(&end).map(|(&a, &b)| a + middle * (b - a)).collect();
        let Some(reading) = meter.read(field, &point) else { break };
        if test.passes(reading) {
            high = middle;
            passing = Candidate::new(point, reading);
        } else {
            low = middle;
        }
    }
    passing
}

impl Ball<'_> {
    /// Moves a point to the nearest one in the ball.
    fn hold(self, point: &mut [f32]) {
        let square: f64 = point
            .iter()
            .zip(self.centre)
            .map(|(&p, &c)| (f64::from(p) - f64::from(c)).powi(2))
            .sum();
        let distance = square.sqrt();
        if distance > self.radius {
            let factor = self.radius / distance;
            for (p, &c) in point.iter_mut().zip(self.centre) {
                *p = (f64::from(c) + factor * (f64::from(*p) - f64::from(c))) as f32;
            }
        }
    }
}
