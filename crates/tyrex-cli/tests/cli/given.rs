//! `--ensemble` with models that were retrained elsewhere: model files without a manifest.

use crate::{Place, assert_golden};

/// Loans, a model of them, 30 retrained models as files in `given`, and counterfactuals.
fn place() -> Place {
    let place = Place::with_loans();
    place.done("train --out m.onnx --epochs 300 --hidden 16 --early-stopping none LOANS");
    place.done("retrain --model m.onnx --models 30 --out ours LOANS");
    std::fs::create_dir(place.path("given")).unwrap();
    for index in 0..30 {
        let from = place.path(&format!("ours/member-{index:04}.onnx"));
        std::fs::copy(from, place.path(&format!("given/run{index}.onnx"))).unwrap();
    }
    // Other files are not models.
    place.write("given/notes.txt", "retrained in May");
    place.write(
        "cf.csv",
        "row,status,reason,income,age,housing,owner\n\
         3,found,,88.5,41,own,yes\n\
         7,found,,84.5,30,rent,no\n",
    );
    place
}

const CERTIFY: &str =
    "certify --counterfactuals cf.csv --model m.onnx --reference loans.csv --unsteered --ensemble";

#[test]
fn models_that_were_retrained_elsewhere_certify() {
    let place = place();
    let text = place.done(&format!("{CERTIFY} given"));
    assert_golden("certify_given.txt", &text);
    let answer = place.run(&format!("{CERTIFY} given --json"));
    place.write("c.json", &answer.stdout);
    let verified = place.json("certify --verify c.json --model m.onnx --ensemble given");
    assert_eq!(verified["confirmed"], 2);
    // They are those of the manifest, in another order of names.
    let ours = place.json(&format!("{CERTIFY} ours"));
    let given = answer.json();
    for index in 0..2 {
        let tier = |document: &serde_json::Value| {
            let tier = &document["certificates"][index]["certificate"]["tiers"][2];
            (tier["valid"].clone(), tier["models"].clone(), tier["verdict"].clone())
        };
        assert_eq!(tier(&given), tier(&ours));
    }
}

#[test]
fn a_search_and_a_calibration_take_them() {
    let place = place();
    let explain = "explain --model m.onnx --reference loans.csv --limit 3";
    let explain = format!("{explain} LOANS --ensemble given");
    let promise = "--promise 0.5 --confidence 0.9";
    let document = place.json(&format!("{explain} {promise}"));
    assert_eq!(document["request"]["method"]["method"], "trex-e");
    let found: Vec<_> = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|each| each["advice"]["status"] == "found")
        .collect();
    assert!(!found.is_empty());
    for applicant in &found {
        let retraining = &applicant["advice"]["certificate"]["retraining"];
        assert_eq!(retraining["models"].as_array().unwrap().len(), 9);
        let family = retraining["family"].as_str().unwrap();
        assert!(family.contains("retrained elsewhere, from the folder given"), "{family}");
    }
    let rests_on = document["portfolio"]["rests_on"][0].as_str().unwrap();
    assert!(rests_on.contains("retrained elsewhere"), "{rests_on}");
    // Without a promise of its own a small ensemble certifies the usual search.
    let usual = place.json(&explain);
    assert_eq!(usual["request"]["method"]["method"], "trex-o");
    let calibrate = "calibrate --model m.onnx --reference loans.csv --limit 3";
    let flags = "--tau 0.6,0.7 --target 0.5 --confidence 0.5 --k 50";
    let calibrate = format!("{calibrate} {flags} LOANS --ensemble given");
    let answer = place.run(&format!("{calibrate} --json"));
    let document = answer.json();
    assert!(document["change"].is_null(), "{document}");
    assert!(document["given"].as_str().unwrap().contains("the folder given"), "{document}");
    assert_eq!(document["calibration"]["choosing"], 15);
}

