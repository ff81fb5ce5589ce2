//! `tyrex explain`

use tyrex::model::Mlp;
use tyrex::model::onnx::{ExportMetadata, write};

use crate::{LOANS_SCHEMA, Place, assert_golden, one_model_methods, without_times};

#[test]
fn german_is_explained_as_the_golden_file_says() {
    let text = Place::new().done("explain --dataset german --seed 0");
    assert_golden("explain_german.txt", &without_times(&text));
}

#[test]
fn the_readme_shows_an_applicant_of_the_golden_file() {
    let file = |name: &str| {
        std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let (readme, golden) = (file("../../README.md"), file("tests/cli/golden/explain_german.txt"));
    assert!(readme.contains("explain --dataset german "));
    let blocks = readme.split("```text\n").skip(1);
    let shown: Vec<&str> = blocks.filter_map(|block| Some(block.split_once("```")?.0)).collect();
    assert!(!shown.is_empty());
    for block in shown {
        assert!(block.starts_with("Row ") && golden.contains(block), "{block}");
    }
}

#[test]
fn json_and_file_hold_the_same_advice() {
    let place = Place::with_loans();
    let explain = "explain --method trex-o";
    let document = place.json(&format!("{explain} LOANS --out advice.csv --limit 100"));
    assert_eq!(document["command"], "explain");
    let count = document["asked"].as_u64().unwrap() as usize;
    assert!(count > 0 && document["found"].as_u64().unwrap() > 0);
    let file = place.read("advice.csv");
    let lines: Vec<&str> = file.lines().collect();
    assert!(lines[0].starts_with(
        "row,status,reason,income,age,housing,owner,score,stability,usual,cost_l1,cost_l2,changed,\
         seconds,"
    ));
    assert!(lines[0].ends_with(",model,seed,format_version"));
    assert_eq!(lines.len(), count + 1);
    for (line, applicant) in lines[1..].iter().zip(document["rows"].as_array().unwrap()) {
        let cells: Vec<&str> = line.split(',').collect();
        let advice = &applicant["advice"];
        assert_eq!(applicant["row"].to_string(), cells[0]);
        assert_eq!(advice["status"], cells[1]);
        assert!(applicant["score"].as_f64().unwrap() < 0.5);
        if advice["status"] == "found" {
            assert_eq!(advice["score"].to_string(), cells[7]);
            assert!(advice["score"].as_f64().unwrap() >= 0.5);
            assert!(advice["stability"].as_f64().unwrap() >= 0.8);
            assert_eq!(advice["promise"]["models"], 20);
            assert!(advice["promise"]["asked"].is_null());
            assert_eq!(advice["changes"].as_array().unwrap().len().to_string(), cells[12]);
            // Too few favourable training rows to compare with.
            assert!(advice["usual"].is_null() && cells[9].is_empty());
            let family = &advice["certificate"]["retraining"]["family"];
            assert_eq!(family, "trained again from new weights");
        } else {
            assert_eq!(advice["reason"], cells[2]);
        }
    }
}

#[test]
fn without_a_limit_the_file_has_everyone_and_the_screen_the_first_five() {
    let place = Place::new();
    let document = place.json("explain --dataset german --method nn --models 0 --out a.csv");
    let rejected = document["rejected_rows"].as_u64().unwrap() as usize;
    assert!(rejected > 5);
    assert_eq!(place.read("a.csv").lines().count(), rejected + 1);
    assert_eq!(document["rows"].as_array().unwrap().len(), 5);
}

/// A network of the loans, and many that differ in their seed.
fn with_retrained(models: &str) -> Place {
    let place = Place::with_loans();
    let retrain = "retrain --early-stopping none";
    place.done(&format!("{retrain} --epochs 300 --hidden 16 --models {models} --out fresh LOANS"));
    place
}

const RETRAINED: &str = "explain --model fresh/base.onnx --ensemble fresh";

#[test]
fn a_search_over_models_takes_them_from_a_folder() {
    let place = with_retrained("30");
    let document = place.json(&format!("{RETRAINED} LOANS --method trex-e --limit 3"));
    assert_eq!(document["request"]["method"]["method"], "trex-e");
    assert_eq!(document["asked"], 3);
    assert!(document["found"].as_u64().unwrap() > 0, "{document}");
    for applicant in document["rows"].as_array().unwrap() {
        if applicant["advice"]["status"] == "found" {
            // A third of the models is fresh: 20 of 30 have chosen the advice.
            let certificate = &applicant["advice"]["certificate"];
            assert_eq!(certificate["retraining"]["models"].as_array().unwrap().len(), 10);
        }
    }
}

#[test]
fn a_promise_is_certified_by_models_that_did_not_choose_the_advice() {
    let place = with_retrained("30");
    let explain =
        |promise: &'static str| format!("{RETRAINED} LOANS --limit 4 --promise {promise}");
    let document = place.json(&format!("{} --confidence 0.9", explain("0.5")));
    let method = &document["request"]["method"];
    assert_eq!((&method["method"], &method["tail"]), (&"trex-e".into(), &0.5.into()));
    let mut kept = 0;
    for applicant in document["rows"].as_array().unwrap() {
        let Some(certificate) = applicant["advice"].get("certificate") else { continue };
        let tiers = certificate["tiers"].as_array().unwrap();
        let tier = tiers.iter().find(|tier| tier["tier"] == "ensemble").unwrap();
        // 9 models certify 0.5 at 0.9 with 2 that reject.
        assert_eq!((&tier["models"], &tier["confidence"]), (&9.into(), &0.9.into()), "{tier}");
        kept += usize::from(tier["probability"].as_f64().unwrap() >= 0.5);
    }
    assert!(kept > 0, "{document}");
    // All promises at once, by group and by amount.
    let by = "--confidence 0.9 --by housing --by age:30 --amount income";
    let grouped = place.json(&format!("{} {by}", explain("0.5")));
    let statements = grouped["portfolio"]["statements"].as_array().unwrap();
    assert_eq!(statements[0], document["portfolio"]["statements"][0]);
    let whole = &statements[0];
    assert_eq!((&whole["promises"], &whole["rank"]), (&document["found"], &1.into()));
    assert_eq!(
        (&whole["probability"], whole["shares"].as_array().unwrap().len()),
        (&0.9.into(), 9)
    );
    let promises = |column: &str| -> u64 {
        let own = statements
            .iter()
            .filter(|each| each["group"]["column"] == column && each.get("amount").is_none());
        own.map(|each| each["promises"].as_u64().unwrap()).sum()
    };
    assert_eq!(
        (promises("housing"), promises("age")),
        (whole["promises"].as_u64().unwrap(), promises("housing"))
    );
    assert_eq!(
        (&statements[1]["amount"], &statements[1]["promises"]),
        (&"income".into(), &whole["promises"])
    );
    // The file has everyone, and so has the portfolio; the screen has the first five.
    let everyone = "--data loans.csv --reference loans.csv --out all.csv";
    let promise = "--promise 0.5 --confidence 0.9";
    let all = place.json(&format!("{RETRAINED} {everyone} {promise}"));
    assert_eq!(all["portfolio"]["statements"][0]["promises"], all["found"]);
    assert!(all["found"].as_u64() > Some(5), "{}", all["found"]);
    assert_eq!(all["rows"].as_array().unwrap().len(), 5);
    let text = place.done(&format!("{} {by}", explain("0.5")));
    assert_golden("explain_portfolio.txt", &without_times(&text));
    // Fewer models than the promise needs.
    place.refused(&explain("0.9"), &["30 models", "at least 71", "61 fresh ones"]);
}

#[test]
fn margin_takes_its_score() {
    let place = Place::with_loans();
    let document = place.json("explain LOANS --method margin --models 0 --score 0.9 --limit 3");
    assert_eq!(document["request"]["method"]["score"], 0.9);
    for applicant in document["rows"].as_array().unwrap() {
        if applicant["advice"]["status"] == "found" {
            assert!(applicant["advice"]["score"].as_f64().unwrap() >= 0.9, "{applicant}");
        }
    }
}

#[test]
fn every_method_of_the_catalogue_can_be_named() {
    let place = Place::with_loans();
    for method in one_model_methods() {
        let document = place.json(&format!("explain LOANS --method {method} --limit 2 --models 0"));
        assert_eq!(document["request"]["method"]["method"], method);
        assert_eq!(document["asked"], 2);
    }
}

/// Parameters that were not typed are the protocol's own.
#[test]
fn protocols_keep_their_parameters() {
    let place = Place::new();
    let explain = |flags: &str| {
        let fixed = "explain --dataset german --method trex-nn --limit 1";
        let answer = place.run(&format!("{fixed} {flags} --models 0 --json"));
        assert!(answer.code < 2, "{}", answer.stderr);
        let document = answer.json();
        let test = &document["request"]["method"]["robustness"];
        ["tau", "sigma", "samples"].map(|name| test[name].as_f64().unwrap())
    };
    assert_eq!(explain(""), [0.8, 0.1, 1000.0]);
    assert_eq!(explain("--protocol reference"), [0.75, 0.05, 1000.0]);
    assert_eq!(explain("--protocol reference --sigma 0.2"), [0.75, 0.2, 1000.0]);
}

/// No feature of the applicant may change.
#[test]
fn no_advice_for_anyone_is_the_answer_no() {
    let place = Place::with_loans();
    let answer = place.run("explain LOANS --keep income,housing,owner,age --limit 1 --models 0");
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stdout.contains("advice for 0 applicants"), "{}", answer.stdout);
    assert!(answer.stdout.contains("  advice  No advice: "), "{}", answer.stdout);
    assert!(answer.stdout.contains("  rules "), "{}", answer.stdout);
}

