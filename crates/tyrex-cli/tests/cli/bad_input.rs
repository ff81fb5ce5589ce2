//! Bad input: exit code 2, what is wrong and where, what to do next, and nothing lost.

use tyrex::model::Mlp;
use tyrex::model::onnx::{ExportMetadata, write};

use crate::{LOANS_SCHEMA, Place, loans};

/// One wrong thing, and what the error must say.
struct Case {
    name: &'static str,
    /// Files to write first, over the good ones.
    files: Vec<(&'static str, String)>,
    command: &'static str,
    says: Vec<&'static str>,
}

fn case(name: &'static str, command: &'static str, says: &[&'static str]) -> Case {
    Case { name, files: Vec::new(), command, says: says.to_vec() }
}

/// The cases of a text: a line with the name and the command, and below it the pieces that the error
/// must contain.
fn listed(text: &'static str) -> Vec<Case> {
    let lines: Vec<&str> = text.trim().lines().collect();
    let read = |lines: &[&'static str]| {
        let (name, command) = lines[0].split_once(": ").unwrap();
        case(name, command, &lines[1].trim().split(" | ").collect::<Vec<_>>())
    };
    lines.chunks_exact(2).map(read).collect()
}

impl Case {
    fn file(mut self, name: &'static str, content: impl Into<String>) -> Self {
        self.files.push((name, content.into()));
        self
    }
}

/// `loans.csv` with one text in place of another, once.
fn changed(from: &str, to: &str) -> String {
    let csv = loans();
    assert!(csv.contains(from), "{from}");
    csv.replacen(from, to, 1)
}

/// Cases about the rows; the tests of the library have the others.
fn about_rows() -> Vec<Case> {
    let wrong = |name, csv: String, says: &[&'static str]| {
        case(name, "explain LOANS", says).file("loans.csv", csv)
    };
    vec![
        wrong(
            "a column is missing",
            changed("housing", "houses"),
            &["loans.csv", "no column `housing`", "did you mean `houses`", "schema infer"],
        ),
        wrong(
            "an unknown level",
            changed("12.5,27,own", "12.5,27,owns"),
            &["loans.csv, row 1, column `housing`", "found `owns`", "`rent`", "did you mean `own`"],
        ),
        wrong(
            "a cell that is not a number",
            changed("12.5,", "twelve,"),
            &["loans.csv, row 1, column `income`", "found `twelve`", "expected a number", "help:"],
        ),
        wrong(
            "NaN",
            changed("12.5,", "NaN,"),
            &["row 1, column `income`", "found `NaN`", "set `missing` in the schema"],
        ),
        wrong(
            "one class only",
            loans().replace(",no\n", ",yes\n"),
            &["loans.csv", "rows are favourable in column `paid`", "expected both classes"],
        ),
    ]
}

fn about_schemas() -> Vec<Case> {
    let wrong = |name, schema: String, says: &[&'static str]| {
        case(name, "explain LOANS", says).file("loans.toml", schema)
    };
    let schema = |from: &str, to: &str| {
        assert!(LOANS_SCHEMA.contains(from), "{from}");
        LOANS_SCHEMA.replacen(from, to, 1)
    };
    vec![
        wrong(
            "a schema that is no TOML",
            "[label".to_owned(),
            &["loans.toml", "not a schema", "tyrex schema check loans.toml"],
        ),
        wrong(
            "an unknown key",
            schema("unit = \"k€\"", "units = \"k€\""),
            &["loans.toml", "units"],
        ),
        wrong(
            "an unknown kind",
            schema("\"integer\"", "\"int\""),
            &["loans.toml", "int", "integer"],
        ),
        wrong(
            "a level twice",
            schema("\"own\", \"free\"", "\"own\", \"own\""),
            &["loans.toml", "`housing`", "own"],
        ),
        wrong(
            "a range of three numbers",
            schema("unit = \"k€\"", "range = [-10, 10, 999]"),
            &["loans.toml", "range", "999", "two numbers"],
        ),
        case(
            "no schema at all",
            "explain --data loans.csv",
            &["there is no schema for the columns of loans.csv", "tyrex schema infer loans.csv"],
        ),
        case(
            "a schema that is not there",
            "schema check nothing.toml",
            &["cannot read nothing.toml", "help:"],
        ),
    ]
}

const ARGUMENTS: &str = "
an unknown flag: explain --datset german
    --datset | --dataset
an unknown command: explian
    explian | explain
no data: explain
    --dataset | --data
a threshold for a method without a test: explain --dataset german --method nn --tau auto
    nn has no test of stability | --tau | help: | trex-o
a promise of a method that searches with one model: explain --dataset german --promise 0.9 --method trex-o
    `method` is trex-o | trex-e if a promise is given
groups of promises without a promise: explain --dataset german --method nn --by age
    --promise
an amount that is in no column: explain --dataset german --promise 0.9 --amount credit
    no column `credit` | credit_amount
an amount that is not a number: explain --dataset german --promise 0.9 --amount purpose
    row | column `purpose` | expected an amount, at least 0
a group that is in no column: explain --dataset german --promise 0.9 --by gender
    no column `gender`
a promise and a threshold: explain --dataset german --promise 0.9 --tau 0.8
    --promise | cannot be used with | --tau
a promise of nothing: explain --dataset german --promise 0
    `promise` is 0 | from 0.5 to 0.999
a certain promise: explain --dataset german --promise 1
    `promise` is 1 | from 0.5 to 0.999
a promise that is not a number: explain --dataset german --promise nan
    `promise` is NaN | from 0.5 to 0.999
a confidence that is none: explain --dataset german --confidence 1
    `confidence` is 1 | between 0 and 1
a score that the model does not require: explain --dataset german --method margin --score 0.4
    --score | at least 0.5 and below 1
a score of another method: explain --dataset german --method min-cost --score 0.7
    score | unknown | a parameter of min-cost
a p-value that is not a number: explain --dataset german --plausible often
    often | --plausible | expected a number such as 0.5
a p-value of hundreds of digits: explain --dataset german --plausible 1e300
    `plausible` is 1e300, expected a p-value between 0 and 1
a p-value that no row can have: explain --dataset german --method nn --plausible 0.000001
    `plausible` is 0.000001 | expected a p-value of at least
a width that is not a number: stability --dataset german --sigma wide
    wide | --sigma | expected a number such as 0.5
threads that are not a number: data list --threads two
    two | --threads | expected a whole number from 1 to 1024
a proof for a network: explain --dataset german --method min-cost --prove
    `prove` is true | trees | networks have none
more neighbours than a machine can hold: explain --dataset german --k 18446744073709551615
    parameter `k` | at most 1048576 samples
two sources: explain --dataset german --data loans.csv
    cannot be used with
an unknown data set: explain --dataset germany
    data set `germany` | german | tyrex data list
a data set that is not here: explain --dataset heloc
    data set `heloc` | heloc.csv | tyrex data fetch heloc
a file that is not there: explain --data none.csv --schema loans.toml
    cannot read none.csv | help:
a folder for a file: schema infer folder.csv --label x
    cannot read folder.csv
no label named: schema infer loans.csv
    --label | `paid`
no threads: data list --threads 0
    --threads | 0
too many threads: data list --threads 2000
    --threads | 1024
a negative seed: train --out m.onnx LOANS --seed -1
    --seed | whole number from 0
a negative limit: explain --dataset german --limit -1
    --limit | whole number from 0
an empty layer: train --out m.onnx LOANS --hidden 8,0
    --hidden | 128,128
no epochs: train --out m.onnx LOANS --epochs 0
    epochs | at least 1 | train --help
a rate that is not a rate: train --out m.onnx LOANS --learning-rate -1
    learning-rate | positive
dropout of everything: train --out m.onnx LOANS --dropout 1
    dropout | [0, 1)
one class weight: train --out m.onnx LOANS --class-weights 2
    --class-weights | balanced
unknown activation: train --out m.onnx LOANS --activation rely
    rely | relu
";

fn about_arguments() -> Vec<Case> {
    let mut cases = listed(ARGUMENTS);
    cases.extend([
        case(
            "an unknown ending",
            "explain --data loans.xlsx --schema loans.toml",
            &["loans.xlsx", ".csv", ".parquet"],
        )
        .file("loans.xlsx", "PK"),
        case(
            "a parameter of a file that is out of range",
            "train --out m.onnx LOANS --params p.toml",
            &["p.toml", "`dropout` is 2", "[0, 1)"],
        )
        .file("p.toml", "dropout = 2.0\n"),
        case(
            "nothing to infer from",
            "schema infer const.csv --label b",
            &["const.csv", "correct the file, or name another column"],
        )
        .file("const.csv", "a,b\n1,x\n1,y\n1,x\n1,y\n"),
        case(
            "a misspelt parameter in a file",
            "train --out m.onnx LOANS --params p.toml",
            &["p.toml", "epoch", "epochs"],
        )
        .file("p.toml", "epoch = 3\n"),
    ]);
    cases
}

fn about_models() -> Vec<Case> {
    vec![
        case(
            "a model of another size",
            "explain --model five.onnx LOANS",
            &["inputs of the model", "`income`", "expected 6, got 5", "tyrex model show"],
        )
        .file("loans.toml", format!("{LOANS_SCHEMA}\n[scaling]\nmethod = \"none\"\n")),
        case(
            "a model whose scaling nobody knows",
            "explain --model five.onnx LOANS",
            &["`income`", "scaling must be fitted on the rows the model was trained on"],
        ),
        case(
            "a model that is not there",
            "explain --model none.onnx LOANS",
            &["cannot read none.onnx"],
        ),
        case("a model that is none", "explain --model loans.csv LOANS", &["loans.csv"]),
        case("an empty model", "explain --model empty.onnx LOANS", &["empty.onnx", "empty"])
            .file("empty.onnx", ""),
        case(
            "a model without a schema",
            "explain --model five.onnx --data loans.csv",
            &["there is no schema for the columns of loans.csv", "--schema"],
        ),
    ]
}

const CHANGE: &str = r#"
more models than a machine can hold: retrain --out e LOANS --models 99999999999999999
    parameter `models` | expected at most 10000
an unknown change: retrain --out e LOANS --change reset
    reset | leave-out
no models: retrain --out e LOANS --models 0
    models | at least 1 | help:
a share of everything: retrain --out e LOANS --change leave-out --change-params fraction=1
    fraction | between 0 and 1
a share of nothing in particular: retrain --out e LOANS --change-params fraction=0.1
    change-params | those of reinitialise: none | no parameters
a parameter of another change: retrain --out e LOANS --change weight-noise --change-params epochs=1
    change-params | those of weight-noise: pairs such as delta = 0.01 | epochs
parameters that are not pairs: retrain --out e LOANS --change weight-noise --change-params 0.1
    change-params | is 0.1 | pairs such as delta = 0.01
parameters of several changes: retrain --out e LOANS --change bootstrap,dropout --change-params rate=0.2
    none with several changes | `mixture` | changes = [{ name = "bootstrap" }
a mixture of mixtures: retrain --out e LOANS --change bootstrap,mixture
    changes that are not mixtures | in one mixture
an unknown change among others: retrain --out e LOANS --change bootstrap,reset
    reset | leave-out
a change that is aimed: retrain --out e LOANS --change targeted
    aimed at one point and not random | docs/model-change.md
more new rows than there are: retrain --out e LOANS --change fine-tune --change-params fraction=1
    parameter `fresh` is 10 rows, expected at least 30, with labels
an ensemble in place of a file: retrain --dataset german --out loans.csv
    cannot write loans.csv/ensemble.json
an ensemble in a folder that is not there: retrain --dataset german --out no/e
    cannot write no/e | mkdir
no neighbours: stability --dataset german --k 0
    `k` is 0 | at least 1
neighbours at no distance: stability --dataset german --sigma 0
    sigma
a promise of everything: calibrate LOANS --target 1
    target | between 0
a confidence of more than that: calibrate LOANS --confidence 2
    confidence | between 0
a threshold that is none: calibrate LOANS --tau 0.5,1.5 --models 2
    tau | 1.5 | between 0 and 1
a threshold twice: calibrate LOANS --tau 0.5,0.5 --models 2 --k 50
    tau | once
a method without a threshold: calibrate LOANS --method nn
    nn | trex-nn
an ensemble that is not there: calibrate LOANS --ensemble none
    cannot read none/ensemble.json
an ensemble and models to train: calibrate LOANS --ensemble e --models 3
    cannot be used with
"#;

fn about_change() -> Vec<Case> {
    let rows = "row,status,income,age,housing,owner\n0,not_found,,,,\n1,found,50,30,own,yes\n";
    let plain = format!("{LOANS_SCHEMA}\n[scaling]\nmethod = \"none\"\n");
    let mut cases = listed(CHANGE);
    cases.extend([
        case(
            "rows that have no label to train on",
            "retrain --data new.csv --schema loans.toml --model six.onnx --out e",
            &["new.csv", "no row to train on", "column `paid`"],
        )
        .file("new.csv", "income,age,housing,owner\n50,30,own,yes\n")
        .file("loans.toml", plain.clone()),
        case(
            "counterfactuals without a meaning",
            "certify --counterfactuals cf.csv --model five.onnx",
            &["there is no schema for the columns of cf.csv", "--schema"],
        )
        .file("cf.csv", rows),
        case(
            "counterfactuals that are none",
            "certify --counterfactuals cf.csv --model five.onnx --schema loans.toml",
            &["cf.csv", "no line has a counterfactual", "`found`"],
        )
        .file("cf.csv", "status,income,age,housing,owner\nnot_found,,,,\n"),
        case(
            "a counterfactual of no row",
            "certify --counterfactuals cf.csv --model five.onnx --schema loans.toml",
            &["cf.csv, row 0, column `row`", "found `x`"],
        )
        .file("cf.csv", "row,income,age,housing,owner\nx,50,30,own,yes\n"),
        case(
            "a counterfactual that is not a row of the schema",
            "certify --counterfactuals cf.csv --model five.onnx --schema loans.toml",
            &["cf.csv, row 1, column `income`", "found `much`"],
        )
        .file("cf.csv", rows.replace("50", "much")),
        case(
            "certificates in place of the counterfactuals",
            "certify --counterfactuals cf.csv --model five.onnx --schema loans.toml --out cf.csv --force",
            &["--out cf.csv is the input cf.csv"],
        )
        .file("cf.csv", rows),
        case(
            "steered by nothing",
            "certify --counterfactuals cf.csv --model five.onnx --schema loans.toml --steered",
            &["--ensemble"],
        )
        .file("cf.csv", rows),
    ]);
    cases
}

fn about_output() -> Vec<Case> {
    let mut cases = vec![
        case(
            "the rows would overwrite",
            "explain LOANS --out old.csv",
            &["old.csv exists", "--force"],
        )
        .file("old.csv", "old"),
        case(
            "the model would overwrite",
            "train LOANS --out five.onnx",
            &["five.onnx exists", "--force"],
        ),
        case(
            "a model under another ending",
            "train LOANS --out m.csv",
            &["m.csv", "ends in .onnx"],
        ),
        case(
            "rows in place of the data",
            "explain LOANS --out ./loans.csv --force",
            &["--out ./loans.csv is the input loans.csv", "not even with --force"],
        ),
        case(
            "a model in place of the data",
            "train LOANS --out loans.csv --force",
            &["--out loans.csv is the input loans.csv"],
        ),
        case(
            "a model in place of the schema",
            "train LOANS --out loans.toml --force",
            &["--out loans.toml is the input loans.toml"],
        ),
        case(
            "a model in place of its parameters",
            "train LOANS --out p.toml --force --params p.toml",
            &["--out p.toml is the input p.toml"],
        )
        .file("p.toml", "epochs = 3\n"),
        case(
            "a schema in place of the data",
            "schema infer loans.csv --label paid --out loans.csv --force",
            &["--out loans.csv is the input loans.csv"],
        ),
        case(
            "the schema would overwrite",
            "schema infer loans.csv --label paid --out loans.toml",
            &["loans.toml exists", "--force"],
        ),
        case("no such folder", "explain LOANS --out no/r.csv", &["cannot write no/r.csv", "mkdir"]),
        case(
            "a file for a folder",
            "train LOANS --out loans.csv/m.onnx",
            &["cannot write loans.csv/m.onnx"],
        ),
        case("a folder for a file", "train LOANS --out folder.onnx", &["cannot write folder.onnx"]),
        case(
            "a feature with the name of an output column",
            "explain LOANS --out r.csv",
            &["`row`", "rename"],
        )
        .file("loans.csv", loans().replace("income", "row"))
        .file("loans.toml", LOANS_SCHEMA.replace("income", "row")),
        case("an unknown ending", "explain LOANS --out r.xlsx", &["r.xlsx", ".csv", ".parquet"]),
    ];
    if cfg!(target_os = "linux") {
        let full = "No space left";
        cases.extend([
            case(
                "a full disk for the schema",
                "schema infer loans.csv --label paid --out /dev/full",
                &["/dev/full", full, "help:"],
            ),
            case("a full disk for the model", "train LOANS --out full.onnx", &["full.onnx", full]),
            case("a full disk for the rows", "explain LOANS --out full.csv", &["full.csv", full]),
            case(
                "an unwritable folder",
                "explain LOANS --out /proc/r.csv",
                &["cannot write /proc/r.csv"],
            ),
            case(
                "rows in place of the data, through a link",
                "explain LOANS --out link.csv --force",
                &["--out link.csv is the input loans.csv"],
            ),
        ]);
    }
    cases
}

#[test]
fn every_refusal_says_where_what_and_what_was_expected() {
    let groups = [
        about_rows(),
        about_schemas(),
        about_arguments(),
        about_models(),
        about_change(),
        about_output(),
    ];
    for case in groups.into_iter().flatten() {
        let place = Place::with_loans();
        for (name, content) in &case.files {
            place.write(name, content);
        }
        std::fs::create_dir(place.path("folder.csv")).unwrap();
        std::fs::create_dir(place.path("folder.onnx")).unwrap();
        std::fs::write(place.path("five.onnx"), linear(5)).unwrap();
        std::fs::write(place.path("six.onnx"), linear(6)).unwrap();
        #[cfg(unix)]
        for (file, link) in
            [("/dev/full", "full.csv"), ("/dev/full", "full.onnx"), ("loans.csv", "link.csv")]
        {
            std::os::unix::fs::symlink(file, place.path(link)).unwrap();
        }
        let before = contents(&place);

        let answer = place.run(case.command);
        let (name, stderr) = (case.name, &answer.stderr);
        assert_eq!(answer.code, 2, "{name}: {stderr}");
        assert_eq!(answer.stdout, "", "{name}");
        assert!(stderr.starts_with("error: "), "{name}: {stderr}");
        assert!(!stderr.contains("panicked"), "{name}: {stderr}");
        assert!(!stderr.contains(".part"), "{name}: the name of a temporary file: {stderr}");
        for piece in &case.says {
            assert!(stderr.contains(piece), "{name}: `{piece}` is not in\n{stderr}");
        }
        assert_eq!(contents(&place), before, "{name}: nothing is lost, nothing is left behind");
    }
}

/// Every plain file and its bytes.
fn contents(place: &Place) -> Vec<(String, Vec<u8>)> {
    let plain =
        |name: &String| std::fs::symlink_metadata(place.path(name)).unwrap().file_type().is_file();
    let names = place.files().into_iter().filter(plain);
    names
        .map(|name| {
            let bytes = std::fs::read(place.path(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

/// A model of so many columns that says nothing about them.
fn linear(columns: usize) -> Vec<u8> {
    let weights = vec![1.0; columns];
    let mlp = Mlp::linear(weights, 0.0).unwrap();
    write(&mlp, &ExportMetadata::default())
}

#[test]
fn force_overwrites() {
    let place = Place::with_loans();
    place.write("m.onnx", "old");
    assert_eq!(place.run("train --out m.onnx --epochs 1 LOANS").code, 2);
    assert_eq!(place.read("m.onnx"), "old");
    place.done("train --out m.onnx --epochs 1 LOANS --force");
    assert!(std::fs::read(place.path("m.onnx")).unwrap().len() > 1000);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_standard_output_is_an_error() {
    let place = Place::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = place.command("data list").stdout(full).output().unwrap();
    let answer = crate::Answer::of(output);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("standard output"), "{}", answer.stderr);
}
