//! Axes: from numbers to positions, and the round numbers beside an axis.

/// How numbers are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios.
    Logarithmic,
}

/// An axis: its range and its scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    spread: Spread,
}

/// A place on an axis with a number beside it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) text: String,
}

impl Scale {
    /// From `low` to `high`; widened if they are equal or not numbers.
    pub fn linear(low: f64, high: f64) -> Self {
        let is_sound = low.is_finite() && high.is_finite() && (high - low).is_finite();
        let (low, high) = if is_sound { (low.min(high), low.max(high)) } else { (0.0, 1.0) };
        // Wide enough that the steps between the ends are distinct.
        let least = 1e-9 * low.abs().max(high.abs()).max(1e-9);
        if high - low > least {
            return Self { low, high, spread: Spread::Linear };
        }
        let room = if low == 0.0 { 0.5 } else { 0.5 * low.abs() };
        Self { low: low - room, high: high + room, spread: Spread::Linear }
    }

    /// The scale on which all of these can be seen: logarithmic if the largest is many times
    /// the smallest and all are positive, else from zero.
    pub fn of_amounts(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        if low > 1e-300 && high / low > 12.0 && (high / low).is_finite() {
            return Self { low: low / 1.3, high: high * 1.3, spread: Spread::Logarithmic };
        }
        let top = high * 1.08;
        Self::linear(low.min(0.0) * 1.08, if top.is_finite() { top } else { 1.0 })
    }

    /// The scale between the least and the largest of these, with a little room.
    pub fn around(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = range(values);
        let room = 0.05 * (high - low);
        Self::linear(low - room, high + room)
    }

    /// Where a number lies: 0 at the low end, 1 at the high end; kept near the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.spread {
            Spread::Linear => (value - self.low) / (self.high - self.low),
            Spread::Logarithmic => {
                let bottom = libm::log(self.low);
                (libm::log(value.max(f64::MIN_POSITIVE)) - bottom) / (libm::log(self.high) - bottom)
            }
        };
        if share.is_nan() { 0.0 } else { share.clamp(-0.02, 1.02) }
    }

    /// About `count` round numbers along the axis.
    pub(super) fn ticks(&self, count: usize) -> Vec<Tick> {
        match self.spread {
            Spread::Linear => self.linear_ticks(count),
            Spread::Logarithmic => self.logarithmic_ticks(count),
        }
    }

    fn linear_ticks(&self, count: usize) -> Vec<Tick> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = libm::floor(libm::log10(rough));
        let unit = libm::pow(10.0, power);
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|factor| factor * unit)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(10.0 * unit);
        if !(step.is_finite() && step > 0.0) {
            return Vec::new();
        }
        let digits = (-libm::floor(libm::log10(step) + 1e-9)).clamp(0.0, 12.0) as usize;
        // A quarter of ten needs one digit more.
        let is_whole = |digits: usize| {
            let shifted = step * libm::pow(10.0, digits as f64);
            (shifted - shifted.round()).abs() < 1e-6
        };
        let digits = if is_whole(digits) { digits } else { digits + 1 };
        let first = (self.low / step - 1e-9).ceil();
        (0..=2 * count + 2)
            .map(|index| (first + index as f64) * step)
            .take_while(|value| *value <= self.high + 1e-9 * step)
            .map(|value| Tick { value, text: plain(value, digits) })
            .collect()
    }

    fn logarithmic_ticks(&self, count: usize) -> Vec<Tick> {
        let powers =
            libm::floor(libm::log10(self.low)) as i32..=libm::ceil(libm::log10(self.high)) as i32;
        // The densest of these that is not too dense.
        for factors in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            let ticks: Vec<Tick> = powers
                .clone()
                .flat_map(|power| factors.iter().map(move |factor| (power, factor)))
                .map(|(power, factor)| {
                    let value = factor * libm::pow(10.0, f64::from(power));
                    Tick { value, text: plain(value, (-power).max(0) as usize) }
                })
                .filter(|tick| (self.low..=self.high).contains(&tick.value))
                .collect();
            if ticks.len() <= count + 2 || factors.len() == 1 {
                let every = ticks.len().div_ceil(count + 2).max(1);
                return ticks.into_iter().step_by(every).collect();
            }
        }
        Vec::new()
    }
}

/// The number with this many digits; never "-0".
fn plain(value: f64, digits: usize) -> String {
    if value.abs() >= 1e7 || (value != 0.0 && value.abs() < 1e-6) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.digits$}");
    if text.trim_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text }
}

/// The least and the largest of the finite ones; 0 and 1 if there are none.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(scale: &Scale, count: usize) -> Vec<String> {
        scale.ticks(count).into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(texts(&Scale::linear(0.0, 1.0), 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&Scale::linear(0.0, 100.0), 4), ["0", "25", "50", "75", "100"]);
        assert_eq!(texts(&Scale::linear(-0.3, 0.31), 4), ["-0.2", "0.0", "0.2"]);
        assert_eq!(texts(&Scale::linear(0.0, 10.0), 4), ["0.0", "2.5", "5.0", "7.5", "10.0"]);
        let wide = Scale::of_amounts([0.11, 10.0].into_iter());
        assert_eq!(texts(&wide, 5), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(texts(&Scale::of_amounts([0.5, 2.0].into_iter()), 4), ["0", "1", "2"]);
    }

    #[test]
    fn places_run_from_one_end_to_the_other() {
        let scale = Scale::linear(2.0, 4.0);
        assert_eq!([2.0, 3.0, 4.0].map(|value| scale.place(value)), [0.0, 0.5, 1.0]);
        let scale = Scale::of_amounts([0.01, 1.0].into_iter());
        assert!((scale.place(0.1) - 0.5).abs() < 1e-12);
        // Numbers outside are clamped near the axis, so that nothing is drawn over other elements.
        assert!((scale.place(1e9) - 1.02).abs() < 1e-12);
        assert!((scale.place(-1.0) + 0.02).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn any_numbers_have_a_scale(values in prop::collection::vec(any::<f64>(), 0..6), count in 0_usize..9) {
            for scale in [
                Scale::of_amounts(values.iter().copied()),
                Scale::around(values.iter().copied()),
            ] {
                let ticks = scale.ticks(count);
                prop_assert!(ticks.len() <= 3 * count + 12);
                for value in ticks.iter().map(|tick| tick.value).chain(values.iter().copied()) {
                    prop_assert!((-0.02..=1.02).contains(&scale.place(value)));
                }
                prop_assert!(ticks.windows(2).all(|pair| pair[0].value < pair[1].value));
            }
        }
    }
}
