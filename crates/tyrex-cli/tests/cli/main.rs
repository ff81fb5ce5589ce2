//! The real program, run as a user runs it.
//!
//! Each file is about one command; `bad_input.rs` has every refusal as a table, `output.rs`
//! what holds for all commands.

mod applicants;
mod audit;
mod bad_input;
#[cfg(target_os = "linux")]
mod bomb;
mod calibrate;
mod card;
mod certify;
mod data;
mod defaults;
mod experiment;
mod explain;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod faults;
#[cfg(target_os = "linux")]
mod gate;
mod given;
#[cfg(target_os = "linux")]
mod hostile;
mod ledger;
mod model;
mod output;
#[cfg(unix)]
mod pipes;
mod report;
mod retrain;
mod schema;
#[cfg(feature = "service")]
mod serve;
mod stability;
mod train;
#[cfg(not(feature = "service"))]
mod without_service;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tyrex::counterfactual::MethodSpec;

/// A folder of its own, and the program run inside it.
struct Place {
    folder: tempfile::TempDir,
}

/// The end of a run.
#[derive(Debug)]
struct Answer {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With a table of loans and a schema for it.
    fn with_loans() -> Self {
        let place = Self::new();
        place.write("loans.csv", &loans());
        place.write("loans.toml", LOANS_SCHEMA);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn read_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names of all files, so that a test sees what was left behind.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, not started yet. Nothing of the machine's own settings reaches it.
    fn command(&self, line: &(impl Line + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tyrex"));
        command
            .args(line.words())
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .stdin(Stdio::null());
        for variable in [
            "TYREX_DATA",
            "TYREX_DATA_MIRROR",
            "TYREX_LEDGER",
            "XDG_DATA_HOME",
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
        ] {
            command.env_remove(variable);
        }
        command
    }

    fn run(&self, line: &(impl Line + ?Sized)) -> Answer {
        Answer::of(self.command(line).output().unwrap())
    }

    /// Runs what must succeed.
    fn done(&self, line: &(impl Line + ?Sized)) -> String {
        let answer = self.run(line);
        assert_eq!(answer.code, 0, "{:?}: {}", line.words(), answer.stderr);
        answer.stdout
    }

    /// Runs what must succeed, with `--json`.
    fn json(&self, line: &(impl Line + ?Sized)) -> Value {
        let mut words = line.words();
        words.push("--json".to_owned());
        let document: Value = serde_json::from_str(&self.done(&words)).unwrap();
        assert_eq!(document["format_version"], 1, "{words:?}");
        document
    }

    /// Runs what must be refused as bad input, with errors that contain these texts.
    fn refused(&self, line: &(impl Line + ?Sized), says: &[&str]) -> Answer {
        let answer = self.run(line);
        let (words, stderr) = (line.words(), &answer.stderr);
        assert_eq!(answer.code, 2, "{words:?}: {}{stderr}", answer.stdout);
        for text in says {
            assert!(stderr.contains(text), "{words:?}: {text:?} is not in {stderr}");
        }
        answer
    }
}

/// The arguments of the program: its words, or a text as one types it, with quotes around words
/// that have spaces. `LOANS` stands for the arguments of that name.
trait Line {
    fn words(&self) -> Vec<String>;
}

impl Line for str {
    fn words(&self) -> Vec<String> {
        let words = |(index, part): (usize, &str)| -> Vec<String> {
            if index % 2 == 1 {
                return vec![part.to_owned()];
            }
            let words = part.split_whitespace().flat_map(|word| match word {
                "LOANS" => LOANS.to_vec(),
                word => vec![word],
            });
            words.map(str::to_owned).collect()
        };
        self.split('\'').enumerate().flat_map(words).collect()
    }
}

impl Line for String {
    fn words(&self) -> Vec<String> {
        self.as_str().words()
    }
}

impl<L: Line + ?Sized> Line for &L {
    fn words(&self) -> Vec<String> {
        (*self).words()
    }
}

impl<S: AsRef<str>> Line for [S] {
    fn words(&self) -> Vec<String> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<str>> Line for Vec<S> {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl<S: AsRef<str>, const N: usize> Line for [S; N] {
    fn words(&self) -> Vec<String> {
        self.as_slice().words()
    }
}

impl Answer {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The document that was printed.
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|_| panic!("{}{}", self.stdout, self.stderr))
    }
}

/// Sends the signal of Ctrl-C.
#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
}

/// Forty loans; high incomes are paid back.
fn loans() -> String {
    let mut csv = String::from("income,age,housing,owner,paid\n");
    for row in 0..40 {
        let income = 10.5 + 2.0 * f64::from(row);
        let age = 20 + row * 7 % 41;
        let housing = ["rent", "own", "free"][row as usize % 3];
        let owner = if row % 2 == 0 { "no" } else { "yes" };
        let paid = if row >= 18 { "yes" } else { "no" };
        writeln!(csv, "{income},{age},{housing},{owner},{paid}").unwrap();
    }
    csv
}

const LOANS_SCHEMA: &str = r#"
format_version = 1

[label]
column = "paid"
favourable = "yes"
unfavourable = "no"

[split]
fraction = 0.75
seed = 1

[[feature]]
name = "income"
kind = "numeric"
unit = "k€"

[[feature]]
name = "age"
kind = "integer"
unit = "years"

[[feature]]
name = "housing"
kind = "categorical"
levels = ["rent", "own", "free"]

[[feature]]
name = "owner"
kind = "flag"
levels = ["no", "yes"]
"#;

const LOANS: [&str; 4] = ["--data", "loans.csv", "--schema", "loans.toml"];

/// The methods that need no retrained models.
fn one_model_methods() -> Vec<&'static str> {
    let all = MethodSpec::all();
    all.iter().filter(|method| !method.needs_models()).map(MethodSpec::name).collect()
}

/// Compares with a golden file. `TYREX_BLESS=1` writes it instead: read the difference
/// before it is committed.
fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(name);
    if std::env::var_os("TYREX_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, golden, "{} differs", path.display());
}

/// Times differ from run to run.
fn without_times(text: &str) -> String {
    let mut words = text.split(' ').peekable();
    let mut redacted = Vec::new();
    while let Some(word) = words.next() {
        let is_time = words.peek().is_some_and(|next| next.trim_end_matches([',', '\n']) == "s")
            && word.parse::<f64>().is_ok();
        redacted.push(if is_time { "[time]" } else { word });
    }
    redacted.join(" ")
}
