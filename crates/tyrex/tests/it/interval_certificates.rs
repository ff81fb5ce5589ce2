//! No network in the box scores a point lower than its interval certificate says, and with one
//! hidden layer some network scores it just as low.

use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::RngExt;
use tyrex::Seed;
use tyrex::certificate::IntervalCertifier;
use tyrex::change::{Ensemble, ModelChange, Plan, WeightNoise};
use tyrex::model::train::EpochReport;
use tyrex::model::{Activation, Examples, Mlp, Output, TrainParams};

use crate::support::{network, points};

/// A layer in double precision.
struct Exact {
    weights: Vec<f64>,
    bias: Vec<f64>,
    activation: Activation,
}

fn exact(network: &Mlp) -> Vec<Exact> {
    let widen = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect();
    let layers = network.layers();
    let layers = layers.iter();
    layers
        .map(|layer| Exact {
            weights: widen(&layer.weights),
            bias: widen(&layer.bias),
            activation: layer.activation,
        })
        .collect()
}

fn score(layers: &[Exact], output: Output, x: &[f32]) -> f64 {
    let mut values = crate::support::widen(x);
    for layer in layers {
        let outputs = layer.bias.len();
        let mut sums = layer.bias.clone();
        for (value, row) in values.iter().zip(layer.weights.chunks_exact(outputs)) {
            for (sum, w) in sums.iter_mut().zip(row) {
                *sum += value * w;
            }
        }
        values = sums.iter().map(|&z| crate::support::activate(layer.activation, z)).collect();
    }
    crate::support::score(output, &values)
}

/// The network with every weight moved by `delta` times what `choose` says, from -1 to 1.
fn moved(layers: &[Exact], delta: f64, mut choose: impl FnMut() -> f64) -> Vec<Exact> {
    layers
        .iter()
        .map(|layer| Exact {
            weights: layer.weights.iter().map(|w| w + delta * choose()).collect(),
            bias: layer.bias.iter().map(|b| b + delta * choose()).collect(),
            activation: layer.activation,
        })
        .collect()
}

/// The corner that first-order descent picks: every weight against the sign of its effect.
fn worst_corner(layers: &[Exact], output: Output, x: &[f32], delta: f64) -> Vec<Exact> {
    let at = |layers: &[Exact]| score(layers, output, x);
    let mut signs = Vec::new();
    let here = at(layers);
    for index in 0.. {
        let mut counter = 0;
        let nudged = moved(layers, 1e-6, || {
            counter += 1;
            f64::from(u8::from(counter == index + 1))
        });
        if index == counter {
            break;
        }
        signs.push(if at(&nudged) > here { -1.0 } else { 1.0 });
    }
    let mut signs = signs.into_iter();
    moved(layers, delta, || signs.next().unwrap_or(0.0))
}

const MONOTONE: [Activation; 7] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.1 },
    Activation::Elu { alpha: 1.0 },
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::Softplus,
];

const TWO_CLASSES: [Output; 4] = [
    Output::Sigmoid { favourable: true },
    Output::Sigmoid { favourable: false },
    Output::Softmax { favourable: 0 },
    Output::Softmax { favourable: 1 },
];

/// A random network with one hidden layer and one logit, or two.
fn shallow(dim: usize, width: usize, activation: Activation, output: Output, seed: u64) -> Mlp {
    let mut layers = network(dim, &[width], activation, output, seed).layers();
    if matches!(output, Output::Softmax { .. }) {
        // Of the three classes the last is left out.
        let last = &mut layers[1];
        last.weights = last.weights.chunks_exact(3).flat_map(|row| [row[0], row[1]]).collect();
        last.bias.truncate(2);
    }
    Mlp::new(dim, &layers, output).unwrap()
}

