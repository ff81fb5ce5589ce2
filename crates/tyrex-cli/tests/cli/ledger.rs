//! `tyrex ledger`, and `tyrex explain --ledger`

use crate::{Answer, Place, assert_golden, without_times};

/// A ledger with the advice for three rows.
fn with_ledger() -> Place {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    place.done(&explain("--limit 3 --holds 90d"));
    place
}

fn explain(more: &str) -> String {
    format!("explain --data loans.csv --model m.onnx --ledger advice.db {more}")
}

/// Without what differs from run to run: ids, hashes, moments and times.
fn redacted(text: &str) -> String {
    let mut out = String::new();
    for line in without_times(text).split_inclusive('\n') {
        let words: Vec<String> = line.split(' ').map(redacted_word).collect();
        out.push_str(&words.join(" "));
    }
    out
}

fn redacted_word(word: &str) -> String {
    let trimmed = word.trim_end();
    let digits = |text: &str, mark: char| text.chars().all(|c| c.is_ascii_hexdigit() || c == mark);
    // As wide as what they stand for, so that tables stay tables.
    let name = match trimmed.len() {
        36 if digits(trimmed, '-') => "i".repeat(36),
        64 if digits(trimmed, '0') => "h".repeat(64),
        10 if digits(trimmed, '-') && trimmed.contains('-') => "yyyy-mm-dd".to_owned(),
        5 if digits(trimmed, ':') && trimmed.contains(':') => "hh:mm".to_owned(),
        _ => return word.to_owned(),
    };
    word.replacen(trimmed, &name, 1)
}

#[test]
fn a_ledger_is_kept_as_the_golden_files_say() {
    let place = with_ledger();
    let text = place.done(&explain("--limit 1"));
    let recorded = text.split("Recorded").nth(1).unwrap();
    assert!(recorded.starts_with(" 1 promise in advice.db\n  entries  4\n  head "), "{text}");
    place.done("ledger close 2 --as fulfilled --ledger advice.db");
    let subject = place.json("ledger show 3 --ledger advice.db");
    let subject = subject["subject"].as_str().unwrap();
    let forgot = place.done(&format!("ledger forget '{subject}' --ledger advice.db"));
    assert!(forgot.starts_with("Forgot 1 promise\n  entries  3\n"), "{forgot}");
    let pages = [
        place.done("ledger list --ledger advice.db"),
        place.done("ledger show 2 --ledger advice.db"),
        place.done("ledger show 3 --ledger advice.db"),
        place.done("ledger show 6 --ledger advice.db"),
        place.done("ledger verify --ledger advice.db"),
    ];
    assert_golden("ledger.txt", &redacted(&pages.join("\n")));
    // One file, nothing beside it.
    let files: Vec<String> =
        place.files().into_iter().filter(|name| name.starts_with("advice")).collect();
    assert_eq!(files, ["advice.db"]);
}

#[test]
fn what_is_recorded_is_what_was_advised() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let document = place.json(&explain("--models 0"));
    let found = document["found"].as_u64().unwrap() as usize;
    let recorded = document["recorded"]["promises"].as_array().unwrap();
    assert!(found > 5, "all advice is recorded, not only what is shown");
    assert_eq!(recorded.len(), found);
    let list = place.json("ledger list --ledger advice.db");
    let entries = list["entries"].as_array().unwrap();
    assert_eq!(list["head"], document["recorded"]["head"]);
    for (entry, recorded) in entries.iter().zip(recorded) {
        assert_eq!(entry["hash"], recorded["hash"]);
        assert_eq!(entry["status"], "open");
        assert_eq!(entry["model"], document["model"]["fingerprint"]);
        assert_eq!(entry["request"], document["request"]);
    }
    for (entry, shown) in entries.iter().zip(document["rows"].as_array().unwrap()) {
        assert_eq!(entry["subject"], format!("loans.csv#row {}", shown["row"]));
        assert_eq!(entry["factual"], shown["features"]);
        assert_eq!(entry["advised"], shown["advice"]["counterfactual"]);
        assert_eq!(entry["score"], shown["advice"]["score"]);
        assert_eq!(entry["stability"], shown["advice"]["stability"]);
        assert!(entry["certificate"].is_object());
    }
}

#[test]
fn a_column_says_who_it_is_for_and_a_time_how_long() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let customers: String = place
        .read("loans.csv")
        .lines()
        .enumerate()
        .map(|(row, line)| {
            let name = if row == 0 { "customer".to_owned() } else { format!("C-{row}") };
            format!("{line},{name}\n")
        })
        .collect();
    place.write("loans.csv", &customers);
    place.done(&explain("--limit 2 --subject-column customer --holds 12w"));
    let subject = place.json("ledger show 1 --ledger advice.db")["subject"].clone();
    assert!(subject.as_str().unwrap().starts_with("C-"), "{subject}");
    let subject = subject.as_str().unwrap();
    let one = place.json(&format!("ledger list --ledger advice.db --subject {subject}"));
    assert_eq!(one["entries"].as_array().unwrap().len(), 1);
    assert!(one["entries"][0]["holds_until"].is_string());
    // A column that is not there, and a cell without a name.
    place.refused(&explain("--subject-column client"), &["no column `client`"]);
    place.write("loans.csv", &customers.replacen(",C-7\n", ",\n", 1));
    place.refused(&explain("--subject-column customer"), &["row 6, column `customer`"]);
}

