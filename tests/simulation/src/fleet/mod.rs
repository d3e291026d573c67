//! Fleet: many clients on the shards of a cluster, one of which fails, in virtual time.
//!
//! A client is real in its decisions ([`Acquisition`](locktender::internals::protocol::Acquisition),
//! [`LocalQueues`](locktender::internals::wait::LocalQueues)), and a shard in what it does with its keys
//! ([`machine::apply`](locktender::machine::apply)). The network is a latency. A shard does one command after the other, each in the time
//! that a real server needs. A replica gets what its primary has done a little later, and takes over a while after the primary
//! has failed. There are no redirects: a client knows the shard of a slot, and learns of the new primary after the takeover.
//!
//! One seed decides everything, as in the other simulation.

#![allow(clippy::expect_used, reason = "a fleet that breaks a promise fails its test at once")]

mod agenda;
mod client;
mod events;
mod report;
mod shard;
mod users;

use super::clock::{Instant, ms};

pub use report::{Report, Spread};

/// One second.
const SECOND: Instant = ms(1_000);

/// The size and the times of a fleet.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct FleetPlan {
    pub seed: u64,
    pub clients: usize,
    pub shards: usize,
    /// Locks that are held and renewed all the time.
    pub held: usize,
    /// Names that are acquired and released once. For every tenth, a second client waits.
    pub names: usize,
    /// The time over which these acquires are spread, in microseconds.
    pub busy_us: u64,
    /// The time from the begin of them to the failure of a shard.
    pub fails_after_us: u64,
    /// The time in which the nodes agree that a primary has failed, `cluster-node-timeout`.
    pub node_timeout_us: u64,
    /// Whether a client confirms all of its holds when one shard has another primary, and not those of this shard alone.
    pub confirms_all: bool,
}

impl FleetPlan {
    /// 10,000 clients with 100,000 locks that are held, and a million names within a minute.
    #[must_use]
    pub const fn large() -> Self {
        Self {
            seed: 1,
            clients: 10_000,
            shards: 6,
            held: 100_000,
            names: 1_000_000,
            busy_us: 60 * SECOND,
            fails_after_us: 20 * SECOND,
            node_timeout_us: 5 * SECOND,
            confirms_all: false,
        }
    }

    /// A hundredth of the names, and a fiftieth of the clients with their locks.
    #[must_use]
    pub const fn small() -> Self {
        Self { clients: 200, held: 2_000, names: 10_000, busy_us: 30 * SECOND, fails_after_us: 10 * SECOND, ..Self::large() }
    }
}

/// Runs a fleet until all names were released.
///
/// # Panics
/// If a promise is broken: a fence that does not rise, a lock that is lost on a shard that does not fail, an error.
#[must_use]
pub fn run_fleet(plan: FleetPlan) -> Report {
    events::World::new(plan).run()
}
