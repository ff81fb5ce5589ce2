//! `tyrex calibrate`

use crate::{Place, assert_golden, without_times};

/// A small question about the loans.
const SMALL: &str = "calibrate --target 0.7 --confidence 0.8 --tau 0.5,0.7,0.9 --k 200";

#[test]
fn a_threshold_is_chosen_and_its_price_shown() {
    let place = Place::with_loans();
    let arguments = format!("{SMALL} --models 9 LOANS");
    let document = place.json(&arguments);
    let calibration = &document["calibration"];
    assert_eq!(calibration["verdict"], "chosen", "{calibration}");
    // 0.7^5 = 0.17: five models choose, four report.
    assert_eq!((&calibration["choosing"], &calibration["reporting"]), (&5.into(), &4.into()));
    let curve = calibration["curve"].as_array().unwrap();
    let taus: Vec<f64> = curve.iter().map(|point| point["tau"].as_f64().unwrap()).collect();
    assert_eq!(taus, [0.9, 0.7, 0.5]);
    assert!(taus.contains(&calibration["tau"].as_f64().unwrap()));
    let costs: Vec<f64> = curve.iter().map(|p| p["mean_cost"].as_f64().unwrap()).collect();
    assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
    let text = place.done(&arguments);
    assert_golden("calibrate_loans.txt", &without_times(&text));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for piece in [
        "70 % of the counterfactuals found hold under a retrained model, with confidence 80 %",
        "trex-o, L1",
        "5 choose, 4 report; trained again from new weights",
        "valid under the 4 models that did not choose it",
        "Cost curve tau found cost",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
}

#[test]
fn a_promise_that_cannot_be_shown_is_answered_with_no() {
    let place = Place::with_loans();
    let answer = place.run(&format!("{SMALL} --models 4 LOANS"));
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert_eq!(answer.stderr, "");
    assert!(
        answer.stdout.contains("no: 4 models cannot show it; at least 9 are needed"),
        "{}",
        answer.stdout
    );
}

/// Else `calibrate`, `explain`, `retrain` and `certify`, all with the usual seed, would certify
/// advice by the very models that chose its threshold.
#[test]
fn the_models_that_choose_are_not_those_that_retrain_makes_of_the_same_seed() {
    let place = Place::new();
    let goal = "--target 0.5 --confidence 0.5 --tau 0.6,0.8 --limit 20";
    let german = "--dataset german";
    let calibrate = format!("calibrate --method trex-nn {german} {goal}");
    let now = place.json(&calibrate);
    // Without --models there are four: twice as many as two halves of one.
    place.done(&format!("retrain --models 4 --out e {german}"));
    let folder = place.json(&format!("{calibrate} --ensemble e"));
    assert_eq!(now["calibration"]["choosing"], folder["calibration"]["choosing"]);
    assert_eq!(now["change"], folder["change"]);
    let validities = |document: &serde_json::Value| -> Vec<String> {
        let curve = document["calibration"]["curve"].as_array().unwrap();
        let halves = ["validity_choosing", "validity_reporting"];
        curve.iter().flat_map(|point| halves.map(|half| point[half].to_string())).collect()
    };
    assert_ne!(validities(&now), validities(&folder));
}

#[test]
fn the_protocol_reaches_the_search() {
    let place = Place::new();
    let flags = "--protocol reference --method trex-nn --limit 2 --tau 0.6";
    let goal = "--target 0.5 --confidence 0.5 --models 2 --json";
    let answer = place.run(&format!("calibrate --dataset german {flags} {goal}"));
    assert!(answer.code < 2, "{}", answer.stderr);
    let document = answer.json();
    let request = &document["terms"]["request"];
    assert_eq!(request["protocol"], "reference");
    assert_eq!(request["method"]["robustness"]["sigma"], 0.05);
}

#[test]
fn every_flag_reaches_the_search() {
    let place = Place::with_loans();
    let calibrate = |flags: &str| {
        let fixed = "calibrate --target 0.7 --confidence 0.8 --json";
        let answer = place.run(&format!("{fixed} {flags} LOANS"));
        assert!(answer.code < 2, "{flags:?}: {}", answer.stderr);
        let document = answer.json();
        document["calibration"].clone()
    };
    let plain = calibrate("--tau 0.6,0.9");
    assert_eq!(calibrate("--tau 0.6,0.9 --threads 1"), plain);
    let flags: [&str; 9] = [
        "--tau 0.6,0.9 --test hoeffding-bentkus",
        "--tau 0.6,0.8",
        "--tau 0.6,0.9 --norm l2",
        "--tau 0.6,0.9 --method trex-nn",
        "--tau 0.6,0.9 --sigma 0.2",
        "--tau 0.6,0.9 --limit 2",
        "--tau 0.6,0.9 --seed 1",
        "--tau 0.6,0.9 --missing invalid",
        "--tau 0.6,0.9 --models 15",
    ];
    for flag in flags {
        assert_ne!(calibrate(flag), plain, "{flag:?}");
    }
}
