//! The own model files of other packages, against what these packages predict.

use std::path::Path;

use super::{Case, deviation, python};

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
