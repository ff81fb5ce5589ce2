//! Many clients at once: answered together, and as if each were alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tyrex_server::engine::EngineConfig;

use crate::answers::world::{World, config, indices, world_with};

/// The answers to questions that are sent at the same time.
async fn at_once(world: &Arc<World>, path: &'static str, questions: Vec<Value>) -> Vec<Value> {
    let asked: Vec<_> = questions
        .into_iter()
        .map(|question| {
            let world = Arc::clone(world);
            tokio::spawn(async move { world.post(path, &question).await.ok()["rows"].clone() })
        })
        .collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.unwrap());
    }
    answers
}

/// Keeps the only thread at work until the task that is returned is aborted.
async fn keep_busy(world: &Arc<World>, rejected: &[(usize, Value)]) -> JoinHandle<()> {
    let long = json!({"indices": indices(rejected), "method": "trex-o", "samples": 20_000});
    // The thread may still be busy after its last answer was sent.
    while world.engine.threads().1 > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let other = Arc::clone(world);
    let working = tokio::spawn(async move {
        other.post("/v1/explain", &long).await;
    });
    while world.engine.threads().1 == 0 {
        assert!(!working.is_finished(), "not long enough");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    working
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_do_not_depend_on_who_else_asks() {
    let (_folder, world) = world_with(EngineConfig { threads: 1, ..config() }).await;
    let world = Arc::new(world);
    let rejected = world.rejected(24).await;
    for (path, count, more) in [
        ("/v1/stability", 24, json!({"terms": {"samples": 200}})),
        ("/v1/survival", 24, json!({})),
        ("/v1/certify", 12, json!({"terms": {"theorem": {"samples": 100}}})),
        ("/v1/explain", 12, json!({"samples": 200})),
    ] {
        let question = |place: usize| {
            let (_, features) = &rejected[place];
            let mut question = more.clone();
            question["rows"] = json!([features]);
            question
        };
        let mut alone = Vec::new();
        for place in 0..count {
            alone.push(world.post(path, &question(place)).await.ok()["rows"].clone());
        }
        // Requests that arrive while the thread is busy wait, and are answered in one batch.
        let working = keep_busy(&world, &rejected).await;
        let (pieces, batches) = world.engine.answered();
        let together = at_once(&world, path, (0..count).map(question).collect());
        let all_wait = async {
            while world.engine.queue_length() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            working.abort();
        };
        let (together, ()) = tokio::join!(together, all_wait);
        let after = world.engine.answered();
        assert_eq!(after.0 - pieces, count as u64, "{path}");
        assert!(after.1 - batches < count as u64, "{path}: nothing was answered together");
        assert_eq!(together, alone, "{path}");
        // One question about all rows, too.
        let mut all = more.clone();
        let values: Vec<&Value> = rejected[..count].iter().map(|(_, features)| features).collect();
        all["rows"] = json!(values);
        let all = world.post(path, &all).await.ok();
        for (place, row) in all["rows"].as_array().unwrap().iter().enumerate() {
            let mut row = row.clone();
            row["row"] = json!(0);
            assert_eq!(json!([row]), alone[place], "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_wrong_does_not_spoil_it_for_others() {
    let (_folder, world) = world_with(EngineConfig { threads: 1, ..config() }).await;
    let world = Arc::new(world);
    let rejected = world.rejected(8).await;
    let good = |place: usize| json!({"rows": [rejected[place].1], "terms": {"samples": 100}});
    let mut alone = Vec::new();
    for place in 0..8 {
        alone.push(world.post("/v1/stability", &good(place)).await.ok());
    }
    // `gamma` cannot be negative, which only the library notices.
    let bad = json!({"rows": [rejected[0].1], "terms": {"gamma": {"given": -1.0}}});
    let asked: Vec<_> = (0..8)
        .flat_map(|place| [good(place), bad.clone()])
        .map(|question| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.post("/v1/stability", &question).await })
        })
        .collect();
    for (index, answer) in asked.into_iter().enumerate() {
        let answer = answer.await.unwrap();
        if index % 2 == 0 {
            assert_eq!(answer.ok(), alone[index / 2]);
        } else {
            assert_eq!(answer.status, 422, "{}", answer.text());
            assert_eq!(answer.json()["field"], "gamma");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_said_at_once() {
    let (_folder, world) = world_with(EngineConfig { threads: 1, questions: 1, ..config() }).await;
    let world = Arc::new(world);
    let rejected = world.rejected(40).await;
    let working = keep_busy(&world, &rejected).await;
    let started = Instant::now();
    let refused = world.post("/v1/stability", &json!({"indices": [rejected[0].0]})).await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(started.elapsed() < Duration::from_millis(200));
    let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(refused.headers["content-type"], "application/problem+json");
    working.abort();
    // The place is free again when the work is given up.
    let started = Instant::now();
    while world.post("/v1/stability", &json!({"indices": [rejected[0].0]})).await.status != 200 {
        assert!(started.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_works_for_a_client_who_has_gone_away() {
    let (_folder, world) = world_with(EngineConfig { threads: 1, ..config() }).await;
    let world = Arc::new(world);
    let rejected = world.rejected(60).await;
    // As long as this takes to the end.
    let question = json!({"indices": indices(&rejected[..8]), "method": "trex-o", "samples": 4000});
    let started = Instant::now();
    world.post("/v1/explain", &question).await.ok();
    let whole = started.elapsed().mul_f64(60.0 / 8.0);
    let working = keep_busy(&world, &rejected).await;
    working.abort();
    let started = Instant::now();
    while world.engine.threads().1 > 0 || world.engine.queue_length() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(started.elapsed() < whole / 4, "{:?} of {whole:?}", started.elapsed());
}
