//! A network by its definition, in double precision, one multiplication at a time: what the
//! fast one is compared with.

#[cfg(feature = "openapi")]
pub(crate) mod json_schema;
pub(crate) mod promises;
pub(crate) mod rules;
pub(crate) mod schemas;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rand::RngExt;
use tyrex::certificate::{Terms, TheoremTerms};
use tyrex::change::ModelChange;
use tyrex::counterfactual::Tick;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::{Catalogue, Dataset};
use tyrex::explain::{Advice, Adviser, Applicant, Explainer, Request, RetrainingTerms};
use tyrex::model::trees::{Aggregate, Comparison, Transform, TreeEnsemble, TreeNode};
use tyrex::model::{Activation, Dense, Mlp, Output};
use tyrex::{Points, Seed};

/// The German data, which the library contains.
pub(crate) fn german() -> Dataset {
    let catalogue = Catalogue::with_folders(Vec::new());
    catalogue.load("german", Variant::Product, Direction::Favourable).unwrap()
}

/// A file of golden numbers.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The terms of a certificate with the theorem only.
pub(crate) fn theorem_only(probability: f64, theorem: TheoremTerms) -> Terms {
    let theorem = Some(theorem);
    Terms { probability, confidence: 0.95, theorem, delta: None, radius: None, forest: false }
}

/// The explainer with a few retrained models, for the methods that search over models.
pub(crate) fn with_search_models(explainer: &Explainer) -> Explainer {
    let terms = RetrainingTerms {
        change: ModelChange::with_params("reinitialise", "").unwrap(),
        models: 9,
        params: explainer.retraining().params().unwrap(),
        seed: Seed(70),
    };
    let ensemble = explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap();
    let (search, tune) = ensemble.members().split_at(6);
    explainer.with_search_models(search.to_vec(), tune.to_vec()).unwrap()
}

/// Advice of an adviser for this request alone.
pub(crate) fn advise(
    explainer: &Explainer,
    request: &Request,
    applicants: &[Applicant],
    watch: impl Fn(Tick) -> ControlFlow<()> + Sync,
) -> tyrex::Result<Vec<Advice>> {
    Adviser::new(explainer, request.clone())?.advise(applicants, watch)
}

/// A question of a tree; the node after `yes` is the one for "no".
pub(crate) fn branch(
    feature: usize,
    comparison: Comparison,
    threshold: f32,
    yes: usize,
) -> TreeNode {
    TreeNode::Branch { feature, comparison, threshold, missing: false, yes, no: yes + 1 }
}

pub(crate) fn leaf(weight: f32) -> TreeNode {
    TreeNode::Leaf { weights: vec![(0, weight)] }
}

/// The sum of trees, which is the score.
pub(crate) fn forest(dim: usize, trees: &[Vec<TreeNode>]) -> TreeEnsemble {
    TreeEnsemble::new(dim, trees, Aggregate::Sum, vec![0.0], Transform::Identity).unwrap()
}

/// The size of boosted trees, and how much of the error each tree takes.
#[derive(Clone, Copy)]
pub(crate) struct Grown {
    pub(crate) trees: usize,
    pub(crate) depth: usize,
    pub(crate) rate: f64,
}

