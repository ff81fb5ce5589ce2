//! The gate against onnxruntime: a promise is kept if and only if onnxruntime scores the promised
//! row at 0.5 or more.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rand::RngExt as _;
use tyrex::Seed;
use tyrex::counterfactual::{Norm, Protocol};
use tyrex::data::{Schema, Table};
use tyrex::explain::{
    Explainer, Gate, GateCandidate, PromiseStatus, Reference, Request, WrittenPromise, import,
};
use tyrex::model::files::ImportOptions;

const SCHEMA: &str = include_str!("../schemas/purposes.toml");

/// Promised rows as a file that no model made.
fn promised() -> String {
    let mut random = Seed(8).rng();
    let mut csv = String::from("age,income,purpose\n");
    for _ in 0..300 {
        let purpose = ["car", "house", "school"][random.random_range(0..3)];
        let (age, income) = (random.random_range(18..80), random.random_range(0.0..10.0_f32));
        csv += &format!("{age},{income},{purpose}\n");
    }
    csv
}

#[test]
fn a_promise_is_kept_if_onnxruntime_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("promised.csv");
    std::fs::write(&file, promised()).unwrap();
    super::python("make_candidates.py", &[folder.path()]);
    let scores = std::fs::read_to_string(folder.path().join("scores.json")).unwrap();
    let scores: BTreeMap<String, Vec<f64>> = serde_json::from_str(&scores).unwrap();
    let promises = WrittenPromise::of_advice(&Table::read(&file).unwrap(), None).unwrap();
    let explainers: Vec<Explainer> = scores
        .keys()
        .map(|name| {
            let input = if name == "torch" { "encoded" } else { "raw" };
            let schema = Schema::from_toml(&SCHEMA.replace("INPUT", input)).unwrap();
            let path = folder.path().join(format!("{name}.onnx"));
            let model = import(&path, &schema, &ImportOptions::default()).unwrap();
            let data = Reference::of_promises(&schema, &promises).unwrap();
            Explainer::with_model(data, model).unwrap()
        })
        .collect();
    let candidates: Vec<GateCandidate<'_>> = scores
        .keys()
        .zip(&explainers)
        .map(|(name, explainer)| GateCandidate {
            name: name.clone(),
            explainer,
            has_only_promises: true,
        })
        .collect();
    let request = Request::new("min-cost", Protocol::Product, Norm::L1, Seed(1)).unwrap();
    let report =
        Gate::new(request).judge(&candidates, &promises, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.candidates.len(), 3);
    for candidate in &report.candidates {
        let expected = &scores[&candidate.name];
        for (promise, expected) in candidate.promises.iter().zip(expected) {
            let score = f64::from(promise.score.unwrap());
            assert!((score - expected).abs() < 1e-5, "{}: {score}, {expected}", candidate.name);
            let is_kept = promise.status == PromiseStatus::Kept;
            assert_eq!(is_kept, *expected >= 0.5, "{}, {}", candidate.name, promise.name);
        }
        let kept = expected.iter().filter(|score| **score >= 0.5).count();
        assert_eq!((candidate.tally.promises, candidate.tally.kept), (300, kept));
        // The test means nothing unless both occur.
        assert!(kept > 30 && kept < 270, "{}: {kept}", candidate.name);
    }
    let kept: Vec<usize> = report.candidates.iter().map(|each| each.tally.kept).collect();
    assert!(kept.is_sorted_by(|a, b| a >= b), "{kept:?}");
}
