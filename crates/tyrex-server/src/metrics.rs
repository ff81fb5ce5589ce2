//! What is counted, for Prometheus.

/// The counters of the service.
#[derive(Debug, Default)]
pub(crate) struct Metrics {}