#[test]
fn a_threshold_is_calibrated_on_request() {
    let place = Place::with_loans();
    let explain = "explain --early-stopping none";
    let answer = place.run(&format!("{explain} LOANS --tau auto --limit 2 --models 0 --json"));
    // There is an answer whether a threshold was shown to keep the goal or not.
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let document = answer.json();
    let tau = document["request"]["method"]["start"]["robustness"]["tau"].as_f64().unwrap();
    let calibration = &document["calibration"];
    let used = match calibration["verdict"].as_str().unwrap() {
        "chosen" => &calibration["tau"],
        _ => &calibration["best"]["tau"],
    };
    assert_eq!(used.as_f64(), Some(tau), "{calibration}");
    assert_eq!(document["found"], 2, "{document}");
}

#[test]
fn limit_counts_for_screen_and_file() {
    let place = Place::with_loans();
    let document = place.json("explain --method trex-o LOANS --out r.jsonl --limit 2");
    assert_eq!(document["rows"].as_array().unwrap().len(), 2);
    assert_eq!(place.read("r.jsonl").lines().count(), 2);
}

#[test]
fn every_format_can_be_written_and_read_back() {
    let place = Place::with_loans();
    for file in ["r.csv", "r.jsonl", "r.ndjson", "r.parquet"] {
        place.done(&format!("explain --method trex-o LOANS --out {file}"));
        // The file can be read as a table.
        let inferred = place.done(&format!("schema infer {file} --label owner"));
        assert!(inferred.contains("name = \"income\""), "{file}: {inferred}");
    }
}

