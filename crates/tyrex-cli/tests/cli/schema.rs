//! `tyrex schema`

use std::fmt::Write as _;

use crate::{LOANS, Place};

#[test]
fn an_inferred_schema_trains_without_a_change() {
    let place = Place::with_loans();
    place.done(&[
        "schema",
        "infer",
        "loans.csv",
        "--label",
        "paid",
        "--favourable",
        "yes",
        "--out",
        "s.toml",
    ]);
    let text = place.done(&["schema", "check", "s.toml", "--data", "loans.csv"]);
    assert!(text.contains("40 rows, 4 features") && text.contains("22 favourable"), "{text}");
    let document =
        place.json(&["explain", "--data", "loans.csv", "--schema", "s.toml", "--method", "trex-o"]);
    assert_eq!(document["data"]["rows"], 40);
}

/// Public files repeat names; the schema that is drawn up reads the same file.
#[test]
fn a_file_with_a_repeated_header_is_drawn_up_and_trained_on() {
    let place = Place::new();
    let mut text = "income,debt,income,paid,paid\n".to_owned();
    for row in 0..120 {
        let (income, debt) = (row * 37 % 101, row * 13 % 53);
        let paid = ["no", "yes"][usize::from(income > debt)];
        writeln!(text, "{income},{debt},{income},{paid},{paid}").unwrap();
    }
    place.write("loans.csv", &text);
    let infer = ["schema", "infer", "loans.csv", "--label", "paid", "--out", "s.toml"];
    let shown = place.done(&infer);
    assert!(shown.contains("a further column is read as `income.2`"), "{shown}");
    assert!(place.read("s.toml").contains("ignore = [\"income.2\", \"paid.2\"]"));
    let train = ["train", "--data", "loans.csv", "--schema", "s.toml", "--out", "m.onnx"];
    place.done(&[&train[..], &["--epochs", "3"]].concat());
    let explain = ["explain", "--data", "loans.csv", "--schema", "s.toml", "--model", "m.onnx"];
    let document = place.json(&[&explain[..], &["--method", "trex-o"]].concat());
    let warning = document["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("Nobody has confirmed what people can change"), "{warning}");
    assert!(warning.contains("`income`, `debt` in any way"), "{warning}");
}

#[test]
fn without_a_file_the_schema_goes_to_standard_output_even_when_quiet() {
    let place = Place::with_loans();
    let infer = ["schema", "infer", "loans.csv", "--label", "paid"];
    let text = place.done(&infer);
    assert!(text.contains("[label]\ncolumn = \"paid\"\nfavourable = \"yes\""), "{text}");
    assert_eq!(place.done(&[&infer[..], &["--quiet"]].concat()), text);
    let document = place.json(&infer);
    assert_eq!(document["schema"]["label"]["column"], "paid");
    assert!(
        document["notes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|note| { note["text"].as_str().unwrap().contains("guessed") })
    );
}

#[test]
fn numbers_can_be_the_favourable_label() {
    let place = Place::new();
    place.write("n.csv", "x,y\n1.5,0\n2.5,1\n3.5,1\n");
    let text = place.done(&["schema", "infer", "n.csv", "--label", "y", "--favourable", "0"]);
    assert!(text.contains("favourable = 0"), "{text}");
}

#[test]
fn a_schema_is_checked_alone_and_against_rows_without_labels() {
    let place = Place::with_loans();
    let text = place.done(&["schema", "check", "loans.toml"]);
    assert!(text.contains("The schema is valid: 4 features"), "{text}");
    place.write("new.csv", "income,age,housing,owner\n20,30,own,no\n");
    let text = place.done(&["schema", "check", "loans.toml", "--data", "new.csv"]);
    assert!(text.contains("no column `paid`"), "{text}");
    let document = place.json(&["schema", "check", LOANS[3], "--data", LOANS[1]]);
    assert_eq!(document["favourable_rows"], 22);
    assert_eq!(document["data"]["test"], 10);
}
