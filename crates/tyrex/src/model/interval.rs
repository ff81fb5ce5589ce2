//! Intervals: bounds on an activation and on its slope.
//!
//! Bounds are computed in double precision and widened by more than its rounding error. They hold
//! for the network in exact arithmetic; the computed network, in single precision, differs from it
//! by its own rounding. `exp` and the like are libm's, so that a certificate made on one system can
//! be verified, bit by bit, on another.

use super::Activation;

/// All numbers from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// The least.
    pub(crate) low: f64,
    /// The largest.
    pub(crate) high: f64,
}

impl Interval {
    /// From `centre - radius` to `centre + radius`.
    pub(crate) fn around(centre: f64, radius: f64) -> Self {
        Self { low: centre - radius, high: centre + radius }
    }

    /// One number.
    pub(crate) fn point(value: f64) -> Self {
        Self { low: value, high: value }
    }

    /// All sums.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { low: self.low + other.low, high: self.high + other.high }
    }

    /// All products: the extremes are among the corners.
    pub(crate) fn times(self, other: Self) -> Self {
        let corners = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ];
        Self::spanning(corners)
    }

    /// The largest distance from zero.
    pub(crate) fn magnitude(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }

    /// The interval, widened slightly on both sides.
    pub(crate) fn widened(self) -> Self {
        let more = 1e-6 * self.magnitude() + 1e-9;
        Self { low: self.low - more, high: self.high + more }
    }

    /// The smallest interval that contains all of them.
    fn spanning(values: impl IntoIterator<Item = f64>) -> Self {
        let start = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };
        values
            .into_iter()
            .fold(start, |span, v| Self { low: span.low.min(v), high: span.high.max(v) })
    }

    fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The values of a function that is monotone between the given turning points.
    fn image(self, f: impl Fn(f64) -> f64, turning: &[f64]) -> Self {
        let inside = turning.iter().copied().filter(|&z| self.contains(z));
        Self::spanning([self.low, self.high].into_iter().chain(inside).map(f))
    }
}

pub(super) fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-z))
}

fn normal_density(z: f64) -> f64 {
    libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt()
}

fn normal_cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// Where the slope of SiLU is zero, and where it is largest (and, mirrored, smallest).
const SILU_LOWEST: f64 = -1.278_464_542_761_074;
const SILU_STEEPEST: f64 = 2.399_357_280_515_467;
/// Where the slope of GELU is zero; it is steepest at the square root of 2.
const GELU_LOWEST: f64 = -0.751_791_524_693_564_5;
/// The same two of its approximation by tanh.
const GELU_TANH_LOWEST: f64 = -0.752_461_422_071_016_2;
const GELU_TANH_STEEPEST: f64 = 1.418_504_008_790_828_5;

impl Activation {
    /// `f(z)` in double precision.
    pub(crate) fn value(self, z: f64) -> f64 {
        match self {
            Self::Identity => z,
            Self::Relu => z.max(0.0),
            Self::LeakyRelu { slope } => z.max(0.0) + f64::from(slope) * z.min(0.0),
            Self::Elu { alpha } => z.max(0.0) + f64::from(alpha) * libm::expm1(z.min(0.0)),
            Self::Gelu => z * normal_cumulative(z),
            Self::GeluTanh => 0.5 * z * (1.0 + libm::tanh(gelu_inner(z).0)),
            Self::Tanh => libm::tanh(z),
            Self::Sigmoid => sigmoid(z),
            Self::Softplus => z.max(0.0) + libm::log1p(libm::exp(-z.abs())),
            Self::Silu => z * sigmoid(z),
        }
    }

    /// `f'(z)` in double precision; at a kink, the slope to the right of it.
    pub fn slope(self, z: f64) -> f64 {
        match self {
            Self::Identity => 1.0,
            Self::Relu => f64::from(u8::from(z >= 0.0)),
            Self::LeakyRelu { slope } => {
                if z >= 0.0 {
                    1.0
                } else {
                    f64::from(slope)
                }
            }
            Self::Elu { alpha } => {
                if z >= 0.0 {
                    1.0
                } else {
                    f64::from(alpha) * libm::exp(z)
                }
            }
            Self::Gelu => normal_cumulative(z) + z * normal_density(z),
            Self::GeluTanh => {
                let (inner, inner_slope) = gelu_inner(z);
                let t = libm::tanh(inner);
                0.5 * (1.0 + t) + 0.5 * z * (1.0 - t * t) * inner_slope
            }
            Self::Tanh => 1.0 - libm::tanh(z).powi(2),
            Self::Sigmoid => sigmoid(z) * (1.0 - sigmoid(z)),
            Self::Softplus => sigmoid(z),
            Self::Silu => sigmoid(z) * (1.0 + z * (1.0 - sigmoid(z))),
        }
    }