#[test]
fn a_model_that_tyrex_wrote_needs_no_schema_and_no_labels() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let trained = place.json("explain --method trex-o LOANS");
    let unlabelled: String = place
        .read("loans.csv")
        .lines()
        .map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n")
        .collect();
    place.write("applicants.csv", &unlabelled);
    let new = place.json("explain --data applicants.csv --model m.onnx");
    assert_eq!(new["model"]["fingerprint"], trained["model"]["fingerprint"]);
    assert_eq!(new["part"], "all");
    assert!(new["rows"][0]["label"].is_null());
    // Those rejected before are rejected now, with the same scores.
    let all = place.json("explain --data applicants.csv --model m.onnx --limit 40");
    for applicant in trained["rows"].as_array().unwrap() {
        let again = all["rows"].as_array().unwrap().iter().find(|a| a["row"] == applicant["row"]);
        assert_eq!(again.unwrap()["score"], applicant["score"]);
    }
}

#[test]
fn nobody_rejected_is_an_answer_too() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    place.write("rich.csv", "income,age,housing,owner\n88.5,40,own,yes\n");
    let text = place.done("explain --data rich.csv --model m.onnx");
    assert!(text.contains("0 of 1 rows score below 0.5"), "{text}");
}

#[test]
fn units_and_levels_are_the_words_of_the_data() {
    let place = Place::with_loans();
    let text = place.done("explain --method trex-o LOANS --limit 1");
    assert!(text.contains("income from ") && text.contains(" k€"), "{text}");
}

