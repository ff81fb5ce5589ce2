//! Every end of an audit, as docs/audit.md lists them.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};

use tyrex::Overwrite;
use tyrex::data::{Column, Schema, Table, Value};
use tyrex::explain::Meaning;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{Closing, Document, Ledger, NewPromise, Timestamp, Values};

use crate::audit::{limit, plain, turned};
use crate::{Place, interrupt};

/// A line of the table: the end, the exit code, the words.
type Line = (String, i32, String);

/// The table of the documentation.
fn table() -> Vec<Line> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audit.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("### How an audit can end\n").unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let line = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" |").map(str::trim).collect();
        let [end, code, words] = cells[..] else { panic!("{line}") };
        (end.to_owned(), code.parse().unwrap(), words.to_owned())
    };
    lines.take_while(|line| line.starts_with('|')).map(line).collect()
}

/// How the two promises of a ledger differ from open ones.
#[derive(Default)]
struct Difference {
    expired: bool,
    threshold: Option<f32>,
    closed: Option<Closing>,
    forgotten: bool,
}

/// Promises of incomes of 40 and 60, in thousands.
fn new_promises(difference: &Difference) -> Vec<NewPromise> {
    let schema = Schema::from_toml(&plain()).unwrap();
    [40.0, 60.0]
        .into_iter()
        .map(|income| {
            let row = |income: f64| -> Values {
                [
                    ("income", Value::Number(income)),
                    ("age", Value::Number(30.0)),
                    ("housing", Value::Text("rent".to_owned())),
                    ("owner", Value::Text("no".to_owned())),
                ]
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect()
            };
            let mut meaning = Meaning::of(&schema);
            meaning.threshold = difference.threshold.unwrap_or(meaning.threshold);
            NewPromise {
                id: tyrex_ledger::new_id(),
                subject: format!("subject of {income}"),
                document: Document {
                    factual: row(10.0),
                    advised: row(income),
                    score: 0.9,
                    stability: None,
                    cost_l1: None,
                    cost_l2: None,
                    certificate: None,
                    meaning: Some(meaning),
                    promised: None,
                },
                request: serde_json::json!({"seed": 0, "mark": "unedited"}),
                model: "0".repeat(64),
                holds_until: difference.expired.then(Timestamp::now),
            }
        })
        .collect()
}

/// A file of answers that carry the promises, as a task of Spark writes it.
pub(crate) fn answers(place: &Place, name: &str) {
    let names = ["customer", "status", "parameters", "model", "holds_until", "promise", "salt"];
    let mut columns = names.map(Column::new);
    for promise in new_promises(&Difference::default()) {
        let cells = [
            promise.subject,
            "found".to_owned(),
            promise.request.to_string(),
            promise.model,
            "2099-01-02T03:04:05Z".to_owned(),
            serde_json::to_string(&promise.document).unwrap(),
            "5a17".repeat(16),
        ];
        columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.push(cell));
    }
    let table = Table::new("answers", columns.to_vec()).unwrap();
    table.write(&place.path(name), Overwrite::Refuse).unwrap();
}

/// A ledger with these promises.
fn ledger(place: &Place, name: &str, difference: &Difference) {
    let promises = new_promises(difference);
    let file = place.path(name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ledger = Ledger::new(Database::open(file.to_str().unwrap()).await.unwrap());
        ledger.record(&promises).await.unwrap();
        for promise in &promises {
            if let Some(closing) = difference.closed {
                ledger.close(promise.id, closing).await.unwrap();
            }
            if difference.forgotten {
                ledger.forget(&promise.subject).await.unwrap();
            }
        }
        ledger.database().close().await;
    });
}

/// Replaces text in the bytes of a file by text of the same length.
fn edit(place: &Place, file: &str, from: &str, to: &str) {
    let mut bytes = place.read_bytes(file);
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|&at| bytes[at..].starts_with(from.as_bytes()))
        .collect();
    assert!(!places.is_empty() && from.len() == to.len());
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
    std::fs::write(place.path(file), bytes).unwrap();
}

