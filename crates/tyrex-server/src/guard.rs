//! Protection of browsers: security headers, and checks against requests by other sites.
//!
//! On loopback there are no tokens, so a page from another site must not reach the service through
//! the visitor's browser. A host name that resolves to this machine (DNS rebinding) is not one of
//! its own names; a form or script of another origin has headers that say so.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode};

use crate::config::Config;
use crate::problem::Problem;

/// The page may load its own files only.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; connect-src 'self'; frame-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";

/// The headers of every response that does not set them itself.
const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    // Responses hold personal data. The page's own files override this.
    (CACHE_CONTROL, "no-store"),
];

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Adds the security headers.
pub(crate) fn head(config: &Config, headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if config.tls.is_some() {
        let a_year = HeaderValue::from_static("max-age=31536000");
        headers.insert(STRICT_TRANSPORT_SECURITY, a_year);
    }
}

/// Rejects requests that a page of another site sends through a browser.
pub(crate) fn foreign(config: &Config, request: &Request) -> Option<Problem> {
    let refusal = if config.demands_tokens() { None } else { foreign_host(request) };
    refusal.or_else(|| foreign_origin(request))
}

/// Rejects a host that is not one of this machine's own names. A request without a host does not
/// come from a browser.
fn foreign_host(request: &Request) -> Option<Problem> {
    let own = |host: &str| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    };
    let named = request.headers().get_all(HOST).iter().map(|host| {
        let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        authority.is_some_and(|authority| {
            // Only a name and a port: no user, and the port is a number.
            let rest = authority.as_str().strip_prefix(authority.host());
            own(authority.host()) && rest.is_some_and(|rest| rest.is_empty() || is_port(rest))
        })
    });
    let in_path = request.uri().authority().map(|authority| own(authority.host()));
    if named.chain(in_path).all(|own| own) {
        return None;
    }
    let detail = "this service accepts only the hosts localhost and 127.0.0.1; to use another \
                  name, require tokens (--require-tokens)";
    Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail))
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

/// A request that changes something and comes from another site's page.
fn foreign_origin(request: &Request) -> Option<Problem> {
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method()) {
        return None;
    }
    let headers = request.headers();
    let own = if let Some(site) = headers.get(FETCH_SITE) {
        site == "same-origin" || site == "none"
    } else if let Some(origin) = headers.get(ORIGIN) {
        let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        authority.is_some_and(|(_, authority)| Some(authority) == host)
    } else {
        true
    };
    (!own).then(|| Problem::new(StatusCode::FORBIDDEN, "requests from other sites are not allowed"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(method: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri("/v1/explain");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn only_the_machines_own_names_are_answered() {
        let own =
            ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::1]"];
        for host in own {
            assert!(foreign_host(&request("GET", &[("host", host)])).is_none(), "{host}");
        }
        let foreign = [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:8080",
            "10.0.0.1",
            "",
            "localhost:port",
            "user@evil.example",
            "[::2]",
            "0.0.0.0",
        ];
        for host in foreign {
            assert!(foreign_host(&request("GET", &[("host", host)])).is_some(), "{host}");
        }
        let both = [("host", "localhost"), ("host", "evil.example")];
        assert!(foreign_host(&request("GET", &both)).is_some());
        assert!(foreign_host(&request("GET", &[])).is_none());
    }

    #[test]
    fn other_sites_change_nothing() {
        let host = ("host", "localhost:8080");
        type Headers<'a> = &'a [(&'a str, &'a str)];
        let cases: [(&str, Headers<'_>, bool); 9] = [
            ("POST", &[host], true),
            ("POST", &[host, ("origin", "http://localhost:8080")], true),
            ("POST", &[host, ("origin", "http://localhost:9090")], false),
            ("POST", &[host, ("origin", "null")], false),
            ("DELETE", &[host, ("origin", "https://evil.example")], false),
            ("POST", &[host, ("sec-fetch-site", "same-origin")], true),
            ("POST", &[host, ("sec-fetch-site", "cross-site")], false),
            ("POST", &[host, ("sec-fetch-site", "same-site")], false),
            ("GET", &[host, ("sec-fetch-site", "cross-site")], true),
        ];
        for (method, headers, allowed) in cases {
            let refusal = foreign_origin(&request(method, headers));
            assert_eq!(refusal.is_none(), allowed, "{method} {headers:?}");
        }
    }
}
