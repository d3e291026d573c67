//! Primary: the node that is the server at present, known once for all connections to it: its replication id, its clock, and
//! whether it answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Tick;
use crate::name::{Keys, Kind};
use crate::op::{Failure, FailureKind, Op, Reply, Verdict};
use crate::server::redis::commands::handshake_facts::{HandshakeFacts, Replid};
use crate::server::redis::connection::busy::Busy;
use crate::server::redis::connection::floors::{Floors, Succeeded};
use crate::server::redis::connection::health::Health;
use crate::server::redis::connection::replids::{Assessment, Replids};
use crate::server::redis::connection::server_clock::ServerClock;
use crate::server::redis::connection::server_state::{Failover, ServerState};
use crate::sync::Mutex;

/// The knowledge that the connections to one server share.
pub struct Primary {
    /// The names that were met held.
    pub(crate) busy: Busy,
    pub(crate) health: Health,
    pub(crate) clock: Arc<ServerClock>,
    /// The fences that were seen, if it is not in a cluster.
    floors: Floors,
    succeeded: Succeeded,
    replids: Mutex<Replids>,
    /// The number of the present replication id, read for every input of every connection.
    number: AtomicU64,
    /// The time in microseconds at which the last handshake ended.
    connected_at: AtomicU64,
    /// The number of connections on which something was cancelled.
    cancelled: AtomicUsize,
    /// The replication ids of the other nodes of its cluster, if it is in one.
    lineage: Option<Arc<Lineage>>,
    /// The replication id of the node that this one has replaced, with the clock of that, until this one's handshake.
    replaced: Mutex<Option<(Arc<str>, Arc<ServerClock>)>>,
}

/// A node has passed the handshake, and is taken for the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The number of its replication id.
    pub(crate) replid: u64,
    /// The time from which on its node has votes: later than now if the replication id was left before.
    pub(crate) votes_from: Tick,
}

/// The replication ids of all nodes of a cluster that were primaries. A primary that follows another one shows the id of that.
#[derive(Default)]
pub(crate) struct Lineage {
    /// Each with the clock of its node.
    replids: Mutex<Vec<(Arc<str>, Arc<ServerClock>)>>,
    /// The fences that were seen on any node.
    floors: Floors,
}

/// How many replication ids are remembered. A cluster has at most 1,000 primaries or so.
const REMEMBERED: usize = 4_096;

impl Lineage {
    /// A node with this clock shows this id. Gives the id of another node that it has followed, with that node's clock, if new.
    fn on_connected(&self, shown: &Replid, clock: &Arc<ServerClock>) -> Option<(Arc<str>, Arc<ServerClock>)> {
        let mut replids = self.replids.lock();
        if replids.iter().any(|(id, _)| *id == shown.id) {
            return None;
        }
        let full = replids.len().saturating_sub(REMEMBERED);
        replids.drain(..full);
        replids.push((Arc::clone(&shown.id), Arc::clone(clock)));
        replids.iter().find(|(id, _)| Some(id) == shown.before.as_ref()).cloned()
    }
}

/// A connection on which something was cancelled that may come late. It counts until this is dropped.
pub(crate) struct Cancelled(Arc<Primary>);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.cancelled.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Primary {
    /// A server that nothing is known of. `report` gets its changes.
    pub fn new(report: impl Fn(ServerState) + Send + Sync + 'static) -> Self {
        Self::of(None, report)
    }

    /// The same for one of several nodes, whose replication ids are in `lineage`.
    pub(crate) fn of(lineage: Option<Arc<Lineage>>, report: impl Fn(ServerState) + Send + Sync + 'static) -> Self {
        Self {
            lineage,
            replaced: Mutex::default(),
            busy: Busy::default(),
            health: Health::new(report),
            clock: Arc::default(),
            floors: Floors::default(),
            succeeded: Succeeded::default(),
            replids: Mutex::default(),
            number: AtomicU64::new(0),
            connected_at: AtomicU64::new(0),
            cancelled: AtomicUsize::new(0),
        }
    }

    /// The number of the present replication id.
    #[must_use]
    pub fn replid_number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// The time at which the last handshake ended: by then the server was back.
    pub(crate) fn connected_at(&self) -> Tick {
        Tick::from_micros(self.connected_at.load(Ordering::Relaxed))
    }

    /// This node has the slots of another one, which fails. It may be the same node, started again without its data at another
    /// address: its replication id then doesn't show whom it follows.
    pub(crate) fn replaces(&self, other: &Self) {
        let replid = other.replids.lock().present().map(Arc::clone);
        *self.replaced.lock() = replid.map(|replid| (replid, Arc::clone(&other.clock)));
    }

