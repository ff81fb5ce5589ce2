//! Every read and write of the program fails once: with an error, a full disk, half of the bytes,
//! a closed pipe, or the end of the process.
//!
//! A piece of work is run with a fault at its first system call on a file, then at its second, and
//! so on, until a run meets no fault. `faults/shim.c` makes the calls fail. After each run:
//!
//! - The exit code is that of an undisturbed run only if the work is done; otherwise it is 2.
//! - Nothing is printed unless the work is done, and an error says that nothing was changed or
//!   recorded only if that is so.
//! - A file holds its old bytes, or those of an undisturbed run; there are no other files.
//! - The ledger verifies. It is as before the work or as after it, and only its owner can read it.
//! - If the work was not done, the same command does it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tyrex::Overwrite;
use tyrex::change::{Ensemble, MANIFEST};
use tyrex::data::Table;
use tyrex_ledger::database::{Database, Error};
use tyrex_ledger::ledger::{Filter, Ledger};

use crate::Place;

/// The name of the ledger in every place.
const LEDGER: &str = "advice.db";
/// The name of a file of advice, but for its end.
const ADVICE: &str = "cf.";
/// The folder of an ensemble.
const ENSEMBLE: &str = "ensemble";
/// The signal of `kill -9`.
const SIGKILL: i32 = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A read returns an error.
    Read,
    /// Every read from then on returns half of the bytes.
    ShortRead,
    /// A write, or another call that changes files, returns an error.
    Write,
    /// The disk is full from then on.
    Full,
    /// Every write from then on writes half of the bytes.
    ShortWrite,
    /// The process is killed, in the middle of a write.
    Kill,
    /// Standard output returns an error.
    Print,
    /// The reader of standard output has left.
    Closed,
}

impl Fault {
    const ALL: [Self; 8] = [
        Self::Read,
        Self::ShortRead,
        Self::Write,
        Self::Full,
        Self::ShortWrite,
        Self::Kill,
        Self::Print,
        Self::Closed,
    ];

    /// The calls that are counted, and how one fails, in the words of the shim.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Read => ("read", "error"),
            Self::ShortRead => ("read", "short"),
            Self::Write => ("write", "error"),
            Self::Full => ("write", "full"),
            Self::ShortWrite => ("write", "short"),
            Self::Kill => ("write", "kill"),
            Self::Print => ("stdout", "error"),
            Self::Closed => ("stdout", "closed"),
        }
    }

    /// Whether the program has to do its work all the same. Such a fault lasts, so that one run
    /// meets it everywhere.
    fn is_harmless(self) -> bool {
        matches!(self, Self::ShortRead | Self::ShortWrite | Self::Closed)
    }
}

/// The library that makes calls fail, compiled once.
fn shim() -> &'static Path {
    static SHIM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = SHIM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/faults/shim.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        assert!(compiler.arg(&path).arg(source).status().unwrap().success());
        (folder, path)
    });
    path
}

/// The files of a folder and of the folders in it, without the ledger.
type Files = BTreeMap<String, Vec<u8>>;

fn is_of_ledger(name: &str) -> bool {
    name.starts_with(LEDGER)
}

/// All files of a place, by their names.
fn all_files(place: &Place) -> Files {
    fn add(files: &mut Files, folder: &Path, prefix: &str) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                add(files, &entry.path(), &format!("{name}/"));
            } else {
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    let mut files = Files::new();
    add(&mut files, place.folder.path(), "");
    files
}

/// A file of advice without the seconds that the search took.
fn without_seconds((name, bytes): (String, Vec<u8>)) -> (String, Vec<u8>) {
    if name.starts_with(ADVICE)
        && let Ok(table) = Table::from_bytes(Path::new(&name), bytes.clone())
    {
        let others = table.columns().iter().filter(|column| column.name() != "seconds");
        return (name, format!("{:?}", others.collect::<Vec<_>>()).into_bytes());
    }
    (name, bytes)
}

