//! Metrics for Prometheus.

use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::engine::Engine;
use crate::engine::jobs::JobState;

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
    queue: Gauge,
    busy: Gauge,
    models: Gauge,
    jobs: Family<InState, Gauge>,
    memory: Gauge,
}

/// The labels of requests.
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

impl Metrics {
    pub(crate) fn new(engine: &Engine) -> Self {
        let mut registry = Registry::with_prefix("tyrex");
        let requests = Family::default();
        registry.register("requests", "Requests by route, method and status", requests.clone());
        let latency: Family<Route, Histogram, fn() -> Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCIES));
        let about = "Time from the headers of a request to those of its response";
        registry.register_with_unit("latency", about, Unit::Seconds, latency.clone());
        let limited = Counter::default();
        registry.register("rate_limited", "Requests refused with status 429", limited.clone());
        let about = "Rows per batch; the sum is the number of all rows";
        registry.register("batch_rows", about, engine.batches());
        let queue = Gauge::default();
        registry.register("queue_length", "Tasks that wait for a thread", queue.clone());
        let busy = Gauge::default();
        registry.register("busy_threads", "Busy threads", busy.clone());
        let models = Gauge::default();
        registry.register("models", "Served models", models.clone());
        let jobs = Family::default();
        registry.register("jobs", "Jobs by state", jobs.clone());
        let memory = Gauge::default();
        let about = "Resident memory of the process";
        registry.register_with_unit("memory", about, Unit::Bytes, memory.clone());
        Self { registry, requests, latency, limited, queue, busy, models, jobs, memory }
    }

    /// Counts a response.
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

    /// Counts a request above the rate limit.
    pub(crate) fn limited(&self) {
        self.limited.inc();
    }

    /// All metrics in the text format of `OpenMetrics`.
    pub(crate) fn text(&self, engine: &Engine) -> Result<String, std::fmt::Error> {
        self.queue.set(engine.queue_length() as i64);
        self.busy.set(engine.threads().1 as i64);
        self.models.set(engine.models().len() as i64);
        let jobs = engine.jobs();
        for state in JobState::ALL {
            let count = jobs.iter().filter(|job| job.state == state).count();
            self.jobs.get_or_create(&InState { state: state.name() }).set(count as i64);
        }
        if let Some(bytes) = resident_memory() {
            self.memory.set(bytes);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The resident memory of this process, on systems with `/proc`.
fn resident_memory() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
