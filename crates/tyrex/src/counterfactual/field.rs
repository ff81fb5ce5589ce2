//! The function that a search maximises, with its gradient.

use crate::error::Result;
use crate::measure::{Gauge, GaugeScratch, Reading};
use crate::model::routes::{Line, Routes, RoutesScratch};
use crate::points::Points;

/// A function to increase. Measures are fields; so is the worst case of ROAR.
pub(crate) trait Field {
    /// The number of points that one evaluation scores.
    fn evaluations(&self) -> u64;

    /// The value at a point, and `m` there.
    fn read(&mut self, x: &[f32]) -> Reading;

    /// The same with the gradient.
    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading>;

    /// The values at several points, in their order, with the bits of [`read`](Self::read).
    fn read_all(&mut self, points: &Points) -> Vec<Reading> {
        points.rows().map(|x| self.read(x)).collect()
    }

    /// The number of points to evaluate together where one after the other may be enough: more
    /// than 1 if further points cost little.
    fn together(&self) -> usize {
        1
    }

    /// The values at a point with each choice of a line. The last digits may differ from those of
    /// [`read`](Self::read).
    fn along(&mut self, x: &[f32], line: Line<'_>) -> Vec<Reading> {
        self.read_all(&points_along(x, line))
    }

    /// The number of points that a reading along a line counts for.
    fn evaluations_along(&self, choices: usize) -> u64 {
        self.evaluations().saturating_mul(choices as u64)
    }

    /// The values at a point with each pair of choices of two lines, if they can be read together;
    /// those of the second line follow each other.
    fn over(&mut self, _x: &[f32], _lines: [Line<'_>; 2]) -> Option<&[f64]> {
        None
    }

    /// The logits of the score at the same pairs of choices.
    fn logits_over(&mut self, _x: &[f32], _lines: [Line<'_>; 2]) -> Option<&[f64]> {
        None
    }
}

/// The points that one walk through trees along a line counts for: it reaches about twice as many
/// leaves as a point.
pub(crate) const WALK: u64 = 2;
/// The points that a walk over the pairs of choices of two lines counts for.
pub(crate) const WALK_OVER: u64 = 4;

/// A measure, evaluated by one thread.
pub(crate) struct Reader<'a> {
    gauge: &'a Gauge<'a>,
    room: GaugeScratch,
    routes: Option<&'a Routes>,
    scratch: RoutesScratch,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(gauge: &'a Gauge<'a>) -> Self {
        Self::with_routes(gauge, None)
    }

    /// A measure of trees, with their routes.
    pub(crate) fn with_routes(gauge: &'a Gauge<'a>, routes: Option<&'a Routes>) -> Self {
        Self { gauge, room: gauge.room(), routes, scratch: RoutesScratch::default() }
    }
}

impl Field for Reader<'_> {
    fn evaluations(&self) -> u64 {
        self.gauge.evaluations()
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        self.gauge.read_in(&mut self.room, x)
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        self.gauge.read_with_gradient_in(&mut self.room, x, gradient)
    }

    fn along(&mut self, x: &[f32], line: Line<'_>) -> Vec<Reading> {
        let own = self
            .routes
            .and_then(|routes| self.gauge.read_along(routes, x, line, &mut self.scratch));
        own.unwrap_or_else(|| self.read_all(&points_along(x, line)))
    }

    fn evaluations_along(&self, choices: usize) -> u64 {
        let each = if self.routes.is_some() { WALK } else { choices as u64 };
        self.evaluations().saturating_mul(each)
    }

    fn logits_over(&mut self, x: &[f32], lines: [Line<'_>; 2]) -> Option<&[f64]> {
        let is_read = self.routes?.logits_over(x, lines, &mut self.scratch);
        is_read.then_some(&self.scratch.logits)
    }
}

/// A point with each choice of a line.
pub(crate) fn points_along(x: &[f32], line: Line<'_>) -> Points {
    let mut points = Points::new(x.len());
    let mut point = x.to_vec();
    for choice in line.values.chunks_exact(line.width) {
        point[line.start..line.start + line.width].copy_from_slice(choice);
        points.push(&point);
    }
    points
}

/// `ln(v / (1 - v))` of a field whose values are probabilities: the logit has a useful gradient
/// where the probability is flat.
pub(crate) struct Logit<F>(pub(crate) F);

/// The least distance from 0 and 1 at which the logit is taken.
const EDGE: f64 = 1e-30;

impl<F: Field> Field for Logit<F> {
    fn evaluations(&self) -> u64 {
        self.0.evaluations()
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        let reading = self.0.read(x);
        Reading { value: logit(reading.value), ..reading }
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        let reading = self.0.read_with_gradient(x, gradient)?;
        let v = reading.value;
        let slope = 1.0 / (v.max(EDGE) * (1.0 - v).max(EDGE));
        for partial in gradient.iter_mut() {
            *partial = (f64::from(*partial) * slope) as f32;
        }
        Ok(Reading { value: logit(v), ..reading })
    }

    fn along(&mut self, x: &[f32], line: Line<'_>) -> Vec<Reading> {
        let readings = self.0.along(x, line).into_iter();
        readings.map(|reading| Reading { value: logit(reading.value), ..reading }).collect()
    }

    fn evaluations_along(&self, choices: usize) -> u64 {
        self.0.evaluations_along(choices)
    }

    fn over(&mut self, x: &[f32], lines: [Line<'_>; 2]) -> Option<&[f64]> {
        self.0.logits_over(x, lines)
    }
}

/// The logit of a probability.
pub(crate) fn logit(v: f64) -> f64 {
    v.max(EDGE).ln() - (1.0 - v).max(EDGE).ln()
}
