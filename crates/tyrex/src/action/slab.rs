//! Slabs `lower <= a . x <= upper`: linear rules in terms of encoded columns.

use super::nearest::{HalfSpace, nearest};

/// One slab; the normal has length 1.
#[derive(Debug, Clone, PartialEq)]
struct Slab {
    /// Places in [`Slabs::columns`], and the normal's coordinates there.
    normal: Vec<(usize, f64)>,
    lower: f64,
    upper: f64,
    /// The absolute tolerance for rounding, in addition to the relative one.
    slack: f64,
}

/// The slabs of a set, and their columns.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Slabs {
    columns: Vec<usize>,
    slabs: Vec<Slab>,
}

impl Slabs {
    /// Adds `lower <= sum of coefficient * x_column <= upper`, where rounding may leave a sum
    /// outside by `slack`; nothing if there is no term.
    pub(super) fn add(&mut self, terms: &[(usize, f64)], lower: f64, upper: f64, slack: f64) {
        let length = terms.iter().map(|(_, a)| a * a).sum::<f64>().sqrt();
        if length == 0.0 {
            return;
        }
        let normal = terms
            .iter()
            .map(|&(column, a)| {
                let known = self.columns.iter().position(|&own| own == column);
                let place = known.unwrap_or_else(|| {
                    self.columns.push(column);
                    self.columns.len() - 1
                });
                (place, a / length)
            })
            .collect();
        let [lower, upper, slack] = [lower, upper, slack].map(|x| x / length);
        self.slabs.push(Slab { normal, lower, upper, slack });
    }

    /// Widens every slab so that it holds the point, if it does not already.
    pub(super) fn include(&mut self, point: &[f32]) {
        let point = self.gather(point);
        for slab in &mut self.slabs {
            let level = slab.level(&point);
            slab.lower = slab.lower.min(level);
            slab.upper = slab.upper.max(level);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slabs.is_empty()
    }

    /// The columns of the slabs; the order of coordinates in [`Slabs::solve`].
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The coordinates of the point in those columns.
    pub(super) fn gather(&self, point: &[f32]) -> Vec<f64> {
        self.columns.iter().map(|&column| f64::from(point[column])).collect()
    }

    /// Whether the point lies in every slab, up to this relative tolerance.
    pub(super) fn hold(&self, point: &[f64], tolerance: f64) -> bool {
        let slack = |slab: &Slab| tolerance * slab.size(point) + slab.slack;
        self.slabs.iter().all(|slab| slab.excess(point) <= slack(slab))
    }

    /// Moves the point, in the box given by `lower` and `upper`, to the nearest one there that lies
    /// in every slab. If there is none, the result is some point of the box.
    pub(super) fn solve(&self, point: &mut [f64], lower: &[f64], upper: &[f64]) {
        let mut half_spaces = Vec::new();
        for slab in &self.slabs {
            let mut normal = vec![0.0; point.len()];
            for &(place, a) in &slab.normal {
                normal[place] += a;
            }
            half_spaces.extend(HalfSpace::between(&normal, slab.lower, slab.upper));
        }
        for place in 0..point.len() {
            let mut normal = vec![0.0; point.len()];
            normal[place] = 1.0;
            half_spaces.extend(HalfSpace::between(&normal, lower[place], upper[place]));
        }
        nearest(point, &half_spaces);
        for (x, (lower, upper)) in point.iter_mut().zip(lower.iter().zip(upper)) {
            *x = x.max(*lower).min(*upper);
        }
    }

    /// The point of the line from `inside` to `point` that is nearest to `point` and lies in
    /// every slab, given that `inside` does.
    pub(super) fn pull(&self, point: &mut [f64], inside: &[f64]) {
        let mut part = 1.0_f64;
        for slab in &self.slabs {
            let (from, to) = (slab.level(inside), slab.level(point));
            let bound = to.min(slab.upper).max(slab.lower);
            if bound != to {
                part = part.min(((bound - from) / (to - from)).max(0.0));
            }
        }
        for (x, inside) in point.iter_mut().zip(inside) {
            *x = inside + part * (*x - inside);
        }
    }
}

impl Slab {
    /// `a . x`.
    fn level(&self, point: &[f64]) -> f64 {
        self.normal.iter().map(|&(place, a)| a * point[place]).sum()
    }

    /// How far the point is outside.
    fn excess(&self, point: &[f64]) -> f64 {
        let level = self.level(point);
        (self.lower - level).max(level - self.upper).max(0.0)
    }

