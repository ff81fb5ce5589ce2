//! A model is judged by promises only if it promises the same outcome.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use tyrex::data::{Encoder, Schema};
use tyrex::explain::Meaning;
use tyrex::model::Mlp;
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex_server::engine::EngineConfig;

use crate::answers::world::{Answer, World};
use crate::common::promise;

/// A schema with this favourable value.
fn schema(favourable: &str) -> String {
    format!(
        "format_version = 1\n[label]\ncolumn = \"paid\"\nfavourable = \"{favourable}\"\n\
         [scaling]\nmethod = \"none\"\n[[feature]]\nname = \"income\"\nkind = \"numeric\"\n"
    )
}

/// A model that gives incomes from a limit on its favourable label.
fn onnx(schema: &str, limit: f32) -> Vec<u8> {
    let schema = Schema::from_toml(schema).unwrap();
    let network = Mlp::linear(vec![1.0], -limit).unwrap();
    let encoder = Encoder::fit(&schema, &[]).unwrap();
    write(&network, &ExportMetadata::of(&schema, &encoder).unwrap())
}

const ROWS: &[u8] = b"income,paid\n1,no\n2,no\n8,yes\n9,yes\n";

async fn upload(world: &World, name: &str, onnx: &[u8], schema: Option<&str>) -> Answer {
    let mut parts: Vec<(&str, Option<&str>, &[u8])> = vec![
        ("model", Some("m.onnx"), onnx),
        ("data", Some("rows.csv"), ROWS),
        ("name", None, name.as_bytes()),
    ];
    if let Some(schema) = schema {
        parts.push(("schema", None, schema.as_bytes()));
    }
    world.post_form("/v1/models", &parts, "application/json").await
}

/// A service whose model promises `yes`, and one that accepts everybody as `no`.
async fn world(folder: &Path) -> World {
    let config = EngineConfig { threads: 2, ensemble: 0, ..EngineConfig::default() };
    let world = World::open(&folder.join("tyrex.db"), config).await;
    upload(&world, "usual", &onnx(&schema("yes"), 5.0), None).await.ok();
    upload(&world, "turned", &onnx(&schema("no"), -100.0), None).await.ok();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_contradicts_the_models_own_is_not_uploaded() {
    let folder = TempDir::new().unwrap();
    let world = world(folder.path()).await;
    let same = upload(&world, "same", &onnx(&schema("yes"), 5.0), Some(&schema("yes"))).await;
    assert_eq!(same.status, 201, "{}", same.text());
    let other = upload(&world, "other", &onnx(&schema("yes"), 5.0), Some(&schema("no"))).await;
    assert_eq!(other.status, 422, "{}", other.text());
    assert_eq!(other.json()["field"], "model");
    assert!(other.text().contains("its own schema calls `yes` in column `paid`"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_another_favourable_label_is_no_candidate() {
    let folder = TempDir::new().unwrap();
    let world = world(folder.path()).await;
    let question = json!({"model": "usual", "indices": [0], "samples": 50,
        "record": {"subjects": ["somebody"]}});
    let advice = world.post("/v1/explain", &question).await.ok();
    let id = advice["recorded"][0].as_str().unwrap().to_owned();
    let entry = world.get(&format!("/v1/ledger/{id}")).await.ok();
    let promised = json!({"label": "paid", "favourable": ["yes"], "threshold": 0.5});
    assert_eq!(entry["meaning"], promised);
    let kept = world.post("/v1/audit", &json!({"candidates": ["usual"]})).await.ok();
    assert_eq!(kept["verdict"]["passes"], true);
    let refused = world.post("/v1/audit", &json!({"candidates": ["turned"]})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("turned calls `no` in column `paid`"), "{}", refused.text());
    // The same as a file, and with features that the active model has not.
    let turned = onnx(&schema("no"), -100.0);
    let other = onnx(&schema("no").replace("income", "age"), -100.0);
    for file in [turned, other] {
        let parts: [(&str, Option<&str>, &[u8]); 1] = [("model", Some("t.onnx"), &file)];
        let refused = world.post_form("/v1/audit", &parts, "application/json").await;
        assert_eq!(refused.status, 422, "{}", refused.text());
        assert!(refused.text().contains("`no` in column `paid`"), "{}", refused.text());
    }
}

/// Earlier versions did not record what was promised; the model that promised it is still here.
#[tokio::test(flavor = "multi_thread")]
async fn promises_of_earlier_versions_mean_what_their_model_means() {
    let folder = TempDir::new().unwrap();
    let world = world(folder.path()).await;
    let usual = world.get("/v1/models/usual").await.ok();
    let mut old = promise("somebody", 1);
    assert_eq!(old.document.meaning, None::<Meaning>);
    old.model = usual["fingerprint"].as_str().unwrap().to_owned();
    world.ledger.record(&[old]).await.unwrap();
    let refused = world.post("/v1/audit", &json!({"candidates": ["turned"]})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("turned calls `no` in column `paid`"), "{}", refused.text());
}

/// The same weights under a schema that calls the other label favourable are uploaded later.
#[tokio::test(flavor = "multi_thread")]
async fn a_later_model_does_not_say_what_an_earlier_promise_meant() {
    let folder = TempDir::new().unwrap();
    let world = world(folder.path()).await;
    let usual = world.get("/v1/models/usual").await.ok();
    let mut old = promise("somebody", 1);
    old.model = usual["fingerprint"].as_str().unwrap().to_owned();
    world.ledger.record(&[old]).await.unwrap();
    // Its name is the first in the alphabet, and it has the fingerprint of the promise.
    let copy = upload(&world, "a", &onnx(&schema("no"), 5.0), None).await.ok();
    assert_eq!(copy["fingerprint"], usual["fingerprint"]);
    let refused = world.post("/v1/audit", &json!({"candidates": ["a"]})).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("a calls `no` in column `paid`"), "{}", refused.text());
}

/// Personal data that were exchanged in the database no longer match their commitments.
#[tokio::test(flavor = "multi_thread")]
async fn promises_that_were_changed_are_a_conflict() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tyrex.db");
    let first = world(folder.path()).await;
    let question = json!({"model": "usual", "indices": [0, 1], "samples": 50,
        "record": {"subjects": ["subject of 40", "another one"]}});
    let advice = first.post("/v1/explain", &question).await.ok();
    let changed = advice["recorded"][0].as_str().unwrap().to_owned();
    let sound = advice["recorded"][1].as_str().unwrap().to_owned();
    let audit = json!({"candidates": ["usual"]});
    assert_eq!(first.post("/v1/audit", &audit).await.status, 200);
    first.close().await;
    let mut bytes = std::fs::read(&file).unwrap();
    let (from, to) = (b"subject of 40", b"subject of 41");
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
    std::fs::write(&file, bytes).unwrap();
    let config = EngineConfig { threads: 2, ensemble: 0, ..EngineConfig::default() };
    let world = World::open(&file, config).await;
    let answers = [
        world.post("/v1/audit", &audit).await,
        world.get("/v1/ledger").await,
        world.get(&format!("/v1/ledger/{changed}")).await,
    ];
    for answer in answers {
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(answer.text().contains("its personal data was changed"), "{}", answer.text());
        assert!(!answer.text().contains("subject of 4"), "{}", answer.text());
    }
    assert_eq!(world.get(&format!("/v1/ledger/{sound}")).await.status, 200);
    assert!(world.get("/v1/ledger/verify").await.ok()["problem"].is_object());
}
