//! `tyrex stability`

use crate::{Place, assert_golden, without_times};

#[test]
fn german_is_as_stable_as_the_golden_file_says() {
    let text = Place::new().done("stability --dataset german");
    assert_golden("stability_german.txt", &without_times(&text));
}

#[test]
fn every_row_has_its_measures() {
    let place = Place::with_loans();
    place.done("train --out m.onnx --early-stopping none --epochs 50 LOANS");
    let document = place.json("stability --data loans.csv --model m.onnx --out s.csv --limit 40");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 40);
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap();
        // R^ is at most the score and the mean; R is the mean less what gamma costs.
        assert!(number("relaxed_stability") <= number("score") + 1e-6, "{row}");
        assert!(number("relaxed_stability") <= number("mean") + 1e-6, "{row}");
        assert!(number("stability") <= number("relaxed_stability") + 1e-6, "{row}");
        assert!(number("gamma") >= 0.0 && number("mean") <= 1.0, "{row}");
    }
    // Far from the boundary the model is more stable than next to it.
    let of = |row: usize| rows[row]["relaxed_stability"].as_f64().unwrap();
    assert!(of(39) > 0.9 && of(18) < of(39) - 0.1, "{} {}", of(39), of(18));
    let file = place.read("s.csv");
    let lines: Vec<&str> = file.lines().collect();
    assert_eq!(
        lines[0],
        "row,score,mean,relaxed_stability,stability,gamma,samples,sigma,model,seed,format_version"
    );
    assert_eq!(lines.len(), 41);
    assert_eq!(lines[1].split(',').nth(1).unwrap(), rows[0]["score"].to_string());
    assert_eq!(lines[1].split(',').nth(8).unwrap(), document["model"]["fingerprint"]);
}

#[test]
fn people_see_a_table_and_what_gamma_is() {
    let place = Place::with_loans();
    let text = place.done("stability --limit 3 LOANS");
    for piece in ["R^", "gamma", "10 test rows, 1000 neighbours at sigma 0.1; the first 3"] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    assert!(text.contains("an estimate, so R is not a bound"), "{text}");
}

#[test]
fn every_flag_reaches_the_measures() {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let stability = |flags: &str| {
        place.json(&format!("stability --data loans.csv --model m.onnx {flags}"))["rows"].clone()
    };
    let plain = stability("");
    assert_eq!(stability("--threads 1"), plain);
    let flags = ["--k 50", "--sigma 0.2", "--seed 1", "--gamma gradients", "--gamma sound"];
    for flag in flags {
        assert_ne!(stability(flag), plain, "{flag:?}");
    }
}
