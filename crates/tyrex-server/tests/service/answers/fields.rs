//! A table of questions with one wrong field each: the problem names the field, says what was
//! found and what was expected, and has no names of Rust types.

use serde_json::{Map, Value, json};
use tyrex::explain::Ask;

use crate::answers::world::{World, world};

/// Words of Rust and of serde, not of JSON.
const FOREIGN: [&str; 16] = [
    "f64",
    "f32",
    "usize",
    "u64",
    "u32",
    "i64",
    "u8",
    "struct",
    "enum",
    "variant",
    "sequence",
    "invalid",
    "integer `",
    "floating",
    "nothing",
    "::",
];

/// The refusal of negative and fractional numbers.
const WHOLE: &str = "expected a whole number of at least 0";
/// The refusal of models for one question.
const OWN: &str = "the models that it has retrained already; leave this field out";

/// Sends a wrong question and checks the problem.
async fn refused(world: &World, path: &str, question: &Value, field: &str, words: &[&str]) {
    let answer = world.post(path, question).await;
    let said = answer.text();
    assert_eq!(answer.status, 422, "{path} {question}: {said}");
    let problem = answer.json();
    let detail = problem["detail"].as_str().unwrap();
    assert_eq!(problem["field"], field, "{path} {question}: {said}");
    for word in words {
        assert!(detail.contains(word), "{path} {question}: no {word:?} in {said}");
    }
    for word in FOREIGN {
        assert!(!detail.contains(word), "{path} {question}: {word:?} in {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_field_is_named_in_words_of_json() {
    let (_folder, world) = world().await;
    let row = world.rejected(1).await[0].0;
    let cases: Vec<(Value, &str, &[&str])> = vec![
        (json!({"method": 3}), "method", &["found 3, expected a text"]),
        (json!({"method": "magic"}), "method", &["found magic", "trex-o"]),
        (json!({"method": "min-cost", "tau": 0.8}), "method", &["min-cost", "tau, k or sigma"]),
        (json!({"method": "trex-e"}), "method", &["no retrained models", "trex-o"]),
        (json!({"promise": 0.9}), "promise", &["no retrained models", "leave this field out"]),
        (
            json!({"promise": 0.9, "method": "trex-e"}),
            "promise",
            &["no retrained models", "leave this field out"],
        ),
        (json!({"promise": "high"}), "promise", &["found \"high\", expected a number"]),
        (json!({"confidence": 2}), "confidence", &["between 0 and 1"]),
        (json!({"confidence": "x"}), "confidence", &["found \"x\", expected a number"]),
        (json!({"protocol": 3}), "protocol", &["found 3, expected a name"]),
        (json!({"protocol": "x"}), "protocol", &["found `x`", "`product`"]),
        (json!({"protocol": "paper"}), "protocol", &["expected `product`"]),
        (json!({"norm": "l3"}), "norm", &["found `l3`", "`l1`", "`l2`"]),
        (json!({"norm": ["l1"]}), "norm", &["found a list, expected a name"]),
        (
            json!({"tau": "high"}),
            "tau",
            &["found \"high\", expected a number between 0 and 1, or `auto`"],
        ),
        (json!({"tau": {}}), "tau", &["expected a number between 0 and 1, or `auto`"]),
        (json!({"tau": 1.5}), "tau", &["between 0 and 1"]),
        (json!({"tau": "auto"}), "tau", &["POST /v1/calibrate"]),
        (json!({"k": 5, "samples": 5}), "k", &["found twice, expected once"]),
        (json!({"k": "many"}), "k", &["found \"many\"", WHOLE]),
        (json!({"k": -1}), "k", &["found -1", WHOLE]),
        (json!({"k": 1.5}), "k", &["found 1.5", WHOLE]),
        (json!({"k": 0}), "k", &["expected 1 to"]),
        (json!({"samples": true}), "samples", &["found true", WHOLE]),
        (json!({"sigma": "wide"}), "sigma", &["found \"wide\", expected a number"]),
        (json!({"sigma": -1}), "sigma", &["expected a number from"]),
        (json!({"params": 3}), "params", &["found 3, expected an object"]),
        (json!({"params": {"steps": 3}}), "params", &["cannot be set over HTTP; leave"]),
        (json!({"keep": "age"}), "keep", &["found \"age\", expected a list"]),
        (json!({"keep": [3]}), "keep[0]", &["found 3, expected a text"]),
        (json!({"keep": ["age", "agee"]}), "keep[1]", &["`agee`", "did you mean `age`?"]),
        (json!({"vary": ["x"]}), "vary[0]", &["no feature `x`"]),
        (json!({"vary": ["age"], "keep": ["age"]}), "vary[0]", &["`age` is fixed"]),
        (json!({"rules": {}}), "rules", &["expected a list"]),
        (
            json!({"rules": [{"monotone": ["age", "agee"]}]}),
            "rules[0]",
            &["`agee` is not a feature"],
        ),
        (json!({"actions": []}), "actions", &["found a list, expected an object"]),
        (json!({"actions": {"agee": "fixed"}}), "actions.agee", &["did you mean `age`?"]),
        (json!({"actions": {"age": "never"}}), "actions.age", &["found `never`", "`fixed`"]),
        (
            json!({"actions": {"age": {"within": [1, 2], "levels": []}}}),
            "actions.age",
            &["one field"],
        ),
        (json!({"actions": {"age": 3}}), "actions.age", &["found 3, expected a name"]),
        (
            json!({"actions": {"age": {"within": 3}}}),
            "actions.age.within",
            &["found 3", "two numbers"],
        ),
        (json!({"actions": {"age": {"within": [1, "x"]}}}), "actions.age.within[1]", &["a number"]),
        (json!({"actions": {"purpose": {"within": [0, 1]}}}), "actions.purpose", &["within"]),
        (json!({"budget": 3}), "budget", &["found 3, expected an object"]),
        (json!({"budget": {"seconds": -1}}), "budget.seconds", &["found -1", "above 0"]),
        (json!({"budget": {"seconds": "x"}}), "budget.seconds", &["found \"x\"", "a number"]),
        (json!({"budget": {"steps": 1.5}}), "budget.steps", &["found 1.5", WHOLE]),
        (json!({"budget": {"evaluations": -3}}), "budget.evaluations", &["found -3", WHOLE]),
        (json!({"budget": {"tea": 1}}), "budget.tea", &["unknown field, expected one of `steps`"]),
        (json!({"seed": -1}), "seed", &["found -1", WHOLE]),
        (json!({"seed": "x"}), "seed", &["found \"x\"", WHOLE]),
        (json!({"certify": "yes"}), "certify", &["found \"yes\", expected true or false"]),
        (json!({"models": "x"}), "models", &["found \"x\"", WHOLE]),
        (json!({"models": 5}), "models", &[OWN]),
        (json!({"change": "bootstrap"}), "change", &["found \"bootstrap\", expected an object"]),
        (json!({"change": {"name": "magic"}}), "change.name", &["found `magic`", "`bootstrap`"]),
        (json!({"change": {"name": 3}}), "change.name", &["found 3, expected a name"]),
        (json!({"change": {"name": "bootstrap", "tea": 1}}), "change.tea", &["unknown field"]),
        (json!({"change": {"fraction": 0.1}}), "change.name", &["missing"]),
        (json!({"change": {"name": "bootstrap"}}), "change", &[OWN]),
        (json!({"relax": 1}), "relax", &["found 1, expected true or false"]),
        // The endpoint's own.
        (json!({"looks": 31}), "looks", &["expected at most 30"]),
        (json!({"wait": "no"}), "wait", &["found \"no\", expected true or false"]),
        (json!({"model": 3}), "model", &["found 3, expected a text"]),
        (json!({"indices": "x"}), "indices", &["found \"x\", expected a list"]),
        (json!({"indices": [0, 0.5]}), "indices[1]", &["found 0.5", WHOLE]),
        (json!({"rows": 3}), "rows", &["found 3, expected a list of rows"]),
        (json!({"record": 3}), "record", &["found 3, expected an object"]),
        (json!({"record": {"tea": 1}}), "record.tea", &["unknown field", "`subjects`"]),
        (json!({"record": {"subjects": [1]}}), "record.subjects[0]", &["found 1", "a text"]),
        (json!({"record": {"holds_days": -1}}), "record.holds_days", &["found -1", WHOLE]),
    ];
    for (wrong, field, words) in cases {
        let mut question = Map::from_iter([("indices".to_owned(), json!([row]))]);
        question.extend(wrong.as_object().unwrap().clone());
        refused(&world, "/v1/explain", &Value::Object(question), field, words).await;
    }
    let own = |more: Value| {
        let mut question = json!({"indices": [row]});
        question["terms"] = more;
        question
    };
    let others: Vec<(&str, Value, &str, &[&str])> = vec![
        ("/v1/stability", own(json!(3)), "terms", &["found 3, expected an object"]),
        ("/v1/stability", own(json!({"samples": "x"})), "terms.samples", &["found \"x\"", WHOLE]),
        ("/v1/stability", own(json!({"sigma": "x"})), "terms.sigma", &["a number"]),
        ("/v1/stability", own(json!({"sampling": "x"})), "terms.sampling", &["found `x`"]),
        ("/v1/stability", own(json!({"seed": -1})), "terms.seed", &["found -1", WHOLE]),
        ("/v1/stability", own(json!({"tea": 1})), "terms.tea", &["unknown field", "`samples`"]),
        ("/v1/stability", json!({"tea": 1}), "tea", &["unknown field", "`rows`", "`terms`"]),
        ("/v1/certify", own(json!({"delta": "x"})), "terms.delta", &["a number"]),
        ("/v1/certify", json!({"seed": "x"}), "seed", &["found \"x\"", WHOLE]),
        ("/v1/certify/verify", json!({}), "certificates", &["missing"]),
        ("/v1/calibrate", json!({"validity": "x"}), "validity", &["found \"x\"", "a number"]),
        ("/v1/calibrate", json!({"taus": 3}), "taus", &["found 3, expected a list"]),
        ("/v1/calibrate", json!({"taus": ["x"]}), "taus[0]", &["found \"x\", expected a number"]),
        ("/v1/calibrate", json!({"models": -1}), "models", &["found -1", WHOLE]),
        ("/v1/calibrate", json!({"budget": {"seconds": 0}}), "budget.seconds", &["above 0"]),
        ("/v1/audit", json!({"candidates": "german"}), "candidates", &["expected a list"]),
        ("/v1/audit", json!({"allow": "x"}), "allow", &["found \"x\", expected a number"]),
        ("/v1/audit", json!({"by": [3]}), "by[0]", &["found 3"]),
        ("/v1/audit", json!({"candidates": ["german"], "seed": "x"}), "seed", &[WHOLE]),
        ("/v1/ledger/forget", json!({"subject": 3}), "subject", &["found 3, expected a text"]),
        ("/v1/ledger/forget", json!({}), "subject", &["missing"]),
        ("/v1/playground/map", json!({"samples": "x"}), "samples", &["found \"x\"", WHOLE]),
    ];
    for (path, question, field, words) in others {
        refused(&world, path, &question, field, words).await;
    }
    // Parts of an address.
    for (path, field, words) in [
        ("/v1/ledger?limit=x", "limit", WHOLE),
        ("/v1/ledger?limit=-1", "limit", WHOLE),
        ("/v1/ledger?status=lost", "status", "found `lost`, expected one of `open`"),
        ("/v1/ledger?colour=red", "colour", "unknown field, expected one of `status`"),
        ("/v1/models/german/applicants?rejected=7", "rejected", "expected true or false"),
        ("/v1/jobs/17", "id", "found `17`, expected a UUID"),
        ("/v1/ledger/x", "id", "found `x`, expected a UUID"),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        let problem = answer.json();
        assert_eq!(problem["field"], field, "{path}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{path}: {problem}");
    }
    let twice = format!("{{\"indices\": [{row}], \"tau\": 0.8, \"tau\": 0.7}}");
    let answer = world.post_text("/v1/explain", &twice).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["field"]), (422, &json!("tau")));
}