/// A place with these files. Permissions stay: only the owner can read the ledger.
fn place_with(files: &Files) -> Place {
    let place = Place::new();
    for (name, bytes) in files {
        let path = place.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        if is_of_ledger(name) {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }
    place
}

/// The state of a place: its files, and the entries of its ledger.
#[derive(Debug, Clone, PartialEq)]
struct State {
    files: Files,
    /// Number, kind and status of every entry; none if there is no ledger.
    entries: Vec<String>,
}

impl State {
    /// The state of a place. A ledger with the bytes of an earlier state has its entries.
    fn of(place: &Place, earlier: Option<(&Files, &Self)>) -> Self {
        let (ledger, files): (Files, Files) =
            all_files(place).into_iter().partition(|(name, _)| is_of_ledger(name));
        let files = files.into_iter().map(without_seconds).collect();
        for name in ledger.keys() {
            let mode = fs::metadata(place.path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{name} can be read by others: {mode:o}");
        }
        if let Some((given, state)) = earlier
            && given.iter().filter(|(name, _)| is_of_ledger(name)).eq(&ledger)
        {
            return Self { files, entries: state.entries.clone() };
        }
        // A copy, since a database that is opened is also repaired.
        let copy = place_with(&ledger);
        let entries = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(entries(copy.path(LEDGER).to_str().unwrap()));
        Self { files, entries }
    }
}

async fn entries(address: &str) -> Vec<String> {
    let database = match Database::open_existing(address).await {
        Ok(database) => database,
        Err(Error::Absent { .. } | Error::Empty { .. }) => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let ledger = Ledger::new(database);
    let verified = ledger.verify(None).await.unwrap();
    assert!(verified.is_sound(), "{verified:?}");
    let all = Filter { all_kinds: true, ..Filter::default() };
    let entries = ledger.list(&all).await.unwrap();
    ledger.database().close().await;
    let text = |entry: &tyrex_ledger::ledger::Entry| {
        let status = entry.promise().map(|promise| promise.status.name());
        let subject = entry.given().map(|given| given.subject.as_str());
        format!("{} {} {status:?} {subject:?}", entry.sequence, entry.kind().name())
    };
    entries.iter().map(text).collect()
}

/// A command, and the files that it is given.
struct Work<'a> {
    given: Files,
    arguments: &'a str,
}

/// The end of a run.
struct Run {
    place: Place,
    code: Option<i32>,
    signal: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
    /// The calls that failed, with their paths.
    failed: Vec<String>,
}

impl Work<'_> {
    fn run(&self, place: Place, fault: Option<(Fault, usize)>) -> Run {
        let log = tempfile::tempdir().unwrap();
        let log = log.path().join("log");
        let mut command = place.command(self.arguments);
        // One thread, so that calls have an order.
        command.env("RAYON_NUM_THREADS", "1");
        if let Some((fault, at)) = fault {
            let (calls, how) = fault.words();
            command
                .env("LD_PRELOAD", shim())
                .env("FAULT_FOLDER", place.folder.path())
                .env("FAULT_CALLS", calls)
                .env("FAULT_HOW", how)
                .env("FAULT_AT", at.to_string())
                .env("FAULT_LOG", &log);
        }
        let output = command.output().unwrap();
        let failed = fs::read_to_string(&log).unwrap_or_default();
        Run {
            place,
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            failed: failed.lines().map(str::to_owned).collect(),
        }
    }

    /// Tries every fault at every call, and prints how many there were.
    #[expect(clippy::print_stdout, reason = "the counts are read with --nocapture")]
    fn survives(&self) {
        let before = State::of(&place_with(&self.given), None);
        let undisturbed = self.run(place_with(&self.given), None);
        assert!(matches!(undisturbed.code, Some(0 | 1)), "{}", undisturbed.stderr);
        let after = State::of(&undisturbed.place, None);
        let mut counts = Vec::new();
        for fault in Fault::ALL {
            let most = if fault.is_harmless() { 1 } else { usize::MAX };
            let points = (1..=most)
                .take_while(|&at| {
                    let run = self.run(place_with(&self.given), Some((fault, at)));
                    let has_failed = !run.failed.is_empty();
                    let context = format!(
                        "{:?}: {fault:?} at call {at}: {:?}\n{}",
                        self.arguments, run.failed, run.stderr
                    );
                    let survived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        self.check(fault, run, &before, &after, &undisturbed);
                    }));
                    assert!(survived.is_ok(), "{context}");
                    has_failed
                })
                .count();
            counts.push(format!("{points} {fault:?}"));
            assert!(points > 0 || fault.words().0 == "write", "{:?}: {fault:?}", self.arguments);
        }
        println!("{:?} survives {}", self.arguments, counts.join(", "));
    }

    fn check(&self, fault: Fault, run: Run, before: &State, after: &State, undisturbed: &Run) {
        let state = State::of(&run.place, Some((&self.given, before)));
        let is_done =
            state.entries == after.entries && after.files.iter().all(|file| has(&state, file));
        if run.failed.is_empty() || fault.is_harmless() {
            assert_eq!(run.code, undisturbed.code);
            assert_eq!(state.files, after.files);
            assert_eq!(state.entries, after.entries);
            return;
        }
        if fault == Fault::Kill {
            assert_eq!(run.signal, Some(SIGKILL));
        } else {
            assert!(run.code == Some(2) || run.code == undisturbed.code, "code {:?}", run.code);
            if run.code == undisturbed.code {
                assert!(is_done, "the exit code is that of work that is done");
            }
        }
        if !run.stdout.is_empty() {
            assert!(is_done, "printed: {}", String::from_utf8_lossy(&run.stdout));
        }
        let says = |words| run.stderr.contains(words);
        assert!(!says("panicked"));
        assert!(!says("nothing was changed") || state == *before);
        assert!(!says("nothing was recorded") || state.entries == before.entries);
        assert!(
            state.entries == before.entries || state.entries == after.entries,
            "{:?}",
            state.entries
        );
        for (name, bytes) in &state.files {
            // A file that could not be removed, or whose process is dead, is left.
            let is_left = name.rsplit('/').next().unwrap().starts_with(".tyrex-")
                && (fault == Fault::Kill || run.failed.iter().any(|call| call.contains(name)));
            let is_known = [before, after].iter().any(|state| has(state, (name, bytes)));
            assert!(is_known || is_left, "{name} has {} bytes", bytes.len());
        }
        // An ensemble is replaced file by file. Without a manifest it is none.
        let is_kept =
            |name: &&String| !name.starts_with(ENSEMBLE) && after.files.contains_key(*name);
        for name in before.files.keys().filter(is_kept) {
            assert!(state.files.contains_key(name), "{name} is gone");
        }
        let ensemble = run.place.path(ENSEMBLE);
        if ensemble.join(MANIFEST).exists() {
            Ensemble::read(&ensemble).unwrap();
        }
        if !is_done && state != *before {
            // Of several outputs, some may be there.
            let has_outputs = after.files.keys().any(|name| !before.files.contains_key(name));
            let force = has_outputs && !self.arguments.contains("--force");
            let arguments = format!("{} {}", self.arguments, if force { "--force" } else { "" });
            let again = Work { given: Files::new(), arguments: &arguments }.run(run.place, None);
            assert_eq!(again.code, undisturbed.code, "again: {}", again.stderr);
            let state = State::of(&again.place, None);
            assert_eq!(state.entries, after.entries, "again");
            for file in &after.files {
                assert!(has(&state, file), "again: {} differs", file.0);
            }
        }
    }
}

