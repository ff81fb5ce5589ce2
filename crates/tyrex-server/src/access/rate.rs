//! The rate limit per caller.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::Caller;
use crate::problem::Problem;

/// Inactive callers are removed after this many requests.
const TIDY_EVERY: u32 = 1 << 12;

/// Requests per second of each caller; a burst may be twice as large.
#[derive(Debug)]
pub(crate) struct Rate {
    limiter: DefaultKeyedRateLimiter<Asker>,
    seen: AtomicU32,
}

/// The key that requests are counted by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Asker {
    Token(String),
    Address(IpAddr),
}

impl Rate {
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let burst = per_second.saturating_mul(NonZeroU32::MIN.saturating_add(1));
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Self { limiter: RateLimiter::keyed(quota), seen: AtomicU32::new(0) }
    }

    /// Counts a request; rejects it if the caller exceeds the rate.
    pub(crate) fn check(&self, caller: &Caller, address: IpAddr) -> Result<(), Problem> {
        if self.seen.fetch_add(1, Ordering::Relaxed) % TIDY_EVERY == TIDY_EVERY - 1 {
            self.limiter.retain_recent();
        }
        let asker = match caller {
            Caller::Holder { id, .. } => Asker::Token(id.clone()),
            // Callers without a valid token are counted by address, which limits guessing.
            Caller::Anyone | Caller::Unknown(_) => Asker::Address(network(address)),
        };
        self.limiter.check_key(&asker).map_err(|early| {
            let wait = early.wait_time_from(DefaultClock::default().now());
            let detail = format!("too many requests; try again in {:.2} s", seconds(wait));
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait)
        })
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// A household has one IPv4 address, but a whole network of IPv6 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    fn holder(id: &str) -> Caller {
        Caller::Holder { id: id.to_owned(), role: Role::Read }
    }

    #[test]
    fn callers_are_counted_apart() {
        let rate = Rate::new(NonZeroU32::MIN);
        let (here, there) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let refused = |caller: &Caller, address| rate.check(caller, address).is_err();
        // One per second and a burst of two: the third is rejected.
        let answers = [(); 3].map(|()| refused(&holder("a"), here));
        assert_eq!(answers, [false, false, true]);
        assert!(!refused(&holder("b"), here));
        let answers = [(); 3].map(|()| refused(&Caller::Unknown("no token"), here));
        assert_eq!(answers, [false, false, true]);
        assert!(!refused(&Caller::Unknown("no token"), there));
        let problem = rate.check(&holder("a"), here).unwrap_err();
        assert_eq!(problem.status(), StatusCode::TOO_MANY_REQUESTS);
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(network(address("2001:db8:1:2:3:4:5:6")), address("2001:db8:1:2::"));
        assert_eq!(network(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        assert_eq!(network(address("10.0.0.1")), address("10.0.0.1"));
    }
}