/// Boosted trees for labels: each node splits at random, at the best of four values that points
/// have, and each tree fits the remaining error of the logistic loss.
pub(crate) fn grown(points: &Points, labels: &[u32], shape: Grown, seed: Seed) -> TreeEnsemble {
    let mut rng = seed.rng();
    let mut logits = vec![0.0; points.len()];
    let mut trees = Vec::new();
    for _ in 0..shape.trees {
        let errors: Vec<f64> = logits
            .iter()
            .zip(labels)
            .map(|(z, &label)| f64::from(label) - 1.0 / (1.0 + f64::exp(-z)))
            .collect();
        let mut tree = vec![leaf(0.0)];
        let mut open = vec![(0, (0..points.len()).collect::<Vec<usize>>(), 0)];
        while let Some((node, rows, depth)) = open.pop() {
            let total: f64 = rows.iter().map(|&row| errors[row]).sum();
            let mut best: Option<(f64, usize, f32)> = None;
            for _ in 0..if depth < shape.depth { 4 } else { 0 } {
                let feature = rng.random_range(0..points.dim());
                let threshold = points.row(rows[rng.random_range(0..rows.len())])[feature];
                let below = rows.iter().filter(|&&row| points.row(row)[feature] <= threshold);
                let (count, sum) = below.fold((0, 0.0), |(n, s), &row| (n + 1, s + errors[row]));
                if count < 5 || rows.len() - count < 5 {
                    continue;
                }
                let (other, rest) = ((rows.len() - count) as f64, total - sum);
                let gain = sum * sum / f64::from(count as u32) + rest * rest / other;
                if best.is_none_or(|(than, ..)| gain > than) {
                    best = Some((gain, feature, threshold));
                }
            }
            let Some((_, feature, threshold)) = best else {
                let weight = shape.rate * 4.0 * total / rows.len() as f64;
                rows.iter().for_each(|&row| logits[row] += weight);
                tree[node] = leaf(weight as f32);
                continue;
            };
            let next = tree.len();
            tree[node] = branch(feature, Comparison::LessOrEqual, threshold, next);
            tree.extend([leaf(0.0), leaf(0.0)]);
            let (low, high) =
                rows.into_iter().partition(|&row| points.row(row)[feature] <= threshold);
            open.extend([(next, low, depth + 1), (next + 1, high, depth + 1)]);
        }
        trees.push(tree);
    }
    let sum = Aggregate::Sum;
    TreeEnsemble::new(points.dim(), &trees, sum, vec![0.0], Transform::Logistic).unwrap()
}

pub(crate) fn activate(activation: Activation, z: f64) -> f64 {
    let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
    match activation {
        Activation::Identity => z,
        Activation::Relu => z.max(0.0),
        Activation::LeakyRelu { slope } => z.max(0.0) + f64::from(slope) * z.min(0.0),
        Activation::Elu { alpha } => z.max(0.0) + f64::from(alpha) * z.min(0.0).exp_m1(),
        Activation::Gelu => 0.5 * z * (1.0 + libm::erf(z / std::f64::consts::SQRT_2)),
        Activation::GeluTanh => {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (z + 0.044_715 * z.powi(3));
            0.5 * z * (1.0 + inner.tanh())
        }
        Activation::Tanh => z.tanh(),
        Activation::Sigmoid => sigmoid(z),
        Activation::Softplus => z.max(0.0) + (-z.abs()).exp().ln_1p(),
        Activation::Silu => z * sigmoid(z),
    }
}

/// The logits by the definition.
pub(crate) fn logits(layers: &[Dense], x: &[f64]) -> Vec<f64> {
    let mut values = x.to_vec();
    for layer in layers {
        let outputs = layer.bias.len();
        values = (0..outputs)
            .map(|j| {
                let weights = layer.weights.chunks_exact(outputs).map(|row| f64::from(row[j]));
                let sum: f64 = values.iter().zip(weights).map(|(v, w)| v * w).sum();
                activate(layer.activation, sum + f64::from(layer.bias[j]))
            })
            .collect();
    }
    values
}

/// The score by the definition.
pub(crate) fn score(output: Output, logits: &[f64]) -> f64 {
    match output {
        Output::Sigmoid { favourable } => {
            let z = if favourable { logits[0] } else { -logits[0] };
            1.0 / (1.0 + (-z).exp())
        }
        Output::Softmax { favourable } => {
            logits[favourable].exp() / logits.iter().map(|z| z.exp()).sum::<f64>()
        }
    }
}

