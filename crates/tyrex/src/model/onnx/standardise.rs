//! The same model on other scales.
//!
//! A search moves through points, so the meaning of a step of 0.1 depends on their scale. The
//! points of a model that takes raw columns have the scale of the columns: years beside incomes.
//! Here the core is rewritten for coordinates on a common scale; the encoder does the scaling.

use super::Core;
use super::preprocessing::fold_network;
use crate::data::encode::Affine;
use crate::error::{Error, Result};
use crate::model::trees::{Comparison, Substitute, TreeEnsemble, TreeNode};

impl Core {
    /// The core that gives at `z_j = affine_j(x_j)` what this one gives at `x_j`.
    ///
    /// A network does so up to rounding; trees do so wherever `z_j` can be told from the
    /// threshold.
    pub fn standardised(self, affines: &[Affine]) -> Result<Self> {
        let dim = self.model().dim();
        if affines.len() != dim {
            return Err(Error::Dimension {
                what: "scales, one for each coordinate of the model".to_owned(),
                expected: dim,
                got: affines.len(),
            });
        }
        let good = |affine: &Affine| {
            let invertible = affine.scale.is_normal() && (1.0 / affine.scale).is_normal();
            affine.scale > 0.0 && invertible && affine.offset.is_finite()
        };
        if let Some(column) = affines.iter().position(|affine| !good(affine)) {
            let Affine { offset, scale } = affines[column];
            return Err(Error::InvalidModel(format!(
                "coordinate {column} is to be scaled by {scale} after subtracting {offset}, expected \
                 a scale above 0 and finite numbers"
            )));
        }
        match self {
            core if affines.iter().all(|affine| *affine == Affine::IDENTITY) => Ok(core),
            Self::Mlp(network) => {
                // x = z / scale + offset
                let back = |(column, affine): (usize, &Affine)| {
                    (column, 1.0 / affine.scale, affine.offset)
                };
                let places: Vec<_> = affines.iter().enumerate().map(back).collect();
                fold_network(&network, affines.len(), &places).map(Self::Mlp)
            }
            Self::Trees(trees) => standardised_trees(&trees, affines).map(Self::Trees),
        }
    }
}

fn standardised_trees(ensemble: &TreeEnsemble, affines: &[Affine]) -> Result<TreeEnsemble> {
    let mut trees = ensemble.as_given();
    for node in trees.iter_mut().flatten() {
        match node {
            TreeNode::Branch { feature, comparison, threshold, .. } => {
                *threshold = threshold_behind(affines[*feature], *comparison, *threshold);
            }
            TreeNode::Member { feature, values, .. } => {
                for value in values {
                    *value = threshold_behind(affines[*feature], Comparison::Equal, *value);
                }
            }
            TreeNode::Leaf { .. } => {}
        }
    }
    let (aggregate, base) = (ensemble.aggregate(), ensemble.base().to_vec());
    let made = TreeEnsemble::new(affines.len(), &trees, aggregate, base, ensemble.transform())?;
    let scaled = |own: &Substitute| Substitute {
        value: affines[own.column].apply(f64::from(own.value)) as f32,
        ..*own
    };
    Ok(made.with_substitutes(&ensemble.substitutes().iter().map(scaled).collect::<Vec<_>>()))
}

/// The threshold `t'` for which `E(v) ? t'` answers as `f32(v) ? t` did, where `E` is
/// [`Affine::coordinate`] and `v` what the core took, before it was rounded: the number in the
/// row, or that number on a scale of the model's own.
///
/// `f32(v) <= t` holds up to the midpoint `h` of `t` and the next larger `f32`. `E` never
/// decreases, so with `t' = E(h)`:
/// - `v <= h` gives `E(v) <= t'`: yes, as before. Every number that was `t` once rounded is
///   among them: 0.1 where `t` is the `f32` of 0.1.
/// - `v > h` gives `E(v) >= t'`: no, as before, unless `E(v) = E(h)`.
///
/// So an answer changes only for a number beyond the threshold that `E` rounds to where it
/// rounds the threshold: within an ulp of `z`. From `2^23` on the `f32`s are whole numbers, and
/// the next one may well be in the data. If `E(h)` has reached `E` of it, `t'` stops short of
/// that, though not of `E(t)`.
///
/// `<` is the mirror image: `f32(v) < t` fails from the midpoint of `t` and the next smaller
/// `f32` on, `v >= h` gives `E(v) >= t'`, and the same holds of `v < h`. `>` and `>=` are the
/// opposites of the two. `==` takes `E(t)`: right for every `v` that is an `f32` itself, such as
/// a code, unless `E` rounds it and `t` to the same.
fn threshold_behind(affine: Affine, comparison: Comparison, threshold: f32) -> f32 {
    /// The `f32`s are whole numbers from here on.
    const WHOLE: f32 = 8_388_608.0;
    if affine == Affine::IDENTITY || !threshold.is_finite() {
        return threshold;
    }
    let coordinate = |x: f32| affine.coordinate(f64::from(x));
    let midpoint = |next: f32| affine.coordinate(f64::midpoint(threshold.into(), next.into()));
    let (own, whole) = (coordinate(threshold), threshold.abs() >= WHOLE);
    match comparison {
        Comparison::LessOrEqual | Comparison::Greater => {
            let (next, at) = (coordinate(threshold.next_up()), midpoint(threshold.next_up()));
            if whole && at >= next { next.next_down().max(own) } else { at }
        }
        Comparison::Less | Comparison::GreaterOrEqual => {
            let (next, at) = (coordinate(threshold.next_down()), midpoint(threshold.next_down()));
            if whole && at <= next { next.next_up().min(own) } else { at }
        }
        Comparison::Equal | Comparison::NotEqual => own,
    }
}