    /// `f''(z)` in double precision; at a kink, that to the right of it.
    pub(crate) fn curvature(self, z: f64) -> f64 {
        match self {
            Self::Identity | Self::Relu | Self::LeakyRelu { .. } => 0.0,
            Self::Elu { alpha } => {
                if z >= 0.0 {
                    0.0
                } else {
                    f64::from(alpha) * libm::exp(z)
                }
            }
            Self::Gelu => (2.0 - z * z) * normal_density(z),
            Self::GeluTanh => {
                let (inner, inner_slope) = gelu_inner(z);
                let inner_curvature = (2.0 / std::f64::consts::PI).sqrt() * 6.0 * 0.044_715 * z;
                let t = libm::tanh(inner);
                (1.0 - t * t)
                    * (inner_slope + 0.5 * z * (inner_curvature - 2.0 * t * inner_slope.powi(2)))
            }
            Self::Tanh => -2.0 * libm::tanh(z) * (1.0 - libm::tanh(z).powi(2)),
            Self::Sigmoid => sigmoid(z) * (1.0 - sigmoid(z)) * (1.0 - 2.0 * sigmoid(z)),
            Self::Softplus => sigmoid(z) * (1.0 - sigmoid(z)),
            Self::Silu => sigmoid(z) * (1.0 - sigmoid(z)) * (2.0 + z * (1.0 - 2.0 * sigmoid(z))),
        }
    }

    /// All values on an interval.
    pub(crate) fn values_on(self, z: Interval) -> Interval {
        let turning: &[f64] = match self {
            // With a negative slope on the left, these functions turn at 0.
            Self::LeakyRelu { .. } | Self::Elu { .. } => &[0.0],
            Self::Gelu => &[GELU_LOWEST],
            Self::GeluTanh => &[GELU_TANH_LOWEST],
            Self::Silu => &[SILU_LOWEST],
            Self::Identity | Self::Relu | Self::Tanh | Self::Sigmoid | Self::Softplus => &[],
        };
        z.image(|z| self.value(z), turning).widened()
    }

    /// All slopes on an interval.
    pub(crate) fn slopes_on(self, z: Interval) -> Interval {
        use std::f64::consts::SQRT_2;
        // The slope is different just left of a kink.
        const BEFORE_ZERO: f64 = -1e-300;
        let turning: &[f64] = match self {
            Self::Relu | Self::LeakyRelu { .. } | Self::Elu { .. } => &[BEFORE_ZERO, 0.0],
            Self::Gelu => &[-SQRT_2, SQRT_2],
            Self::GeluTanh => &[-GELU_TANH_STEEPEST, GELU_TANH_STEEPEST],
            Self::Silu => &[-SILU_STEEPEST, SILU_STEEPEST],
            Self::Tanh | Self::Sigmoid => &[0.0],
            Self::Identity | Self::Softplus => &[],
        };
        z.image(|z| self.slope(z), turning).widened()
    }

    /// The largest absolute slope anywhere.
    pub(crate) fn steepest(self) -> f64 {
        // Far from 0 every slope is nearly constant.
        self.slopes_on(Interval { low: -60.0, high: 60.0 }).magnitude()
    }
}

/// The argument of tanh in GELU's approximation, and its slope.
fn gelu_inner(z: f64) -> (f64, f64) {
    let scale = (2.0 / std::f64::consts::PI).sqrt();
    (scale * (z + 0.044_715 * z.powi(3)), scale * (1.0 + 3.0 * 0.044_715 * z * z))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Activation; 13] = [
        Activation::Identity,
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.1 },
        Activation::LeakyRelu { slope: -0.5 },
        Activation::LeakyRelu { slope: 3.0 },
        Activation::Elu { alpha: 0.7 },
        Activation::Elu { alpha: -2.0 },
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Softplus,
        Activation::Silu,
    ];

    proptest! {
        #[test]
        fn no_value_and_no_slope_escapes(
            index in 0..ALL.len(), low in -6.0..6.0_f64, width in 0.0..6.0_f64, at in 0.0..1.0_f64,
        ) {
            let activation = ALL[index];
            let z = Interval { low, high: low + width };
            let inside = low + at * width;
            prop_assert!(activation.values_on(z).contains(activation.value(inside)));
            prop_assert!(activation.slopes_on(z).contains(activation.slope(inside)));
            prop_assert!(activation.slope(inside).abs() <= activation.steepest());
            let h = 1e-6;
            let difference = (activation.value(inside + h) - activation.value(inside - h)) / (2.0 * h);
            if inside.abs() > 1e-5 {
                prop_assert!((difference - activation.slope(inside)).abs() < 1e-6);
                let difference =
                    (activation.slope(inside + h) - activation.slope(inside - h)) / (2.0 * h);
                prop_assert!((difference - activation.curvature(inside)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn turning_points_are_where_the_slope_says() {
        for (activation, lowest) in [
            (Activation::Silu, SILU_LOWEST),
            (Activation::Gelu, GELU_LOWEST),
            (Activation::GeluTanh, GELU_TANH_LOWEST),
        ] {
            assert!(activation.slope(lowest).abs() < 1e-9, "{activation:?}");
        }
        for (activation, steepest) in
            [(Activation::Silu, SILU_STEEPEST), (Activation::GeluTanh, GELU_TANH_STEEPEST)]
        {
            let curvature =
                |z: f64| (activation.slope(z + 1e-5) - activation.slope(z - 1e-5)) / 2e-5;
            assert!(curvature(steepest).abs() < 1e-5, "{activation:?} {}", curvature(steepest));
        }
    }
}
