//! Metrics against scikit-learn's and scipy's, and against the laws they must obey.
//!
//! `golden/make_metrics.py` made the numbers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;
use serde::Deserialize;

use super::cost::MedianDeviations;
use super::density::Density;
use super::isolation::IsolationForest;
use super::lof::{LocalOutlierFactor, is_inlier};
use super::mahalanobis::Mahalanobis;
use super::neighbours::{NeighbourIndex, mean_distance};
use super::{MetricParams, Metrics, PointMetrics, Summary};
use crate::points::Points;
use crate::seed::Seed;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    training: Vec<Vec<f32>>,
    points: Vec<Vec<f32>>,
    outlier: BTreeMap<usize, Outlier>,
    neighbour_distances: Vec<f64>,
    mahalanobis: Vec<f64>,
    rank: usize,
    bandwidth: f64,
    log_densities: Vec<f64>,
    median_deviations: Vec<f64>,
}

#[derive(Deserialize)]
struct Outlier {
    factors: Vec<f64>,
    verdicts: Vec<i8>,
}

fn golden() -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/metrics.json");
    let golden: Golden = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(golden.cases.len() >= 8);
    golden.cases
}

fn points(rows: &[Vec<f32>]) -> Points {
    Points::from_rows(rows[0].len(), rows.concat()).unwrap()
}

/// Within `tolerance` of the expected number, relative to it where it is large.
#[track_caller]
fn close(got: f64, expected: f64, tolerance: f64, what: &str) {
    let allowed = tolerance * expected.abs().max(1.0);
    assert!((got - expected).abs() <= allowed, "{what}: {got}, not {expected}");
}

#[test]
fn outlier_factors_are_scikit_learns() {
    for case in golden() {
        // One index, made for the most neighbours, serves all.
        let index = NeighbourIndex::fit(&points(&case.training), 20).unwrap();
        assert_eq!(case.outlier.keys().copied().collect::<Vec<_>>(), [1, 5, 20]);
        for (&count, expected) in &case.outlier {
            let model = LocalOutlierFactor::new(&index, count).unwrap();
            let factors = model.of(&points(&case.points)).unwrap();
            assert_eq!(factors.len(), expected.factors.len());
            for (at, (&got, &factor)) in factors.iter().zip(&expected.factors).enumerate() {
                close(got, factor, 1e-6, &format!("{}, {count} neighbours, {at}", case.name));
                let verdict = if is_inlier(got) { 1 } else { -1 };
                assert_eq!(verdict, expected.verdicts[at], "{}, {count}, {at}", case.name);
            }
        }
    }
}

#[test]
fn the_other_plausibility_metrics_are_scikit_learns() {
    for case in golden() {
        let (training, queries) = (points(&case.training), points(&case.points));
        let near = 5.min(training.len() - 1);
        let nearest = NeighbourIndex::fit(&training, 20).unwrap().nearest(&queries).unwrap();
        let mahalanobis = Mahalanobis::fit(&training).unwrap();
        assert_eq!(mahalanobis.rank(), case.rank, "{}", case.name);
        let offsets = mahalanobis.of(&queries).unwrap();
        let density = Density::fit(&training).unwrap();
        close(density.bandwidth(), case.bandwidth, 1e-12, &case.name);
        let densities = density.logarithms(&queries).unwrap();
        for at in 0..queries.len() {
            let what = format!("{}, {at}", case.name);
            close(mean_distance(&nearest[at][..near]), case.neighbour_distances[at], 1e-7, &what);
            close(offsets[at].distance, case.mahalanobis[at], 1e-6, &what);
            close(densities[at], case.log_densities[at], 1e-9, &what);
        }
        let deviations = MedianDeviations::fit(&training).unwrap();
        for (got, &expected) in deviations.scales().iter().zip(&case.median_deviations) {
            if expected > 0.0 {
                close(*got, expected, 1e-12, &case.name);
            } else {
                assert!(*got > 0.0, "{}", case.name);
            }
        }
    }
}

#[test]
fn all_at_once_are_the_parts_one_by_one() {
    for case in golden() {
        let (training, queries) = (points(&case.training), points(&case.points));
        let metrics = Metrics::fit(&training, &MetricParams::default()).unwrap();
        let all = metrics.of(&queries, &queries).unwrap();
        for (at, got) in all.iter().enumerate() {
            let expected: Vec<f64> = case.outlier.values().map(|each| each.factors[at]).collect();
            for (got, expected) in got.outlier_factors.iter().zip(&expected) {
                close(*got, *expected, 1e-6, &case.name);
            }
            assert_eq!(got.inlier.len(), 3);
            // The factual itself: nothing changes.
            assert_eq!((got.cost_l1, got.cost_l2, got.cost_mad), (0.0, 0.0, 0.0));
            assert_eq!((got.changed_columns, got.changed_features), (0, None));
            close(got.log_density, case.log_densities[at], 1e-9, &case.name);
            close(got.mahalanobis, case.mahalanobis[at], 1e-6, &case.name);
            let forest = IsolationForest::fit(&training, Seed(0)).unwrap();
            assert_eq!(got.isolation, Some(forest.of(&queries).unwrap()[at]));
            // One point alone is judged as it is among others.
            let alone = points(&case.points[at..=at]);
            assert_eq!(metrics.of(&alone, &alone).unwrap(), std::slice::from_ref(got));
        }
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Vec<PointMetrics>>(&text).unwrap(), all);
    }
}

