//! Applicants come apart from the reference, and are read and answered in batches.

use crate::{Place, one_model_methods};

/// Loans with a trained model, and the same rows as applicants without labels, many times over.
fn place(copies: usize) -> Place {
    let place = Place::with_loans();
    place.done("train LOANS --out m.onnx");
    let loans = place.read("loans.csv");
    let mut lines = loans.lines().map(|line| line.rsplit_once(',').unwrap().0);
    let header = lines.next().unwrap();
    let rows: Vec<&str> = lines.collect();
    let mut text = format!("{header}\n");
    for _ in 0..copies {
        rows.iter().for_each(|row| text.push_str(&format!("{row}\n")));
    }
    place.write("applicants.csv", &text);
    place
}

/// The lines of a file of advice, without the row's number and the seconds.
fn answers(file: &str) -> Vec<Vec<String>> {
    let mut lines = file.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let seconds = header.iter().position(|name| *name == "seconds").unwrap();
    let cells = |line: &str| {
        let kept = line.split(',').enumerate().filter(|(at, _)| *at != 0 && *at != seconds);
        kept.map(|(_, cell)| cell.to_owned()).collect()
    };
    lines.map(cells).collect()
}

#[test]
fn an_answer_does_not_depend_on_the_other_applicants() {
    let place = place(1);
    let all = place.read("applicants.csv");
    let header = all.lines().next().unwrap();
    for method in one_model_methods() {
        let explain = |data: &str, out: &str| {
            let own = format!("--method {method} --data {data} --out {out} --models 0");
            place.run(&format!("explain --model m.onnx --reference loans.csv --force {own}"));
            place.read(out)
        };
        let together = explain("applicants.csv", "all.csv");
        let rows: Vec<usize> = together
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap().parse().unwrap())
            .collect();
        assert!(rows.len() > 3, "{method}: {} rejected", rows.len());
        // In another order, and alone.
        let applicant = |row: usize| all.lines().nth(row + 1).unwrap();
        let backwards: Vec<&str> = rows.iter().rev().map(|&row| applicant(row)).collect();
        place.write("backwards.csv", &format!("{header}\n{}\n", backwards.join("\n")));
        let mut turned = answers(&explain("backwards.csv", "turned.csv"));
        turned.reverse();
        assert_eq!(turned, answers(&together), "{method}");
        for (place_in_all, &row) in rows.iter().enumerate().take(2) {
            place.write("one.csv", &format!("{header}\n{}\n", applicant(row)));
            let alone = answers(&explain("one.csv", "alone.csv"));
            assert_eq!(alone, [answers(&together)[place_in_all].clone()], "{method}, row {row}");
        }
    }
}

#[test]
fn applicants_are_no_reference() {
    let place = place(1);
    let fixed = "explain --data applicants.csv --model m.onnx --models 0";
    for method in ["nn", "trex-nn"] {
        place.refused(&format!("{fixed} --method {method}"), &["reference"]);
    }
    // The schema's split draws no reference from rows without labels.
    let split = format!("{fixed} --schema loans.toml");
    assert_eq!(place.json(&split)["reference"], 0);
    let without = place.json(&fixed);
    assert_eq!(without["reference"], 0);
    let text = place.done(&fixed);
    assert!(text.contains("reference  none"), "{text}");
    let with = place.json(&format!("{fixed} --reference loans.csv"));
    assert!(with["reference"].as_u64().unwrap() > 10);
}

/// More rows than a batch has, in every format: the order is kept, and the rows are those of the
/// file.
#[test]
fn batches_follow_each_other() {
    let copies = 60;
    let place = place(copies);
    let fixed = "explain --data applicants.csv --model m.onnx --method min-cost";
    let rows = place.read("applicants.csv").lines().count() - 1;
    assert!(rows > 2048, "{rows}");
    let document = place.json(&format!("{fixed} --models 0 --out a.csv"));
    assert_eq!(document["data"]["rows"], rows);
    let file = place.read("a.csv");
    let numbers: Vec<usize> =
        file.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(numbers.len(), document["rejected_rows"].as_u64().unwrap() as usize);
    // Every copy of the rows has the same answers.
    let all = answers(&file);
    let each = all.len() / copies;
    assert!(all.chunks(each).all(|copy| copy == &all[..each]));
    // A bad cell in a later batch is named by its row in the file, and nothing is left behind.
    let bad = format!("{}oops,1,own,yes\n", place.read("applicants.csv"));
    place.write("bad.csv", &bad);
    let before = place.files();
    place.refused("explain --data bad.csv --model m.onnx --out b.csv", &[&format!("row {rows}")]);
    assert_eq!(place.files(), before);
}
