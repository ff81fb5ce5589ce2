//! Projection onto slabs `lower <= a . x <= upper` inside a box.
//!
//! The nearest point of the box to `p` that lies in every slab is
//! `x(lambda) = clamp(p - sum_r lambda_r a_r)` for the multipliers `lambda` that maximise the
//! dual. With all but one of them fixed, `a_r . x` falls as `lambda_r` grows and is linear
//! between the places where a coordinate meets the box, so that one is found exactly; taking
//! the slabs in turn converges. One slab alone needs one turn.

/// One slab; the normal has length 1.
#[derive(Debug, Clone, PartialEq)]
struct Slab {
    /// Places in [`Slabs::columns`], and the normal's coordinates there.
    normal: Vec<(usize, f64)>,
    lower: f64,
    upper: f64,
}

/// The slabs of a set, and the columns they speak about.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Slabs {
    columns: Vec<usize>,
    slabs: Vec<Slab>,
}

/// Rounds over all slabs. Two slabs at a small angle need many.
const ROUNDS: usize = 2000;
/// A round that moves no multiplier by more than this part of the point's size is the last.
const STILL: f64 = 1e-13;

impl Slabs {
    /// Adds `lower <= sum of coefficient * x_column <= upper`; nothing if there is no term.
    pub(super) fn add(&mut self, terms: &[(usize, f64)], lower: f64, upper: f64) {
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
        self.slabs.push(Slab { normal, lower: lower / length, upper: upper / length });
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

    /// The columns that slabs speak about; the order of coordinates in [`Slabs::solve`].
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The coordinates of the point in those columns.
    pub(super) fn gather(&self, point: &[f32]) -> Vec<f64> {
        self.columns.iter().map(|&column| f64::from(point[column])).collect()
    }

    /// Whether the point lies in every slab, but for this part of its size.
    pub(super) fn hold(&self, point: &[f64], tolerance: f64) -> bool {
        self.slabs.iter().all(|slab| slab.excess(point) <= tolerance * slab.size(point))
    }

    /// Moves the point, in the box given by `lower` and `upper`, to the nearest one there
    /// that lies in every slab. If there is none, it ends somewhere in the box.
    pub(super) fn solve(&self, point: &mut [f64], lower: &[f64], upper: &[f64]) {
        let start = point.to_vec();
        let mut multipliers = vec![0.0; self.slabs.len()];
        let mut shifted = start.clone();
        for _ in 0..ROUNDS {
            let mut moved = 0.0_f64;
            for (slab, multiplier) in self.slabs.iter().zip(&mut multipliers) {
                for &(place, a) in &slab.normal {
                    shifted[place] += *multiplier * a;
                }
                let best = slab.multiplier(&shifted, lower, upper);
                for &(place, a) in &slab.normal {
                    shifted[place] -= best * a;
                }
                moved = moved.max((best - *multiplier).abs());
                *multiplier = best;
            }
            // Anew from the start, so that rounding errors do not add up.
            shifted.copy_from_slice(&start);
            for (slab, multiplier) in self.slabs.iter().zip(&multipliers) {
                for &(place, a) in &slab.normal {
                    shifted[place] -= multiplier * a;
                }
            }
            let size = shifted.iter().fold(1.0_f64, |size, x| size.max(x.abs()));
            if self.slabs.len() == 1 || moved <= STILL * size {
                break;
            }
        }
        for (place, x) in point.iter_mut().enumerate() {
            *x = shifted[place].max(lower[place]).min(upper[place]);
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

    /// What rounding errors are measured against.
    fn size(&self, point: &[f64]) -> f64 {
        1.0 + self.normal.iter().map(|&(place, a)| (a * point[place]).abs()).sum::<f64>()
    }

    /// The `lambda` nearest to 0 for which `clamp(point - lambda a)` lies in the slab.
    fn multiplier(&self, point: &[f64], lower: &[f64], upper: &[f64]) -> f64 {
        let level = |lambda: f64| -> f64 {
            let terms = self.normal.iter().map(|&(place, a)| {
                a * (point[place] - lambda * a).max(lower[place]).min(upper[place])
            });
            terms.sum()
        };
        let here = level(0.0);
        let wanted = here.min(self.upper).max(self.lower);
        if wanted == here {
            return 0.0;
        }
        // Where a coordinate meets an end of the box; beyond 0 in the direction that helps.
        let sign = (here - wanted).signum();
        let mut turns: Vec<f64> = self
            .normal
            .iter()
            .flat_map(|&(place, a)| {
                [(point[place] - lower[place]) / a, (point[place] - upper[place]) / a]
            })
            .filter(|turn| turn.is_finite() && turn * sign > 0.0)
            .map(f64::abs)
            .collect();
        turns.sort_by(f64::total_cmp);
        // The last turn at which the level has not yet reached what is wanted.
        let passed = turns.partition_point(|&turn| (level(sign * turn) - wanted) * sign > 0.0);
        let left = if passed == 0 { 0.0 } else { turns[passed - 1] };
        let missing = (level(sign * left) - wanted) * sign;
        // On the way to the next turn each coordinate either moves or rests at an end.
        let beyond =
            turns.get(passed).map_or(2.0 * left + 1.0, |right| f64::midpoint(left, *right));
        let slope: f64 = self
            .normal
            .iter()
            .filter(|&&(place, a)| {
                let x = point[place] - sign * beyond * a;
                lower[place] < x && x < upper[place]
            })
            .map(|&(_, a)| a * a)
            .sum();
        if slope > 0.0 { sign * (left + missing / slope) } else { sign * left }
    }
}