    /// The node at `address` has passed the handshake and shows this replication id. Gives the id's number, and the failover to
    /// report if that is new. A node that shows no id is taken for the present one. `max_ttl` is that of a server with a marker.
    ///
    /// # Errors
    /// `ReadOnly` for a node whose replication id was left: its successor is somewhere else.
    pub(crate) fn on_connected(
        &self,
        facts: &HandshakeFacts,
        address: Option<SocketAddr>,
        max_ttl: Option<Duration>,
        now: Tick,
    ) -> Result<(Accepted, Option<ServerState>), Failure> {
        let (mut replids, shown) = (self.replids.lock(), facts.replid.as_ref());
        let follows = self.lineage.as_ref().zip(shown).and_then(|(lineage, shown)| lineage.on_connected(shown, &self.clock));
        let replaced = self.replaced.lock().take().filter(|(replid, _)| shown.is_some_and(|shown| shown.id != *replid));
        let assessment = shown.map_or(Assessment::Present, |shown| replids.assess(shown, max_ttl, now));
        let failover = match (assessment, shown) {
            (Assessment::Left, _) => {
                let why = "this is a primary that another one has followed: it may lack the latest locks";
                return Err(Failure::not_applied(FailureKind::ReadOnly, why));
            }
            (Assessment::Follows(before), Some(shown)) => {
                self.succeed(now);
                let (old_replid, new_replid) = (before.id, Arc::clone(&shown.id));
                Some(ServerState::FailedOver(Failover { address: address.map(|at| at.to_string()), old_replid, new_replid }))
            }
            (Assessment::Present, Some(shown)) => follows.or(replaced).map(|(old_replid, clock)| {
                self.succeeded.begin(clock.at(now));
                let new_replid = Arc::clone(&shown.id);
                ServerState::FailedOver(Failover { address: address.map(|at| at.to_string()), old_replid, new_replid })
            }),
            // It may be another node than before.
            (Assessment::Present | Assessment::Follows(_), None) => {
                self.succeed(now);
                None
            }
        };
        replids.connected();
        self.connected_at.fetch_max(now.as_micros(), Ordering::Relaxed);
        self.number.store(replids.number(), Ordering::Release);
        Ok((Accepted { replid: replids.number(), votes_from: replids.votes_from() }, failover))
    }

    /// Another node answers from now on. A caller that asks meanwhile must not take the clock of the one before for that of the
    /// next.
    fn succeed(&self, now: Tick) {
        let before = self.clock.at(now);
        self.clock.forget();
        self.succeeded.begin(before);
    }

    /// Notes what an answer shows of a lock: its fence, and whether a newcomer met it held. `was_tried`: a transaction went before.
    pub(crate) fn learn(&self, op: &Op, reply: &Reply, was_tried: bool) {
        let Some(keys) = op.keys().filter(|keys| keys.kind() != Kind::Quorum) else { return };
        reply.shown_fences(keys).for_each(|(keys, fence)| self.saw(keys, fence));
        match &reply.verdict {
            Verdict::Vote if op.takes_if_free() && !was_tried => self.busy.got(keys.lock()),
            Verdict::Held { .. } if op.takes_if_free() => self.busy.met(keys.lock()),
            _ => (),
        }
    }

    /// An answer has shown a fence of a lock.
    pub(crate) fn saw(&self, keys: &Keys, fence: u64) {
        self.floors().saw(keys, fence);
    }

    /// The fence that the next one of this lock has to be above, and whether it is only a script that can see to that: the clock of
    /// this node may be behind the one of the node before it.
    pub(crate) fn floor(&self, keys: &Keys, now: Tick) -> (u64, bool) {
        let before = self.succeeded.at(self.clock.at(now));
        let seen = keys.each().map(|keys| self.floors().of(keys)).max().unwrap_or_default();
        (seen.max(before.unwrap_or_default()), before.is_some())
    }

    /// The fences that were seen here, or on any node of the cluster.
    fn floors(&self) -> &Floors {
        self.lineage.as_ref().map_or(&self.floors, |lineage| &lineage.floors)
    }

    /// Counts a connection on which something was cancelled.
    pub(crate) fn cancelled(self: &Arc<Self>) -> Cancelled {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
        Cancelled(Arc::clone(self))
    }

    /// Whether something may come late on a connection, so that a release has to follow it there.
    #[must_use]
    pub fn has_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst) > 0
    }

    /// A connection of the replication id with this number is gone.
    pub(crate) fn disconnected(&self, number: u64, now: Tick) {
        self.replids.lock().disconnected(number, now);
    }
}
