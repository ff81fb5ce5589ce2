//! Documents satisfy their schemas.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tyrex::action::Overrides;
use tyrex::calibrate::{Calibration, Goal};
use tyrex::certificate::{
    CertificateDocument, Deviation, Likeness, LikenessTest, RecipeSource, ShiftSource, SlopeSource,
    Statistic, Terms, TheoremTerms,
};
use tyrex::change::{Ensemble, ModelChange};
use tyrex::counterfactual::{Budget, MethodSpec, Norm, Protocol, Step};
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::data::schema::{Action, Interval};
use tyrex::data::{Catalogue, Dataset, Schema, Table};
use tyrex::explain::{
    Adviser, CalibrationTerms, Explained, Explainer, FeatureDocument, Fresh, Gate, GateCandidate,
    GateReport, Part, Performance, Request, RetrainingTerms, RowStability, RowSurvival,
    StabilityTerms,
};
use tyrex::lipschitz::{LipschitzBound, Region, Soundness};
use tyrex::measure::{Gamma, Mean, Measure, PathIntegral, Stability};
use tyrex::model::TrainParams;
use tyrex::neighbourhood::Sampling;
use tyrex::{Points, Seed};
use utoipa::ToSchema;

use crate::support::json_schema::Schemas;
use crate::support::promises::{promise, values_of};
use crate::support::{advise, with_search_models};

