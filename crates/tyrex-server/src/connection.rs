//! Connections: their number, and the time limit for slow clients.

use std::future::{Future as _, Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Limits the number of connections. Further ones are closed before anything is read from them.
#[derive(Debug, Clone)]
pub(crate) struct Doorman {
    places: Arc<Semaphore>,
    patience: Duration,
}

impl Doorman {
    /// With this many connections; one that reads nothing of its response for this long is closed.
    pub(crate) fn new(places: usize, patience: Duration) -> Self {
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self { places, patience }
    }
}

impl<S> Accept<TcpStream, S> for Doorman {
    type Stream = Connection<TcpStream>;
    type Service = S;
    type Future = Ready<io::Result<(Self::Stream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            tracing::warn!("a connection was closed: the limit is reached");
            return ready(Err(io::ErrorKind::ConnectionRefused.into()));
        };
        // Responses are small, so sending must not wait for more data.
        let connection = stream.set_nodelay(true).map(|()| Connection {
            stream,
            patience: self.patience,
            stalled: None,
            _place: place,
        });
        ready(connection.map(|connection| (connection, service)))
    }
}

/// A stream that fails if the peer reads nothing for too long.
#[derive(Debug)]
pub(crate) struct Connection<T> {
    stream: T,
    patience: Duration,
    /// Runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

impl<T> Connection<T> {
    /// The outcome of a write, or an error after the time limit.
    fn patiently<O>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<O>>,
    ) -> Poll<io::Result<O>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Connection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patiently(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.patiently(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.patiently(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.patiently(context, outcome)
    }
}
