//! The mixture: `ln p = ln sum_c exp(value_c)`.

use std::ops::Range;

use super::component::{Component, Reading};

/// A mixture of components, in coordinates.
#[derive(Debug, Clone)]
pub(super) struct Mixture {
    pub(super) components: Vec<Component>,
}

impl Mixture {
    /// `ln p`
    pub(super) fn log_density(&self, coordinates: &[f64]) -> f64 {
        let values: Vec<f64> = self.components.iter().map(|own| own.value(coordinates)).collect();
        log_sum_exp(&values)
    }

    /// All components at a point.
    pub(super) fn readings(&self, coordinates: &[f64]) -> Vec<Reading> {
        self.components.iter().map(|own| own.read(coordinates)).collect()
    }

    /// `ln p`, and its gradient with respect to the coordinates.
    pub(super) fn with_gradient(&self, coordinates: &[f64], gradient: &mut [f64]) -> f64 {
        let readings = self.readings(coordinates);
        let values: Vec<f64> = readings.iter().map(|own| own.value).collect();
        let value = log_sum_exp(&values);
        gradient.fill(0.0);
        for (own, reading) in self.components.iter().zip(&readings) {
            let share = libm::exp(reading.value - value);
            let (of_numbers, of_levels) = gradient.split_at_mut(own.mean.len());
            of_numbers.iter_mut().zip(&reading.pull).for_each(|(to, pull)| *to -= share * pull);
            of_levels.iter_mut().zip(&own.log_levels).for_each(|(to, log)| *to += share * log);
        }
        value
    }

    /// `ln sum_c exp(max value_c)`: a bound of `ln p` where no indicator is negative and those of
    /// each group sum to 1.
    pub(super) fn peak(&self, groups: &[Range<usize>]) -> f64 {
        let peaks: Vec<f64> = self.components.iter().map(|own| own.peak(groups)).collect();
        log_sum_exp(&peaks)
    }
}

/// Terms below this share of the largest are below the last digit of the sum.
const NEGLIGIBLE: f64 = -40.0;

/// `ln sum_i exp(v_i)`
pub(super) fn log_sum_exp(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !most.is_finite() {
        return most;
    }
    let terms = values.iter().map(|value| value - most).filter(|term| *term > NEGLIGIBLE);
    most + libm::log(terms.map(libm::exp).sum())
}
