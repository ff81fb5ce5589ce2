//! HTTP as such: methods, pipelining, many connections, nonsense.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::support::{Answer, german, start, until_closed};

#[test]
fn every_answer_has_its_headers() {
    for path in ["/", "/healthz", "/v1/models", "/nothing", "/v1/results/first-look"] {
        let answer = german().get(path);
        for header in [
            "x-request-id",
            "content-security-policy",
            "referrer-policy",
            "permissions-policy",
            "cross-origin-resource-policy",
        ] {
            assert!(answer.header(header).is_some(), "{path}: {header}");
        }
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("strict-transport-security"), None, "{path}");
        let kept = if path == "/" { "no-cache" } else { "no-store" };
        assert_eq!(answer.header("cache-control"), Some(kept), "{path}");
    }
    let ids = [(); 3].map(|()| german().get("/healthz").header("x-request-id").map(str::to_owned));
    assert!(ids[0] != ids[1] && ids[1] != ids[2]);
}

#[test]
fn the_page_is_kept_until_it_changes() {
    let page = german().get("/");
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let mark = page.header("etag").expect("a mark");
    let again = german().send("GET", "/", &[("if-none-match", mark)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    let other = german().send("GET", "/", &[("if-none-match", "\"other\"")], b"");
    assert_eq!(other.status, 200);
    let script = german().get("/main.js");
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
}

#[test]
fn methods_that_are_not_there() {
    let head = german().send("HEAD", "/v1/models", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    for method in ["OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND", "BREW", "X"] {
        let answer = german().send(method, "/v1/stability", &[], b"");
        answer.problem(405);
        assert_eq!(answer.header("allow"), Some("POST"), "{method}");
    }
    german().get("/v1/stability").problem(405);
    german().get("/v1/nothing").problem(404);
}

#[test]
fn requests_sent_together_are_answered_in_order() {
    let paths = ["/healthz", "/nothing", "/icon.svg", "/healthz"];
    let request =
        |path: &str, end: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{end}\r\n");
    let mut text: String = paths[..3].iter().map(|path| request(path, "")).collect();
    text += &request(paths[3], "connection: close\r\n");
    let answers = String::from_utf8_lossy(&german().raw(text.as_bytes())).into_owned();
    let statuses: Vec<&str> =
        answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "404", "200", "200"]);
}

#[test]
fn nonsense_is_refused() {
    let cases: [&[u8]; 10] = [
        b"\r\n\r\n\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: a\0b\r\n\r\n",
        b"POST /v1/stability HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST /v1/stability HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/stability HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ];
    for bytes in cases {
        let mut stream = german().connect();
        stream.write_all(bytes).expect("it is sent");
        stream.shutdown(std::net::Shutdown::Write).expect("no more is sent");
        let answer = until_closed(&mut stream);
        let shown = String::from_utf8_lossy(bytes);
        // No other protocol is spoken.
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 "), "{shown}: {answer:?}");
        let status = Answer::read(&answer).map(|answer| answer.status);
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{shown}: {status:?}");
    }
    assert_eq!(german().get("/healthz").status, 200);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    // The room for a head grows by doubling, so the limit is not sharp.
    let long = "x".repeat(200_000);
    let header = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n");
    let many = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x: y\r\n".repeat(500));
    for request in [header, many] {
        let answer = Answer::read(&german().raw(request.as_bytes()));
        assert_eq!(answer.map(|answer| answer.status), Some(431));
    }
}

#[test]
fn a_thousand_idle_connections_are_in_nobodys_way() {
    let server = start(|setting| setting.config.limits.connections = 1001);
    let idle: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    let begin = Instant::now();
    for _ in 0..20 {
        // The one place that is left is free again a moment after an answer.
        crate::support::eventually("an answer", || {
            let asked = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            Answer::read(&server.raw(asked)).is_some_and(|answer| answer.status == 200)
        });
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    // One connection is left, a moment after the answer. The client that takes it uses up the limit.
    let mut last = None;
    crate::support::eventually("the last place", || {
        let mut stream = server.connect();
        let mut first = [0; 12];
        let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let answered = asked.and_then(|()| std::io::Read::read_exact(&mut stream, &mut first));
        last = answered.is_ok().then_some(stream);
        last.is_some() && &first == b"HTTP/1.1 200"
    });
    assert!(server.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").is_empty());
    drop(idle);
    crate::support::eventually("a free place", || {
        !server
            .raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .is_empty()
    });
}

#[test]
fn the_service_says_how_it_is() {
    let server = german();
    for path in ["/healthz", "/readyz"] {
        let answer = server.get(path);
        assert_eq!((answer.status, &answer.json()["status"]), (200, &"ok".into()), "{path}");
    }
    server.get("/v1/models/none").problem(404);
    let metrics = server.get("/metrics");
    assert_eq!(metrics.status, 200);
    let text = metrics.text();
    for line in [
        "tyrex_requests_total{route=\"/v1/models/{id}\",method=\"GET\",status=\"404\"}",
        "tyrex_latency_seconds_bucket{",
        "tyrex_memory_bytes ",
        "tyrex_queue_length ",
        "tyrex_models ",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(!text.contains("none"), "a path of a request is in the metrics");
}
