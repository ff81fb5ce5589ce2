//! The end of a service, in the middle of everything.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use tyrex_ledger::database::{self, Database};
use tyrex_server::config::Config;
use tyrex_server::serve::{Error, Service};

use crate::support::{Answer, eventually, start, until_closed};

#[tokio::test]
async fn one_service_at_a_time_runs_on_a_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let database = Database::open(&file("tyrex.db")).await.expect("a database");
    std::os::unix::fs::symlink(file("tyrex.db"), file("link.db")).expect("a link");
    let link = Database::open(&file("link.db")).await.expect("a database");
    let mut config = Config::default();
    config.address.set_port(0);
    let first = Service::bind(&config, &database).await.expect("a service");
    for database in [&database, &link] {
        match Service::bind(&config, database).await {
            Err(Error::Database(error @ database::Error::Claimed { .. })) => {
                assert!(error.to_string().contains(database.address()), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    drop(first);
    Service::bind(&config, &link).await.expect("a service");
}

#[test]
fn what_is_quick_is_finished_and_idle_clients_are_sent_away() {
    let mut server = start(|setting| {
        setting.engine.dataset = Some("german".to_owned());
        setting.engine.threads = 1;
    });
    let address = server.address;
    let mut idle = server.connect();
    let body = json!({"indices": (0..60).collect::<Vec<_>>(), "method": "trex-o"}).to_string();
    let mut working = server.connect();
    let head = format!(
        "POST /v1/explain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    working.write_all(head.as_bytes()).expect("it is sent");
    eventually("work", || server.engine.threads().1 > 0);
    let begin = Instant::now();
    server.end();
    // New connections are refused,
    eventually("a closed door", || TcpStream::connect(address).is_err());
    // who only waits is sent away,
    assert!(until_closed(&mut idle).is_empty());
    // and who is being served is served.
    let answer = Answer::read(&until_closed(&mut working)).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["rows"].as_array().map(Vec::len), Some(60));
    server.wait().expect("a good end");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_end_comes_in_time_whatever_clients_do() {
    let mut server = start(|setting| {
        setting.engine.dataset = Some("german".to_owned());
        setting.config.limits.drain = Duration::from_millis(500);
    });
    // Half a head, half a body, an answer that is not read, and a stream of events.
    let mut clients: Vec<TcpStream> = Vec::new();
    let half_body = "POST /v1/explain HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                     application/json\r\ncontent-length: 100\r\n\r\n{";
    let report = "GET /v1/results/first-look HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(300);
    for text in ["GET / HT", half_body, &report] {
        let mut client = server.connect();
        client.write_all(text.as_bytes()).expect("it is sent");
        clients.push(client);
    }
    let indices: Vec<usize> = (0..1000).collect();
    let job =
        server.post("/v1/explain", &json!({"indices": indices, "method": "trex-o", "wait": false}));
    assert_eq!(job.status, 202, "{}", job.text());
    let place = job.header("location").expect("a place").to_owned();
    let mut events = server.connect();
    let ask = format!("GET {place}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
    events.write_all(ask.as_bytes()).expect("it is sent");
    let mut first = [0; 12];
    events.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    eventually("a job that runs", || server.engine.unfinished_jobs() == 1);
    let begin = Instant::now();
    server.end();
    server.wait().expect("a good end");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}
