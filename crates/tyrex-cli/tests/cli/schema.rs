//! `tyrex schema`

use std::fmt::Write as _;

use crate::Place;

#[test]
fn an_inferred_schema_trains_without_a_change() {
    let place = Place::with_loans();
    place.done("schema infer loans.csv --label paid --favourable yes --out s.toml");
    let text = place.done("schema check s.toml --data loans.csv");
    assert!(text.contains("40 rows, 4 features") && text.contains("22 favourable"), "{text}");
    let document = place.json("explain --data loans.csv --schema s.toml --method trex-o");
    assert_eq!(document["data"]["rows"], 40);
}

/// The range of the data of a draft limits the advice, not the applicants: one applicant outside of
/// it does not end a run over many. A cell that no rule can read ends the run, with its place.
#[test]
fn applicants_beyond_the_data_of_a_draft_are_explained() {
    let place = Place::with_loans();
    place.done(&["schema", "infer", "loans.csv", "--label", "paid", "--out", "s.toml"]);
    let train = ["train", "--data", "loans.csv", "--schema", "s.toml", "--out", "m.onnx"];
    place.done(&[&train[..], &["--epochs", "200", "--early-stopping", "none"]].concat());
    // Incomes are from 10.5 to 88.5, ages from 20 to 60.
    let beyond = ["2.25,71,own,no", "-40,19,rent,yes", "1,95,free,no"];
    let usual = |row: usize| format!("{},{},own,no", 80 - row % 5, 20 + row % 40);
    let rows = |unknown: Option<&str>| -> String {
        let rows = (0..2100).map(|row| match row {
            7 | 1500 | 2099 => beyond[row % 3].to_owned(),
            2050 => unknown.map_or_else(|| usual(row), |level| format!("50,30,{level},no")),
            row => usual(row),
        });
        std::iter::once("income,age,housing,owner".to_owned())
            .chain(rows)
            .collect::<Vec<_>>()
            .join("\n")
    };
    for (file, content) in [("rows.csv", rows(None)), ("bad.csv", rows(Some("castle")))] {
        place.write(file, &content);
        let table = tyrex::data::Table::read(&place.path(file)).unwrap();
        for format in ["jsonl", "parquet"] {
            let other = place.path(file).with_extension(format);
            table.write(&other, tyrex::Overwrite::Refuse).unwrap();
        }
    }
    for format in ["csv", "jsonl", "parquet"] {
        let explain = |file: &str| {
            let data = format!("{file}.{format}");
            let out = format!("{format}.csv");
            let fixed = ["explain", "--model", "m.onnx", "--method", "min-cost", "--models", "0"];
            place.run(&[&fixed[..], &["--data", &data, "--out", &out]].concat())
        };
        let refused = explain("bad");
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        let whole = format!("bad.{format}, row 2050, column `housing`: found `castle`");
        assert!(refused.stderr.contains(&whole), "{}", refused.stderr);
        assert!(!place.path(&format!("{format}.csv")).exists());
        let answer = explain("rows");
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let advice = tyrex::data::Table::read(&place.path(&format!("{format}.csv"))).unwrap();
        let cells = |name: &str| -> Vec<String> {
            advice.column(name).unwrap().cells().map(str::to_owned).collect()
        };
        assert_eq!(cells("row"), ["7", "1500", "2099"], "{format}");
        assert_eq!(cells("status"), ["found"; 3]);
        for (income, age) in cells("income").iter().zip(cells("age")) {
            let income: f64 = income.parse().unwrap();
            let age: f64 = age.parse().unwrap();
            // An income moves into the data. An age beyond it stays, and rises inside it only.
            assert!((10.5..=88.5).contains(&income), "{income}");
            assert!((19.0..=60.0).contains(&age) || age == 71.0 || age == 95.0, "{age}");
        }
    }
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
    let shown = place.done("schema infer loans.csv --label paid --out s.toml");
    assert!(shown.contains("a further column is read as `income.2`"), "{shown}");
    assert!(place.read("s.toml").contains("ignore = [\"income.2\", \"paid.2\"]"));
    place.done("train --data loans.csv --schema s.toml --out m.onnx --epochs 3");
    let explain = "explain --data loans.csv --schema s.toml --model m.onnx";
    let document = place.json(&format!("{explain} --method trex-o"));
    let warning = document["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("Advice is not limited to changes that people can make"),
        "{warning}"
    );
    assert!(warning.contains("`income`, `debt` in any way"), "{warning}");
}

#[test]
fn without_a_file_the_schema_goes_to_standard_output_even_when_quiet() {
    let place = Place::with_loans();
    let infer = "schema infer loans.csv --label paid";
    let text = place.done(&infer);
    assert!(text.contains("[label]\ncolumn = \"paid\"\nfavourable = \"yes\""), "{text}");
    assert_eq!(place.done(&format!("{infer} --quiet")), text);
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
    let text = place.done("schema infer n.csv --label y --favourable 0");
    assert!(text.contains("favourable = 0"), "{text}");
}

#[test]
fn a_schema_is_checked_alone_and_against_rows_without_labels() {
    let place = Place::with_loans();
    let text = place.done("schema check loans.toml");
    assert!(text.contains("The schema is valid: 4 features"), "{text}");
    place.write("new.csv", "income,age,housing,owner\n20,30,own,no\n");
    let text = place.done("schema check loans.toml --data new.csv");
    assert!(text.contains("no column `paid`"), "{text}");
    let document = place.json("schema check loans.toml --data loans.csv");
    assert_eq!(document["favourable_rows"], 22);
    assert_eq!(document["data"]["test"], 10);
}
