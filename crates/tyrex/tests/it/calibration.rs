//! Calibration keeps its stated error rate, on processes whose true validity is known, and
//! finds a threshold for a real search on retrained networks.

use std::ops::ControlFlow;

use rand::RngExt;
use tyrex::action::FeasibleSet;
use tyrex::calibrate::{
    CalibrationTest, CalibrationVerdict, Goal, TriedThreshold, calibrate, choose,
};
use tyrex::change::{Ensemble, ModelChange, Plan, Reinitialise};
use tyrex::counterfactual::{Budget, Factual, MethodSpec, Norm, Problem, Protocol, find_all};
use tyrex::data::moons::moons;
use tyrex::model::{Examples, Model, TrainParams, train};
use tyrex::{Points, Seed};

const RUNS: usize = 2000;

/// How the models of a simulated change differ from each other.
#[derive(Debug, Clone, Copy)]
enum Process {
    /// A model accepts every counterfactual or none.
    AllOrNothing,
    /// Every counterfactual is a coin of its own.
    Independent,
    /// Some models are bad throughout: half of the failures come together.
    Mixed,
}

impl Process {
    /// The verdicts of one model on `factuals` counterfactuals, each valid with the same probability
    /// over models and coins together.
    fn model(self, validity: f64, factuals: usize, rng: &mut tyrex::seed::Rng) -> Vec<bool> {
        let loss = 1.0 - validity;
        match self {
            Self::AllOrNothing => vec![rng.random::<f64>() < validity; factuals],
            Self::Independent => (0..factuals).map(|_| rng.random::<f64>() < validity).collect(),
            Self::Mixed => {
                let bad = rng.random::<f64>() < 0.5 * loss;
                let coin = (1.0 - loss) / (1.0 - 0.5 * loss);
                (0..factuals).map(|_| !bad && rng.random::<f64>() < coin).collect()
            }
        }
    }
}

/// The results of many calibrations.
#[derive(Debug, Default)]
struct Tally {
    /// A threshold was chosen.
    chosen: usize,
    /// Its true validity is below the target.
    wrong: usize,
    /// The reported interval has its true validity.
    covered: usize,
}

fn simulate(process: Process, goal: &Goal, curve: &[(f64, f64)], models: usize) -> Tally {
    let factuals = 10;
    let mut tally = Tally::default();
    for run in 0..RUNS {
        let mut rng = Seed(11).index(run).rng();
        let candidates = curve
            .iter()
            .map(|&(tau, validity)| TriedThreshold {
                tau,
                costs: vec![Some(tau); factuals],
                valid: (0..models).map(|_| process.model(validity, factuals, &mut rng)).collect(),
            })
            .collect();
        let answer = choose(goal, candidates).unwrap();
        let CalibrationVerdict::Chosen { tau, validity } = answer.verdict else { continue };
        let (_, truth) = curve.iter().copied().find(|(own, _)| *own == tau).unwrap();
        tally.chosen += 1;
        tally.wrong += usize::from(truth < goal.validity);
        tally.covered += usize::from(validity.low <= truth && truth <= validity.high);
    }
    tally
}

/// Four standard deviations above the expected count.
fn at_most(share: f64, of: usize) -> usize {
    let of = of as f64;
    (share * of + 4.0 * (share * (1.0 - share) * of).sqrt()) as usize
}

#[test]
fn a_wrong_threshold_is_chosen_no_more_often_than_stated() {
    let nearly = 0.9 - 1e-9;
    let processes = [Process::AllOrNothing, Process::Independent, Process::Mixed];
    let curves: [&[(f64, f64)]; 3] = [
        // Every choice is wrong.
        &[(0.9, nearly), (0.8, nearly), (0.7, nearly)],
        // Good thresholds first, and then just not.
        &[(0.9, 0.999), (0.8, 0.99), (0.7, nearly), (0.6, 0.8)],
        // A better one further down, which tempts a method that looks for the smallest.
        &[(0.9, 0.97), (0.8, nearly), (0.7, nearly), (0.6, nearly), (0.5, 0.95)],
    ];
    for test in [CalibrationTest::Betting, CalibrationTest::HoeffdingBentkus] {
        let goal = Goal { validity: 0.9, confidence: 0.9, test, ..Goal::default() };
        for process in processes {
            for curve in curves {
                for models in [46, 80] {
                    let tally = simulate(process, &goal, curve, models);
                    let about = format!("{test:?} {process:?} {curve:?}: {tally:?}");
                    assert!(tally.wrong <= at_most(0.1, RUNS), "{about}");
                    let uncovered = tally.chosen - tally.covered;
                    assert!(uncovered <= at_most(0.1, tally.chosen), "{about}");
                }
            }
        }
    }
}

