//! The table of roles: the test calls every operation with every role, and searches the bytes of
//! the answer for the values of stored applicants.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tyrex::data::{Encoder, Schema};
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex::model::{Activation, Dense, Mlp, Output};
use tyrex_server::access::Role;

use crate::support::{Answer, Server, start};

/// The income of one stored applicant. No other number is like it, and it is exact as `f32`.
const INCOME: f32 = 31_337.125;
/// Of whom the ledger speaks.
const SUBJECT: &str = "canary-of-the-ledger";
/// The row of that applicant.
const ROW: usize = 5;
const MODEL: &str = "canary";
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// Numbers as they are, so that the coordinates of a point are the values of the row.
const SCHEMA: &str = r#"
format_version = 1

[label]
column = "paid"
favourable = "yes"
unfavourable = "no"

[scaling]
method = "none"

[[feature]]
name = "income"
kind = "numeric"

[[feature]]
name = "age"
kind = "integer"
"#;

/// Twenty people; the applicant is neither the poorest nor the richest, since the least and the
/// largest value of a feature are part of a model's description.
fn rows() -> String {
    let mut csv = String::from("income,age,paid\n");
    for row in 0..20_u16 {
        let income = if usize::from(row) == ROW { INCOME } else { 5000.0 * f32::from(row + 1) };
        let paid = if row < 10 { "no" } else { "yes" };
        csv += &format!("{income},{},{paid}\n", 20 + row);
    }
    csv
}

/// It accepts incomes from 50,000 on.
fn onnx() -> Vec<u8> {
    onnx_of(SCHEMA)
}

/// A network of one layer that looks at the first of a schema's numbers.
pub(crate) fn onnx_of(schema: &str) -> Vec<u8> {
    let schema = Schema::from_toml(schema).unwrap();
    let mut weights = vec![0.0; schema.features.len()];
    weights[0] = 0.001;
    let layer = Dense { weights, bias: vec![-50.0], activation: Activation::Identity };
    let inputs = schema.features.len();
    let network = Mlp::new(inputs, &[layer], Output::Sigmoid { favourable: true }).unwrap();
    let encoder = Encoder::fit(&schema, &[]).unwrap();
    write(&network, &ExportMetadata::of(&schema, &encoder).unwrap())
}

/// A request: the operation as it is declared, the path that is asked, and the body.
struct Call {
    operation: &'static str,
    path: String,
    body: Option<Value>,
}

fn call(operation: &'static str, path: impl Into<String>, body: Option<Value>) -> Call {
    Call { operation, path: path.into(), body }
}

struct Asker<'a> {
    server: &'a Server,
    token: Option<String>,
}

impl Asker<'_> {
    fn of(server: &Server, role: Option<Role>) -> Asker<'_> {
        Asker { server, token: role.map(|role| server.token(role, None).text) }
    }

    fn send(&self, method: &str, path: &str, kind: &str, accept: &str, body: &[u8]) -> Answer {
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut headers = vec![("accept", accept)];
        if !kind.is_empty() {
            headers.push(("content-type", kind));
        }
        if let Some(bearer) = &bearer {
            headers.push(("authorization", bearer));
        }
        self.server.send(method, path, &headers, body)
    }

    fn ask(&self, call: &Call, accept: &str) -> Answer {
        let method = call.operation.split(' ').next().unwrap();
        let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
        let kind = if call.body.is_some() { "application/json" } else { "" };
        self.send(method, &call.path, kind, accept, body.as_bytes())
    }

    fn json(&self, call: &Call) -> Value {
        let answer = self.ask(call, "application/json");
        assert!((200..300).contains(&answer.status), "{}: {}", call.path, answer.text());
        answer.json()
    }
}

/// Whether an answer holds what is known of stored people: a value, as text or as a number of
/// Arrow, a coordinate, which is the same number, or the subject.
fn reveals(answer: &Answer) -> bool {
    let income = INCOME.to_string();
    let needles: [&[u8]; 5] = [
        income.as_bytes(),
        SUBJECT.as_bytes(),
        &INCOME.to_le_bytes(),
        &f64::from(INCOME).to_le_bytes(),
        b"31,337.125",
    ];
    needles.iter().any(|needle| answer.body.windows(needle.len()).any(|bytes| bytes == *needle))
}