/// Whether this file is there, with the same bytes.
fn has(state: &State, (name, bytes): (&String, &Vec<u8>)) -> bool {
    state.files.get(name) == Some(bytes)
}

/// Loans, and a small model of them.
fn loans() -> Place {
    let place = Place::with_loans();
    let small = "--hidden 4 --epochs 100 --learning-rate 0.02";
    let small = format!("{small} --early-stopping none --out m.onnx");
    place.done(&format!("train LOANS {small}"));
    place
}

const EXPLAIN: &str =
    "explain --data loans.csv --model m.onnx --models 0 --method min-cost --limit 2";

/// The same, with a ledger of two promises.
fn promises() -> Place {
    let place = loans();
    place.done(&format!("{EXPLAIN} --ledger {LEDGER}"));
    place
}

fn survives(place: &Place, arguments: &str) {
    Work { given: all_files(place), arguments }.survives();
}

#[test]
fn explain_writes_csv() {
    survives(&loans(), &format!("{EXPLAIN} --schema loans.toml --out cf.csv"));
}

#[test]
fn explain_writes_json_lines() {
    survives(&loans(), &format!("{EXPLAIN} --out cf.jsonl"));
}

#[test]
fn explain_replaces_parquet() {
    let place = loans();
    place.write("cf.parquet", "old");
    survives(&place, &format!("{EXPLAIN} --force --out cf.parquet"));
}