#[test]
fn the_tests_are_sharp_where_they_can_be() {
    // 22 models choose, and 0.9^22 = 0.098: a threshold that is just not good enough passes if
    // no model fails, so nearly as often as is allowed. A looser test would be caught above.
    for test in [CalibrationTest::Betting, CalibrationTest::HoeffdingBentkus] {
        let goal = Goal { validity: 0.9, confidence: 0.9, test, ..Goal::default() };
        let tally = simulate(Process::AllOrNothing, &goal, &[(0.9, 0.9 - 1e-9)], 44);
        assert!(tally.wrong > RUNS * 8 / 100, "{test:?}: {tally:?}");
    }
}

#[test]
fn a_good_threshold_is_found() {
    let curve = [(0.9, 0.999), (0.8, 0.97), (0.7, 0.7)];
    let power = |test, process| {
        let goal = Goal { validity: 0.9, confidence: 0.9, test, ..Goal::default() };
        let tally = simulate(process, &goal, &curve, 80);
        assert!(tally.wrong < RUNS / 100, "{test:?} {process:?}: {tally:?}");
        tally.chosen as f64 / RUNS as f64
    };
    for process in [Process::AllOrNothing, Process::Independent, Process::Mixed] {
        for test in [CalibrationTest::Betting, CalibrationTest::HoeffdingBentkus] {
            assert!(power(test, process) > 0.9, "{test:?} {process:?}");
        }
    }
}

#[test]
fn betting_shows_what_many_factuals_know() {
    // Every model fails a few of many: the models agree, so few of them are enough.
    let goal = |test| Goal { validity: 0.9, confidence: 0.9, test, ..Goal::default() };
    let tally = |test| simulate(Process::Independent, &goal(test), &[(0.9, 0.97)], 80);
    let (bets, bounds) =
        (tally(CalibrationTest::Betting), tally(CalibrationTest::HoeffdingBentkus));
    assert!(bets.chosen > RUNS * 8 / 10, "{bets:?}");
    assert!(bounds.chosen < RUNS * 2 / 10, "{bounds:?}");
}

#[test]
fn a_search_is_calibrated_on_retrained_networks() {
    let sample = moons(200, 0.15, Seed(0)).unwrap();
    let coordinates = sample.iter().flat_map(|p| [p.x1 as f32, p.x2 as f32]).collect();
    let points = Points::from_rows(2, coordinates).unwrap();
    let labels: Vec<u32> = sample.iter().map(|p| u32::from(!p.lower)).collect();
    let examples = Examples::new(&points, &labels);
    let params = TrainParams { hidden: vec![16, 16], epochs: 40, ..TrainParams::paper() };
    let base = train(examples, &params, Seed(0)).unwrap().network;
    let change = ModelChange::Reinitialise(Reinitialise {});
    let plan =
        Plan { examples, fresh: &[], params: &params, change: &change, members: 32, seed: Seed(1) };
    let quietly = |_: usize, _: &_| ControlFlow::Continue(());
    let ensemble = Ensemble::train(base.clone(), &plan, quietly).unwrap();
    let members: Vec<&dyn Model> = ensemble.members().iter().map(|m| &**m).collect();

    let scores = base.score(&points);
    let rejected: Vec<usize> = (0..points.len()).filter(|&row| scores[row] < 0.5).collect();
    let everywhere = FeasibleSet::everywhere(2);
    let factuals: Vec<Factual> =
        rejected.iter().map(|&row| Factual::new(points.row(row), &everywhere)).collect();
    let problem = Problem::new(&base, Norm::L2, &points).unwrap();
    let search = |tau: f64| {
        let mut spec = MethodSpec::named("trex-i", Protocol::Product)?;
        if let Some(robustness) = spec.robustness_mut() {
            (robustness.tau, robustness.samples) = (tau, 200);
        }
        let method = spec.prepare(&problem, Seed(2))?;
        find_all(&problem, method.as_ref(), &factuals, Budget::default(), |_| {
            ControlFlow::Continue(())
        })
    };
    let goal = Goal { validity: 0.9, confidence: 0.8, ..Goal::default() };
    let taus = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    let answer = calibrate(&goal, &taus, &members, search).unwrap();

    let CalibrationVerdict::Chosen { tau, validity } = answer.verdict else { panic!("{answer:?}") };
    assert!(tau > 0.3 && tau < 0.95, "{answer:#?}");
    assert!(validity.mean >= 0.9 && validity.low < validity.mean, "{answer:#?}");
    // The price of stability: more of it costs more and holds more often.
    for pair in answer.curve.windows(2) {
        assert!(pair[0].mean_cost >= pair[1].mean_cost, "{answer:#?}");
        assert!(pair[0].validity_reporting >= pair[1].validity_reporting, "{answer:#?}");
    }
    assert!(answer.curve.last().unwrap().validity_reporting < Some(0.9), "{answer:#?}");
}
