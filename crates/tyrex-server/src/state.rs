//! What every handler is given.

use std::num::NonZeroU32;
use std::sync::Arc;

use tyrex::Result;

use crate::access::{Rate, Tokens};
use crate::config::Config;
use crate::database::Database;
use crate::engine::Engine;
use crate::ledger::Ledger;
use crate::limits::Room;
use crate::metrics::Metrics;
use crate::results::Reports;

/// Requests per second of one token, if nothing else is set.
const USUAL_RATE: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");

/// The parts of the running service. Clones share them.
#[derive(Debug, Clone)]
pub struct AppState {
    /// Everything that lasts.
    pub(crate) database: Database,
    /// The models and the work.
    pub(crate) engine: Arc<Engine>,
    /// The promises.
    pub(crate) ledger: Ledger,
    /// Who may ask.
    pub(crate) tokens: Tokens,
    /// What was set.
    pub(crate) config: Arc<Config>,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// How often one caller may ask; on an open loopback as often as he likes.
    pub(crate) rate: Option<Arc<Rate>>,
    /// Memory for the bodies of requests.
    pub(crate) room: Room,
    /// The reports of experiments.
    pub(crate) reports: Arc<Reports>,
}

impl AppState {
    /// The parts together.
    pub fn new(config: Config, database: Database, engine: Arc<Engine>) -> Result<Self> {
        let rate = config.limits.rate.or_else(|| config.demands_tokens().then_some(USUAL_RATE));
        Ok(Self {
            ledger: Ledger::new(database.clone()),
            tokens: Tokens::new(database.clone()),
            database,
            metrics: Arc::new(Metrics::new(&engine)),
            engine,
            rate: rate.map(|rate| Arc::new(Rate::new(rate))),
            room: Room::new(config.limits.bodies),
            reports: Arc::new(Reports::load(config.results.as_deref())?),
            config: Arc::new(config),
        })
    }
}
