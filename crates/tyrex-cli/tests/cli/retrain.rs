//! `tyrex retrain`

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Place, assert_golden, without_times};

#[test]
fn german_is_retrained_as_the_golden_file_says() {
    let arguments = "retrain --dataset german --change leave-out --models 4";
    let text = Place::new().done(&format!("{arguments} --out german-ensemble"));
    assert_golden("retrain_german.txt", &without_times(&text));
}

/// A small ensemble of the loans.
const SMALL: &str = "retrain --models 3 --epochs 4 --hidden 6 --out";

#[test]
fn the_report_says_what_changed_and_how_far_the_models_moved() {
    let place = Place::with_loans();
    let arguments = format!("{SMALL} fresh --change leave-out LOANS");
    let text = without_times(&place.done(&arguments));
    for piece in [
        "leave-out: trained again without 1 % of the rows",
        "3 models in [time] s, seed 0",
        "mean change",
        "sqrt(nu)",
        "Lemma 1",
        "flipped",
        "Wrote fresh",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    let document = place.json(&format!("{arguments} --force"));
    assert_eq!(document["change"]["name"], "leave-out");
    assert_eq!(document["change"]["fraction"], 0.01);
    assert_eq!(document["moved"].as_array().unwrap().len(), 2);
    let moved = &document["moved"][0];
    let number = |name: &str| moved[name].as_f64().unwrap();
    assert!(number("mean_change") > 0.0);
    assert!(number("mean_variance") <= number("largest_variance"));
    assert_eq!(number("lemma_bound"), number("largest_variance").sqrt());
    assert_eq!(moved["lemma_holds"], number("mean_change") <= number("lemma_bound"));
    let prints = document["fingerprints"].as_array().unwrap();
    assert_eq!(prints.len(), 3);
    // The files have the reported fingerprints, and every model is a model file.
    for (index, print) in prints.iter().enumerate() {
        let file = format!("fresh/member-000{index}.onnx");
        assert_eq!(place.json(&format!("model show {file}"))["model"]["fingerprint"], *print);
    }
    let base = place.json("model show fresh/base.onnx");
    assert_eq!(base["model"]["fingerprint"], document["model"]["fingerprint"]);
}

#[test]
fn the_base_is_the_model_that_train_gives() {
    let place = Place::with_loans();
    let flags = "--epochs 4 --hidden 6 --seed 5";
    place.done(&format!("train --out m.onnx {flags} LOANS"));
    let trained = place.json("model show m.onnx");
    let retrain =
        |flags: &str| place.json(&format!("retrain --models 2 --force --out fresh {flags} LOANS"));
    let anew = retrain(flags);
    assert_eq!(anew["model"]["fingerprint"], trained["model"]["fingerprint"]);
    // A model from a file has the same layers when it is trained again.
    let from_file = retrain("--model m.onnx --epochs 4 --seed 5");
    assert_eq!(from_file["model"]["fingerprint"], trained["model"]["fingerprint"]);
    assert_eq!(from_file["params"]["hidden"][0], 6);
    assert_eq!(from_file["fingerprints"], anew["fingerprints"]);
    let others = retrain("--model m.onnx --epochs 4 --seed 6");
    assert_eq!(others["model"]["fingerprint"], trained["model"]["fingerprint"]);
    assert_ne!(others["fingerprints"], anew["fingerprints"]);
}

#[test]
fn a_model_from_a_file_is_retrained_as_it_was_trained() {
    let place = Place::with_loans();
    let flags = "--epochs 6 --hidden 6 --l2 0.01 --early-stopping 2";
    place.done(&format!("train --out m.onnx {flags} LOANS"));
    let retrain = |flags: &str| {
        let fixed = "retrain --model m.onnx --models 1 --force --out fresh";
        place.json(&format!("{fixed} {flags} LOANS"))["params"].clone()
    };
    let own = retrain("");
    assert_eq!(own["l2"], 0.01);
    assert_eq!(own["epochs"], 6);
    assert_eq!(own["early-stopping"]["patience"], 2);
    let given = retrain("--l2 0 --early-stopping 4");
    assert_eq!(given["l2"], 0.0);
    assert_eq!(given["epochs"], 6);
    assert_eq!(given["early-stopping"]["patience"], 4);
    assert_eq!(given["early-stopping"]["fraction"], own["early-stopping"]["fraction"]);
}

#[test]
fn every_command_that_retrains_takes_the_flags_of_a_training() {
    let place = Place::new();
    let flags = |command: &str, heading: &str| {
        let text = place.done(&[command, "--help"]);
        let (_, section) = text.split_once(&format!("{heading}:\n")).unwrap();
        // Headings stand at the beginning of a line.
        let section = section.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
        let own = section.filter(|line| line.trim_start().starts_with("--"));
        own.map(|line| line.trim().to_owned()).filter(|line| !line.starts_with("--seed")).collect()
    };
    let trained: Vec<String> = flags("train", "Training");
    assert_eq!(trained.len(), 10, "{trained:?}");
    for command in ["retrain", "explain", "certify", "calibrate", "serve"] {
        if command == "serve" && !cfg!(feature = "service") {
            continue;
        }
        assert_eq!(flags(command, "Training of retrained models"), trained, "{command}");
    }
}

#[test]
fn every_flag_reaches_the_change() {
    let place = Place::with_loans();
    let retrain = |flags: &str| {
        let document = place.json(&format!("{SMALL} fresh --force {flags} LOANS"));
        document["fingerprints"].clone()
    };
    let plain = retrain("");
    let left_out = retrain("--change leave-out");
    assert_ne!(left_out, plain);
    assert_ne!(retrain("--change leave-out --change-params 'fraction = 0.5'"), left_out);
    // The members of a mixture have their own seeds, so they are none of its changes' members.
    let mixed = retrain("--change reinitialise,leave-out");
    assert!(mixed != plain && mixed != left_out);
    assert_eq!(retrain("--change reinitialise --change leave-out"), mixed);
    assert_ne!(retrain("--seed 1"), plain);
    assert_ne!(retrain("--batch 7"), plain);
    assert_eq!(retrain("--threads 1"), plain);
}

#[test]
fn one_model_is_an_ensemble_without_a_spread() {
    let place = Place::with_loans();
    let document = place.json("retrain --models 1 --epochs 2 --out one LOANS");
    assert_eq!(document["moved"].as_array().unwrap().len(), 0);
}

#[test]
fn every_change_makes_an_ensemble_that_certifies() {
    let place = Place::with_loans();
    place.done(&"train --epochs 4 --hidden 6 --out m.onnx LOANS");
    place.write("cf.csv", "row,status,income,age,housing,owner\n1,found,80,30,own,yes\n");
    for (change, params, description) in [
        ("reinitialise", "", "trained again from new weights"),
        ("leave-out", "fraction = 0.1", "trained again without 10 % of the rows, from new weights"),
        ("bootstrap", "", "trained again on as many rows drawn with replacement, from new weights"),
        (
            "architecture",
            "hidden = [[4], [5, 5]]",
            "trained again with hidden layers drawn from 2 choices, from new weights",
        ),
        (
            "hyperparameters",
            "epochs = 1.5",
            "trained again with epochs, batch size and learning rate within factors of 1.5, 2 and \
             2 of the base's, from new weights",
        ),
        (
            "fine-tune",
            "epochs = 2",
            "trained on for 2 epochs from the base's weights, with 10 % of the rows replaced by \
             new ones",
        ),
        (
            "weight-noise",
            "delta = 0.001",
            "every weight and bias moved by at most 0.001, without training",
        ),
        (
            "dropout",
            "rate = 0.2",
            "each hidden unit left out with probability 0.2, without training",
        ),
        (
            "adversarial-weights",
            "slack = 0.05",
            "weights moved against 1 of the accepted training rows, drawn at random, while the \
             training loss rises by at most 5 %",
        ),
        (
            "moved-threshold",
            "to = 0.7",
            "the acceptance threshold moved to one between 0.4 and 0.7, without training",
        ),
        (
            "mixture",
            r#"changes = [{name = "bootstrap"}, {name = "leave-out", fraction = 0.1}]"#,
            "one of 2 changes, drawn for each model: trained again on as many rows drawn with \
             replacement, from new weights; or trained again without 10 % of the rows, from new \
             weights",
        ),
    ] {
        let flags = format!("--model m.onnx --change {change} --change-params '{params}'");
        let fixed = format!("retrain --models 3 --epochs 4 --out {change}");
        let document = place.json(&format!("{fixed} {flags} LOANS"));
        assert_eq!(document["change"]["name"], change);
        assert_eq!(document["fingerprints"].as_array().unwrap().len(), 3);
        let certify = "certify --counterfactuals cf.csv --model m.onnx --json";
        let answer = place.run(&format!("{certify} --ensemble {change}"));
        assert!(answer.code < 2, "{change}: {}", answer.stderr);
        assert!(answer.stdout.contains(description), "{change}: {}", answer.stdout);
    }
}

/// Every file of a folder with its bytes.
fn files(place: &Place, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(place.path(folder)).unwrap().map(Result::unwrap);
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
    entries
        .map(|entry| (name(&entry), std::fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| !name.starts_with(".tyrex-"))
        .collect()
}

/// Starts a long retraining, ends it when two models are there, and does it again.
#[cfg(unix)]
fn ended_and_done_again(signal: &str) {
    let place = Place::with_loans();
    let arguments = |out| format!("retrain --models 6 --epochs 500 --threads 1 --out {out} LOANS");
    let undisturbed = place.json(&arguments("whole"));
    let mut command = place.command(&arguments("parts"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let second = place.path("parts/member-0001.onnx");
    let patience = Instant::now();
    while !second.exists() && patience.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert!(!child.wait().unwrap().success());
    assert!(second.exists() && !place.path("parts/ensemble.json").exists());
    // Not touched by what is done again.
    let time = std::fs::metadata(&second).unwrap().modified().unwrap();
    let again = place.json(&arguments("parts"));
    assert_eq!(again["fingerprints"], undisturbed["fingerprints"]);
    assert_eq!(std::fs::metadata(&second).unwrap().modified().unwrap(), time);
    assert!(files(&place, "parts") == files(&place, "whole"));
}

#[cfg(unix)]
#[test]
fn a_killed_retraining_goes_on_where_it_was() {
    ended_and_done_again("-KILL");
}

#[cfg(unix)]
#[test]
fn an_interrupted_retraining_goes_on_where_it_was() {
    ended_and_done_again("-INT");
}

#[test]
fn the_models_of_another_plan_are_kept_unless_forced() {
    let place = Place::with_loans();
    place.done(&format!("{SMALL} fresh LOANS"));
    // Half of it, as an interrupt leaves it.
    std::fs::remove_file(place.path("fresh/ensemble.json")).unwrap();
    let before = files(&place, "fresh");
    let other = format!("{SMALL} fresh --seed 1 LOANS");
    place.refused(&other, &["fresh/plan.json", "another plan", "`seed`", "--force"]);
    assert!(files(&place, "fresh") == before);
    let forced = place.json(&format!("{other} --force"));
    assert_eq!(forced["seed"], 1);
}
