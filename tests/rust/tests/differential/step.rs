//! Steps: possible operations on a server, drawn from a seed.

use std::sync::Arc;

use fastrand::Rng;
use locktender::internals::name::{Keys, Kind};
use locktender::machine::FENCE_LIMIT;
use locktender::op::{Adoption, LockOp, Op, Place, QuorumConfig, Verb};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// An operation of the library.
    Op(Op),
    /// Somebody writes a string, for ever or with a time to live in milliseconds.
    Put(String, String, Option<u64>),
    /// Somebody replaces a key by a list.
    List(String),
    /// Somebody deletes a key, or it expires.
    Gone(String),
    /// Somebody moves a key's expiry.
    Expire(String, u64),
    /// Somebody adds a member to a sorted set.
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

const OWNERS: [&str; 3] = ["host=a id=1", "host=b id=2", "c"];
/// Far apart, so that no tolerance hides a wrong one.
const TTLS: [u64; 3] = [5_000, 20_000, 3_600_000];
const FLEETS: [QuorumConfig; 4] = [
    QuorumConfig { servers: 3, max_ttl_ms: 60_000 },
    QuorumConfig { servers: 5, max_ttl_ms: 60_000 },
    QuorumConfig { servers: 3, max_ttl_ms: 9_000 },
    // A single server with quarantine after its failovers.
    QuorumConfig { servers: 1, max_ttl_ms: 60_000 },
];

/// Waiters of two clients, fair and barging.
const WAITERS: [&str; 6] =
    ["b:c1:1 host=a pid=1", "b:c2:7 host=b pid=2", "f:c1:2 host=a", "f:c2:8 ", "f:c2:9 pid=2 x y", "b:c1:3"];

/// How long what somebody else writes may be: in letters of two bytes, so that no cut is between two of them by chance.
const LONG: usize = 50_000;

/// More than an operation drops.
const DEAD_WAITERS: i64 = 350;
const DEAD_CLIENTS: i64 = 25;

/// The clients of the waiters.
pub(crate) const CLIENTS: [&str; 2] = ["c1", "c2"];

/// The steps of one seed.
pub(crate) struct Steps {
    rng: Rng,
    keys: Vec<Arc<Keys>>,
}

impl Steps {
    pub(crate) fn new(seed: u64, locks: &[Named]) -> Self {
        let keys =
            locks.iter().map(|(name, servers)| Arc::new(Keys::new(Kind::Exclusive, "", name, *servers == 1).unwrap())).collect();
        Self { rng: Rng::with_seed(seed), keys }
    }

    /// The side keys and the lock keys of all locks but that of `step`, if it is an operation of the library.
    pub(crate) fn others(&self, step: &Step) -> Vec<&str> {
        let Step::Op(op) = step else { return Vec::new() };
        let others = self.keys.iter().filter(|keys| Some(*keys) != op.keys());
        others.flat_map(|keys| [keys.lock(), keys.fence(), keys.queue()]).collect()
    }

