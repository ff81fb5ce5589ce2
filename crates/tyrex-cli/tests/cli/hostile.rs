//! Values, names and files that someone has prepared to do harm.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::{Answer, LOANS_SCHEMA, Place};

/// A network that is trained for an instant, and a ledger with two promises.
fn with_ledger() -> Place {
    let place = Place::with_loans();
    place.done("train --epochs 5 LOANS --out m.onnx");
    place.done("explain --data loans.csv --model m.onnx --models 0 --limit 2 --ledger advice.db");
    place
}

/// A formula that a spreadsheet would run, as the name of a level and as a subject.
const FORMULA: &str = "=cmd|' /C calc'!A0";

#[test]
fn formulas_are_text_in_a_safe_file_and_numbers_stay_numbers() {
    let place = Place::new();
    let turn = |text: &str| text.replace("rent", FORMULA);
    // Incomes below zero: numbers that start like a formula.
    let loans: String = crate::loans()
        .lines()
        .enumerate()
        .map(|(row, line)| match row {
            0 => format!("{line},customer\n"),
            _ => format!("-{line},+{row}; {FORMULA}\n"),
        })
        .collect();
    place.write("loans.csv", &turn(&loans));
    place.write("loans.toml", &turn(LOANS_SCHEMA));
    place.done("train --epochs 5 LOANS --out m.onnx");
    let explain = "explain --data loans.csv --model m.onnx --models 0";
    let explain = format!("{explain} --vary income --limit 9");
    let record = "--ledger advice.db --subject-column customer --out exact.csv";
    place.done(&format!("{explain} {record}"));
    let safe = "--spreadsheet-safe --out";
    place.done(&format!("{explain} {safe} explain.csv"));
    let export = "ledger export --ledger advice.db";
    place.done(&format!("{export} {safe} export.csv"));
    let audit = "audit --ledger advice.db --model m.onnx --allow 100%";
    place.done(&format!("{audit} {safe} audit.csv"));
    assert!(place.read("exact.csv").contains(&format!(",{FORMULA},")));
    let mut numbers = 0;
    for file in ["explain.csv", "export.csv", "audit.csv"] {
        let text = place.read(file);
        // Fields of a record; no cell of these files has a comma outside quotes.
        for cell in text.lines().flat_map(|line| line.split(',')) {
            let cell = cell.trim_matches('"');
            let is_number = cell.parse::<f64>().is_ok();
            numbers += usize::from(is_number && cell.starts_with('-'));
            assert!(!cell.starts_with(['=', '+', '-', '@']) || is_number, "{file}: {cell}");
        }
        let marked = format!("'{FORMULA}");
        assert!(file == "audit.csv" || text.contains(&marked), "{file}: {text}");
    }
    assert!(numbers > 0, "negative numbers are there");
    assert!(place.read("export.csv").contains(",'+"), "a subject");
    let alone = place.run(&format!("{explain} --spreadsheet-safe"));
    assert_eq!(alone.code, 2, "{}", alone.stdout);
}

/// Values of data files reach tables and sentences, but a terminal does not obey them.
#[test]
fn values_do_not_command_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{202e}\r";
    let place = Place::new();
    let toml = evil.chars().map(|letter| format!("\\u{:04x}", letter as u32)).collect::<String>();
    place.write("loans.toml", &LOANS_SCHEMA.replace("\"rent\"", &format!("\"rent{toml}\"")));
    place.write("loans.csv", &crate::loans().replace("rent", &format!("\"rent{evil}\"")));
    place.done("train --epochs 5 LOANS --out m.onnx");
    place.write(
        "cf.csv",
        &format!(
            "row,status,income,age,housing,owner\n0,found,1,20,\"{evil}\nYes: evil.onnx may be \
             deployed\",no\n"
        ),
    );
    let record = "--vary housing,income --details --ledger advice.db";
    let commands: [&str; 5] = [
        &format!("explain --data loans.csv --model m.onnx --models 0 {record}"),
        "ledger show 1 --ledger advice.db",
        "audit --counterfactuals cf.csv --model m.onnx",
        "audit --ledger advice.db --model m.onnx --by housing",
        "schema check loans.toml",
    ];
    let mut escaped = 0;
    for arguments in commands {
        let Answer { stdout, stderr, code } = place.run(arguments);
        let said = stdout + &stderr;
        assert!(code >= 0, "{arguments:?}");
        let obeyed = |letter: char| {
            (letter.is_control() && letter != '\n') || matches!(letter, '\u{202a}'..='\u{202e}')
        };
        assert!(!said.contains(obeyed), "{arguments:?}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with("Yes: evil.onnx")), "{said}");
        escaped += usize::from(said.contains("\\u{1b}]0;owned"));
    }
    assert!(escaped >= 2, "{escaped} outputs have the value");
}