#[test]
fn a_change_is_counted_by_columns_and_by_features() {
    let training = Points::from_rows(4, vec![0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]).unwrap();
    let params = MetricParams { features: vec![0..1, 1..4], ..MetricParams::default() };
    let metrics = Metrics::fit(&training, &params).unwrap();
    let factual = Points::from_rows(4, vec![0.0, 1.0, 0.0, 0.0]).unwrap();
    for (point, l1, l2, columns, features) in [
        ([0.0, 1.0, 0.0, 0.0], 0.0, 0.0, 0, 0),
        ([0.0, 1.0, 0.0, 0.000_05], 0.000_05, 0.000_05, 0, 0),
        ([0.0, 0.0, 1.0, 0.0], 2.0, 2.0_f64.sqrt(), 2, 1),
        ([3.0, 0.0, 0.0, 1.0], 5.0, 11.0_f64.sqrt(), 3, 2),
        ([1.0, 0.0, 1.0, 1.0], 4.0, 2.0, 4, 2),
    ] {
        let point = Points::from_rows(4, point.to_vec()).unwrap();
        let got = &metrics.of(&factual, &point).unwrap()[0];
        close(got.cost_l1, l1, 1e-9, "L1");
        close(got.cost_l2, l2, 1e-9, "L2");
        assert_eq!((got.changed_columns, got.changed_features), (columns, Some(features)));
    }
}

#[test]
fn bad_input_is_an_error() {
    let two = Points::from_rows(2, vec![0.0, 0.0, 1.0, 1.0]).unwrap();
    let one = Points::from_rows(2, vec![0.0, 0.0]).unwrap();
    let same = Points::from_rows(2, vec![0.5; 6]).unwrap();
    let broken = Points::from_rows(2, vec![0.0, f32::NAN, 1.0, 1.0]).unwrap();
    let default = MetricParams::default();
    let fails = |training: &Points, params: &MetricParams, said: &str| {
        let error = Metrics::fit(training, params).unwrap_err().to_string();
        assert!(error.contains(said), "{error}, not {said}");
    };
    fails(&one, &default, "`training points` is 1, expected at least 2");
    fails(&Points::new(2), &default, "`training points` is 0");
    fails(&Points::new(0), &default, "`training points` is 0");
    fails(&same, &default, "all the same");
    fails(&broken, &default, "`training point` is number 0, expected finite");
    let with_feature =
        |columns: Range<usize>| MetricParams { features: [columns].into(), ..default.clone() };
    for (params, said) in [
        (MetricParams { outlier_neighbours: vec![5, 0], ..default.clone() }, "`neighbours` is 0"),
        (MetricParams { distance_neighbours: 0, ..default.clone() }, "`neighbours` is 0"),
        (MetricParams { bandwidth: Some(0.0), ..default.clone() }, "`bandwidth` is 0"),
        (MetricParams { bandwidth: Some(f64::NAN), ..default.clone() }, "`bandwidth` is NaN"),
        (MetricParams { tolerance: -1.0, ..default.clone() }, "`tolerance` is -1"),
        (MetricParams { tolerance: f64::NAN, ..default.clone() }, "`tolerance` is NaN"),
        (with_feature(0..3), "`feature` is columns 0..3"),
        (with_feature(1..1), "`feature` is columns 1..1"),
    ] {
        fails(&two, &params, said);
    }
    let metrics = Metrics::fit(&two, &default).unwrap();
    let three = Points::from_rows(3, vec![0.0; 6]).unwrap();
    for (factuals, counterfactuals, said) in [
        (&two, &three, "expected 2, got 3"),
        (&three, &two, "expected 2, got 3"),
        (&two, &one, "one for each factual: expected 2, got 1"),
        (&two, &broken, "`point` is number 0"),
        (&broken, &two, "`point` is number 0"),
    ] {
        let error = metrics.of(factuals, counterfactuals).unwrap_err().to_string();
        assert!(error.contains(said), "{error}, not {said}");
    }
    assert_eq!(metrics.of(&Points::new(2), &Points::new(2)).unwrap(), []);
    let index = NeighbourIndex::fit(&points(&vec![vec![0.0]; 9]), 3).unwrap();
    for wrong in [0, 4, 20] {
        assert!(LocalOutlierFactor::new(&index, wrong).is_err(), "{wrong}");
    }
    assert!(NeighbourIndex::fit(&two, 0).is_err());
}

