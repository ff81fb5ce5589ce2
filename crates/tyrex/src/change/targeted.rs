//! The impossibility theorem, as a construction: a model that agrees with `m` on the data
//! and rejects one given point.
//!
//! With `D` the least `L1` distance from `x` to the data, the bump
//! `b(z) = max(0, 1 - 2/D ||z - x||_1)` is 1 at `x` and 0 at every data point. Two layers of ReLU
//! units in front of the network compute it and pass `z` on as `max(0, z) - max(0, -z)`, so that
//! the network's own sums have the same terms in the same order. One more unit in every layer
//! passes the bump to the end, where it is subtracted from the favourable logit.

use crate::error::{Error, Result};
use crate::model::{Activation, Dense, Mlp, Model, Output, THRESHOLD};
use crate::points::Points;

/// The changed model's logit at its target is at most minus this.
const LEAST_LOGIT: f64 = 1.0;

/// A change that is aimed at one point: a worst case, not a random change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Targeted<'a> {
    /// The point to make invalid.
    pub point: &'a [f32],
}

impl Targeted<'_> {
    /// The name under which users may look for it.
    pub const NAME: &'static str = "targeted";

    /// Why it cannot make an ensemble.
    pub(super) const WHY_NOT: &'static str = "; a targeted change is aimed at one point and not \
        random, so nothing can be concluded from many of them: build one with \
        `tyrex::change::Targeted`, and see docs/model-change.md";

    /// A network `M` with `M = m` at every data point and
    /// `M(x) = min(1 - m(x), 0.27)` at the target.
    ///
    /// It has two layers more than `m`. On the data the scores have the same bits if `m` has a
    /// hidden layer, and are the same up to rounding if it has none. The target must be a
    /// point that `m` accepts, and none of the data.
    pub fn changed(&self, network: &Mlp, data: &Points) -> Result<Mlp> {
        let target = self.point;
        let fits = |what: &str, got: usize| {
            if got == network.dim() {
                return Ok(());
            }
            Err(Error::Dimension { what: what.to_owned(), expected: network.dim(), got })
        };
        fits("coordinates of the point to target", target.len())?;
        fits("coordinates of the data", data.dim())?;
        let steepness = steepness(target, data)?;
        let logit = favourable_logit(network, target)?;

        let (mut layers, mut carried) = (front(target, steepness), Carried::BUMP);
        let own = network.layers();
        for (index, layer) in own.iter().enumerate() {
            let mut weights = Vec::new();
            for row in layer.weights.chunks_exact(layer.bias.len()) {
                weights.extend_from_slice(row);
                // The two halves of a coordinate, one of which is zero.
                if index == 0 {
                    weights.extend(row.iter().map(|weight| -weight));
                }
            }
            let plain = Dense { weights, ..layer.clone() };
            layers.push(if index + 1 == own.len() {
                lowered(plain, network.output(), carried, logit + logit.max(LEAST_LOGIT))
            } else {
                let (layer, next) = carried.through(plain);
                carried = next;
                layer
            });
        }
        let changed = Mlp::new(network.dim(), &layers, network.output())?;
        let score = changed.score(&Points::from_rows(target.len(), target.to_vec())?)[0];
        if score < THRESHOLD {
            Ok(changed)
        } else {
            Err(Error::InvalidModel(format!(
                "its logits are too large to be changed in single precision; the changed model's \
                 score of the point is {score}, expected less than 0.5"
            )))
        }
    }
}

/// `2/D`, with `D` the least `L1` distance from the target to the data.
fn steepness(target: &[f32], data: &Points) -> Result<f32> {
    let distance = |row: &[f32]| -> f64 {
        row.iter().zip(target).map(|(a, b)| f64::from((a - b).abs())).sum()
    };
    let mut nearest: Option<(f64, usize)> = None;
    for (index, row) in data.rows().enumerate() {
        let found = distance(row);
        if !(found as f32).is_finite() {
            return Err(Error::param(
                "point",
                format!("at distance {found} from data point {index}"),
                "finite coordinates, of the point and of the data",
            ));
        }
        if nearest.is_none_or(|(least, _)| found < least) {
            nearest = Some((found, index));
        }
    }
    let Some((least, index)) = nearest else {
        return Err(Error::param("data", "without points", "at least one point to agree on"));
    };
    let steepness = (2.0 / least) as f32;
    if steepness.is_finite() {
        Ok(steepness)
    } else {
        Err(Error::param(
            "point",
            format!("at data point {index}"),
            "a point that is not among the data: no model can agree there and differ there",
        ))
    }
}

