//! The work behind the service: models, a bounded compute pool, batches and jobs.
