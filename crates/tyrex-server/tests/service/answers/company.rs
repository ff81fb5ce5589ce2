//! The answer for an applicant has the same bits alone, among 10 or 200 others, in any order, in
//! one call or in many, by every method of the catalogue.

use serde_json::{Value, json};
use tyrex::counterfactual::MethodSpec;

use crate::answers::world::{World, world};

/// The answers for rows, without the number of the row in the question. Few steps and neighbours
/// keep the test quick.
async fn answers(world: &World, method: &str, rows: &[&Value]) -> Vec<Value> {
    let question = json!({"rows": rows, "method": method, "certify": false, "relax": false,
        "budget": {"steps": 6}});
    let answer = world.post("/v1/explain", &question).await.ok();
    let document = match answer["id"].as_str() {
        // A large question becomes a job.
        Some(id) => {
            assert_eq!(world.finished(id).await["state"], "done");
            world.get(&format!("/v1/jobs/{id}/result")).await.ok()
        }
        None => answer,
    };
    let mut answers = document["rows"].as_array().unwrap().clone();
    answers.iter_mut().for_each(|answer| answer["row"] = Value::Null);
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn other_applicants_change_no_answer_of_any_method() {
    let (_folder, world) = world().await;
    // Rejected applicants first, then others up to 201.
    let rejected = world.rejected(201).await;
    let all = world.get("/v1/models/german/applicants?rejected=false&limit=201").await.ok();
    let others = all["applicants"].as_array().unwrap().iter().map(|each| &each["features"]);
    let own = rejected.iter().map(|(_, features)| features);
    let rows: Vec<&Value> = own.chain(others).take(201).collect();
    assert_eq!(rows.len(), 201, "as many as the test needs");
    let reversed: Vec<&Value> = rows.iter().rev().copied().collect();
    let mut found = 0;
    let methods = MethodSpec::all();
    for method in methods.iter().filter(|method| !method.needs_models()).map(MethodSpec::name) {
        let all = answers(&world, method, &rows).await;
        found += all.iter().filter(|answer| answer["advice"]["status"] == "found").count();
        let mut backwards = answers(&world, method, &reversed).await;
        backwards.reverse();
        assert_eq!(backwards, all, "{method}: 201 rows in reverse order");
        for start in [0, 77] {
            let ten = &rows[start..start + 10];
            assert_eq!(answers(&world, method, ten).await, all[start..start + 10], "{method}");
        }
        for place in [5, 200] {
            let alone = answers(&world, method, &rows[place..=place]).await;
            assert_eq!(alone, all[place..=place], "{method}: row {place} alone");
        }
    }
    assert!(found > 4 * rejected.len(), "{found} answers are too few to compare");
}
