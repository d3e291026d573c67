//! Readers and permits: every sequence of steps up to a depth.

use std::collections::HashSet;

use super::tests::Bench;
use crate::mutant::{Mutant, assert_each_noticed, assert_noticed};
use crate::name::Kind;

/// What a client believes: the number of its acquire, until when it is inside, and its fence. It ends the hold before that millisecond.
type Belief = (u8, u64, u64);

/// One state of the server and of its clients. The last client is a writer.
#[derive(Clone)]
struct Scene {
    bench: Bench,
    beliefs: Vec<Belief>,
    largest: u64,
}

const TTLS: [u64; 4] = [2, 4, 1, 2];
const LIMIT: u64 = 2;

impl Scene {
    fn valid(&self, client: usize) -> bool {
        // A key lives through the millisecond of its end, and a mark until then.
        let is_writer = client == self.beliefs.len() - 1;
        self.beliefs[client].1 + u64::from(is_writer) > self.bench.now_ms()
    }

    /// Does one thing; `None` if it makes no sense now.
    fn after(&self, kind: Kind, act: usize) -> Option<Self> {
        let mut next = self.clone();
        let writer = self.beliefs.len() - 1;
        if act == 0 {
            next.bench.pass(1);
            return Some(next);
        }
        let (client, act) = ((act - 1) / 3, (act - 1) % 3);
        let (number, until, fence) = self.beliefs[client];
        let (kind, ttl) = (if client == writer { Kind::Exclusive } else { kind }, TTLS[client]);
        let owner = |number: u8| format!("c{client}-{number}");
        let now = next.bench.now_ms();
        match act {
            0 if !self.valid(client) && number < 3 => {
                let fence = next.bench.enter(kind, &owner(number + 1), ttl);
                let until = if fence > 0 { now + ttl } else { 0 };
                next.beliefs[client] = (number + 1, until, fence);
                if fence > 0 {
                    // A reader's is above those of writers, which is known of those that it may follow.
                    let before = if kind == Kind::Read { self.beliefs[writer].2 } else { self.largest };
                    assert!(fence > before, "a fence sinks");
                    next.largest = self.largest.max(fence);
                } else if number + 1 == 3 {
                    return None;
                }
            }
            1 if number > 0 => {
                next.bench.release(kind, &owner(number));
                next.beliefs[client].1 = 0;
            }
            // Also late, behind the end or the release.
            2 if number > 0 => {
                let ttl = TTLS[(client + 1) % TTLS.len()];
                let done = next.bench.renew(kind, &owner(number), ttl, fence);
                assert!(!done || self.valid(client), "a renewal behind the end or the release brought it back");
                if self.valid(client) {
                    next.beliefs[client].1 = if done { until.max(now + ttl) } else { 0 };
                }
            }
            _ => return None,
        }
        Some(next)
    }

    fn judge(&self, kind: Kind) {
        let writer = self.beliefs.len() - 1;
        let inside = (0..writer).filter(|client| self.valid(*client)).count();
        assert!(inside == 0 || !self.valid(writer), "beside a writer");
        assert!(kind == Kind::Read || inside as u64 <= LIMIT, "too many permits");
        let gate = self.bench.gate().filter(|(value, _)| value.starts_with("read ") || value.starts_with("permits "));
        let ends = |end: Option<u64>| end.filter(|end| *end > self.bench.now_ms());
        assert_eq!(ends(gate.map(|(_, end)| end)), ends(self.bench.last_mark()), "the gate ends with the last mark");
        assert!(inside == 0 || self.bench.last_mark().is_some(), "a valid hold without a gate");
    }

    fn key(&self) -> String {
        let entries: Vec<_> = self.bench.state.iter(self.bench.now_us).collect();
        format!("{} {entries:?} {:?}", self.bench.now_us, self.beliefs)
    }
}

fn every_sequence(kind: Kind, clients: usize, depth: usize) {
    let start = Scene { bench: Bench::new(), beliefs: vec![(0, 0, 0); clients + 1], largest: 0 };
    let (mut seen, mut scenes) = (HashSet::from([start.key()]), vec![start]);
    for _ in 0..depth {
        let mut next = Vec::new();
        for scene in &scenes {
            for after in (0..=3 * scene.beliefs.len()).filter_map(|act| scene.after(kind, act)) {
                after.judge(kind);
                if seen.insert(after.key()) {
                    next.push(after);
                }
            }
        }
        scenes = next;
    }
}

fn every_sequence_of_readers() {
    every_sequence(Kind::Read, 2, 8);
}

fn every_sequence_of_permits() {
    every_sequence(Kind::Semaphore(2), 3, 7);
}

#[test]
fn no_sequence_of_steps_lets_a_reader_in_beside_a_writer() {
    every_sequence_of_readers();
}

#[test]
fn no_sequence_of_steps_gives_more_permits_than_the_limit() {
    every_sequence_of_permits();
}

#[test]
fn what_is_left_out_shows_in_some_sequence() {
    assert_each_noticed([Mutant::MarkShortened, Mutant::EndedMarkLives, Mutant::GateNotOfLast], every_sequence_of_readers);
    assert_noticed(Mutant::PermitTooMany, every_sequence_of_permits);
}

fn a_larger_number_of_permits_enters() {
    let mut bench = Bench::new();
    assert!(bench.enter(Kind::Semaphore(1), "p", 1_000) > 0);
    assert!(bench.enter(Kind::Semaphore(2), "q", 1_000) > 0);
}

#[test]
fn who_asks_for_more_permits_than_those_inside_is_measured_by_its_own_number() {
    a_larger_number_of_permits_enters();
    assert_noticed(Mutant::OthersLimitCounts, a_larger_number_of_permits_enters);
}
