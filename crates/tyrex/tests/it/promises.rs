//! The façade's promises: ensembles, stability, certificates and calibration of an explainer.

use std::ops::ControlFlow;

use tyrex::action::{Constraint, Violation};
use tyrex::calibrate::Goal;
use tyrex::certificate::{Certificate, Terms, Tier, Verdict, verify};
use tyrex::change::{Ensemble, ModelChange, Reinitialise};
use tyrex::counterfactual::{Counterfactual, Norm, Protocol, Relaxation};
use tyrex::data::{Column, Table};
use tyrex::explain::{
    AdviceRows, Applicant, CalibrationTerms, Explainer, Part, Reference, Request, RetrainingTerms,
    StabilityTerms, UnlabelledRows, embedded_schema,
};
use tyrex::measure::Gamma;
use tyrex::model::files::{ImportOptions, ModelFile};
use tyrex::model::{Model, TrainParams, train};
use tyrex::{Error, Overwrite, Points, Seed};

use crate::support::german;

const GO_ON: fn() -> ControlFlow<()> = || ControlFlow::Continue(());
const STOP: fn() -> ControlFlow<()> = || ControlFlow::Break(());

fn trained() -> Explainer {
    let params = TrainParams { hidden: vec![8], epochs: 4, ..TrainParams::paper() };
    Explainer::train(german(), &params, Seed(0), |_| ControlFlow::Continue(())).unwrap()
}

fn ensemble(explainer: &Explainer, models: usize) -> Ensemble {
    let params = explainer.retraining().params().unwrap();
    let terms = RetrainingTerms { change: reinitialise(), models, params, seed: Seed(1) };
    explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap()
}

fn reinitialise() -> ModelChange {
    ModelChange::Reinitialise(Reinitialise {})
}

#[test]
fn an_ensemble_learns_from_the_training_rows_as_the_model_did() {
    let explainer = trained();
    let ensemble = ensemble(&explainer, 1);
    let dataset = german();
    let labels: Vec<u32> = dataset.labels().iter().map(|&label| u32::from(label)).collect();
    let examples =
        tyrex::model::Examples::new(dataset.points(), &labels).with_rows(dataset.train());
    let params = explainer.retraining().params().unwrap();
    assert_eq!(params, explainer.training().unwrap().params);
    let seed = Seed(1).derive("reinitialise").index(0);
    let expected = train(examples, &params, seed).unwrap().network;
    assert_eq!(ensemble.members()[0].network(), Some(&expected));
    assert_eq!(ensemble.base().network(), explainer.model().network());
}

#[test]
fn an_ensemble_of_another_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let explainer = trained();
    let written = ensemble(&explainer, 2);
    explainer.retraining().write(&written, folder.path(), Overwrite::Refuse).unwrap();
    assert_eq!(
        explainer.retraining().read(folder.path(), &ImportOptions::default()).unwrap(),
        written
    );
    // Its files are models with a schema, like any that is trained.
    let file = folder.path().join("member-0001.onnx");
    let model = ModelFile::read(&file, &ImportOptions::default()).unwrap();
    assert!(embedded_schema(&model).unwrap().is_some());
    let params = TrainParams { hidden: vec![8], epochs: 4, ..TrainParams::paper() };
    let other =
        Explainer::train(german(), &params, Seed(9), |_| ControlFlow::Continue(())).unwrap();
    let error =
        other.retraining().read(folder.path(), &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("expected one of this model"), "{error}");
}

#[test]
fn rows_without_labels_cannot_train() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    std::fs::write(&path, trained().to_onnx().unwrap()).unwrap();
    let model = ModelFile::read(&path, &ImportOptions::default()).unwrap();
    let schema = embedded_schema(&model).unwrap().unwrap();
    let dataset = german();
    let columns = dataset.table().columns();
    let unlabelled = columns.iter().filter(|column| column.name() != "class").cloned().collect();
    let table = Table::new("applicants.csv", unlabelled).unwrap();
    let data = Reference::Unlabelled(UnlabelledRows::read(&schema, table).unwrap());
    let explainer = Explainer::with_model(data, model).unwrap();
    // A model from a file is trained again with its own layers.
    let params = explainer.retraining().params().unwrap();
    assert_eq!(params.hidden, [8]);
    let terms = RetrainingTerms { change: reinitialise(), models: 1, params, seed: Seed(0) };
    let error = explainer
        .retraining()
        .train(&terms, |_, _| ControlFlow::Continue(()))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("applicants.csv: row 0 has no label"), "{error}");
}