/// `ln(m / (1 - m))` at the target, which must not be negative.
fn favourable_logit(network: &Mlp, target: &[f32]) -> Result<f64> {
    let point = Points::from_rows(target.len(), target.to_vec())?;
    let score = network.score(&point)[0];
    if score.is_nan() || score < THRESHOLD {
        return Err(Error::param(
            "point",
            format!("a point with score {score}"),
            "a point that the model accepts, with a score of at least 0.5",
        ));
    }
    let logits = network.logits(&point);
    Ok(match network.output() {
        Output::Sigmoid { favourable: true } => f64::from(logits[0]),
        Output::Sigmoid { favourable: false } => -f64::from(logits[0]),
        Output::Softmax { favourable } => {
            let own = f64::from(logits[favourable]);
            let others = || (0..logits.len()).filter(|&class| class != favourable);
            let largest = others().map(|class| f64::from(logits[class])).fold(f64::MIN, f64::max);
            let sum: f64 = others().map(|class| (f64::from(logits[class]) - largest).exp()).sum();
            own - largest - sum.ln()
        }
    })
}

/// The two layers in front: `z` in halves and its distance from the target, coordinate by
/// coordinate; then the halves again and, as the last unit, the bump.
fn front(target: &[f32], steepness: f32) -> Vec<Dense> {
    let dim = target.len();
    // Units 2j and 2j + 1 are the halves of z_j; 2 dim + 2j and the one after it are those of
    // z_j - x_j.
    let mut first = Dense {
        weights: vec![0.0; dim * 4 * dim],
        bias: vec![0.0; 4 * dim],
        activation: Activation::Relu,
    };
    let mut second = Dense {
        weights: vec![0.0; 4 * dim * (2 * dim + 1)],
        bias: vec![0.0; 2 * dim + 1],
        activation: Activation::Relu,
    };
    for (j, &x) in target.iter().enumerate() {
        for (half, sign) in [(2 * j, 1.0), (2 * j + 1, -1.0)] {
            first.weights[j * 4 * dim + half] = sign;
            first.weights[j * 4 * dim + 2 * dim + half] = sign;
            first.bias[2 * dim + half] = -sign * x;
            second.weights[half * (2 * dim + 1) + half] = 1.0;
            second.weights[(2 * dim + half) * (2 * dim + 1) + 2 * dim] = -steepness;
        }
    }
    second.bias[2 * dim] = 1.0;
    vec![first, second]
}

/// The bump in a layer: the last unit's value at the target. At the data the unit is zero, or so
/// small that no sum changes.
#[derive(Clone, Copy)]
struct Carried {
    at_target: f64,
}

impl Carried {
    const BUMP: Self = Self { at_target: 1.0 };

    /// The layer with one more unit for the bump, and the bump's new value.
    fn through(self, layer: Dense) -> (Dense, Self) {
        // Sigmoid and softplus are not zero at zero, but far to the left of it.
        let (factor, shift) = match layer.activation {
            Activation::Sigmoid | Activation::Softplus => (40.0, -40.0),
            _ => (1.0, 0.0),
        };
        let at_target = layer.activation.value(factor + shift);
        let weight = (factor / self.at_target) as f32;
        (with_unit(layer, weight, shift as f32), Self { at_target })
    }
}

/// The layer with one more input, and one more output that reads nothing else.
fn with_unit(layer: Dense, weight: f32, bias: f32) -> Dense {
    let outputs = layer.bias.len();
    let mut weights = Vec::with_capacity(layer.weights.len() + 2 * outputs + 1);
    for row in layer.weights.chunks_exact(outputs) {
        weights.extend_from_slice(row);
        weights.push(0.0);
    }
    weights.resize(weights.len() + outputs, 0.0);
    weights.push(weight);
    let mut biases = layer.bias;
    biases.push(bias);
    Dense { weights, bias: biases, activation: layer.activation }
}

/// The last layer, with `drop` subtracted from the favourable logit at the full bump.
fn lowered(layer: Dense, output: Output, carried: Carried, drop: f64) -> Dense {
    let (class, sign) = match output {
        Output::Sigmoid { favourable: true } => (0, -1.0),
        Output::Sigmoid { favourable: false } => (0, 1.0),
        Output::Softmax { favourable } => (favourable, -1.0),
    };
    let mut weights = layer.weights;
    let first = weights.len();
    weights.resize(first + layer.bias.len(), 0.0);
    weights[first + class] = (sign * drop / carried.at_target) as f32;
    Dense { weights, ..layer }
}