#[test]
fn rejected_people_can_be_explained_whatever_their_label_says() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    place.write("one.csv", "income,age,housing,owner,paid\n10.5,20,rent,no,no\n");
    let one = place.json("explain --data one.csv --model m.onnx");
    assert_eq!(one["rows"][0]["label"], "no");
    let mixed = "income,age,housing,owner,paid\n10.5,20,rent,no,\n10.5,21,rent,no,no\n";
    place.write("mixed.csv", &format!("{mixed}11,22,own,no,pending\n"));
    let arguments = "explain --data mixed.csv --model m.onnx";
    let mixed = place.json(&arguments);
    let labels: Vec<_> =
        (0..3).map(|row| mixed["rows"][row]["label"].as_str().unwrap_or("none")).collect();
    assert_eq!(labels, ["none", "no", "none"]);
    assert_eq!(mixed["performances"][0]["accuracy"], 1.0);
    let text = place.done(&arguments);
    assert!(text.contains("3 of 3 rows"), "{text}");
}

#[test]
fn the_favourable_class_of_a_model_file_is_named() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let arguments = "explain --data loans.csv --model m.onnx";
    let class = &place.json(&arguments)["favourable_class"];
    assert_eq!((class["number"].as_u64(), class["name"].is_null()), (Some(1), true));
    let text = place.done(&arguments);
    assert!(text.contains("class number 1 of the model"), "{text}");
    let trained = place.json("explain --method trex-o LOANS");
    assert!(trained["favourable_class"].is_null());
}

/// Its output is the probability of the favourable outcome; another class would invert every answer.
#[test]
fn no_class_inverts_a_model_that_tyrex_wrote() {
    let place = Place::with_loans();
    place.done("train --epochs 5 LOANS --out m.onnx");
    let arguments = "explain --data loans.csv --model m.onnx --models 0";
    let inverted = place.run(&format!("{arguments} --model-class-number 0"));
    assert_eq!(inverted.code, 2, "{}", inverted.stdout);
    let expected = "class number 0 would invert every answer. Expected no class";
    assert!(inverted.stderr.contains(expected), "{}", inverted.stderr);
    let own = place.json(&format!("{arguments} --model-class-number 1"));
    assert_eq!(own["rows"], place.json(&arguments)["rows"]);
}

/// The name of a file need not be text.
#[test]
#[cfg(target_os = "linux")]
fn a_file_whose_name_is_no_text_is_written_and_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::with_loans();
    let out = std::ffi::OsStr::from_bytes(b"o\xff.csv");
    let mut command = place.command("explain --json --method trex-o LOANS");
    let answer = crate::Answer::of(command.arg("--out").arg(out).output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(answer.stdout.contains("o\u{fffd}.csv"), "{}", answer.stdout);
    assert!(place.folder.path().join(out).exists());
}

