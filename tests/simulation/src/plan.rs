//! The plan: the decisions of one seed before the run begins.

use std::time::Duration;

use super::clock::ms;
use super::faults::{Fault, draw, draw_failovers, draw_returns, draw_stalls};
use super::lost_marks;
use super::resets;

/// By this number it is drawn which runs have readers and permits.
const SHARED: u64 = 0x1479_7EBF;

/// By this number it is drawn in which runs users acquire several locks at once.
const TOGETHER: u64 = 0x5E81_CE15;

/// By this number it is drawn in which runs locks that may be free are acquired on the fast path.
const FAST_PATH: u64 = 0x1515_1848_F57A_03FE;

/// By this number it is drawn in which runs users run jobs.
const JOBS: u64 = 0x02C0_09AC;

/// By this number it is drawn in which runs marks are deleted.
const LOST_MARKS: u64 = 0x1057_3A94;

/// By this number it is drawn in which runs jobs are reset.
const RESETS: u64 = 0x0002_E5E7;

/// By this number it is drawn in which runs the locks are those of elections.
const ELECTIONS: u64 = 0x0E1E_EF2C_9892;

/// The frame of one run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of everything else.
    pub seed: u64,
    /// The number of servers.
    pub servers: usize,
    /// The number of clients, each a process.
    pub clients: usize,
    /// The number of users of each client.
    pub workers: usize,
    /// The number of locks that they compete for.
    pub names: usize,
    /// The time in which users begin new work and faults happen, microseconds.
    pub busy_us: u64,
    /// The lowest latency of one direction, microseconds.
    pub latency_us: u64,
    /// The most jitter on top of the latency, microseconds.
    pub jitter_us: u64,
    /// The number of messages in a thousand that are lost once, and sent again by TCP.
    pub lost_per_mille: u64,
    /// Option of the clients.
    pub response_timeout: Duration,
    /// Option of the clients.
    pub unavailable_after: Duration,
    /// Option of the clients, with more than one server.
    pub max_ttl: Duration,
    /// The longest ttl that users choose, milliseconds.
    pub longest_ttl_ms: u64,
    /// Wall clocks of clients are off by up to this much, microseconds.
    pub wall_skew_us: u64,
    /// Wall clocks of servers are ahead by up to this much, microseconds.
    pub server_skew_us: u64,
    /// The lead of the fences over the clocks, 0 for none: a clock was wrong once. From there servers count up one by one, and two
    /// of them often differ, or agree, by chance.
    pub ahead_us: u64,
    /// Clocks run fast or slow by up to this many millionths: two of them differ by less than the drift allowance.
    pub drift_ppm: i64,
    /// The number of messages to waiters in a thousand that never arrive.
    pub lost_notices_per_mille: u16,
    /// Whether most users ask for a fair queue.
    pub fair: bool,
    /// Whether a fault breaks an assumption of the promised exclusion.
    pub outside: bool,
    /// Whether clients measure time on a clock that stops while their machine is suspended. That is never so, except to see that
    /// the checks notice it.
    pub clocks_stop_in_suspend: bool,
    /// Whether round trips may take half a ttl.
    pub is_slow: bool,
    /// Whether nothing goes wrong but the faults of the network.
    pub is_calm: bool,
    /// Whether each client has two connections to each server, without an order between them.
    pub has_two_ways: bool,
    /// Whether clients of another library take the locks, too.
    pub has_foreigners: bool,
    /// Whether replicas of a single server are promoted.
    pub fails_over: bool,
    /// Whether the clients of a single server have quarantine for that.
    pub quarantine: bool,
    /// Whether some users of a single server are readers, and some want permits.
    pub is_shared: bool,
    /// Whether some users of a single server acquire several locks at once.
    pub is_together: bool,
    /// Whether most users of a single server run jobs of the locks' names.
    pub has_jobs: bool,
    /// Whether a lock that may be free is acquired on the fast path.
    pub has_fast_path: bool,
    /// Whether the locks of a single server are those of elections: no transaction takes them.
    pub is_election: bool,
    pub(super) faults: Vec<(u64, Fault)>,
}

