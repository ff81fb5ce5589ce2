//! Two moons.

use serde_json::{Value, json};

use crate::answers::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn the_plane_is_drawn_and_walked() {
    let (_folder, world) = world().await;
    let question = json!({"samples": 50, "sigma": 0.1, "resolution": 20, "shown": 2});
    let map = world.post("/v1/playground/map", &question).await.ok();
    let maps = map["maps"].as_array().unwrap();
    assert_eq!(maps.len(), 4);
    assert!(maps.iter().all(|map| map["values"].as_array().unwrap().len() == 400));
    assert!(!map["points"].as_array().unwrap().is_empty());
    // From the upper moon, which is not the favourable one.
    let upper = map["points"].as_array().unwrap().iter().find(|point| point[2] == json!(false));
    let at = [&upper.unwrap()[0], &upper.unwrap()[1]];
    let question = json!({"at": at, "samples": 100, "sigma": 0.1, "tau": 0.6});
    let answer = world.post("/v1/playground/paths", &question).await.ok();
    assert!(answer["score"].as_f64().unwrap() < 0.5, "{answer}");
    let paths = answer["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 9);
    assert!(paths.iter().all(|path| path["method"] != "trex-e"), "it needs models");
    let trex = paths.iter().find(|path| path["method"] == "trex-i").unwrap();
    assert_eq!(trex["status"], "found");
    assert!(trex["path"].as_array().unwrap().len() > 1);
    assert!(trex["stability"].as_f64().unwrap() > 0.5, "{trex}");
    assert!(trex["survival"].as_u64().unwrap() <= answer["models"].as_u64().unwrap());
    for (question, field) in [
        (json!({"at": [0, 0], "samples": 0, "sigma": 0.1, "tau": 0.6}), "samples"),
        (json!({"at": [0, 99], "samples": 10, "sigma": 0.1, "tau": 0.6}), "at[1]"),
        (json!({"at": [0, 0], "samples": 10, "sigma": -1, "tau": 0.6}), "sigma"),
        (json!({"at": [0, 0], "samples": 10, "sigma": 0.1, "tau": 1}), "tau"),
        (
            json!({"at": [0, 0], "samples": 10, "sigma": 0.1, "tau": 0.6, "methods": ["magic"]}),
            "methods[0]",
        ),
        (
            json!({"at": [0, 0], "samples": 10, "sigma": 0.1, "tau": 0.6,
                "methods": ["nn", "trex-e"]}),
            "methods[1]",
        ),
        (json!({"at": [0], "samples": 10, "sigma": 0.1, "tau": 0.6}), "at"),
    ] {
        let answer = world.post("/v1/playground/paths", &question).await;
        assert_eq!(answer.status, 422, "{question}");
        assert_eq!(answer.json()["field"], Value::from(field), "{question} {}", answer.text());
    }
    let large = json!({"samples": 50, "sigma": 0.1, "resolution": 101, "shown": 2});
    assert_eq!(world.post("/v1/playground/map", &large).await.json()["field"], "resolution");
}
