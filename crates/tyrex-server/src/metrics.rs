//! Counters for Prometheus.
