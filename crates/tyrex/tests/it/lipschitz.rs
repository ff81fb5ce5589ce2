//! No slope ever exceeds a bound that calls itself sound.

use proptest::prelude::*;
use tyrex::lipschitz::{Region, Soundness, local, sampled_gradients, sampled_slopes, spectral};
use tyrex::measure::{Neighbourhood, Sampling};
use tyrex::model::{Examples, Model, TrainParams, train};
use tyrex::{Points, Seed};

use crate::support::{activations, network, outputs, points};

/// Pairs of points in the region around `x`, some far from each other and some close.
fn pairs(x: &[f32], region: Region, seed: u64) -> Vec<(Vec<f32>, Vec<f32>)> {
    let dim = x.len();
    let cloud =
        |sampling, sigma| Neighbourhood::draw(sampling, dim, 30, sigma, Seed(seed)).unwrap();
    let inside = match region {
        // The ball of radius sigma sqrt(d + 2), shrunk by rounding's worth.
        Region::Ball { radius } => {
            cloud(Sampling::UniformBall, 0.9999 * radius / (dim as f64 + 2.0).sqrt())
        }
        // Coordinates within two sigma.
        Region::Box { radius } => cloud(Sampling::TruncatedGaussian, 0.4999 * radius),
        Region::Global => cloud(Sampling::MonteCarlo, 2.0),
    };
    let around = inside.around(x);
    let mut result = Vec::new();
    for index in 1..around.len() {
        let (a, b) = (around.row(index - 1).to_vec(), around.row(index).to_vec());
        let near: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + 0.05 * (b - a)).collect();
        result.push((a.clone(), b));
        result.push((a, near));
    }
    result
}

fn steepest(model: &dyn Model, pairs: &[(Vec<f32>, Vec<f32>)]) -> f64 {
    let mut both = Points::new(model.dim());
    for (a, b) in pairs {
        both.push(a);
        both.push(b);
    }
    let scores = model.score(&both);
    pairs
        .iter()
        .zip(scores.chunks_exact(2))
        .map(|((a, b), scores)| {
            let squares = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2));
            let distance = squares.sum::<f64>().sqrt();
            // Single precision can show a difference of one unit where there is none.
            ((f64::from(scores[0]) - f64::from(scores[1])).abs() - 2e-7).max(0.0) / distance
        })
        .fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn sound_bounds_hold_on_random_networks(
        dim in 1..12_usize,
        widths in prop::collection::vec(1..20_usize, 0..4),
        activation in activations(),
        output in outputs(),
        radius in 0.01..1.5_f64,
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, activation, output, seed);
        let point = points(1, dim, seed ^ 1);
        let x = point.row(0);
        let global = spectral(&network);
        prop_assert_eq!(global.soundness, Soundness::Sound);
        for region in [Region::Global, Region::Ball { radius }, Region::Box { radius }] {
            let bound = local(&network, x, region).unwrap();
            prop_assert_eq!((bound.region, bound.soundness), (region, Soundness::Sound));
            let seen = steepest(&network, &pairs(x, region, seed));
            prop_assert!(seen <= bound.value, "{:?}: {} > {}", region, seen, bound.value);
            prop_assert!(seen <= global.value);
        }
        let cloud = Neighbourhood::draw(Sampling::UniformBall, dim, 20, 0.1, Seed(seed)).unwrap();
        let slopes = sampled_slopes(&network, x, &cloud);
        let gradients = sampled_gradients(&network, x, &cloud);
        // Scores are in single precision: two equal ones may differ by a unit in the last
        // place, and between close neighbours even that is a slope.
        let nearest = cloud.distances().iter().copied().fold(f64::INFINITY, f64::min);
        let rounding = 1e-5 + 2e-7 / nearest;
        for estimate in [slopes, gradients] {
            prop_assert_eq!(estimate.soundness, Soundness::Estimate);
            let bound = local(&network, x, estimate.region).unwrap();
            prop_assert!(estimate.value <= global.value + rounding);
            prop_assert!(estimate.value <= bound.value + rounding);
        }
    }
}

#[test]
fn local_bounds_tighten_as_the_region_shrinks_and_meet_the_gradient() {
    let output = tyrex::model::Output::Sigmoid { favourable: true };
    let network = network(8, &[30, 30], tyrex::model::Activation::Tanh, output, 3);
    let point = points(1, 8, 4);
    let values: Vec<f64> = [1.0, 0.3, 0.1, 0.01, 1e-6]
        .map(|radius| local(&network, point.row(0), Region::Ball { radius }).unwrap().value)
        .to_vec();
    assert!(values.windows(2).all(|pair| pair[0] > pair[1]), "{values:?}");
    let cloud = Neighbourhood::draw(Sampling::MonteCarlo, 8, 10, 1e-6, Seed(0)).unwrap();
    let gradient = sampled_gradients(&network, point.row(0), &cloud).value;
    assert!((values[4] / gradient - 1.0).abs() < 1e-3, "{} {gradient}", values[4]);
}

#[test]
fn sound_bounds_hold_on_trained_networks() {
    let points = points(400, 5, 7);
    let labels: Vec<u32> = points.rows().map(|x| u32::from(x[0] * x[1] + x[2] > 0.1)).collect();
    let params = TrainParams { hidden: vec![32, 32], epochs: 30, ..TrainParams::paper() };
    for seed in 0..5 {
        let network = train(Examples::new(&points, &labels), &params, Seed(seed)).unwrap().network;
        let global = spectral(&network).value;
        for index in 0..40 {
            let x = points.row(index);
            let region = Region::Ball { radius: 0.2 };
            let bound = local(&network, x, region).unwrap().value;
            let seen = steepest(&network, &pairs(x, region, seed));
            assert!(seen <= bound && seen <= global, "{seen} {bound} {global}");
        }
    }
}

#[test]
fn no_bound_is_given_where_none_can_be() {
    let output = tyrex::model::Output::Sigmoid { favourable: true };
    let network = network(2, &[4], tyrex::model::Activation::Relu, output, 3);
    let refusal =
        |x: &[f32], radius| local(&network, x, Region::Ball { radius }).unwrap_err().to_string();
    assert_eq!(
        refusal(&[0.0, 0.0], -1.0),
        "parameter `radius` is -1, expected a finite number of at least 0"
    );
    assert_eq!(refusal(&[0.0, f32::NAN], 0.1), "parameter `x` is NaN, expected finite coordinates");
    assert_eq!(refusal(&[0.0], 0.1), "coordinates of the point: expected 2, got 1");
}