/// Some training points and some others, of the same dimension. Coordinates from a coarse grid
/// make duplicates and ties.
fn clouds(coarse: bool) -> impl Strategy<Value = (Points, Points)> {
    (1..20_usize, 2..60_usize, 1..6_usize).prop_flat_map(move |(dim, training, others)| {
        let number = move || {
            if coarse { (-3..3_i8).prop_map(f32::from).boxed() } else { (-3.0..3.0_f32).boxed() }
        };
        let cloud = move |len: usize| {
            prop::collection::vec(number(), dim * len)
                .prop_map(move |values| Points::from_rows(dim, values).unwrap())
        };
        (cloud(training), cloud(others))
    })
}

/// The points after `x -> scale x + shift`, exactly if both are powers of two of fair size.
fn moved(points: &Points, scale: f32, shift: f32) -> Points {
    let values = points.as_slice().iter().map(|x| scale * x + shift).collect();
    Points::from_rows(points.dim(), values).unwrap()
}

fn factors(training: &Points, others: &Points, count: usize) -> Vec<f64> {
    let index = NeighbourIndex::fit(training, count).unwrap();
    LocalOutlierFactor::new(&index, count).unwrap().of(others).unwrap()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let gaps = a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b));
    gaps.map(|gap| gap * gap).sum::<f64>().sqrt()
}