#[test]
fn verify_answers_no_when_an_entry_was_changed() {
    let place = with_ledger();
    let head = place.json("ledger verify --ledger advice.db")["head"].clone();
    let head = head.as_str().unwrap();
    place.done(&explain("--limit 1"));
    place.done(&format!("ledger verify --ledger advice.db --head {head}"));
    let other = "ab".repeat(32);
    let no = place.run(&format!("ledger verify --ledger advice.db --head {other}"));
    assert_eq!(no.code, 1, "{}", no.stderr);
    assert!(no.stdout.contains(&format!("no entry has the hash {other}")), "{}", no.stdout);
    // An edit of the file behind the database's back, where the subjects are.
    let mut bytes = std::fs::read(place.path("advice.db")).unwrap();
    let subject = b"loans.csv#row";
    let places: Vec<usize> =
        (0..bytes.len() - subject.len()).filter(|&at| bytes[at..].starts_with(subject)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at] = b'L');
    std::fs::write(place.path("advice.db"), bytes).unwrap();
    let no = place.run("ledger verify --ledger advice.db");
    assert_eq!(no.code, 1, "{}", no.stderr);
    assert!(no.stdout.contains("its personal data was changed"), "{}", no.stdout);
    let no = place.run("ledger verify --ledger advice.db --json");
    let document = no.json();
    assert_eq!(document["intact"], false);
    assert_eq!(document["problem"]["trouble"], "payload_changed");
}

#[test]
fn every_format_is_exported_and_none_is_overwritten() {
    let place = with_ledger();
    for file in ["l.csv", "l.jsonl", "l.ndjson", "l.parquet"] {
        let export = format!("ledger export --ledger advice.db --out {file}");
        assert_eq!(place.json(&export)["entries"], 3);
        place.refused(&export, &["exists already"]);
        place.done(&format!("{export} --force"));
        let inferred = place.done(&format!("schema infer {file} --label factual.owner"));
        assert!(inferred.contains("name = \"advised.income\""), "{file}: {inferred}");
    }
    let csv = place.read("l.csv");
    assert!(csv.starts_with("sequence,id,time,kind,status,subject,"), "{csv}");
    let none = "--status withdrawn --out none.csv";
    place.done(&format!("ledger export --ledger advice.db {none}"));
    assert_eq!(place.read("none.csv").lines().count(), 1);
}

#[test]
fn the_ledger_may_be_named_by_a_variable() {
    let place = with_ledger();
    let mut command = place.command("ledger list --json");
    let answer = Answer::of(command.env("TYREX_LEDGER", "advice.db").output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    place.refused("ledger list", &["TYREX_LEDGER"]);
}

#[test]
fn whoever_is_not_there_cannot_be_forgotten_or_shown() {
    let place = with_ledger();
    let forget = place.run("ledger forget nobody --ledger advice.db");
    assert_eq!(forget.code, 1);
    assert!(forget.stdout.contains("advice.db knows no such subject"), "{}", forget.stdout);
    for (entry, says) in [
        ("99", "no entry number 99"),
        ("0198c2f4-7a51-7cc1-a03c-5d5bd0d7a9a4", "no entry 0198c2f4"),
        ("x", "`x` is not an entry"),
    ] {
        let show = place.run(&format!("ledger show {entry} --ledger advice.db"));
        assert_eq!(show.code, 2);
        assert!(show.stderr.contains(says) && show.stderr.contains("help:"), "{}", show.stderr);
    }
    place.done("ledger close 1 --as withdrawn --ledger advice.db");
    place.refused("ledger close 1 --as withdrawn --ledger advice.db", &["it is already withdrawn"]);
}

#[test]
fn bad_addresses_are_refused_with_what_to_do() {
    let place = Place::with_loans();
    place.write("text.db", &"this is not a database\n".repeat(100));
    place.write("empty.db", "");
    let (server, address) = if cfg!(feature = "postgres") {
        ("postgres://me@127.0.0.1:1/advice: ", "the address of the database cannot be read")
    } else {
        ("has no driver for PostgreSQL", "has no driver for PostgreSQL")
    };
    let cases = [
        ("absent.db", "absent.db: there is no such file"),
        ("text.db", "text.db: this file is not a SQLite database"),
        ("empty.db", "empty.db: there is no ledger in it"),
        ("postgres://me:hunter2@127.0.0.1:1/advice", server),
        ("postgres://me:hunter2@127.0.0.1:x/advice", address),
        ("mysql://me:hunter2@127.0.0.1/advice", "the address of the database cannot be read"),
    ];
    for (address, says) in cases {
        for verb in ["list", "verify", "show 1", "forget x"] {
            let arguments = format!("ledger {verb} --ledger {address}");
            let answer = place.refused(&arguments, &[says, "help:"]);
            assert!(!answer.stderr.contains("hunter2"), "{}", answer.stderr);
        }
    }
    assert!(!place.files().contains(&"absent.db".to_owned()), "reading makes no ledger");
    let points = "explain --dataset german --protocol paper --ledger a.db";
    place.refused(points, &["a promise needs a row"]);
    let holds = "explain LOANS --ledger a.db --holds soon";
    place.refused(holds, &["a whole number of days (90d)"]);
}

#[test]
fn an_output_never_replaces_the_ledger() {
    let place = Place::with_loans();
    let ledger = "--ledger advice.csv";
    place.done(&format!("explain LOANS --models 0 {ledger}"));
    let before = place.read_bytes("advice.csv");
    let out = "--out advice.csv --force";
    let explain = format!("explain LOANS --models 0 {ledger} {out}");
    let export = format!("ledger export {ledger} {out}");
    for arguments in [explain, export] {
        place.refused(&arguments, &["is the input advice.csv"]);
        assert!(place.read_bytes("advice.csv") == before);
    }
}