#[test]
fn explain_reads_parquet() {
    let place = loans();
    let table = Table::read(&place.path("loans.csv")).unwrap();
    table.write(&place.path("loans.parquet"), Overwrite::Refuse).unwrap();
    survives(&place, &EXPLAIN.replace("loans.csv", "loans.parquet"));
}

#[test]
fn explain_begins_a_ledger() {
    survives(&loans(), &format!("{EXPLAIN} --ledger {LEDGER}"));
}

#[test]
fn explain_continues_a_ledger() {
    survives(&promises(), &format!("{EXPLAIN} --ledger {LEDGER} --out cf.csv"));
}

#[test]
fn train_writes_a_model() {
    let train = "train LOANS --hidden 4 --epochs 2";
    survives(&Place::with_loans(), &format!("{train} --out m.onnx"));
    survives(&loans(), &format!("{train} --out m.onnx --force"));
}

#[test]
fn retrain_fills_a_folder() {
    let retrain = "retrain LOANS --model m.onnx --models 2";
    let retrain = format!("{retrain} --epochs 2 --out {ENSEMBLE}");
    survives(&loans(), &retrain);
}

#[test]
fn retrain_replaces_a_folder() {
    let retrain = "retrain LOANS --model m.onnx --models 2";
    let retrain = format!("{retrain} --epochs 2 --out {ENSEMBLE}");
    let place = loans();
    place.done(&format!("{retrain} --seed 1"));
    survives(&place, &format!("{retrain} --force"));
}

#[test]
fn explain_reads_a_folder_of_models() {
    let place = loans();
    place.done(&format!("retrain LOANS --model m.onnx --models 2 --epochs 2 --out {ENSEMBLE}"));
    survives(&place, "explain --data loans.csv --model m.onnx --ensemble ensemble --limit 1");
}

#[test]
fn a_promise_is_closed() {
    survives(&promises(), &format!("ledger close 1 --as fulfilled --ledger {LEDGER}"));
}

#[test]
fn a_subject_is_forgotten() {
    survives(&promises(), &format!("ledger forget 'loans.csv#row 0' --ledger {LEDGER}"));
}

#[test]
fn a_ledger_is_exported() {
    survives(&promises(), &format!("ledger export --ledger {LEDGER} --out entries.csv"));
}

#[test]
fn a_ledger_is_verified() {
    survives(&promises(), &format!("ledger verify --ledger {LEDGER}"));
}

#[test]
fn an_audit_writes_three_files() {
    let audit = format!("audit --model m.onnx --ledger {LEDGER}");
    survives(&promises(), &format!("{audit} --out gate.html --out gate.json --out gate.csv"));
}

#[test]
fn answers_of_other_processes_are_recorded() {
    let record = format!("--subject-column customer --ledger {LEDGER}");
    for (place, file) in [(loans(), "answers.csv"), (promises(), "answers.parquet")] {
        crate::gate::answers(&place, file);
        survives(&place, &format!("ledger record {file} {record}"));
    }
}

#[test]
fn an_audit_is_divided_and_joined() {
    let place = promises();
    let audit = format!("audit --model m.onnx --ledger {LEDGER}");
    place.done(&format!("{audit} --part 2/2 --out two.json"));
    survives(&place, &format!("{audit} --part 1/2 --out one.json"));
    place.done(&format!("{audit} --part 1/2 --out one.json"));
    survives(&place, "audit join one.json two.json --out gate.html --out gate.json");
}

#[test]
fn certificates_are_written() {
    let place = loans();
    place.done(&format!("{EXPLAIN} --out cf.csv"));
    let certify = "certify --counterfactuals cf.csv --model m.onnx";
    survives(&place, &format!("{certify} --out certificates.csv"));
    survives(&place, &format!("{certify} --out certificates.parquet"));
}

#[test]
fn stabilities_are_written() {
    survives(&loans(), "stability --data loans.csv --model m.onnx --k 20 --out stability.csv");
}

#[test]
fn a_schema_is_drafted() {
    let infer = "schema infer loans.csv --label paid --out draft.toml";
    survives(&Place::with_loans(), infer);
    let place = Place::with_loans();
    place.write("draft.toml", "old");
    survives(&place, &format!("{infer} --force"));
}
