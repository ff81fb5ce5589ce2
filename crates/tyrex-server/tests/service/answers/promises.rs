//! Advice becomes a promise; the ledger's routes; the gate.

use serde_json::{Value, json};
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::{Error, Ledger};

use crate::answers::jobs::submit;
use crate::answers::world::{World, indices, world};

/// Advice for some rows, recorded; the ids of the promises.
async fn recorded(world: &World, count: usize) -> Vec<String> {
    let rejected = world.rejected(count).await;
    let subjects: Vec<String> = (0..count).map(|number| format!("person {number}")).collect();
    let question = json!({"indices": indices(&rejected), "samples": 200,
        "record": {"subjects": subjects, "holds_days": 30}});
    let answer = world.post("/v1/explain", &question).await.ok();
    let ids = answer["recorded"].as_array().unwrap();
    assert_eq!(ids.len(), count);
    for (id, row) in ids.iter().zip(answer["rows"].as_array().unwrap()) {
        assert_eq!(id.is_null(), row["advice"]["status"] == "not_found");
        let Some(id) = id.as_str() else { continue };
        let entry = world.get(&format!("/v1/ledger/{id}")).await.ok();
        assert_eq!(entry["changes"], row["advice"]["changes"]);
    }
    ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_advice_stands_in_the_ledger() {
    let (_folder, world) = world().await;
    let ids = recorded(&world, 4).await;
    let list = world.get("/v1/ledger?status=open").await.ok();
    let entries = list["entries"].as_array().unwrap();
    assert_eq!(entries.iter().map(|entry| entry["id"].as_str().unwrap()).collect::<Vec<_>>(), ids);
    let entry = world.get(&format!("/v1/ledger/{}", ids[0])).await.ok();
    assert_eq!(entry["subject"], "person 0");
    assert_eq!(entry, entries[0]);
    assert_eq!(entry["status"], "open");
    assert!(entry["certificate"]["point"].is_array());
    assert_eq!(entry["request"]["method"]["method"], "trex-o");
    let by_model = world.get("/v1/ledger?model=german&limit=2").await.ok();
    assert_eq!(by_model["entries"].as_array().unwrap().len(), 2);
    let after = by_model["entries"][1]["sequence"].as_u64().unwrap();
    let next = world.get(&format!("/v1/ledger?after={after}")).await.ok();
    assert_eq!(next["entries"].as_array().unwrap().len(), ids.len() - 2);
    assert_eq!(world.get("/v1/ledger?model=nobody").await.ok()["entries"], json!([]));
    let verified = world.get("/v1/ledger/verify").await.ok();
    assert_eq!(verified["intact"], true);
    let head = verified["head"].as_str().unwrap();
    let again = world.get(&format!("/v1/ledger/verify?head={head}")).await.ok();
    assert_eq!(again["intact"], true);
    // Closing and forgetting.
    let close = format!("/v1/ledger/{}/close", ids[1]);
    assert_eq!(world.post(&close, &json!({"as": "fulfilled"})).await.status, 204);
    assert_eq!(world.post(&close, &json!({"as": "fulfilled"})).await.status, 409);
    let forgotten = world.post("/v1/ledger/forget", &json!({"subject": "person 0"})).await.ok();
    assert_eq!(forgotten["promises"].as_array().unwrap().len(), 1);
    let entry = world.get(&format!("/v1/ledger/{}", ids[0])).await.ok();
    assert_eq!((&entry["status"], entry.get("subject")), (&json!("forgotten"), None));
    assert_eq!(entry["changes"], json!([]));
    assert_eq!(world.get("/v1/ledger/verify").await.ok()["intact"], true);
    let nobody = "00000000-0000-7000-8000-000000000000";
    assert_eq!(world.get(&format!("/v1/ledger/{nobody}")).await.status, 404);
    let close = format!("/v1/ledger/{nobody}/close");
    assert_eq!(world.post(&close, &json!({"as": "withdrawn"})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_person_is_forgotten_in_jobs_too() {
    let (_folder, world) = world().await;
    let question = json!({"indices": [world.rejected(1).await[0].0], "wait": false,
        "record": {"subjects": ["someone"]}});
    let id = world.post("/v1/explain", &question).await.ok()["id"].as_str().unwrap().to_owned();
    assert_eq!(world.finished(&id).await["state"], "done");
    world.post("/v1/ledger/forget", &json!({"subject": "someone"})).await.ok();
    assert_eq!(world.get(&format!("/v1/jobs/{id}")).await.status, 404);
}

/// The ledger of a service, as another program opens it.
async fn beside(folder: &tempfile::TempDir) -> Ledger {
    let file = folder.path().join("tyrex.db").display().to_string();
    Ledger::new(Database::open_existing(&file).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_does_not_know_what_another_program_forgot() {
    let (folder, world) = world().await;
    let question = json!({"indices": [world.rejected(1).await[0].0], "wait": false,
        "record": {"subjects": ["someone"]}});
    let id = submit(&world, "/v1/explain", &question).await;
    assert_eq!(world.finished(&id).await["state"], "done");
    let audit =
        submit(&world, "/v1/audit", &json!({"candidates": ["german"], "wait": false})).await;
    assert_eq!(world.finished(&audit).await["state"], "done");
    let forgotten = beside(&folder).await.forget("someone").await.unwrap();
    assert_eq!(forgotten.promises.len(), 1);
    assert_eq!(forgotten.jobs.iter().map(ToString::to_string).collect::<Vec<_>>(), [&*id, &*audit]);
    for id in [&id, &audit] {
        assert_eq!(world.get(&format!("/v1/jobs/{id}/result")).await.status, 404);
        assert_eq!(world.get(&format!("/v1/jobs/{id}")).await.status, 404);
        assert_eq!(world.get(&format!("/v1/jobs/{id}/events")).await.status, 404);
        assert_eq!(world.delete(&format!("/v1/jobs/{id}")).await.status, 404);
    }
    assert_eq!(world.get("/v1/jobs").await.ok()["jobs"], json!([]));
    assert_eq!(world.engine.unfinished_jobs(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn audits_of_a_forgotten_person_go_and_others_stay() {
    let (_folder, world) = world().await;
    let audit = json!({"candidates": ["german"], "wait": false});
    let before = submit(&world, "/v1/audit", &audit).await;
    world.finished(&before).await;
    let ids = recorded(&world, 2).await;
    let with = submit(&world, "/v1/audit", &audit).await;
    world.finished(&with).await;
    let result = world.get(&format!("/v1/jobs/{with}/result")).await.text();
    assert!(result.contains(&ids[0]), "the test would find nothing");
    let forgotten = world.post("/v1/ledger/forget", &json!({"subject": "person 0"})).await.ok();
    assert_eq!(forgotten["jobs"], json!([with]));
    assert_eq!(world.get(&format!("/v1/jobs/{with}")).await.status, 404);
    assert_eq!(world.get(&format!("/v1/jobs/{before}")).await.status, 200);
    let after = submit(&world, "/v1/audit", &audit).await;
    world.finished(&after).await;
    let result = world.get(&format!("/v1/jobs/{after}/result")).await.text();
    assert!(!result.contains(&ids[0]) && result.contains(&ids[1]), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_forgotten_while_a_job_names_him() {
    let (folder, world) = world().await;
    let rejected = world.rejected(60).await;
    let subjects: Vec<String> = (0..rejected.len()).map(|row| format!("person {row}")).collect();
    let long = json!({"indices": indices(&rejected), "method": "trex-o", "samples": 4000,
        "wait": false, "record": {"subjects": subjects}});
    let id = submit(&world, "/v1/explain", &long).await;
    let subject = json!({"subject": "person 59"});
    let refused = world.post("/v1/ledger/forget", &subject).await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(refused.text().contains(&format!("job {id} is not finished")), "{}", refused.text());
    let refused = beside(&folder).await.forget("person 59").await;
    assert!(matches!(refused, Err(Error::Unfinished { .. })), "{refused:?}");
    world.delete(&format!("/v1/jobs/{id}")).await.ok();
    assert_eq!(world.finished(&id).await["state"], "cancelled");
    // Its row was not answered, and it stands in the question.
    let forgotten = world.post("/v1/ledger/forget", &subject).await.ok();
    assert_eq!((&forgotten["promises"], &forgotten["jobs"]), (&json!([]), &json!([id])));
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_are_judged_by_the_open_promises() {
    let (_folder, world) = world().await;
    let ids = recorded(&world, 6).await;
    // The model that gave the promises keeps them.
    let own = world
        .post("/v1/audit", &json!({"candidates": ["german"], "by": ["personal_status"]}))
        .await;
    let report = own.ok();
    assert_eq!(report["verdict"]["passes"], true, "{report}");
    assert_eq!(report["candidates"][0]["tally"]["kept"], ids.len());
    // Candidates in the request.
    let onnx = tokio::task::spawn_blocking(other_model).await.unwrap();
    let options = json!({"by": ["personal_status"], "allow": 1.0, "samples": 200}).to_string();
    let parts: [(&str, Option<&str>, &[u8]); 3] = [
        ("model", Some("models/new.onnx"), &onnx),
        ("model", Some("new.onnx"), &onnx),
        ("options", None, options.as_bytes()),
    ];
    let report = world.post_form("/v1/audit", &parts, "application/json").await.ok();
    let names: Vec<&Value> =
        report["candidates"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["new.onnx", "new.onnx (2)"]);
    assert_eq!(report["candidates"][0]["tally"]["promises"], ids.len());
    // Beside one that is here.
    for (options, expected) in [
        (json!({"candidates": ["german"], "allow": 1.0, "samples": 200}), Ok("german")),
        (json!({"candidates": ["nobody"]}), Err("options.candidates[0]")),
        (json!({"wait": false}), Err("options.wait")),
    ] {
        let options = options.to_string();
        let both = [parts[0], ("options", None, options.as_bytes())];
        let answer = world.post_form("/v1/audit", &both, "application/json").await;
        match expected {
            Ok(name) => {
                let report = answer.ok();
                let candidates = report["candidates"].as_array().unwrap();
                assert_eq!(candidates.len(), 2);
                assert!(candidates.iter().any(|candidate| candidate["name"] == name), "{report}");
            }
            Err(field) => assert_eq!(answer.json()["field"], field, "{}", answer.text()),
        }
    }
    let page = world.post_form("/v1/audit", &parts, "text/html").await;
    assert!(
        page.text().starts_with("<!doctype html>") || page.text().starts_with("<!DOCTYPE html>")
    );
    assert!(
        page.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'")
    );
    let bad: [(&str, Option<&str>, &[u8]); 1] = [("model", Some("bad.onnx"), b"nothing")];
    let refused = world.post_form("/v1/audit", &bad, "*/*").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["field"]), (422, &json!("model[0]")));
    // As a job.
    let job = world.post("/v1/audit", &json!({"candidates": ["german"], "wait": false})).await.ok();
    let id = job["id"].as_str().unwrap();
    assert_eq!(world.finished(id).await["state"], "done");
    let result = world.get(&format!("/v1/jobs/{id}/result")).await.ok();
    assert_eq!(result["verdict"]["passes"], true);
}

fn other_model() -> Vec<u8> {
    use std::ops::ControlFlow;
    use tyrex::data::catalogue::{Direction, Variant};
    use tyrex::{Explainer, Seed, data::Catalogue, model::TrainParams};
    let dataset =
        Catalogue::new(None).load("german", Variant::Product, Direction::Favourable).unwrap();
    let params = TrainParams { hidden: vec![8], epochs: 5, ..TrainParams::paper() };
    let go_on = |_: &_| ControlFlow::Continue(());
    Explainer::train(dataset, &params, Seed(9), go_on).unwrap().to_onnx().unwrap()
}
