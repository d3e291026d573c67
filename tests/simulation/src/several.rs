//! Several: readers and permits, which users of some runs ask for, and the scripts of both kinds.

use std::sync::Arc;
use std::time::Duration;

use locktender::internals::clock::Tick;
use locktender::internals::name::{Keys, Kind};
use locktender::op::{Adoption, LockOp, Op, QueuePlace, Verb};

use super::jobs;
use super::resp;
use super::together;
use super::worker::quorum_of;
use super::world::World;

/// A hold that was handed over, and not adopted yet.
pub(super) struct Ticket {
    pub(super) name: usize,
    pub(super) owner: Arc<str>,
    pub(super) ttl: Duration,
    pub(super) kind: Kind,
}

impl World {
    /// The keys of a lock as one of this kind.
    pub(super) fn keys_of(&self, name: usize, kind: Kind) -> Arc<Keys> {
        let several = || Keys::new(kind, "", self.keys[name].name(), quorum_of(&self.plan).is_none()).ok();
        let several = if kind.is_shared() || kind == Kind::Job { several() } else { None };
        several.map_or_else(|| Arc::clone(&self.keys[name]), Arc::new)
    }

    /// What a user asks for: the lock, a read lock or a permit, and which hold it takes over or enters beside.
    pub(super) fn draw_several(&mut self, client: usize, name: usize, ticket: Option<Ticket>) -> (Arc<Keys>, Option<Adoption>) {
        let adoption =
            |ticket: Ticket| Adoption { owner: ticket.owner, or_acquire: ticket.name.is_multiple_of(2), beside: false };
        if !self.plan.is_shared {
            return (Arc::clone(&self.keys[name]), ticket.map(adoption));
        }
        let (kind, adopt) = match ticket {
            // A writer becomes a reader.
            Some(ticket) if !ticket.kind.is_shared() && self.rng.u8(..2) == 0 => {
                (Kind::Read, Some(Adoption { or_acquire: false, ..adoption(ticket) }))
            }
            Some(ticket) => (ticket.kind, Some(adoption(ticket))),
            None => match self.rng.u8(..9) {
                0..=1 => (Kind::Exclusive, None),
                2..=4 => (Kind::Read, self.reader_of(client, name).filter(|_| self.rng.u8(..3) == 0)),
                _ => (Kind::Semaphore(self.rng.u32(1..=3)), None),
            },
        };
        (self.keys_of(name, kind), adopt)
    }

    /// A reader of this client beside whom another one may enter.
    fn reader_of(&self, client: usize, name: usize) -> Option<Adoption> {
        let (process, tick) = (&self.processes[client], self.read_clocks(client).tick);
        let mut readers = process.live.iter().map(|slot| &process.slots[*slot]).filter(|slot| {
            let reads = slot.name == name && slot.recipe.keys.kind() == Kind::Read;
            reads && slot.gone.is_none() && slot.valid_until > tick.max(Tick::default())
        });
        let owner = readers.next_back()?.grant.as_ref()?.owner.clone();
        Some(Adoption { owner, or_acquire: true, beside: true })
    }

    /// The operation of a script that is called with these words.
    pub(super) fn op_of(&self, script: &str, words: &[String]) -> Option<Op> {
        let of_several = || op(script, words, |by| self.keys_by(by, words.get(1)?));
        // The keys of a job are one more.
        let known = if words.first().is_some_and(|count| count == "6") { &self.job_keys } else { &self.keys };
        let of_job = || jobs::op(script, words, &self.job_keys);
        let of_any = resp::op(script, words, known).or_else(of_job).or_else(of_several);
        of_any.or_else(|| together::op(script, words, &self.keys))
    }

    /// The keys of the acquisition with this owner value, or with this entry in the queue: words don't show the limit of every permit.
    fn keys_by(&self, by: &str, lock: &str) -> Option<Arc<Keys>> {
        let of_owner = self.history.whose(self.name_of(lock)?, by).map(|whose| (whose.client, whose.slot));
        let (client, slot) = of_owner.or_else(|| self.watch.users.get(by)?.first().copied())?;
        Some(Arc::clone(&self.processes[client].slots[slot].recipe.keys))
    }
}

/// The name of the script that does this on a lock that several hold at once, or on several locks.
pub(super) fn name(op: &Op) -> Option<&'static str> {
    let (verb, kind) = (op.verb()?, op.keys()?.kind());
    Some(match verb {
        Verb::Acquire { .. } if kind == Kind::Several => "acquire together",
        Verb::Release { .. } | Verb::Leave if kind == Kind::Several => "release together",
        _ if !kind.is_shared() => return None,
        Verb::Acquire { .. } => "enter",
        Verb::Confirm { .. } => "confirm beside",
        Verb::Extend { .. } | Verb::Heal { .. } => "extend beside",
        Verb::Release { .. } | Verb::Leave => "release beside",
        _ => return None,
    })
}

/// The operation of such a script.
fn op(script: &str, words: &[String], keys_by: impl Fn(&str) -> Option<Arc<Keys>>) -> Option<Op> {
    let count: usize = words.first()?.parse().ok()?;
    let rest = words.get(1 + count..)?;
    let text = |at: usize| rest.get(at).map(String::as_str).unwrap_or_default();
    let number = |at: usize| text(at).parse::<u64>().ok();
    let of = |at: usize| if text(at).is_empty() { Some(0) } else { number(at) };
    let keys = keys_by(text(0))?;
    let named: Vec<&str> = words[1..=count].iter().map(String::as_str).collect();
    let (lock, clock, marks) = (keys.lock(), keys.clock(), keys.marks());
    let (expected, gate) = match script {
        "enter" => (vec![lock, clock, keys.queue(), keys.marker(), marks], if text(2).is_empty() { "read" } else { "permits" }),
        "confirm beside" => (vec![lock, clock, marks], text(2)),
        "extend beside" => (vec![lock, marks], text(3)),
        "release beside" => (vec![lock, clock, keys.queue(), keys.marker(), marks], text(2)),
        _ => return None,
    };
    let is_gate = gate == if keys.kind() == Kind::Read { "read" } else { "permits" };
    let is_limit =
        script != "enter" || gate == "read" || number(2).map(|limit| Kind::Semaphore(limit as u32)) == Some(keys.kind());
    if named != expected || !is_gate || !is_limit {
        return None;
    }
    let verb = match script {
        "enter" => {
            let (mode, adopted) = (text(4), text(7));
            let place = (mode.len() > 1).then(|| Some(QueuePlace { entry: mode.into(), arrival: of(5)?, stays: of(6)? == 1 }));
            let beside = adopted.strip_prefix('+');
            Verb::Acquire {
                ttl_ms: number(1)?,
                proposal: of(3)?,
                adopt: (!adopted.is_empty()).then(|| Adoption {
                    owner: beside.unwrap_or(adopted).into(),
                    or_acquire: mode != "o",
                    beside: beside.is_some(),
                }),
                fair: mode.starts_with(['s', 'q']),
                place: place.flatten(),
                quorum_config: resp::marked(text(8)),
                job: None,
            }
        }
        "confirm beside" => Verb::Confirm { fence: number(1)? },
        "extend beside" => Verb::Extend { ttl_ms: number(1)?, fence: number(2)? },
        // A waiter that leaves a queue has no hold: its own name is no owner.
        _ if text(0) == text(1) => Verb::Leave,
        _ => Verb::Release { leave: Some(text(1)).filter(|leave| !leave.is_empty()).map(Arc::from), kept_ms: 0 },
    };
    Some(Op::Lock(LockOp { keys, by: text(0).into(), verb }))
}
