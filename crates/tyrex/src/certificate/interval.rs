//! The interval tier: every network whose weights and biases differ from the model's by at most
//! `delta` keeps the point valid; for trees, every ensemble of the same shape whose leaves differ by
//! at most `delta` and whose thresholds by at most `radius` (`moved_trees`).
//!
//! Layer by layer, `h_j` lies in
//! `f( sum_i [l_i, u_i] [w_ij - delta, w_ij + delta] + [b_j - delta, b_j + delta] )`, and the
//! extremes of a product of intervals are at their corners. The last step bounds the *rivals*:
//! `D_j = z_j - z_f` for every class but the favourable one (`-z` for a sigmoid), as sums of the
//! last hidden layer with weights `w_j - w_f`, which move by at most `2 delta`. With the highest
//! `D_j` the lowest score is `1 / (1 + sum_j exp D_j)`.
//!
//! With one hidden layer and two classes this is exact for every activation: hidden units have
//! weights of their own, so all their worst cases happen in one network. Deeper, it is sound.
//! Bounds are in double precision and widened like those of `model::interval`.

use serde::{Deserialize, Serialize};

use super::assumption::{About, Assumption, Standing, Verdict};
use super::moved_trees::TreeIntervalCertifier;
use super::{
    At, Certifies, LeftOut, Maker, NOT_ASKED_FOR, Says, Subject, Tier, at_least, rounded_down,
};
use crate::error::{Error, Result};
use crate::model::interval::Interval;
use crate::model::{Activation, Dense, Mlp, Model as _, Output};

/// The largest supported change of weights.
const LARGEST: f64 = 1e6;

/// The result of the tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IntervalTier {
    /// Certified if the lowest score is at least 0.5, else vacuous.
    pub verdict: Verdict,
    /// `delta`
    pub delta: f64,
    /// No network within `delta` scores the point lower.
    pub lowest_score: f64,
    /// The largest `delta` that keeps the point valid: its margin in the space of weights. For
    /// trees with thresholds that move by up to `radius`.
    pub largest_delta: f64,
    /// The largest change of a threshold; for trees only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
    /// The largest `radius` that keeps the point valid, with leaves that move by up to `delta`; for
    /// trees only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_radius: Option<f64>,
    /// The assumptions.
    pub assumptions: Vec<Assumption>,
}

impl Says for IntervalTier {
    fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    fn brief(&self) -> String {
        format!("{}: {}", self.verdict, rounded_down(self.largest_delta, 4))
    }

    fn numbers(&self) -> Vec<String> {
        vec![self.largest_delta.to_string()]
    }

    fn claim(&self) -> String {
        let Self { verdict, delta, largest_delta, .. } = self;
        if let (Some(radius), Some(largest_radius)) = (self.radius, self.largest_radius) {
            let margins = format!(
                "it stays valid up to {largest_delta:.2e} of a leaf, and up to {largest_radius:.2e} \
                 of a threshold"
            );
            if *verdict == Verdict::Vacuous {
                return format!(
                    "A change of every threshold by {radius} and of every leaf by {delta} could make \
                     this point invalid; {margins}."
                );
            }
            return format!(
                "Every ensemble of trees of this shape whose thresholds differ by at most {radius} \
                 and whose leaves by at most {delta} scores this point at least {} ({verdict}; \
                 {margins}).",
                at_least(self.lowest_score)
            );
        }
        if *verdict == Verdict::Vacuous {
            return format!(
                "A change of every weight and bias by {delta} could make this point invalid; \
                 up to {largest_delta:.2e} it stays valid."
            );
        }
        format!(
            "Every network whose weights and biases differ by at most {delta} scores this point \
             at least {} ({verdict}; it stays valid up to {largest_delta:.2e}).",
            at_least(self.lowest_score)
        )
    }
}

impl Certifies for IntervalTier {
    const HEADING: &'static str = "interval: delta <=";
    const NUMBERS: &'static [&'static str] = &["largest_delta"];

    fn prepare<'a>(subject: &Subject<'_, 'a>) -> Box<dyn Maker + 'a> {
        let Some(delta) = subject.terms.delta else { return Box::new(NOT_ASKED_FOR) };
        if let Some(network) = subject.model.network() {
            return Box::new(Prepared { certifier: IntervalCertifier::new(network), delta });
        }
        // Certificates without a radius were made before trees had this tier.
        match (subject.model.trees(), subject.terms.radius) {
            (Some(trees), Some(radius)) => match TreeIntervalCertifier::new(trees) {
                Ok(certifier) => Box::new(PreparedTrees { certifier, delta, radius }),
                Err(_) => Box::new(LeftOut("only sums and means of trees have a worst case here")),
            },
            _ => Box::new(LeftOut("only a network has weights that change by little")),
        }
    }
}

