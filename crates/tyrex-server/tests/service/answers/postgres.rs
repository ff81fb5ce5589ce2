//! The service on PostgreSQL: the answers of a service on a file, and all is there after a restart.

use serde_json::json;
use tyrex_server::access::{Role, Tokens};
use tyrex_server::database::Database;
use tyrex_server::ledger::Timestamp;

use super::jobs::{result, submit};
use super::world::{World, config, indices, world};
use crate::common::postgres::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_service_on_postgresql_answers_as_on_a_file_and_forgets_nothing() {
    let name = "a_service_on_postgresql_answers_as_on_a_file_and_forgets_nothing";
    let Some(server) = Server::of(name) else { return };
    let url = server.database("tyrex_service").await;
    let first = World::open_database(&url, config()).await;
    first.trained().await;
    let (_folder, on_file) = world().await;
    let rejected = first.rejected(6).await;
    let subjects: Vec<String> = rejected.iter().map(|(row, _)| format!("person {row}")).collect();
    let question = json!({"indices": indices(&rejected), "samples": 200,
        "record": {"subjects": subjects, "holds_days": 30}});
    let advice = first.post("/v1/explain", &question).await.ok();
    assert_eq!(advice["rows"], on_file.post("/v1/explain", &question).await.ok()["rows"]);
    let as_job = json!({"indices": indices(&rejected), "samples": 200, "wait": false});
    let id = submit(&first, "/v1/explain", &as_job).await;
    assert_eq!(first.finished(&id).await["state"], "done");
    assert_eq!(result(&first, &id).await["rows"], advice["rows"]);
    let models = first.get("/v1/models").await.ok();
    let tokens = Tokens::new(Database::open(&url).await.unwrap());
    let kept = tokens.create(Role::Read, "kept", None).await.unwrap();
    let revoked = tokens.create(Role::Admin, "revoked", None).await.unwrap();
    tokens.revoke(&revoked.token.id).await.unwrap();
    first.close().await;

    let second = World::open_database(&url, config()).await;
    second.trained().await;
    assert_eq!(second.get("/v1/models").await.ok(), models);
    assert_eq!(result(&second, &id).await["rows"], advice["rows"]);
    let promises = advice["recorded"].as_array().unwrap().iter().filter(|id| !id.is_null());
    let listed = second.get("/v1/ledger?status=open").await.ok();
    assert!(promises.eq(listed["entries"].as_array().unwrap().iter().map(|entry| &entry["id"])));
    assert_eq!(second.get("/v1/ledger/verify").await.ok()["intact"], true);
    let audit = second.post("/v1/audit", &json!({"candidates": ["german"]})).await.ok();
    assert_eq!(audit["verdict"]["passes"], true, "{audit}");
    let mut good = tokens.list().await.unwrap();
    good.retain(|token| token.is_good(Timestamp::now()));
    assert_eq!(good, [kept.token]);
    second.close().await;
}
