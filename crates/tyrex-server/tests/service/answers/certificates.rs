//! Questions that need retrained models or labelled rows, asked of a model without them.

use serde_json::{Value, json};

use crate::answers::models::written;
use crate::answers::world::world;

/// A table without one of its columns.
fn without(csv: &[u8], column: &str) -> Vec<u8> {
    let text = std::str::from_utf8(csv).unwrap();
    let place = text.lines().next().unwrap().split(',').position(|name| name == column).unwrap();
    let cut = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells.remove(place);
        cells.join(",")
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n").into_bytes()
}

type Parts<'a> = Vec<(&'a str, Option<&'a str>, &'a [u8])>;

#[tokio::test(flavor = "multi_thread")]
async fn retrained_models_need_labelled_rows() {
    let (_folder, world) = world().await;
    let (onnx, rows) = written(8);
    let unlabelled = without(&rows, "class");
    let cases: [Parts<'_>; 3] = [
        vec![("model", None, &onnx), ("ensemble", None, b"2")],
        vec![("model", None, &onnx), ("ensemble", None, b"2"), ("data", Some("a.csv"), &rows)],
        vec![
            ("model", None, &onnx),
            ("ensemble", None, b"2"),
            ("reference", Some("a.csv"), &unlabelled),
        ],
    ];
    for parts in cases {
        let answer = world.post_form("/v1/models", &parts, "*/*").await;
        assert_eq!(answer.status, 422, "{}", answer.text());
        let problem = answer.json();
        assert_eq!(problem["field"], "ensemble", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("labelled rows that the model was trained on"), "{detail}");
        assert!(detail.contains("`reference`"), "{detail}");
    }
    assert_eq!(world.get("/v1/models").await.ok()["models"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_rows_says_what_it_cannot_do() {
    let (_folder, world) = world().await;
    let (onnx, rows) = written(8);
    let unlabelled = without(&rows, "class");
    let bare: Parts<'_> = vec![("model", None, &onnx), ("name", None, b"bare")];
    let plain: Parts<'_> = vec![
        ("model", None, &onnx),
        ("name", None, b"plain"),
        ("reference", Some("a.csv"), &unlabelled),
    ];
    for parts in [bare, plain] {
        let answer = world.post_form("/v1/models", &parts, "*/*").await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let row = world.rejected(1).await[0].1.clone();
    let with = |model: &str, more: Value| {
        let mut question = json!({"model": model, "rows": [row]});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question
    };
    let cases: Vec<(&str, Value, u16, &str, &[&str])> = vec![
        ("/v1/explain", with("bare", json!({"method": "nn"})), 422, "reference", &["nn", "rows"]),
        ("/v1/explain", with("bare", json!({"method": "trex-nn"})), 422, "reference", &["rows"]),
        ("/v1/explain", with("bare", json!({"models": 5})), 422, "models", &["leave this"]),
        (
            "/v1/explain",
            with("bare", json!({"change": {"name": "bootstrap"}})),
            422,
            "change",
            &["leave this field out"],
        ),
        ("/v1/survival", with("bare", json!({})), 409, "", &["no retrained models"]),
        ("/v1/calibrate", json!({"model": "bare"}), 422, "model", &["labelled rows"]),
        ("/v1/calibrate", json!({"model": "plain"}), 422, "model", &["labelled rows"]),
    ];
    for (path, question, status, field, words) in cases {
        let answer = world.post(path, &question).await;
        let said = answer.text();
        assert_eq!(answer.status, status, "{path} {question}: {said}");
        let problem = answer.json();
        assert_eq!(
            problem["field"].as_str().unwrap_or_default(),
            field,
            "{path} {question}: {said}"
        );
        for word in words {
            assert!(said.contains(word), "{path} {question}: no {word:?} in {said}");
        }
    }
    // Certificates are given without retrained models; the tiers that need them say so.
    let answer = world.post("/v1/certify", &with("bare", json!({}))).await.ok();
    assert_eq!(answer["models"], 0);
    assert_eq!(answer["rows"][0]["certificate"]["retraining"], Value::Null);
}
