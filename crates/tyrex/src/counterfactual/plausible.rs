//! The second condition of a search: that its answers are usual.
//!
//! With the field `f` of a method, the threshold `t` of the search, the least log-density `q` of an
//! answer and the depth `s` of a log-density ([`Plausibility::depth`]), the search runs on
//!
//! `t + both(f(x) - t, u (s(x) - s(q)))`
//! `both(a, b) = min(a, b)` if neither is negative, else `min(a, 0) + min(b, 0)`
//!
//! which is at least `t` where both conditions hold and nowhere else, and which rises with each
//! condition that fails. `u` is one standard deviation in the unit of the field. The cheapest step
//! goes to the linear models of both conditions ([`Field::planes`]). Searches that climb use the
//! gradient with the corners smoothed at the temperature `T`.
//!
//! Of every answer the condition itself is tested, in [`Plausible::judged`].
//!
//! The search is local, and under a weaker condition it may end in a dearer place. A search below the
//! p-value [`STRICT`] is made at that p-value too, and the cheaper answer is taken ([`TwoLevels`]).

use rayon::prelude::*;

use super::field::{Field, Forecast, Plane};
use super::{Answer, Counterfactual, Factual, Meter, Method, Problem, Reason, Stopped};
use crate::error::Result;
use crate::measure::Reading;
use crate::model::routes::Line;
use crate::plausibility::Plausibility;
use crate::points::Points;

/// The least p-value of an answer among favourable rows.
#[derive(Debug, Clone, Copy)]
pub struct Plausible<'a> {
    plausibility: &'a Plausibility,
    /// `q`
    level: f64,
    /// The level at which the search is made too.
    stricter: Option<f64>,
    /// `ln p` of the data points of the problem, if they are known.
    of_data: Option<&'a [f64]>,
}

/// A search for a lower p-value is made at this one too.
const STRICT: f64 = 0.1;

impl<'a> Plausible<'a> {
    /// The condition that the p-value is at least `alpha`.
    pub fn new(plausibility: &'a Plausibility, alpha: f64) -> Result<Self> {
        let level = plausibility.level(alpha)?;
        let stricter = if alpha < STRICT { Some(plausibility.level(STRICT)?) } else { None };
        Ok(Self { plausibility, level, stricter, of_data: None })
    }

    /// The same with the known `ln p` of the data points of the problem, in their order.
    #[must_use]
    pub fn with_data(self, log_densities: &'a [f64]) -> Self {
        Self { of_data: Some(log_densities), ..self }
    }

    /// The same without a stricter level, and the condition at that level.
    fn levels(self) -> (Self, Option<Self>) {
        let one = Self { stricter: None, ..self };
        (one, self.stricter.map(|level| Self { level, ..one }))
    }

    /// Those of some data points that are as usual as asked.
    pub(super) fn holding(self, points: &Points, indices: Vec<usize>) -> Vec<usize> {
        let holds = |&index: &usize| match self.of_data {
            Some(known) => known[index] >= self.level,
            None => self.holds(points.row(index)),
        };
        indices.into_par_iter().filter(holds).collect()
    }

    /// The dimension of the points.
    pub(super) fn dim(self) -> usize {
        self.plausibility.dim()
    }

    /// Whether a point is as usual as asked.
    pub(super) fn holds(self, point: &[f32]) -> bool {
        self.plausibility.log_density(point) >= self.level
    }

    /// The answer, if it is as usual as asked.
    pub(super) fn judged(self, answer: Answer) -> Answer {
        let fails = |found: &Counterfactual| !self.holds(&found.point);
        match answer {
            Answer::Found { counterfactual, .. } if fails(&counterfactual) => {
                Answer::NotFound { best: Some(counterfactual), reason: Reason::Implausible }
            }
            answer => answer,
        }
    }

    /// `s(x) - s(q)`
    fn slack(self, log_density: f64) -> f64 {
        // Every row of a level without bound is usual enough.
        if self.level == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        self.plausibility.depth(log_density) - self.plausibility.depth(self.level)
    }
}

/// A method at two levels of the condition: the cheaper answer of both.
struct TwoLevels<'a> {
    stricter: Box<dyn Method + 'a>,
    own: Box<dyn Method + 'a>,
}