/// The definition, read literally.
fn defined_factors(training: &Points, others: &Points, count: usize) -> Vec<f64> {
    let k = count.min(training.len() - 1);
    let nearest = |from: &[f32], own: Option<usize>| {
        let mut found: Vec<(f64, usize)> = (0..training.len())
            .filter(|&i| Some(i) != own)
            .map(|i| (distance(training.row(i), from), i))
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        found.truncate(k);
        found
    };
    let of_training: Vec<Vec<(f64, usize)>> =
        (0..training.len()).map(|i| nearest(training.row(i), Some(i))).collect();
    let density = |nearest: &[(f64, usize)]| {
        let reach = nearest.iter().map(|&(distance, i)| distance.max(of_training[i][k - 1].0));
        1.0 / (reach.sum::<f64>() / k as f64 + 1e-10)
    };
    let factor = |point: &[f32]| {
        let around = nearest(point, None);
        let neighbours = around.iter().map(|&(_, i)| density(&of_training[i]));
        neighbours.sum::<f64>() / k as f64 / density(&around)
    };
    others.rows().map(factor).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn outlier_factors_are_as_defined(
        (training, others) in prop_oneof![clouds(false), clouds(true)],
        count in 1..25_usize,
    ) {
        let got = factors(&training, &others, count);
        for (got, expected) in got.iter().zip(defined_factors(&training, &others, count)) {
            prop_assert!((got - expected).abs() <= 1e-9 * expected, "{got}, not {expected}");
        }
    }

    #[test]
    fn outlier_factors_do_not_depend_on_scale_or_place(
        (training, others) in clouds(false),
        count in 1..25_usize,
        power in -6..6_i32,
        shift in -2.0..2.0_f32,
    ) {
        let before = factors(&training, &others, count);
        let scale = 2.0_f32.powi(power);
        let scaled = factors(&moved(&training, scale, 0.0), &moved(&others, scale, 0.0), count);
        let shifted = factors(&moved(&training, 1.0, shift), &moved(&others, 1.0, shift), count);
        for ((before, scaled), shifted) in before.iter().zip(scaled).zip(shifted) {
            // The guard of 1e-10 has a scale of its own, and a shift rounds coordinates.
            prop_assert!((before - scaled).abs() <= 1e-6 * before, "{before}, {scaled}");
            prop_assert!((before - shifted).abs() <= 1e-3 * before, "{before}, {shifted}");
        }
    }

    #[test]
    fn neighbours_are_the_nearest(
        (training, others) in prop_oneof![clouds(false), clouds(true)],
        count in 1..25_usize,
        scale in prop_oneof![Just(1.0_f32), Just(1e-25), Just(1e25)],
    ) {
        // Squares of the tiny and the huge are beyond single precision.
        let (training, others) = (moved(&training, scale, 0.0), moved(&others, scale, 0.0));
        let index = NeighbourIndex::fit(&training, count).unwrap();
        for (point, nearest) in others.rows().zip(index.nearest(&others).unwrap()) {
            let mut all: Vec<(f64, usize)> = training
                .rows()
                .enumerate()
                .map(|(i, row)| (distance(row, point), i))
                .collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let got: Vec<(f64, usize)> = nearest.iter().map(|n| (n.distance, n.index)).collect();
            prop_assert_eq!(&got[..], &all[..count.min(training.len() - 1)]);
        }
    }

    #[test]
    fn the_deviations_cost_does_not_depend_on_scale_or_place(
        (training, others) in prop_oneof![clouds(false), clouds(true)],
        power in -6..6_i32,
    ) {
        let scale = 2.0_f32.powi(power);
        let cost = |training: &Points, others: &Points| {
            let deviations = MedianDeviations::fit(training).unwrap();
            deviations.distance(training.row(0), others.row(0)).unwrap()
        };
        let varies = (0..training.dim())
            .all(|column| training.rows().any(|row| row[column] != training.row(0)[column]));
        prop_assume!(varies);
        let before = cost(&training, &others);
        let after = cost(&moved(&training, scale, 0.0), &moved(&others, scale, 0.0));
        prop_assert!((before - after).abs() <= 1e-9 * before.max(1.0), "{before}, {after}");
        // A shift rounds single precision at 1e-6, which a scale must not be near.
        let scales = MedianDeviations::fit(&training).unwrap();
        prop_assume!(scales.scales().iter().all(|scale| *scale > 0.02));
        let shifted = cost(&moved(&training, 1.0, 8.0), &moved(&others, 1.0, 8.0));
        prop_assert!((before - shifted).abs() <= 1e-3 * before.max(1.0), "{before}, {shifted}");
    }

    #[test]
    fn mahalanobis_and_density_follow_the_scale((training, others) in clouds(false)) {
        let (double, far) = (moved(&training, 2.0, 0.0), moved(&others, 2.0, 0.0));
        let offsets = |training, others| Mahalanobis::fit(training).unwrap().of(others).unwrap();
        for (a, b) in offsets(&training, &others).iter().zip(offsets(&double, &far)) {
            prop_assert!((a.distance - b.distance).abs() <= 1e-6 * a.distance.max(1.0));
            prop_assert!((2.0 * a.outside - b.outside).abs() <= 1e-6 * b.outside.max(1.0));
        }
        // The mean of the squares over the training points is the rank.
        let model = Mahalanobis::fit(&training).unwrap();
        let squares = model.of(&training).unwrap();
        let mean = squares.iter().map(|offset| offset.distance.powi(2)).sum::<f64>()
            / training.len() as f64;
        prop_assert!((mean - model.rank() as f64).abs() < 1e-6 * model.rank() as f64, "{mean}");
        let densities = |training, others| {
            Density::fit(training).unwrap().logarithms(others).unwrap()
        };
        let per_doubling = training.dim() as f64 * std::f64::consts::LN_2;
        for (a, b) in densities(&training, &others).iter().zip(densities(&double, &far)) {
            prop_assert!((a - per_doubling - b).abs() < 1e-9 * a.abs().max(1.0), "{a}, {b}");
        }
    }

    #[test]
    fn metrics_are_numbers(
        (training, others) in prop_oneof![clouds(false), clouds(true)],
        scale in prop_oneof![Just(1.0_f32), Just(1e-30), Just(1e37)],
    ) {
        let (training, others) = (moved(&training, scale, 0.0), moved(&others, scale, 0.0));
        prop_assume!(training.rows().any(|row| row != training.row(0)));
        let metrics = Metrics::fit(&training, &MetricParams::default()).unwrap();
        for got in metrics.of(&others, &others).unwrap() {
            let numbers = [
                got.cost_l1, got.cost_l2, got.cost_mad, got.neighbour_distance, got.mahalanobis,
                got.outside, got.log_density,
            ];
            prop_assert!(numbers.iter().chain(&got.outlier_factors).all(|x| x.is_finite()), "{got:?}");
        }
    }

    #[test]
    fn a_summary_contains_its_mean(
        numbers in prop::collection::vec(-1e3..1e3_f64, 2..40),
        shares in prop::collection::vec(0.0..=1.0_f64, 1..40),
        trials in 1..200_usize,
        happened in 0..200_usize,
    ) {
        let happened = happened.min(trials);
        for (summary, least, most) in [
            (Summary::of(&numbers).unwrap(), f64::NEG_INFINITY, f64::INFINITY),
            (Summary::of_shares(&shares).unwrap(), 0.0, 1.0),
            (Summary::of_events(happened, trials).unwrap(), 0.0, 1.0),
            (Summary::of_signs(happened, trials).unwrap(), -1.0, 1.0),
        ] {
            let summary = summary.unwrap();
            let (low, high) = (summary.low.unwrap(), summary.high.unwrap());
            prop_assert!(least <= low && low <= summary.mean + 1e-12, "{summary:?}");
            prop_assert!(summary.mean <= high + 1e-12 && high <= most, "{summary:?}");
        }
    }
}