fn place() -> Place {
    let place = Place::with_loans();
    for (name, from) in [("low.onnx", 30.0), ("mid.onnx", 55.0), ("high.onnx", 200.0)] {
        limit(&place, name, from, &plain());
    }
    let others = plain().replace("\"rent\", \"own\", \"free\"", "\"own\", \"free\", \"lease\"");
    limit(&place, "level.onnx", 30.0, &others);
    limit(&place, "turned.onnx", -1000.0, &turned(&plain()));
    place.write("notes.txt", "hello");
    place.write("none.csv", "row,status,income\n0,not_found,\n");
    let usual = Difference::default;
    for (name, difference) in [
        ("open.db", usual()),
        ("edited.db", usual()),
        ("entry.db", usual()),
        ("expired.db", Difference { expired: true, ..usual() }),
        ("withdrawn.db", Difference { closed: Some(Closing::Withdrawn), ..usual() }),
        ("fulfilled.db", Difference { closed: Some(Closing::Fulfilled), ..usual() }),
        ("forgotten.db", Difference { forgotten: true, ..usual() }),
        ("threshold.db", Difference { threshold: Some(0.6), ..usual() }),
    ] {
        ledger(&place, name, &difference);
    }
    edit(&place, "edited.db", "subject of 40", "subject of 41");
    edit(&place, "entry.db", "unedited", "redacted");
    // One line more than a file of promises may have.
    place.write("long.csv", &format!("income\n{}", "1\n".repeat(500_001)));
    // Many broken promises, whose repairs take a while.
    let lines: String =
        (0..200_000).map(|row| format!("{row},found,{},30,rent,no\n", row % 50)).collect();
    place.write("many.csv", &format!("row,status,income,age,housing,owner\n{lines}"));
    place
}

