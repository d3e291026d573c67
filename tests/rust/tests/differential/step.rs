//! Steps: possible operations on a server, drawn from a seed.

use std::sync::Arc;

use fastrand::Rng;
use locktender::internals::name::{Keys, Kind};
use locktender::machine::FENCE_LIMIT;
use locktender::op::job::{AttemptNumber, Ending, OpenAttempt, ScheduledTime, Terms};
use locktender::op::{Adoption, LockOp, Op, Part, PartOp, QuorumConfig, Verb};

use crate::shared;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An operation of the library.
    Op(Op),
    /// Another client writes a string, without an expiry or with a time to live in milliseconds.
    Put(String, String, Option<u64>),
    /// Another client replaces a key by a list.
    List(String),
    /// Another client deletes a key, or it expires.
    Gone(String),
    /// Another client moves a key's expiry.
    Expire(String, u64),
    /// Another client adds a member to a sorted set.
    Member(String, String, i64),
    /// The server forgets its scripts.
    FlushScripts,
}

/// A lock's name, and the number of its client's servers.
pub(crate) type Named = (&'static str, usize);

/// Few of everything, so that the operations meet.
pub(crate) const LOCKS: &[Named] = &[("a", 3), ("{shop}:b", 1), ("ключ", 3)];

/// Names that are each other's tag, beginning or end.
pub(crate) const ALIKE: &[Named] = &[("x", 1), ("{x}", 1), ("{x}y", 1), ("x:~", 1), ("{x}:~lt", 1)];

/// Names of locks on single servers, as each shard of a cluster is one.
pub(crate) const PARTED: &[Named] = &[("a", 1), ("{shop}:b", 1)];

pub(crate) const OWNERS: [&str; 3] = [
    "host=a pid=1 id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b",
    "app=b host=b pid=2 id=0193d1d2-3c4d-7e5f-8a6b-000000000002",
    "host=ü id=0193d1d2-3c4d-7e5f-8a6b-000000000003",
];

/// Values of the lock's key that begin as one of ours, and the words behind an owner.
const NOTED: [&str; 6] = [
    "host=a pid=1 id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b waiters=1",
    "host=a pid=1 id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b waiters=1 fence=7",
    "app=b host=b pid=2 id=0193d1d2-3c4d-7e5f-8a6b-000000000002 later=1 fence=1800000000000000",
    "app=b host=b pid=2 id=0193d1d2-3c4d-7e5f-8a6b-000000000002x",
    "foreign id=0193d1d2-3c4d-7e5f-8a6b-000000000002 fence=9",
    "host=b id=short",
];
/// Far apart, so that no tolerance hides a wrong one.
pub(crate) const TTLS: [u64; 3] = [5_000, 20_000, 3_600_000];
pub(crate) const FLEETS: [QuorumConfig; 4] = [
    QuorumConfig { servers: 3, max_ttl_ms: 60_000 },
    QuorumConfig { servers: 5, max_ttl_ms: 60_000 },
    QuorumConfig { servers: 3, max_ttl_ms: 9_000 },
    // A single server with quarantine after its failovers.
    QuorumConfig { servers: 1, max_ttl_ms: 60_000 },
];

/// Waiters of two clients, fair and barging.
pub(crate) const WAITERS: [&str; 6] =
    ["b:c1:1 host=a pid=1", "b:@c2:7 host=b pid=2", "f:c1:2 host=a", "f:@c2:8 ", "f:@c2:9 pid=2 x y", "b:c1:3"];

/// How long what another client writes may be: in letters of two bytes, so that no cut is between two of them by chance.
const LONG: usize = 50_000;

/// The clients of the waiters. The second one has a channel for each lock.
pub(crate) const CLIENTS: [&str; 2] = ["c1", "@c2"];

/// The steps of one seed.
pub(crate) struct Steps {
    pub(crate) rng: Rng,
    pub(crate) keys: Vec<Arc<Keys>>,
    /// The same names, as those of jobs.
    jobs: Vec<Arc<Keys>>,
    /// The job of the last operation on one.
    job: usize,
    /// Whether operations are done in parts.
    in_parts: bool,
    /// Whether several may hold a lock at once: the keys of each kind.
    pub(crate) shared: Vec<Arc<Keys>>,
}

impl Steps {
    pub(crate) fn new(seed: u64, locks: &[Named]) -> Self {
        let keys = |kind: fn(usize) -> Kind| -> Vec<Arc<Keys>> {
            locks.iter().map(|(name, servers)| Arc::new(Keys::new(kind(*servers), "", name, *servers == 1).unwrap())).collect()
        };
        let (rng, job, in_parts, shared) = (Rng::with_seed(seed), 0, false, Vec::new());
        Self { rng, keys: keys(Kind::of_lock), jobs: keys(|_| Kind::Job), job, in_parts, shared }
    }

    /// The same operations, of which only a part is done.
    pub(crate) fn in_parts(self) -> Self {
        Self { in_parts: true, ..self }
    }

    /// The side keys and the lock keys of all locks but that of `step`, if it is an operation of the library.
    pub(crate) fn others(&self, step: &Step) -> Vec<&str> {
        let Step::Op(op) = step else { return Vec::new() };
        if op.keys().is_some_and(|keys| keys.kind() == Kind::Several) {
            return Vec::new();
        }
        let others = self.jobs.iter().filter(|keys| Some(keys.lock()) != op.keys().map(|keys| keys.lock()));
        let shared = self.shared.iter().filter(|keys| Some(keys.lock()) != op.keys().map(|keys| keys.lock()));
        others.flat_map(|keys| [keys.lock(), keys.queue(), keys.record()]).chain(shared.map(|keys| keys.marks())).collect()
    }

    /// The next step. `now_us` is the server's time, `fences` what it has answered so far.
    pub(crate) fn next(&mut self, now_us: u64, fences: &[u64]) -> Step {
        let step = match self.rng.u8(..100) {
            0..44 if !self.shared.is_empty() => Step::Op(self.shared_op(now_us, fences)),
            44..54 if !self.shared.is_empty() => Step::Op(self.several_op(now_us, fences)),
            70..85 if !self.shared.is_empty() => self.shared_disturbance(now_us),
            54..62 if !self.shared.is_empty() => Step::Op(self.op(now_us, fences)),
            0..40 => Step::Op(self.op(now_us, fences)),
            40..80 => Step::Op(self.job_op(now_us, fences)),
            _ => self.disturbance(now_us),
        };
        match step {
            Step::Op(Op::Lock(whole)) if self.in_parts => Step::Op(self.part_of(whole, fences)),
            step => step,
        }
    }

    /// A part of an operation, where a cluster does that in parts.
    fn part_of(&mut self, mut whole: LockOp, fences: &[u64]) -> Op {
        if whole.keys.kind() == Kind::Several {
            return Op::Lock(whole);
        }
        if whole.keys.kind().is_shared() {
            return shared::part_of(whole);
        }
        if let Verb::Acquire { quorum_config, .. } = &mut whole.verb {
            *quorum_config = None;
        }
        let mut parts = match &whole.verb {
            Verb::Acquire { .. } => vec![Part::Take, Part::Tick],
            Verb::Extend { .. } => vec![Part::Extend],
            Verb::Release { .. } | Verb::Leave => vec![Part::Release],
            Verb::EndAttempt { .. } => vec![Part::EndAttempt],
            Verb::Inspect => vec![Part::Look],
            Verb::JobStatus => vec![Part::Status],
            Verb::Reset => {
                let holder = (self.rng.u8(..3) > 0).then(|| self.pick(&OWNERS).to_owned());
                vec![Part::Reset { holder }]
            }
            _ => return Op::Lock(whole),
        };
        if matches!(whole.verb, Verb::Acquire { job: Some(_), .. }) {
            // The fence that was raised a moment ago.
            let fence = fences.last().copied().unwrap_or(FENCE_LIMIT - 1);
            parts.extend([Part::CountAttempt { fence }, Part::CountAttempt { fence }, Part::CountAttempt { fence }]);
        }
        let part = parts.swap_remove(self.rng.usize(..parts.len()));
        Op::Part(Box::new(PartOp { whole, part }))
    }

    /// An operation on a job, or on the lock of one.
    fn job_op(&mut self, now_us: u64, fences: &[u64]) -> Op {
        // Often the one before: attempts follow each other.
        if self.rng.u8(..4) == 0 {
            self.job = self.rng.usize(..self.jobs.len());
        }
        let keys = self.jobs[self.job].clone();
        // Mostly the same one: an attempt is ended by the owner that began it.
        let owner: Arc<str> = self.pick(&[OWNERS[0], OWNERS[0], OWNERS[0], OWNERS[1], OWNERS[2]]).into();
        let any_fence = self.fence(now_us, fences);
        let fence = fences.last().copied().filter(|_| self.rng.u8(..4) > 0).unwrap_or(any_fence);
        let ttl_ms = self.pick(&TTLS);
        let leave = (self.rng.u8(..3) == 0).then(|| self.pick(&WAITERS).into());
        let verb = match self.rng.u8(..100) {
            0..40 => {
                let quorum_config = if self.rng.u8(..3) == 0 { self.quorum_config() } else { None };
                let place = (self.rng.u8(..3) > 0).then(|| self.place(now_us));
                let fair = place.as_ref().is_some_and(|place| place.entry.starts_with('f'));
                let (max_attempts, retention_ms) = (self.pick(&[1, 2, 3]), self.pick(&TTLS));
                let terms = Terms { max_attempts, retention_ms, scheduled_time: self.scheduled_time(now_us) };
                let (job, proposal) = (Some(Box::new(terms)), self.proposal(now_us, fences));
                Verb::Acquire { ttl_ms, proposal, adopt: None, fair, place, quorum_config, job }
            }
            40..75 => {
                let ending = match self.rng.u8(..4) {
                    0 => Ending::Done { result: self.pick(&["", "{\"sent\": 3}"]).into() },
                    1 => Ending::GivenBack,
                    _ => {
                        let delays = [Some(0), Some(0), Some(2), Some(30_000), None];
                        Ending::Failed { error: "it failed".into(), retry_in_ms: self.pick(&delays) }
                    }
                };
                let number =
                    AttemptNumber { number: self.pick(&[1, 2]), max: self.pick(&[1, 2, 3]), failures: self.pick(&[0, 1]) };
                let scheduled_time_ms = self.scheduled_time(now_us).map_or(0, |scheduled_time| scheduled_time.at_ms);
                let attempt = OpenAttempt { fence, number, retention_ms: self.pick(&TTLS), scheduled_time_ms };
                Verb::EndAttempt { ending, attempt, leave }
            }
            75..80 => Verb::Extend { ttl_ms, fence },
            80..85 => Verb::Release { leave, kept_ms: self.pick(&[0, 0, 30_000]) },
            85..92 => Verb::Reset,
            _ => Verb::JobStatus,
        };
        let by = if matches!(verb, Verb::Reset | Verb::JobStatus) { "".into() } else { owner };
        Op::Lock(LockOp { keys, by, verb })
    }

    /// A scheduled time, of a quarter of the jobs: in the past or the future, and some of them often.
    fn scheduled_time(&mut self, now_us: u64) -> Option<ScheduledTime> {
        let minutes: i64 = self.pick(&[-90, -10, -1, 0, 0, 0, 0, 1, 9]);
        let at_ms = (now_us / 1_000).saturating_add_signed(minutes * 60_000) / 60_000 * 60_000;
        let scheduled_time = ScheduledTime { at_ms, max_lateness_ms: self.pick(&[60_000, 3_600_000]), waits: self.rng.bool() };
        (self.rng.u8(..4) == 0).then_some(scheduled_time)
    }

    fn op(&mut self, now_us: u64, fences: &[u64]) -> Op {
        let keys = self.keys();
        let owner: Arc<str> = self.pick(&OWNERS).into();
        let ttl_ms = self.pick(&TTLS);
        let fence = self.fence(now_us, fences);
        match self.rng.u8(..100) {
            0..35 => {
                let adopts = self.rng.u8(..5) == 0;
                let owners = ["", OWNERS[0], OWNERS[1]];
                let adopt =
                    adopts.then(|| Adoption { owner: self.pick(&owners).into(), or_acquire: self.rng.bool(), beside: false });
                // A client of one server names no quorum; its marker key is another.
                let quorum_config = if self.rng.bool() { self.quorum_config() } else { None };
                let only_adopts = adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
                let place = (self.rng.u8(..3) > 0 && !only_adopts).then(|| self.place(now_us));
                let fair = place.as_ref().map_or(self.rng.u8(..4) == 0, |place| place.entry.starts_with('f'));
                Op::Lock(LockOp {
                    keys,
                    by: owner,
                    verb: Verb::Acquire {
                        ttl_ms,
                        proposal: self.proposal(now_us, fences),
                        adopt,
                        fair,
                        place,
                        quorum_config,
                        job: None,
                    },
                })
            }
            35..47 => Op::Lock(LockOp { keys, by: owner, verb: Verb::Confirm { fence } }),
            47..62 => Op::Lock(LockOp { keys, by: owner, verb: Verb::Extend { ttl_ms, fence } }),
            62..74 => Op::Lock(LockOp { keys, by: owner, verb: Verb::Heal { ttl_ms, fence } }),
            74..86 => {
                let leave = (self.rng.u8(..3) == 0).then(|| self.pick(&WAITERS).into());
                Op::Lock(LockOp { keys, by: owner, verb: Verb::Release { leave, kept_ms: self.pick(&[0, 0, 30_000]) } })
            }
            86..88 => Op::Lock(LockOp { keys, by: self.pick(&WAITERS).into(), verb: Verb::Leave }),
            88..93 => Op::inspect(keys),
            93..96 => Op::Greet { quorum_config: self.quorum_config() },
            _ => Op::Trust { quorum_config: FLEETS[self.rng.usize(..FLEETS.len())] },
        }
    }

    fn disturbance(&mut self, now_us: u64) -> Step {
        let keys = self.keys();
        let lock = keys.lock().to_owned();
        let fence = keys.fence().to_owned();
        let marker = if self.rng.u8(..4) == 0 { keys.marker() } else { Keys::server_marker() }.to_owned();
        let queue = keys.queue().to_owned();
        let record = self.jobs[self.rng.usize(..self.jobs.len())].record().to_owned();
        let now = i64::try_from(now_us).unwrap();
        match self.rng.u8(..28) {
            0 => Step::Put(lock, self.pick(&["redis-py", ""]).to_owned(), None),
            1 => Step::Put(lock, "redlock".to_owned(), Some(self.pick(&TTLS))),
            2 => Step::Put(lock, self.pick(&OWNERS).to_owned(), None),
            25 => Step::Put(lock, self.pick(&NOTED).to_owned(), Some(self.pick(&TTLS))),
            3 => Step::List(lock),
            4 | 5 => Step::Gone(lock),
            6 => Step::Expire(lock, 2_500),
            7 => Step::Put(fence, self.garbage(now_us), None),
            8 => Step::List(fence),
            9 => Step::Gone(fence),
            10 => Step::Expire(fence, 2_500),
            11 | 12 => {
                let text = self.marker(now_us);
                // One that has voted has no expiry.
                let life = self.pick(&[2_500, 60_000]);
                let waits = !text.ends_with(" since=0") && self.rng.bool();
                Step::Put(marker, text, waits.then_some(life))
            }
            13 => Step::Gone(marker),
            14 => Step::List(marker),
            15 => Step::FlushScripts,
            16 => Step::List(queue),
            17 => Step::Put(queue, "garbage".to_owned(), None),
            18 => Step::Gone(queue),
            19 => Step::Expire(queue, 2_500),
            // A client that has died, or none that is known.
            20 | 21 => Step::Member(queue, self.pick(&CLIENTS).to_owned(), self.pick(&[-1, 1 - now, -now - 3_000_000_000])),
            26 => Step::List(record),
            27 => Step::Gone(record),
            22 => Step::Put(lock, "é".repeat(LONG), Some(self.pick(&TTLS))),
            23 => Step::Member(queue, format!("{}{}", self.pick(&WAITERS), "é".repeat(LONG)), self.pick(&[5, now])),
            24 => Step::Member(queue, self.pick(&WAITERS).to_owned(), self.pick(&[0, now - 2_000_000, now + 60_000_000])),
            _ => Step::Member(queue, self.pick(&["garbage", "f:unknown:1", "x::", "f:c1"]).to_owned(), self.pick(&[5, now])),
        }
    }

    /// What a fence key may hold.
    fn garbage(&mut self, now_us: u64) -> String {
        match self.rng.u8(..6) {
            0 => (now_us + self.rng.u64(..4_000_000_000)).to_string(),
            1 => (FENCE_LIMIT - 2 + self.rng.u64(..5)).to_string(),
            2 => format!("{}q", now_us + self.rng.u64(..4_000_000_000)),
            3 => (now_us - self.rng.u64(..4_000_000_000)).to_string(),
            _ => self
                .pick(&[
                    "",
                    "garbage",
                    "-1",
                    "1.5",
                    "1e3",
                    " 7",
                    "0007",
                    "0x10",
                    "9007199254740993",
                    "99999999999999999999",
                    "q",
                    "7q",
                    "7qq",
                ])
                .to_owned(),
        }
    }

    /// What the marker's key may hold. `RUN` becomes the server's run id.
    fn marker(&mut self, now_us: u64) -> String {
        let since = self.pick(&[0, now_us - 30_000_000, now_us - 61_000_000, now_us + 10_000_000]);
        match self.rng.u8(..10) {
            0 => format!("n=3 max_ttl=60000 run=elsewhere since={since}"),
            1 => format!("n=5 max_ttl=60000 run=RUN since={since}"),
            2 => format!("n=3 max_ttl=60000 run=RUN since={since} later=1"),
            3 => format!("n=03 max_ttl=60000 run=RUN since={since}"),
            5..8 => format!("n=1 max_ttl=60000 run=RUN since={since}"),
            4 => self
                .pick(&[
                    "",
                    "garbage",
                    "n=3 max_ttl=60000 run= since=0",
                    "n=3  max_ttl=60000 run=RUN since=0",
                    "n=3 max_ttl=60000 run=RUN since=0x1",
                    "n=3 max_ttl=60000 run=RUN since=99999999999999999999",
                    " n=3 max_ttl=60000 run=RUN since=0",
                ])
                .to_owned(),
            _ => format!("n=3 max_ttl=60000 run=RUN since={since}"),
        }
    }

    fn keys(&mut self) -> Arc<Keys> {
        self.keys[self.rng.usize(..self.keys.len())].clone()
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }
}