#[test]
fn the_measures_of_a_row_follow_their_formulas() {
    let explainer = trained();
    let terms = StabilityTerms { samples: 60, ..StabilityTerms::default() };
    let rows = explainer
        .stability(&terms)
        .unwrap()
        .read(&explainer.applicants().part(Part::Test), GO_ON)
        .unwrap();
    assert_eq!(rows.len(), 330);
    assert!(rows.is_sorted_by(|a, b| a.row < b.row));
    let cloud = tyrex::neighbourhood::Neighbourhood::draw(
        terms.sampling,
        explainer.points().dim(),
        terms.samples,
        terms.sigma,
        terms.seed,
    )
    .unwrap();
    let model = explainer.model();
    for row in rows.iter().take(20) {
        let index = explainer.reference().table_rows().iter().position(|&r| r == row.row).unwrap();
        let around = cloud.around(explainer.points().row(index));
        let scores: Vec<f64> = model.score(&around).into_iter().map(f64::from).collect();
        let score = f64::from(row.score);
        let mean = scores.iter().sum::<f64>() / 60.0;
        let relaxed = scores.iter().map(|s| s - (score - s).abs()).sum::<f64>() / 60.0;
        let slopes = scores.iter().zip(cloud.distances()).map(|(s, d)| (score - s).abs() / d);
        let gamma = slopes.fold(0.0, f64::max);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-5;
        assert!(close(row.mean, mean) && close(row.relaxed_stability, relaxed), "{row:?}");
        assert!(close(row.gamma, gamma), "{row:?} {gamma}");
        assert!(close(row.stability, mean - gamma * cloud.mean_distance()), "{row:?}");
    }
    let sound = StabilityTerms { gamma: Gamma::Sound, ..terms };
    let bounded = explainer
        .stability(&sound)
        .unwrap()
        .read(&explainer.applicants().part(Part::Test), GO_ON)
        .unwrap();
    assert!(bounded.iter().zip(&rows).all(|(bound, row)| bound.gamma >= row.gamma - 1e-6));
}

/// Rows the model accepts, as if they had been advised.
fn accepted(explainer: &Explainer, count: usize) -> Points {
    let rows: Vec<usize> = (0..explainer.points().len())
        .filter(|&row| explainer.scores()[row] >= 0.6)
        .take(count)
        .collect();
    explainer.points().select(&rows)
}

#[test]
fn certificates_come_in_order_whatever_the_threads_and_can_be_verified() {
    let explainer = trained();
    let ensemble = ensemble(&explainer, 12);
    let points = accepted(&explainer, 6);
    let terms = Terms::default();
    let likeness =
        explainer.retraining().likeness(&ensemble, &|_| ControlFlow::Continue(())).unwrap();
    let certify = |steered| -> Vec<Certificate> {
        let watch = |_| ControlFlow::Continue(());
        let fresh = explainer.retraining().fresh(ensemble.clone(), steered, &watch).unwrap();
        explainer.certify(&points, Some(&fresh), &terms, Seed(3), GO_ON).unwrap()
    };
    let certificates = certify(false);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| certify(false)), certificates);
    let members: Vec<&dyn Model> = ensemble.members().iter().map(|m| &**m).collect();
    for (index, certificate) in certificates.iter().enumerate() {
        assert_eq!(certificate.point().as_slice(), points.row(index));
        let family = &certificate.retraining().unwrap().family;
        assert_eq!(*family, ensemble.origin().description());
        let retrained = tyrex::certificate::Retrained {
            models: &members,
            family,
            steered: false,
            search: None,
            likeness: Some(&likeness),
        };
        assert_eq!(verify(certificate, explainer.model(), Some(retrained)).unwrap(), []);
    }
    // Models that steered the search certify nothing.
    let by_models = |certificate: &Certificate| {
        let tiers = certificate.tiers().iter();
        tiers.filter(|tier| !matches!(tier, Tier::Interval(_))).map(Tier::verdict).max()
    };
    assert!(certificates.iter().any(|each| by_models(each) == Some(Verdict::Certified)));
    assert!(certify(true).iter().all(|each| by_models(each) < Some(Verdict::Certified)));
}

