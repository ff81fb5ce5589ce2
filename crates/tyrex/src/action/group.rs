//! The columns of a one-hot feature: one point of a simplex.

use std::ops::Range;

/// A one-hot group in which a person has a choice.
///
/// The points of the group are `x_l = off_l + (on_l - off_l) t_l` with `t_l >= 0`,
/// `sum t_l = 1`, and `t_l = 0` for levels that are not allowed. A row has one `t_l = 1`.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelGroup {
    /// Its columns in a point, one per level.
    pub columns: Range<usize>,
    /// The value of each column when its level is off; 0 unless the columns are scaled.
    pub off: Vec<f32>,
    /// The value of each column when its level is on; 1 unless the columns are scaled.
    pub on: Vec<f32>,
    /// Which levels the counterfactual may have.
    pub allowed: Vec<bool>,
    /// The level of the factual.
    pub current: usize,
}

/// Shares that are this near to the simplex are left as they are.
const NEAR: f64 = 1e-6;

impl LevelGroup {
    /// The Euclidean projection of the group's columns.
    ///
    /// With `w = on - off` and `q = (x - off) / w` it minimises `sum w^2 (t - q)^2` over the
    /// simplex. So `t_l = max(0, q_l - mu / w_l^2)`, and `mu` is the number for which they
    /// sum to 1.
    pub(super) fn project(&self, point: &mut [f32]) {
        let columns = &mut point[self.columns.clone()];
        if self.distance_from_simplex(columns) <= NEAR {
            return;
        }
        let mut shares: Vec<Share> = self
            .allowed_levels()
            .map(|level| {
                let (off, weight) = self.line(level);
                let gone_at = (f64::from(columns[level]) - off) * weight;
                Share { level, inverse: 1.0 / (weight * weight), gone_at }
            })
            .collect();
        // As mu grows, shares reach 0 one after the other, at q w^2; the last to go comes
        // first here, and mu is counted from there, since the others may be huge.
        shares.sort_by(|a, b| b.gone_at.total_cmp(&a.gone_at));
        let last = shares.first().map_or(0.0, |share| share.gone_at);
        let (mut wanted, mut inverse, mut mu) = (0.0, 0.0, 0.0);
        for share in &mut shares {
            share.gone_at -= last;
            // With the shares up to here above 0: sum (q - mu / w^2) = 1.
            let wanted_with = wanted + share.gone_at * share.inverse;
            let inverse_with = inverse + share.inverse;
            let mu_with = (wanted_with - 1.0) / inverse_with;
            if mu_with < share.gone_at {
                (wanted, inverse, mu) = (wanted_with, inverse_with, mu_with);
            }
        }
        columns.copy_from_slice(&self.off);
        for Share { level, inverse, gone_at } in shares {
            let (off, weight) = self.line(level);
            columns[level] = (off + weight * ((gone_at - mu) * inverse).max(0.0)) as f32;
        }
    }

    /// How far the shares are from `t >= 0`, `sum t = 1`, and 0 where not allowed.
    pub(super) fn distance_from_simplex(&self, columns: &[f32]) -> f64 {
        let (mut sum, mut worst) = (0.0, 0.0_f64);
        for (level, &x) in columns.iter().enumerate() {
            let (off, weight) = self.line(level);
            let share = (f64::from(x) - off) / weight;
            if self.allowed[level] {
                sum += share;
                worst = worst.max(-share);
            } else {
                worst = worst.max(share.abs());
            }
        }
        worst.max((sum - 1.0).abs())
    }

    fn allowed_levels(&self) -> impl Iterator<Item = usize> {
        (0..self.allowed.len()).filter(|&level| self.allowed[level])
    }

    /// The column is `off + weight * share`.
    fn line(&self, level: usize) -> (f64, f64) {
        let off = f64::from(self.off[level]);
        (off, f64::from(self.on[level]) - off)
    }
}

/// One allowed level: `1 / w^2`, and the `mu` at which its share is 0.
struct Share {
    level: usize,
    inverse: f64,
    gone_at: f64,
}
