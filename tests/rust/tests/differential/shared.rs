//! Shared: steps on locks that several may hold at once, as readers or with permits.

use std::sync::Arc;

use locktender::internals::name::{Keys, Kind};
use locktender::op::{Adoption, LockOp, Op, Part, PartOp, QueuePlace, Verb};

use crate::step::{CLIENTS, FLEETS, OWNERS, Step, Steps, TTLS, WAITERS};

/// Waiters of the same clients that read, or want a permit.
const READERS: [&str; 4] = ["r:c1:1 host=a", "s:c1:2 host=a", "r:@c2:7 host=b", "s:@c2:8 "];
const FOR_PERMITS: [&str; 4] = ["p:c1:3 permits=2 host=a", "q:c1:4 permits=1 host=a", "p:@c2:9 permits=3 x", "q:@c2:5 permits=2"];

/// Readers, and owners of permits. An owner value has one hold, so a lock never refuses it by its own name.
const READER_OWNERS: [&str; 3] = [
    "host=r pid=1 id=0193d1d2-3c4d-7e5f-8a6b-000000000008",
    "app=b host=r id=0193d1d2-3c4d-7e5f-8a6b-000000000009",
    "host=ü id=0193d1d2-3c4d-7e5f-8a6b-000000000010",
];
const PERMIT_OWNERS: [&str; 3] = [
    "host=c pid=1 id=0193d1d2-3c4d-7e5f-8a6b-000000000004",
    "app=b host=c id=0193d1d2-3c4d-7e5f-8a6b-000000000005",
    "host=ü id=0193d1d2-3c4d-7e5f-8a6b-000000000006",
];

/// A release has a part of its own, and nothing else.
pub(crate) fn part_of(whole: LockOp) -> Op {
    let is_release = matches!(whole.verb, Verb::Release { .. } | Verb::Leave);
    if is_release { Op::Part(Box::new(PartOp { whole, part: Part::Release })) } else { Op::Lock(whole) }
}

/// The kinds of lock that several hold at once.
const SHARED: [Kind; 4] = [Kind::Read, Kind::Semaphore(1), Kind::Semaphore(2), Kind::Semaphore(3)];

impl Steps {
    /// Mostly operations on locks that several hold at once.
    pub(crate) fn shared(mut self) -> Self {
        let of = |kind: Kind| self.keys.iter().map(move |keys| Arc::new(Keys::new(kind, "", keys.name(), true).unwrap()));
        self.shared = SHARED.into_iter().flat_map(of).collect();
        self
    }

    /// An operation on a lock that several may hold at once.
    pub(crate) fn shared_op(&mut self, now_us: u64, fences: &[u64]) -> Op {
        let keys = self.shared[self.rng.usize(..self.shared.len())].clone();
        let is_read = keys.kind() == Kind::Read;
        let waiters = if is_read { READERS } else { FOR_PERMITS };
        let owner: Arc<str> = self.pick(if is_read { &READER_OWNERS } else { &PERMIT_OWNERS }).into();
        let (ttl_ms, fence) = (self.pick(&TTLS), self.fence(now_us, fences));
        let leave = (self.rng.u8(..3) == 0).then(|| self.pick(&waiters).into());
        let verb = match self.rng.u8(..100) {
            0..50 => {
                let adopts = self.rng.u8(..if is_read { 5 } else { 20 }) == 0;
                let adopt = adopts.then(|| Adoption {
                    owner: self.pick(&[READER_OWNERS[0], READER_OWNERS[1], READER_OWNERS[2], OWNERS[0]]).into(),
                    or_acquire: self.rng.bool(),
                    beside: self.rng.u8(..3) == 0,
                });
                let quorum_config = (self.rng.u8(..4) == 0).then_some(FLEETS[3]);
                let only_adopts = adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
                let entry = self.pick(&waiters);
                let place =
                    (self.rng.u8(..3) > 0 && !only_adopts).then(|| QueuePlace { entry: entry.into(), ..self.place(now_us) });
                let fair = if place.is_some() { entry.starts_with(['s', 'q']) } else { self.rng.u8(..4) == 0 };
                Verb::Acquire { ttl_ms, proposal: self.proposal(now_us, fences), adopt, fair, place, quorum_config, job: None }
            }
            50..55 => Verb::Confirm { fence },
            55..72 => Verb::Extend { ttl_ms, fence },
            72..75 => Verb::Heal { ttl_ms, fence },
            75..77 => return Op::Lock(LockOp { keys, by: "".into(), verb: Verb::Release { leave, kept_ms: 0 } }),
            77..90 => Verb::Release { leave, kept_ms: 0 },
            90..95 => return Op::inspect(keys),
            _ => return Op::Lock(LockOp { keys, by: self.pick(&waiters).into(), verb: Verb::Leave }),
        };
        Op::Lock(LockOp { keys, by: owner, verb })
    }

