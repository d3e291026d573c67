//! Shard: a primary, which does one command after the other, and its replica.

use std::collections::VecDeque;

use locktender::machine::{Env, Message, State, apply};
use locktender::op::{Op, Reply, Verb};

use super::SECOND;
use crate::clock::{Instant, ms};

/// How long a command keeps the primary busy, as measured on real servers (`docs/performance.md`): 13 µs for a pair, 6 for a
/// renewal.
const PAIR_US: u64 = 13;
const RENEWAL_US: u64 = 6;

/// How far the replica is behind.
const LAG: u64 = ms(2);

/// One shard.
pub(super) struct Shard {
    primary: State,
    replica: State,
    /// What the replica has not got yet, with the time at the primary.
    behind: VecDeque<(Instant, Op)>,
    pub(super) is_up: bool,
    /// Whether the replica has to be kept: this shard will fail.
    fails: bool,
    busy_until: Instant,
    /// The primary's clock, as far as it is ahead of the others.
    skew: u64,
    pub(super) epoch_us: u64,
    /// The commands that were done in each second.
    pub(super) rate: Vec<u32>,
}

impl Shard {
    pub(super) fn new(epoch_us: u64, skew: u64, fails: bool) -> Self {
        let (primary, replica) = (State::new(), State::new());
        Self { primary, replica, behind: VecDeque::new(), is_up: true, fails, busy_until: 0, skew, epoch_us, rate: Vec::new() }
    }

    /// The clock of the primary.
    pub(super) fn wall_us(&self, now: Instant) -> u64 {
        self.epoch_us + self.skew + now
    }

    /// Does a command. Gives the reply, the time at which it leaves, and what is published with it.
    pub(super) fn apply(&mut self, op: &Op, now: Instant) -> (Reply, Instant, Vec<Message>) {
        let takes = if matches!(op.verb(), Some(Verb::Extend { .. })) { RENEWAL_US } else { PAIR_US / 2 };
        let begins = self.busy_until.max(now);
        self.busy_until = begins + takes;
        let second = (begins / SECOND) as usize;
        if self.rate.len() <= second {
            self.rate.resize(second + 1, 0);
        }
        self.rate[second] += 1;
        let env = env(self.wall_us(begins));
        let reply = apply(&mut self.primary, op, &env);
        if self.fails {
            self.replicate(begins);
            self.behind.push_back((begins, op.clone()));
        }
        (reply, self.busy_until, self.primary.take_published())
    }

    /// Has the replica do what has reached it.
    fn replicate(&mut self, now: Instant) {
        let has_arrived = |(at, _): &(Instant, Op)| *at + LAG <= now;
        let arrived = self.behind.iter().take_while(|each| has_arrived(each)).count();
        for (at, op) in self.behind.drain(..arrived) {
            let now_us = self.epoch_us + self.skew + at;
            apply(&mut self.replica, &op, &env(now_us));
        }
        self.replica.take_published();
    }

    pub(super) fn fail(&mut self, now: Instant) {
        self.replicate(now);
        self.is_up = false;
    }

    /// The replica takes over. What has not reached it is lost.
    pub(super) fn take_over(&mut self, now: Instant) {
        self.primary = std::mem::take(&mut self.replica);
        self.behind.clear();
        (self.is_up, self.fails, self.busy_until, self.skew) = (true, false, now, self.skew / 2);
    }
}

fn env(now_us: u64) -> Env<'static> {
    Env { now_us, replid: "", known_as: "", is_renamed: false }
}

/// The shard of a key without a tag, where the slots are split evenly and in order.
pub(super) fn shard_of(key: &str, shards: usize) -> usize {
    let crc = key.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    });
    usize::from(crc) % 16_384 * shards / 16_384
}