/// A report beside the models of a folder would be read with them later, or replace one.
#[test]
fn an_output_is_not_written_into_an_input_folder() {
    let place = Place::with_loans();
    place.done("train --epochs 5 LOANS --out m.onnx");
    std::fs::create_dir_all(place.path("given/search")).unwrap();
    std::fs::copy(place.path("m.onnx"), place.path("given/search/one.onnx")).unwrap();
    symlink(place.path("given"), place.path("other")).unwrap();
    place.write("cf.csv", "row,status,income,age,housing,owner\n3,found,88.5,41,own,yes\n");
    let ensemble = "--model m.onnx --ensemble given --force --out";
    let audit = format!("audit --counterfactuals cf.csv {ensemble}");
    let certify = format!("certify --counterfactuals cf.csv {ensemble}");
    let explain = format!("explain --data loans.csv {ensemble}");
    for (command, outs) in [
        (
            &audit,
            &["given/ensemble.json", "given/new.html", "other/new.csv", "given/search/x.csv"][..],
        ),
        (&certify, &["given/new.csv", "given/../given/new.parquet"]),
        (&explain, &["given/new.csv", "other/search/new.jsonl"]),
    ] {
        for out in outs {
            let answer = place.run(&format!("{command} {out}"));
            assert_eq!(answer.code, 2, "{out}: {}", answer.stdout);
            let expected = format!("--out {out} is in the input folder given");
            assert!(answer.stderr.contains(&expected), "{}", answer.stderr);
        }
    }
    let mut left: Vec<_> = std::fs::read_dir(place.path("given")).unwrap().flatten().collect();
    assert_eq!(left.pop().map(|entry| entry.file_name()), Some("search".into()));
    assert!(left.is_empty());
}

/// `--force` is for old outputs, not for inputs, by whatever name.
#[test]
fn an_output_replaces_no_input_under_any_name() {
    let place = Place::with_loans();
    let split: String = (0..40)
        .map(|row| format!("{row},{}\n", if row % 4 == 0 { "test" } else { "train" }))
        .collect();
    place.write("split.csv", &format!("row,split\n{split}"));
    let schema = LOANS_SCHEMA.replace("fraction = 0.75\nseed = 1", "file = \"split.csv\"");
    place.write("loans.toml", &schema);
    place.write("reference.csv", &crate::loans());
    place.done("train --epochs 5 LOANS --out m.onnx");
    let explain = "explain --model m.onnx --models 0 --reference reference.csv LOANS --ledger sqlite://advice.csv --limit 1";
    place.done(&explain);
    std::fs::create_dir(place.path("folder")).unwrap();
    for input in ["loans.csv", "reference.csv", "split.csv", "advice.csv"] {
        let before = place.read_bytes(input);
        let (soft, hard) = (format!("soft-{input}"), format!("hard-{input}"));
        symlink(place.path(input), place.path(&soft)).unwrap();
        let mut names = vec![input.to_owned(), format!("folder/../{input}"), soft];
        // A ledger with two names is refused anyway.
        if input != "advice.csv" {
            std::fs::hard_link(place.path(input), place.path(&hard)).unwrap();
            names.push(hard);
        }
        names.push(place.path(input).to_str().unwrap().to_owned());
        for name in names {
            place.refused(&format!("{explain} --force --out {name}"), &["is the input"]);
            assert!(place.read_bytes(input) == before, "{name}");
        }
    }
    // A ledger that is not there yet would be replaced by the advice.
    let advice = ["explain", "--data", "loans.csv", "--model", "m.onnx", "--models", "0"];
    let same = ["--ledger", "new.csv", "--out", "folder/../new.csv", "--limit", "1"];
    let answer = place.run(&[&advice[..], &same].concat());
    assert_eq!(answer.code, 2, "{}", answer.stdout);
    assert!(answer.stderr.contains("is the input"), "{}", answer.stderr);
    assert!(!place.path("new.csv").exists());
}

