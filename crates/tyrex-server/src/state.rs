//! What every handler is given.

use std::sync::Arc;

use crate::config::Config;
use crate::metrics::Metrics;

/// The parts of the running service. Clones share them.
#[derive(Debug, Clone)]
pub struct AppState {
    /// What was set.
    pub(crate) config: Arc<Config>,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
}

impl AppState {
    /// The parts together.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config: Arc::new(config), metrics: Arc::new(Metrics::default()) }
    }
}
