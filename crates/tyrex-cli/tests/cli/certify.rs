//! `tyrex certify`

use crate::{Place, assert_golden};

/// Loans, a model of them, an ensemble of that, and counterfactuals.
fn place() -> Place {
    let place = Place::with_loans();
    // A fifth of 30 rows is too few to stop by.
    place.done("train --out m.onnx --early-stopping none LOANS");
    place.done("retrain --model m.onnx --models 12 --seed 1 LOANS --out fresh");
    place.write(
        "cf.csv",
        "row,status,reason,income,age,housing,owner\n\
         3,found,,88.5,41,own,yes\n\
         4,not_found,stuck,,,,\n\
         7,found,,84.5,30,rent,no\n",
    );
    place
}

const CERTIFY: &str = "certify --counterfactuals cf.csv --model m.onnx";

#[test]
fn the_certificates_are_of_the_rows_that_were_found() {
    let place = place();
    // The file does not record which models searched, so somebody has to declare it.
    let document = place.json(&format!("{CERTIFY} --ensemble fresh --unsteered --out c.csv"));
    assert_eq!(document["not_found"], 1);
    let certificates = document["certificates"].as_array().unwrap();
    let rows: Vec<u64> = certificates.iter().map(|c| c["row"].as_u64().unwrap()).collect();
    assert_eq!(rows, [3, 7]);
    let tiers = certificates[0]["certificate"]["tiers"].as_array().unwrap();
    let names: Vec<&str> = tiers.iter().map(|tier| tier["tier"].as_str().unwrap()).collect();
    assert_eq!(names, ["theorem", "interval", "ensemble"]);
    assert_eq!(tiers[2]["valid"], 12);
    assert_eq!(tiers[2]["verdict"], "certified");
    let file = place.read("c.csv");
    let lines: Vec<&str> = file.lines().collect();
    assert!(lines[0].starts_with("row,score,verdict,theorem,"), "{file}");
    assert!(lines[1].starts_with("3,") && lines[2].starts_with("7,"), "{file}");
    assert_eq!(lines.len(), 3);
}

/// The assumption about the next model.
fn exchangeable(document: &serde_json::Value) -> &serde_json::Value {
    &document["certificates"][0]["certificate"]["tiers"][2]["assumptions"][0]
}

#[test]
fn a_reference_shows_whether_the_retrained_models_are_like_the_model() {
    let place = place();
    let run = |flags: &str| place.json(&format!("{CERTIFY} {flags}"));
    let untested = run("--ensemble fresh");
    let likeness = &exchangeable(&untested)["likeness"];
    assert_eq!(likeness["test"]["result"], "not-tested");
    assert_eq!(likeness["test"]["reason"], "the reference has no labelled rows");
    let tested = run("--ensemble fresh --reference loans.csv");
    let likeness = &exchangeable(&tested)["likeness"];
    assert_eq!(likeness["test"]["siblings"], 12);
    assert_eq!(likeness["test"]["differs"].as_array().unwrap().len(), 0, "{likeness}");
    assert_eq!(exchangeable(&tested)["standing"], "declared");
    let now = "--schema loans.toml --reference loans.csv --models 12";
    let like = run(now);
    assert_eq!(exchangeable(&like)["standing"], "declared", "{}", exchangeable(&like));
    // Models that learn almost nothing are not like the model.
    let weak = format!("{now} --epochs 1 --learning-rate 1e-6 --l2 1");
    let weak = place.run(&format!("{CERTIFY} {weak} --json"));
    // Nothing that they say is a certificate, so the answer is "no".
    assert_eq!(weak.code, 1, "{}", weak.stderr);
    let other = weak.json();
    assert_eq!(exchangeable(&other)["standing"], "broken", "{}", exchangeable(&other));
    assert_eq!(exchangeable(&other)["likeness"]["recipe"], "given");
    // The model file names its split, so the schema in it finds the rows that trained the model.
    let own = run("--reference loans.csv --models 12");
    assert_eq!(exchangeable(&own)["likeness"]["recipe"], "known");
    // Some of them are missing.
    let loans = place.read("loans.csv");
    let rows: Vec<&str> = loans.lines().collect();
    place.write("few.csv", &(rows[..rows.len() - 20].join("\n") + "\n"));
    let other = "--reference few.csv --models 12 --json";
    let other = place.run(&format!("{CERTIFY} {other}"));
    let other = other.json();
    assert_eq!(exchangeable(&other)["likeness"]["recipe"], "other-rows");
    let refused = place.run(&format!("{CERTIFY} --models 12"));
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn people_read_what_is_promised_and_what_it_rests_on() {
    let place = place();
    let undeclared = place.done(&format!("{CERTIFY} --ensemble fresh"));
    assert!(undeclared.contains("1 certified, 1 empirical, 0 vacuous"), "{undeclared}");
    let text = place.done(&format!("{CERTIFY} --ensemble fresh --unsteered"));
    assert_golden("certify_loans.txt", &text);
    for piece in [
        "2 counterfactuals; 1 more not found",
        "12 models, trained again from new weights",
        "2 certified, 0 empirical, 0 vacuous",
        "12 of 12 retrained models keep this point valid",
        "This rests on:",
    ] {
        let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains(piece), "{piece}: {text}");
    }
}

