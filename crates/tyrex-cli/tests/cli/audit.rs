//! `tyrex audit`

use clap::Parser as _;
use serde_json::Value;
use tyrex::data::Schema;
use tyrex::model::Mlp;
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex_cli::args::Args;

use crate::{LOANS_SCHEMA, Place, assert_golden};

/// A model that accepts incomes from a limit on, in thousands; nothing else counts. It takes the
/// columns as they are.
pub(crate) fn limit(place: &Place, name: &str, limit: f32, schema: &str) {
    let schema = Schema::from_toml(schema).unwrap();
    let network = Mlp::linear(vec![0.1, 0.0, 0.0, 0.0, 0.0, 0.0], -0.1 * limit).unwrap();
    let encoder = tyrex::data::Encoder::fit(&schema, &[]).unwrap();
    let bytes = write(&network, &ExportMetadata::of(&schema, &encoder).unwrap());
    std::fs::write(place.path(name), bytes).unwrap();
}

/// The schema of the loans, with numbers as they are.
pub(crate) fn plain() -> String {
    LOANS_SCHEMA.replace("[split]", "[scaling]\nmethod = \"none\"\n\n[split]")
}

/// Loans, promises to four of the people, and models that accept incomes from 30, 55 and 200 on.
fn place() -> Place {
    let place = Place::with_loans();
    for (name, from) in [("low.onnx", 30.0), ("mid.onnx", 55.0), ("high.onnx", 200.0)] {
        limit(&place, name, from, &plain());
    }
    place.write(
        "cf.csv",
        "row,status,reason,income,age,housing,owner\n\
         0,found,,40,20,rent,no\n\
         1,found,,50,27,own,yes\n\
         2,not_found,stuck,,,,\n\
         3,found,,60,41,rent,yes\n\
         4,found,,70,48,own,no\n",
    );
    place
}

/// 75 models in the folder `given` that accept incomes from 50 to 60 on, retrained elsewhere.
pub(crate) fn retrained(place: &Place) {
    std::fs::create_dir(place.path("given")).unwrap();
    for index in 0..75_u8 {
        let from = 50.0 + 10.0 * f32::from(index) / 75.0;
        limit(place, &format!("given/run{index}.onnx"), from, &plain());
    }
}

#[test]
fn given_models_search_and_judge_repairs() {
    let place = place();
    retrained(&place);
    let arguments = audit("--model mid.onnx --ensemble given");
    let answer = place.run(&format!("{arguments} --json"));
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let document = answer.json();
    assert_eq!(document["request"]["method"]["method"], "trex-e");
    let promises = document["candidates"][0]["promises"].as_array().unwrap();
    let broken: Vec<&Value> = promises.iter().filter(|each| each["status"] == "broken").collect();
    assert_eq!(broken.len(), 2);
    for each in broken {
        let promise = &each["repairs"]["from_promised"]["promise"];
        assert_eq!((&promise["asked"], &promise["models"]), (&0.9.into(), &61.into()), "{each}");
        assert!(promise["accepting"].as_u64().unwrap() >= 59, "{promise}");
    }
    let text = place.run(&arguments).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("of 61 models retrained to check this accept it"), "{text}");
    // Without them a repair is found with the candidate alone, and says nothing about retraining.
    let plain = place.run(&audit("--model mid.onnx --json"));
    let plain = plain.json();
    assert_eq!(plain["request"]["method"]["method"], "trex-o");
    assert!(!plain.to_string().contains("\"accepting\""));
    let several = audit("--model mid.onnx --model low.onnx --ensemble given");
    place.refused(&several, &["pass one --model with --ensemble"]);
    place.refused(
        &audit("--model mid.onnx --method trex-e"),
        &["an ensemble of its retrained models"],
    );
}

const AUDIT: &str = "audit --counterfactuals cf.csv --data loans.csv";

fn audit(rest: &str) -> String {
    format!("{AUDIT} {rest}")
}

