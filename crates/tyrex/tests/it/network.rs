//! The network against its definition in double precision, and its gradients against
//! central differences of that definition.

use proptest::prelude::*;
use tyrex::Points;
use tyrex::model::{Activation, Dense, DifferentiableModel, Mlp, Model, Output};

use crate::support::{
    activations, derivative, gradient, logits, network, outputs, points, score, widen,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn scores_logits_and_gradients_follow_the_definition(
        dim in 1..40_usize,
        widths in prop::collection::vec(1..50_usize, 0..4),
        activation in activations(),
        output in outputs(),
        count in 1..60_usize,
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, activation, output, seed);
        let points = points(count, dim, seed ^ 1);
        let (scores, gradients) = network.score_and_gradient(&points);
        prop_assert_eq!(&scores, &network.score(&points));
        let layers = network.layers();
        let all_logits = network.logits(&points);
        let probabilities = network.probabilities(&points);
        for (index, point) in points.rows().enumerate() {
            let x = widen(point);
            let expected = logits(&layers, &x);
            for (class, z) in expected.iter().enumerate() {
                let got = f64::from(all_logits[index * expected.len() + class]);
                prop_assert!((got - z).abs() < 1e-5 * (1.0 + z.abs()), "{} {}", got, z);
            }
            let m = score(output, &expected);
            prop_assert!((f64::from(scores[index]) - m).abs() < 1e-5);
            let classes = expected.len().max(2);
            let total: f32 = probabilities[index * classes..(index + 1) * classes].iter().sum();
            prop_assert!((total - 1.0).abs() < 1e-5);
            for coordinate in 0..dim.min(3) {
                let along = |delta: f64| {
                    let mut moved = x.clone();
                    moved[coordinate] += delta;
                    score(output, &logits(&layers, &moved))
                };
                if let Some(expected) = derivative(along, 1e-4) {
                    let got = f64::from(gradients.row(index)[coordinate]);
                    prop_assert!((got - expected).abs() < 1e-4, "{} {}", got, expected);
                }
            }
        }
    }

    #[test]
    fn the_hessian_is_the_derivative_of_the_gradient(
        dim in 1..20_usize,
        widths in prop::collection::vec(1..40_usize, 0..4),
        activation in activations(),
        output in outputs(),
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, activation, output, seed);
        let layers = network.layers();
        let both = points(2, dim, seed ^ 1);
        let (x, direction) = (widen(both.row(0)), widen(both.row(1)));
        let product = network.hessian_vector(both.row(0), &direction);
        for (coordinate, got) in product.into_iter().enumerate() {
            let along = |step: f64| {
                let moved: Vec<f64> = x.iter().zip(&direction).map(|(x, v)| x + step * v).collect();
                gradient(&layers, output, &moved)[coordinate]
            };
            if let Some(expected) = derivative(along, 1e-3) {
                prop_assert!((got - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{} {}", got, expected);
            }
        }
    }

    #[test]
    fn the_vector_jacobian_product_is_linear_in_its_vector(
        activation in activations(), seed in any::<u64>(), factor in -3.0..3.0_f32,
    ) {
        let network = network(7, &[19, 5], activation, Output::Softmax { favourable: 1 }, seed);
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
    let network =
        network(39, &[128, 128], Activation::Relu, Output::Sigmoid { favourable: true }, 5);
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
    let network = network(4, &[8], Activation::Relu, Output::Sigmoid { favourable: true }, 5);
    let (scores, gradients) = network.score_and_gradient(&Points::new(4));
    assert!(scores.is_empty() && gradients.is_empty());
}

#[test]
fn layers_come_back_as_they_were_given() {
    for widths in [&[][..], &[5], &[17, 33, 16]] {
        let first = network(9, widths, Activation::Tanh, Output::Softmax { favourable: 2 }, 3);
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
