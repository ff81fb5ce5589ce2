//! The table of roles: the test calls every operation with every role, and searches the bytes of
//! the answer for the values of stored applicants.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tyrex::data::{Encoder, Schema};
use tyrex::model::Mlp;
use tyrex::model::onnx::{ExportMetadata, write};
use tyrex_server::access::Role;

use crate::support::{Answer, Server, start, until_closed};

/// The income of one stored applicant. No other number is like it, and it is exact as `f32`.
const INCOME: f32 = 31_337.125;
/// Of whom the ledger speaks.
const SUBJECT: &str = "canary-of-the-ledger";
/// The row of that applicant.
const ROW: usize = 5;
const MODEL: &str = "canary";
/// Fields that say something about advice for an applicant, by the rows of others.
const ABOUT_ADVICE: [&str; 4] = ["usual", "plausibility", "apart", "proof"];
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// Numbers as they are, so that the coordinates of a point are the values of the row.
const SCHEMA: &str = r#"
format_version = 1
label = { column = "paid", favourable = "yes", unfavourable = "no" }
scaling = { method = "none" }
feature = [
    { name = "income", kind = "numeric" },
    { name = "age", kind = "integer" },
]
"#;

/// People, enough of them accepted to say how usual an answer is. The applicant is neither the poorest
/// nor the richest, since the least and the largest value of a feature are part of a model's
/// description.
fn rows() -> String {
    let mut csv = String::from("income,age,paid\n");
    for row in 0..110_u16 {
        let income = match usize::from(row) {
            ROW => INCOME,
            0..10 => 5000.0 * f32::from(row + 1),
            _ => 50_000.0 + 900.0 * f32::from(row),
        };
        let paid = if row < 10 { "no" } else { "yes" };
        csv += &format!("{income},{},{paid}\n", 20 + row % 40);
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
    let network = Mlp::linear(weights, -50.0).unwrap();
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
struct Guarded {
    server: Server,
    entry: String,
    job: String,
    /// The token that started the job.
    owner: String,
}

fn guarded() -> Guarded {
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
    let explaining = Asker::of(&server, Some(Role::Explain));
    let question = json!({"indices": [ROW], "samples": 50, "wait": false});
    let job = explaining.json(&call("POST /v1/explain", "/v1/explain", Some(question)));
    let job = job["id"].as_str().expect("a job").to_owned();
    let shown = call("GET /v1/jobs/{id}", format!("/v1/jobs/{job}"), None);
    until("done", &shown, &|job| job["state"] == "done");
    let owner = explaining.token.clone().unwrap();
    Guarded { server, entry, job, owner }
}

/// Every operation of the service, at least once. Operations that remove something come last.
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
    let Guarded { server, entry, job, owner } = guarded();
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
        for call in &calls {
            let answer = asker.ask(call, "application/json");
            let Ok(document) = serde_json::from_slice::<Value>(&answer.body) else { continue };
            let mut names = BTreeSet::new();
            keys(&document, &mut names);
            let shown: Vec<_> = ABOUT_ADVICE.iter().filter(|name| names.contains(**name)).collect();
            assert!(shown.is_empty(), "{role:?} {}: {shown:?}", call.operation);
        }
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
    let explaining = Asker { server: &server, token: Some(owner) };
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

/// A line of the table in the documentation.
struct Line {
    /// The operation, and after `with` the kind of rows.
    operation: String,
    /// The personal fields of its answer.
    fields: Vec<String>,
    /// Whether it is open to callers without a token, `read`, `explain` and `admin`.
    open_to: [bool; 4],
}

/// The table of docs/service.md.
fn documented() -> Vec<Line> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/service.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("### Permissions\n").unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let line = |line: &str| {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        let [operation, fields, roles @ ..] = &cells[..] else { panic!("{line}") };
        let open = |cell: &String| match cell.as_str() {
            "yes" => true,
            "no" => false,
            other => panic!("{other}: {line}"),
        };
        Line {
            operation: operation.clone(),
            fields: fields.split(", ").filter(|it| *it != "none").map(str::to_owned).collect(),
            open_to: roles.iter().map(open).collect::<Vec<_>>().try_into().unwrap(),
        }
    };
    lines.take_while(|line| line.starts_with('|')).map(line).collect()
}

/// The name of a call in the table.
fn named(call: &Call) -> String {
    let body = call.body.as_ref();
    let has = |field: &str| body.is_some_and(|body| body.get(field).is_some());
    match call.operation {
        "POST /v1/stability" | "POST /v1/survival" | "POST /v1/certify" if has("indices") => {
            format!("{} with indices", call.operation)
        }
        "POST /v1/stability" | "POST /v1/survival" | "POST /v1/certify" => {
            format!("{} with rows", call.operation)
        }
        operation => operation.to_owned(),
    }
}

/// The paths of the values that are known of stored people.
fn personal(value: &Value, path: &[String], found: &mut Vec<Vec<String>>) {
    let is_known = match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                personal(inner, &[path, std::slice::from_ref(name)].concat(), found);
            }
            false
        }
        Value::Array(items) => {
            items.iter().for_each(|item| personal(item, path, found));
            false
        }
        Value::Number(number) => number.as_f64() == Some(f64::from(INCOME)),
        Value::String(text) => text.contains(&INCOME.to_string()) || text.contains(SUBJECT),
        Value::Null | Value::Bool(_) => false,
    };
    if is_known {
        found.push(path.to_vec());
    }
}

