//! Too much, too slow, too often.

use std::io::{Read as _, Write as _};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Answer, eventually, german, start, until_closed};

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn a_body_that_is_announced_too_large_is_not_read() {
    for length in ["9000000", "9000000000000"] {
        let head = format!(
            "POST /v1/stability HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {length}\r\n\r\n"
        );
        let begin = Instant::now();
        let answer = Answer::read(&german().raw(head.as_bytes())).expect("an answer");
        assert!(answer.problem(413).contains("8388608"), "{}", answer.text());
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_body_that_grows_too_large_is_cut_off() {
    let mut stream = german().connect();
    let head = format!(
        "POST /v1/stability HTTP/1.1\r\nhost: localhost\r\n{JSON}transfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is sent");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    // Sixteen times the limit, if the service lets it.
    let sent = (0..2048).take_while(|_| stream.write_all(chunk.as_bytes()).is_ok()).count();
    assert!(sent < 1024, "{sent} chunks of 64 KiB were taken");
    let answer = until_closed(&mut stream);
    // The connection may be reset before the answer is read.
    if let Some(answer) = Answer::read(&answer) {
        answer.problem(413);
    }
}

#[test]
fn a_client_that_reads_no_answer_before_it_has_sent_all_hears_why_it_was_refused() {
    let server = start(|setting| setting.config.limits.bodies = 100_000);
    // Too large as announced, and more than there is room for.
    for (length, status) in [(9_000_000, 413), (8_000_000, 503)] {
        let head = format!(
            "POST /v1/stability HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {length}\r\n\r\n"
        );
        for _ in 0..5 {
            let mut stream = server.connect();
            stream.write_all(head.as_bytes()).expect("it is sent");
            stream.write_all(&spaces(length)).expect("all of it is sent");
            Answer::read(&until_closed(&mut stream)).expect("an answer").problem(status);
        }
    }
}

#[test]
fn whoever_waits_to_be_told_to_send_is_not_told_so_in_vain() {
    let head = format!(
        "POST /v1/stability HTTP/1.1\r\nhost: localhost\r\n{JSON}expect: 100-continue\r\n\
         content-length: 9000000\r\n\r\n"
    );
    let answer = german().raw(head.as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn files_may_be_larger() {
    let server = start(|setting| {
        setting.config.limits.body = 1000;
        setting.config.limits.upload = 5000;
    });
    let body = vec![b' '; 3000];
    let json = [("content-type", "application/json")];
    server.send("POST", "/v1/models", &json, &body).problem(413);
    let form = [("content-type", "multipart/form-data; boundary=x")];
    let answer = server.send("POST", "/v1/models", &form, &body);
    assert!([400, 422].contains(&answer.status), "{}", answer.text());
    server.send("POST", "/v1/models", &form, &[b' '; 6000]).problem(413);
}

#[test]
fn bodies_share_the_memory_that_is_set_aside() {
    let server = start(|setting| setting.config.limits.bodies = 100_000);
    let head = |length: usize| {
        format!(
            "POST /v1/stability HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {length}\r\n\r\n"
        )
    };
    let json = [("content-type", "application/json")];
    let second = || server.send("POST", "/v1/stability", &json, &spaces(50_000));
    let (mut first, mut refused) = (None, None);
    // A second that arrives before the first takes the room of the first: both are sent again.
    eventually("no room for a second", || {
        drop(first.take());
        let mut stream = server.connect();
        stream.write_all(head(80_000).as_bytes()).expect("it is sent");
        stream.write_all(&spaces(79_000)).expect("it is sent");
        first = Some(stream);
        std::thread::sleep(Duration::from_millis(100));
        refused = Some(second()).filter(|answer| answer.status == 503);
        refused.is_some()
    });
    let refused = refused.expect("it was refused");
    refused.problem(503);
    assert!(refused.header("retry-after").is_some());
    drop(first);
    eventually("room again", || second().status == 400);
}

#[test]
fn slow_clients_lose_their_place() {
    let server = start(|setting| {
        setting.config.limits.headers = Duration::from_millis(300);
        setting.config.limits.idle = Duration::from_millis(300);
        setting.config.limits.time = Duration::from_secs(1);
    });
    let closed_within = |bytes: &[u8], most: f64| {
        let begin = Instant::now();
        let answer = server.raw(bytes);
        let took = begin.elapsed().as_secs_f64();
        assert!((0.2..most).contains(&took), "{took} s");
        Answer::read(&answer)
    };
    // Nothing, half a line, half a head: no request to answer.
    for start in [&b""[..], b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nhost: local"] {
        assert!(closed_within(start, 3.0).is_none_or(|answer| answer.status == 408));
    }
    // Half a body.
    let head = format!(
        "POST /v1/stability HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: 50\r\n\r\n{{"
    );
    closed_within(head.as_bytes(), 3.0).expect("an answer").problem(408);
    // One byte at a time: never idle, but too long in all.
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).expect("it is sent");
    let begin = Instant::now();
    while stream.write_all(b" ").is_ok() && begin.elapsed() < Duration::from_millis(900) {
        std::thread::sleep(Duration::from_millis(30));
    }
    let answer = Answer::read(&until_closed(&mut stream)).expect("an answer");
    answer.problem(408);
    assert!(begin.elapsed() < Duration::from_secs(3));
}

#[test]
fn who_does_not_read_loses_his_place() {
    let server = start(|setting| setting.config.limits.idle = Duration::from_millis(500));
    let mut stream = server.connect();
    // Many reports are asked for, far more than the sockets hold, and none is read.
    let request = "GET /v1/results/first-look HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let asked = 400;
    stream.write_all(request.repeat(asked).as_bytes()).expect("it is sent");
    std::thread::sleep(Duration::from_millis(1500));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answered = answer.windows(12).filter(|window| window == b"HTTP/1.1 200").count();
    assert!((1..asked).contains(&answered), "{answered} of {asked} were sent");
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let server = start(|setting| setting.config.limits.rate = NonZeroU32::new(5));
    let answers: Vec<Answer> = (0..20).map(|_| server.get("/v1/models")).collect();
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!((1..=10).contains(&refused.len()), "{} of 20 were refused", refused.len());
    for answer in refused {
        answer.problem(429);
        let wait: u64 = answer.header("retry-after").expect("a time").parse().expect("seconds");
        assert!((1..=2).contains(&wait));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(server.get("/v1/models").status, 200);
    // Health checks do not count against the limit.
    for _ in 0..20 {
        assert_eq!(server.get("/healthz").status, 200);
    }
    assert!(server.get("/metrics").text().contains("tyrex_rate_limited_total"));
}

#[test]
fn work_that_takes_too_long_is_stopped() {
    let server = start(|setting| {
        setting.engine.dataset = Some("german".to_owned());
        setting.config.limits.time = Duration::from_millis(150);
        setting.config.limits.rows_at_once = 100_000;
    });
    let indices: Vec<usize> = (0..1000).collect();
    let begin = Instant::now();
    let answer = server.post("/v1/explain", &json!({"indices": indices, "method": "trex-o"}));
    assert!(answer.problem(504).contains("0.15 s"));
    assert!(begin.elapsed() < Duration::from_secs(5));
    // No work is done for a client whose connection was closed.
    eventually("threads without work", || {
        server.engine.threads().1 == 0 && server.engine.queue_length() == 0
    });
}

#[test]
fn a_full_queue_sends_clients_away_for_a_while() {
    let server = start(|setting| {
        setting.engine.dataset = Some("german".to_owned());
        setting.engine.threads = 1;
        setting.engine.questions = 2;
    });
    let ask = || server.post("/v1/explain", &json!({"indices": [0, 1, 2, 3], "method": "trex-o"}));
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let (refused, answered): (Vec<&Answer>, Vec<&Answer>) =
        answers.iter().partition(|answer| answer.status == 503);
    assert!(!refused.is_empty() && !answered.is_empty(), "{} refused", refused.len());
    for answer in refused {
        answer.problem(503);
        let wait: u64 = answer.header("retry-after").expect("a time").parse().expect("seconds");
        assert!(wait >= 1);
    }
    for answer in &answered {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["rows"], answered[0].json()["rows"]);
    }
}

#[test]
fn rows_are_counted() {
    let server = start(|setting| {
        setting.engine.dataset = Some("german".to_owned());
        setting.config.limits.rows = 10;
    });
    let indices: Vec<usize> = (0..11).collect();
    let answer = server.post("/v1/stability", &json!({"indices": indices}));
    answer.problem(422);
    let answer = server.post("/v1/stability", &json!({"indices": indices[..10]}));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn deep_json_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = [open.repeat(100_000), "1".to_owned(), close.repeat(100_000)].concat();
        for body in
            [deep.clone(), format!("{{\"rows\": {deep}}}"), format!("{{\"rows\": [{deep}]}}")]
        {
            let json = [("content-type", "application/json")];
            let answer = german().send("POST", "/v1/stability", &json, body.as_bytes());
            assert!([400, 422].contains(&answer.status), "{}", answer.text());
        }
    }
}

fn spaces(count: usize) -> Vec<u8> {
    vec![b' '; count]
}

#[test]
fn packed_bodies_are_refused() {
    for coding in ["gzip", "br", "deflate", "zstd", "gzip, identity"] {
        let headers = [("content-type", "application/json"), ("content-encoding", coding)];
        german().send("POST", "/v1/stability", &headers, b"{\"indices\": [0]}").problem(415);
    }
    let plain = [("content-type", "application/json"), ("content-encoding", "identity")];
    let answer = german().send("POST", "/v1/stability", &plain, b"{\"indices\": [0]}");
    assert_eq!(answer.status, 200, "{}", answer.text());
}