#[test]
fn the_answer_may_be_no() {
    let place = place();
    // Models that steered the search are not evidence that counts as a certificate.
    let steered = format!("{CERTIFY} --ensemble fresh --steered --delta 100");
    let answer = place.run(&format!("{steered} --require certified"));
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("No: 2 of 2 are not certified"), "{}", answer.stdout);
    assert_eq!(answer.stderr, "");
    assert_eq!(place.run(&steered).code, 0);
    // A row that the model itself rejects has nothing to promise.
    place.write("cf.csv", "income,age,housing,owner\n10.5,41,own,yes\n");
    let answer = place.run(&format!("{CERTIFY} --ensemble fresh --json"));
    assert_eq!(answer.code, 1);
    let document = answer.json();
    assert_eq!((&document["below"], &document["verdicts"]["vacuous"]), (&1.into(), &1.into()));
}

#[test]
fn every_flag_reaches_the_certificate() {
    let place = place();
    let certify = |flags: &str| {
        let answer = place.run(&format!("{CERTIFY} --json {flags}"));
        let document = answer.json();
        document["certificates"].clone()
    };
    let plain = certify("");
    assert_eq!(certify("--threads 1"), plain);
    let flags: [&str; 7] = [
        "--delta 0.02",
        "--probability 0.8",
        "--confidence 0.9",
        "--k 500",
        "--sigma 0.05",
        "--seed 2",
        "--ensemble fresh",
    ];
    for flag in flags {
        assert_ne!(certify(flag), plain, "{flag:?}");
    }
}

#[test]
fn a_file_found_for_another_model_is_noted() {
    let place = place();
    place.write("cf.csv", "income,age,housing,owner,model\n88.5,41,own,yes,abc\n");
    let document = place.json(&format!("{CERTIFY} --ensemble fresh"));
    assert_eq!(document["found_for"], "abc");
}

#[test]
fn certificates_are_made_anew_and_compared() {
    let place = place();
    let fresh = format!("{CERTIFY} --ensemble fresh --json");
    let text = place.done(&fresh);
    place.write("c.json", &text);
    let verify = "certify --verify c.json --model m.onnx --ensemble fresh";
    let answer = place.run(&verify);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("Yes: 2 certificates confirmed"), "{}", answer.stdout);
    // Without words, which are made of the rest, and without the document around it.
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut bare = document["certificates"][1]["certificate"].clone();
    bare.as_object_mut().unwrap().retain(|name, _| !["verdict", "claims"].contains(&&**name));
    place.write("bare.json", &bare.to_string());
    let bare = "certify --verify bare.json --model m.onnx --ensemble fresh";
    assert_eq!(place.run(&bare).code, 0);
    // Changed fields are named: a number, and a sentence.
    document["certificates"][0]["certificate"]["tiers"][2]["valid"] = 11.into();
    document["certificates"][1]["certificate"]["sentence"] = "All is well.".into();
    place.write("c.json", &document.to_string());
    let answer = place.run(&format!("{verify} --json"));
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    let found = answer.json();
    assert_eq!(found["confirmed"], 0);
    let fields: Vec<&str> = found["certificates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["differences"][0]["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["tiers.2.valid", "sentence"]);
    assert_eq!(found["certificates"][0]["row"], 3);
    let said = place.run(&verify).stdout;
    assert!(said.contains("tiers.2.valid: 11, recomputed 12"), "{said}");
    assert!(said.contains("No: 2 of 2 certificates not confirmed"), "{said}");
}

#[test]
fn advice_is_verified_and_what_is_no_certificate_is_refused() {
    let place = place();
    let explain = "explain --data loans.csv --model m.onnx --method min-cost";
    place.write("e.json", &place.done(&format!("{explain} --json --limit 3")));
    let verify = |file: &'static str| format!("certify --verify {file} --model m.onnx");
    let answer = place.run(&verify("e.json"));
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    // Certificates of retrained models need them.
    let fresh = format!("{CERTIFY} --ensemble fresh --json");
    let text = place.done(&fresh);
    place.write("c.json", &text);
    place.refused(&verify("c.json"), &["the 12 retrained models"]);
    // A point or terms of which no certificate can be made.
    for (field, value) in [
        ("point", serde_json::json!([1.0])),
        ("terms", serde_json::json!({"confidence": 7.0})),
        ("terms", serde_json::json!({"theorem": {"samples": 1_u64 << 62}})),
        ("terms", serde_json::json!({"delta": -1e300})),
    ] {
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        document["certificates"][0]["certificate"][field] = value;
        place.write("t.json", &document.to_string());
        let answer = place.run(&format!("{} --ensemble fresh", verify("t.json")));
        assert_eq!(answer.code, 1, "{field}: {}{}", answer.stdout, answer.stderr);
    }
    let deep = "[".repeat(100_000);
    for (text, problem) in [
        ("{}", "a document without any"),
        ("no json", "a JSON document"),
        (r#"{"digest": 1, "tiers": 2}"#, "a certificate"),
        (&deep, "a JSON document"),
        ("", "a JSON document"),
    ] {
        place.write("t.json", text);
        place.refused(&verify("t.json"), &[problem]);
    }
    assert_eq!(place.run("certify --verify none.json --model m.onnx").code, 2);
    assert_eq!(place.run(&format!("{CERTIFY} --verify c.json")).code, 2);
}