/// Prepares a method for a problem; at a stricter level as well, if the condition has one.
pub(super) fn prepared<'a>(
    problem: &Problem<'a>,
    prepare: impl Fn(&Problem<'a>) -> Result<Box<dyn Method + 'a>>,
) -> Result<Box<dyn Method + 'a>> {
    let Some((own, stricter)) = problem.plausible.map(Plausible::levels) else {
        return prepare(problem);
    };
    let at = |level: Plausible<'a>| prepare(&Problem { plausible: Some(level), ..*problem });
    let own = at(own)?;
    Ok(match stricter {
        Some(stricter) => Box::new(TwoLevels { stricter: at(stricter)?, own }),
        None => own,
    })
}

impl Method for TwoLevels<'_> {
    fn find(&self, factual: &Factual, meter: &mut Meter) -> Result<Answer> {
        let origin = meter.path.mark();
        // First, so that this answer is the one of the stricter question, also within a budget.
        let strict = self.stricter.find(factual, meter)?;
        let Answer::Found { counterfactual, stopped } = strict else {
            meter.path.cut(origin);
            return self.own.find(factual, meter);
        };
        let path = meter.path.cut(origin);
        let own = self.own.find(factual, meter)?;
        if let Answer::Found { counterfactual: found, .. } = &own
            && found.cost < counterfactual.cost
        {
            return Ok(own);
        }
        meter.path.cut(origin);
        meter.path.follow(&path);
        let stopped = if meter.is_spent() { Stopped::BudgetSpent } else { stopped };
        Ok(Answer::Found { counterfactual, stopped })
    }
}

/// One standard deviation in the unit of a field of logits, and of probabilities.
pub(crate) const OF_LOGITS: f64 = 1.0;
pub(crate) const OF_PROBABILITIES: f64 = 0.1;
/// `T` as a share of that.
const SMOOTHING: f64 = 0.1;

/// A field and the condition, as one field; the field alone if there is no condition.
pub(crate) struct Usual<'a, F> {
    field: F,
    condition: Option<Plausible<'a>>,
    unit: f64,
    /// `t`
    threshold: f64,
    slope: Vec<f64>,
    planes: Option<[Plane; 2]>,
    values: Vec<f64>,
}

/// The value of both conditions, from what they are above 0.
fn both(a: f64, b: f64) -> f64 {
    if a >= 0.0 && b >= 0.0 { a.min(b) } else { a.min(0.0) + b.min(0.0) }
}

/// The derivatives of [`both`] with respect to its two numbers, with smooth corners: a condition
/// that fails clearly counts in full, and of two that hold the smaller one.
fn weights(a: f64, b: f64, temperature: f64) -> [f64; 2] {
    let failing = |x: f64| 1.0 / (1.0 + libm::exp(x / temperature));
    let (of_a, of_b) = (failing(a), failing(b));
    let apart = (a - b) / temperature;
    // Two infinite numbers have no difference.
    let share = if apart.is_nan() { 0.5 } else { 1.0 / (1.0 + libm::exp(apart)) };
    // Where both hold, the smaller one gets the rest of the weight, so that the sum is 1.
    let rest = (1.0 - of_a - of_b).max(0.0);
    [of_a + rest * share, of_b + rest * (1.0 - share)]
}

impl<'a, F> Usual<'a, F> {
    /// `unit` is one standard deviation in the unit of the field.
    pub(crate) fn new(field: F, condition: Option<Plausible<'a>>, unit: f64) -> Self {
        let (slope, planes, values) = (Vec::new(), None, Vec::new());
        Self { field, condition, unit, threshold: 0.0, slope, planes, values }
    }

    /// The field itself, if there is no condition.
    pub(crate) fn alone(&mut self) -> Option<&mut F> {
        if self.condition.is_none() { Some(&mut self.field) } else { None }
    }

    /// The value of the condition, in the unit of the field and around its threshold.
    fn usual(&self, condition: Plausible<'_>, log_density: f64) -> f64 {
        self.threshold + self.unit * condition.slack(log_density)
    }

    /// The value of both, from their values around the threshold.
    fn both(&self, own: f64, usual: f64) -> f64 {
        self.threshold + both(own - self.threshold, usual - self.threshold)
    }

    fn reading(&self, reading: Reading, log_density: Option<f64>) -> Reading {
        let Some((condition, log_density)) = self.condition.zip(log_density) else {
            return reading;
        };
        Reading { value: self.both(reading.value, self.usual(condition, log_density)), ..reading }
    }