/// The gradient of the score by the chain rule.
pub(crate) fn gradient(layers: &[Dense], output: Output, x: &[f64]) -> Vec<f64> {
    let mut values = x.to_vec();
    let mut slopes = Vec::new();
    for layer in layers {
        let linear = Dense { activation: Activation::Identity, ..layer.clone() };
        let sums = logits(&[linear], &values);
        slopes.push(sums.iter().map(|&z| layer.activation.slope(z)).collect::<Vec<_>>());
        values = sums.iter().map(|&z| activate(layer.activation, z)).collect();
    }
    let m = score(output, &values);
    let mut gradient: Vec<f64> = match output {
        Output::Sigmoid { favourable } => {
            vec![if favourable { m * (1.0 - m) } else { -m * (1.0 - m) }]
        }
        Output::Softmax { favourable } => (0..values.len())
            .map(|class| {
                let own = if class == favourable { 1.0 } else { 0.0 };
                m * (own - score(Output::Softmax { favourable: class }, &values))
            })
            .collect(),
    };
    for (layer, slopes) in layers.iter().zip(&slopes).rev() {
        let of_sums: Vec<f64> = gradient.iter().zip(slopes).map(|(g, s)| g * s).collect();
        let rows = layer.weights.chunks_exact(layer.bias.len());
        gradient = rows
            .map(|row| row.iter().zip(&of_sums).map(|(&w, g)| f64::from(w) * g).sum())
            .collect();
    }
    gradient
}

/// The Euclidean norm.
pub(crate) fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// A random network; a softmax has three classes.
pub(crate) fn network(
    dim: usize,
    widths: &[usize],
    activation: Activation,
    output: Output,
    seed: u64,
) -> Mlp {
    Mlp::new(dim, &layers(dim, widths, activation, output, seed), output).unwrap()
}

/// Its layers.
pub(crate) fn layers(
    dim: usize,
    widths: &[usize],
    activation: Activation,
    output: Output,
    seed: u64,
) -> Vec<Dense> {
    let mut rng = Seed(seed).rng();
    let classes = match output {
        Output::Sigmoid { .. } => 1,
        Output::Softmax { .. } => 3,
    };
    let mut inputs = dim;
    let mut layers = Vec::new();
    for (index, &outputs) in widths.iter().chain([&classes]).enumerate() {
        let scale = 1.5 / (inputs as f32).sqrt();
        let is_last = index == widths.len();
        layers.push(Dense {
            weights: (0..inputs * outputs).map(|_| rng.random_range(-scale..scale)).collect(),
            bias: (0..outputs).map(|_| rng.random_range(-0.5..0.5)).collect(),
            activation: if is_last { Activation::Identity } else { activation },
        });
        inputs = outputs;
    }
    layers
}

/// Points in the cube around the origin.
pub(crate) fn points(count: usize, dim: usize, seed: u64) -> Points {
    let mut rng = Seed(seed).rng();
    Points::from_rows(dim, (0..count * dim).map(|_| rng.random_range(-1.0..1.0)).collect()).unwrap()
}

pub(crate) fn widen(point: &[f32]) -> Vec<f64> {
    point.iter().map(|&v| f64::from(v)).collect()
}

pub(crate) fn activations() -> impl Strategy<Value = Activation> {
    prop::sample::select(&Activation::ALL[..])
}

pub(crate) fn outputs() -> impl Strategy<Value = Output> {
    prop_oneof![
        any::<bool>().prop_map(|favourable| Output::Sigmoid { favourable }),
        (0..3_usize).prop_map(|favourable| Output::Softmax { favourable }),
    ]
}

/// The derivative of `f` at 0 by central differences, or nothing if there is a kink: the
/// differences to either side must agree first.
pub(crate) fn derivative(f: impl Fn(f64) -> f64, tolerance: f64) -> Option<f64> {
    let h = 1e-5;
    let (up, down) = ((f(h) - f(0.0)) / h, (f(0.0) - f(-h)) / h);
    ((up - down).abs() < tolerance).then_some(f64::midpoint(up, down))
}
