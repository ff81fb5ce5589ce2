//! The description of the service and the page state the defaults of the library.

use serde_json::{Value, json};
use tyrex::explain::{Ask, Defaults};

use crate::support::german;

/// The number that a description ends with: "…; 0.95 if absent."
fn if_absent(field: &Value) -> Option<Value> {
    let text = field["description"].as_str()?.strip_suffix(" if absent.")?;
    let (_, said) = text.rsplit_once("; ")?;
    serde_json::from_str(said.split(' ').next()?).ok()
}

#[test]
fn the_description_states_the_defaults_of_the_library() {
    let server = german();
    let document = server.get("/openapi.json").json();
    let schemas = &document["components"]["schemas"];
    let usual = serde_json::to_value(Ask::default()).unwrap();
    let fields = schemas["Ask"]["properties"].as_object().unwrap();
    let mut stated = 0;
    for (name, field) in fields {
        if let Some(default) = field.get("default") {
            assert_eq!(*default, usual[name], "{name}");
            stated += 1;
        }
    }
    assert!(stated >= 5, "{fields:?}");
    let Defaults { goal, calibrated_rows, promise_days, .. } = Defaults::default();
    let seed = Ask::default().seed;
    for (question, field, default) in [
        ("CalibrateQuestion", "validity", json!(goal.validity)),
        ("CalibrateQuestion", "confidence", json!(goal.confidence)),
        ("CalibrateQuestion", "factuals", json!(calibrated_rows)),
        ("RecordQuestion", "holds_days", json!(promise_days)),
        ("CertifyQuestion", "seed", json!(seed)),
        ("AuditQuestion", "allow", json!(0)),
    ] {
        let own = &schemas[question]["properties"][field];
        assert_eq!(if_absent(own), Some(default), "{question}.{field}: {own}");
    }
    let terms = serde_json::to_value(Defaults::default()).unwrap();
    for (schema, terms) in [
        ("StabilityTerms", &terms["stability"]),
        ("CertificateTerms", &terms["certificate"]),
        ("CalibrationGoal", &terms["goal"]),
    ] {
        let fields = schemas[schema]["properties"].as_object();
        for (name, field) in fields.into_iter().flatten() {
            if let Some(default) = field.get("default") {
                // A field that is left out of documents by default is false or absent.
                let absent = [Value::Bool(false), Value::Null];
                let is_own = terms.get(name).map_or(absent.contains(default), |own| own == default);
                assert!(is_own, "{schema}.{name}: {default}");
            }
        }
    }
}

#[test]
fn the_playground_starts_with_the_defaults_of_the_library() {
    let server = german();
    let page = String::from_utf8(server.get("/playground.js").body).unwrap();
    let Defaults { robustness, .. } = Defaults::default();
    let terms = format!(
        "const terms = {{ samples: {}, sigma: {}, tau: {} }};",
        robustness.samples, robustness.sigma, robustness.tau
    );
    assert!(page.contains(&terms), "expected `{terms}`");
}
