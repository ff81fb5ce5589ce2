//! No answer depends on which other rows are asked about in the same call, nor on their order,
//! nor on the number of threads.

use std::ops::ControlFlow;

use rand::seq::SliceRandom;
use tyrex::certificate::Terms;
use tyrex::change::{Ensemble, ModelChange};
use tyrex::counterfactual::{MethodSpec, Norm, Protocol, Tick};
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{
    Advice, Applicant, Explainer, Gate, GateCandidate, Part, Request, RetrainingTerms,
    StabilityTerms, WrittenPromise,
};
use tyrex::measure::{Gamma, Gauge, Mean, Measure, Neighbourhood, RelaxedStability, Stability};
use tyrex::model::TrainParams;
use tyrex::{Points, Seed};

use crate::support::promises::promise;
use crate::support::{advise, with_search_models};

const GO_ON: fn(Tick) -> ControlFlow<()> = |_| ControlFlow::Continue(());

fn german(seed: u64) -> Explainer {
    let catalogue = Catalogue::with_folders(Vec::new());
    let german = catalogue.load("german", Variant::Product, Direction::Favourable).unwrap();
    // Two hidden layers, as the paper's: widths that fill no vector register and no block.
    let params = TrainParams { hidden: vec![20, 9], epochs: 15, ..TrainParams::paper() };
    Explainer::train(german, &params, Seed(seed), |_| ControlFlow::Continue(())).unwrap()
}

fn ensemble(explainer: &Explainer) -> Ensemble {
    let change = ModelChange::with_params("reinitialise", "").unwrap();
    let params = TrainParams { epochs: 3, ..explainer.retraining().params().unwrap() };
    let terms = RetrainingTerms { change, models: 7, params, seed: Seed(7) };
    explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap()
}

/// Answers for all rows together, for each alone, for all shuffled, and by one thread: the same.
fn same_in_any_company<T: PartialEq + std::fmt::Debug + Send>(
    rows: &[Applicant],
    ask: impl Fn(&[Applicant]) -> Vec<T> + Sync,
) {
    let together = ask(rows);
    assert_eq!(together.len(), rows.len());
    for (row, expected) in rows.iter().zip(&together) {
        assert_eq!(ask(std::slice::from_ref(row)), std::slice::from_ref(expected));
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.shuffle(&mut Seed(5).rng());
    let shuffled: Vec<Applicant> = order.iter().map(|&index| rows[index].clone()).collect();
    for (index, answer) in order.iter().zip(ask(&shuffled)) {
        assert_eq!(answer, together[*index]);
    }
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(one.install(|| ask(rows)), together);
}

#[test]
fn stability() {
    let explainer = german(0);
    // Not a multiple of any block.
    let rows = &explainer.applicants().part(Part::Test)[..67];
    for gamma in [Gamma::SampledSlopes, Gamma::Sound, Gamma::SampledGradients] {
        let terms = StabilityTerms { samples: 70, gamma, ..StabilityTerms::default() };
        let on = || ControlFlow::Continue(());
        same_in_any_company(rows, |rows| {
            explainer.stability(&terms).unwrap().read(rows, on).unwrap()
        });
        // One look at the neighbours says what a gauge for each measure says.
        let cloud =
            Neighbourhood::draw(terms.sampling, explainer.points().dim(), 70, 0.1, terms.seed);
        let cloud = cloud.unwrap();
        let gauge = |measure| Gauge::new(measure, explainer.model(), &cloud).unwrap();
        let mut points = Points::new(explainer.points().dim());
        rows.iter().for_each(|row| points.push(&row.point));
        let [mean, relaxed, stable] = [
            Measure::Mean(Mean {}),
            Measure::RelaxedStability(RelaxedStability {}),
            Measure::Stability(Stability { gamma }),
        ]
        .map(|measure| gauge(measure).read(&points));
        for (index, row) in
            explainer.stability(&terms).unwrap().read(rows, on).unwrap().iter().enumerate()
        {
            assert_eq!(row.score, mean[index].score);
            assert_eq!(row.mean, mean[index].value);
            assert_eq!(row.relaxed_stability, relaxed[index].value);
            assert_eq!(row.stability, stable[index].value);
        }
        // Kept, and read from several threads at once.
        let gauge = explainer.stability(&terms).unwrap();
        let expected = explainer.stability(&terms).unwrap().read(rows, on).unwrap();
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (gauge, rows, expected) = (&gauge, &rows[part..], &expected[part..]);
                scope.spawn(move || assert_eq!(gauge.read(rows, on).unwrap(), expected));
            }
        });
    }
}

#[test]
fn survival() {
    let explainer = german(0);
    let ensemble = ensemble(&explainer);
    let rows = &explainer.applicants().part(Part::Test)[..67];
    same_in_any_company(rows, |rows| explainer.survival(rows, &ensemble).unwrap());
    let survival = explainer.survival(&rows[..1], &ensemble).unwrap().remove(0);
    assert_eq!(survival.scores.len(), ensemble.members().len());
    let accepted = survival.scores.iter().filter(|score| **score >= 0.5).count();
    assert_eq!((survival.survives, survival.row), (accepted, rows[0].row));
    let other = german(1);
    assert!(other.survival(rows, &ensemble).is_err(), "an ensemble of another model");
}

#[test]
fn advice_of_every_method() {
    let explainer = with_search_models(&german(0));
    let rejected = explainer.applicants().rejected(Part::Test);
    for name in MethodSpec::NAMES {
        let mut request = Request::new(name, Protocol::Product, Norm::L1, Seed(4)).unwrap();
        if let Some(robustness) = request.method.robustness_mut() {
            (robustness.tau, robustness.samples) = (0.7, 100);
            robustness.search.samples = 32;
        }
        same_in_any_company(&rejected[..7], |rows| {
            let mut advice = advise(&explainer, &request, rows, GO_ON).unwrap();
            advice.iter_mut().for_each(|each| each.outcome.seconds = 0.0);
            advice
        });
    }
}

#[test]
fn certificates() {
    let explainer = german(0);
    let ensemble = ensemble(&explainer);
    let watch = |_| ControlFlow::Continue(());
    let fresh = explainer.retraining().fresh(ensemble, false, &watch).unwrap();
    let rows = &explainer.applicants().part(Part::Test)[..5];
    same_in_any_company(rows, |rows| {
        let mut points = Points::new(explainer.points().dim());
        rows.iter().for_each(|row| points.push(&row.point));
        let on = || ControlFlow::Continue(());
        explainer.certify(&points, Some(&fresh), &Terms::default(), Seed(6), on).unwrap()
    });
}

#[test]
fn audits() {
    let (old, new) = (german(0), german(1));
    let request = Request::new("min-cost", Protocol::Product, Norm::L1, Seed(4)).unwrap();
    let advice =
        advise(&old, &request, &old.applicants().rejected(Part::Test)[..40], GO_ON).unwrap();
    let found: Vec<&Advice> = advice.iter().filter(|each| each.found().is_some()).collect();
    let rows: Vec<Applicant> = found.iter().map(|each| each.applicant.clone()).collect();
    same_in_any_company(&rows, |rows| {
        let written = |row: &Applicant| {
            let given = found.iter().find(|each| each.applicant.row == row.row).unwrap();
            promise(old.schema(), given).unwrap()
        };
        let promises: Vec<WrittenPromise> = rows.iter().map(written).collect();
        let name = "new".to_owned();
        let candidate = GateCandidate { name, explainer: &new, has_only_promises: false };
        let gate = Gate::new(request.clone());
        gate.judge(&[candidate], &promises, GO_ON).unwrap().candidates.remove(0).promises
    });
}
