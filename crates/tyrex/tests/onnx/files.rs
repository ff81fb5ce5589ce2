//! The own model files of other packages, against what these packages predict.

use std::path::Path;

use tyrex::model::files::{Favourable, ImportOptions, Inputs, ModelFile};

use super::{Case, RawCell, deviation, python};

/// The agreement that is promised, in probability.
const TOLERANCE: f64 = 1e-6;

#[test]
#[expect(clippy::print_stdout, reason = "the table is read with --nocapture")]
fn own_files_of_other_packages_score_like_them() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("model-files");
    std::fs::create_dir_all(&folder).unwrap();
    python("make_files.py", &[&folder]);
    let cases = std::fs::read_to_string(folder.join("cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&cases).unwrap();
    assert!(cases.len() >= 30, "only {} models were saved", cases.len());

    let mut failures = Vec::new();
    println!("| model file | largest deviation |\n|---|---|");
    for case in &cases {
        match deviation(case, &folder) {
            Ok(deviation) => {
                println!("| {} | {deviation:.1e} |", case.file);
                if deviation.is_nan() || deviation > TOLERANCE {
                    failures.push(format!("{}: deviates by {deviation:e}", case.name));
                }
            }
            Err(problem) => failures.push(format!("{}: {problem}", case.name)),
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Models and predictions of CatBoost that `make_catboost.py` made.
#[test]
#[expect(clippy::print_stdout, reason = "the table is read with --nocapture")]
fn files_of_catboost_score_like_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/onnx/catboost");
    let lines = |file: &str| -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let rows = lines("rows.csv");
    assert_eq!(rows.len(), 1000);
    let column = |index: usize| {
        let cell = |row: &Vec<String>| match row[index].parse::<f32>() {
            Ok(number) => RawCell::Number(f64::from(number)),
            Err(_) => RawCell::Text("nan".to_owned()),
        };
        rows.iter().map(cell).collect()
    };
    let expected = lines("expected.csv");
    assert_eq!(expected.len(), 8);
    println!("| model file | largest deviation |\n|---|---|");
    for answers in expected {
        let (name, favourable) = (answers[0].clone(), answers[1].parse().unwrap());
        let case = Case {
            file: format!("{name}.json"),
            name,
            kind: "trees".to_owned(),
            operators: Vec::new(),
            output: None,
            favourable: Some(favourable),
            logits: false,
            columns: (0..4).map(column).collect(),
            expected: answers[2..].iter().map(|share| share.parse().unwrap()).collect(),
        };
        let deviation = deviation(&case, &folder).unwrap();
        println!("| catboost/{} | {deviation:.1e} |", case.file);
        assert!(deviation <= TOLERANCE, "{}: {deviation:e}", case.file);
    }
    let three = ModelFile::read(
        &folder.join("three-classes.json"),
        &ImportOptions { favourable: Some(Favourable::Label("top".into())), ..Default::default() },
    )
    .unwrap();
    assert_eq!((three.favourable, three.classes, &*three.output), (2, 3, "MultiClass"));
    let named = ModelFile::read(&folder.join("first-class.json"), &ImportOptions::default());
    let Inputs::Columns(columns) = named.unwrap().inputs else { panic!("expected names") };
    assert_eq!(columns[2].name, "share of debt");
}