/// Runs the program as a user who may only read; tests of root would otherwise write anyway.
fn as_reader(place: &Place, program: &PathBuf, arguments: &str) -> Answer {
    let template = place.command(arguments);
    let mut command = Command::new(program);
    command.args(template.get_args()).current_dir(place.path("")).env_remove("TYREX_LEDGER");
    if std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
    {
        command.uid(65534).gid(65534);
    }
    Answer::of(command.output().unwrap())
}

#[test]
fn a_ledger_that_cannot_be_written_to_is_read() {
    let place = with_ledger();
    // A copy, since the folder of the build may be closed to other users.
    let program = place.path("tyrex");
    let own = env!("CARGO_BIN_EXE_tyrex");
    std::fs::hard_link(own, &program)
        .or_else(|_| std::fs::copy(own, &program).map(|_| ()))
        .unwrap();
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir(place.path("closed")).unwrap();
    std::fs::create_dir(place.path("open")).unwrap();
    for folder in ["closed", "open"] {
        std::fs::copy(place.path("advice.db"), place.path(&format!("{folder}/advice.db"))).unwrap();
        mode(&format!("{folder}/advice.db"), 0o444);
    }
    mode("m.onnx", 0o444);
    mode("open", 0o777);
    mode("closed", 0o555);
    mode("", 0o755);
    for ledger in ["closed/advice.db", "open/advice.db"] {
        let commands: [(&str, &str); 4] = [
            ("ledger verify", "2 in an unbroken chain"),
            ("ledger list", "2 promises"),
            ("ledger show 1", "What was promised"),
            ("audit --model m.onnx", "it keeps all 2 promises"),
        ];
        for (arguments, says) in commands {
            let arguments = format!("{arguments} --ledger {ledger}");
            let answer = as_reader(&place, &program, &arguments);
            assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
            assert!(answer.stdout.contains(says), "{arguments:?}: {}", answer.stdout);
        }
        let close = format!("ledger close 1 --as withdrawn --ledger {ledger}");
        let refused = as_reader(&place, &program, &close);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        for piece in ["this ledger can be read, but not written to", "help: run the command as"] {
            assert!(refused.stderr.contains(piece), "{ledger}: {}", refused.stderr);
        }
    }
    mode("closed", 0o755);
}

