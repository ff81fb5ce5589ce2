//! `tyrex retrain`

use crate::{LOANS, Place, assert_golden, without_times};

#[test]
fn german_is_retrained_as_the_golden_file_says() {
    let arguments = ["retrain", "--dataset", "german", "--change", "leave-out", "--models", "4"];
    let text = Place::new().done(&[&arguments[..], &["--out", "german-ensemble"]].concat());
    assert_golden("retrain_german.txt", &without_times(&text));
}

/// A small ensemble of the loans.
const SMALL: [&str; 8] = ["retrain", "--models", "3", "--epochs", "4", "--hidden", "6", "--out"];

#[test]
fn the_report_says_what_changed_and_how_far_the_models_moved() {
    let place = Place::with_loans();
    let arguments = [&SMALL[..], &["fresh", "--change", "leave-out"], &LOANS[..]].concat();
    let text = without_times(&place.done(&arguments));
    for piece in [
        "leave-out: trained again without 1 % of the rows",
        "3 models in [time] s, seed 0",
        "mean change",
        "sqrt(nu)",
        "flipped",
        "Wrote fresh",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    let document = place.json(&[&arguments[..], &["--force"]].concat());
    assert_eq!(document["change"]["name"], "leave-out");
    assert_eq!(document["change"]["fraction"], 0.01);
    assert_eq!(document["moved"].as_array().unwrap().len(), 2);
    assert!(document["moved"][0]["mean_change"].as_f64().unwrap() > 0.0);
    let prints = document["fingerprints"].as_array().unwrap();
    assert_eq!(prints.len(), 3);
    // What was written is what was reported, and every model is a model file.
    for (index, print) in prints.iter().enumerate() {
        let file = format!("fresh/member-000{index}.onnx");
        assert_eq!(place.json(&["model", "show", &file])["model"]["fingerprint"], *print);
    }
    let base = place.json(&["model", "show", "fresh/base.onnx"]);
    assert_eq!(base["model"]["fingerprint"], document["model"]["fingerprint"]);
}

#[test]
fn the_base_is_the_model_that_train_gives() {
    let place = Place::with_loans();
    let flags = ["--epochs", "4", "--hidden", "6", "--seed", "5"];
    place.done(&[&["train", "--out", "m.onnx"], &flags[..], &LOANS[..]].concat());
    let trained = place.json(&["model", "show", "m.onnx"]);
    let retrain = |flags: &[&str]| {
        let fixed = ["retrain", "--models", "2", "--force", "--out", "fresh"];
        place.json(&[&fixed, flags, &LOANS[..]].concat())
    };
    let anew = retrain(&flags);
    assert_eq!(anew["model"]["fingerprint"], trained["model"]["fingerprint"]);
    // A model from a file has the same layers when it is trained again.
    let from_file = retrain(&["--model", "m.onnx", "--epochs", "4", "--seed", "5"]);
    assert_eq!(from_file["model"]["fingerprint"], trained["model"]["fingerprint"]);
    assert_eq!(from_file["params"]["hidden"][0], 6);
    assert_eq!(from_file["fingerprints"], anew["fingerprints"]);
    let others = retrain(&["--model", "m.onnx", "--epochs", "4", "--seed", "6"]);
    assert_eq!(others["model"]["fingerprint"], trained["model"]["fingerprint"]);
    assert_ne!(others["fingerprints"], anew["fingerprints"]);
}

#[test]
fn every_flag_reaches_the_change() {
    let place = Place::with_loans();
    let retrain = |flags: &[&str]| {
        let document = place.json(&[&SMALL[..], &["fresh", "--force"], flags, &LOANS[..]].concat());
        document["fingerprints"].clone()
    };
    let plain = retrain(&[]);
    let left_out = retrain(&["--change", "leave-out"]);
    assert_ne!(left_out, plain);
    assert_ne!(retrain(&["--change", "leave-out", "--fraction", "0.5"]), left_out);
    assert_ne!(retrain(&["--seed", "1"]), plain);
    assert_ne!(retrain(&["--batch", "7"]), plain);
    assert_eq!(retrain(&["--threads", "1"]), plain);
}

#[test]
fn one_model_is_an_ensemble_without_a_spread() {
    let place = Place::with_loans();
    let arguments = ["retrain", "--models", "1", "--epochs", "2", "--out", "one"];
    let document = place.json(&[&arguments, &LOANS[..]].concat());
    assert_eq!(document["moved"].as_array().unwrap().len(), 0);
}
