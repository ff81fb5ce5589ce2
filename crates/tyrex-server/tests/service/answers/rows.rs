//! Stability, survival, certificates and advice for rows.

use serde_json::{Value, json};

use crate::answers::world::{MODELS, indices, world};

#[tokio::test(flavor = "multi_thread")]
async fn rows_by_value_and_by_index_are_the_same_rows() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(5).await;
    let values: Vec<&Value> = rejected.iter().map(|(_, features)| features).collect();
    for path in ["/v1/stability", "/v1/survival", "/v1/certify"] {
        let by_index = world.post(path, &json!({"indices": indices(&rejected)})).await.ok();
        let by_value = world.post(path, &json!({"rows": values})).await.ok();
        let rows = by_index["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 5, "{path}");
        for (place, (own, sent)) in
            rows.iter().zip(by_value["rows"].as_array().unwrap()).enumerate()
        {
            assert_eq!(own["row"], rejected[place].0, "{path}");
            assert_eq!(sent["row"], place, "{path}");
            let mut own = own.clone();
            own["row"] = sent["row"].clone();
            assert_eq!(own, *sent, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn survival_is_what_every_retrained_model_says() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(20).await;
    let answer = world.post("/v1/survival", &json!({"indices": indices(&rejected)})).await.ok();
    assert_eq!(answer["models"], MODELS);
    for row in answer["rows"].as_array().unwrap() {
        let scores: Vec<f64> =
            row["scores"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
        assert_eq!(scores.len(), MODELS);
        assert!(row["score"].as_f64().unwrap() < 0.5);
        assert_eq!(row["survives"], scores.iter().filter(|&&score| score >= 0.5).count());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn advice_comes_with_a_sentence_and_a_certificate() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(3).await;
    let question = json!({"indices": indices(&rejected), "keep": ["age"], "tau": 0.7});
    let answer = world.post("/v1/explain", &question).await.ok();
    assert_eq!(answer["model"], "german");
    assert_eq!(answer["request"]["method"]["method"], "trex-o");
    assert!(answer.get("recorded").is_none());
    let rows = answer["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let advice = &row["advice"];
        assert_eq!(advice["status"], "found", "{row}");
        assert!(advice["score"].as_f64().unwrap() >= 0.5);
        assert!(advice["stability"].as_f64().unwrap() >= 0.7);
        let changes = advice["changes"].as_array().unwrap();
        assert!(changes.iter().all(|change| change["feature"] != "age"));
        let sentence = row["sentence"].as_str().unwrap();
        for change in changes {
            assert!(sentence.contains(change["feature"].as_str().unwrap()), "{sentence}");
        }
        let certificate = &advice["certificate"];
        assert_eq!(certificate["retraining"]["models"].as_array().unwrap().len(), MODELS);
        assert!(certificate["sentence"].is_string(), "{certificate}");
        // The advised row is accepted, and it is the certified row.
        let again = world.post("/v1/stability", &json!({"rows": [advice["counterfactual"]]})).await;
        assert_eq!(again.ok()["rows"][0]["score"], advice["score"]);
        let certified =
            world.post("/v1/certify", &json!({"rows": [advice["counterfactual"]]})).await.ok();
        assert_eq!(certified["rows"][0]["certificate"]["point"], certificate["point"]);
        // Nobody said who chose the row, so it is not certified by the retrained models, which
        // `/v1/survival` shows to anybody; the record of the answer, or the user, says it.
        let tier = |answer: &Value| {
            let tiers = answer["rows"][0]["certificate"]["tiers"].as_array().unwrap();
            tiers.iter().find(|tier| tier["tier"] == "ensemble").unwrap().clone()
        };
        let part = |answer: &Value| tier(answer)["assumptions"][1]["standing"].clone();
        assert_eq!(part(&certified), "unknown");
        assert_ne!(tier(&certified)["verdict"], "certified");
        let searched = answer["searched"].clone();
        assert_eq!(searched["models"], 0, "{searched}");
        for (own, standing) in [
            (json!({"searched": searched}), "declared"),
            (json!({"steered": false}), "declared"),
            (json!({"steered": true}), "broken"),
        ] {
            let mut question = own;
            question["rows"] = json!([advice["counterfactual"]]);
            let answer = world.post("/v1/certify", &question).await.ok();
            assert_eq!(part(&answer), standing, "{question}");
        }
        // A further look is certified at a higher confidence.
        let row = json!([advice["counterfactual"]]);
        let again = json!({"rows": row, "steered": false, "looks": 2});
        let again = world.post("/v1/certify", &again).await.ok();
        assert_eq!(tier(&again)["confidence"], 0.9875);
        let once = world.post("/v1/certify", &json!({"rows": row, "steered": false})).await.ok();
        assert!(tier(&again)["probability"].as_f64() < tier(&once)["probability"].as_f64());
    }
    let plain = json!({"indices": indices(&rejected), "keep": ["age"], "tau": 0.7,
        "certify": false});
    let plain = world.post("/v1/explain", &plain).await.ok();
    assert_eq!(plain["rows"][0]["advice"]["certificate"], Value::Null);
    assert_eq!(plain["rows"][0]["advice"]["counterfactual"], rows[0]["advice"]["counterfactual"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_made_anew_and_compared() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(3).await;
    let mut answer = world.post("/v1/certify", &json!({"indices": indices(&rejected)})).await.ok();
    let verify = |document: &Value| json!({"certificates": document});
    let verified = world.post("/v1/certify/verify", &verify(&answer)).await.ok();
    assert_eq!(verified["confirmed"], 3, "{verified}");
    assert_eq!(verified["certificates"][1]["row"], rejected[1].0);
    // Changed fields are named.
    answer["rows"][1]["certificate"]["tiers"][2]["valid"] = 1_000_000.into();
    let verified = world.post("/v1/certify/verify", &verify(&answer)).await.ok();
    assert_eq!(verified["confirmed"], 2, "{verified}");
    let wrong = &verified["certificates"][1];
    assert_eq!(
        (&wrong["confirmed"], &wrong["place"]),
        (&false.into(), &"rows.1.certificate".into())
    );
    assert_eq!(wrong["differences"][0]["field"], "tiers.2.valid");
    // The service refuses a document that is not a certificate or asks for too much work.
    let mut huge = answer["rows"][0]["certificate"].clone();
    huge["terms"]["theorem"]["samples"] = (1_u64 << 40).into();
    for document in [json!([]), json!("x"), json!({"digest": 1, "tiers": []}), huge] {
        let refused = world.post("/v1/certify/verify", &verify(&document)).await;
        assert_eq!(refused.status, 422, "{document}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_without_advice_hears_which_rule_stands_in_the_way() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(1).await;
    let question = json!({"indices": indices(&rejected), "vary": ["own_telephone"]});
    let answer = world.post("/v1/explain", &question).await.ok();
    let advice = &answer["rows"][0]["advice"];
    assert_eq!(advice["status"], "not_found", "{answer}");
    assert!(advice["relaxations"]["tried"].as_u64().unwrap() > 0, "{advice}");
    assert!(answer["rows"][0]["sentence"].as_str().unwrap().starts_with("No advice"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_service_says_is_what_the_library_says() {
    use std::ops::ControlFlow;
    use tyrex::data::catalogue::{Direction, Variant};
    use tyrex::explain::{Explainer, StabilityTerms};
    use tyrex::{Seed, data::Catalogue, model::TrainParams};

    let (_folder, world) = world().await;
    let dataset =
        Catalogue::new(None).load("german", Variant::Product, Direction::Favourable).unwrap();
    let go_on = |_: &_| ControlFlow::Continue(());
    let explainer = Explainer::train(dataset, &TrainParams::default(), Seed(0), go_on).unwrap();
    let rejected = explainer.applicants().rejected(explainer.reference().applicants());
    let shown = world.get("/v1/models/german").await.ok();
    assert_eq!(shown["fingerprint"], explainer.fingerprint().to_string());
    assert_eq!(shown["rejected"], rejected.len());
    let terms = StabilityTerms { samples: 300, sigma: 0.2, ..StabilityTerms::default() };
    let expected = explainer
        .stability(&terms)
        .unwrap()
        .read(&rejected[..8], || ControlFlow::Continue(()))
        .unwrap();
    let rows: Vec<usize> = expected.iter().map(|row| row.row).collect();
    let question = json!({"indices": rows, "terms": {"samples": 300, "sigma": 0.2}});
    let answer = world.post("/v1/stability", &question).await.ok();
    // Through text, as numbers of 32 bits are written.
    let expected = serde_json::to_string(&expected).unwrap();
    assert_eq!(answer["rows"], serde_json::from_str::<Value>(&expected).unwrap());
}
