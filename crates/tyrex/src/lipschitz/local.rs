//! The Jacobian over a region, by interval arithmetic: sound there, and tighter than the product.
//!
//! Forward, the region gives every unit's sum an interval, hence its slope one. Backward,
//! the gradient of `m` is a vector of intervals, `g_{l-1} = (g_l * f'(z_l)) W_l^T`. No
//! gradient in the region is longer than the largest magnitudes together, and on a convex
//! region the longest gradient bounds every slope.

use super::{LipschitzBound, Region, Soundness};
use crate::error::{Error, Result};
use crate::model::interval::Interval;
use crate::model::{Dense, Mlp, Model as _, Output};

/// The bound on a ball or box around a point.
pub fn local(network: &Mlp, x: &[f32], region: Region) -> Result<LipschitzBound> {
    let (Region::Ball { radius } | Region::Box { radius }) = region else {
        return Ok(super::spectral(network));
    };
    if !(radius >= 0.0 && radius.is_finite()) {
        return Err(Error::param("radius", radius, "a finite number of at least 0"));
    }
    if x.len() != network.dim() {
        return Err(Error::Dimension {
            what: "coordinates of the point".into(),
            expected: network.dim(),
            got: x.len(),
        });
    }
    if let Some(coordinate) = x.iter().find(|coordinate| !coordinate.is_finite()) {
        return Err(Error::param("x", coordinate, "finite coordinates"));
    }
    let layers = network.layers();
    let mut sums: Vec<Vec<Interval>> = Vec::with_capacity(layers.len());
    let mut values: Vec<Interval> = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let z = if index == 0 {
            first_sums(layer, x, radius, matches!(region, Region::Ball { .. }))
        } else {
            interval_sums(layer, &values)
        };
        values = z.iter().map(|&z| layer.activation.values_on(z)).collect();
        sums.push(z);
    }
    let logits = sums.last().map_or(&[][..], Vec::as_slice);
    let mut gradient = output_gradient(network.output(), logits);
    for (layer, z) in layers.iter().zip(&sums).rev() {
        let through: Vec<Interval> =
            gradient.iter().zip(z).map(|(&g, &z)| g.times(layer.activation.slopes_on(z))).collect();
        let outputs = layer.bias.len();
        gradient = layer
            .weights
            .chunks_exact(outputs)
            .map(|row| {
                let terms = row.iter().zip(&through);
                terms.fold(Interval::point(0.0), |sum, (&w, &g)| {
                    sum.plus(g.times(Interval::point(f64::from(w))))
                })
            })
            .collect();
    }
    let value = gradient.iter().map(|g| g.magnitude().powi(2)).sum::<f64>().sqrt();
    Ok(LipschitzBound { value: value * (1.0 + 1e-6), region, soundness: Soundness::Sound })
}

/// `x W + b`, and how far it can move: `radius ||w_j||_2` in a ball, `radius ||w_j||_1` in a box.
fn first_sums(layer: &Dense, x: &[f32], radius: f64, is_ball: bool) -> Vec<Interval> {
    let outputs = layer.bias.len();
    (0..outputs)
        .map(|j| {
            let column = || layer.weights.chunks_exact(outputs).map(|row| f64::from(row[j]));
            let centre: f64 = x.iter().zip(column()).map(|(&x, w)| f64::from(x) * w).sum();
            let reach = if is_ball {
                column().map(|w| w * w).sum::<f64>().sqrt()
            } else {
                column().map(f64::abs).sum()
            };
            Interval::around(centre + f64::from(layer.bias[j]), radius * reach).widened()
        })
        .collect()
}

fn interval_sums(layer: &Dense, values: &[Interval]) -> Vec<Interval> {
    let outputs = layer.bias.len();
    let mut sums: Vec<Interval> =
        layer.bias.iter().map(|&b| Interval::point(f64::from(b))).collect();
    for (row, &value) in layer.weights.chunks_exact(outputs).zip(values) {
        for (sum, &w) in sums.iter_mut().zip(row) {
            *sum = sum.plus(value.times(Interval::point(f64::from(w))));
        }
    }
    sums.into_iter().map(Interval::widened).collect()
}

/// `dm/dz` for logits in these intervals.
fn output_gradient(output: Output, logits: &[Interval]) -> Vec<Interval> {
    match output {
        Output::Sigmoid { favourable } => {
            let slope = crate::model::Activation::Sigmoid.slopes_on(logits[0]);
            vec![if favourable { slope } else { slope.times(Interval::point(-1.0)) }]
        }
        Output::Softmax { favourable } => {
            let shares: Vec<Interval> = (0..logits.len()).map(|j| share(logits, j)).collect();
            let of_favourable = shares[favourable];
            let complement =
                Interval { low: 1.0 - of_favourable.high, high: 1.0 - of_favourable.low };
            shares
                .iter()
                .enumerate()
                .map(|(j, &p)| {
                    if j == favourable {
                        let product = of_favourable.times(complement);
                        Interval { low: product.low, high: product.high.min(0.25) }
                    } else {
                        of_favourable.times(p).times(Interval::point(-1.0))
                    }
                })
                .collect()
        }
    }
}

/// The softmax share of one class: least when its logit is low and all others are high.
fn share(logits: &[Interval], class: usize) -> Interval {
    let with = |own: f64, other: fn(&Interval) -> f64| {
        let others = logits.iter().enumerate().filter(|(j, _)| *j != class);
        1.0 / (1.0 + others.map(|(_, z)| libm::exp(other(z) - own)).sum::<f64>())
    };
    Interval { low: with(logits[class].low, |z| z.high), high: with(logits[class].high, |z| z.low) }
}
