//! The network against its definition in double precision, and its gradients against
//! central differences of that definition.

use proptest::prelude::*;
use rand::RngExt;
use tyrex::model::{Activation, Dense, DifferentiableModel, Mlp, Model, Output};
use tyrex::{Points, Seed};

fn activation(name: usize, z: f64) -> f64 {
    let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
    match ACTIVATIONS[name] {
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

const ACTIVATIONS: [Activation; 10] = [
    Activation::Identity,
    Activation::Relu,
    Activation::LeakyRelu { slope: 0.2 },
    Activation::Elu { alpha: 1.3 },
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::Softplus,
    Activation::Silu,
];

/// A random network and the name of its activation.
fn network(dim: usize, widths: &[usize], name: usize, output: Output, seed: u64) -> Mlp {
    let mut rng = Seed(seed).rng();
    let classes = match output {
        Output::Sigmoid { .. } => 1,
        Output::Softmax { .. } => 3,
    };
    let mut inputs = dim;
    let mut layers = Vec::new();
    for (index, &outputs) in widths.iter().chain([&classes]).enumerate() {
        let scale = 1.5 / (inputs as f32).sqrt();
        layers.push(Dense {
            weights: (0..inputs * outputs).map(|_| rng.random_range(-scale..scale)).collect(),
            bias: (0..outputs).map(|_| rng.random_range(-0.5..0.5)).collect(),
            activation: if index == widths.len() {
                Activation::Identity
            } else {
                ACTIVATIONS[name]
            },
        });
        inputs = outputs;
    }
    Mlp::new(dim, &layers, output).unwrap()
}

/// The logits by the definition, one multiplication at a time.
fn logits(network: &Mlp, name: usize, x: &[f64]) -> Vec<f64> {
    let layers = network.layers();
    let mut values = x.to_vec();
    for (index, layer) in layers.iter().enumerate() {
        let outputs = layer.bias.len();
        values = (0..outputs)
            .map(|j| {
                let weights = layer.weights.chunks_exact(outputs).map(|row| f64::from(row[j]));
                let sum: f64 = values.iter().zip(weights).map(|(v, w)| v * w).sum();
                let sum = sum + f64::from(layer.bias[j]);
                if index + 1 == layers.len() { sum } else { activation(name, sum) }
            })
            .collect();
    }
    values
}

fn score(output: Output, logits: &[f64]) -> f64 {
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

fn points(count: usize, dim: usize, seed: u64) -> Points {
    let mut rng = Seed(seed).rng();
    Points::from_rows(dim, (0..count * dim).map(|_| rng.random_range(-1.0..1.0)).collect()).unwrap()
}

fn outputs() -> impl Strategy<Value = Output> {
    prop_oneof![
        any::<bool>().prop_map(|favourable| Output::Sigmoid { favourable }),
        (0..3_usize).prop_map(|favourable| Output::Softmax { favourable }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn scores_logits_and_gradients_follow_the_definition(
        dim in 1..40_usize,
        widths in prop::collection::vec(1..50_usize, 0..4),
        name in 0..ACTIVATIONS.len(),
        output in outputs(),
        count in 1..60_usize,
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, name, output, seed);
        let points = points(count, dim, seed ^ 1);
        let (scores, gradients) = network.score_and_gradient(&points);
        prop_assert_eq!(&scores, &network.score(&points));
        let all_logits = network.logits(&points);
        let probabilities = network.probabilities(&points);
        for (index, point) in points.rows().enumerate() {
            let x: Vec<f64> = point.iter().map(|&v| f64::from(v)).collect();
            let expected = logits(&network, name, &x);
            for (class, z) in expected.iter().enumerate() {
                let got = f64::from(all_logits[index * expected.len() + class]);
                prop_assert!((got - z).abs() < 1e-5 * (1.0 + z.abs()), "{} {}", got, z);
            }
            let m = score(output, &expected);
            prop_assert!((f64::from(scores[index]) - m).abs() < 1e-5);
            let classes = expected.len().max(2);
            let total: f32 = probabilities[index * classes..(index + 1) * classes].iter().sum();
            prop_assert!((total - 1.0).abs() < 1e-5);
            // Central differences of the definition; a kink of ReLU within the step is
            // avoided by asking both one-sided differences to agree first.
            for coordinate in 0..dim.min(3) {
                let h = 1e-5;
                let at = |delta: f64| {
                    let mut moved = x.clone();
                    moved[coordinate] += delta;
                    score(output, &logits(&network, name, &moved))
                };
                let (up, down) = ((at(h) - m) / h, (m - at(-h)) / h);
                if (up - down).abs() < 1e-4 {
                    let got = f64::from(gradients.row(index)[coordinate]);
                    prop_assert!((got - (up + down) / 2.0).abs() < 1e-4, "{} {} {}", got, up, down);
                }
            }
        }
    }

    #[test]
    fn the_vector_jacobian_product_is_linear_in_its_vector(
        name in 0..ACTIVATIONS.len(), seed in any::<u64>(), factor in -3.0..3.0_f32,
    ) {
        let network = network(7, &[19, 5], name, Output::Softmax { favourable: 1 }, seed);
        let points = points(50, 7, seed ^ 1);
        let ones = vec![1.0; 50 * 3];
        let scaled: Vec<f32> = ones.iter().map(|v| v * factor).collect();
        let (a, b) = (network.logits_vjp(&points, &ones), network.logits_vjp(&points, &scaled));
        for (a, b) in a.as_slice().iter().zip(b.as_slice()) {
            prop_assert!((a * factor - b).abs() < 1e-4 * (1.0 + b.abs()));
        }
    }
}

#[test]
fn a_point_scores_the_same_alone_and_among_many() {
    let network = network(39, &[128, 128], 1, Output::Sigmoid { favourable: true }, 5);
    let points = points(3000, 39, 6);
    let (together, gradients) = network.score_and_gradient(&points);
    for index in [0, 1, 47, 48, 49, 2047, 2999] {
        let alone = Points::from_rows(39, points.row(index).to_vec()).unwrap();
        let (score, gradient) = network.score_and_gradient(&alone);
        assert_eq!(score[0].to_bits(), together[index].to_bits());
        assert_eq!(gradient.row(0), gradients.row(index));
    }
}

#[test]
fn no_points_is_not_a_problem() {
    let network = network(4, &[8], 1, Output::Sigmoid { favourable: true }, 5);
    let (scores, gradients) = network.score_and_gradient(&Points::new(4));
    assert!(scores.is_empty() && gradients.is_empty());
}

#[test]
fn layers_come_back_as_they_were_given() {
    for widths in [&[][..], &[5], &[17, 33, 16]] {
        let first = network(9, widths, 6, Output::Softmax { favourable: 2 }, 3);
        let again = Mlp::new(9, &first.layers(), first.output()).unwrap();
        assert_eq!(first, again);
    }
}

#[test]
fn a_network_that_does_not_fit_together_is_refused() {
    let dense = |weights: usize, bias: usize, activation| Dense {
        weights: vec![0.5; weights],
        bias: vec![0.0; bias],
        activation,
    };
    let sigmoid = Output::Sigmoid { favourable: true };
    let identity = Activation::Identity;
    let cases: [(usize, Vec<Dense>, Output, &str); 8] = [
        (3, vec![], sigmoid, "model: a network needs at least one layer"),
        (0, vec![dense(0, 1, identity)], sigmoid, "model: layer 0 has no inputs or no outputs"),
        (
            3,
            vec![dense(7, 2, Activation::Relu), dense(2, 1, identity)],
            sigmoid,
            "weights of layer 0 (3 inputs, 2 outputs): expected 6, got 7",
        ),
        (3, vec![dense(6, 2, identity)], sigmoid, "logits of a sigmoid output: expected 1, got 2"),
        (
            3,
            vec![dense(6, 2, identity)],
            Output::Softmax { favourable: 2 },
            "model: a softmax needs at least two logits and a favourable class among them; there \
             are 2, and the favourable class is number 2",
        ),
        (
            3,
            vec![dense(3, 1, Activation::Relu)],
            sigmoid,
            "model: the last layer makes the logits, so its activation must be the identity, not \
             Relu",
        ),
        (
            1,
            vec![Dense { weights: vec![f32::NAN], bias: vec![0.0], activation: identity }],
            sigmoid,
            "model: layer 0 has a weight that is not finite",
        ),
        (
            1,
            vec![dense(1, 1, Activation::Elu { alpha: f32::INFINITY }), dense(1, 1, identity)],
            sigmoid,
            "model: layer 0: Elu { alpha: inf } has a parameter that is not finite",
        ),
    ];
    for (dim, layers, output, message) in cases {
        assert_eq!(Mlp::new(dim, &layers, output).unwrap_err().to_string(), message);
    }
}
