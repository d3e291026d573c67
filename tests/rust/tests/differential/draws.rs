//! Draws: the values of an operation that hang on what happened before.

use locktender::machine::FENCE_LIMIT;
use locktender::op::{QueuePlace, QuorumConfig};

use crate::step::{FLEETS, Steps, WAITERS};

impl Steps {
    /// A waiter with whatever it remembers of its arrival.
    pub(crate) fn place(&mut self, now_us: u64) -> QueuePlace {
        let arrival = self.pick(&[0, 0, now_us - 5_000_000, now_us - 900, now_us + 10_000_000]);
        QueuePlace { entry: self.pick(&WAITERS).into(), arrival, stays: self.rng.u8(..4) == 0 }
    }

    /// Mostly the same quorum.
    pub(crate) fn quorum_config(&mut self) -> Option<QuorumConfig> {
        match self.rng.u8(..10) {
            0 => None,
            1 => Some(FLEETS[1]),
            2 => Some(FLEETS[2]),
            3..6 => Some(FLEETS[3]),
            _ => Some(FLEETS[0]),
        }
    }

    pub(crate) fn proposal(&mut self, now_us: u64, fences: &[u64]) -> u64 {
        match self.rng.u8(..8) {
            0 => 0,
            1 => u64::MAX,
            2 => now_us + 3_700_000_000,
            4 => now_us + 1_500_000,
            // Above the last fence by what is near, or a little more.
            5 => fences.last().map_or(now_us, |fence| fence.saturating_add(self.rng.u64(1..1_100_000))),
            3 => now_us - 2_000_000,
            // Above what a signed 32-bit number of seconds, or fourteen digits, can distinguish.
            _ => now_us + self.rng.u64(..900_000),
        }
    }

    pub(crate) fn fence(&mut self, now_us: u64, fences: &[u64]) -> u64 {
        let last = fences.last().copied().unwrap_or(now_us);
        match self.rng.u8(..10) {
            0 => now_us + self.rng.u64(..1_000),
            1 => last.saturating_sub(1),
            // A greater one is no fence, and a script does not know it from its neighbours.
            2 => (last + 1).min(FENCE_LIMIT),
            3 => FENCE_LIMIT,
            _ if fences.is_empty() => last,
            4 => fences[self.rng.usize(..fences.len())],
            _ => last,
        }
    }
}