    /// The scale of rounding errors.
    fn size(&self, point: &[f64]) -> f64 {
        1.0 + self.normal.iter().map(|&(place, a)| (a * point[place]).abs()).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Slabs and a box that hold a common point, that point, and points to project.
    #[derive(Debug, Clone)]
    struct World {
        slabs: Slabs,
        lower: Vec<f64>,
        upper: Vec<f64>,
        inside: Vec<f64>,
        points: Vec<Vec<f64>>,
    }

    fn worlds() -> impl Strategy<Value = World> {
        let ends = prop_oneof![3 => 0.0..1.0_f64, 1 => Just(0.0), 1 => Just(f64::INFINITY)];
        let coordinate = (-1.0..1.0_f64, ends.clone(), ends);
        // Coefficients of all sizes, and whole ones, which make parallel and equal slabs.
        let coefficient =
            prop_oneof![-1.0..1.0_f64, -100.0..100.0_f64, (-2..3_i32).prop_map(f64::from),];
        let slack = prop_oneof![Just(0.0), 0.0..0.5_f64, Just(f64::INFINITY)];
        (1..7_usize)
            .prop_flat_map(move |dim| {
                let slab =
                    (prop::collection::vec(coefficient.clone(), dim), slack.clone(), slack.clone());
                (
                    prop::collection::vec(coordinate.clone(), dim),
                    prop::collection::vec(slab, 1..5),
                    prop::collection::vec(prop::collection::vec(-4.0..4.0_f64, dim), 6),
                )
            })
            .prop_map(|(coordinates, drawn, points)| {
                let inside: Vec<f64> = coordinates.iter().map(|c| c.0).collect();
                let mut slabs = Slabs { columns: (0..inside.len()).collect(), slabs: Vec::new() };
                for (normal, below, above) in drawn {
                    let level: f64 = normal.iter().zip(&inside).map(|(a, x)| a * x).sum();
                    let terms: Vec<(usize, f64)> =
                        normal.into_iter().enumerate().filter(|(_, a)| *a != 0.0).collect();
                    slabs.add(&terms, level - below, level + above, 0.0);
                }
                let lower = coordinates.iter().map(|c| c.0 - c.1).collect();
                let upper = coordinates.iter().map(|c| c.0 + c.2).collect();
                World { slabs, lower, upper, inside, points }
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        /// `x` is the projection of `p` if and only if it is in the set and
        /// `(p - x) . (y - x) <= 0` for every `y` of the set.
        #[test]
        fn a_solution_is_the_nearest_point(world in worlds()) {
            let solve = |point: &[f64]| {
                let mut solved = point.to_vec();
                world.slabs.solve(&mut solved, &world.lower, &world.upper);
                solved
            };
            let mut members: Vec<Vec<f64>> = world.points.iter().map(|p| solve(p)).collect();
            for member in &members {
                prop_assert!(world.slabs.hold(member, 1e-10), "{member:?}");
                for (x, (lower, upper)) in member.iter().zip(world.lower.iter().zip(&world.upper)) {
                    prop_assert!(lower <= x && x <= upper);
                }
            }
            members.push(world.inside.clone());
            for p in &world.points {
                let x = solve(p);
                for y in &members {
                    let product: f64 =
                        (0..p.len()).map(|i| (p[i] - x[i]) * (y[i] - x[i])).sum();
                    prop_assert!(product <= 1e-6, "{product}\n{p:?}\n{x:?}\n{y:?}");
                }
            }
        }

        #[test]
        fn a_point_pulled_inside_is_inside(world in worlds()) {
            for p in &world.points {
                let mut pulled = p.clone();
                world.slabs.pull(&mut pulled, &world.inside);
                prop_assert!(world.slabs.hold(&pulled, 1e-12), "{pulled:?}");
            }
        }
    }

    #[test]
    fn one_slab_is_met_exactly() {
        let mut slabs = Slabs::default();
        slabs.add(&[(0, 3.0), (1, 4.0)], f64::NEG_INFINITY, 5.0, 0.0);
        let everywhere = [f64::NEG_INFINITY; 2];
        let mut point = [3.0, 4.0];
        slabs.solve(&mut point, &everywhere, &[f64::INFINITY; 2]);
        // 3 * 3 + 4 * 4 = 25 is 4 lengths of (3, 4) too many.
        assert!((point[0] - 0.6).abs() < 1e-12 && (point[1] - 0.8).abs() < 1e-12, "{point:?}");
        // With the second coordinate kept from falling below 2, the first does the rest.
        let mut point = [3.0, 4.0];
        slabs.solve(&mut point, &[f64::NEG_INFINITY, 2.0], &[f64::INFINITY; 2]);
        assert!((point[0] + 1.0).abs() < 1e-12 && point[1] == 2.0, "{point:?}");
    }
}
