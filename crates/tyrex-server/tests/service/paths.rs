//! Paths that want to be somewhere else.

use crate::support::{Answer, german};

#[test]
fn no_path_leads_out() {
    let long = format!("/v1/results/{}", "a".repeat(60_000));
    let paths = [
        "/../../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/%252e%252e/etc/passwd",
        "/..\\..\\etc\\passwd",
        "//etc/passwd",
        "/./etc/passwd",
        "/etc/passwd",
        "/main.js/../../Cargo.toml",
        "/index.html/",
        "/Cargo.toml",
        "/page/index.html",
        "/tyrex.db",
        "/v1/results/..",
        "/v1/results/../../Cargo.toml",
        "/v1/results/..%2f..%2fresults.json",
        "/v1/results/%2fetc%2fpasswd",
        "/v1/results/results.json",
        "/v1/results/%00",
        "/v1/results/first-look%00",
        "/v1/results/first-look/..",
        "/v1/results/%ff%fe",
        "/v1/results/%zz",
        "/v1/models/..%2f..%2fetc%2fpasswd",
        "/v1/models/%00",
        "/v1/models/con",
        "/v1/jobs/..%2f",
        "/v1/ledger/..%2f",
        &long,
    ];
    for path in paths {
        let answer = german().get(path);
        let shown: String = path.chars().take(60).collect();
        assert!([400, 404, 414].contains(&answer.status), "{shown}: {}", answer.status);
        assert!(!answer.text().contains("root:"), "{shown}");
        assert!(!answer.text().contains("[package]"), "{shown}");
    }
    assert_eq!(german().get("/v1/results/first-look").status, 200);
}

#[test]
fn an_absolute_path_is_a_request_to_that_host() {
    let request = |target: &str| {
        let text = format!("GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        Answer::read(&german().raw(text.as_bytes())).map(|answer| answer.status)
    };
    assert_eq!(request("http://localhost/healthz"), Some(200));
    assert_eq!(request("http://evil.example/healthz"), Some(421));
    let file = request("file:///etc/passwd");
    assert!(file.is_some_and(|status| [400, 404, 421].contains(&status)), "{file:?}");
}

#[test]
fn a_report_can_do_nothing() {
    let list = german().get("/v1/results").json();
    assert_eq!(list["results"][0]["name"], "first-look");
    assert_eq!(list["results"][0]["shipped"], true);
    let report = german().get("/v1/results/first-look");
    let policy = report.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none';") && policy.ends_with("sandbox"), "{policy}");
    assert!(!policy.contains("script-src"));
    assert_eq!(report.header("x-frame-options"), Some("SAMEORIGIN"));
    assert!(report.text().contains("German Credit"));
}
