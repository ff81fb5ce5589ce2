//! Long work: followed, cancelled, interrupted and gone on with.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tyrex_server::engine::EngineConfig;

use crate::answers::world::{World, config, folder, indices, world, world_with};

/// The documents of a job's result.
pub(super) async fn result(world: &World, id: &str) -> Value {
    world.get(&format!("/v1/jobs/{id}/result")).await.ok()
}

pub(super) async fn submit(world: &World, path: &str, question: &Value) -> String {
    let answer = world.post(path, question).await;
    assert_eq!(answer.status, 202, "{}", answer.text());
    let job = answer.json();
    let id = job["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.headers["location"], format!("/v1/jobs/{id}"));
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_gives_the_same_advice_as_an_answer() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(20).await;
    let mut question = json!({"indices": indices(&rejected), "samples": 200});
    let now = world.post("/v1/explain", &question).await.ok();
    question["wait"] = json!(false);
    let id = submit(&world, "/v1/explain", &question).await;
    let stream = world.get(&format!("/v1/jobs/{id}/events")).await;
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let events = stream.text();
    assert!(events.contains("event: progress\n"), "{events}");
    assert!(events.trim_end().lines().rev().nth(1).unwrap().contains("event: done"), "{events}");
    let job = world.finished(&id).await;
    assert_eq!(
        (&job["state"], &job["done"], &job["total"]),
        (&json!("done"), &json!(20), &json!(20))
    );
    assert_eq!(result(&world, &id).await, now);
    assert_eq!(world.get("/v1/jobs").await.ok()["jobs"][0]["id"], id.as_str());
    assert_eq!(world.delete(&format!("/v1/jobs/{id}")).await.status, 204);
    assert_eq!(world.get(&format!("/v1/jobs/{id}")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_rows_than_one_waits_for_become_a_job() {
    let (_folder, world) = world().await;
    let rows: Vec<usize> = (0..65).collect();
    let id = submit(&world, "/v1/explain", &json!({"indices": rows, "method": "nn"})).await;
    assert_eq!(world.finished(&id).await["state"], "done");
    assert_eq!(result(&world, &id).await["rows"].as_array().unwrap().len(), 65);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_soon_and_has_no_result() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(60).await;
    let long = json!({"indices": indices(&rejected), "method": "trex-o", "samples": 4000,
        "wait": false});
    let running = submit(&world, "/v1/explain", &long).await;
    let waiting = submit(&world, "/v1/explain", &long).await;
    assert_eq!(world.delete(&format!("/v1/jobs/{waiting}")).await.ok()["state"], "cancelled");
    while world.get(&format!("/v1/jobs/{running}")).await.ok()["state"] != "running" {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(world.get(&format!("/v1/jobs/{running}/result")).await.status, 409);
    let started = Instant::now();
    world.delete(&format!("/v1/jobs/{running}")).await.ok();
    assert_eq!(world.finished(&running).await["state"], "cancelled");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(world.get(&format!("/v1/jobs/{running}/result")).await.status, 409);
}

/// The number of promises in the ledger.
async fn promises(world: &World) -> usize {
    world.ledger.open_promises().await.unwrap().len()
}

/// A service that ends in the middle, in an orderly way or not, goes on where it was: the same
/// bits, and every promise once.
#[test]
fn an_interrupted_job_goes_on_where_it_was() {
    let question = |rows: &[(usize, Value)]| {
        let subjects: Vec<String> = rows.iter().map(|(row, _)| format!("person {row}")).collect();
        json!({"indices": indices(rows), "samples": 300, "wait": false,
            "record": {"subjects": subjects, "holds_days": 30}})
    };
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let (_undisturbed, file) = folder();
    let expected = runtime().block_on(async {
        let world = World::open(&file, config()).await;
        world.trained().await;
        let rejected = world.rejected(50).await;
        let id = submit(&world, "/v1/explain", &question(&rejected)).await;
        assert_eq!(world.finished(&id).await["state"], "done");
        let result = result(&world, &id).await;
        let recorded = result["recorded"].as_array().unwrap();
        let found = recorded.iter().filter(|id| !id.is_null()).count();
        assert_eq!(promises(&world).await, found);
        world.close().await;
        result
    });
    for orderly in [true, false] {
        let (_folder, file) = folder();
        let first = runtime();
        let id = first.block_on(async {
            let world = World::open(&file, config()).await;
            world.trained().await;
            let rejected = world.rejected(50).await;
            let id = submit(&world, "/v1/explain", &question(&rejected)).await;
            let path = format!("/v1/jobs/{id}");
            while world.get(&path).await.ok()["done"].as_u64().unwrap() < 20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if orderly {
                let stream = tokio::spawn({
                    let (app, path) = (world.app.clone(), format!("{path}/events"));
                    async move {
                        use tower::ServiceExt as _;
                        let request = crate::answers::world::request("GET", &path);
                        let request = request.body(axum::body::Body::empty()).unwrap();
                        let body = app.oneshot(request).await.unwrap().into_body();
                        axum::body::to_bytes(body, usize::MAX).await.unwrap()
                    }
                });
                world.engine.park().await;
                assert_eq!(world.get(&path).await.ok()["state"], "parked");
                // Streams that follow the job end.
                tokio::time::timeout(Duration::from_secs(5), stream).await.unwrap().unwrap();
                let refused =
                    world.post("/v1/explain", &json!({"indices": [0], "wait": false})).await;
                assert_eq!(refused.status, 503);
            }
            id
        });
        // Nothing that runs hears of it.
        first.shutdown_background();
        runtime().block_on(async {
            let world = World::open(&file, config()).await;
            let job = world.finished(&id).await;
            assert_eq!(job["state"], "done", "{job}");
            let again = result(&world, &id).await;
            assert_eq!(again["rows"], expected["rows"], "orderly: {orderly}");
            let recorded = again["recorded"].as_array().unwrap();
            let found = recorded.iter().filter(|id| !id.is_null()).count();
            assert_eq!(promises(&world).await, found);
            assert!(world.ledger.verify(None).await.unwrap().is_sound());
            world.close().await;
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_have_a_number_and_a_time() {
    let keep = EngineConfig { jobs: 1, keep_jobs: Duration::ZERO, ..config() };
    let (folder, world) = world_with(keep).await;
    let rejected = world.rejected(60).await;
    let long = json!({"indices": indices(&rejected), "method": "trex-o", "samples": 4000,
        "wait": false});
    let id = submit(&world, "/v1/explain", &long).await;
    let refused = world.post("/v1/explain", &long).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.headers.contains_key("retry-after"));
    world.delete(&format!("/v1/jobs/{id}")).await.ok();
    world.finished(&id).await;
    world.close().await;
    // Finished jobs expire; the service also removes expired jobs when it starts.
    let world = World::open(&folder.path().join("tyrex.db"), config()).await;
    assert_eq!(world.get(&format!("/v1/jobs/{id}")).await.status, 200);
    world.close().await;
    let keep = EngineConfig { keep_jobs: Duration::ZERO, ..config() };
    let world = World::open(&folder.path().join("tyrex.db"), keep).await;
    let started = Instant::now();
    while world.get(&format!("/v1/jobs/{id}")).await.status != 404 {
        assert!(started.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_threshold_is_found_by_a_job() {
    let (_folder, world) = world().await;
    let question = json!({"validity": 0.5, "confidence": 0.5, "factuals": 4, "models": 4,
        "taus": [0.6, 0.8]});
    let id = submit(&world, "/v1/calibrate", &question).await;
    let job = world.finished(&id).await;
    assert_eq!(job["state"], "done", "{job}");
    assert_eq!(job["kind"], "calibrate");
    let calibration = result(&world, &id).await;
    assert_eq!(calibration["curve"].as_array().unwrap().len(), 2, "{calibration}");
    assert_eq!(calibration["goal"]["validity"], 0.5);
}
