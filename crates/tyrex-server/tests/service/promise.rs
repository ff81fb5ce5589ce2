//! The default answer: advice found over search models, with a promise by fresh ones.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tyrex::data::Catalogue;
use tyrex::data::catalogue::{Direction, Variant};
use tyrex::explain::{Ask, Part, PortfolioTerms, SERVED_MODELS};
use tyrex::model::TrainParams;
use tyrex::{Explainer, Seed};

use crate::support::{eventually, start};

/// The service trains, searches and certifies as the library does for the same question.
#[test]
fn the_default_answer_has_a_promise_and_is_the_librarys() {
    let server = start(|setting| {
        setting.engine.dataset = Some("german".to_owned());
        setting.engine.ensemble = SERVED_MODELS;
    });
    let dataset = Catalogue::new(None);
    let dataset = dataset.load("german", Variant::Product, Direction::Favourable).expect("data");
    let go_on = |_: &_| std::ops::ControlFlow::Continue(());
    let params = TrainParams::default();
    let explainer = Explainer::train(dataset, &params, Seed(0), go_on).expect("a network");
    let applicant = explainer.applicants().rejected(Part::Test).swap_remove(0);
    let question = json!({ "indices": [applicant.row] });

    // Until all models are trained, the answer is to come again.
    let early = server.post("/v1/explain", &question);
    if early.status != 200 {
        early.problem(503);
        assert!(early.header("retry-after").is_some());
    }
    let model = || server.get("/v1/models/german").json();
    let started = Instant::now();
    while model()["ensemble"]["state"] != "ready" {
        assert!(started.elapsed() < Duration::from_mins(2), "{}", model()["ensemble"]);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(model()["methods"][0]["name"], "trex-e");
    assert_eq!(model()["promise"]["usual"], 0.9);
    assert_eq!(model()["ensemble"]["wanted"], 161);

    let answer = server.post("/v1/explain", &question).json();
    let advice = &answer["rows"][0]["advice"];
    assert_eq!(advice["promise"]["asked"], 0.9);
    assert_eq!(advice["promise"]["models"], 61);
    let answered = explainer
        .answer(&[applicant], &Ask::default(), None, |_| std::ops::ControlFlow::Continue(()))
        .expect("an answer");
    let rows = answered.rows(1, |_| std::ops::ControlFlow::Continue(())).expect("a document");
    let table = explainer.reference().table();
    let warnings = explainer.warnings(answered.adviser.request(), None);
    let own = answered.document(rows, &PortfolioTerms::default(), table, warnings);
    let own = own.expect("a document");
    // Through its text, as over HTTP: 32-bit numbers have other digits as JSON values.
    let own: Value =
        serde_json::from_str(&serde_json::to_string(&own).expect("JSON")).expect("JSON");
    assert!(own["portfolio"]["sentence"].is_string(), "{own}");
    let without_name = |mut answer: Value| {
        answer.as_object_mut().expect("an object").remove("model");
        answer
    };
    assert_eq!(without_name(answer.clone()), own);
    // A job has the same document.
    let later = json!({ "indices": question["indices"], "wait": false });
    let job = server.post("/v1/explain", &later).json();
    let job = format!("/v1/jobs/{}", job["id"].as_str().expect("an id"));
    eventually("the job is done", || server.get(&job).json()["state"] == "done");
    assert_eq!(without_name(server.get(&format!("{job}/result")).json()), own);

    // Only fresh models count; those of the search are beside them.
    let survival = server.post("/v1/survival", &question).json();
    assert_eq!(survival["models"], 61);
    assert_eq!(survival["rows"][0]["scores"].as_array().map(Vec::len), Some(61));
    assert_eq!(survival["rows"][0]["searched"].as_array().map(Vec::len), Some(100));

    // 61 models cannot show more than 0.952.
    let more = json!({ "indices": [answer["rows"][0]["row"]], "promise": 0.99 });
    server.post("/v1/explain", &more).problem(422);
    let plain = json!({ "indices": [answer["rows"][0]["row"]], "method": "trex-o" });
    let plain = server.post("/v1/explain", &plain).json();
    assert!(plain["request"]["promise"].is_null());
    assert!(plain["rows"][0]["advice"]["promise"]["asked"].is_null());
}