    fn log_density(&self, x: &[f32]) -> Option<f64> {
        self.condition.map(|own| own.plausibility.log_density(x))
    }
}

impl<F: Field> Field for Usual<'_, F> {
    fn evaluations(&self) -> u64 {
        self.field.evaluations()
    }

    fn aim_at(&mut self, threshold: f64) {
        self.threshold = threshold;
    }

    fn read(&mut self, x: &[f32]) -> Reading {
        let reading = self.field.read(x);
        self.reading(reading, self.log_density(x))
    }

    fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
        let reading = self.field.read_with_gradient(x, gradient)?;
        let Some(condition) = self.condition else { return Ok(reading) };
        self.slope.resize(x.len(), 0.0);
        let density = condition.plausibility;
        let log_density = density.log_density_and_gradient(x, &mut self.slope);
        let usual = self.usual(condition, log_density);
        if usual == f64::INFINITY {
            return Ok(reading);
        }
        let factor = self.unit * density.depth_slope(log_density);
        let own = Plane { value: reading.value, gradient: gradient.to_vec() };
        let of_density = self.slope.iter().map(|slope| (factor * slope) as f32).collect();
        let other = Plane { value: usual, gradient: of_density };
        let [a, b] = [own.value, other.value].map(|value| value - self.threshold);
        let weights = weights(a, b, SMOOTHING * self.unit).map(|weight| weight as f32);
        for (to, (a, b)) in gradient.iter_mut().zip(own.gradient.iter().zip(&other.gradient)) {
            *to = weights[0] * a + weights[1] * b;
        }
        let value = self.both(own.value, other.value);
        self.planes = Some([own, other]);
        Ok(Reading { value, ..reading })
    }

    fn planes(&mut self) -> Option<[Plane; 2]> {
        self.planes.take()
    }

    fn read_all(&mut self, points: &Points) -> Vec<Reading> {
        let readings = self.field.read_all(points);
        let each = readings.into_iter().zip(points.rows());
        each.map(|(reading, x)| self.reading(reading, self.log_density(x))).collect()
    }

    fn together(&self) -> usize {
        self.field.together()
    }

    /// The value of both is never above that of the field.
    fn along(&mut self, x: &[f32], lines: &[Line<'_>], least: f64) -> Vec<Forecast> {
        let forecasts = self.field.along(x, lines, least);
        let Some(condition) = self.condition else { return forecasts };
        let densities = lines.iter().flat_map(|&line| condition.plausibility.along(x, line));
        let each = forecasts.into_iter().zip(densities).map(|(own, density)| {
            let value = self.both(own.value, self.usual(condition, density));
            Forecast { value, ..own }
        });
        each.collect()
    }

    fn evaluations_along(&self, lines: &[Line<'_>]) -> u64 {
        self.field.evaluations_along(lines)
    }

    fn evaluations_over(&self) -> Option<u64> {
        self.field.evaluations_over()
    }

    /// Where the field alone is below the threshold, its own value is returned: no pair is used
    /// that fails.
    fn over(&mut self, x: &[f32], lines: [Line<'_>; 2]) -> Option<&[f64]> {
        let Some(condition) = self.condition else { return self.field.over(x, lines) };
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.extend(self.field.over(x, lines)?);
        let passes = |index: usize| values[index] >= self.threshold;
        let densities = condition.plausibility.over(x, lines, passes);
        for (value, density) in values.iter_mut().zip(densities) {
            if let Some(density) = density {
                *value = self.both(*value, self.usual(condition, density));
            }
        }
        self.values = values;
        Some(&self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use rand::RngExt as _;

    /// `x + y` with a slope.
    struct Sum;

    impl Field for Sum {
        fn evaluations(&self) -> u64 {
            1
        }

        fn read(&mut self, x: &[f32]) -> Reading {
            Reading { score: 1.0, value: x.iter().map(|&x| f64::from(x)).sum() }
        }

        fn read_with_gradient(&mut self, x: &[f32], gradient: &mut [f32]) -> Result<Reading> {
            gradient.fill(1.0);
            Ok(self.read(x))
        }
    }

    fn cloud() -> Plausibility {
        let mut rng = Seed(1).rng();
        let mut points = Points::new(2);
        for _ in 0..400 {
            let mut near = || -> f32 { (0..4).map(|_| rng.random_range(-1.0..1.0_f32)).sum() };
            points.push(&[near(), near()]);
        }
        Plausibility::fit_numbers(&points, Seed(2)).unwrap()
    }

    #[test]
    fn what_fails_counts_and_of_two_that_hold_the_smaller_one() {
        for (a, b, value, expected) in [
            (1.0, 2.0, 1.0, [1.0, 0.0]),
            (2.0, 1.0, 1.0, [0.0, 1.0]),
            (3.0, -1.0, -1.0, [0.0, 1.0]),
            (-1.0, -2.0, -3.0, [1.0, 1.0]),
            (f64::INFINITY, 1.0, 1.0, [0.0, 1.0]),
            (f64::NEG_INFINITY, 1.0, f64::NEG_INFINITY, [1.0, 0.0]),
        ] {
            assert_eq!(both(a, b), value);
            for (got, expected) in weights(a, b, 0.05).iter().zip(expected) {
                assert!((got - expected).abs() < 1e-6, "{a} {b}: {got}, not {expected}");
            }
        }
        // At the corner both count.
        assert_eq!(weights(0.0, 0.0, 0.05), [0.5, 0.5]);
        assert!(weights(f64::INFINITY, f64::INFINITY, 0.05).iter().all(|w| w.is_finite()));
    }

    #[test]
    fn a_point_passes_if_and_only_if_it_is_usual_too() {
        let plausibility = cloud();
        let condition = Plausible::new(&plausibility, 0.1).unwrap();
        let mut field = Usual::new(Sum, Some(condition), OF_LOGITS);
        let mut passing = 0;
        for threshold in [0.0, 1.5] {
            field.aim_at(threshold);
            for i in -30..30_i16 {
                for j in -30..30_i16 {
                    let x = [f32::from(i) / 8.0, f32::from(j) / 8.0];
                    let value = field.read(&x).value;
                    let sum = f64::from(x[0] + x[1]);
                    let both = sum >= threshold && plausibility.p_value(&x) >= 0.1 - 1e-12;
                    // Up to rounding at the level itself.
                    let slack = condition.slack(plausibility.log_density(&x));
                    let near = slack.abs() < 1e-9 || (sum - threshold).abs() < 1e-6;
                    assert!((value >= threshold) == both || near, "{x:?}");
                    passing += usize::from(value >= threshold);
                }
            }
        }
        assert!(passing > 100);
    }

    #[test]
    fn both_conditions_have_the_slopes_of_finite_differences() {
        let plausibility = cloud();
        let condition = Plausible::new(&plausibility, 0.2).unwrap();
        let mut field = Usual::new(Sum, Some(condition), OF_PROBABILITIES);
        field.aim_at(0.8);
        let mut rng = Seed(3).rng();
        for _ in 0..200 {
            let x: [f32; 2] = [0, 1].map(|_| rng.random_range(-3.0..3.0));
            let mut gradient = [0.0; 2];
            let value = field.read_with_gradient(&x, &mut gradient).unwrap().value;
            assert_eq!(value, field.read(&x).value);
            let [own, other] = field.planes().unwrap();
            assert!(field.planes().is_none(), "the planes are those of one point");
            assert_eq!(value, field.both(own.value, other.value));
            assert_eq!(own.gradient, [1.0, 1.0]);
            for column in 0..2 {
                let (mut above, mut below) = (x, x);
                above[column] += 1e-3;
                below[column] -= 1e-3;
                let width = f64::from(above[column]) - f64::from(below[column]);
                let usual = |x: &[f32]| field.usual(condition, plausibility.log_density(x));
                let slope = (usual(&above) - usual(&below)) / width;
                let got = f64::from(other.gradient[column]);
                assert!((slope - got).abs() < 0.02 * (0.1 + got.abs()), "{x:?}: {got}, {slope}");
                // Away from the corners the gradient is that of the value.
                let [a, b] = [own.value - 0.8, other.value - 0.8];
                let corner = a.abs().min(b.abs()).min((a - b).abs());
                let slope = (field.read(&above).value - field.read(&below).value) / width;
                let got = f64::from(gradient[column]);
                let far = corner > 10.0 * SMOOTHING * OF_PROBABILITIES;
                assert!(
                    !far || (slope - got).abs() < 0.02 * (0.1 + got.abs()),
                    "{x:?} {got} {slope}"
                );
            }
        }
    }
}