/// Every operation is open to the roles of the table, and personal values are in the fields that it
/// names, and in no others.
#[test]
fn every_operation_shows_what_the_docs_say() {
    let Guarded { server, entry, job, owner } = guarded();
    let calls = calls(&entry, &job);
    let table = documented();
    let names: BTreeSet<String> = calls.iter().map(named).collect();
    let lines: BTreeSet<String> = table.iter().map(|line| line.operation.clone()).collect();
    assert_eq!(names, lines);
    let askers = [
        (None, Asker::of(&server, None)),
        (Some(Role::Read), Asker::of(&server, Some(Role::Read))),
        // The job belongs to this token.
        (Some(Role::Explain), Asker { server: &server, token: Some(owner) }),
        (Some(Role::Admin), Asker::of(&server, Some(Role::Admin))),
    ];
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (number, (role, asker)) in askers.iter().enumerate() {
        for call in &calls {
            let line = table.iter().find(|line| line.operation == named(call)).unwrap();
            let answer = asker.ask(call, "application/json");
            let refusal = if role.is_none() { 401 } else { 403 };
            let is_open = line.open_to[number];
            assert_eq!(
                answer.status != refusal,
                is_open,
                "{role:?} {}: {}",
                line.operation,
                answer.text()
            );
            assert!(is_open || !reveals(&answer), "{role:?} {}", line.operation);
            let Ok(document) = serde_json::from_slice::<Value>(&answer.body) else { continue };
            let mut paths = Vec::new();
            personal(&document, &[], &mut paths);
            for path in paths {
                let is_named = line.fields.iter().any(|field| path.contains(field));
                assert!(is_named, "{}: {path:?}", line.operation);
            }
            keys(&document, shown.entry(line.operation.clone()).or_default());
        }
    }
    // The answers have the fields that the table names.
    for line in &table {
        for field in &line.fields {
            assert!(shown[&line.operation].contains(field), "{}: {field}", line.operation);
        }
    }
}

/// All names of fields in a document.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                found.insert(name.clone());
                keys(inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// Another caller's job does not exist for a token, except for an admin.
#[test]
fn a_job_belongs_to_the_token_that_made_it() {
    let Guarded { server, job, owner, .. } = guarded();
    let path = format!("/v1/jobs/{job}");
    let other = Asker::of(&server, Some(Role::Explain));
    let owner = Asker { server: &server, token: Some(owner) };
    let admin = Asker::of(&server, Some(Role::Admin));
    let ids = |asker: &Asker<'_>| -> Vec<String> {
        let list = asker.json(&call("GET", "/v1/jobs", None));
        let jobs = list["jobs"].as_array().unwrap();
        jobs.iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&other), Vec::<String>::new());
    for asker in [&owner, &admin] {
        assert_eq!(ids(asker), std::slice::from_ref(&job));
        assert_eq!(asker.ask(&call("GET", &path, None), "*/*").status, 200);
    }
    for (method, path) in [
        ("GET", path.clone()),
        ("GET", format!("{path}/events")),
        ("GET", format!("{path}/result")),
        ("DELETE", path.clone()),
    ] {
        let refused = other.ask(&call(method, path, None), "*/*").problem(404);
        assert_eq!(refused, format!("there is no job `{job}`"));
    }
    assert_eq!(owner.ask(&call("DELETE", &path, None), "*/*").status, 204);
}

/// A stream of events ends soon after its token is revoked, or expires, although the job goes on.
#[test]
fn a_stream_of_events_ends_with_its_token() {
    let Guarded { server, .. } = guarded();
    let revoked = server.token(Role::Admin, None);
    let expiring = server.token(Role::Admin, Some(Duration::from_secs(3)));
    let asker = Asker { server: &server, token: Some(revoked.text.clone()) };
    // So many jobs that the last one has not ended when the test ends.
    let indices: Vec<u8> = (0..10).cycle().take(60).collect();
    let rows = json!({"indices": indices, "samples": 20_000, "tau": 0.99, "wait": false});
    let jobs: Vec<Value> =
        (0..40).map(|_| asker.json(&call("POST", "/v1/explain", Some(rows.clone())))).collect();
    let long = jobs.last().unwrap();
    let path = format!("/v1/jobs/{}", long["id"].as_str().unwrap());
    let streams: Vec<_> = [&revoked.text, &expiring.text]
        .into_iter()
        .map(|token| {
            let mut stream = server.connect();
            let head = format!(
                "GET {path}/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 authorization: Bearer {token}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut first = [0; 15];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"HTTP/1.1 200 OK");
            stream
        })
        .collect();
    server.revoke(&revoked.token.id);
    let begin = Instant::now();
    for mut stream in streams {
        until_closed(&mut stream);
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let admin = Asker::of(&server, Some(Role::Admin));
    let job = admin.json(&call("GET", &path, None));
    assert!(["queued", "running"].contains(&job["state"].as_str().unwrap()), "{}", job["state"]);
}