struct Prepared {
    certifier: IntervalCertifier,
    delta: f64,
}

impl Maker for Prepared {
    fn make(&self, at: &At<'_>) -> Result<std::result::Result<Tier, String>> {
        self.certifier.certify(at.point.row(0), self.delta).map(|tier| Ok(tier.into()))
    }
}

struct PreparedTrees<'a> {
    certifier: TreeIntervalCertifier<'a>,
    delta: f64,
    radius: f64,
}

impl Maker for PreparedTrees<'_> {
    fn make(&self, at: &At<'_>) -> Result<std::result::Result<Tier, String>> {
        let Self { certifier, delta, radius } = self;
        let (delta, radius, x) = (*delta, *radius, at.point.row(0));
        let lowest_score = certifier.lowest_score(x, delta, radius)?;
        let within = About::TreesWithin { delta, radius };
        let assumptions = vec![within.standing(Standing::Declared)];
        let tier = IntervalTier {
            verdict: Verdict::of(lowest_score >= 0.5, &assumptions),
            delta,
            lowest_score,
            largest_delta: certifier.largest_delta(x, radius)?,
            radius: Some(radius),
            largest_radius: Some(certifier.largest_radius(x, delta)?),
            assumptions,
        };
        Ok(Ok(tier.into()))
    }
}

/// A network prepared for interval certificates.
#[derive(Debug, Clone)]
pub struct IntervalCertifier {
    dim: usize,
    hidden: Vec<Layer>,
    rivals: Layer,
    /// By how many `delta` a rival's weight can move.
    reach: f64,
}

/// A layer in double precision: one row of weights per input.
#[derive(Debug, Clone)]
struct Layer {
    weights: Vec<f64>,
    bias: Vec<f64>,
    activation: Activation,
}

impl IntervalCertifier {
    /// Prepares a network.
    pub fn new(network: &Mlp) -> Self {
        let layers = network.layers();
        // A network always has the layer that makes its logits.
        let depth = layers.len() - 1;
        let (rivals, reach) = rivals(&layers[depth], network.output());
        let hidden = layers[..depth]
            .iter()
            .map(|layer| Layer {
                weights: layer.weights.iter().map(|&w| f64::from(w)).collect(),
                bias: layer.bias.iter().map(|&b| f64::from(b)).collect(),
                activation: layer.activation,
            })
            .collect();
        Self { dim: network.dim(), hidden, rivals, reach }
    }

    /// The lowest score of the point under any network within `delta`.
    pub fn lowest_score(&self, x: &[f32], delta: f64) -> Result<f64> {
        self.check(x, delta)?;
        Ok(self.lowest(x, delta))
    }

    /// The largest `delta` for which the lowest score is at least 0.5, less at most a millionth of
    /// it, by bisection; 0 if there is none.
    pub fn largest_delta(&self, x: &[f32]) -> Result<f64> {
        self.check(x, 0.0)?;
        Ok(largest(|delta| self.lowest(x, delta) >= 0.5))
    }

    fn certify(&self, x: &[f32], delta: f64) -> Result<IntervalTier> {
        let lowest_score = self.lowest_score(x, delta)?;
        let assumptions = vec![About::WeightsWithin { delta }.standing(Standing::Declared)];
        Ok(IntervalTier {
            verdict: Verdict::of(lowest_score >= 0.5, &assumptions),
            delta,
            lowest_score,
            largest_delta: self.largest_delta(x)?,
            radius: None,
            largest_radius: None,
            assumptions,
        })
    }

    fn check(&self, x: &[f32], delta: f64) -> Result<()> {
        check_delta(delta)?;
        super::check_point(x, self.dim)
    }

    fn lowest(&self, x: &[f32], delta: f64) -> f64 {
        let mut values: Vec<Interval> =
            x.iter().map(|&coordinate| Interval::point(f64::from(coordinate))).collect();
        for layer in &self.hidden {
            values = layer.sums(&values, delta);
            for value in &mut values {
                *value = match layer.activation {
                    // These functions need no widening: they are exact, and a unit that is off
                    // stays off.
                    Activation::Identity => *value,
                    Activation::Relu => {
                        Interval { low: value.low.max(0.0), high: value.high.max(0.0) }
                    }
                    other => other.values_on(*value),
                };
            }
        }
        let odds: f64 = self
            .rivals
            .sums(&values, self.reach * delta)
            .iter()
            .map(|rival| libm::exp(rival.high))
            .sum();
        // Overflow: no bound is known.
        if odds.is_nan() { 0.0 } else { 1.0 / (1.0 + odds) }
    }
}

