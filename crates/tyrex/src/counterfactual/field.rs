//! The function that a search maximises, with its gradient.

use crate::error::Result;
use crate::measure::{Gauge, GaugeScratch, Reading};
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
}

/// A measure, evaluated by one thread.
pub(crate) struct Reader<'a> {
    gauge: &'a Gauge<'a>,
    room: GaugeScratch,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(gauge: &'a Gauge<'a>) -> Self {
        Self { gauge, room: gauge.room() }
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
}

/// The logit of a probability.
pub(crate) fn logit(v: f64) -> f64 {
    v.max(EDGE).ln() - (1.0 - v).max(EDGE).ln()
}
