//! The function that a search maximises, with its gradient.

use crate::error::Result;
use crate::measure::{Gauge, GaugeScratch, Reading};
use crate::model::THRESHOLD;
use crate::model::routes::{Line, Routes, RoutesScratch};
use crate::points::Points;

/// A linear model of one condition of a field: its value at a point, and its gradient there.
#[derive(Debug, Clone)]
pub(crate) struct Plane {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f32>,
}

/// A function to increase. Measures are fields; so is the worst case of ROAR.
pub(crate) trait Field {
    /// The number of points that one evaluation scores.
    fn evaluations(&self) -> u64;

    /// Tells the field the threshold of the searches that follow: a field of several conditions
    /// has its values around it.
    fn aim_at(&mut self, _threshold: f64) {}

    /// The value at a point, and `m` there.
    fn read(&mut self, x: &[f32]) -> Reading;

    /// The same with the gradient.
    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading>;

    /// The conditions at the point of the last gradient, if the field has two: its value is the
    /// smaller one of theirs.
    fn planes(&mut self) -> Option<[Plane; 2]> {
        None
    }

    /// The values at several points, in their order, with the bits of [`read`](Self::read).
    fn read_all(&mut self, points: &Points) -> Vec<Reading> {
        points.rows().map(|x| self.read(x)).collect()
    }

    /// The number of points to evaluate together where one after the other may be enough: more
    /// than 1 if further points cost little.
    fn together(&self) -> usize {
        1
    }

    /// The values at a point with each choice of each line, line by line. The last digits may
    /// differ from those of [`read`](Self::read), and where a value is below `least`, any number
    /// below `least` may stand for it.
    fn along(&mut self, x: &[f32], lines: &[Line<'_>], _least: f64) -> Vec<Forecast> {
        self.read_all(&points_along(x, lines)).into_iter().map(Forecast::from).collect()
    }

    /// The number of points that a reading along lines counts for.
    fn evaluations_along(&self, lines: &[Line<'_>]) -> u64 {
        let choices: usize = lines.iter().map(Line::len).sum();
        self.evaluations().saturating_mul(choices as u64)
    }

    /// The values at a point with each pair of choices of two lines, if they can be read together;
    /// those of the second line follow each other.
    fn over(&mut self, _x: &[f32], _lines: [Line<'_>; 2]) -> Option<&[f64]> {
        None
    }

    /// The number of points that a reading of pairs counts for; `None` if pairs cannot be read
    /// together.
    fn evaluations_over(&self) -> Option<u64> {
        None
    }
}

/// A value that is not read at a point itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forecast {
    /// Whether the model in use accepts.
    pub(crate) accepts: bool,
    /// The value of the field.
    pub(crate) value: f64,
}

impl From<Reading> for Forecast {
    fn from(Reading { score, value }: Reading) -> Self {
        Self { accepts: score >= THRESHOLD, value }
    }
}

/// The points that one walk through trees along lines counts for: the walk of a line begins where
/// the line is asked for the first time.
pub(crate) fn walk(lines: &[Line<'_>]) -> u64 {
    2 + lines.len().min(8) as u64
}
/// The points that a walk over the pairs of choices of two lines counts for.
const WALK_OVER: u64 = 4;

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

    /// The routes, if the measure is the score, whose logits they read.
    fn score_routes(&self) -> Option<&'a Routes> {
        self.routes.filter(|_| self.gauge.is_score())
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

    fn along(&mut self, x: &[f32], lines: &[Line<'_>], least: f64) -> Vec<Forecast> {
        let own = self
            .routes
            .and_then(|routes| self.gauge.read_along(routes, x, lines, least, &mut self.scratch));
        let own = own.unwrap_or_else(|| self.read_all(&points_along(x, lines)));
        own.into_iter().map(Forecast::from).collect()
    }

    fn evaluations_along(&self, lines: &[Line<'_>]) -> u64 {
        let choices = || lines.iter().map(|line| line.len() as u64).sum();
        let each = if self.routes.is_some() { walk(lines) } else { choices() };
        self.evaluations().saturating_mul(each)
    }
}

/// A point with each choice of each line.
pub(crate) fn points_along(x: &[f32], lines: &[Line<'_>]) -> Points {
    let mut points = Points::new(x.len());
    for line in lines {
        let mut point = x.to_vec();
        for choice in line.values.chunks_exact(line.width) {
            point[line.start..line.start + line.width].copy_from_slice(choice);
            points.push(&point);
        }
    }
    points
}

/// `ln(v / (1 - v))` of a field whose values are probabilities: the logit has a useful gradient
/// where the probability is flat.
pub(crate) struct Logit<'a>(pub(crate) Reader<'a>);

/// The least distance from 0 and 1 at which the logit is taken.
const EDGE: f64 = 1e-30;

impl Field for Logit<'_> {
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

    fn along(&mut self, x: &[f32], lines: &[Line<'_>], _least: f64) -> Vec<Forecast> {
        if let Some(routes) = self.0.score_routes() {
            routes.logits_along(x, lines, &mut self.0.scratch);
            let logits = self.0.scratch.logits.iter();
            return logits.map(|&value| Forecast { accepts: value >= 0.0, value }).collect();
        }
        let own = self.0.along(x, lines, f64::NEG_INFINITY).into_iter();
        own.map(|forecast| Forecast { value: logit(forecast.value), ..forecast }).collect()
    }

    fn evaluations_along(&self, lines: &[Line<'_>]) -> u64 {
        self.0.evaluations_along(lines)
    }

    fn over(&mut self, x: &[f32], lines: [Line<'_>; 2]) -> Option<&[f64]> {
        let is_read = self.0.score_routes()?.logits_over(x, lines, &mut self.0.scratch);
        is_read.then_some(&self.0.scratch.logits)
    }

    fn evaluations_over(&self) -> Option<u64> {
        self.0.score_routes().map(|_| WALK_OVER.saturating_mul(self.evaluations()))
    }
}

/// The logit of a probability.
pub(crate) fn logit(v: f64) -> f64 {
    v.max(EDGE).ln() - (1.0 - v).max(EDGE).ln()
}
