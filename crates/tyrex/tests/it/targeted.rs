//! The impossibility theorem: for every point that is not among the data there is a model
//! that agrees on all the data and rejects the point.

use proptest::prelude::*;
use tyrex::Points;
use tyrex::Seed;
use tyrex::change::Targeted;
use tyrex::data::moons::moons;
use tyrex::measure::{Gauge, Neighbourhood, RelaxedStability, Sampling};
use tyrex::model::{Activation, Examples, Mlp, Model, Output, TrainParams, train};

use crate::support::{activations, network, outputs, points};

/// The network, or the same with its favourable class the other way round, so that the first
/// of the points is accepted.
fn accepting(network: &Mlp, point: &[f32]) -> Option<Mlp> {
    let one = Points::from_rows(point.len(), point.to_vec()).unwrap();
    let classes = network.classes();
    (0..classes.max(2)).find_map(|favourable| {
        let output = match network.output() {
            Output::Sigmoid { .. } => Output::Sigmoid { favourable: favourable == 1 },
            Output::Softmax { .. } => Output::Softmax { favourable },
        };
        let turned = Mlp::new(network.dim(), &network.layers(), output).unwrap();
        (turned.score(&one)[0] >= 0.5).then_some(turned)
    })
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum()
}

proptest! {
    #[test]
    fn any_accepted_point_can_be_rejected_without_a_trace_in_the_data(
        activation in activations(),
        output in outputs(),
        dim in 1..20_usize,
        widths in prop::collection::vec(1..40_usize, 0..4),
        seed in any::<u64>(),
    ) {
        let all = points(60, dim, seed);
        let target = all.row(0);
        let data = all.select(&(1..40).collect::<Vec<_>>());
        let random = network(dim, &widths, activation, output, seed);
        // Of three classes none may have half.
        let Some(before) = accepting(&random, target) else { return Ok(()) };
        let after = Targeted { point: target }.changed(&before, &data).unwrap();

        let one = Points::from_rows(dim, target.to_vec()).unwrap();
        let (was, is) = (before.score(&one)[0], after.score(&one)[0]);
        let expected = (1.0 - was).min(1.0 / (1.0 + std::f32::consts::E));
        prop_assert!(is < 0.5 && (is - expected).abs() < 1e-3, "{} {} {}", was, is, expected);

        // Everywhere but around the target: the data, and points neither has seen.
        let nearest = data.rows().map(|row| distance(row, target)).fold(f64::MAX, f64::min);
        let far: Vec<usize> =
            (1..60).filter(|&row| distance(all.row(row), target) > 0.51 * nearest).collect();
        prop_assert!(far.len() >= data.len());
        let elsewhere = all.select(&far);
        let scores = before.score(&elsewhere).into_iter().zip(after.score(&elsewhere));
        for (was, is) in scores {
            if widths.is_empty() {
                prop_assert!((was - is).abs() < 1e-6, "{} {}", was, is);
            } else {
                prop_assert_eq!(was.to_bits(), is.to_bits());
            }
        }
    }
}

#[test]
fn stability_is_no_protection_against_it() {
    let sample = moons(300, 0.1, Seed(0)).unwrap();
    let coordinates = sample.iter().flat_map(|p| [p.x1 as f32, p.x2 as f32]).collect();
    let data = Points::from_rows(2, coordinates).unwrap();
    let labels: Vec<u32> = sample.iter().map(|p| u32::from(!p.lower)).collect();
    let params = TrainParams { hidden: vec![32, 32], ..TrainParams::paper() };
    let before = train(Examples::new(&data, &labels), &params, Seed(0)).unwrap().network;

    // In the middle of the upper moon, as stable as a point can be.
    let point = [0.0, 1.0];
    let one = Points::from_rows(2, point.to_vec()).unwrap();
    let cloud = Neighbourhood::draw(Sampling::MonteCarlo, 2, 1000, 0.1, Seed(1)).unwrap();
    let stability = |network: &Mlp| {
        Gauge::new(RelaxedStability {}, network, &cloud).unwrap().read(&one)[0].value
    };
    assert!(stability(&before) > 0.9);

    let after = Targeted { point: &point }.changed(&before, &data).unwrap();
    assert!(after.score(&one)[0] < 0.5);
    assert_eq!(before.score(&data), after.score(&data));
    // Asked again, the measure sees it: the changed model is steep where it was changed.
    assert!(stability(&after) < 0.5);
}

#[test]
fn what_the_theorem_excludes_is_refused() {
    let before = network(2, &[4], Activation::Relu, Output::Sigmoid { favourable: true }, 3);
    let point = |x: f32, y: f32| Points::from_rows(2, vec![x, y]).unwrap();
    let accepted = [-1.0_f32, -0.5, 0.0, 0.5, 1.0]
        .into_iter()
        .flat_map(|x| [[x, -1.0], [x, 0.3], [x, 1.0]])
        .find(|&[x, y]| before.score(&point(x, y))[0] >= 0.5)
        .unwrap();
    let turned = Mlp::new(2, &before.layers(), Output::Sigmoid { favourable: false }).unwrap();
    let [x, y] = accepted;
    let cases: [(&Mlp, Vec<f32>, Points, &str); 7] = [
        (&before, vec![x, y], point(x, y), "parameter `point` is at data point 0, expected"),
        (&before, vec![x, y], Points::new(2), "parameter `data` is without points, expected"),
        (
            &before,
            vec![x],
            point(0.1, 0.1),
            "coordinates of the point to target: expected 2, got 1",
        ),
        (&before, vec![x, y], Points::zeros(1, 3), "coordinates of the data: expected 2, got 3"),
        (&turned, vec![x, y], point(0.1, 0.1), "parameter `point` is a point with score 0."),
        (&before, vec![x, f32::NAN], point(0.1, 0.1), "finite coordinates"),
        (&before, vec![x, y], point(f32::INFINITY, 0.1), "finite coordinates"),
    ];
    for (network, target, data, expected) in cases {
        let error = Targeted { point: &target }.changed(network, &data).unwrap_err().to_string();
        assert!(error.contains(expected), "{error} does not say: {expected}");
    }
}

#[test]
fn a_point_next_to_the_data_is_not_among_them() {
    let before = network(3, &[6, 5], Activation::Relu, Output::Sigmoid { favourable: true }, 1);
    let data = points(20, 3, 2);
    for row in data.rows() {
        let mut target = row.to_vec();
        target[1] = target[1].next_up();
        let Some(before) = accepting(&before, &target) else { continue };
        let after = Targeted { point: &target }.changed(&before, &data).unwrap();
        assert!(after.score(&Points::from_rows(3, target).unwrap())[0] < 0.5);
        assert_eq!(before.score(&data), after.score(&data));
    }
}
