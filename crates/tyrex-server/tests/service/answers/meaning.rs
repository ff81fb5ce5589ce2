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