#[test]
fn the_exit_code_is_the_gate() {
    let place = place();
    // One candidate: its verdict. Several: the best one's.
    let cases: [(&str, i32); 9] = [
        ("--model low.onnx", 0),
        ("--model mid.onnx", 1),
        ("--model mid.onnx --allow 50%", 0),
        ("--model mid.onnx --allow 0.5", 0),
        ("--model mid.onnx --allow 49.999%", 1),
        ("--model high.onnx --allow 99%", 1),
        ("--model high.onnx --allow 100%", 0),
        ("--model high.onnx --model low.onnx", 0),
        ("--model high.onnx --model mid.onnx", 1),
    ];
    for (rest, code) in cases {
        let answer = place.run(&audit(rest));
        assert_eq!(answer.code, code, "{rest:?}: {}{}", answer.stdout, answer.stderr);
        let word = if code == 0 { "\nYes: " } else { "\nNo: " };
        assert!(answer.stdout.contains(word), "{}", answer.stdout);
        assert_eq!(answer.stderr, "");
    }
    assert_eq!(place.run(&audit("--model mid.onnx --quiet")).stdout, "");
}

#[test]
fn people_read_what_became_of_the_promises() {
    let place = place();
    let models = "--model low.onnx --model mid.onnx --model high.onnx";
    let text = place.done(&audit(&format!("{models} --by owner --by age:30")));
    assert_golden("audit_loans.txt", &text);
    let text = place.run(&audit("--model mid.onnx")).stdout;
    assert_golden("audit_loans_broken.txt", &text);
}

