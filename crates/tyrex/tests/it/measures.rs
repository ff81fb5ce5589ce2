//! Every measure against its definition in double precision, its gradient against central
//! differences, and against numbers made by an independent program.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;
use tyrex::lipschitz;
use tyrex::measure::{
    Gamma, Gauge, Mean, MeanMinusDeviation, Measure, Neighbourhood, PathIntegral, Prediction,
    Reading, RelaxedStability, Sampling, Stability,
};
use tyrex::model::{Activation, Dense, Mlp, Model, Output};
use tyrex::{Points, Seed};

use crate::support::{
    activations, derivative, gradient, length, logits, network, outputs, points, score, widen,
};

const MEASURES: [Measure; 9] = [
    Measure::Prediction(Prediction {}),
    Measure::Mean(Mean {}),
    Measure::RelaxedStability(RelaxedStability {}),
    Measure::Stability(Stability { gamma: Gamma::Given(0.7) }),
    Measure::Stability(Stability { gamma: Gamma::SampledSlopes }),
    Measure::MeanMinusDeviation(MeanMinusDeviation {}),
    Measure::PathIntegral(PathIntegral { steps: 7 }),
    Measure::Stability(Stability { gamma: Gamma::Sound }),
    Measure::Stability(Stability { gamma: Gamma::SampledGradients }),
];

/// The measure as the paper writes it.
fn definition(
    measure: Measure,
    layers: &[Dense],
    output: Output,
    cloud: &Neighbourhood,
    x: &[f64],
) -> f64 {
    let m = |x: &[f64]| score(output, &logits(layers, x));
    let k = cloud.samples() as f64;
    let neighbours: Vec<(f64, f64)> = cloud
        .offsets()
        .rows()
        .map(|n| {
            let n = widen(n);
            let distance = n.iter().map(|v| v * v).sum::<f64>().sqrt();
            (m(&x.iter().zip(&n).map(|(x, n)| x + n).collect::<Vec<_>>()), distance)
        })
        .collect();
    let m0 = m(x);
    let mean = neighbours.iter().map(|(score, _)| score).sum::<f64>() / k;
    let stability = |gamma: f64| {
        neighbours.iter().map(|(score, distance)| score - gamma * distance).sum::<f64>() / k
    };
    match measure {
        Measure::Prediction(_) => m0,
        Measure::Mean(_) => mean,
        Measure::RelaxedStability(_) => {
            neighbours.iter().map(|(score, _)| score - (m0 - score).abs()).sum::<f64>() / k
        }
        Measure::Stability(Stability { gamma: Gamma::Given(gamma) }) => stability(gamma),
        Measure::Stability(Stability { gamma: Gamma::SampledSlopes }) => {
            let slopes = neighbours.iter().map(|(score, distance)| (m0 - score).abs() / distance);
            stability(slopes.fold(0.0, f64::max))
        }
        Measure::Stability(Stability { gamma: Gamma::Sound }) => {
            let network = Mlp::new(x.len(), layers, output).unwrap();
            stability(lipschitz::spectral(&network).value)
        }
        Measure::Stability(Stability { gamma: Gamma::SampledGradients }) => {
            stability(gradient_norms(layers, output, cloud, x).into_iter().fold(0.0, f64::max))
        }
        Measure::MeanMinusDeviation(_) => {
            let squares = neighbours.iter().map(|(score, _)| (score - mean).powi(2));
            mean - (squares.sum::<f64>() / k).sqrt()
        }
        Measure::PathIntegral(PathIntegral { steps }) => {
            let along = |j: usize| {
                let share = j as f64 / steps as f64;
                m(&x.iter().map(|x| share * x).collect::<Vec<_>>())
            };
            (1..=steps).map(along).sum::<f64>() / steps as f64
        }
    }
}

/// `||dm||` at the neighbours and at the point.
fn gradient_norms(layers: &[Dense], output: Output, cloud: &Neighbourhood, x: &[f64]) -> Vec<f64> {
    let at = |x: &[f64]| length(&gradient(layers, output, x));
    let neighbours = cloud.offsets().rows().map(|n| {
        let moved: Vec<f64> = x.iter().zip(n).map(|(x, n)| x + f64::from(*n)).collect();
        at(&moved)
    });
    neighbours.chain([at(x)]).collect()
}

