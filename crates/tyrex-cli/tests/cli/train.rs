//! `tyrex train`

#[cfg(unix)]
use std::process::Stdio;

use crate::{Answer, Place, without_times};

#[test]
fn the_report_has_loss_accuracy_and_fingerprint() {
    let place = Place::with_loans();
    let arguments = "train LOANS --out m.onnx --epochs 3";
    let text = without_times(&place.done(&arguments));
    for piece in [
        "3 epochs in [time] s, seed 0",
        "accuracy",
        "AUC",
        "calibration error",
        "loss",
        "train",
        "test",
        "Wrote m.onnx",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    let document = place.json(&format!("{arguments} --force"));
    assert_eq!(document["training"]["history"].as_array().unwrap().len(), 3);
    let fingerprint = document["model"]["fingerprint"].as_str().unwrap();
    assert_eq!(fingerprint.len(), 64);
    assert!(text.contains(fingerprint), "the same seed gives the same model");
    let shown = place.json("model show m.onnx");
    assert_eq!(shown["model"]["fingerprint"], fingerprint);
}

#[test]
fn every_flag_reaches_the_training() {
    let place = Place::with_loans();
    let train =
        |flags: &str| place.json(&format!("train --out m.onnx --force --epochs 4 LOANS {flags}"));
    let plain = train("");
    let flags: [&str; 10] = [
        "--hidden 8",
        "--activation tanh",
        "--epochs 5",
        "--batch 7",
        "--learning-rate 0.01",
        "--l2 0.1",
        "--dropout 0.5",
        "--class-weights 1,3",
        "--early-stopping none",
        "--seed 1",
    ];
    for flag in flags {
        let changed = match flag {
            // Given twice, a flag is an error; the epochs are set above.
            "--epochs 5" => place.json(&format!("train --out m.onnx --force {flag} LOANS")),
            _ => train(flag),
        };
        assert_ne!(changed["model"]["fingerprint"], plain["model"]["fingerprint"], "{flag:?}");
    }
    let linear = train("--hidden none");
    assert_eq!(linear["model"]["sizes"].as_array().unwrap().len(), 2);
    let balanced = train("--class-weights balanced");
    assert_eq!(balanced["training"]["params"]["class-weights"], "balanced");
}

#[test]
fn a_file_of_parameters_is_read_and_flags_win() {
    let place = Place::with_loans();
    place.write("train.toml", "hidden = [6]\nepochs = 2\nactivation = { elu = { alpha = 0.5 } }\n");
    let document = place.json("train LOANS --out m.onnx --params train.toml --epochs 3");
    let params = &document["training"]["params"];
    assert_eq!(params["hidden"][0], 6);
    assert_eq!(params["epochs"], 3);
    assert_eq!(params["activation"]["elu"]["alpha"], 0.5);
}

#[test]
fn the_default_is_for_use_and_the_papers_protocols_train_as_the_paper() {
    let place = Place::with_loans();
    let params = |flags: &str| {
        let train = "train --dataset german --out m.onnx --force --hidden 4";
        place.json(&format!("{train} {flags}"))["training"]["params"].clone()
    };
    let usual = params("");
    assert_eq!((&usual["epochs"], &usual["l2"]), (&100.into(), &1e-4.into()));
    assert_eq!(usual["early-stopping"]["fraction"], 0.2);
    assert_eq!(usual["early-stopping"]["patience"], 10);
    assert_eq!(params("--early-stopping none")["early-stopping"], serde_json::Value::Null);
    let patient = params("--early-stopping 3");
    assert_eq!(patient["early-stopping"]["fraction"], 0.2);
    assert_eq!(patient["early-stopping"]["patience"], 3);
    for protocol in ["paper", "reference"] {
        let paper = params(&format!("--protocol {protocol}"));
        assert_eq!((&paper["epochs"], &paper["l2"]), (&50.into(), &0.0.into()));
        assert_eq!(paper["early-stopping"], serde_json::Value::Null);
        // A file that does not name a parameter leaves that of the protocol.
        place.write("train.toml", "batch = 16\n");
        let given = params(&format!("--protocol {protocol} --params train.toml"));
        assert_eq!((&given["epochs"], &given["batch"]), (&50.into(), &16.into()));
    }
}

#[test]
fn the_documented_parameters_are_parameters() {
    let text = include_str!("../../../../docs/formats.md");
    let section = text.split("## Training parameters").nth(1).unwrap();
    let place = Place::with_loans();
    place.write("train.toml", section.split("```").nth(1).unwrap());
    let document = place.json("train --out m.onnx --params train.toml LOANS");
    let params = &document["training"]["params"];
    assert_eq!(params["hidden"][1], 32);
    assert_eq!(params["early-stopping"]["patience"], 8);
    assert_eq!(params["class-weights"]["given"][1], 2.5);
}

#[test]
fn one_and_two_threads_write_the_same_bytes() {
    let place = Place::with_loans();
    for threads in ["1", "2"] {
        place.done(&format!("train --out m{threads}.onnx --threads {threads} --epochs 5 LOANS"));
    }
    let bytes = |name| std::fs::read(place.path(name)).unwrap();
    assert_eq!(bytes("m1.onnx"), bytes("m2.onnx"));
}

#[test]
fn the_reference_protocol_gives_the_authors_columns() {
    let place = Place::new();
    let sizes = |protocol| {
        let arguments = "train --dataset german --out m.onnx --force --epochs 1";
        let document = place.json(&format!("{arguments} --protocol {protocol}"));
        document["model"]["sizes"][0].as_u64().unwrap()
    };
    assert_eq!(sizes("reference"), 61);
    assert_ne!(sizes("product"), 61);
}

#[cfg(unix)]
fn make_pipe(place: &Place, name: &str) {
    let made = std::process::Command::new("mkfifo").arg(place.path(name)).status();
    assert!(made.unwrap().success());
}

#[test]
#[cfg(unix)]
fn an_interrupt_leaves_no_file_behind() {
    let place = Place::with_loans();
    make_pipe(&place, "params");
    let endless = "--epochs 100000000 --params params --early-stopping none";
    let arguments = format!("train --out m.onnx LOANS {endless}");
    let child = place.command(&arguments).stdout(Stdio::null()).spawn().unwrap();
    // Writing waits for the program to read, so now it runs and training is next.
    std::fs::write(place.path("params"), "").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    crate::interrupt(&child);
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert_eq!(answer.code, 130);
    assert_eq!(place.files(), ["loans.csv", "loans.toml", "params"]);
}

#[test]
#[cfg(unix)]
fn an_interrupt_waits_for_the_file_that_is_being_written() {
    let place = Place::with_loans();
    make_pipe(&place, "s.toml");
    let infer = "schema infer loans.csv --label paid";
    let whole = place.done(&infer);
    let infer = format!("{infer} --out s.toml --quiet");
    let child = place.command(&infer).spawn().unwrap();
    // The program cannot write before someone reads; meanwhile it is interrupted.
    std::thread::sleep(std::time::Duration::from_millis(700));
    crate::interrupt(&child);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(place.read("s.toml"), whole);
    let answer = Answer::of(child.wait_with_output().unwrap());
    assert!([0, 130].contains(&answer.code), "{}", answer.code);
}
