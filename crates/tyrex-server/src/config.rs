//! The configuration of the service.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Network, access and limits of the service.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Whether callers need a token. An address that is not loopback always requires tokens.
    pub require_tokens: bool,
    /// Certificate and key, for HTTPS.
    pub tls: Option<TlsFiles>,
    /// A folder of `tyrex experiment run`, to show instead of the built-in results.
    pub results: Option<PathBuf>,
    /// The limits.
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

/// The limits of the service.
///
/// | name | default | limits |
/// |---|---|---|
/// | `body` | 8 MiB | the size of a body |
/// | `upload` | 64 MiB | the size of a body with files |
/// | `bodies` | 512 MiB | the size of all bodies together |
/// | `rows` | 10 000 | rows in one request |
/// | `rows_at_once` | 64 | rows that `explain` answers directly; a request with more becomes a job
/// |
/// | `time` | 60 s | the time until the response |
/// | `connections` | 4096 | concurrent connections |
/// | `headers` | 15 s | the time until a request's headers arrive; idle connections too |
/// | `idle` | 20 s | the time without progress while a body is sent or a response is read |
/// | `rate` | 100/s with tokens, else none | requests of one token, or of one address |
/// | `drain` | 20 s | the time for a graceful shutdown |
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Bytes of a body with files.
    pub upload: usize,
    /// Bytes of all bodies together.
    pub bodies: usize,
    /// Rows in one request.
    pub rows: usize,
    /// Rows that `explain` answers directly.
    pub rows_at_once: usize,
    /// Time until the response.
    pub time: Duration,
    /// Concurrent connections.
    pub connections: usize,
    /// Time until a request's headers arrive.
    pub headers: Duration,
    /// Time without progress while a body is sent or a response is read.
    pub idle: Duration,
    /// Requests per second of one token, or of one address without tokens.
    pub rate: Option<NonZeroU32>,
    /// Time for a graceful shutdown.
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