/// Advice with a promise is recorded with its probability; six updates are judged in their order.
#[test]
fn promised_probabilities_stand_beside_the_share_kept_update_after_update() {
    let place = Place::with_loans();
    place.done("retrain --epochs 300 --hidden 16 --models 30 --out fresh LOANS");
    let explain = "explain --model fresh/base.onnx --ensemble fresh --limit 6";
    let promise = "--promise 0.5 --confidence 0.9 --ledger advice.db";
    let advice = place.json(&format!("{explain} LOANS {promise}"));
    let files: Vec<String> = (1..=6).map(|n| format!("fresh/member-{n:04}.onnx")).collect();
    let models: String = files.iter().map(|file| format!(" --model {file}")).collect();
    let audit = format!("audit --ledger advice.db --allow 100%{models}");
    let document = place.json(&audit);
    let certified: Vec<f64> = advice["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|each| each["advice"].get("promise"))
        .filter(|promise| promise["kept"] == true)
        .map(|promise| promise["shown"].as_f64().unwrap())
        .collect();
    assert!(!certified.is_empty(), "{advice}");
    let mean = certified.iter().sum::<f64>() / certified.len() as f64;
    for candidate in document["candidates"].as_array().unwrap() {
        let stated = &candidate["tally"]["stated"];
        assert_eq!(stated["promises"], certified.len());
        assert!((stated["mean_probability"].as_f64().unwrap() - mean).abs() < 1e-12, "{stated}");
    }
    let updates = document["updates"]["updates"].as_array().unwrap();
    let names: Vec<&str> = updates.iter().map(|each| each["name"].as_str().unwrap()).collect();
    assert_eq!(names, files);
    let bound = document["updates"]["at_least"].as_f64().unwrap();
    assert!((0.2..0.5).contains(&bound), "{bound}");
    let text = place.done(&format!("{audit} --out audit.html --out audit.json"));
    for piece in ["Promised and kept", "Update after update, in the order given"] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    assert!(place.read("audit.html").contains("Update after update"));
    let written: Value = serde_json::from_str(&place.read("audit.json")).unwrap();
    assert_eq!(written["updates"], document["updates"]);
}

#[test]
fn the_document_has_everything() {
    let place = place();
    let all = "--model mid.onnx --model low.onnx --by housing --seed 3";
    let document = place.json(&audit(all));
    assert_eq!(document["verdict"]["best"], "low.onnx");
    assert_eq!(document["verdict"]["passing"], serde_json::json!(["low.onnx"]));
    assert_eq!(document["promises"].as_array().unwrap().len(), 4);
    assert_eq!(document["promises"][0]["factual"]["income"], "10.5");
    let mid = &document["candidates"][1];
    assert_eq!((&mid["rank"], &mid["tally"]["kept"]), (&2.into(), &2.into()));
    let broken = &mid["promises"][0];
    assert_eq!((&broken["name"], &broken["status"]), (&"row 0".into(), &"broken".into()));
    let repair = &broken["repairs"]["from_promised"];
    assert_eq!(repair["status"], "found", "{repair}");
    assert_eq!(repair["changes"][0]["feature"], "income");
    let sizes: Vec<_> = mid["groups"][0]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            (group["name"].as_str().unwrap(), group["tally"]["promises"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(sizes, [("rent", 2), ("own", 2)]);
    // The same seed gives the same document, with any number of threads.
    assert_eq!(place.json(&audit(&format!("{all} --threads 1"))), document);
}

#[test]
fn every_form_can_be_written() {
    let place = place();
    let outs = "--out a.html --out a.json --out a.csv --out a.jsonl --out a.parquet";
    let arguments = audit(&format!("--model mid.onnx --model low.onnx {outs}"));
    let text = place.done(&arguments);
    assert!(text.contains("Wrote a.html and a.json and a.csv"), "{text}");
    let document: Value = serde_json::from_str(&place.read("a.json")).unwrap();
    assert_eq!(document["candidates"][0]["name"], "low.onnx");
    let csv = place.read("a.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 4);
    assert!(csv.starts_with("candidate,rank,passes,promise,status,"), "{csv}");
    let html = place.read("a.html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("may be deployed"), "{html}");
    // Existing files stay, unless `--force` is given.
    place.refused(&arguments, &["a.html exists already"]);
    place.done(&format!("{arguments} --force"));
}

#[test]
fn promises_are_read_without_the_people() {
    let place = place();
    let answer = place.run("audit --counterfactuals cf.csv --model mid.onnx --json");
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let document = answer.json();
    let broken = &document["candidates"][0]["promises"][0];
    assert_eq!(broken["factual_score"], Value::Null);
    assert_eq!(broken["repairs"]["from_promised"]["status"], "found");
    assert_eq!(broken["repairs"]["from_factual"], Value::Null);
}

#[test]
fn a_ledger_is_audited_and_left_alone() {
    let place = Place::with_loans();
    place.done("train LOANS --out old.onnx");
    place.done("train LOANS --seed 5 --out new.onnx");
    let explain = "explain --data loans.csv --schema loans.toml --model old.onnx";
    place.done(&format!("{explain} --method min-cost --ledger advice.db --out cf.csv --limit 4"));
    let before = place.read_bytes("advice.db");
    let ledger = "audit --ledger advice.db --method min-cost";
    let own = place.json(&format!("{ledger} --model old.onnx"));
    let count = own["promises"].as_array().unwrap().len();
    assert!(count > 0);
    assert_eq!(own["candidates"][0]["tally"]["kept"], count);
    assert_eq!(place.read_bytes("advice.db"), before, "an audit only reads");
    // The ledger and the file of the same advice are kept and broken alike.
    let json = |audit: &str| place.run(&format!("{audit} --model new.onnx --json")).json();
    let from_file = "audit --counterfactuals cf.csv --data loans.csv --method min-cost";
    let scores = |document: &Value| -> Vec<Value> {
        let promises = document["candidates"][0]["promises"].as_array().unwrap();
        promises.iter().map(|promise| promise["score"].clone()).collect()
    };
    assert_eq!(scores(&json(ledger)), scores(&json(from_file)));
    // Closed promises are not audited.
    for promise in own["promises"].as_array().unwrap() {
        let id = promise["name"].as_str().unwrap();
        place.done(&format!("ledger close {id} --ledger advice.db --as fulfilled"));
    }
    let none = place.done(&format!("{ledger} --model new.onnx"));
    assert!(none.contains("Yes: There are no open promises"), "{none}");
}

/// The schema of the loans, with the label the other way round.
pub(crate) fn turned(schema: &str) -> String {
    schema.replace(
        "favourable = \"yes\"\nunfavourable = \"no\"",
        "favourable = \"no\"\nunfavourable = \"yes\"",
    )
}

/// A model that rejects everybody: by its own schema it gives everybody the favourable label.
#[test]
fn a_candidate_that_calls_another_label_favourable_is_refused() {
    let place = place();
    limit(&place, "turned.onnx", -1000.0, &turned(&plain()));
    limit(&place, "column.onnx", -1000.0, &plain().replace("\"paid\"", "\"repaid\""));
    let record = "--limit 3 --out advice.csv --ledger a.db";
    place.done(&format!("explain --data loans.csv --model mid.onnx --models 0 {record}"));
    for source in ["--ledger a.db", "--counterfactuals advice.csv"] {
        let kept = place.run(&format!("audit {source} --model mid.onnx"));
        assert_eq!(kept.code, 0, "{}{}", kept.stdout, kept.stderr);
        for (model, own) in [
            ("turned.onnx", "turned.onnx calls `no` in column `paid`"),
            ("column.onnx", "column.onnx calls `yes` in column `repaid`"),
        ] {
            let refused = place.run(&format!("audit {source} --model {model}"));
            assert_eq!(refused.code, 2, "{}{}", refused.stdout, refused.stderr);
            assert_eq!(refused.stdout, "");
            for piece in [own, "is `yes` in column `paid` from a score of 0.5 on", "`[label]`"] {
                assert!(refused.stderr.contains(piece), "{piece}: {}", refused.stderr);
            }
        }
    }
    // A file whose `parameters` cannot be read.
    let text = place.read("advice.csv").replace("\"\"threshold\"\":0.5", "\"\"from\"\":0.5");
    place.write("odd.csv", &text);
    place.refused("audit --counterfactuals odd.csv --model mid.onnx", &["column `parameters`"]);
    // Files of earlier versions are read as before.
    let meaning = ",\"\"meaning\"\":{\"\"label\"\":\"\"paid\"\",\"\"favourable\"\":[\"\"yes\"\"],\"\"threshold\"\":0.5}";
    let text = place.read("advice.csv");
    assert!(text.contains(meaning), "{text}");
    place.write("old.csv", &text.replace(meaning, ""));
    let old = place.run("audit --counterfactuals old.csv --model mid.onnx");
    assert_eq!(old.code, 0, "{}{}", old.stdout, old.stderr);
}

/// A schema that contradicts the one in the model file turns every answer round.
#[test]
fn a_schema_that_contradicts_the_models_own_is_refused() {
    let place = place();
    place.write("turned.toml", &turned(&plain()));
    place.write(
        "column.toml",
        &plain().replace("\"paid\"", "\"owner\"").replace(
            "[[feature]]\nname = \"owner\"\nkind = \"flag\"\nlevels = [\"no\", \"yes\"]\n",
            "[[feature]]\nname = \"paid\"\nkind = \"flag\"\nlevels = [\"no\", \"yes\"]\n",
        ),
    );
    let commands: [&str; 4] = [
        "explain --data loans.csv",
        "stability --data loans.csv",
        "certify --counterfactuals cf.csv",
        "audit --counterfactuals cf.csv",
    ];
    for command in commands {
        for (schema, given) in
            [("turned.toml", "`no` in column `paid`"), ("column.toml", "`owner`")]
        {
            let refused = place.run(&format!("{command} --model mid.onnx --schema {schema}"));
            assert_eq!(refused.code, 2, "{command:?}: {}{}", refused.stdout, refused.stderr);
            let own = "mid.onnx: its own schema calls `yes` in column `paid`";
            for piece in [own, given, "help: leave --schema out"] {
                assert!(refused.stderr.contains(piece), "{command:?} {piece}: {}", refused.stderr);
            }
        }
    }
}

/// Input that is wrong in ways people get wrong: what is refused, and what is only reported.
#[test]
fn hostile_input_is_refused_with_a_reason_or_reported() {
    let other_label = plain().replace(
        "favourable = \"yes\"\nunfavourable = \"no\"",
        "favourable = \"no\"\nunfavourable = \"yes\"",
    );
    let reordered = {
        let whole = plain();
        let (head, features) = whole.split_once("[[feature]]").unwrap();
        let mut features: Vec<&str> = features.split("[[feature]]").collect();
        features[1..].reverse();
        format!("{head}[[feature]]{}", features.join("\n[[feature]]"))
    };
    let place = place();
    limit(&place, "other.onnx", 55.0, &other_label);
    limit(&place, "reordered.onnx", 55.0, &reordered);
    limit(
        &place,
        "level.onnx",
        30.0,
        &plain().replace("\"rent\", \"own\", \"free\"", "\"own\", \"free\", \"lease\""),
    );
    place.write("empty.csv", "");
    place.write("header.csv", "row,status,income,age,housing,owner\n");
    place.write("missing.csv", "row,status,age,housing,owner\n0,found,20,rent,no\n");
    place.write("evil.csv", "row,status,income,age,housing,owner\n0,found,<script>,20,<b>,no\n");
    place.write(
        "points.csv",
        "row,status,income,parameters\n0,found,1,\"{\"\"protocol\"\":\"\"paper\"\"}\"\n",
    );
    let broken = |cell: &str| {
        format!("row,status,income,age,housing,owner,parameters\n0,found,1,20,rent,no,{cell}\n")
    };
    place.write("broken.csv", &broken("\"{\"\"seed\"\":\""));
    place.write("text.csv", &broken("seven"));
    place.write("notes.txt", "hello");
    place.write("none-found.csv", "row,status,income\n0,not_found,\n1,not_found,\n");
    place.write("status.csv", "row,status,income\n0,not_found,\n1,Found,1\n");
    std::fs::copy(place.path("mid.onnx"), place.path("copy.onnx")).unwrap();
    place.write(
        "twice.csv",
        "row,status,income,age,housing,owner,income,age,income\n0,found,1,20,rent,no,99,70,99\n",
    );
    let cases: [(&str, i32, &[&str]); 27] = [
        (
            "--counterfactuals twice.csv --model mid.onnx",
            2,
            &["twice.csv: the header repeats names (`age` is in columns 4 and 8; `income` is in \
                 columns 3, 7 and 9), expected each name of a file of advice once"],
        ),
        (
            "--counterfactuals broken.csv --model mid.onnx",
            2,
            &["broken.csv, row 0, column `parameters`", "expected a JSON document"],
        ),
        (
            "--counterfactuals text.csv --model mid.onnx",
            2,
            &["text.csv, row 0, column `parameters`: found `seven`", "expected a JSON document"],
        ),
        ("--counterfactuals empty.csv --model mid.onnx", 2, &["empty.csv"]),
        (
            "--counterfactuals header.csv --model mid.onnx",
            2,
            &["header.csv: it has no lines, expected counterfactuals"],
        ),
        (
            "--counterfactuals none-found.csv --model mid.onnx",
            2,
            &["none-found.csv: no line has a counterfactual, expected `found` in column `status`"],
        ),
        (
            "--counterfactuals status.csv --model mid.onnx",
            2,
            &["row 1, column `status`", "`Found`", "expected `found` or `not_found`"],
        ),
        (
            "--counterfactuals missing.csv --model mid.onnx",
            1,
            &["row 0: cannot be read", "it has no `income`", "1 of them because"],
        ),
        ("--counterfactuals evil.csv --model mid.onnx", 1, &["`income` is `<script>`"]),
        ("--counterfactuals points.csv --model mid.onnx", 2, &["protocol `paper`"]),
        ("--counterfactuals none.csv --model mid.onnx", 2, &["none.csv", "help:"]),
        ("--counterfactuals cf.csv --model none.onnx", 2, &["none.onnx"]),
        ("--counterfactuals cf.csv --model notes.txt", 2, &["notes.txt"]),
        (
            "--counterfactuals cf.csv --model mid.onnx --model ./mid.onnx",
            2,
            &["./mid.onnx is given twice"],
        ),
        (
            "--counterfactuals cf.csv --model mid.onnx --model copy.onnx",
            1,
            &["copy.onnx is the same model as mid.onnx"],
        ),
        (
            "--counterfactuals cf.csv --model mid.onnx --model other.onnx",
            2,
            &["other.onnx calls `no` favourable, but mid.onnx calls `yes` so"],
        ),
        // Features in another order are found by their names.
        ("--counterfactuals cf.csv --model reordered.onnx", 1, &["reordered.onnx"]),
        (
            "--counterfactuals cf.csv --model level.onnx",
            1,
            &["`housing` is `rent`, expected one of `own`, `free`, `lease`"],
        ),
        (
            "--counterfactuals cf.csv --data header.csv --model mid.onnx",
            2,
            &["advice for row 0, but header.csv has 0 rows"],
        ),
        (
            "--counterfactuals cf.csv --model mid.onnx --by owner",
            2,
            &["`by` is owner", "not known"],
        ),
        ("--counterfactuals cf.csv --model mid.onnx --by age:9,1", 2, &["edges that rise"]),
        ("--counterfactuals cf.csv --model mid.onnx --allow 2", 2, &["0.5% or 0.005"]),
        (
            "--counterfactuals cf.csv --model mid.onnx --method trex-nn",
            2,
            &["needs data rows to find repairs", "--data or --dataset"],
        ),
        ("--counterfactuals cf.csv --model mid.onnx --tau auto", 2, &["does not calibrate"]),
        ("--counterfactuals cf.csv --model mid.onnx --out a.txt", 2, &["a.txt", ".parquet"]),
        ("--ledger none.db --model mid.onnx", 2, &["none.db"]),
        ("--model mid.onnx", 2, &["no ledger is named", "TYREX_LEDGER"]),
    ];
    for (arguments, code, says) in cases {
        let answer = place.run(&format!("audit {arguments}"));
        let text = format!("{}{}", answer.stdout, answer.stderr);
        assert_eq!(answer.code, code, "{arguments:?}: {text}");
        for piece in says {
            let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(unwrapped.contains(piece), "{arguments:?}: {piece} not in {text}");
        }
    }
    // An input is not an output, not even with --force.
    place.refused(&audit("--model mid.onnx --out cf.csv --force"), &["is the input"]);
    // A page of names and values that look like HTML.
    let html = "--counterfactuals evil.csv --model mid.onnx --out evil.html";
    assert_eq!(place.run(&format!("audit {html}")).code, 1);
    let page = place.read("evil.html");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
}

/// A workflow file, as far as it goes here: names of steps, and the commands of each.
fn workflow() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/audit-workflow.yml");
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    let value = yaml::block(&lines, &mut at, 0);
    assert_eq!(at, lines.len(), "line {} is not read", at + 1);
    value
}

#[test]
fn the_workflow_in_the_docs_says_what_it_should() {
    let workflow = workflow();
    let jobs = workflow["jobs"].as_object().unwrap();
    let steps: Vec<&Value> =
        jobs.values().flat_map(|job| job["steps"].as_array().unwrap()).collect();
    let mut commands = Vec::new();
    for step in &steps {
        assert!(step["name"].is_string(), "{step}");
        assert!(step["run"].is_string() != step["uses"].is_string(), "{step}");
        let script = step["run"].as_str().unwrap_or("").replace("\\\n", " ");
        let words = |line: &str| -> Vec<String> {
            let plain =
                |word: &str| word.replace('"', "").replace("$TYREX_LEDGER_HEAD", &"ab".repeat(32));
            line.split_whitespace().map(plain).collect()
        };
        commands.extend(
            script
                .lines()
                .map(words)
                .filter(|words| words.first().is_some_and(|word| word == "tyrex")),
        );
    }
    for command in &commands {
        Args::try_parse_from(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }
    let verbs: Vec<&str> = commands.iter().map(|command| command[1].as_str()).collect();
    assert!(verbs.contains(&"audit") && verbs.contains(&"ledger"), "{verbs:?}");
    // Without a head from elsewhere, a ledger that was rewritten as a whole would pass.
    let verify = commands.iter().find(|command| command[1] == "ledger").unwrap();
    assert!(verify.contains(&"--head".to_owned()), "{verify:?}");
    // The report is kept also where the gate says no, and what comes behind it needs the gate.
    let upload = steps.iter().find(|step| {
        step["uses"].as_str().is_some_and(|action| action.contains("upload-artifact"))
    });
    assert_eq!(upload.unwrap()["if"], "always()");
    assert_eq!(jobs["deploy"]["needs"], "gate");
}

/// The part of YAML that workflow files are made of: mappings, lists, texts in blocks. Anything
/// else is an error.
mod yaml {
    use serde_json::{Map, Value};

    fn indent(line: &str) -> usize {
        line.len() - line.trim_start_matches(' ').len()
    }

    fn skip(lines: &[&str], at: &mut usize) {
        while lines.get(*at).is_some_and(|line| {
            assert!(!line.contains('\t') && line.trim_end() == *line, "line {}", *at + 1);
            line.trim().is_empty() || line.trim_start().starts_with('#')
        }) {
            *at += 1;
        }
    }

    /// A mapping or a list whose lines stand at a column.
    pub(super) fn block(lines: &[&str], at: &mut usize, column: usize) -> Value {
        skip(lines, at);
        if lines[*at].trim_start().starts_with("- ") {
            return list(lines, at, column);
        }
        let mut map = Map::new();
        while lines.get(*at).is_some_and(|line| indent(line) == column) {
            let line = lines[*at].trim_start();
            pair(line, lines, at, column, &mut map);
            skip(lines, at);
        }
        assert!(lines.get(*at).is_none_or(|line| indent(line) < column), "line {}", *at + 1);
        Value::Object(map)
    }

    fn list(lines: &[&str], at: &mut usize, column: usize) -> Value {
        let mut items = Vec::new();
        while lines
            .get(*at)
            .is_some_and(|line| indent(line) == column && line.trim_start().starts_with("- "))
        {
            let line = &lines[*at].trim_start()[2..];
            if line.contains(": ") || line.ends_with(':') {
                let mut map = Map::new();
                pair(line, lines, at, column + 2, &mut map);
                skip(lines, at);
                while lines.get(*at).is_some_and(|line| indent(line) == column + 2) {
                    let line = lines[*at].trim_start();
                    pair(line, lines, at, column + 2, &mut map);
                    skip(lines, at);
                }
                items.push(Value::Object(map));
            } else {
                items.push(scalar(line));
                *at += 1;
                skip(lines, at);
            }
        }
        Value::Array(items)
    }

    fn pair(
        line: &str,
        lines: &[&str],
        at: &mut usize,
        column: usize,
        map: &mut Map<String, Value>,
    ) {
        let (key, rest) = line.split_once(':').unwrap_or_else(|| panic!("no pair: {line}"));
        assert!(rest.is_empty() || rest.starts_with(' '), "{line}");
        *at += 1;
        let value = match rest.trim() {
            "" => {
                skip(lines, at);
                let inner = lines.get(*at).map_or(0, |line| indent(line));
                if inner > column { block(lines, at, inner) } else { Value::Null }
            }
            "|" => {
                let inner = lines.get(*at).map_or(0, |line| indent(line));
                assert!(inner > column, "line {}", *at + 1);
                let mut text = String::new();
                while lines.get(*at).is_some_and(|line| line.is_empty() || indent(line) >= inner) {
                    text += lines[*at].get(inner..).unwrap_or_default();
                    text.push('\n');
                    *at += 1;
                }
                Value::String(text)
            }
            text => scalar(text),
        };
        assert!(map.insert(key.to_owned(), value).is_none(), "`{key}` twice");
    }

    fn scalar(text: &str) -> Value {
        let special = ['&', '*', '!', '>', '%', '@', '`', '{', '[', '\''];
        assert!(!text.starts_with(special) && !text.contains(" #"), "{text}");
        Value::String(text.trim_matches('"').to_owned())
    }
}
