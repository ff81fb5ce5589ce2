//! Properties of every command: help, versions, quiet, JSON, colours, pipes.

use std::process::Stdio;

use crate::{Answer, Place};

const VERBS: [&str; 24] = [
    "explain",
    "train",
    "retrain",
    "stability",
    "certify",
    "calibrate",
    "audit",
    "report",
    "ledger",
    "ledger list",
    "ledger show",
    "ledger export",
    "ledger verify",
    "ledger forget",
    "ledger close",
    "data",
    "data list",
    "data show",
    "data fetch",
    "schema",
    "schema infer",
    "schema check",
    "model show",
    "completions",
];

#[test]
fn every_help_has_examples_that_start_with_the_command() {
    let place = Place::new();
    let top = place.done("--help");
    assert!(top.contains("Examples:") && top.contains("Exit codes:"), "{top}");
    for verb in VERBS {
        let help = place.done(&format!("{verb} --help"));
        let example = format!("  tyrex {verb}");
        let examples = help.split("Examples:").nth(1).unwrap_or_default();
        assert!(examples.contains(&example), "{verb:?}: {help}");
        assert!(help.contains("Global options:"), "{verb:?}: {help}");
    }
}

#[test]
fn the_version_names_commit_target_and_instructions() {
    let text = Place::new().done("--version");
    assert!(text.starts_with(&format!("tyrex {} (", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.contains(std::env::consts::ARCH), "{text}");
    assert!(["AVX-512", "AVX2", "portable"].iter().any(|set| text.contains(set)), "{text}");
}

#[test]
fn quiet_prints_nothing() {
    let place = Place::with_loans();
    let commands: [&str; 8] = [
        "explain --method trex-o LOANS",
        "train --out m.onnx --epochs 1 LOANS",
        "retrain --out e --epochs 1 --models 2 LOANS",
        "stability --data loans.csv --model m.onnx",
        "data list",
        "data show german",
        "schema check loans.toml",
        "model show m.onnx",
    ];
    for command in commands {
        let answer = place.run(&format!("{command} --quiet"));
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert_eq!((answer.code, said.as_str()), (0, ""), "{command:?}");
    }
    assert!(place.path("m.onnx").exists());
}

#[test]
fn the_same_seed_gives_the_same_document_with_any_number_of_threads() {
    let place = Place::new();
    let explain = |threads, seed| {
        place.done(&format!("explain --dataset german --json --threads {threads} --seed {seed}"))
    };
    assert_eq!(explain("1", "3"), explain("2", "3"));
    assert_ne!(explain("1", "3"), explain("1", "4"));
}

#[test]
fn completions_are_written_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.done(&format!("completions {shell}"));
        assert!(script.contains("tyrex") && script.contains("explain"), "{shell}");
    }
}

#[test]
fn colours_are_for_terminals_only_unless_forced() {
    let place = Place::new();
    assert!(!place.done("data show german").contains('\x1b'));
    let mut forced = place.command("data show german");
    let answer = Answer::of(forced.env("CLICOLOR_FORCE", "1").output().unwrap());
    assert!(answer.stdout.contains('\x1b'));
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let place = Place::new();
    for command in ["data show german", "completions bash", "--help"] {
        let mut child =
            place.command(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let answer = Answer::of(child.wait_with_output().unwrap());
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{command:?}");
    }
}

#[test]
fn no_bar_is_drawn_where_nobody_looks() {
    let place = Place::with_loans();
    let answer = place.run("train --out m.onnx --epochs 300 --batch 1 LOANS");
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}