impl Plan {
    /// The plan of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x5EED_0000_0000);
        let servers = [1, 1, 1, 3, 3, 3, 3, 5, 5, 2, 4][rng.usize(..11)];
        let (latency_us, jitter_us) = [(50, 400), (200, 3_000), (1_000, 10_000), (5_000, 30_000)][rng.usize(..4)];
        let quorum = servers > 1;
        let response_timeout = Duration::from_millis(if quorum { 200 } else { [200, 500, 1_000][rng.usize(..3)] });
        let max_ttl_ms = [1_500, 3_000, 6_000][rng.usize(..3)];
        let mut longest_ttl_ms = [300, 1_000, 3_000][rng.usize(..3)].min(max_ttl_ms);
        // Much longer than any answer is waited for; a quorum bounds every ttl.
        if !quorum && rng.u8(..3) == 0 {
            longest_ttl_ms = 120_000;
        }
        let mut plan = Self {
            seed,
            servers,
            clients: rng.usize(2..=4),
            workers: rng.usize(1..=3),
            names: rng.usize(1..=3),
            busy_us: ms(20_000),
            latency_us,
            jitter_us,
            lost_per_mille: [0, 0, 2, 20, 100][rng.usize(..5)],
            response_timeout,
            unavailable_after: Duration::from_millis([500, 1_500, 5_000][rng.usize(..3)]),
            max_ttl: Duration::from_millis(max_ttl_ms),
            longest_ttl_ms,
            wall_skew_us: [0, 0, ms(50), ms(2_000), ms(3_600_000)][rng.usize(..5)],
            drift_ppm: [0, 100, 4_000][rng.usize(..3)],
            lost_notices_per_mille: [0, 0, 10, 300][rng.usize(..4)],
            fair: servers == 1 && rng.bool(),
            server_skew_us: [0, ms(20), ms(2_000), ms(600_000)][rng.usize(..4)],
            ahead_us: if rng.bool() { rng.u64(..ms(1_800_000)) } else { 0 },
            outside: false,
            clocks_stop_in_suspend: false,
            is_slow: seed % 5 == 2,
            is_calm: false,
            has_two_ways: false,
            has_foreigners: false,
            fails_over: false,
            quarantine: false,
            is_shared: false,
            is_together: false,
            has_jobs: false,
            has_fast_path: false,
            is_election: false,
            faults: Vec::new(),
        };
        draw(&mut plan, &mut rng);
        plan.is_calm = plan.faults.is_empty();
        // Drawn from a generator of its own, so that the other half of the seeds stays the same.
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x2_3A75);
        plan.has_two_ways = rng.bool();
        if plan.has_two_ways && rng.u8(..3) == 0 {
            let client = rng.usize(..plan.clients);
            plan.faults.push((rng.u64(..plan.busy_us), Fault::CloseBehindAcquire { client }));
        }
        plan.has_foreigners = rng.u8(..4) == 0;
        draw_failovers(&mut plan, &mut fastrand::Rng::with_seed(seed ^ 0x0FA1_1075));
        // The seeds that the tests keep have no stalls by this number, and so still show what they once showed.
        draw_stalls(&mut plan, &mut fastrand::Rng::with_seed(seed ^ 0x0001_9FD8_7A11));
        // Nor do they have returns.
        draw_returns(&mut plan, &mut fastrand::Rng::with_seed(seed ^ 0x20C3_0000));
        // And none of theirs has readers and permits.
        plan.is_shared = plan.servers == 1 && fastrand::Rng::with_seed(seed ^ SHARED).u8(..3) == 0;
        // Or acquires several locks at once.
        let may_be_together = plan.servers == 1 && plan.names > 1;
        plan.is_together = may_be_together && fastrand::Rng::with_seed(seed ^ TOGETHER).u8(..3) == 0;
        // Or runs jobs.
        let may_have_jobs = plan.servers == 1 && !plan.is_shared && !plan.is_together;
        plan.has_jobs = may_have_jobs && fastrand::Rng::with_seed(seed ^ JOBS).u8(..3) == 0;
        // Or has the fast path.
        plan.has_fast_path = plan.servers == 1 && fastrand::Rng::with_seed(seed ^ FAST_PATH).bool();
        // Or has elections.
        let may_be_election = may_have_jobs && !plan.has_jobs;
        plan.is_election = may_be_election && fastrand::Rng::with_seed(seed ^ ELECTIONS).u8(..3) == 0;
        // Or loses marks.
        lost_marks::draw(&mut plan, &mut fastrand::Rng::with_seed(seed ^ LOST_MARKS));
        // Or has its jobs reset.
        resets::draw(&mut plan, &mut fastrand::Rng::with_seed(seed ^ RESETS));
        plan
    }

    pub(super) const fn needed(&self) -> usize {
        self.servers / 2 + 1
    }
}
