//! What is counted, for Prometheus.

use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// Seconds: from a tenth of a millisecond to a minute.
const LATENCIES: [f64; 14] =
    [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.5, 2.5, 10.0, 60.0];

/// The counters of the service.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answer, Counter>,
    latency: Family<Route, Histogram, fn() -> Histogram>,
    limited: Counter,
    memory: Gauge,
}

/// What tells requests apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("tyrex");
        let requests = Family::default();
        registry.register("requests", "Requests by route, method and status", requests.clone());
        let latency: Family<Route, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCIES));
        let about = "Time from the headers of a request to those of its answer";
        registry.register_with_unit("latency", about, Unit::Seconds, latency.clone());
        let limited = Counter::default();
        registry.register("rate_limited", "Requests refused with status 429", limited.clone());
        let memory = Gauge::default();
        let about = "Memory that the process occupies";
        registry.register_with_unit("memory", about, Unit::Bytes, memory.clone());
        Self { registry, requests, latency, limited, memory }
    }

    /// A request was answered.
    pub(crate) fn answered(
        &self,
        route: &str,
        method: &'static str,
        status: StatusCode,
        took: Duration,
    ) {
        let route = route.to_owned();
        let answer = Answer { route: route.clone(), method, status: status.as_u16() };
        self.requests.get_or_create(&answer).inc();
        self.latency.get_or_create(&Route { route }).observe(took.as_secs_f64());
    }

    /// A request came too soon.
    pub(crate) fn limited(&self) {
        self.limited.inc();
    }

    /// All of them, in the text format of OpenMetrics.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        if let Some(bytes) = resident_memory() {
            self.memory.set(bytes);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The memory this process occupies, where the system says so in a file.
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
