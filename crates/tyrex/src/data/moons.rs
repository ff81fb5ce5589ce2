//! Two moons: the smallest data set that no straight line separates.

use rand_distr::{Distribution, Normal};

use crate::error::{Error, Result};
use crate::seed::Seed;

/// A point of one of the moons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoonPoint {
    /// The horizontal coordinate.
    pub x1: f64,
    /// The vertical coordinate.
    pub x2: f64,
    /// Which moon: `false` the upper one, `true` the lower one.
    pub lower: bool,
}

/// `n` points on two interleaving half circles, alternating between upper and lower:
///
/// `upper(t) = (cos t, sin t)`, `lower(t) = (1 - cos t, 1/2 - sin t)`,
///
/// with `t` spread evenly over `[0, pi]` on each, and on each coordinate Gaussian noise of
/// standard deviation `noise`. An odd `n` gives the upper moon one point more.
pub fn moons(n: usize, noise: f64, seed: Seed) -> Result<Vec<MoonPoint>> {
    if n < 2 {
        return Err(Error::param("n", n, "at least 2, one point for each moon"));
    }
    let normal = Normal::new(0.0, noise)
        .ok()
        .filter(|_| noise.is_finite() && noise >= 0.0)
        .ok_or_else(|| Error::param("noise", noise, "a finite number, 0 or more"))?;
    let mut rng = seed.derive("moons").rng();
    let counts = [n.div_ceil(2), n / 2];
    let point = |index: usize| {
        let lower = index % 2 == 1;
        let steps = counts[usize::from(lower)].saturating_sub(1).max(1);
        let (sin, cos) = libm::sincos(std::f64::consts::PI * (index / 2) as f64 / steps as f64);
        let (x1, x2) = if lower { (1.0 - cos, 0.5 - sin) } else { (cos, sin) };
        MoonPoint { x1: x1 + normal.sample(&mut rng), x2: x2 + normal.sample(&mut rng), lower }
    };
    Ok((0..n).map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_noise_the_points_lie_on_the_half_circles() {
        let points = moons(101, 0.0, Seed(0)).unwrap();
        for point in &points {
            let (x, y) =
                if point.lower { (1.0 - point.x1, 0.5 - point.x2) } else { (point.x1, point.x2) };
            assert!((x.hypot(y) - 1.0).abs() < 1e-12, "{point:?}");
            assert!(y > -1e-12, "{point:?}");
        }
        assert_eq!(points.iter().filter(|point| point.lower).count(), 50);
        assert_eq!((points[0].x1, points[0].x2), (1.0, 0.0));
        assert!((points[100].x1 + 1.0).abs() < 1e-12, "the arc ends at t = pi");
    }

    #[test]
    fn noise_has_the_width_asked_for() {
        let n = 20_000;
        let clean = moons(n, 0.0, Seed(3)).unwrap();
        let noisy = moons(n, 0.25, Seed(3)).unwrap();
        let squares: f64 = clean
            .iter()
            .zip(&noisy)
            .map(|(c, p)| (c.x1 - p.x1).powi(2) + (c.x2 - p.x2).powi(2))
            .sum();
        let width = (squares / (2 * n) as f64).sqrt();
        assert!((width - 0.25).abs() < 0.005, "{width}");
    }

    #[test]
    fn one_seed_one_data_set() {
        assert_eq!(moons(50, 0.2, Seed(7)).unwrap(), moons(50, 0.2, Seed(7)).unwrap());
        assert_ne!(moons(50, 0.2, Seed(7)).unwrap(), moons(50, 0.2, Seed(8)).unwrap());
    }

    #[test]
    fn impossible_parameters_are_refused() {
        for (n, noise) in [(0, 0.1), (1, 0.1), (10, -0.1), (10, f64::NAN), (10, f64::INFINITY)] {
            assert!(matches!(moons(n, noise, Seed(0)), Err(Error::Param { .. })), "{n} {noise}");
        }
    }
}
