//! The nearest point of a polyhedron, by the dual active-set method of Goldfarb and Idnani.
//!
//! Minimises `|x - p|^2 / 2` subject to `n_i . x >= b_i`. It starts at `p`, where no constraint is
//! active, and adds one violated constraint after the other; after each the point is nearest for
//! the constraints that are active, with multipliers `u >= 0` in `x = p + sum u_i n_i`. A
//! constraint whose multiplier falls to 0 is removed. The distance grows with every added
//! constraint, so the method terminates.

/// `normal . x >= bound`; the normal has length 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HalfSpace {
    normal: Vec<f64>,
    bound: f64,
}

impl HalfSpace {
    /// The half-spaces of `lower <= normal . x <= upper`, without those of infinite ends.
    pub(super) fn between(normal: &[f64], lower: f64, upper: f64) -> impl Iterator<Item = Self> {
        let below = HalfSpace { normal: normal.to_vec(), bound: lower };
        let above = HalfSpace { normal: normal.iter().map(|a| -a).collect(), bound: -upper };
        [below, above].into_iter().filter(|half| half.bound.is_finite())
    }

    /// The distance of the point outside, beyond rounding.
    fn excess(&self, point: &[f64]) -> f64 {
        let size: f64 = self.normal.iter().zip(point).map(|(a, x)| (a * x).abs()).sum();
        self.bound - dot(&self.normal, point) - ROUNDING * (1.0 + size + self.bound.abs())
    }
}

/// The relative tolerance of a half-space.
const ROUNDING: f64 = 1e-13;
/// Normals whose squared distance from the span of the others is below this are in it.
const IN_SPAN: f64 = 1e-14;
/// The maximum number of added or removed constraints, per constraint; far above the usual number.
const CHANGES: usize = 20;

/// Moves the point to the nearest one in all half-spaces. If they have no common point, it
/// ends outside some of them.
pub(super) fn nearest(point: &mut [f64], half_spaces: &[HalfSpace]) {
    let start = point.to_vec();
    let mut active: Vec<(&HalfSpace, f64)> = Vec::new();
    let mut changes = CHANGES * half_spaces.len();
    while let Some(broken) = most_broken(half_spaces, point) {
        let mut multiplier = 0.0;
        loop {
            if changes == 0 {
                return;
            }
            changes -= 1;
            // normal = free + sum share_i n_i, and no active normal meets the free part.
            let basis = Basis::new(&active);
            let (free, shares) = basis.split(&broken.normal);
            let slope = dot(&free, &free);
            let to_bound = if slope > IN_SPAN {
                (broken.bound - dot(&broken.normal, point)) / slope
            } else {
                f64::INFINITY
            };
            // The first multiplier to reach 0.
            let leaving = (0..active.len())
                .filter(|&i| shares[i] > IN_SPAN)
                .map(|i| (i, active[i].1 / shares[i]))
                .min_by(|a, b| a.1.total_cmp(&b.1));
            let step = leaving.map_or(to_bound, |(_, until)| until.min(to_bound));
            if step == f64::INFINITY {
                return;
            }
            for ((_, multiplier), share) in active.iter_mut().zip(&shares) {
                *multiplier -= step * share;
            }
            multiplier += step;
            if to_bound.is_finite() {
                add(point, step, &free);
            }
            match leaving {
                Some((i, until)) if until < to_bound => _ = active.remove(i),
                _ => {
                    active.push((broken, multiplier));
                    break;
                }
            }
        }
        polish(point, &start, &mut active);
    }
}

/// The half-space that the point is farthest from; `None` if it is in all of them.
fn most_broken<'a>(half_spaces: &'a [HalfSpace], point: &[f64]) -> Option<&'a HalfSpace> {
    let excesses = half_spaces.iter().map(|half| (half, half.excess(point)));
    let worst = excesses.max_by(|a, b| a.1.total_cmp(&b.1));
    worst.filter(|(_, excess)| *excess > 0.0).map(|(half, _)| half)
}

/// `x = p + N u` with `N^T x = b`, recomputed from the start, so that errors do not accumulate.
fn polish(point: &mut [f64], start: &[f64], active: &mut [(&HalfSpace, f64)]) {
    let basis = Basis::new(active);
    let missing = active.iter().map(|(half, _)| half.bound - dot(&half.normal, start)).collect();
    let coordinates = basis.forward(missing);
    point.copy_from_slice(start);
    for (direction, coordinate) in basis.directions.iter().zip(&coordinates) {
        add(point, *coordinate, direction);
    }
    for ((_, multiplier), own) in active.iter_mut().zip(basis.backward(coordinates)) {
        *multiplier = own.max(0.0);
    }
}

/// The active normals as `n_i = sum_j factor_ij direction_j` with orthonormal directions:
/// a QR decomposition, by Gram and Schmidt.
struct Basis {
    directions: Vec<Vec<f64>>,
    /// Row `i` has `i + 1` entries; the last is not 0.
    factors: Vec<Vec<f64>>,
}

impl Basis {
    fn new(active: &[(&HalfSpace, f64)]) -> Self {
        let mut basis = Self { directions: Vec::new(), factors: Vec::new() };
        for (half, _) in active {
            let (mut direction, mut factors) = basis.coordinates(&half.normal);
            let length = dot(&direction, &direction).max(IN_SPAN).sqrt();
            for x in &mut direction {
                *x /= length;
            }
            factors.push(length);
            basis.directions.push(direction);
            basis.factors.push(factors);
        }
        basis
    }

    /// The remainder of a vector outside the directions, and its coordinates in them. Computed
    /// twice, since one pass leaves rounding errors if the remainder is small.
    fn coordinates(&self, vector: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut rest = vector.to_vec();
        let mut coordinates = vec![0.0; self.directions.len()];
        for _ in 0..2 {
            for (direction, coordinate) in self.directions.iter().zip(&mut coordinates) {
                let part = dot(direction, &rest);
                add(&mut rest, -part, direction);
                *coordinate += part;
            }
        }
        (rest, coordinates)
    }

    /// The remainder of a vector outside the active normals, and their shares in the rest.
    fn split(&self, vector: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (rest, coordinates) = self.coordinates(vector);
        (rest, self.backward(coordinates))
    }

    /// `u` with `sum_i u_i factor_ij = right_j`.
    fn backward(&self, mut right: Vec<f64>) -> Vec<f64> {
        for i in (0..right.len()).rev() {
            right[i] /= self.factors[i][i];
            for j in 0..i {
                right[j] -= right[i] * self.factors[i][j];
            }
        }
        right
    }

    /// `y` with `sum_j factor_ij y_j = right_i`.
    fn forward(&self, mut right: Vec<f64>) -> Vec<f64> {
        for i in 0..right.len() {
            let known: f64 = (0..i).map(|j| self.factors[i][j] * right[j]).sum();
            right[i] = (right[i] - known) / self.factors[i][i];
        }
        right
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(point: &mut [f64], factor: f64, direction: &[f64]) {
    for (x, d) in point.iter_mut().zip(direction) {
        *x += factor * d;
    }
}