/// A search takes some models of a folder at random. Its file of advice names them, and they certify
/// nothing of it.
#[test]
fn models_that_searched_do_not_certify() {
    let place = place();
    let explain = "explain --model m.onnx --reference loans.csv --limit 3";
    let explain = format!("{explain} LOANS --promise 0.5 --confidence 0.9 --ensemble given");
    let advice = place.run(&format!("{explain} --json --out found.csv"));
    assert_eq!(advice.code, 0, "{}", advice.stderr);
    place.write("advice.json", &advice.stdout);
    let certify = |file: &str, folder: &str, flags: &str| {
        let model = "--model m.onnx --reference loans.csv --json";
        place.run(&format!("certify --counterfactuals {file} --ensemble {folder} {model} {flags}"))
    };
    let others = certify("found.csv", "given", "").json();
    assert_eq!(others["ensemble"]["left_out"], 21);
    assert_eq!(others["ensemble"]["models"], 9);
    assert_eq!(others["ensemble"]["search"]["models"], 21);
    let first = &others["certificates"][0]["certificate"];
    let sentence = first["sentence"].as_str().unwrap();
    let expected =
        "had no part in the search: none of them is among the 21 that searched (declared)";
    assert!(sentence.contains(expected), "{sentence}");
    // They are the fresh models of `explain`, which says the same.
    let advice = advice.json();
    let made =
        &advice["rows"].as_array().unwrap().iter().find_map(|row| row["advice"].get("certificate"));
    let made = made.expect("a certificate");
    let models = |certificate: &serde_json::Value| {
        let models = certificate["retraining"]["models"].as_array().unwrap().iter();
        let models = models.map(|model| model.as_str().unwrap().to_owned());
        models.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(models(made), models(first));
    assert_eq!(made["retraining"]["search"], first["retraining"]["search"]);

    // A certificate of a search that took models at random is confirmed by the whole folder.
    let verify = "certify --verify advice.json --model m.onnx --ensemble";
    let verified = place.json(&format!("{verify} given"));
    assert_eq!(verified["certificates"][0]["confirmed"], true, "{verified}");
    assert_eq!(verified["certificates"][0]["of_models"], 30);
    let text = place.done(&format!("{verify} given"));
    assert!(text.contains("some of the 30 in the folder"), "{text}");

    // Models that the user chose to certify are refused.
    std::fs::create_dir(place.path("chosen")).unwrap();
    for index in 0..30 {
        let from = place.path(&format!("given/run{index}.onnx"));
        std::fs::copy(from, place.path(&format!("chosen/fresh-{index}.onnx"))).unwrap();
    }
    let refused = certify("found.csv", "chosen", "");
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    for part in ["21 models that took part in the search", "number ", "16 more"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let steered = certify("found.csv", "chosen", "--steered").json();
    let tiers = steered["certificates"][0]["certificate"]["tiers"].as_array().unwrap();
    let tier = tiers.iter().find(|tier| tier["tier"] == "ensemble").expect("a tier of the models");
    assert_ne!(tier["verdict"], "certified");
    // A file of an earlier version does not name them.
    let old = place.read("found.csv");
    let start = old.find(",\"\"searched\"\":").expect("a record");
    let end = start + old[start..].find("]}").unwrap() + 2;
    let record = old[start..end].to_owned();
    place.write("old.csv", &old.replace(&record, ""));
    for (flags, known, standing) in
        [("", "unknown", "not known"), ("--unsteered", "not-recorded", "declared")]
    {
        let old = certify("old.csv", "given", flags).json();
        assert_eq!(old["ensemble"]["models"], 30);
        assert_eq!(old["ensemble"]["search"]["known"], known);
        let certificate = &old["certificates"][0]["certificate"];
        let sentence = certificate["sentence"].as_str().unwrap();
        let expected = format!("in the search, which is not recorded ({standing})");
        assert!(sentence.contains(&expected), "{sentence}");
        let tiers = certificate["tiers"].as_array().unwrap();
        let tier = tiers.iter().find(|tier| tier["tier"] == "ensemble").expect("a tier of models");
        assert!(known != "unknown" || tier["verdict"] != "certified", "{tier}");
    }
}

#[test]
fn a_folder_without_models_and_too_few_of_them_say_how_many_are_needed() {
    let place = place();
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refused(
        &format!("{CERTIFY} empty"),
        &["empty: it has no `ensemble.json`, and 0 model files", "61 fresh ones and 10"],
    );
    let explain = "explain --model m.onnx --reference loans.csv --limit 1";
    place.refused(
        &format!("{explain} LOANS --ensemble given --promise 0.9"),
        &["is 30 models, expected at least 71"],
    );
}
