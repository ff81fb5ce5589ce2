//! Models: listed, uploaded, activated, removed, and back after a restart.

use serde_json::{Value, json};

use crate::answers::world::{MODELS, World, config, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_model_says_what_it_takes() {
    let (_folder, world) = world().await;
    let list = world.get("/v1/models").await.ok();
    assert_eq!(list["active"], "german");
    let summary = &list["models"][0];
    assert_eq!(summary["kind"], "network");
    assert_eq!(summary["origin"], "dataset german");
    assert_eq!(summary["features"], 20);
    let detail = world.get("/v1/models/german").await.ok();
    assert_eq!((&summary["rows"], &summary["reference"]), (&json!(1000), &detail["reference"]));
    assert!((1..1000).contains(&detail["reference"].as_u64().unwrap()), "the rows that train");
    assert_eq!(summary["ensemble"]["models"], MODELS);
    assert_eq!(detail["features"].as_array().unwrap().len(), 20);
    assert_eq!(detail["methods"][0]["name"], "trex-o");
    let methods = detail["methods"].as_array().unwrap();
    // So few fresh models show no promise, so there are none to search over.
    assert_eq!(methods.len(), 9);
    assert!(methods.iter().all(|method| method["needs_models"] == false));
    assert!(detail["promise"].is_null());
    assert_eq!(detail["label"]["favourable"].as_array().unwrap().len(), 1);
    assert_eq!(detail["performances"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn applicants_come_page_by_page() {
    let (_folder, world) = world().await;
    let page = |query: &str| {
        let path = format!("/v1/models/german/applicants?{query}");
        let world = &world;
        async move { world.get(&path).await.ok() }
    };
    let all = page("rejected=false&limit=1000").await;
    let rejected = page("limit=1000").await;
    assert_eq!(
        all["total"].as_u64().unwrap() as usize,
        all["applicants"].as_array().unwrap().len()
    );
    let below = |applicant: &&Value| applicant["score"].as_f64().unwrap() < 0.5;
    let expected: Vec<&Value> =
        all["applicants"].as_array().unwrap().iter().filter(below).collect();
    assert_eq!(rejected["total"], expected.len());
    assert_eq!(rejected["applicants"].as_array().unwrap().iter().collect::<Vec<_>>(), expected);
    let second = page("offset=2&limit=3").await;
    assert_eq!(
        second["applicants"].as_array().unwrap()[..],
        rejected["applicants"].as_array().unwrap()[2..5]
    );
    let row = expected[0]["row"].as_u64().unwrap();
    let one = page(&format!("row={row}")).await;
    assert_eq!(one["applicants"][0], *expected[0]);
    assert_eq!(world.get("/v1/models/german/applicants?row=99999").await.status, 404);
    assert_eq!(world.get("/v1/models/nobody/applicants").await.status, 404);
    assert_eq!(world.get("/v1/models/german/applicants?limit=1001").await.status, 422);
}

/// A model as tyrex writes it, with so many neurons in its hidden layer, and its rows.
pub(super) fn written(neurons: usize) -> (Vec<u8>, Vec<u8>) {
    use std::ops::ControlFlow;
    use tyrex::data::catalogue::{Direction, Variant};
    use tyrex::{Explainer, Seed, data::Catalogue, model::TrainParams};
    let dataset =
        Catalogue::new(None).load("german", Variant::Product, Direction::Favourable).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("german.csv");
    dataset.table().write(&file, tyrex::Overwrite::Refuse).unwrap();
    let params = TrainParams { hidden: vec![neurons], epochs: 1, ..TrainParams::paper() };
    let go_on = |_: &_| ControlFlow::Continue(());
    let explainer = Explainer::train(dataset, &params, Seed(3), go_on).unwrap();
    (explainer.to_onnx().unwrap(), std::fs::read(&file).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_model_is_served_and_comes_back() {
    let (folder, world) = world().await;
    let (onnx, rows) = written(8);
    let parts: [(&str, Option<&str>, &[u8]); 4] = [
        ("model", Some("../../etc/passwd"), &onnx),
        ("reference", Some("C:\\rows.csv"), &rows),
        ("name", None, b"small"),
        ("ensemble", None, b"2"),
    ];
    let answer = world.post_form("/v1/models", &parts, "*/*").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(answer.headers["location"], "/v1/models/small");
    let detail = answer.json();
    assert_eq!((&detail["active"], &detail["rows"]), (&json!(false), &json!(1000)));
    assert_eq!(detail["origin"], "upload");
    // Its name is taken now.
    let again = world.post_form("/v1/models", &parts, "*/*").await;
    assert_eq!(again.status, 409, "{}", again.text());
    // Without rows of its own it answers about rows in the request.
    let bare: [(&str, Option<&str>, &[u8]); 1] = [("model", None, &onnx)];
    let bare = world.post_form("/v1/models", &bare, "*/*").await.ok();
    assert_eq!(bare["reference"], 0);
    assert_eq!(bare["id"], bare["fingerprint"].as_str().unwrap()[..12]);
    assert_eq!(bare["fingerprint"], detail["fingerprint"]);
    let rejected = world.rejected(4).await;
    let ask = |world: &World, model: &Value| {
        let rows: Vec<&Value> = rejected.iter().map(|(_, features)| features).collect();
        let question = json!({"model": model, "rows": rows});
        let app = world.app.clone();
        async move {
            use tower::ServiceExt as _;
            let request = crate::answers::world::request("POST", "/v1/stability")
                .header("content-type", "application/json")
                .body(axum::body::Body::from(question.to_string()))
                .unwrap();
            let response = app.oneshot(request).await.unwrap();
            assert_eq!(response.status(), 200);
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()["rows"].clone()
        }
    };
    let said = ask(&world, &json!("small")).await;
    assert_eq!(ask(&world, &bare["id"]).await, said);
    assert_eq!(world.post("/v1/models/small/activate", &json!({})).await.ok()["active"], true);
    assert_eq!(world.delete("/v1/models/small").await.status, 409);
    // After a restart everything is as it was, and the retraining goes on.
    world.close().await;
    let other = tyrex_server::engine::EngineConfig { dataset: None, ..config() };
    let world = World::open(&folder.path().join("tyrex.db"), other).await;
    let list = world.get("/v1/models").await.ok();
    assert_eq!(list["active"], "small");
    assert_eq!(list["models"].as_array().unwrap().len(), 3);
    assert_eq!(ask(&world, &json!("small")).await, said);
    let started = std::time::Instant::now();
    while world.get("/v1/models/small").await.ok()["ensemble"]["state"] != "ready" {
        assert!(started.elapsed().as_secs() < 60);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    world.post("/v1/models/german/activate", &json!({})).await.ok();
    assert_eq!(world.delete("/v1/models/small").await.status, 204);
    assert_eq!(world.get("/v1/models/small").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_uploads_are_refused_by_their_part() {
    let (_folder, world) = world().await;
    let (onnx, rows) = written(8);
    let split =
        b"format_version = 1\n[label]\ncolumn = \"class\"\nfavourable = \"good\"\n[split]\n\
        file = \"/etc/passwd\"\n[[feature]]\nname = \"age\"\nkind = \"integer\"\n";
    type Parts<'a> = Vec<(&'a str, Option<&'a str>, &'a [u8])>;
    // It would take much room to be asked anything.
    let (wide, _) = written(20_000);
    let cases: Vec<(Parts<'_>, u16, &str)> = vec![
        (vec![("model", None, &wide)], 422, "model"),
        (vec![], 422, "model"),
        (vec![("model", None, b"")], 422, "model"),
        (vec![("model", None, b"no model at all")], 422, "model"),
        (vec![("model", None, &onnx[..onnx.len() / 2])], 422, "model"),
        (vec![("model", None, &onnx), ("name", None, b"../up")], 422, "name"),
        (vec![("model", None, &onnx), ("name", None, b"Big")], 422, "name"),
        (vec![("model", None, &onnx), ("name", None, b"german")], 409, ""),
        (vec![("model", None, &onnx), ("data", Some("rows.exe"), &rows)], 422, "data"),
        (vec![("model", None, &onnx), ("data", Some("rows.parquet"), &rows)], 422, "data"),
        (vec![("model", None, &onnx), ("data", Some("rows.arrow"), &rows)], 422, "data"),
        (vec![("model", None, &onnx), ("data", Some("rows.csv"), b"age\n1\n")], 422, "data"),
        (vec![("model", None, &onnx), ("schema", None, b"nonsense = [")], 422, "schema"),
        (vec![("model", None, &onnx), ("schema", None, b"\xff\xfe")], 422, "schema"),
        (vec![("model", None, &onnx), ("schema", None, split)], 422, "schema"),
        (vec![("model", None, &onnx), ("ensemble", None, b"many")], 422, "ensemble"),
        (vec![("model", None, &onnx), ("ensemble", None, b"1000000")], 422, "ensemble"),
        (vec![("model", None, &onnx), ("model", None, &onnx)], 422, "model"),
        (vec![("model", None, &onnx), ("colour", None, b"red")], 422, "colour"),
    ];
    for (parts, status, field) in cases {
        let answer = world.post_form("/v1/models", &parts, "*/*").await;
        let names: Vec<&str> = parts.iter().map(|part| part.0).collect();
        assert_eq!(answer.status, status, "{names:?}: {}", answer.text());
        let problem = answer.json();
        if !field.is_empty() {
            assert_eq!(problem["field"], field, "{problem}");
        }
        assert!(!problem["detail"].as_str().unwrap().contains("root:"), "{problem}");
    }
    assert_eq!(world.post("/v1/models", &json!({})).await.status, 415);
    assert_eq!(world.get("/v1/models").await.ok()["models"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_models_are_read_one_at_a_time() {
    let (_folder, world) = world().await;
    let (onnx, rows) = written(8);
    let parts: [(&str, Option<&str>, &[u8]); 2] =
        [("model", None, &onnx), ("data", Some("rows.csv"), &rows)];
    let upload = || world.post_form("/v1/models", &parts, "*/*");
    let (first, second, third) = tokio::join!(upload(), upload(), upload());
    let mut statuses = [first, second, third].map(|answer| answer.status.as_u16());
    statuses.sort_unstable();
    // The others come too early, or too late: then the name is taken.
    assert_eq!(statuses[0], 201);
    assert!(statuses[1..].iter().all(|status| [409, 503].contains(status)), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uploaded_scorecard_is_explained_with_a_proof() {
    let (_folder, world) = world().await;
    let card = br#"{"scorecard": 1, "factor": 10, "offset": 45, "variables": [
        {"name": "income", "missing": 20, "bins": [{"below": 3000, "points": 5}, {"points": 40}]},
        {"name": "debt", "missing": 0, "bins": [{"below": 2, "points": 30}, {"points": 6}]}]}"#;
    let schema = br#"
format_version = 1
[model]
input = "raw"
[scaling]
method = "none"
[label]
column = "paid"
favourable = "yes"
[[feature]]
name = "income"
kind = "integer"
range = [0, 9000]
missing = "pass"
may_become = "known"
[[feature]]
name = "debt"
kind = "integer"
range = [0, 9]
action = "fixed"
"#;
    let parts: [(&str, Option<&str>, &[u8]); 3] =
        [("model", None, card), ("schema", None, schema), ("name", None, b"card")];
    let answer = world.post_form("/v1/models", &parts, "*/*").await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let detail = answer.json();
    assert_eq!(detail["features"][0]["may_become"], "known");
    assert!(detail["features"][1].get("may_become").is_none());
    let question = json!({
        "model": "card", "rows": [{"income": null, "debt": 5}, {"income": 100, "debt": 5}],
        "method": "min-cost", "prove": true,
    });
    let said = world.post("/v1/explain", &question).await.ok();
    for (row, words) in ["provide income: 3000", "raise income from 100 to 3000"].iter().enumerate()
    {
        let advice = &said["rows"][row]["advice"];
        assert_eq!(advice["changes"][0]["words"]["clause"], *words, "{said}");
        assert_eq!(advice["changes"].as_array().unwrap().len(), 1);
        assert_eq!(advice["proof"]["optimal"], true, "{said}");
    }
    // Without a scale, the column of a missing number is 0, and the one beside it 1.
    assert_eq!(said["rows"][0]["advice"]["cost"]["l1"], 3001.0, "{said}");
}
