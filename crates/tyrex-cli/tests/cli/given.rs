//! `--ensemble` with models that were retrained elsewhere: model files without a manifest.

use crate::{LOANS, Place, assert_golden};

/// Loans, a model of them, 30 retrained models as files in `given`, and counterfactuals.
fn place() -> Place {
    let place = Place::with_loans();
    let small = ["--epochs", "300", "--hidden", "16", "--early-stopping", "none"];
    place.done(&[&["train", "--out", "m.onnx"], &small[..], &LOANS[..]].concat());
    let retrain = ["retrain", "--model", "m.onnx", "--models", "30", "--out", "ours"];
    place.done(&[&retrain, &LOANS[..]].concat());
    std::fs::create_dir(place.path("given")).unwrap();
    for index in 0..30 {
        let from = place.path(&format!("ours/member-{index:04}.onnx"));
        std::fs::copy(from, place.path(&format!("given/run{index}.onnx"))).unwrap();
    }
    // Other files are not models.
    place.write("given/notes.txt", "retrained in May");
    place.write(
        "cf.csv",
        "row,status,reason,income,age,housing,owner\n\
         3,found,,88.5,41,own,yes\n\
         7,found,,84.5,30,rent,no\n",
    );
    place
}

const CERTIFY: [&str; 8] = [
    "certify",
    "--counterfactuals",
    "cf.csv",
    "--model",
    "m.onnx",
    "--reference",
    "loans.csv",
    "--ensemble",
];

#[test]
fn models_that_were_retrained_elsewhere_certify() {
    let place = place();
    let text = place.done(&[&CERTIFY[..], &["given"]].concat());
    assert_golden("certify_given.txt", &text);
    let answer = place.run(&[&CERTIFY[..], &["given", "--json"]].concat());
    place.write("c.json", &answer.stdout);
    let verify = ["certify", "--verify", "c.json", "--model", "m.onnx", "--ensemble"];
    let verified = place.json(&[&verify[..], &["given"]].concat());
    assert_eq!(verified["confirmed"], 2);
    // They are those of the manifest, in another order of names.
    let ours = place.json(&[&CERTIFY[..], &["ours"]].concat());
    let given: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    for index in 0..2 {
        let tier = |document: &serde_json::Value| {
            let tier = &document["certificates"][index]["certificate"]["tiers"][2];
            (tier["valid"].clone(), tier["models"].clone(), tier["verdict"].clone())
        };
        assert_eq!(tier(&given), tier(&ours));
    }
}

#[test]
fn a_search_and_a_calibration_take_them() {
    let place = place();
    let explain = ["explain", "--model", "m.onnx", "--reference", "loans.csv", "--limit", "3"];
    let explain = [&explain[..], &LOANS[..], &["--ensemble", "given"]].concat();
    let promise = ["--promise", "0.5", "--confidence", "0.9"];
    let document = place.json(&[&explain[..], &promise[..]].concat());
    assert_eq!(document["request"]["method"]["method"], "trex-e");
    let found: Vec<_> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|each| each["advice"]["status"] == "found")
        .collect();
    assert!(!found.is_empty());
    for applicant in &found {
        let retraining = &applicant["advice"]["certificate"]["retraining"];
        assert_eq!(retraining["models"].as_array().unwrap().len(), 9);
        let family = retraining["family"].as_str().unwrap();
        assert!(family.contains("retrained elsewhere, from the folder given"), "{family}");
    }
    let rests_on = document["portfolio"]["rests_on"][0].as_str().unwrap();
    assert!(rests_on.contains("retrained elsewhere"), "{rests_on}");
    // Without a promise of its own a small ensemble certifies the usual search.
    let usual = place.json(&explain);
    assert_eq!(usual["request"]["method"]["method"], "trex-o");
    let calibrate = ["calibrate", "--model", "m.onnx", "--reference", "loans.csv", "--limit", "3"];
    let flags = ["--tau", "0.6,0.7", "--target", "0.5", "--confidence", "0.5", "--k", "50"];
    let calibrate = [&calibrate[..], &flags, &LOANS[..], &["--ensemble", "given"]].concat();
    let answer = place.run(&[&calibrate[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(document["change"].is_null(), "{document}");
    assert!(document["given"].as_str().unwrap().contains("the folder given"), "{document}");
    assert_eq!(document["calibration"]["choosing"], 15);
}

#[test]
fn a_folder_without_models_and_too_few_of_them_say_how_many_are_needed() {
    let place = place();
    std::fs::create_dir(place.path("empty")).unwrap();
    let answer = place.run(&[&CERTIFY[..], &["empty"]].concat());
    assert_eq!(answer.code, 2);
    for piece in ["empty: it has no `ensemble.json`, and 0 model files", "61 fresh ones and 10"] {
        assert!(answer.stderr.contains(piece), "{}", answer.stderr);
    }
    let explain = ["explain", "--model", "m.onnx", "--reference", "loans.csv", "--limit", "1"];
    let promise = ["--ensemble", "given", "--promise", "0.9"];
    let answer = place.run(&[&explain[..], &LOANS[..], &promise].concat());
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("is 30 models, expected at least 71"), "{}", answer.stderr);
}
