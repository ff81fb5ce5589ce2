//! Usual advice, its path, and what is said where there is none.

use serde_json::{Value, json};

use crate::answers::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn advice_is_as_usual_as_asked_and_has_a_path_through_usual_rows() {
    let (_folder, world) = world().await;
    let rows: Vec<Value> = world.rejected(6).await.into_iter().map(|(_, row)| row).collect();
    let question = |plausible: f64| json!({"rows": rows, "method": "min-cost", "plausible": plausible, "path": true});
    let answer = world.post("/v1/explain", &question(0.2)).await.ok();
    assert_eq!(answer["request"]["plausible"], 0.2);
    let mut found = 0;
    for row in answer["rows"].as_array().unwrap() {
        let advice = &row["advice"];
        assert!(row["plausibility"].as_str().is_some_and(|own| own.ends_with('.')), "{row}");
        if advice["status"] == "found" {
            found += 1;
            assert!(advice["usual"].as_f64().unwrap() >= 0.2, "{advice}");
            let steps = advice["path"]["steps"].as_array().unwrap();
            assert!(steps.iter().all(|step| step["usual"].as_f64().unwrap() >= 0.1));
            assert_eq!(steps.last().unwrap()["usual"], advice["usual"]);
        }
    }
    assert!(found > 0);
    // So usual that robust advice is rare.
    let question = json!({"rows": rows, "method": "trex-o", "tau": 0.95, "plausible": 0.97});
    let answer = world.post("/v1/explain", &question).await.ok();
    let mut apart = 0;
    for row in answer["rows"].as_array().unwrap() {
        let advice = &row["advice"];
        if advice["status"] == "not_found" && advice["reason"] == "implausible" {
            let not_usual = &advice["apart"]["not_usual"];
            assert!(not_usual["p_value"].as_f64().unwrap() < 0.97, "{advice}");
            assert_eq!(row["plausibility"], advice["apart"]["sentence"]);
            apart += 1;
        }
    }
    assert!(apart > 0, "{answer}");
    let refused = json!({"rows": rows, "method": "min-cost", "plausible": 1.5});
    let refused = world.post("/v1/explain", &refused).await;
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("plausible"), "{}", refused.text());
}
