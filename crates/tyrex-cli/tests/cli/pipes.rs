//! A reader that leaves never changes an answer: the exit code is the one of a reader that stays.

use std::process::{Command, Stdio};

use crate::{Answer, Place};

/// The writing end of a pipe without a reader.
pub(crate) fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn code(command: &mut Command) -> i32 {
    command.status().unwrap().code().unwrap_or(-1)
}

/// Runs a command with its outputs open and closed in every way: the code is always the same.
fn assert_answers(place: &Place, arguments: &str, answer: i32) {
    for form in ["", "--json", "--quiet"] {
        let arguments = format!("{arguments} {form}");
        let open = place.run(&arguments);
        assert_eq!(open.code, answer, "{arguments:?}: {}{}", open.stdout, open.stderr);
        let no_stdout = Answer::of(place.command(&arguments).stdout(closed()).output().unwrap());
        assert_eq!(no_stdout.code, answer, "{arguments:?}, closed stdout: {}", no_stdout.stderr);
        assert_eq!(no_stdout.stderr, "", "{arguments:?}");
        let neither = code(place.command(&arguments).stdout(closed()).stderr(closed()));
        assert_eq!(neither, answer, "{arguments:?}, closed stdout and stderr");
    }
}

/// Loans, a model, promises it keeps and a file of promises that it breaks.
fn place() -> Place {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    place.write("kept.csv", "income,age,housing,owner\n88.5,41,own,yes\n84.5,30,rent,no\n");
    place.write("broken.csv", "income,age,housing,owner\n10.5,41,own,yes\n84.5,30,rent,no\n");
    place
}

#[test]
fn explain_answers() {
    let place = place();
    let explain = "explain --data loans.csv --model m.onnx --models 0";
    assert_answers(&place, &format!("{explain} --limit 1"), 0);
    assert_answers(&place, &format!("{explain} --limit 1 --keep income,housing,owner,age"), 1);
}

#[test]
fn certify_answers() {
    let place = place();
    let certify = "certify --model m.onnx --delta 0.0001 --counterfactuals";
    assert_answers(&place, &format!("{certify} kept.csv"), 0);
    assert_answers(&place, &format!("{certify} broken.csv"), 1);
}

#[test]
fn calibrate_answers() {
    let place = place();
    let calibrate = "calibrate --data loans.csv --schema loans.toml";
    let calibrate = format!("{calibrate} --early-stopping none");
    let small = format!("{calibrate} --target 0.7 --confidence 0.8 --tau 0.5 --k 50");
    assert_answers(&place, &format!("{small} --models 4"), 1);
    assert_answers(&place, &format!("{small} --models 9"), 0);
}

#[test]
fn audit_answers() {
    let place = place();
    let audit = "audit --model m.onnx --counterfactuals";
    assert_answers(&place, &format!("{audit} kept.csv"), 0);
    assert_answers(&place, &format!("{audit} broken.csv"), 1);
}

#[test]
fn the_ledger_answers() {
    let place = place();
    place.done("explain --data loans.csv --model m.onnx --models 0 --limit 1 --ledger a.db");
    let verify = "ledger verify --ledger a.db";
    assert_answers(&place, verify, 0);
    let other = "ab".repeat(32);
    assert_answers(&place, &format!("{verify} --head {other}"), 1);
    assert_answers(&place, "ledger forget nobody --ledger a.db", 1);
}

/// A command has its side effects without a reader of its output.
#[test]
fn side_effects_happen() {
    let place = place();
    let explain = "explain --data loans.csv --model m.onnx --models 0";
    let record = format!("{explain} --limit 2 --out cf.csv --ledger a.db");
    assert_eq!(code(place.command(&record).stdout(closed())), 0);
    assert_eq!(place.read("cf.csv").lines().count(), 3);
    let list = "ledger list --ledger a.db";
    let subject = place.json(&list)["entries"][0]["subject"].clone();
    let subject = subject.as_str().unwrap().to_owned();
    let forget = format!("ledger forget '{subject}' --ledger a.db");
    assert_eq!(code(place.command(&forget).stdout(closed())), 0);
    assert!(!place.done(&list).contains(&subject));
    let entry = "ledger close 2 --as withdrawn --ledger a.db";
    assert_eq!(code(place.command(&entry).stdout(closed())), 0);
    assert_eq!(place.json("ledger show 2 --ledger a.db")["status"], "withdrawn");
}

/// An output file that cannot be written is work that was not done, whatever the answer is.
#[test]
fn an_output_file_that_is_a_closed_pipe_is_an_error() {
    let place = place();
    let outputs = [
        "audit --model m.onnx --counterfactuals kept.csv",
        "audit --model m.onnx --counterfactuals broken.csv",
    ];
    std::os::unix::fs::symlink("/dev/stdout", place.path("p.json")).unwrap();
    for arguments in outputs {
        let arguments = format!("{arguments} --out p.json");
        let answer = Answer::of(place.command(&arguments).stdout(closed()).output().unwrap());
        assert_eq!(answer.code, 2, "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains("cannot write p.json"), "{}", answer.stderr);
    }
}

/// The parser prints help and errors by itself.
#[test]
fn the_parser_answers() {
    let place = Place::new();
    for (arguments, answer) in
        [("--help", 0), ("audit --help", 0), ("--version", 0), ("audit --no-such-flag", 2), ("", 2)]
    {
        assert_eq!(code(place.command(arguments).stdout(closed()).stderr(closed())), answer);
    }
    let missing = "audit --model m.onnx --counterfactuals missing.csv";
    assert_eq!(code(place.command(&missing).stdout(closed()).stderr(closed())), 2);
}