/// Scores are in single precision, so a sampled slope is off by up to a unit in the last
/// place divided by the distance. By how much can that raise the largest slope, and is the
/// steepest neighbour the same one all the same?
fn rounding_of_slopes(
    layers: &[Dense],
    output: Output,
    cloud: &Neighbourhood,
    x: &[f64],
) -> (f64, bool) {
    let m = |x: &[f64]| score(output, &logits(layers, x));
    let m0 = m(x);
    let slopes: Vec<(f64, f64)> = cloud
        .offsets()
        .rows()
        .zip(cloud.distances())
        .map(|(n, distance)| {
            let moved: Vec<f64> = x.iter().zip(n).map(|(x, n)| x + f64::from(*n)).collect();
            ((m0 - m(&moved)).abs() / distance, 1e-6 / distance)
        })
        .collect();
    let top = (0..slopes.len()).max_by(|&a, &b| slopes[a].0.total_cmp(&slopes[b].0)).unwrap();
    let highest = slopes.iter().map(|(slope, off)| slope + off).fold(0.0, f64::max);
    let (steepest, off) = slopes[top];
    let others = slopes.iter().enumerate().filter(|(index, _)| *index != top);
    let is_clear = others.map(|(_, (slope, off))| slope + off).all(|s| s < steepest - off);
    (highest - steepest, is_clear)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn values_and_gradients_follow_the_definition(
        dim in 1..20_usize,
        widths in prop::collection::vec(1..40_usize, 0..3),
        activation in activations(),
        output in outputs(),
        samples in 2..130_usize,
        seed in any::<u64>(),
    ) {
        let network = network(dim, &widths, activation, output, seed);
        let layers = network.layers();
        let cloud =
            Neighbourhood::draw(Sampling::MonteCarlo, dim, samples, 0.3, Seed(seed)).unwrap();
        let points = points(2, dim, seed ^ 1);
        for measure in MEASURES {
            let gauge = Gauge::new(measure, &network, &cloud).unwrap();
            let readings = gauge.read(&points);
            let (with_gradient, gradients) = gauge.read_with_gradient(&points).unwrap();
            for (index, point) in points.rows().enumerate() {
                let x = widen(point);
                let expected = definition(measure, &layers, output, &cloud, &x);
                let (excess, is_clear) = rounding_of_slopes(&layers, output, &cloud, &x);
                let sampled = measure == Measure::Stability(Stability { gamma: Gamma::SampledSlopes });
                let tolerance = if sampled { 2e-5 + excess * cloud.mean_distance() } else { 2e-5 };
                prop_assert!((readings[index].value - expected).abs() < tolerance, "{:?}", measure);
                prop_assert!((readings[index].value - with_gradient[index].value).abs() < 1e-6);
                prop_assert_eq!(readings[index].score, with_gradient[index].score);
                if sampled && !is_clear {
                    continue; // another neighbour may be the steepest in single precision
                }
                if measure == (Measure::Stability(Stability { gamma: Gamma::SampledGradients })) {
                    let mut norms = gradient_norms(&layers, output, &cloud, &x);
                    norms.sort_by(f64::total_cmp);
                    if norms[samples] - norms[samples - 1] < 1e-5 {
                        continue; // as above
                    }
                }
                for coordinate in 0..dim.min(2) {
                    let along = |delta: f64| {
                        let mut moved = x.clone();
                        moved[coordinate] += delta;
                        definition(measure, &layers, output, &cloud, &moved)
                    };
                    if let Some(expected) = derivative(along, 1e-4) {
                        let got = f64::from(gradients.row(index)[coordinate]);
                        prop_assert!((got - expected).abs() < 3e-4, "{:?} {} {}", measure, got, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn laws_between_measures(activation in activations(), seed in any::<u64>()) {
        let network = network(6, &[20, 10], activation, Output::Sigmoid { favourable: true }, seed);
        let cloud = Neighbourhood::draw(Sampling::Antithetic, 6, 64, 0.2, Seed(seed)).unwrap();
        let points = points(5, 6, seed ^ 1);
        let read = |measure| Gauge::new(measure, &network, &cloud).unwrap().read(&points);
        let all = MEASURES.map(read);
        for index in 0..points.len() {
            let [prediction, mean, relaxed, given, sampled, deviation, _, sound, steepest] =
                all.each_ref().map(|readings| readings[index].value);
            prop_assert!(relaxed <= prediction + 1e-9, "R^ is at most m(x)");
            prop_assert!(relaxed <= mean + 1e-6 && given <= mean && deviation <= mean + 1e-9);
            // The estimated slope is at least every |m - m_i| / distance, so R^ is above R.
            prop_assert!(sampled <= relaxed + 1e-6);
            prop_assert!(sound <= sampled + 1e-6 && sound <= steepest + 1e-6);
        }
    }
}

#[derive(Deserialize)]
struct Golden {
    steps: usize,
    given: f64,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    activation: Activation,
    output: serde_json::Value,
    layers: Vec<(Vec<f32>, Vec<f32>)>,
    offsets: Vec<Vec<f32>>,
    points: Vec<Vec<f32>>,
    measures: Vec<BTreeMap<String, f64>>,
}

impl Case {
    fn network(&self) -> Mlp {
        let output = match (self.output.as_str(), self.output.as_u64()) {
            (Some(side), _) => Output::Sigmoid { favourable: side == "for" },
            (_, class) => Output::Softmax { favourable: class.unwrap() as usize },
        };
        let last = self.layers.len() - 1;
        let layers: Vec<Dense> = self
            .layers
            .iter()
            .enumerate()
            .map(|(index, (weights, bias))| Dense {
                weights: weights.clone(),
                bias: bias.clone(),
                activation: if index == last { Activation::Identity } else { self.activation },
            })
            .collect();
        Mlp::new(self.offsets[0].len(), &layers, output).unwrap()
    }
}

/// `golden/make_measures.py` computes these numbers in double precision with numpy.
#[test]
fn every_measure_agrees_with_numpy() {
    let golden: Golden = serde_json::from_str(include_str!("../golden/measures.json")).unwrap();
    let stability = |gamma| Measure::Stability(Stability { gamma });
    let measures = [
        ("prediction", Measure::Prediction(Prediction {})),
        ("mean", Measure::Mean(Mean {})),
        ("relaxed-stability", Measure::RelaxedStability(RelaxedStability {})),
        ("stability-given", stability(Gamma::Given(golden.given))),
        ("stability-sound", stability(Gamma::Sound)),
        ("stability-sampled-slopes", stability(Gamma::SampledSlopes)),
        ("stability-sampled-gradients", stability(Gamma::SampledGradients)),
        ("mean-minus-deviation", Measure::MeanMinusDeviation(MeanMinusDeviation {})),
        ("path-integral", Measure::PathIntegral(PathIntegral { steps: golden.steps })),
    ];
    for case in &golden.cases {
        let network = case.network();
        let rows = |rows: &[Vec<f32>]| Points::from_rows(network.dim(), rows.concat()).unwrap();
        let cloud = Neighbourhood::given(rows(&case.offsets)).unwrap();
        for (name, measure) in measures {
            let readings = Gauge::new(measure, &network, &cloud).unwrap().read(&rows(&case.points));
            for (reading, expected) in readings.iter().zip(&case.measures) {
                let difference = (reading.value - expected[name]).abs();
                // The sound bound, which may be large, leaves margins for rounding.
                let allowed = 1e-5 * expected[name].abs().max(1.0);
                assert!(difference < allowed, "{:?} {name}: off by {difference}", case.activation);
                assert!((f64::from(reading.score) - expected["prediction"]).abs() < 1e-6);
            }
        }
    }
}

/// A model of which nothing is known but its scores.
#[derive(Debug)]
struct Opaque;

impl Model for Opaque {
    fn dim(&self) -> usize {
        4
    }

    fn score_into(&self, _: &Points, scores: &mut [f32]) {
        scores.fill(0.25);
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let sigmoid = Output::Sigmoid { favourable: true };
    let network = network(4, &[3], Activation::Relu, sigmoid, 1);
    let cloud = Neighbourhood::draw(Sampling::MonteCarlo, 3, 4, 0.1, Seed(0)).unwrap();
    let refusal = |measure, cloud: &Neighbourhood| {
        Gauge::new(measure, &network, cloud).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(Measure::Mean(Mean {}), &cloud),
        "coordinates of a neighbourhood: expected 4, got 3"
    );
    let cloud = Neighbourhood::draw(Sampling::MonteCarlo, 4, 4, 0.1, Seed(0)).unwrap();
    for (gamma, name) in [(Gamma::Sound, "sound"), (Gamma::SampledGradients, "sampled-gradients")] {
        let no = Gauge::new(Measure::Stability(Stability { gamma }), &Opaque, &cloud)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            no.to_string(),
            format!(
                "model: gamma `{name}` needs a network, which trees and black boxes are not; \
                 use a number or `sampled-slopes`"
            )
        );
    }
    let opaque =
        Gauge::new(Measure::RelaxedStability(RelaxedStability {}), &Opaque, &cloud).unwrap();
    let points = points(2, 4, 1);
    assert_eq!(opaque.read(&points)[1], Reading { score: 0.25, value: 0.25 });
    assert!(opaque.read_with_gradient(&points).unwrap_err().to_string().contains("gradients"));
    assert_eq!(
        refusal(Measure::Stability(Stability { gamma: Gamma::Given(-1.0) }), &cloud),
        "parameter `gamma` is -1, expected a number of at least 0"
    );
    assert_eq!(
        refusal(Measure::PathIntegral(PathIntegral { steps: 0 }), &cloud),
        "parameter `steps` is 0, expected at least 1"
    );
    assert!(
        Gauge::new(Measure::Mean(Mean {}), &network, &cloud)
            .unwrap()
            .read(&Points::new(4))
            .is_empty()
    );
}