impl Layer {
    /// `sum_i [l_i, u_i] [w_ij - r, w_ij + r] + [b_j - r, b_j + r]`
    ///
    /// The sign of an input's interval decides which corners matter, once for its whole row of
    /// weights, so the loop over outputs has no branches.
    fn sums(&self, inputs: &[Interval], radius: f64) -> Vec<Interval> {
        let outputs = self.bias.len();
        let mut low: Vec<f64> = self.bias.iter().map(|b| b - radius).collect();
        let mut high: Vec<f64> = self.bias.iter().map(|b| b + radius).collect();
        for (input, row) in inputs.iter().zip(self.weights.chunks_exact(outputs)) {
            let Interval { low: l, high: u } = *input;
            let terms = row.iter().zip(low.iter_mut().zip(high.iter_mut()));
            if l == 0.0 && u == 0.0 {
                continue;
            }
            if l == u {
                let spread = l.abs() * radius;
                for (w, (low, high)) in terms {
                    *low += l * w - spread;
                    *high += l * w + spread;
                }
            } else if l >= 0.0 {
                for (w, (low, high)) in terms {
                    let (least, most) = (w - radius, w + radius);
                    *low += minimum(l * least, u * least);
                    *high += maximum(l * most, u * most);
                }
            } else if u <= 0.0 {
                for (w, (low, high)) in terms {
                    let (least, most) = (w - radius, w + radius);
                    *low += minimum(l * most, u * most);
                    *high += maximum(l * least, u * least);
                }
            } else {
                for (w, (low, high)) in terms {
                    let (least, most) = (w - radius, w + radius);
                    *low += minimum(u * least, l * most);
                    *high += maximum(l * least, u * most);
                }
            }
        }
        let unknown = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        low.into_iter()
            .zip(high)
            .map(|(low, high)| {
                let sum = Interval { low, high };
                if low.is_finite() && high.is_finite() { sum.widened() } else { unknown }
            })
            .collect()
    }
}

/// One instruction each, unlike `f64::min` and `f64::max`; a NaN occurs only if a sum has
/// overflowed, which [`Layer::sums`] detects.
fn minimum(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

fn maximum(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The layer of `z_j - z_f`, and by how many `delta` its weights can move.
fn rivals(last: &Dense, output: Output) -> (Layer, f64) {
    let classes = last.bias.len();
    let difference = |row: &[f32]| -> Vec<f64> {
        match output {
            Output::Sigmoid { favourable } => {
                let sign = if favourable { -1.0 } else { 1.0 };
                vec![sign * f64::from(row[0])]
            }
            Output::Softmax { favourable } => {
                let others = row.iter().enumerate().filter(|(class, _)| *class != favourable);
                others.map(|(_, &w)| f64::from(w) - f64::from(row[favourable])).collect()
            }
        }
    };
    let reach = match output {
        Output::Sigmoid { .. } => 1.0,
        Output::Softmax { .. } => 2.0,
    };
    let weights = last.weights.chunks_exact(classes).flat_map(difference).collect();
    (Layer { weights, bias: difference(&last.bias), activation: Activation::Identity }, reach)
}

/// The largest number that keeps the point valid, less at most a millionth of it, by bisection; 0
/// if there is none. A point that is valid at a number is valid at every smaller one.
pub(super) fn largest(keeps: impl Fn(f64) -> bool) -> f64 {
    if !keeps(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1e-3);
    while high < LARGEST && keeps(high) {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        if high - low <= 1e-6 * high {
            break;
        }
        let middle = f64::midpoint(low, high);
        if keeps(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Checks the largest change of a weight.
pub(super) fn check_delta(delta: f64) -> Result<()> {
    check_change("delta", delta)
}

/// Checks the largest change of a threshold.
pub(super) fn check_radius(radius: f64) -> Result<()> {
    check_change("radius", radius)
}

fn check_change(name: &'static str, change: f64) -> Result<()> {
    if (0.0..=LARGEST).contains(&change) {
        return Ok(());
    }
    Err(Error::param(name, change, "a number from 0 to 1e6"))
}
