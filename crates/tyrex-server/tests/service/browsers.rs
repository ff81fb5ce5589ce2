//! Pages of other origins cannot use the service through a browser.

use crate::support::{german, start};

#[test]
fn names_that_are_not_this_machines_are_refused() {
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", "192.168.0.7", ""] {
        german().send("GET", "/v1/models", &[("host", host)], b"").problem(421);
        german().send("GET", "/", &[("host", host)], b"").problem(421);
    }
    for host in ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80"] {
        let answer = german().send("GET", "/v1/models", &[("host", host)], b"");
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[test]
fn with_tokens_any_name_will_do() {
    let server = start(|setting| {
        setting.config.require_tokens = true;
        setting.tokens = true;
    });
    let answer = server.send("GET", "/healthz", &[("host", "tyrex.example")], b"");
    assert_eq!(answer.status, 200);
}

#[test]
fn other_sites_cannot_post() {
    let body = br#"{"indices": [0]}"#;
    let own = format!("http://{}", german().address);
    let cases: [(&[(&str, &str)], u16); 7] = [
        (&[], 200),
        (&[("origin", &own)], 200),
        (&[("origin", "http://evil.example")], 403),
        (&[("origin", "null")], 403),
        (&[("sec-fetch-site", "same-origin")], 200),
        (&[("sec-fetch-site", "cross-site")], 403),
        (&[("sec-fetch-site", "cross-site"), ("origin", &own)], 403),
    ];
    for (headers, status) in cases {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        let answer = german().send("POST", "/v1/stability", &headers, body);
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text());
    }
    // Requests that a form can send without a preflight are rejected.
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let answer = german().send("POST", "/v1/stability", &[("content-type", kind)], body);
        answer.problem(415);
    }
    // No response allows other origins.
    let asked = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    let answer = german().send("OPTIONS", "/v1/stability", &asked, b"");
    assert_eq!(answer.status, 405);
    assert_eq!(answer.header("access-control-allow-origin"), None);
}