fn on<T>(_: T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn german(seed: u64) -> Explainer {
    let catalogue = Catalogue::with_folders(Vec::new());
    let german = catalogue.load("german", Variant::Product, Direction::Favourable).unwrap();
    let params = TrainParams { hidden: vec![12], epochs: 20, ..TrainParams::paper() };
    Explainer::train(german, &params, Seed(seed), |_| on(())).unwrap()
}

fn ensemble(explainer: &Explainer, models: usize) -> Ensemble {
    let change = ModelChange::with_params("reinitialise", "").unwrap();
    let params = TrainParams { epochs: 5, ..explainer.retraining().params().unwrap() };
    let terms = RetrainingTerms { change, models, params, seed: Seed(7) };
    explainer.retraining().train(&terms, |_, _| ControlFlow::Continue(())).unwrap()
}

/// The document is what the schema of `T` says, and its null cannot be a number that was lost.
fn check<T: ToSchema>(document: &impl Serialize) -> Value {
    let value = serde_json::to_value(document).unwrap();
    let problems = Schemas::of::<T>().problems(&value);
    assert!(problems.is_empty(), "{}: {problems:#?}\n{value:#}", T::name());
    value
}

#[test]
fn advice_of_every_method() {
    let explainer = with_search_models(&german(0));
    let mut rejected = explainer.applicants().rejected(Part::Test);
    rejected.truncate(3);
    rejected.push(
        explainer.applicants().part(Part::Test).into_iter().find(|a| !a.is_rejected()).unwrap(),
    );
    let ensemble = ensemble(&explainer, 4);
    let fresh = explainer.retraining().fresh(ensemble, false, &|_| ControlFlow::Continue(()));
    let fresh = fresh.unwrap();
    for protocol in [Protocol::Product, Protocol::Paper] {
        for name in MethodSpec::NAMES {
            let mut request = Request::new(name, protocol, Norm::L1, Seed(1)).unwrap();
            let _ = request.set_test(Some(0.6), Some(100), None);
            check::<Request>(&request);
            let adviser = Adviser::new(&explainer, request).unwrap();
            let advice = adviser.advise(&rejected, on).unwrap();
            for each in &advice {
                let certificate = each.found().map(|found| {
                    let point = Points::one(&found.point);
                    let (terms, on) = (Terms::default(), || ControlFlow::Continue(()));
                    let made = explainer.certify(&point, Some(&fresh), &terms, Seed(2), on);
                    made.unwrap().remove(0)
                });
                let document = adviser.explained(each, certificate, Some(&fresh), 4, on).unwrap();
                let value = check::<Explained<'_>>(&document);
                assert!(value["sentence"].as_str().unwrap().ends_with('.'));
                if let Some(certificate) = value["advice"].get("certificate") {
                    let words = certificate["sentence"].as_str().unwrap();
                    for claim in certificate["claims"].as_array().unwrap() {
                        let claimed = claim["verdict"] != "vacuous";
                        let said = claim["sentence"].as_str().unwrap();
                        assert!(!claimed || words.contains(said), "{words}");
                        assert!(!claim["rests_on"].as_array().unwrap().is_empty());
                    }
                }
            }
        }
    }
}

/// One feature that cannot move far enough: nothing is found, and rules are in the way.
#[test]
fn rules_that_stand_in_the_way() {
    let explainer = german(0);
    let mut request = Request::new("min-cost", Protocol::Product, Norm::L1, Seed(1)).unwrap();
    request.overrides.vary = Some(vec!["own_telephone".to_owned()]);
    let rejected = explainer.applicants().rejected(Part::Test);
    let adviser = Adviser::new(&explainer, request).unwrap();
    let advice = adviser.advise(&rejected[..6], on).unwrap();
    let mut relaxed = 0;
    for each in &advice {
        let document = adviser.explained(each, None, None, 24, on).unwrap();
        let value = check::<Explained<'_>>(&document);
        relaxed += usize::from(value["advice"]["relaxations"]["helpful"][0].is_object());
    }
    assert!(relaxed > 0);
}

#[test]
fn measures_survival_features_and_performances() {
    let explainer = german(0);
    let rows = explainer.applicants().part(Part::Test);
    for gamma in [Gamma::Given(0.5), Gamma::Sound, Gamma::SampledSlopes, Gamma::SampledGradients] {
        let terms = StabilityTerms { samples: 50, gamma, ..StabilityTerms::default() };
        check::<StabilityTerms>(&terms);
        let read = explainer
            .stability(&terms)
            .unwrap()
            .read(&rows[..5], || ControlFlow::Continue(()))
            .unwrap();
        read.iter().for_each(|row| drop(check::<RowStability>(row)));
    }
    let survival = explainer.survival(&rows[..5], &ensemble(&explainer, 3)).unwrap();
    survival.iter().for_each(|row| drop(check::<RowSurvival>(row)));
    let features = explainer.features();
    features.iter().for_each(|feature| drop(check::<FeatureDocument>(feature)));
    explainer.performances().iter().for_each(|each| drop(check::<Performance>(each)));
    let age = features.iter().find(|feature| feature.name == "age").unwrap();
    assert_eq!((age.minimum, age.maximum, age.step), (Some(19.0), Some(75.0), Some(1.0)));
    assert_eq!(check::<FeatureDocument>(age)["kind"], "integer");
}

/// Ranges, steps, codes and missing cells, as a form has to know them.
#[test]
fn features_of_a_schema_that_says_much() {
    let schema = Schema::from_toml(include_str!("../schemas/form.toml")).unwrap();
    let csv = "income,home,paid\n-9,own,yes\n100.5,rent,no\n,own,yes\n7,rent,no\n80,own,yes\n";
    let table = Table::from_csv("people.csv".as_ref(), csv.as_bytes()).unwrap();
    let params = TrainParams { hidden: vec![2], epochs: 1, ..TrainParams::paper() };
    let dataset = Dataset::load(&schema, table).unwrap();
    let explainer = Explainer::train(dataset, &params, Seed(0), |_| on(())).unwrap();
    let documents: Vec<Value> = explainer.features().iter().map(check::<FeatureDocument>).collect();
    let expected = json!([
        {
            "name": "income", "kind": "numeric", "description": "a month", "unit": "EUR",
            "minimum": 7.0, "maximum": 100.5, "step": 0.5, "range": [0, null], "special": [-9.0],
            "missing": true, "action": "free"
        },
        {
            "name": "home", "kind": "categorical", "levels": ["own", "rent"], "missing": false,
            "action": { "levels": ["own"] }
        }
    ]);
    assert_eq!(Value::Array(documents), expected);
}

#[test]
fn certificates_on_every_footing() {
    let explainer = german(0);
    let points = Points::one(explainer.points().row(0));
    let ensemble = ensemble(&explainer, 3);
    let bound = |region| LipschitzBound { value: 0.4, region, soundness: Soundness::Sound };
    let given = SlopeSource::Given {
        model: bound(Region::Ball { radius: 1.0 }),
        changed: bound(Region::Box { radius: 1.0 }),
    };
    let theorem =
        |slope, shift| Some(TheoremTerms { slope, shift, samples: 60, ..TheoremTerms::default() });
    let all = [
        theorem(SlopeSource::Spectral, ShiftSource::Measured),
        theorem(SlopeSource::Local, ShiftSource::Unknown),
        theorem(SlopeSource::SampledGradients, ShiftSource::Given { epsilon: 0.01 }),
        theorem(given, ShiftSource::Measured),
        None,
    ];
    let own = explainer.retraining().likeness(&ensemble, &|_| ControlFlow::Continue(())).unwrap();
    let within = Deviation { statistic: Statistic::Score, model: 0.7, mean: 0.5, within: 0.1 };
    let tested = |recipe, differs| Likeness {
        recipe,
        test: LikenessTest::Tested { level: 0.01, siblings: 20, rows: 1000, differs },
    };
    let likenesses = [
        own,
        tested(RecipeSource::OtherRows, vec![within]),
        tested(RecipeSource::Assumed, Vec::new()),
    ];
    for (index, theorem) in all.into_iter().enumerate() {
        let terms = Terms { theorem, delta: (index != 1).then_some(0.01), ..Terms::default() };
        check::<Terms>(&terms);
        let likeness = likenesses[index % likenesses.len()].clone();
        let fresh = Fresh {
            ensemble: ensemble.clone(),
            steered: index == 0,
            search: None,
            likeness,
            looks: 0,
        };
        for fresh in [None, Some(&fresh)] {
            let on = || ControlFlow::Continue(());
            let certificate =
                explainer.certify(&points, fresh, &terms, Seed(3), on).unwrap().remove(0);
            let document = CertificateDocument::from(certificate.clone());
            let value = check::<CertificateDocument>(&document);
            // The words do not keep anybody from reading the certificate and checking it.
            let read: CertificateDocument = serde_json::from_value(value).unwrap();
            assert_eq!(read.certificate, certificate);
        }
    }
}

#[test]
fn audits_and_calibrations() {
    let (old, new) = (german(0), german(1));
    let mut request = Request::new("trex-nn", Protocol::Product, Norm::L2, Seed(4)).unwrap();
    request.set_test(Some(0.6), Some(60), None).unwrap();
    let rejected = old.applicants().rejected(Part::Test);
    let advice = advise(&old, &request, &rejected[..20], on).unwrap();
    let mut promises: Vec<_> =
        advice.iter().filter_map(|each| promise(old.schema(), each)).collect();
    // A promise that is broken for sure: a row that the new model rejects.
    promises[0].advised = values_of(new.schema(), &new.applicants().rejected(Part::Test)[0].values);
    let name = "new".to_owned();
    let candidates = [GateCandidate { name, explainer: &new, has_only_promises: false }];
    let report = Gate::new(request.clone()).judge(&candidates, &promises, on).unwrap();
    assert!(report.candidates[0].tally.broken > 0);
    check::<GateReport>(&report);

    let ensemble = ensemble(&new, 8);
    for (validity, taus) in [(0.5, vec![0.5, 0.6]), (0.6, vec![0.55]), (0.99, vec![0.5])] {
        let goal = Goal { validity, confidence: 0.6, ..Goal::default() };
        let terms = CalibrationTerms { goal, taus, request: request.clone(), factuals: 5 };
        check::<CalibrationTerms>(&terms);
        check::<Calibration>(&new.calibrate(&rejected, &terms, &ensemble, on).unwrap());
    }
}

/// A document that was read is refused, or taken, by the schema as it is by `serde`.
fn both_say<T: ToSchema + DeserializeOwned + Serialize>(value: &Value, good: bool) {
    let read = serde_json::from_value::<T>(value.clone());
    let problems = Schemas::of::<T>().problems(value);
    assert_eq!(read.is_ok(), good, "serde: {value}");
    assert_eq!(problems.is_empty(), good, "schema: {value}\n{problems:#?}");
}

#[test]
fn what_the_schema_takes_can_be_read_and_what_it_refuses_cannot() {
    for name in MethodSpec::NAMES {
        for protocol in [Protocol::Product, Protocol::Paper, Protocol::Reference] {
            let mut method =
                serde_json::to_value(MethodSpec::named(name, protocol).unwrap()).unwrap();
            both_say::<MethodSpec>(&method, true);
            both_say::<MethodSpec>(&json!({ "method": name }), true);
            method["more"] = json!(1);
            both_say::<MethodSpec>(&method, false);
            method.as_object_mut().unwrap().remove("more");
            method.as_object_mut().unwrap().remove("method");
            both_say::<MethodSpec>(&method, false);
        }
    }
    both_say::<MethodSpec>(&json!({ "method": "magic" }), false);
    both_say::<MethodSpec>(&json!({ "method": "roar", "steps": "many" }), false);

    let actions = [
        ("a".to_owned(), Action::Fixed),
        ("b".to_owned(), Action::Within(Interval { lower: f64::NEG_INFINITY, upper: 2.5 })),
        ("c".to_owned(), Action::Levels(vec!["x".into(), 1.0.into()])),
    ];
    let overrides = Overrides {
        vary: Some(vec!["a".to_owned()]),
        actions: BTreeMap::from(actions),
        ..Overrides::default()
    };
    both_say::<Overrides>(&serde_json::to_value(overrides).unwrap(), true);
    both_say::<Overrides>(&json!({}), true);
    both_say::<Overrides>(&json!({ "vary": "a" }), false);
    both_say::<Overrides>(&json!({ "actions": { "a": "sideways" } }), false);

    both_say::<Budget>(&json!({ "seconds": 1.5 }), true);
    both_say::<Budget>(&json!({ "steps": null, "evaluations": 5 }), true);
    both_say::<Budget>(&json!({ "steps": -1 }), false);
    both_say::<Budget>(&json!({ "hours": 1 }), false);

    for step in [Step::Raw(0.1), Step::Unit(2.0), Step::Adaptive] {
        both_say::<Step>(&serde_json::to_value(step).unwrap(), true);
    }
    both_say::<Step>(&json!({ "raw": "far" }), false);
    both_say::<Step>(&json!("raw"), false);

    for measure in [
        Measure::Mean(Mean {}),
        Measure::Stability(Stability { gamma: Gamma::Given(1.0) }),
        Measure::PathIntegral(PathIntegral { steps: 3 }),
    ] {
        both_say::<Measure>(&serde_json::to_value(measure).unwrap(), true);
    }
    both_say::<Measure>(&json!({ "name": "path-integral" }), false);
    both_say::<Norm>(&json!("l1"), true);
    both_say::<Norm>(&json!("l7"), false);
    both_say::<Sampling>(&json!("truncated-gaussian"), true);
    both_say::<StabilityTerms>(&json!({ "gamma": { "given": 2.5 }, "seed": 3 }), true);
    both_say::<StabilityTerms>(&json!({ "gamma": "none" }), false);
    both_say::<StabilityTerms>(&json!({ "samples": 10.5 }), false);
    both_say::<Terms>(&json!({ "theorem": null, "delta": null }), true);
    both_say::<Terms>(&json!({ "theorem": { "shift": { "given": { "epsilon": 0.1 } } } }), true);
    both_say::<Terms>(&json!({ "theorem": { "shift": { "given": {} } } }), false);
    both_say::<Goal>(&json!({ "missing": "left-out", "test": "hoeffding-bentkus" }), true);
    both_say::<Goal>(&json!({ "missing": "gone" }), false);
}