#[test]
fn work_that_is_stopped_says_so() {
    let explainer = trained();
    let terms = Terms::default();
    let points = accepted(&explainer, 6);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let stopped = one.install(|| explainer.certify(&points, None, &terms, Seed(3), STOP));
    assert!(matches!(stopped, Err(Error::Cancelled(_))), "{stopped:?}");
    let ensemble = ensemble(&explainer, 2);
    let stopped = one.install(|| {
        explainer.calibrate(&rejected(&explainer), &calibration(), &ensemble, |_| STOP())
    });
    assert!(matches!(stopped, Err(Error::Cancelled(_))), "{stopped:?}");
}

fn rejected(explainer: &Explainer) -> Vec<Applicant> {
    explainer.applicants().rejected(Part::Test)
}

fn calibration() -> CalibrationTerms {
    let mut request = Request::new("trex-nn", Protocol::Product, Norm::L1, Seed(2)).unwrap();
    if let Some(robustness) = request.method.robustness_mut() {
        robustness.samples = 50;
    }
    let goal = Goal { validity: 0.6, confidence: 0.8, ..Goal::default() };
    CalibrationTerms { goal, taus: vec![0.55, 0.6, 0.65], request, factuals: 5 }
}

#[test]
fn a_calibration_tries_every_threshold_on_the_first_rejected_rows() {
    let explainer = trained();
    let ensemble = ensemble(&explainer, 9);
    let answer =
        explainer.calibrate(&rejected(&explainer), &calibration(), &ensemble, |_| GO_ON()).unwrap();
    assert_eq!((answer.factuals, answer.choosing, answer.reporting), (5, 5, 4));
    assert_eq!(answer.curve.iter().map(|p| p.tau).collect::<Vec<_>>(), [0.65, 0.6, 0.55]);
    assert!(answer.curve.windows(2).all(|pair| pair[0].coverage <= pair[1].coverage));
    let mut plain = calibration();
    plain.request = Request::new("nn", Protocol::Product, Norm::L1, Seed(2)).unwrap();
    let error = explainer
        .calibrate(&rejected(&explainer), &plain, &ensemble, |_| GO_ON())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("parameter `method` is nn, expected a method with a"), "{error}");
    let nobody = CalibrationTerms { factuals: 0, ..calibration() };
    let error = explainer
        .calibrate(&rejected(&explainer), &nobody, &ensemble, |_| GO_ON())
        .unwrap_err()
        .to_string();
    assert!(error.contains("at least 1 applicant to search for"), "{error}");
}

#[test]
fn a_file_of_counterfactuals_is_read_line_by_line() {
    let dataset = german();
    let lines = [3, 5, 8];
    let mut columns: Vec<Column> = ["row", "status", "model"].map(Column::new).into();
    for (line, status) in ["found", "not_found", "found"].into_iter().enumerate() {
        columns[0].push(&(10 * line).to_string());
        columns[1].push(status);
        columns[2].push("abc");
    }
    for whole in dataset.table().columns() {
        let mut column = Column::new(whole.name());
        for (line, &row) in lines.iter().enumerate() {
            column.push(if line == 1 { "" } else { whole.cell(row) });
        }
        columns.push(column);
    }
    let given =
        AdviceRows::read(dataset.schema(), &Table::new("cf.csv", columns).unwrap()).unwrap();
    assert_eq!(given.factuals, [0, 20]);
    assert_eq!((given.not_found, given.model.as_deref()), (1, Some("abc")));
    let rows = given.data.rows();
    assert_eq!(rows, [dataset.rows()[3].clone(), dataset.rows()[8].clone()]);
}

/// One value is named of all that change: it does not do alone.
#[test]
fn a_rule_that_is_let_go_is_said_to_be_one_change_among_others() {
    let constraint = Constraint::Feature("age".to_owned());
    let counterfactual = Counterfactual {
        point: vec![0.0],
        score: 0.9,
        value: 0.9,
        cost: 1.5,
        least_cost: None,
        row: None,
    };
    let broken = Violation {
        constraint: constraint.clone(),
        found: "`30`".to_owned(),
        allowed: "`20`, as it is".to_owned(),
    };
    let relaxation = Relaxation { constraint, counterfactual, breaks: vec![broken] };
    assert_eq!(
        relaxation.to_string(),
        "feature `age`: with `30` among the changes the search finds advice (cost 1.500); \
         allowed is `20`, as it is"
    );
}
