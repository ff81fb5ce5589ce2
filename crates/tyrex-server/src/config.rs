//! What can be set about the service.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// How the service is reached, whom it lets in and how much it takes on.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether callers need a token. An address that is not loopback always demands them.
    pub require_tokens: bool,
    /// Certificate and key, for HTTPS.
    pub tls: Option<TlsFiles>,
    /// A folder of `tyrex experiment run`, to be shown instead of the results that ship.
    pub results: Option<PathBuf>,
    /// How much it takes on.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            require_tokens: false,
            tls: None,
            results: None,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Whether callers need a token.
    #[must_use]
    pub fn demands_tokens(&self) -> bool {
        self.require_tokens || !self.address.ip().is_loopback()
    }
}

/// The files of a certificate, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, and the chain that leads to its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// How much the service takes on.
///
/// | name | default | limits |
/// |---|---|---|
/// | `body` | 8 MiB | the size of a body |
/// | `upload` | 64 MiB | the size of a body with files |
/// | `bodies` | 512 MiB | the size of all bodies at one time |
/// | `rows` | 10 000 | rows in one request |
/// | `rows_at_once` | 64 | rows to advise while the client waits; more become a job |
/// | `time` | 60 s | the time until the answer |
/// | `connections` | 4096 | connections at one time |
/// | `headers` | 15 s | the time until a request's headers are there; idle connections too |
/// | `idle` | 20 s | the time without a byte, while a body is sent or an answer taken |
/// | `rate` | 100/s with tokens, else none | requests of one token, or of one address |
/// | `drain` | 20 s | the time between the signal to end and the end |
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of a body with files.
    pub upload: usize,
    /// Bytes of all bodies at one time.
    pub bodies: usize,
    /// Rows in one request.
    pub rows: usize,
    /// Rows to advise while the client waits.
    pub rows_at_once: usize,
    /// Time until the answer.
    pub time: Duration,
    /// Connections at one time.
    pub connections: usize,
    /// Time until a request's headers are there.
    pub headers: Duration,
    /// Time without a byte, while a body is sent or an answer is taken.
    pub idle: Duration,
    /// Requests per second of one token, or of one address where there are no tokens.
    pub rate: Option<NonZeroU32>,
    /// Time between the signal to end and the end.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MEBIBYTE: usize = 1 << 20;
        Self {
            body: 8 * MEBIBYTE,
            upload: 64 * MEBIBYTE,
            bodies: 512 * MEBIBYTE,
            rows: 10_000,
            rows_at_once: 64,
            time: Duration::from_mins(1),
            connections: 4096,
            headers: Duration::from_secs(15),
            idle: Duration::from_secs(20),
            rate: None,
            drain: Duration::from_secs(20),
        }
    }
}