    /// An operation on all locks at once, in any order.
    pub(crate) fn several_op(&mut self, now_us: u64, fences: &[u64]) -> Op {
        let mut names: Vec<_> = self.keys.iter().map(|keys| keys.name().to_owned()).collect();
        self.rng.shuffle(&mut names);
        let quorum_config = (self.rng.u8(..4) == 0).then_some(FLEETS[3]);
        let keys_of = |name: &String| Keys::new(Kind::Exclusive, "", name, quorum_config.is_none()).unwrap();
        let keys = Arc::new(Keys::of_several(names.iter().map(keys_of).collect()).unwrap());
        let (owner, ttl_ms): (Arc<str>, _) = (self.pick(&OWNERS).into(), self.pick(&TTLS));
        let verb = match self.rng.u8(..10) {
            0..7 => {
                // None of them is a fair one.
                let entry = self.pick(&[WAITERS[0], WAITERS[1], WAITERS[5]]).into();
                let place = (self.rng.u8(..4) > 0).then(|| QueuePlace { entry, stays: false, ..self.place(now_us) });
                let proposal = self.proposal(now_us, fences);
                Verb::Acquire { ttl_ms, proposal, adopt: None, fair: false, place, quorum_config, job: None }
            }
            7..9 => {
                let leave = (self.rng.u8(..3) == 0).then(|| self.pick(&WAITERS).into());
                Verb::Release { leave, kept_ms: 0 }
            }
            _ => return Op::Lock(LockOp { keys, by: self.pick(&WAITERS).into(), verb: Verb::Leave }),
        };
        Op::Lock(LockOp { keys, by: owner, verb })
    }

    /// What others do to such a lock.
    pub(crate) fn shared_disturbance(&mut self, now_us: u64) -> Step {
        let keys = self.shared[self.rng.usize(..self.shared.len())].clone();
        let (lock, marks, queue) = (keys.lock().to_owned(), keys.marks().to_owned(), keys.queue().to_owned());
        let (now, now_ms) = (i64::try_from(now_us).unwrap(), i64::try_from(now_us / 1_000).unwrap());
        match self.rng.u8(..16) {
            0 => Step::Gone(lock),
            1 => Step::Gone(marks),
            2 => Step::List(marks),
            3 => Step::Put(marks, "garbage".to_owned(), None),
            4 => {
                let gates = [
                    "read 42",
                    "permits 2",
                    "permits 0",
                    "read 9007199254740992",
                    "read 12345678901234567",
                    "read x",
                    "permits  1",
                ];
                Step::Put(lock, self.pick(&gates).to_owned(), self.pick(&[None, Some(20_000)]))
            }
            5 => Step::Expire(lock, 2_500),
            6 => Step::Expire(marks, 2_500),
            // Marks that have ended, and one that lasts.
            7 => Step::Member(marks, self.pick(&[READER_OWNERS[0], PERMIT_OWNERS[0]]).to_owned(), now_ms - 1_000),
            8 => Step::Member(
                marks,
                "host=z id=0193d1d2-3c4d-7e5f-8a6b-000000000007".to_owned(),
                now_ms + self.pick(&[-5, 7_000, 7_200_000]),
            ),
            9 | 10 => Step::Member(marks, format!("claim {}", self.pick(&FOR_PERMITS)), now_ms + self.pick(&[-1_000, 8_000])),
            // Waiters that have waited long, or a moment.
            11..14 => {
                let waiter = self.pick(&[READERS[0], READERS[2], FOR_PERMITS[0], FOR_PERMITS[2], WAITERS[0]]);
                Step::Member(queue, waiter.to_owned(), now + self.pick(&[-2_000_000, -100_000]))
            }
            _ => Step::Member(queue, self.pick(&CLIENTS).to_owned(), -now - 3_000_000_000),
        }
    }
}