/// Bad arguments are reported before any file is read, so no minute of work precedes the error.
#[test]
fn arguments_are_checked_before_the_work() {
    let place = Place::new();
    let absent = "--data absent.csv --schema absent.toml";
    let cases: [(&str, &str); 18] = [
        ("calibrate --tau 1.5", "`tau` is 1.5, expected numbers between 0 and 1"),
        ("calibrate --tau 0.5,0.5", "`tau` is 0.5, expected every threshold once"),
        ("calibrate --models 1", "`models` is 1, expected 2 to 10000"),
        ("calibrate --models 10001", "`models` is 10001, expected 2 to 10000"),
        ("calibrate --limit 0", "`limit` is 0, expected at least 1"),
        ("calibrate --method nn", "expected a method with a threshold"),
        ("calibrate --k 0", "`k` is 0"),
        ("calibrate --sigma -1", "`sigma` is -1"),
        ("calibrate --target 2", "`target` is 2"),
        ("stability --k 0", "`k` is 0"),
        ("stability --k 99999999", "expected at most 1048576 samples"),
        ("stability --sigma nan", "`sigma` is NaN"),
        ("explain --k 0", "`k` is 0"),
        ("explain --tau 2", "expected a number between 0 and 1, or `auto`"),
        ("explain --promise 0.1", "`promise` is 0.1"),
        ("explain --models 100000000", "`models` is 100000000, expected at most 10000"),
        ("explain --promise 0.9 --models 100000000", "expected at most 10000"),
        ("retrain --out e --models 0", "`models` is 0"),
    ];
    for (arguments, says) in cases {
        place.refused(&format!("{arguments} {absent}"), &[says]);
    }
    let certify = "certify --counterfactuals absent.csv --model absent.onnx";
    for (flag, says) in [
        ("--probability 2", "`probability` is 2"),
        ("--confidence 0", "`confidence` is 0"),
        ("--delta -1", "`delta` is -1"),
        ("--k 0", "`k` is 0"),
        ("--sigma -1", "`sigma` is -1"),
    ] {
        place.refused(&format!("{certify} {flag}"), &[says]);
    }
}

/// Some files have no end, and others are none.
#[test]
fn an_input_without_an_end_is_refused() {
    let place = Place::with_loans();
    place.done("train --epochs 5 LOANS --out m.onnx");
    for name in ["zero.json", "zero.csv", "zero.jsonl", "zero.toml", "zero.onnx", "zero.db"] {
        symlink("/dev/zero", place.path(name)).unwrap();
    }
    assert!(Command::new("mkfifo").arg(place.path("pipe.json")).status().unwrap().success());
    let mut writer = Command::new("sh");
    writer.args(["-c", "yes > pipe.json 2> /dev/null"]).current_dir(place.path(""));
    let mut writer = writer.spawn().unwrap();
    for (arguments, says) in [
        ("ledger verify --ledger zero.db", "zero.db: this is not a file, expected a SQLite file"),
        ("audit --ledger zero.db --model m.onnx", "zero.db: this is not a file, expected"),
        ("certify --verify zero.json --model m.onnx", "zero.json: the file is larger than 256 MiB"),
        ("certify --verify pipe.json --model m.onnx", "pipe.json: the file is larger than 256 MiB"),
        (
            "audit --counterfactuals zero.csv --model m.onnx",
            "zero.csv: a row is longer than 64 MiB",
        ),
        ("explain --data zero.jsonl --model m.onnx", "zero.jsonl: a row is longer than 64 MiB"),
        ("audit join zero.json", "zero.json: not a report of `tyrex audit`"),
        ("schema check zero.toml", "zero.toml: the file is larger than 64 MiB"),
        (
            "explain --data loans.csv --model zero.onnx",
            "zero.onnx: the file is larger than 512 MiB",
        ),
    ] {
        place.refused(arguments, &[says]);
    }
    let _ = writer.wait();
}

/// The output of a command on a terminal, which is interrupted after some seconds.
fn on_a_terminal(place: &Place, seconds: u32, arguments: &str) -> Output {
    let command = place.command(arguments);
    let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
    let program = command.get_program().to_str().unwrap();
    let line = format!("timeout --foreground -s INT {seconds} {program} {}", words.join(" "));
    Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(place.path(""))
        .env("TERM", "xterm")
        .output()
        .unwrap()
}

/// One point with many neighbours: there is nothing to count, and a bar all the same.
#[test]
fn long_work_without_reports_shows_a_bar() {
    let place = Place::with_loans();
    place.done("train --out m.onnx LOANS --hidden 512,512 --epochs 1 --early-stopping none");
    place.write("cf.csv", "row,status,income,age,housing,owner\n0,found,40,20,rent,no\n");
    let audit = "audit --counterfactuals cf.csv --model m.onnx";
    let slow = "--method trex-i --k 1000000 --threads 1";
    let shown = on_a_terminal(&place, 8, &format!("{audit} {slow}"));
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("auditing [") && text.contains("0/2"), "{text}");
}