/// The file is written under another name until it is complete; an interrupt removes it.
#[test]
#[cfg(unix)]
fn an_interrupt_leaves_no_half_file() {
    let place = Place::with_loans();
    place.done("train --out m.onnx --epochs 20 --early-stopping none LOANS");
    let mut many = String::from("income,age,housing,owner\n");
    (0..5000).for_each(|row| many += &format!("{},{},rent,no\n", 5 + row % 9, 20 + row % 50));
    place.write("many.csv", &many);
    let before = place.files();
    for format in ["a.csv", "a.jsonl", "a.parquet"] {
        let arguments = format!("explain --data many.csv --model m.onnx --k 20000 --out {format}");
        let child = place
            .command(&arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The search begins once the file is open, and takes minutes.
        let started = std::time::Instant::now();
        while place.files() == before {
            assert!(started.elapsed().as_secs() < 30, "{format}: no output file was opened");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        crate::interrupt(&child);
        let answer = crate::Answer::of(child.wait_with_output().unwrap());
        assert_eq!(answer.code, 130, "{format}: {}", answer.stderr);
        assert_eq!(answer.stdout, "", "{format}");
        assert_eq!(place.files(), before, "{format}");
    }
}

#[test]
fn advice_is_as_usual_as_asked_and_says_so() {
    let place = Place::new();
    let explain = ["explain", "--dataset", "german", "--method", "min-cost", "--limit", "4"];
    let asked = ["--plausible", "0.2", "--models", "0", "--out", "usual.csv"];
    let document = place.json(&[&explain[..], &asked].concat());
    assert_eq!(document["request"]["plausible"], 0.2);
    let rows = document["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && document["found"].as_u64().unwrap() > 0);
    for row in rows.iter().filter(|row| row["advice"]["status"] == "found") {
        assert!(row["advice"]["usual"].as_f64().unwrap() >= 0.2, "{row}");
        let sentence = row["plausibility"].as_str().unwrap();
        assert!(sentence.starts_with("More usual than "), "{sentence}");
    }
    let header = place.read("usual.csv").lines().next().unwrap().to_owned();
    assert!(header.contains(",stability,usual,cost_l1,"), "{header}");
}

/// A model of another tool beside a schema that calls its other class favourable. The rows to explain
/// have labels, and there is no reference.
#[test]
fn a_model_that_ranks_the_applicants_the_wrong_way_round_is_refused() {
    let place = Place::with_loans();
    let schema = LOANS_SCHEMA
        .replace("[split]\nfraction = 0.75\nseed = 1\n", "[scaling]\nmethod = \"none\"\n");
    assert!(!schema.contains("[split]"));
    place.write("loans.toml", &schema);
    // It accepts low incomes.
    let network = Mlp::linear(vec![-0.1, 0.0, 0.0, 0.0, 0.0, 0.0], 4.5).unwrap();
    let bytes = write(&network, &ExportMetadata::default());
    std::fs::write(place.path("m.onnx"), bytes).unwrap();
    let explain = "explain --data loans.csv --model m.onnx --schema loans.toml --method min-cost";
    for out in ["", "--out cf.csv", "--ledger advice.db"] {
        let answer = place.refused(
            &format!("{explain} {out}"),
            &["ranks the 40 labelled rows the wrong way round", "`favourable_class`"],
        );
        assert_eq!(answer.stdout, "");
        assert!(!place.files().contains(&"cf.csv".to_owned()), "{:?}", place.files());
    }
    assert_eq!(place.json("ledger verify --ledger advice.db")["entries"], 0);
    let accept = format!("{schema}\n[model]\naccept_reversed = true\n");
    place.write("loans.toml", &accept);
    let answer = place.run(explain);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the wrong way round"), "{text}");
}