/// A service with a model, its rows, retrained models, a promise and a finished job.
fn guarded() -> (Server, String, String) {
    let server = start(|setting| {
        setting.config.require_tokens = true;
        setting.tokens = true;
    });
    let admin = Asker::of(&server, Some(Role::Admin));
    let (onnx, rows) = (onnx(), rows());
    let parts: [(&str, &[u8]); 4] = [
        ("name=\"model\"; filename=\"m.onnx\"", &onnx),
        ("name=\"reference\"; filename=\"rows.csv\"", rows.as_bytes()),
        ("name=\"name\"", MODEL.as_bytes()),
        ("name=\"ensemble\"", b"2"),
    ];
    let mut body = Vec::new();
    for (head, content) in parts {
        body.extend(format!("--cut\r\ncontent-disposition: form-data; {head}\r\n\r\n").bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--cut--\r\n");
    let kind = "multipart/form-data; boundary=cut";
    let made = admin.send("POST", "/v1/models", kind, "application/json", &body);
    assert_eq!(made.status, 201, "{}", made.text());
    let until = |what: &str, call: &Call, so: &dyn Fn(&Value) -> bool| {
        let begin = Instant::now();
        while !so(&admin.json(call)) {
            assert!(begin.elapsed() < Duration::from_mins(1), "{what}: {}", admin.json(call));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let model = call("GET /v1/models/{id}", format!("/v1/models/{MODEL}"), None);
    until("retrained", &model, &|model| model["ensemble"]["state"] == "ready");
    let question = json!({"indices": [ROW], "samples": 50, "record": {"subjects": [SUBJECT]}});
    let advice = admin.json(&call("POST /v1/explain", "/v1/explain", Some(question)));
    let entry = advice["recorded"][0].as_str().expect("a promise").to_owned();
    let question = json!({"indices": [ROW], "samples": 50, "wait": false});
    let job = admin.json(&call("POST /v1/explain", "/v1/explain", Some(question)));
    let job = job["id"].as_str().expect("a job").to_owned();
    let shown = call("GET /v1/jobs/{id}", format!("/v1/jobs/{job}"), None);
    until("done", &shown, &|job| job["state"] == "done");
    (server, entry, job)
}

/// Every operation of the service, at least once. What removes things comes last.
fn calls(entry: &str, job: &str) -> Vec<Call> {
    let own = || Some(json!({"indices": [ROW]}));
    let sent = || Some(json!({"rows": [{"income": 60_000, "age": 30}]}));
    let model = format!("/v1/models/{MODEL}");
    vec![
        call("GET /healthz", "/healthz", None),
        call("GET /readyz", "/readyz", None),
        call("GET /metrics", "/metrics", None),
        call("GET /v1/results", "/v1/results", None),
        call("GET /v1/results/{name}", "/v1/results/none", None),
        call("GET /v1/models", "/v1/models", None),
        call("GET /v1/models/{id}", &model, None),
        call("GET /v1/models/{id}/applicants", format!("{model}/applicants"), None),
        call("GET /v1/models/{id}/applicants", format!("{model}/applicants?row={ROW}"), None),
        call("POST /v1/stability", "/v1/stability", own()),
        call("POST /v1/stability", "/v1/stability", sent()),
        call("POST /v1/survival", "/v1/survival", own()),
        call("POST /v1/survival", "/v1/survival", sent()),
        call("POST /v1/certify", "/v1/certify", own()),
        call("POST /v1/certify", "/v1/certify", sent()),
        call("POST /v1/certify/verify", "/v1/certify/verify", Some(json!({"certificates": []}))),
        call("POST /v1/explain", "/v1/explain", Some(json!({"indices": [ROW], "samples": 50}))),
        call(
            "POST /v1/calibrate",
            "/v1/calibrate",
            Some(json!({"validity": 0.5, "confidence": 0.5, "models": 2, "taus": [0.5]})),
        ),
        call("POST /v1/audit", "/v1/audit", Some(json!({"candidates": [MODEL]}))),
        call("GET /v1/jobs", "/v1/jobs", None),
        call("GET /v1/jobs/{id}", format!("/v1/jobs/{job}"), None),
        call("GET /v1/jobs/{id}/events", format!("/v1/jobs/{job}/events"), None),
        call("GET /v1/jobs/{id}/result", format!("/v1/jobs/{job}/result"), None),
        call("GET /v1/ledger", "/v1/ledger", None),
        call("GET /v1/ledger/verify", "/v1/ledger/verify", None),
        call("GET /v1/ledger/{id}", format!("/v1/ledger/{entry}"), None),
        call("POST /v1/playground/map", "/v1/playground/map", Some(json!({}))),
        call("POST /v1/playground/paths", "/v1/playground/paths", Some(json!({}))),
        call("POST /v1/models", "/v1/models", None),
        call("POST /v1/models/{id}/activate", format!("{model}/activate"), None),
        call(
            "POST /v1/ledger/{id}/close",
            format!("/v1/ledger/{entry}/close"),
            Some(json!({"as": "withdrawn"})),
        ),
        call("POST /v1/ledger/forget", "/v1/ledger/forget", Some(json!({"subject": SUBJECT}))),
        call("DELETE /v1/models/{id}", &model, None),
        call("DELETE /v1/jobs/{id}", format!("/v1/jobs/{job}"), None),
    ]
}

/// The calls whose answers hold a stored value or a subject.
fn revealing(asker: &Asker<'_>, calls: &[Call]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for call in calls {
        for accept in ["application/json", ARROW, "text/html"] {
            if reveals(&asker.ask(call, accept)) {
                found.insert(format!("{} {}", call.operation, call.body.is_some()));
            }
        }
    }
    found
}

#[test]
fn stored_applicants_are_seen_by_nobody_below_explain() {
    let (server, entry, job) = guarded();
    let calls = calls(&entry, &job);
    // Every operation that is declared is called.
    let document = server.get("/openapi.json").json();
    let mut declared = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            if ["get", "post", "put", "delete", "patch"].contains(&method.as_str()) {
                declared.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let called: BTreeSet<String> = calls.iter().map(|call| call.operation.to_owned()).collect();
    assert_eq!(called, declared);

    for role in [None, Some(Role::Read)] {
        let asker = Asker::of(&server, role);
        assert_eq!(revealing(&asker, &calls), BTreeSet::new(), "{role:?}");
    }
    let reader = Asker::of(&server, Some(Role::Read));
    for path in ["/v1/stability", "/v1/survival", "/v1/certify"] {
        let (own, sent) = (json!({"indices": [ROW]}), json!({"rows": [{"income": 1, "age": 2}]}));
        let refused = reader.ask(&call("POST", path, Some(own)), "application/json");
        let detail = refused.problem(403);
        assert!(detail.contains("`read`") && detail.contains("`explain`"), "{detail}");
        assert_eq!(refused.json()["field"], "indices");
        assert_eq!(reader.ask(&call("POST", path, Some(sent)), ARROW).status, 200, "{path}");
    }
    // The role that may see them does: otherwise nothing would be shown by the above.
    let explaining = Asker::of(&server, Some(Role::Explain));
    let seen = revealing(&explaining, &calls);
    for operation in [
        "GET /v1/models/{id}/applicants false",
        "POST /v1/certify true",
        "POST /v1/explain true",
        "POST /v1/audit true",
        "GET /v1/jobs/{id}/result false",
        "GET /v1/ledger false",
        "GET /v1/ledger/{id} false",
    ] {
        assert!(seen.contains(operation), "{operation}: {seen:?}");
    }
}

#[test]
fn every_operation_demands_the_role_of_the_docs() {
    let (server, entry, job) = guarded();
    let calls = calls(&entry, &job);
    // What changes models or promises needs an admin, what is about people needs `explain`.
    let needs = |call: &Call| match call.operation {
        "GET /healthz" | "GET /readyz" => None,
        "POST /v1/models"
        | "POST /v1/models/{id}/activate"
        | "DELETE /v1/models/{id}"
        | "POST /v1/ledger/{id}/close"
        | "POST /v1/ledger/forget" => Some(Role::Admin),
        "GET /metrics"
        | "GET /v1/results"
        | "GET /v1/results/{name}"
        | "GET /v1/models"
        | "GET /v1/models/{id}"
        | "GET /v1/ledger/verify"
        | "POST /v1/certify/verify"
        | "POST /v1/playground/map"
        | "POST /v1/playground/paths" => Some(Role::Read),
        "POST /v1/stability" | "POST /v1/survival" | "POST /v1/certify"
            if call.body.as_ref().is_some_and(|body| body.get("rows").is_some()) =>
        {
            Some(Role::Read)
        }
        _ => Some(Role::Explain),
    };
    for role in [None, Some(Role::Read), Some(Role::Explain), Some(Role::Admin)] {
        let asker = Asker::of(&server, role);
        for call in &calls {
            let status = asker.ask(call, "application/json").status;
            let refused = match (role, needs(call)) {
                (_, None) => false,
                (None, Some(_)) => status == 401,
                (Some(role), Some(needed)) => role < needed && status == 403,
            };
            let allowed = role >= needs(call);
            assert_eq!(refused, !allowed, "{role:?} {} {}: {status}", call.operation, call.path);
            assert!(!allowed || ![401, 403].contains(&status), "{role:?} {}", call.path);
        }
    }
}
