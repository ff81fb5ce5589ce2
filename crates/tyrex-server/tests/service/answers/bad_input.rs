//! A table of questions that are wrong, each in one way.

use serde_json::{Value, json};

use crate::answers::world::world;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named() {
    let (_folder, world) = world().await;
    let rejected = world.rejected(2).await;
    let row = &rejected[0].1;
    let with = |name: &str, value: Value| {
        let mut row = row.clone();
        row[name] = value;
        json!({"rows": [rejected[1].1, row]})
    };
    let without = |name: &str| {
        let mut row = row.clone();
        row.as_object_mut().unwrap().remove(name);
        json!({"rows": [row]})
    };
    let own = |more: Value| {
        let mut question = json!({"indices": [rejected[0].0]});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        question
    };
    let stability = "/v1/stability";
    let explain = "/v1/explain";
    let cases: Vec<(&str, Value, u16, &str)> = vec![
        (stability, json!({}), 422, "rows"),
        (stability, json!({"rows": []}), 422, "rows"),
        (stability, json!({"indices": []}), 422, "indices"),
        (stability, json!({"rows": [row], "indices": [1]}), 422, "indices"),
        (stability, json!({"rows": row}), 422, "rows"),
        (stability, json!({"rows": [17]}), 422, "rows[0]"),
        (stability, json!({"rows": [row], "model": "nobody"}), 404, ""),
        (stability, json!({"indices": [-1]}), 422, "indices[0]"),
        (stability, json!({"indices": [0, 1_000_000]}), 422, "indices[1]"),
        (stability, with("age", json!("old")), 422, "rows[1].age"),
        (stability, with("age", json!(20.5)), 422, "rows[1].age"),
        (stability, with("age", json!(1e300)), 422, "rows[1].age"),
        (stability, with("age", json!(true)), 422, "rows[1].age"),
        (stability, with("age", json!(null)), 422, "rows[1].age"),
        (stability, with("age", json!([35])), 422, "rows[1].age"),
        (stability, with("age", json!({"years": 35})), 422, "rows[1].age"),
        (stability, with("purpose", json!("moon landing")), 422, "rows[1].purpose"),
        (stability, with("agee", json!(35)), 422, "rows[1].agee"),
        (stability, without("age"), 422, "rows[0].age"),
        (stability, own(json!({"terms": {"samples": 0}})), 422, "terms.samples"),
        (stability, own(json!({"terms": {"samples": 1_000_000_000}})), 422, "terms.samples"),
        (stability, own(json!({"terms": {"samples": "many"}})), 422, "terms.samples"),
        (stability, own(json!({"terms": {"sigma": -0.1}})), 422, "terms.sigma"),
        (stability, own(json!({"terms": {"colour": 1}})), 422, "terms.colour"),
        (stability, own(json!({"sampels": 1})), 422, "sampels"),
        (explain, own(json!({"models": 1_000_000_000_000_u64})), 422, "models"),
        ("/v1/survival", own(json!({"terms": {}})), 422, "terms"),
        ("/v1/certify", own(json!({"terms": {"probability": 2}})), 422, "probability"),
        (
            "/v1/certify",
            own(json!({"terms": {"theorem": {"samples": 0}}})),
            422,
            "terms.theorem.samples",
        ),
        (explain, own(json!({"method": "magic"})), 422, "method"),
        (explain, own(json!({"norm": "l3"})), 422, "norm"),
        (explain, own(json!({"tau": 1.5})), 422, "tau"),
        (explain, own(json!({"method": "min-cost", "tau": 0.8})), 422, "method"),
        (explain, own(json!({"keep": ["agee"]})), 422, "keep[0]"),
        (explain, own(json!({"vary": ["age", "x"]})), 422, "vary[1]"),
        (explain, own(json!({"budget": {"seconds": -1}})), 422, "budget.seconds"),
        (explain, own(json!({"budget": {"steps": 1.5}})), 422, "budget.steps"),
        (explain, own(json!({"seed": -1})), 422, "seed"),
        (explain, own(json!({"record": {}})), 422, "record.subjects"),
        (explain, own(json!({"record": {"subjects": []}})), 422, "record.subjects"),
        (explain, own(json!({"record": {"subjects": [""]}})), 422, "record.subjects[0]"),
        (
            explain,
            own(json!({"record": {"subjects": ["a"], "holds_days": 0}})),
            422,
            "record.holds_days",
        ),
        ("/v1/calibrate", json!({"validity": 1, "confidence": 0.9}), 422, "validity"),
        ("/v1/calibrate", json!({"validity": 0.9999, "confidence": 0.9}), 422, "models"),
        (
            "/v1/calibrate",
            json!({"validity": 0.9, "confidence": 0.9, "method": "nn"}),
            422,
            "method",
        ),
        ("/v1/calibrate", json!({"validity": 0.9, "confidence": 0.9, "taus": [2]}), 422, "taus"),
        (
            "/v1/calibrate",
            json!({"validity": 0.9, "confidence": 0.9, "factuals": 0}),
            422,
            "factuals",
        ),
        ("/v1/audit", json!({"candidates": []}), 422, "candidates"),
        ("/v1/audit", json!({"candidates": ["nobody"]}), 422, "candidates[0]"),
        ("/v1/audit", json!({"candidates": ["german", "german"]}), 422, "candidates[1]"),
        ("/v1/audit", json!({"candidates": ["german"], "allow": 2}), 422, "allow"),
        ("/v1/audit", json!({"candidates": ["german"], "by": ["age:x"]}), 422, "by[0]"),
        ("/v1/ledger/forget", json!({"subject": ""}), 422, "subject"),
        ("/v1/models/nobody/activate", json!({}), 404, ""),
    ];
    for (path, question, status, field) in cases {
        let answer = world.post(path, &question).await;
        let said = answer.text();
        assert_eq!(answer.status, status, "{path} {question}: {said}");
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{question}");
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{said}");
        if !field.is_empty() {
            assert_eq!(problem["field"], field, "{path} {question}: {said}");
        }
    }
    let hint = world.post(stability, &with("agee", json!(35))).await.json();
    assert!(hint["detail"].as_str().unwrap().contains("did you mean `age`?"), "{hint}");
    assert_eq!(world.get("/v1/jobs").await.ok()["jobs"], json!([]));
    assert_eq!(world.ledger.open_promises().await.unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_of_rows_is_refused() {
    let (_folder, world) = world().await;
    let row = world.rejected(1).await[0].1.to_string();
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let twice = row.replacen('{', "{\"age\": 1, ", 1);
    let many =
        format!("{{{}\"x\":1}}", (0..200_000).map(|n| format!("\"k{n}\":1,")).collect::<String>());
    let huge = row.replacen("\"age\":", "\"age\":1e999, \"x\":", 1);
    let nan = row.replacen("\"age\":", "\"age\":NaN, \"x\":", 1);
    let rows = vec!["{}"; 10_001].join(",");
    for (body, status) in [
        (String::new(), 400),
        ("{".to_owned(), 400),
        ("[]".to_owned(), 422),
        ("null".to_owned(), 422),
        (format!("{{\"rows\": [{row}], \"rows\": [{row}]}}"), 422),
        (format!("{{\"rows\": [{twice}]}}"), 422),
        (format!("{{\"rows\": {deep}}}"), 422),
        (format!("{{\"rows\": [{{\"age\": {deep}}}]}}"), 422),
        (format!("{{\"rows\": [{many}]}}"), 422),
        (format!("{{\"rows\": [{huge}]}}"), 422),
        (format!("{{\"rows\": [{nan}]}}"), 400),
        (format!("{{\"rows\": [{rows}]}}"), 422),
        (format!("{{\"rows\": [{row}]}} and more"), 400),
    ] {
        let started = std::time::Instant::now();
        let answer = world.post_text("/v1/stability", &body).await;
        let shown = &body[..body.len().min(80)];
        assert!([400, 422].contains(&answer.status.as_u16()), "{shown}: {}", answer.text());
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
        assert!(started.elapsed().as_secs() < 5, "{shown}");
    }
    for kind in ["text/plain", "application/xml", ""] {
        let request =
            crate::answers::world::request("POST", "/v1/stability").header("content-type", kind);
        let answer = world.send(request.body(axum::body::Body::from("{}")).unwrap()).await;
        assert_eq!(answer.status, 415, "{kind}: {}", answer.text());
    }
    for path in ["/v1/jobs/17", "/v1/ledger/17", "/v1/jobs/..%2f..%2fetc"] {
        let answer = world.get(path).await;
        assert!([400, 404].contains(&answer.status.as_u16()), "{path}: {}", answer.text());
    }
    for path in [
        "/v1/ledger?status=lost",
        "/v1/ledger?limit=0",
        "/v1/ledger?colour=red",
        "/v1/ledger/verify?head=xyz",
        "/v1/models/german/applicants?offset=-1",
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
}
