//! Tokens over HTTP.

use std::time::Duration;

use tyrex_ledger::database::Database;
use tyrex_server::access::Role;
use tyrex_server::config::Config;
use tyrex_server::serve::{Error, Service};

use crate::support::{Server, start};

fn guarded() -> Server {
    start(|setting| {
        setting.config.require_tokens = true;
        setting.tokens = true;
    })
}

fn asked(server: &Server, method: &str, path: &str, token: &str) -> u16 {
    server.send(method, path, &[("authorization", token)], b"").status
}

#[test]
fn nobody_unknown_is_let_in() {
    let server = guarded();
    let made = server.token(Role::Admin, None);
    let bearer = format!("Bearer {}", made.text);
    assert_eq!(asked(&server, "GET", "/v1/models", &bearer), 200);
    assert_eq!(asked(&server, "GET", "/v1/models", &format!("bearer {}", made.text)), 200);

    let answer = server.get("/v1/models");
    answer.problem(401);
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    let expired = server.token(Role::Admin, Some(Duration::from_nanos(1)));
    let revoked = server.token(Role::Admin, None);
    server.revoke(&revoked.token.id);
    let bad = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        made.text.clone(),
        format!("Basic {}", made.text),
        format!("Bearer  {}", made.text),
        format!("Bearer {}", made.text.to_uppercase()),
        format!("Bearer {}", &made.text[..made.text.len() - 1]),
        format!("Bearer {}x", made.text),
        format!("Bearer tyrex_{}_{}", made.token.id, "0".repeat(64)),
        format!("Bearer {}", expired.text),
        format!("Bearer {}", revoked.text),
        "Bearer \u{e9}".to_owned(),
        format!("Bearer {}", "a".repeat(10_000)),
    ];
    for token in bad {
        for (method, path) in [("GET", "/v1/models"), ("GET", "/metrics"), ("POST", "/v1/explain")]
        {
            let answer = server.send(method, path, &[("authorization", &token)], b"");
            let detail = answer.problem(401);
            assert!(!detail.contains(&made.text) && !detail.contains("tyrex_0"), "{detail}");
        }
    }
}

#[test]
fn what_needs_no_token() {
    let server = guarded();
    for path in ["/healthz", "/readyz", "/", "/main.js", "/style.css", "/openapi.json"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    for path in ["/v1/models", "/v1/jobs", "/v1/ledger", "/v1/results", "/metrics"] {
        server.get(path).problem(401);
    }
}

#[test]
fn roles_are_kept_apart() {
    let server = guarded();
    type Calls<'a> = &'a [(&'a str, &'a str)];
    let allowed: [(Role, Calls<'_>, Calls<'_>); 3] = [
        (
            Role::Read,
            &[("GET", "/v1/models"), ("GET", "/metrics"), ("GET", "/v1/results")],
            &[("GET", "/v1/ledger"), ("POST", "/v1/explain"), ("DELETE", "/v1/models/x")],
        ),
        (
            Role::Explain,
            &[("GET", "/v1/ledger"), ("GET", "/v1/jobs"), ("GET", "/v1/models")],
            &[("DELETE", "/v1/models/x"), ("POST", "/v1/ledger/forget"), ("POST", "/v1/models")],
        ),
        (Role::Admin, &[("DELETE", "/v1/models/x"), ("GET", "/v1/ledger")], &[]),
    ];
    for (role, may, may_not) in allowed {
        let bearer = format!("Bearer {}", server.token(role, None).text);
        for (method, path) in may {
            let status = asked(&server, method, path, &bearer);
            assert!(![401, 403].contains(&status), "{role:?} {method} {path}: {status}");
        }
        for (method, path) in may_not {
            assert_eq!(asked(&server, method, path, &bearer), 403, "{role:?} {method} {path}");
        }
    }
}

#[test]
fn a_token_that_is_revoked_ends_at_once() {
    let server = guarded();
    let made = server.token(Role::Read, None);
    let bearer = format!("Bearer {}", made.text);
    assert_eq!(asked(&server, "GET", "/v1/models", &bearer), 200);
    server.revoke(&made.token.id);
    assert_eq!(asked(&server, "GET", "/v1/models", &bearer), 401);
}

#[tokio::test]
async fn others_are_let_in_only_with_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tyrex.db").to_str().expect("a name").to_owned();
    let database = Database::open(&file).await.expect("a database");
    for address in ["0.0.0.0:0", "[::]:0"] {
        let config = Config { address: address.parse().expect("an address"), ..Config::default() };
        let refused = Service::bind(&config, &database).await;
        assert!(matches!(refused, Err(Error::NoTokens { .. })), "{address}");
    }
    let config =
        Config { address: "127.0.0.1:0".parse().expect("an address"), ..Config::default() };
    let service = Service::bind(&config, &database).await.expect("an open one on loopback");
    let taken = Config { address: service.address(), ..Config::default() };
    let file = folder.path().join("other.db").to_str().expect("a name").to_owned();
    let database = Database::open(&file).await.expect("a database");
    let refused = Service::bind(&taken, &database).await.err().map(|error| error.to_string());
    assert!(refused.is_some_and(|error| error.contains("cannot listen on 127.0.0.1")));
}