    /// The next step. `now_us` is the server's time, `fences` what it has answered so far.
    pub(crate) fn next(&mut self, now_us: u64, fences: &[u64]) -> Step {
        if self.rng.u8(..100) < 75 { Step::Op(self.op(now_us, fences)) } else { self.disturbance(now_us) }
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
                let adopt = adopts.then(|| Adoption { owner: self.pick(&owners).into(), or_acquire: self.rng.bool() });
                // A client of one server names no quorum; its marker key is another.
                let quorum_config = if self.rng.bool() { self.quorum_config() } else { None };
                let only_adopts = adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
                let place = (self.rng.u8(..3) > 0 && !only_adopts).then(|| self.place(now_us));
                let fair = place.as_ref().map_or(self.rng.u8(..4) == 0, |place| place.entry.starts_with('f'));
                Op::Lock(LockOp {
                    keys,
                    by: owner,
                    verb: Verb::Acquire { ttl_ms, proposal: self.proposal(now_us, fences), adopt, fair, place, quorum_config },
                })
            }
            35..47 => Op::Lock(LockOp { keys, by: owner, verb: Verb::Confirm { fence } }),
            47..62 => Op::Lock(LockOp {
                keys,
                by: owner,
                verb: Verb::Extend { ttl_ms, fence, lock_only: self.rng.bool(), timed: self.rng.bool() },
            }),
            62..74 => Op::Lock(LockOp { keys, by: owner, verb: Verb::Heal { ttl_ms, fence } }),
            74..86 => {
                let leave = (self.rng.u8(..3) == 0).then(|| self.pick(&WAITERS).into());
                Op::Lock(LockOp { keys, by: owner, verb: Verb::Release { leave, single_server: self.rng.bool() } })
            }
            86..88 => {
                Op::Lock(LockOp { keys, by: self.pick(&WAITERS).into(), verb: Verb::Leave { single_server: self.rng.bool() } })
            }
            88..93 => Op::inspect(keys),
            93..96 => Op::Greet { quorum_config: self.quorum_config() },
            _ => Op::Trust { quorum_config: FLEETS[self.rng.usize(..FLEETS.len())] },
        }
    }

    /// A waiter with whatever it remembers of its arrival.
    fn place(&mut self, now_us: u64) -> Place {
        let arrival = self.pick(&[0, 0, now_us - 5_000_000, now_us - 900, now_us + 10_000_000]);
        Place { entry: self.pick(&WAITERS).into(), arrival, stays: self.rng.u8(..4) == 0 }
    }

    /// Mostly the same quorum.
    fn quorum_config(&mut self) -> Option<QuorumConfig> {
        match self.rng.u8(..10) {
            0 => None,
            1 => Some(FLEETS[1]),
            2 => Some(FLEETS[2]),
            3..6 => Some(FLEETS[3]),
            _ => Some(FLEETS[0]),
        }
    }

    fn proposal(&mut self, now_us: u64, fences: &[u64]) -> u64 {
        match self.rng.u8(..8) {
            0 => 0,
            1 => u64::MAX,
            2 => now_us + 3_700_000_000,
            4 => now_us + 1_500_000,
            // Above the last fence by what is near, or a little more.
            5 => fences.last().map_or(now_us, |fence| fence.saturating_add(self.rng.u64(1..1_100_000))),
            3 => now_us - 2_000_000,
            // Above what a signed 32-bit number of seconds, or fourteen digits, can tell apart.
            _ => now_us + self.rng.u64(..900_000),
        }
    }

    fn fence(&mut self, now_us: u64, fences: &[u64]) -> u64 {
        let last = fences.last().copied().unwrap_or(now_us);
        match self.rng.u8(..10) {
            0 => now_us + self.rng.u64(..1_000),
            1 => last.saturating_sub(1),
            2 => last + 1,
            3 => FENCE_LIMIT,
            _ if fences.is_empty() => last,
            4 => fences[self.rng.usize(..fences.len())],
            _ => last,
        }
    }

    /// Every operation there is on one lock, in the way of each of which somebody else has written `letters` letters.
    pub(crate) fn in_the_way(letters: usize, now_us: u64) -> Vec<Step> {
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "a", false).unwrap());
        let (owner, quorum_config): (Arc<str>, _) = (OWNERS[0].into(), FLEETS[0]);
        let place = Some(Place { entry: WAITERS[0].into(), arrival: 0, stays: false });
        let long = "é".repeat(letters);
        let acquire = |quorum_config, place: &Option<Place>| {
            let (keys, owner, place) = (Arc::clone(&keys), Arc::clone(&owner), place.clone());
            Step::Op(Op::Lock(LockOp {
                keys,
                by: owner,
                verb: Verb::Acquire { ttl_ms: 5_000, proposal: now_us, adopt: None, fair: false, place, quorum_config },
            }))
        };
        let waiter = |entry: String, score| Step::Member(keys.queue().to_owned(), entry, score);
        let arrival = i64::try_from(now_us).unwrap();
        let mut steps = vec![
            Step::Put(keys.lock().to_owned(), long.clone(), None),
            acquire(None, &None),
            acquire(None, &place),
            waiter(format!("b:c1:5 {long}"), arrival - 9),
            waiter(format!("f:c1:{} x", "7".repeat(letters)), arrival - 10),
            Step::Op(Op::Lock(LockOp { keys: Arc::clone(&keys), by: Arc::clone(&owner), verb: Verb::Confirm { fence: 1 } })),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Extend { ttl_ms: 5_000, fence: 1, lock_only: false, timed: true },
            })),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Heal { ttl_ms: 5_000, fence: 1 },
            })),
            Step::Op(Op::inspect(Arc::clone(&keys))),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Release { leave: None, single_server: true },
            })),
            // The first waiter of the queue is told, in full if nobody cuts it.
            Step::Put(keys.lock().to_owned(), owner.to_string(), None),
            Step::Op(Op::Lock(LockOp {
                keys: Arc::clone(&keys),
                by: Arc::clone(&owner),
                verb: Verb::Release { leave: None, single_server: false },
            })),
            acquire(None, &place),
        ];
        let marker = format!("n={} max_ttl=60000 run=x since=0", "3".repeat(letters));
        steps.push(Step::Put(Keys::server_marker().to_owned(), marker, None));
        steps.extend([
            acquire(Some(quorum_config), &None),
            Step::Op(Op::Greet { quorum_config: Some(quorum_config) }),
            Step::Op(Op::Trust { quorum_config }),
        ]);
        steps
    }

    /// A lock whose first waiters have all died, more of them than one operation drops, and many dead clients.
    pub(crate) fn crowded(now_us: u64) -> Vec<Step> {
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap());
        let (queue, owner): (_, Arc<str>) = (keys.queue().to_owned(), OWNERS[0].into());
        let arrival = i64::try_from(now_us).unwrap() - 1_000_000;
        let member = |member: String, score| Step::Member(queue.clone(), member, score);
        let mut steps = vec![Step::Put(keys.lock().to_owned(), owner.to_string(), None)];
        steps.extend((0..DEAD_WAITERS).map(|number| member(format!("b:gone{number}:1 x"), arrival + number)));
        steps.extend((0..DEAD_CLIENTS).map(|number| member(format!("late{number}"), number - arrival)));
        steps.push(member(WAITERS[2].to_owned(), arrival + DEAD_WAITERS));
        steps.push(member(CLIENTS[0].to_owned(), -arrival - 60_000_000));
        let release = || {
            Step::Op(Op::Lock(LockOp {
                keys: keys.clone(),
                by: owner.clone(),
                verb: Verb::Release { leave: None, single_server: true },
            }))
        };
        let acquire = |waiter: &str| {
            let place = Some(Place { entry: waiter.into(), arrival: 0, stays: false });
            let (keys, owner, fair) = (keys.clone(), OWNERS[1].into(), false);
            let (ttl_ms, proposal, adopt, quorum_config) = (5_000, now_us, None, None);
            Step::Op(Op::Lock(LockOp {
                keys,
                by: owner,
                verb: Verb::Acquire { ttl_ms, proposal, adopt, fair, place, quorum_config },
            }))
        };
        // The one drops a part of the dead waiters and finds nobody alive, the other the rest.
        steps.extend([release(), acquire(WAITERS[1]), acquire(WAITERS[4])]);
        steps
    }

    fn disturbance(&mut self, now_us: u64) -> Step {
        let keys = self.keys();
        let lock = keys.lock().to_owned();
        let fence = keys.fence().to_owned();
        let marker = if self.rng.u8(..4) == 0 { keys.marker() } else { Keys::server_marker() }.to_owned();
        let queue = keys.queue().to_owned();
        let now = i64::try_from(now_us).unwrap();
        match self.rng.u8(..26) {
            0 => Step::Put(lock, self.pick(&["redis-py", ""]).to_owned(), None),
            1 => Step::Put(lock, "redlock".to_owned(), Some(self.pick(&TTLS))),
            2 => Step::Put(lock, self.pick(&OWNERS).to_owned(), None),
            3 => Step::List(lock),
            4 | 5 => Step::Gone(lock),
            6 => Step::Expire(lock, 2_500),
            7 => Step::Put(fence, self.garbage(now_us), None),
            8 => Step::List(fence),
            9 => Step::Gone(fence),
            10 => Step::Expire(fence, 2_500),
            11 | 12 => Step::Put(marker, self.marker(now_us), None),
            13 => Step::Gone(marker),
            14 => Step::List(marker),
            15 => Step::FlushScripts,
            16 => Step::List(queue),
            17 => Step::Put(queue, "garbage".to_owned(), None),
            18 => Step::Gone(queue),
            19 => Step::Expire(queue, 2_500),
            // A client that has died, or none that is known.
            20 | 21 => Step::Member(queue, self.pick(&CLIENTS).to_owned(), self.pick(&[-1, 1 - now, -now - 3_000_000_000])),
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

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }
}
