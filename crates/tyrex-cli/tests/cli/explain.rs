//! `tyrex explain`

use crate::{LOANS, Place, assert_golden, without_times};

#[test]
fn german_is_explained_as_the_golden_file_says() {
    let text = Place::new().done(&["explain", "--dataset", "german", "--seed", "0"]);
    assert_golden("explain_german.txt", &without_times(&text));
}

#[test]
fn json_and_file_hold_the_same_applicants() {
    let place = Place::with_loans();
    let arguments = [&["explain"], &LOANS[..], &["--out", "rejected.csv"]].concat();
    let document = place.json(&arguments);
    assert_eq!(document["command"], "explain");
    let count = document["rejected_rows"].as_u64().unwrap() as usize;
    assert!(count > 0);
    let file = place.read("rejected.csv");
    let lines: Vec<&str> = file.lines().collect();
    assert_eq!(lines[0], "row,score,income,age,housing,owner,model,seed,format_version");
    assert_eq!(lines.len(), count + 1, "without --limit the file has all of them");
    let loans = place.read("loans.csv");
    for (line, applicant) in lines[1..].iter().zip(document["rejected"].as_array().unwrap()) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(applicant["row"].to_string(), cells[0]);
        assert_eq!(applicant["score"].to_string(), cells[1]);
        assert!(applicant["score"].as_f64().unwrap() < 0.5);
        assert_eq!(applicant["features"]["housing"], cells[4]);
        // The row is the row of the file.
        let original = loans.lines().nth(1 + cells[0].parse::<usize>().unwrap()).unwrap();
        assert!(original.starts_with(&cells[2..6].join(",")), "{original} {line}");
    }
    assert_eq!(document["model"]["fingerprint"], lines[1].split(',').nth(6).unwrap());
}

#[test]
fn limit_counts_for_screen_and_file() {
    let place = Place::with_loans();
    let arguments = [&["explain"], &LOANS[..], &["--out", "r.jsonl", "--limit", "2"]].concat();
    let document = place.json(&arguments);
    assert_eq!(document["rejected"].as_array().unwrap().len(), 2);
    assert_eq!(place.read("r.jsonl").lines().count(), 2);
}

#[test]
fn every_format_can_be_written_and_read_back() {
    let place = Place::with_loans();
    for file in ["r.csv", "r.jsonl", "r.ndjson", "r.parquet"] {
        place.done(&[&["explain"], &LOANS[..], &["--out", file]].concat());
        // What was written is a table again.
        let inferred = place.done(&["schema", "infer", file, "--label", "owner"]);
        assert!(inferred.contains("name = \"income\""), "{file}: {inferred}");
    }
}

#[test]
fn a_model_that_tyrex_wrote_needs_no_schema_and_no_labels() {
    let place = Place::with_loans();
    place.done(&[&["train"], &LOANS[..], &["--out", "m.onnx"]].concat());
    let trained = place.json(&[&["explain"], &LOANS[..]].concat());
    let unlabelled: String = place
        .read("loans.csv")
        .lines()
        .map(|line| line.rsplit_once(',').unwrap().0.to_owned() + "\n")
        .collect();
    place.write("applicants.csv", &unlabelled);
    let new = place.json(&["explain", "--data", "applicants.csv", "--model", "m.onnx"]);
    assert_eq!(new["model"]["fingerprint"], trained["model"]["fingerprint"]);
    assert_eq!(new["part"], "all");
    assert!(new["rejected"][0]["label"].is_null());
    // Those rejected before are rejected now, with the same scores.
    let all =
        place.json(&["explain", "--data", "applicants.csv", "--model", "m.onnx", "--limit", "40"]);
    for applicant in trained["rejected"].as_array().unwrap() {
        let again =
            all["rejected"].as_array().unwrap().iter().find(|a| a["row"] == applicant["row"]);
        assert_eq!(again.unwrap()["score"], applicant["score"]);
    }
}

#[test]
fn nobody_rejected_is_an_answer_too() {
    let place = Place::with_loans();
    place.done(&[&["train"], &LOANS[..], &["--out", "m.onnx"]].concat());
    place.write("rich.csv", "income,age,housing,owner\n88.5,40,own,yes\n");
    let text = place.done(&["explain", "--data", "rich.csv", "--model", "m.onnx"]);
    assert!(text.contains("0 of 1 rows score below 0.5"), "{text}");
}

#[test]
fn units_and_levels_are_the_words_of_the_data() {
    let place = Place::with_loans();
    let text = place.done(&[&["explain"], &LOANS[..], &["--limit", "1"]].concat());
    assert!(text.contains(" k€") && text.contains(" years"), "{text}");
    assert!(["rent", "own", "free"].iter().any(|level| text.contains(level)), "{text}");
}
