//! The ledger of promises: append-only, chained by hashes.
