//! `tyrex serve` and `tyrex token`

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{LOANS_SCHEMA, Place, audit};

/// A service that runs in a place.
pub(crate) struct Running {
    child: Child,
    /// The document it prints when it answers.
    started: Value,
}

impl Running {
    pub(crate) fn start(place: &Place, arguments: &str) -> Self {
        let log = std::fs::File::create(place.path("log.txt")).unwrap();
        Self::start_with_log(place, arguments, log.into())
    }

    fn start_with_log(place: &Place, arguments: &str, log: Stdio) -> Self {
        let arguments = format!("serve --port 0 --json {arguments}");
        let mut child =
            place.command(&arguments).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while serde_json::from_str::<Value>(&text).is_err() {
            match lines.next() {
                Some(line) => text += &line.unwrap(),
                None => panic!("it did not start: {}", place.read("log.txt")),
            }
        }
        Self { child, started: serde_json::from_str(&text).unwrap() }
    }

    fn address(&self) -> &str {
        self.started["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/')
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request; the status and the body of the answer.
    pub(crate) fn send(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        self.send_bytes(request, headers, body.as_bytes())
    }

    pub(crate) fn send_bytes(&self, request: &str, headers: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let text = format!(
            "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let json = "content-type: application/json\r\n";
        let (status, body) = self.send(&format!("POST {path}"), json, &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    /// Ends it with a signal; its exit code and how long that took.
    fn end(mut self, signal: &str) -> (Option<i32>, Duration) {
        let begin = Instant::now();
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        (status.code(), begin.elapsed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every request is logged, and no line can be written.
#[cfg(unix)]
#[test]
fn a_service_whose_log_nobody_reads_answers() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let service = Running::start_with_log(&place, "", writer.into());
    for _ in 0..3 {
        assert_eq!(service.send("GET /v1/models", "", "").0, 200);
    }
    assert_eq!(service.end("-TERM").0, Some(0));
}

#[test]
fn a_data_set_is_served_and_known_again() {
    let place = Place::new();
    let begin = Instant::now();
    let service = Running::start(&place, "--dataset german --models 4");
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    let started = service.started.clone();
    assert_eq!(started["model"]["name"], "german");
    assert_eq!(started["model"]["rows"], 1000);
    assert_eq!(started["tokens"], false);
    assert_eq!(started["ledger"], "tyrex.db");
    let question = json!({"indices": [1], "record": {"subjects": ["somebody"]}});
    let (status, first) = service.post("/v1/explain", &question);
    assert_eq!(status, 200, "{first}");
    assert_eq!(service.send("GET /", "", "").0, 200);
    let (code, took) = service.end("-TERM");
    assert_eq!(code, Some(0), "{}", place.read("log.txt"));
    assert!(took < Duration::from_secs(10), "{took:?}");

    let service = Running::start(&place, "--dataset german --models 4");
    assert_eq!(service.started["model"], started["model"]);
    let (status, again) = service.post("/v1/explain", &json!({"indices": [1]}));
    assert_eq!(status, 200, "{again}");
    assert_eq!(again["fingerprint"], first["fingerprint"]);
    assert_eq!(again["rows"][0]["score"], first["rows"][0]["score"]);
    let (_, ledger) = service.send("GET /v1/ledger", "", "");
    assert!(ledger.contains("somebody"), "{ledger}");
    assert_eq!(service.end("-INT").0, Some(0));
}

#[test]
fn ones_own_files_are_served() {
    let place = Place::with_loans();
    let service = Running::start(&place, "LOANS --models 0");
    let trained = service.started["model"].clone();
    assert!(trained["name"].as_str().unwrap().starts_with("loans-"), "{trained}");
    assert_eq!(trained["rows"], 40);
    let row = json!({"income": 12.0, "age": 30, "housing": "rent", "owner": "no"});
    let (status, answer) = service.post("/v1/stability", &json!({"rows": [row]}));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(service.end("-TERM").0, Some(0));
    // The same files are the same model; a model file brings its schema along.
    let service = Running::start(&place, "LOANS --models 0");
    assert_eq!(service.started["model"], trained);
    assert_eq!(service.end("-TERM").0, Some(0));
    place.done("train --out own.onnx --epochs 5 LOANS");
    let own = "--model own.onnx --data loans.csv --models 0";
    let service = Running::start(&place, own);
    assert!(service.started["model"]["name"].as_str().unwrap().starts_with("own-"));
    assert_eq!(service.end("-TERM").0, Some(0));
}

/// The service searches, tunes and certifies with them as `explain` does, also after a restart.
#[test]
fn given_models_are_served() {
    let place = Place::with_loans();
    audit::limit(&place, "mid.onnx", 55.0, &audit::plain());
    audit::retrained(&place);
    let own = "--model mid.onnx --data loans.csv --reference loans.csv";
    let own = format!("{own} --ensemble given");
    let document = place.json(&format!("explain --limit 9 {own}"));
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["advice"]["promise"]["models"] == 61), "{document}");
    let question = json!({"indices": rows.iter().map(|row| &row["row"]).collect::<Vec<_>>()});
    for start in 0..2 {
        let service = Running::start(&place, &own);
        assert_eq!(service.started["model"]["retrained"], 75);
        let begin = Instant::now();
        let answer = loop {
            match service.post("/v1/explain", &question) {
                (503, _) if begin.elapsed() < Duration::from_mins(1) => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                (status, answer) => break (status, answer),
            }
        };
        assert_eq!(answer.0, 200, "start {start}: {}", answer.1);
        for (name, value) in answer.1.as_object().unwrap() {
            if name != "model" {
                assert_eq!(*value, document[name], "start {start}: {name}");
            }
        }
        assert!(answer.1["portfolio"]["sentence"].is_string());
        assert_eq!(service.end("-TERM").0, Some(0));
    }
    // Other retrained models make another served model.
    std::fs::remove_file(place.path("given/run0.onnx")).unwrap();
    let service = Running::start(&place, &own);
    assert_eq!(service.started["model"]["retrained"], 74);
    assert_eq!(service.end("-TERM").0, Some(0));
}

#[test]
fn what_does_not_start_says_why() {
    let place = Place::with_loans();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    place.write(
        "card.json",
        r#"{"scorecard": 1, "factor": 20, "offset": 0, "variables": [
            {"name": "income", "missing": 0, "bins": [{"below": 40, "points": -20}, {"points": 20}]},
            {"name": "age", "missing": 0, "bins": [{"points": 0}]},
            {"name": "housing", "missing": 0, "bins": [{"levels": ["rent", "own", "free"], "points": 0}]},
            {"name": "owner", "missing": 0, "bins": [{"levels": ["no", "yes"], "points": 0}]}]}"#,
    );
    place.write("raw.toml", &format!("{LOANS_SCHEMA}\n[model]\ninput = \"raw\"\n"));
    let cases: [(&str, &[&str]); 9] = [
        (
            "--port 0 --model card.json --data loans.csv --schema raw.toml",
            &["only networks can be trained again", "--models 0", "--ensemble FOLDER"],
        ),
        ("--models 1000000", &["--models", "expected a whole number from 0 to 1000"]),
        (&format!("--port {port}"), &["cannot listen on 127.0.0.1", "another --port"]),
        ("--address 0.0.0.0:0", &["tokens are required", "tyrex token create"]),
        ("--require-tokens --port 0", &["tokens are required", "tyrex token create"]),
        ("--port 0 --dataset germany", &["germany", "tyrex data list"]),
        ("--port 0 --data loans.csv", &["there is no schema", "--schema"]),
        ("--port 0 --results nowhere", &["nowhere"]),
        ("--port 0 --tls-cert a.pem --tls-key b.pem", &["cannot read a.pem"]),
    ];
    for (arguments, says) in cases {
        place.refused(&format!("serve {arguments}"), says);
    }
}

#[test]
fn one_service_runs_on_a_database_and_commands_beside_it() {
    let place = Place::with_loans();
    let arguments = "LOANS --models 0 --ledger advice.db";
    let service = Running::start(&place, arguments);
    place.refused(
        "serve --port 0 --ledger ./advice.db",
        &["another service is running on ./advice.db", "stop it first"],
    );
    // A job with a subject that another program erases.
    let row = json!({"income": 12.0, "age": 30, "housing": "rent", "owner": "no"});
    let question = json!({"rows": [row], "wait": false, "record": {"subjects": ["somebody"]}});
    let (status, job) = service.post("/v1/explain", &question);
    assert_eq!(status, 202, "{job}");
    let job = format!("GET /v1/jobs/{}", job["id"].as_str().unwrap());
    let begin = Instant::now();
    while !service.send(&job, "", "").1.contains(r#""state":"done""#) {
        assert!(begin.elapsed() < Duration::from_mins(1));
        std::thread::sleep(Duration::from_millis(20));
    }
    let forgot = place.done("ledger forget somebody --ledger advice.db");
    assert!(forgot.starts_with("Forgot 1 promise and 1 finished job\n"), "{forgot}");
    assert_eq!(service.send(&job, "", "").0, 404);
    assert_eq!(service.send(&format!("{job}/result"), "", "").0, 404);
    place.done("train --out m.onnx --epochs 5 LOANS");
    let advice = "explain --data loans.csv --model m.onnx --ledger advice.db";
    place.done(&format!("{advice} --models 0"));
    place.done("audit --model m.onnx --ledger advice.db");
    place.done("ledger verify --ledger advice.db");
    place.done("token create --role read --ledger advice.db");
    // A service that was killed is not a service any more.
    assert_eq!(service.end("-KILL").0, None);
    let service = Running::start(&place, arguments);
    assert_eq!(service.end("-TERM").0, Some(0));
}

#[test]
fn nobody_is_forgotten_while_a_job_names_him() {
    let place = Place::new();
    let service = Running::start(&place, "--dataset german --models 0");
    let (rows, subjects): (Vec<usize>, Vec<String>) =
        (0..1000).map(|row| (row, format!("person {row}"))).unzip();
    let question = json!({"indices": rows, "method": "trex-o", "wait": false,
        "record": {"subjects": subjects}});
    let (status, job) = service.post("/v1/explain", &question);
    assert_eq!(status, 202, "{job}");
    let id = job["id"].as_str().unwrap();
    let forget = ["ledger", "forget", "person 999", "--ledger", "tyrex.db"];
    place.refused(
        &forget,
        &[&format!("job {id} is not finished"), &format!("DELETE /v1/jobs/{id}")],
    );
    service.send(&format!("DELETE /v1/jobs/{id}"), "", "");
    let begin = Instant::now();
    while place.run(&forget).code == 2 {
        assert!(begin.elapsed() < Duration::from_mins(1));
    }
    assert_eq!(place.run(&forget).code, 1, "it was forgotten");
    assert_eq!(service.end("-TERM").0, Some(0));
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let place = Place::new();
    let made =
        place.json(&["token", "create", "--role", "read", "--name", "a job", "--expires", "90d"]);
    let (secret, id) = (made["secret"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert!(secret.starts_with(&format!("tyrex_{id}_")) && secret.len() == 6 + 16 + 1 + 64);
    let text = place.done("token create --role admin");
    assert!(text.contains("cannot be shown again") && text.contains("tyrex_"), "{text}");
    let list = place.done("token list");
    assert!(list.contains(id) && list.contains("a job") && list.contains("good"), "{list}");
    assert!(!list.contains(secret) && !list.contains(&secret[23..]), "{list}");

    let service = Running::start(&place, "--require-tokens");
    let bearer = format!("authorization: Bearer {secret}\r\n");
    assert_eq!(service.send("GET /v1/models", "", "").0, 401);
    assert_eq!(service.send("GET /v1/models", &bearer, "").0, 200);
    // Revoked from outside, while the service runs.
    place.done(&format!("token revoke {id}"));
    assert_eq!(service.send("GET /v1/models", &bearer, "").0, 401);
    assert!(place.done("token list").contains("revoked"));
    place.refused("token revoke none", &["there is no token `none`"]);
    assert_eq!(service.end("-TERM").0, Some(0));
    let log = place.read("log.txt");
    assert!(log.contains(&format!("token=\"{id}\"")) && !log.contains(&secret[23..]), "{log}");
}

#[test]
fn the_log_says_nothing_that_a_request_said() {
    /// It stands wherever a client can put something.
    const MARK: &str = "xyzzy-7f3a";
    let place = Place::new();
    let arguments = "--dataset german --models 0 --log json";
    let service = Running::start(&place, arguments);
    let headers = format!(
        "content-type: application/json\r\nauthorization: Bearer {MARK}\r\nuser-agent: {MARK}\r\n\
         x-request-id: {MARK}\r\nx-forwarded-for: {MARK}\r\ncookie: {MARK}\r\n"
    );
    let row = json!({"indices": [1], "record": {"subjects": [MARK]}}).to_string();
    let wrong = json!({"rows": [{"age": MARK}], "method": MARK}).to_string();
    let form = format!("content-type: multipart/form-data; boundary={MARK}\r\n");
    let upload = format!(
        "--{MARK}\r\ncontent-disposition: form-data; name=\"model\"; filename=\"{MARK}\"\r\n\r\n\
         {MARK}\r\n--{MARK}\r\ncontent-disposition: form-data; name=\"{MARK}\"\r\n\r\n{MARK}\r\n\
         --{MARK}--\r\n"
    );
    let requests: [(&str, &str, &str); 13] = [
        ("POST /v1/explain", &headers, &row),
        ("POST /v1/explain", &headers, &wrong),
        ("POST /v1/stability", &headers, &wrong),
        ("POST /v1/stability", &headers, MARK),
        ("POST /v1/models", &form, &upload),
        ("POST /v1/audit", &form, &upload),
        (&format!("GET /{MARK}?name={MARK}"), &headers, ""),
        (&format!("GET /v1/models/{MARK}"), &headers, ""),
        (&format!("GET /v1/results/{MARK}"), &headers, ""),
        (&format!("GET /v1/ledger?model={MARK}&status={MARK}"), &headers, ""),
        (&format!("DELETE /v1/jobs/{MARK}"), &headers, ""),
        (&format!("{} /v1/models", MARK.to_uppercase()), &headers, ""),
        ("POST /v1/ledger/forget", &headers, &json!({"subject": MARK}).to_string()),
    ];
    let statuses = requests.map(|(request, headers, body)| service.send(request, headers, body).0);
    assert_eq!((statuses[0], statuses[12]), (200, 200), "{statuses:?}");
    assert!(statuses[1..12].iter().all(|status| (400..500).contains(status)), "{statuses:?}");
    assert_eq!(service.end("-TERM").0, Some(0));
    let log = place.read("log.txt");
    assert!(!log.to_lowercase().contains(MARK), "{log}");
    let answered: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")))
        .filter(|line| line["message"] == "answered")
        .collect();
    assert_eq!(answered.len(), requests.len(), "{log}");
    for (line, status) in answered.iter().zip(statuses) {
        assert_eq!(line["status"], status, "{line}");
        assert!(line["milliseconds"].is_number() && line["span"]["id"].is_string(), "{line}");
    }
    assert_eq!(answered[0]["span"]["route"], "/v1/explain");
    assert_eq!(answered[6]["span"]["route"], "unmatched");
    assert_eq!(answered[7]["span"]["route"], "/v1/models/{id}");
    assert_eq!(answered[11]["span"]["method"], "other");
}

/// A disk of its own, where this user may mount one.
#[cfg(target_os = "linux")]
struct Disk(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl Disk {
    fn mount(at: std::path::PathBuf) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let mount = ["-t", "tmpfs", "-o", "size=8m", "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(&at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_service_on_a_full_disk_is_not_ready() {
    let place = Place::new();
    let Some(disk) = Disk::mount(place.path("disk")) else {
        return;
    };
    let service = Running::start(&place, "--ledger disk/tyrex.db");
    assert_eq!(service.send("GET /readyz", "", "").0, 200);
    let ballast = disk.0.join("ballast");
    // Written until nothing more fits.
    let _ = std::fs::write(&ballast, vec![1; 16 << 20]);
    // A check holds for two seconds.
    let within_seconds = |status: u16| {
        let begin = Instant::now();
        loop {
            let (own, body) = service.send("GET /readyz", "", "");
            if own == status {
                return body;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{own}: {body}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let body = within_seconds(503);
    assert!(body.contains("the disk of the database is full"), "{body}");
    assert_eq!(service.send("GET /healthz", "", "").0, 200);
    std::fs::remove_file(ballast).unwrap();
    within_seconds(200);
    assert_eq!(std::fs::metadata(disk.0.join("tyrex.db-service")).unwrap().len(), 0);
    assert_eq!(service.end("-TERM").0, Some(0));
}

/// Health checks need no token and have no limit, so strangers may not make the disk work.
#[cfg(unix)]
#[test]
fn frequent_health_checks_do_not_write_each_time() {
    use std::os::unix::fs::MetadataExt as _;

    let place = Place::new();
    let service = Running::start(&place, "--ledger tyrex.db");
    let lock = place.path("tyrex.db-service");
    let begin = Instant::now();
    let mut times = std::collections::BTreeSet::new();
    for _ in 0..150 {
        assert_eq!(service.send("GET /readyz", "", "").0, 200);
        let written = std::fs::metadata(&lock).unwrap();
        times.insert((written.mtime(), written.mtime_nsec()));
    }
    let most = 2 + begin.elapsed().as_secs() as usize / 2;
    assert!(times.len() <= most, "{} writes in {:?}", times.len(), begin.elapsed());
    assert_eq!(service.end("-TERM").0, Some(0));
}
