//! HTTPS.

use std::path::Path;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tyrex_server::config::TlsFiles;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::support::{Answer, eventually, start};

/// A certificate for localhost in two files; also what a client has to trust.
fn certificate(folder: &Path) -> (TlsFiles, String) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let files = TlsFiles { certificate: folder.join("server.pem"), key: folder.join("server.key") };
    std::fs::write(&files.certificate, cert.pem()).expect("a file");
    std::fs::write(&files.key, signing_key.serialize_pem()).expect("a file");
    (files, cert.pem())
}

fn agent(trusted: &str) -> Agent {
    let root = Certificate::from_pem(trusted.as_bytes()).expect("a certificate");
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&[root]))
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(Duration::from_secs(20)))
        .http_status_as_error(false)
        .build()
        .into()
}

#[test]
fn who_trusts_the_certificate_is_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, trusted) = certificate(folder.path());
    let server = start(|setting| setting.config.tls = Some(files));
    let url = format!("https://localhost:{}/healthz", server.address.port());
    let answer = agent(&trusted).get(&url).call().expect("an answer");
    assert_eq!(answer.status(), 200);
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("strict-transport-security"), Some("max-age=31536000"));
    // Another certificate of the same name is not trusted.
    let other = tempfile::tempdir().expect("a folder");
    let (_, stranger) = certificate(other.path());
    assert!(agent(&stranger).get(&url).call().is_err());
    // Without TLS there is no answer that could be mistaken for one.
    let plain = server.raw(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert!(Answer::read(&plain).is_none());
    // Idle connections do not block others.
    let _idle: Vec<_> = (0..50).map(|_| server.connect()).collect();
    assert_eq!(agent(&trusted).get(&url).call().expect("an answer").status(), 200);
}

#[cfg(unix)]
#[test]
fn the_certificate_is_read_again_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (files, first) = certificate(folder.path());
    let certificate_file = files.certificate.clone();
    let server = start(|setting| setting.config.tls = Some(files));
    let url = format!("https://localhost:{}/healthz", server.address.port());
    let is_trusted = |trusted: &str| agent(trusted).get(&url).call().is_ok();
    let hang_up = || {
        let own = std::process::id().to_string();
        let sent = std::process::Command::new("kill").args(["-HUP", &own]).status();
        assert!(sent.expect("a signal").success());
    };
    assert!(is_trusted(&first));
    let (_, second) = certificate(folder.path());
    assert!(is_trusted(&first), "nobody has asked for it yet");
    hang_up();
    eventually("the second certificate", || is_trusted(&second));
    assert!(!is_trusted(&first));
    // Files that cannot be read change nothing.
    std::fs::write(&certificate_file, "nonsense").expect("a file");
    hang_up();
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_trusted(&second));
}

#[tokio::test]
async fn files_that_are_no_certificate_are_named() {
    use tyrex_ledger::database::Database;
    use tyrex_server::config::Config;
    use tyrex_server::serve::Service;

    let folder = tempfile::tempdir().expect("a folder");
    let (good, _) = certificate(folder.path());
    let other = tempfile::tempdir().expect("a folder");
    let (strange, _) = certificate(other.path());
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").expect("a file");
    let missing = folder.path().join("missing.pem");
    let database = folder.path().join("tyrex.db").to_str().expect("a name").to_owned();
    let database = Database::open(&database).await.expect("a database");
    let cases = [
        (&missing, &good.key, "missing.pem"),
        (&empty, &good.key, "empty.pem: no certificate"),
        (&good.certificate, &empty, "empty.pem: no private key"),
        (&good.certificate, &good.certificate, "server.pem: no private key"),
        (&good.certificate, &strange.key, "server.pem: cannot be used"),
    ];
    for (certificate, key, expected) in cases {
        let tls = TlsFiles { certificate: certificate.clone(), key: key.clone() };
        let address = "127.0.0.1:0".parse().expect("an address");
        let config = Config { address, tls: Some(tls), ..Config::default() };
        let refused = Service::bind(&config, &database).await.err().map(|error| error.to_string());
        let refused = refused.unwrap_or_else(|| panic!("{expected}: it started"));
        assert!(refused.contains(expected), "{refused}");
    }
}
