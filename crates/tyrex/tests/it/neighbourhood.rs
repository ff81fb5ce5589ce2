//! Neighbourhoods: the moments they say they have, and how well they cover.

use tyrex::data::catalogue::{Catalogue, Direction, Variant};
use tyrex::measure::{Gauge, RelaxedStability};
use tyrex::model::{Activation, Examples, Mlp, Model as _, Output, TrainParams, train};
use tyrex::neighbourhood::{Neighbourhood, Sampling};
use tyrex::{Points, Seed};

use crate::support::{network, points};

#[test]
fn every_sampling_has_the_moments_it_says() {
    let (dim, samples, sigma) = (5, 40_000, 0.3);
    for (sampling, variance) in [
        (Sampling::MonteCarlo, 1.0),
        (Sampling::Antithetic, 1.0),
        (Sampling::Orthogonal, 1.0),
        (Sampling::Sobol, 1.0),
        // Var of N(0, 1) given |n| <= 2: 1 - 4 phi(2) / (2 Phi(2) - 1)
        (Sampling::TruncatedGaussian, 0.773_741),
        (Sampling::UniformBall, 1.0),
    ] {
        let cloud = Neighbourhood::draw(sampling, dim, samples, sigma, Seed(3)).unwrap();
        assert_eq!(cloud.samples(), samples);
        for i in 0..dim {
            let mean: f64 =
                cloud.offsets().rows().map(|n| f64::from(n[i])).sum::<f64>() / samples as f64;
            // Five standard errors of a mean of independent draws.
            assert!(mean.abs() < 5.0 * sigma / (samples as f64).sqrt(), "{sampling:?}");
            for j in 0..=i {
                let product = |n: &[f32]| f64::from(n[i]) * f64::from(n[j]);
                let got = cloud.offsets().rows().map(product).sum::<f64>() / samples as f64;
                let expected = if i == j { variance } else { 0.0 };
                assert!(
                    (got / sigma.powi(2) - expected).abs() < 0.04,
                    "{sampling:?} {i} {j} {got}"
                );
            }
        }
        let longest = cloud.distances().iter().copied().fold(0.0, f64::max);
        match sampling {
            Sampling::UniformBall => assert!(longest <= sigma * 7.0_f64.sqrt() + 1e-6),
            Sampling::TruncatedGaussian => assert!(longest <= 2.0 * sigma * 5.0_f64.sqrt() + 1e-6),
            _ => assert!(longest > sigma * 3.5),
        }
    }
}

#[test]
fn even_coverings_estimate_better_than_independent_draws() {
    let network =
        network(20, &[32, 32], Activation::Relu, Output::Sigmoid { favourable: true }, 11);
    let points = points(4, 20, 12);
    let read = |sampling, samples, seed| -> Vec<f64> {
        let cloud = Neighbourhood::draw(sampling, 20, samples, 0.3, Seed(seed)).unwrap();
        let gauge = Gauge::new(RelaxedStability {}, &network, &cloud).unwrap();
        gauge.read(&points).iter().map(|reading| reading.value).collect()
    };
    let truth = read(Sampling::Sobol, 1 << 15, 0);
    let error = |sampling| {
        let squares = (1..40).flat_map(|seed| {
            let got = read(sampling, 256, seed);
            got.into_iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).collect::<Vec<_>>()
        });
        (squares.sum::<f64>() / (39.0 * 4.0)).sqrt()
    };
    let independent = error(Sampling::MonteCarlo);
    for sampling in [Sampling::Antithetic, Sampling::Orthogonal, Sampling::Sobol] {
        let even = error(sampling);
        assert!(even < 0.85 * independent, "{sampling:?}: {even} against {independent}");
    }
}

#[test]
fn a_rotation_turns_the_offsets() {
    let quarter = [0.0, 1.0, -1.0, 0.0];
    let draw =
        |rotation| Neighbourhood::rotated(Sampling::Sobol, 2, 8, 0.5, rotation, Seed(1)).unwrap();
    let (plain, turned) = (draw(None), draw(Some(&quarter[..])));
    for (a, b) in plain.offsets().rows().zip(turned.offsets().rows()) {
        assert_eq!([a[0], a[1]], [b[1], -b[0]]);
    }
}

/// Relaxed stability of some points, each time with other offsets.
fn readings(
    network: &Mlp,
    points: &Points,
    sampling: Sampling,
    samples: usize,
    seed: u64,
) -> Vec<f64> {
    let cloud = Neighbourhood::for_model(sampling, network, samples, 0.1, Seed(seed)).unwrap();
    let gauge = Gauge::new(RelaxedStability {}, network, &cloud).unwrap();
    gauge.read(points).iter().map(|reading| reading.value).collect()
}