/// Every field that is accepted is listed, also those of the endpoint itself.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_field_is_answered_with_all_that_are_accepted() {
    let (_folder, world) = world().await;
    let Value::Object(ask) = serde_json::to_value(Ask::default()).unwrap() else { unreachable!() };
    let cases: [(&str, &[&str]); 3] = [
        ("/v1/explain", &["model", "rows", "indices", "wait", "record", "looks"]),
        ("/v1/calibrate", &["model", "validity", "confidence", "factuals", "taus", "models"]),
        ("/v1/audit", &["candidates", "by", "allow", "confidence", "wait"]),
    ];
    for (path, own) in cases {
        let names: Vec<String> = own
            .iter()
            .map(|name| (*name).to_owned())
            .chain(ask.keys().cloned())
            .map(|name| format!("`{name}`"))
            .collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        for value in [json!(1), Value::Null] {
            refused(&world, path, &json!({"colour": value}), "colour", &words).await;
        }
        let near = ["unknown field, expected one of", "; did you mean `samples`?"];
        refused(&world, path, &json!({"sampels": 1}), "sampels", &near).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_means_not_given() {
    let (_folder, world) = world().await;
    let row = world.rejected(1).await[0].0;
    let Value::Object(ask) = serde_json::to_value(Ask::default()).unwrap() else { unreachable!() };
    let cases: [(&str, &[&str], Value); 3] = [
        ("/v1/explain", &["model", "rows", "wait", "record", "looks"], json!({"k": 50})),
        ("/v1/stability", &["model", "rows"], json!({"terms": {"samples": 50}})),
        (
            "/v1/certify",
            &["model", "rows", "seed", "searched", "steered", "looks"],
            json!({"terms": {"theorem": null}}),
        ),
    ];
    for (path, own, mut plain) in cases {
        plain["indices"] = json!([row]);
        let expected = world.post(path, &plain).await.ok();
        let mut nulls = plain.clone();
        let shared = ask.keys().map(String::as_str).filter(|_| path == "/v1/explain");
        for name in own.iter().copied().chain(shared) {
            if nulls.get(name).is_none() {
                nulls[name] = Value::Null;
            }
        }
        assert_eq!(world.post(path, &nulls).await.ok(), expected, "{path}");
    }
    let stability = |terms: Value| json!({"indices": [row], "terms": terms});
    let usual = world.post("/v1/stability", &stability(json!({}))).await.ok();
    for terms in [Value::Null, json!({"samples": null, "seed": null, "gamma": null})] {
        assert_eq!(world.post("/v1/stability", &stability(terms)).await.ok(), usual);
    }
    let inside = json!({"indices": [row], "k": 50, "budget": {"steps": null, "seconds": null},
        "actions": {"age": null}});
    let plain = world.post("/v1/explain", &json!({"indices": [row], "k": 50})).await.ok();
    assert_eq!(world.post("/v1/explain", &inside).await.ok(), plain);
    let audit = json!({"candidates": ["german"], "by": null, "allow": null, "confidence": null,
        "wait": null, "tau": null, "seed": null});
    world.post("/v1/audit", &audit).await.ok();
}