/// The network within `delta` that scores the point lowest, built unit by unit: hidden units have
/// weights of their own, so each can do its worst.
fn worst_network(network: &Mlp, x: &[f32], delta: f64) -> Vec<Exact> {
    let mut layers = exact(network);
    let [hidden, last] = &mut layers[..] else { panic!("one hidden layer") };
    // For every logit, the direction that harms the favourable class.
    let harm: &[f64] = match network.output() {
        Output::Sigmoid { favourable: true } => &[-1.0],
        Output::Sigmoid { favourable: false } => &[1.0],
        Output::Softmax { favourable: 0 } => &[-1.0, 1.0],
        Output::Softmax { .. } => &[1.0, -1.0],
    };
    let width = hidden.bias.len();
    let reach = 1.0 + x.iter().map(|&x| f64::from(x).abs()).sum::<f64>();
    for unit in 0..width {
        let incoming = hidden.weights.iter().skip(unit).step_by(width);
        let sum: f64 = incoming.zip(x).map(|(w, &x)| w * f64::from(x)).sum();
        let outgoing = &mut last.weights[unit * harm.len()..(unit + 1) * harm.len()];
        // At either end of the unit, its outgoing weights as bad as can be.
        let at = |end: f64| {
            let z = sum + hidden.bias[unit] + end * delta * reach;
            let value = crate::support::activate(hidden.activation, z);
            let moved =
                outgoing.iter().zip(harm).map(|(w, harm)| w + harm * value.signum() * delta);
            let moved: Vec<f64> = moved.collect();
            let total: f64 = moved.iter().zip(harm).map(|(w, harm)| w * harm * value).sum();
            (total, end, moved)
        };
        let (low, high) = (at(-1.0), at(1.0));
        let (_, end, moved) = if low.0 > high.0 { low } else { high };
        outgoing.copy_from_slice(&moved);
        hidden.bias[unit] += end * delta;
        for (w, &x) in hidden.weights.iter_mut().skip(unit).step_by(width).zip(x) {
            *w += end * delta * f64::from(x).signum();
        }
    }
    for (bias, harm) in last.bias.iter_mut().zip(harm) {
        *bias += harm * delta;
    }
    layers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_network_in_the_box_scores_lower(
        dim in 1..6_usize,
        widths in prop::collection::vec(1..8_usize, 1..4),
        activation in crate::support::activations(),
        output in crate::support::outputs(),
        share in 0.05..1.0_f64,
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, activation, output, seed);
        let point = points(1, dim, seed ^ 1);
        let x = point.row(0);
        let certifier = IntervalCertifier::new(&network);
        let largest = certifier.largest_delta(x).unwrap();
        let layers = exact(&network);
        let own = score(&layers, output, x);
        // Between the two the bounds' own rounding decides.
        prop_assert!(own >= 0.5 || largest == 0.0);
        prop_assert!(own <= 0.500_1 || largest > 0.0);
        if largest > 0.0 {
            prop_assert!(certifier.lowest_score(x, largest).unwrap() >= 0.5);
            prop_assert!(certifier.lowest_score(x, largest * 1.001 + 1e-9).unwrap() < 0.5);
        }
        let delta = share * largest.max(0.02);
        let lowest = certifier.lowest_score(x, delta).unwrap();
        prop_assert!(lowest <= own);
        let mut rng = Seed(seed).rng();
        for trial in 0..60 {
            let other = moved(&layers, delta, || match trial % 3 {
                0 => rng.random_range(-1.0..1.0),
                1 => if rng.random() { 1.0 } else { -1.0 },
                _ => -1.0 + 2.0 * f64::from(rng.random::<bool>()) * f64::from(rng.random::<bool>()),
            });
            let seen = score(&other, output, x);
            prop_assert!(seen >= lowest, "{} < {}", seen, lowest);
        }
        let seen = score(&worst_corner(&layers, output, x, delta), output, x);
        prop_assert!(seen >= lowest, "{} < {}", seen, lowest);
    }

    #[test]
    fn with_one_hidden_layer_the_lowest_score_is_attained(
        dim in 1..7_usize,
        width in 1..12_usize,
        activation in prop::sample::select(&MONOTONE[..]),
        output in prop::sample::select(&TWO_CLASSES[..]),
        delta in 0.0..0.3_f64,
        seed in any::<u64>(),
    ) {
        let network = shallow(dim, width, activation, output, seed);
        let point = points(1, dim, seed ^ 1);
        let x = point.row(0);
        let attained = score(&worst_network(&network, x, delta), output, x);
        let lowest = IntervalCertifier::new(&network).lowest_score(x, delta).unwrap();
        // Apart from the widening by what rounding may cost.
        prop_assert!(lowest <= attained && attained - lowest < 2e-5, "{} {}", lowest, attained);
    }

    /// The box of the certificate is the box of the change.
    #[test]
    fn what_is_certified_at_delta_holds_for_weight_noise_of_delta(
        dim in 1..6_usize,
        widths in prop::collection::vec(1..8_usize, 0..4),
        activation in crate::support::activations(),
        output in crate::support::outputs(),
        share in 0.05..1.0_f64,
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, activation, output, seed);
        let point = points(1, dim, seed ^ 1);
        let x = point.row(0);
        let certifier = IntervalCertifier::new(&network);
        let largest = certifier.largest_delta(x).unwrap();
        let delta = share * largest.max(0.02);
        let lowest = certifier.lowest_score(x, delta).unwrap();
        let params = TrainParams::paper();
        let plan = Plan {
            examples: Examples::new(&point, &[0]),
            fresh: &[],
            params: &params,
            change: &ModelChange::WeightNoise(WeightNoise { delta }),
            members: 20,
            seed: Seed(seed),
        };
        let go_on = |_: usize, _: &EpochReport| ControlFlow::Continue(());
        let ensemble = Ensemble::train(network, &plan, go_on).unwrap();
        for member in ensemble.members() {
            let seen = score(&exact(member.network().unwrap()), output, x);
            prop_assert!(seen >= lowest, "{} < {}", seen, lowest);
            prop_assert!(share * largest < delta || seen >= 0.5);
        }
    }
}
