//! The shared state of all handlers.

use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::Arc;

use tyrex::Result;
use tyrex_ledger::database::Database;
use tyrex_ledger::ledger::Ledger;

use crate::access::{Rate, Tokens};
use crate::config::Config;
use crate::engine::Engine;
use crate::limits::BodyBudget;
use crate::metrics::Metrics;
use crate::results::Reports;
use crate::routes::DatabaseSeen;

/// Default requests per second of one token.
const USUAL_RATE: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");

/// The running service. Clones share it.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Parts>);

/// The parts of the running service.
#[derive(Debug)]
pub struct Parts {
    /// The database.
    pub(crate) database: Database,
    /// The models and the work.
    pub(crate) engine: Arc<Engine>,
    /// The promises.
    pub(crate) ledger: Ledger,
    /// The tokens.
    pub(crate) tokens: Tokens,
    /// The configuration.
    pub(crate) config: Config,
    /// The metrics.
    pub(crate) metrics: Metrics,
    /// The rate limit; none on loopback without tokens.
    pub(crate) rate: Option<Rate>,
    /// Memory for the bodies of requests.
    pub(crate) room: BodyBudget,
    /// The reports of experiments.
    pub(crate) reports: Reports,
    /// Whether the database answers and has room.
    pub(crate) seen: DatabaseSeen,
}

impl AppState {
    /// Assembles the parts.
    pub fn new(config: Config, database: Database, engine: Arc<Engine>) -> Result<Self> {
        let rate = config.limits.rate.or_else(|| config.demands_tokens().then_some(USUAL_RATE));
        let reports = Reports::load(config.results.as_deref())?;
        Ok(Self(Arc::new(Parts {
            ledger: Ledger::new(database.clone()),
            tokens: Tokens::new(database.clone()),
            database,
            metrics: Metrics::new(&engine),
            engine,
            rate: rate.map(Rate::new),
            room: BodyBudget::new(config.limits.bodies),
            reports,
            seen: DatabaseSeen::default(),
            config,
        })))
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
