//! Structured logs, without personal data.