/// 256 Sobol points, turned towards the network, are as good as 1000 independent ones.
#[test]
fn turned_sobol_points_save_three_quarters_of_the_samples() {
    let catalogue = Catalogue::new(None);
    for (name, variant) in [("moons", Variant::Product), ("german", Variant::Reference)] {
        let dataset = catalogue.load(name, variant, Direction::Favourable).unwrap();
        let rows = dataset.points().select(dataset.train());
        let labels: Vec<u32> =
            dataset.train().iter().map(|&row| u32::from(dataset.labels()[row])).collect();
        let params = TrainParams { epochs: 20, ..TrainParams::paper() };
        let network = train(Examples::new(&rows, &labels), &params, Seed(1)).unwrap().network;
        let points = dataset.points().select(&dataset.test()[..8]);
        let turned = Neighbourhood::for_model(Sampling::Sobol, &network, 64, 0.1, Seed(9)).unwrap();
        let plain = Neighbourhood::draw(Sampling::Sobol, network.dim(), 64, 0.1, Seed(9)).unwrap();
        assert_ne!(turned, plain, "{name}: the network turns them");
        for (a, b) in turned.distances().iter().zip(plain.distances()) {
            assert!((a - b).abs() < 1e-6 * b, "{name}: a rotation keeps lengths");
        }
        let truth = readings(&network, &points, Sampling::Sobol, 1 << 14, 0);
        let error = |sampling, samples| {
            let squares = (1..=20_u64).flat_map(|seed| {
                let got = readings(&network, &points, sampling, samples, seed);
                got.into_iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).collect::<Vec<_>>()
            });
            (squares.sum::<f64>() / (20.0 * points.len() as f64)).sqrt()
        };
        let independent = error(Sampling::MonteCarlo, 1000);
        let sobol = error(Sampling::Sobol, 256);
        assert!(sobol <= independent, "{name}: {sobol} against {independent}");
    }
}

#[test]
fn turned_offsets_keep_their_moments() {
    let (dim, samples, sigma) = (6, 1 << 14, 0.2);
    let output = Output::Softmax { favourable: 1 };
    let network = network(dim, &[9, 7], Activation::Tanh, output, 3);
    let cloud =
        Neighbourhood::for_model(Sampling::Sobol, &network, samples, sigma, Seed(2)).unwrap();
    for i in 0..dim {
        let mean: f64 = cloud.offsets().rows().map(|n| f64::from(n[i])).sum::<f64>();
        assert!((mean / samples as f64).abs() < 1e-3 * sigma);
        for j in 0..=i {
            let product = |n: &[f32]| f64::from(n[i]) * f64::from(n[j]);
            let got = cloud.offsets().rows().map(product).sum::<f64>() / samples as f64;
            let expected = if i == j { 1.0 } else { 0.0 };
            assert!((got / sigma.powi(2) - expected).abs() < 5e-3, "{i} {j} {got}");
        }
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let draw = |samples, sigma| {
        Neighbourhood::draw(Sampling::MonteCarlo, 3, samples, sigma, Seed(0))
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(draw(0, 0.1), "parameter `k` is 0, expected at least 1 sample");
    assert_eq!(
        draw(usize::MAX, 0.1),
        format!(
            "parameter `k` is {}, expected at most 1048576 samples of 3 coordinates",
            usize::MAX
        )
    );
    assert_eq!(
        draw(5, 0.0),
        "parameter `sigma` is 0, expected a positive number from 1e-30 to 1e30"
    );
    assert_eq!(
        draw(5, f64::NAN),
        "parameter `sigma` is NaN, expected a positive number from 1e-30 to 1e30"
    );
    let many = Neighbourhood::draw(Sampling::Sobol, 1000, 4, 0.1, Seed(0)).unwrap_err();
    assert!(many.to_string().contains("use orthogonal"), "{many}");
    let given = |offsets: &[f32]| {
        let offsets = Points::from_rows(2, offsets.to_vec()).unwrap();
        Neighbourhood::given(offsets).map(|cloud| cloud.sigma()).map_err(|error| error.to_string())
    };
    assert_eq!(given(&[3.0, 4.0, 0.0, -5.0]), Ok(12.5_f64.sqrt()));
    assert_eq!(given(&[]).unwrap_err(), "parameter `k` is 0, expected at least 1 sample");
    for (offset, length) in
        [([0.0, 0.0], "0"), ([f32::NAN, 1.0], "NaN"), ([f32::INFINITY, 1.0], "inf")]
    {
        assert_eq!(
            given(&offset).unwrap_err(),
            format!(
                "parameter `offsets` is one of length {length}, expected offsets that are finite and not zero"
            )
        );
    }
}