/// The exit code as a shell sees it, and all words.
fn ended(output: &Output) -> (i32, String) {
    let code = output.status.code().or_else(|| Some(128 + output.status.signal()?));
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    (code.unwrap(), text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn audit(place: &Place, arguments: &str) -> Command {
    place.command(&format!("audit {arguments}"))
}

/// Interrupts an audit as soon as it listens for interrupts.
fn interrupted(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
    };
    while !listens() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    interrupt(&child);
    child.wait_with_output().unwrap()
}

/// The same program where a process has little memory.
fn in_little_memory(place: &Place, arguments: &str) -> Output {
    let command = audit(place, arguments);
    let words = command.get_args().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ");
    let program = command.get_program().to_str().unwrap();
    Command::new("sh")
        .args(["-c", &format!("ulimit -v 400000; exec {program} {words}")])
        .current_dir(place.path(""))
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .unwrap()
}

/// Writes the two parts of an audit of one candidate.
fn parts(place: &Place, model: &str) -> [String; 2] {
    [1, 2].map(|part| {
        let out = format!("{model}.{part}.json");
        let terms = format!("--ledger open.db --model {model} --method min-cost --by income");
        let output =
            audit(place, &format!("{terms} --part {part}/2 --out {out}")).output().unwrap();
        assert!(ended(&output).0 < 2, "{}", ended(&output).1);
        out
    })
}

/// Changes one value of a report, by its JSON pointer; the name of the new file.
fn edited(place: &Place, file: &str, at: &str, value: serde_json::Value) -> String {
    let mut report: serde_json::Value = serde_json::from_str(&place.read(file)).unwrap();
    let old = report.pointer_mut(at).unwrap_or_else(|| panic!("{at}"));
    assert_ne!(*old, value, "{at}");
    *old = value;
    place.write("edited.json", &report.to_string());
    "edited.json".to_owned()
}

#[test]
fn every_end_of_the_table_is_reached() {
    let place = place();
    let join = |files: &[&str]| {
        place.command(&format!("audit join {}", files.join(" "))).output().unwrap()
    };
    let [mid, low] = ["mid.onnx", "low.onnx"].map(|model| parts(&place, model));
    let join_edited =
        |at: &str, value: serde_json::Value| join(&[&edited(&place, &mid[0], at, value), &mid[1]]);
    let ledger = |file: &str, model: &str, more: &str| {
        let fixed = format!("--ledger {file} --model {model} --method min-cost");
        audit(&place, &format!("{fixed} {more}")).output().unwrap()
    };
    let file = |file: &str, model: &str| {
        let fixed = format!("--counterfactuals {file} --model {model} --method min-cost");
        audit(&place, &fixed)
    };
    let ends: Vec<(&str, Output)> = vec![
        ("all promises kept", ledger("open.db", "low.onnx", "")),
        ("some broken", ledger("open.db", "mid.onnx", "")),
        ("as many broken as `--allow` permits", ledger("open.db", "mid.onnx", "--allow 50%")),
        ("a promised row that the candidate cannot read", ledger("open.db", "level.onnx", "")),
        (
            "a candidate with another schema, which lacks a promised level",
            ledger("open.db", "level.onnx", ""),
        ),
        ("no promise in the ledger", {
            let empty = place.path("empty.db");
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                Database::open(empty.to_str().unwrap()).await.unwrap().close().await;
            });
            ledger("empty.db", "high.onnx", "")
        }),
        ("all promises expired", ledger("expired.db", "high.onnx", "")),
        ("all promises withdrawn", ledger("withdrawn.db", "high.onnx", "")),
        ("all promises fulfilled", ledger("fulfilled.db", "high.onnx", "")),
        ("all promises forgotten", ledger("forgotten.db", "high.onnx", "")),
        ("a candidate with another favourable label", ledger("open.db", "turned.onnx", "")),
        ("promises with another threshold", ledger("threshold.db", "low.onnx", "")),
        ("personal data of the ledger edited", ledger("edited.db", "low.onnx", "")),
        ("an entry of the ledger edited", ledger("entry.db", "low.onnx", "")),
        ("no such ledger", ledger("absent.db", "low.onnx", "")),
        ("a file without promises", file("none.csv", "low.onnx").output().unwrap()),
        ("a candidate that is not a model", ledger("open.db", "notes.txt", "")),
        ("a reader that closes its pipe", {
            let fixed = "--ledger open.db --model mid.onnx --method min-cost";
            audit(&place, fixed).stdout(crate::pipes::closed()).output().unwrap()
        }),
        ("an output that cannot be written", ledger("open.db", "low.onnx", "--out no/a.csv")),
        (
            "a parameter beyond its limit",
            audit(&place, "--ledger open.db --model low.onnx --k 2000000").output().unwrap(),
        ),
        ("a file with more than 500000 lines", file("long.csv", "low.onnx").output().unwrap()),
        (
            "a part of an audit (`--part`), some broken",
            ledger("open.db", "mid.onnx", "--part 1/2 --out part.json"),
        ),
        (
            "a part of an audit, all promises kept",
            ledger("open.db", "low.onnx", "--part 1/2 --out kept.json"),
        ),
        ("joined parts, some broken", join(&[&mid[1], &mid[0]])),
        ("joined parts, all promises kept", join(&[&low[0], &low[1]])),
        ("joined parts, one of them missing", join(&[&mid[0]])),
        ("joined parts, one of them repeated", join(&[&mid[0], &mid[1], &mid[1]])),
        ("joined parts of two audits", join(&[&mid[0], &low[1]])),
        ("a part with another verdict", join_edited("/verdict/passes", true.into())),
        ("a part with another score", join_edited("/candidates/0/promises/0/score", 0.9.into())),
        ("a part of a later version", join_edited("/format_version", 99.into())),
        ("a part that is no report", join(&["notes.txt"])),
        ("an interrupt (Ctrl-C)", interrupted(&mut file("many.csv", "high.onnx"))),
        (
            "not enough memory",
            in_little_memory(&place, "--counterfactuals many.csv --model high.onnx"),
        ),
    ];
    let table = table();
    let documented: BTreeSet<&str> = table.iter().map(|(end, ..)| end.as_str()).collect();
    let tested: BTreeSet<&str> = ends.iter().map(|(end, _)| *end).collect();
    assert_eq!(tested, documented);
    let mut different = Vec::new();
    for (end, output) in &ends {
        let (_, code, words) = table.iter().find(|(name, ..)| name == end).unwrap();
        let (own, text) = ended(output);
        if own != *code || !text.contains(words) {
            different.push(format!("{end}: {own}, {text}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
fn the_parts_of_an_audit_are_joined_to_the_same_report() {
    let place = place();
    let run = |more: &str| {
        let terms = format!("--ledger open.db --model mid.onnx {more}");
        let output = audit(&place, &terms).output().unwrap();
        assert_eq!(ended(&output).0, 1, "{}", ended(&output).1);
    };
    run("--out whole.json");
    run("--part 1/2 --out one.json");
    run("--part 2/2 --out two.json");
    let joined = place.command("audit join two.json one.json --out joined.json").output().unwrap();
    assert_eq!(ended(&joined).0, 1);
    assert_eq!(place.read("joined.json"), place.read("whole.json"));
    assert_ne!(place.read("one.json"), place.read("two.json"));
    for (arguments, words) in [
        ("audit join one.json", "2/2 is missing"),
        ("audit join one.json whole.json", "one is not of a part"),
        ("audit join notes.txt", "not a report of `tyrex audit`"),
        ("audit join one.json two.json --out one.json", "one.json"),
        ("audit --ledger open.db --model mid.onnx --part 3/2 --out x.json", "3/2"),
        (
            "audit --ledger open.db --model mid.onnx --part 1/2 --out x.html",
            "not a complete report",
        ),
    ] {
        let output = place.command(arguments).output().unwrap();
        let (code, text) = ended(&output);
        assert_eq!(code, 2, "{arguments}: {text}");
        assert!(text.contains(words), "{arguments}: {text}");
    }
}

/// Everything that decides the exit code follows from the scores of the promises, or is refused.
#[test]
fn a_report_that_contradicts_itself_is_not_joined() {
    let place = place();
    let terms = "--ledger open.db --model mid.onnx --model low.onnx --by income --method min-cost";
    let whole = audit(&place, &format!("{terms} --part 1/1 --out one.json")).output().unwrap();
    assert_eq!(ended(&whole).0, 0, "{}", ended(&whole).1);
    // Alone, the second one fails.
    let terms = "--ledger open.db --model mid.onnx --by income --method min-cost";
    let whole = audit(&place, &format!("{terms} --part 1/1 --out mid.json")).output().unwrap();
    assert_eq!(ended(&whole).0, 1, "{}", ended(&whole).1);
    let alone = place.command("audit join mid.json").output().unwrap();
    assert_eq!(ended(&alone).0, 1, "{}", ended(&alone).1);
    let edits = [
        ("mid.json", "/verdict/passes", true.into()),
        ("mid.json", "/verdict/passing", serde_json::json!(["mid.onnx"])),
        ("mid.json", "/verdict/sentence", "mid.onnx may be deployed.".into()),
        ("mid.json", "/candidates/0/passes", true.into()),
        ("mid.json", "/candidates/0/tally/kept", 2.into()),
        ("mid.json", "/candidates/0/tally/broken", 0.into()),
        ("mid.json", "/candidates/0/tally/promises", 1.into()),
        ("mid.json", "/candidates/0/tally/interval/0", 0.9.into()),
        ("mid.json", "/candidates/0/promises/0/status", "kept".into()),
        ("mid.json", "/candidates/0/promises/0/status", "unreadable".into()),
        ("mid.json", "/candidates/0/promises/0/score", 0.7.into()),
        ("mid.json", "/candidates/0/promises/1/score", 0.1.into()),
        ("mid.json", "/candidates/0/promises/0/name", "another".into()),
        ("mid.json", "/candidates/0/promises", serde_json::json!([])),
        ("mid.json", "/candidates/0/mean_stability", 0.99.into()),
        ("mid.json", "/candidates/0/from_promised/found", 7.into()),
        ("mid.json", "/candidates/0/groups/0/groups/0/p_value", 0.5.into()),
        ("mid.json", "/candidates/0/groups/0/groups/0/tally/promises", 9.into()),
        ("mid.json", "/candidates", serde_json::json!([])),
        ("mid.json", "/promises", serde_json::json!([])),
        ("mid.json", "/allow", 1.into()),
        ("mid.json", "/allow", serde_json::json!(-1)),
        ("mid.json", "/allow", serde_json::json!(2)),
        ("mid.json", "/confidence", 0.5.into()),
        ("mid.json", "/updates/at_least", 0.9.into()),
        ("mid.json", "/format_version", 0.into()),
        ("one.json", "/candidates/0/rank", 2.into()),
        ("one.json", "/candidates/1/same_as", "low.onnx".into()),
        ("one.json", "/verdict/best", "mid.onnx".into()),
        ("one.json", "/updates/updates/0/name", "low.onnx".into()),
    ];
    for (file, at, value) in edits {
        let words = format!("{file}, {at}: {value}");
        let file = edited(&place, file, at, value);
        let (code, text) = ended(&place.command(&format!("audit join {file}")).output().unwrap());
        assert_eq!(code, 2, "{words}: {text}");
        assert!(text.contains("edited.json: the report was edited: "), "{words}: {text}");
    }
    // Numbers that JSON cannot hold, and values that are not numbers.
    for text in ["\"passes\": 1", "\"allow\": NaN", "\"allow\": 1e999"] {
        let key = text.split(':').next().unwrap();
        let report = place.read("mid.json").replacen(key, &format!("{text}, \"ignored\""), 1);
        place.write("odd.json", &report);
        let (code, text) = ended(&place.command("audit join odd.json").output().unwrap());
        assert_eq!(code, 2, "{text}");
    }
}

/// Columns that `explain` writes beside the features are not promised features.
#[test]
fn a_file_of_advice_promises_its_features_and_nothing_else() {
    let place = place();
    crate::audit::retrained(&place);
    for file in ["cf.csv", "cf.jsonl", "cf.parquet"] {
        let explain =
            format!("explain --data loans.csv --model mid.onnx --ensemble given --out {file}");
        place.done(&explain);
        let table = Table::read(&place.path(file)).unwrap();
        let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
        for own in ["usual", "promise_models", "promise_accepting", "promise_shown", "parameters"] {
            assert!(names.contains(&own), "{file}: {own} in {names:?}");
        }
        let answer = place.run(&format!("audit --counterfactuals {file} --model mid.onnx --json"));
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let document = answer.json();
        assert_eq!(document["candidates"][0]["ignored"], serde_json::json!([]), "{file}");
        let promised = document["promises"][0]["advised"].as_object().unwrap();
        let promised: Vec<&str> = promised.keys().map(String::as_str).collect();
        assert_eq!(promised, ["age", "housing", "income", "owner"], "{file}");
    }
}

/// Equal weights behind another encoder are another model: it accepts other people.
#[test]
fn a_model_is_its_weights_and_its_encoder() {
    let place = place();
    // The levels of `housing` in another order: the same columns mean something else.
    let others = plain().replace("\"rent\", \"own\", \"free\"", "\"own\", \"rent\", \"free\"");
    assert_ne!(others, plain());
    limit(&place, "order.onnx", 30.0, &others);
    std::fs::copy(place.path("low.onnx"), place.path("copy.onnx")).unwrap();
    let candidates = "--model low.onnx --model order.onnx --model copy.onnx";
    let document = place.json(&format!("audit --ledger open.db --method min-cost {candidates}"));
    let candidates = document["candidates"].as_array().unwrap();
    let of = |name: &str| candidates.iter().find(|each| each["name"] == name).unwrap();
    let [low, order, copy] = ["low.onnx", "order.onnx", "copy.onnx"].map(of);
    assert_eq!(low["fingerprint"], order["fingerprint"]);
    assert_ne!(low["encoding"], order["encoding"]);
    assert_eq!(low["encoding"], copy["encoding"]);
    assert_eq!(copy["same_as"], "low.onnx");
    assert!(order["same_as"].is_null() && low["same_as"].is_null());
    assert_eq!(document["updates"]["updates"].as_array().unwrap().len(), 2);
}
