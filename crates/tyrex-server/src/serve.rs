//! The service from start to graceful shutdown.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Handle, Server};
use hyper_util::rt::TokioTimer;
use tokio::time::{Instant, timeout_at};
use tyrex_ledger::database::{self, Database, ServiceLock};

use crate::access::{self, Tokens};
use crate::config::{Config, Limits};
use crate::connection::Doorman;
use crate::state::AppState;
use crate::{app, tls};

/// The largest head of a request, in bytes: its first line and its headers.
const LARGEST_HEAD: usize = 1 << 16;

/// Why the service does not start, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Tokens are required and there is no valid one.
    #[error("tokens are required on {address}, and there is no valid token")]
    NoTokens {
        /// The address.
        address: SocketAddr,
    },
    /// Another service claimed the database while the connection was lost.
    #[error("another service has claimed the database")]
    Ousted,
    /// The sockets failed.
    #[error("the service ended: {0}")]
    Ended(#[source] std::io::Error),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] database::Error),
    /// The tokens cannot be read.
    #[error(transparent)]
    Access(#[from] access::Error),
    /// The library rejected a file.
    #[error(transparent)]
    Library(#[from] tyrex::Error),
}

/// A service with its database, address and certificate. Clients can connect, and wait.
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<RustlsConfig>,
    lock: ServiceLock,
}

impl Service {
    /// Claims the database, binds the address and reads the certificate. Fails if another service
    /// runs on the database, or if other machines can reach the address and there is no valid
    /// token.
    pub async fn bind(config: &Config, database: &Database) -> Result<Self, Error> {
        let address = config.address;
        if config.demands_tokens() && !Tokens::new(database.clone()).any_good().await? {
            return Err(Error::NoTokens { address });
        }
        let lock = database.lock_for_service().await?;
        let tls = config.tls.as_ref().map(tls::load).transpose()?;
        let failed = |source| Error::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls, lock })
    }

    /// The address it listens on, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for a browser.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }

    /// Answers until `end` completes, then finishes short work and suspends the rest, within the
    /// time limit.
    pub async fn run(self, state: AppState, end: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { listener, tls, mut lock, .. } = self;
        let limits = state.config.limits.clone();
        let handle = Handle::new();
        let doorman = Doorman::new(limits.connections, limits.idle);
        let server = axum_server::from_tcp(listener).map_err(Error::Ended)?.handle(handle.clone());
        let service = app(state.clone()).into_make_service_with_connect_info::<SocketAddr>();
        let serving = async {
            match &tls {
                None => bounded(server.acceptor(doorman), &limits).serve(service).await,
                Some(config) => {
                    let acceptor = RustlsAcceptor::new(config.clone())
                        .handshake_timeout(limits.headers)
                        .acceptor(doorman);
                    bounded(server.acceptor(acceptor), &limits).serve(service).await
                }
            }
        };
        let reloading = reload(tls.as_ref(), &state.config);
        let ending = async {
            let ousted = tokio::select! {
                () = end => false,
                () = lock.lost() => true,
            };
            let deadline = Instant::now() + limits.drain;
            let requests = handle.connection_count();
            tracing::info!(connections = requests, "the service is shutting down");
            handle.graceful_shutdown(Some(limits.drain));
            (deadline, ousted)
        };
        tokio::pin!(serving, reloading);
        let (deadline, ousted) = tokio::select! {
            ended = &mut serving => return ended.map_err(Error::Ended),
            () = &mut reloading => (Instant::now(), false),
            ending = ending => ending,
        };
        let parking = timeout_at(deadline, state.engine.park());
        let (served, parked) = tokio::join!(serving, parking);
        served.map_err(Error::Ended)?;
        if parked.is_err() {
            tracing::warn!("unfinished work continues after the next start");
        }
        // Closing the database may take time, so the wait is bounded.
        let closing = async {
            state.database.close().await;
            lock.release().await;
        };
        let _ = timeout_at(deadline + Duration::from_secs(1), closing).await;
        tracing::info!("the service has stopped");
        if ousted { Err(Error::Ousted) } else { Ok(()) }
    }
}

/// HTTP/1 only, since its slow clients are bounded. Setting another acceptor resets the protocols,
/// so this call comes last.
fn bounded<A>(server: Server<SocketAddr, A>, limits: &Limits) -> Server<SocketAddr, A> {
    let mut server = server.http1_only();
    server
        .http_builder()
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(LARGEST_HEAD);
    server
}

/// Reloads the certificate on SIGHUP. Never returns.
async fn reload(tls: Option<&RustlsConfig>, config: &Config) {
    #[cfg(unix)]
    if let (Some(current), Some(files)) = (tls, &config.tls) {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut hangup) = signal(SignalKind::hangup()) {
            while hangup.recv().await.is_some() {
                match tls::reload(current, files) {
                    Ok(()) => tracing::info!("reloaded the certificate"),
                    Err(error) => tracing::error!(%error, "kept the old certificate"),
                }
            }
        }
    }
    let _ = (tls, config);
    std::future::pending::<()>().await;
}

/// Completes on Ctrl-C or SIGTERM. A second signal ends the process at once.
pub async fn interrupted() {
    told_to_end().await;
    tokio::spawn(async {
        told_to_end().await;
        std::process::exit(130);
    });
}

async fn told_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    // If signals cannot be received, wait forever.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
