//! The ledger of promises, and its database.
//!
//! [`database`] is a SQLite file or PostgreSQL; [`ledger`] is the append-only chain of promises in
//! it. The service keeps its own tables in the same database.

pub mod database;
pub mod ledger;

use std::time::SystemTime;

use uuid::{NoContext, Timestamp, Uuid};

/// A new identifier; identifiers are in the order of their times. A clock before 1970 has no time
/// that they could hold, so they begin with zeros.
pub fn new_id() -> Uuid {
    id_at(SystemTime::now())
}

fn id_at(now: SystemTime) -> Uuid {
    if now < SystemTime::UNIX_EPOCH {
        return Uuid::new_v7(Timestamp::from_unix(NoContext, 0, 0));
    }
    Uuid::now_v7()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_before_1970_has_identifiers_too() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let (one, other) = (id_at(early), id_at(early));
        assert_ne!(one, other);
        assert_eq!(one.get_version_num(), 7);
        assert!(one < id_at(SystemTime::now()));
    }
}
