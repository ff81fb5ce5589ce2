//! The service on PostgreSQL: the answers of a service on a file, and all is there after a restart.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tyrex_ledger::database::{self, Database};
use tyrex_ledger::ledger::{Ledger, Timestamp};
use tyrex_server::AppState;
use tyrex_server::access::{Role, Tokens};
use tyrex_server::config::Config;
use tyrex_server::engine::{Engine, EngineConfig};
use tyrex_server::serve::{Error, Service};

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

/// The connection of the server that holds a service's claim.
async fn holder(connection: &mut PgConnection) -> Option<i32> {
    let own = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted \
               AND objid = 'jobs'::regclass \
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    sqlx::query_scalar(own).fetch_optional(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_service_at_a_time_runs_on_postgresql() {
    let Some(server) = Server::of("one_service_at_a_time_runs_on_postgresql") else { return };
    let url = server.database("tyrex_claim").await;
    let mut config = Config::default();
    config.address.set_port(0);
    let database = Database::open(&url).await.unwrap();
    let service = Service::bind(&config, &database).await.unwrap();
    let again = Database::open(&url).await.unwrap();
    let second = Service::bind(&config, &again).await;
    assert!(matches!(second, Err(Error::Database(database::Error::Claimed { .. }))), "{second:?}");
    let ledger = Ledger::new(database.clone());
    let engine = EngineConfig { threads: 1, ..EngineConfig::default() };
    let engine = Engine::start(engine, database.clone(), ledger).await.unwrap();
    let state = AppState::new(config.clone(), database, Arc::clone(&engine)).unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(service.run(state, async { ended.await.unwrap_or_default() }));
    // A claim whose connection was lost is renewed.
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let first = holder(&mut connection).await.unwrap();
    let terminate = "SELECT pg_terminate_backend($1)";
    sqlx::query(terminate).bind(first).execute(&mut connection).await.unwrap();
    let started = Instant::now();
    while holder(&mut connection).await.is_none_or(|pid| pid == first) {
        assert!(started.elapsed() < Duration::from_secs(20), "nobody holds it");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(Service::bind(&config, &again).await.is_err());
    end.send(()).unwrap();
    running.await.unwrap().unwrap();
    // At once, without waiting for the server to notice anything.
    Service::bind(&config, &again).await.unwrap();
}
