//! Room: a waiter for which there is room beside those inside enters soon, if none before it has to wait.

use std::collections::{HashMap, HashSet};

use locktender::machine::CLAIM_MS;
use locktender::op::{Op, Reply, Verdict};

use super::clock::{Instant, ms};
use super::sample::EVERY;
use super::standing::Standing;
use super::waiters::LOOK;
use super::world::World;

/// By lock and client: since when there has been room for these waiters of the client.
pub(super) type Rooms = HashMap<(usize, usize), (Instant, HashSet<usize>)>;

impl World {
    /// The waiters of each client that may enter a lock by their own limits, and that no other has to enter before.
    fn may_enter(&self, name: usize) -> HashMap<usize, HashSet<usize>> {
        let (node, keys) = (&self.nodes[0], &self.keys[name]);
        let (standing, now_us) = (Standing::of(node, keys, self.now), node.wall_us(self.now));
        // Who looks drops the dead ones.
        let lives = |entry: &str| {
            let client = entry.split(':').nth(1).unwrap_or_default();
            let life = node.state.members(keys.queue(), now_us).and_then(|members| members.score(client));
            life.is_some_and(|life| life.unsigned_abs() >= now_us)
        };
        let has_room = |entry: &str| standing.inside.has_room_for(entry) == Some(true);
        // The first one that has to wait. Who was notified has left the queue.
        let first = standing.queue.iter().find(|(entry, _)| lives(entry) && !has_room(entry)).map(|(_, arrival)| *arrival);
        let is_before = |entry: &str| first.is_none_or(|first| standing.arrival(entry).is_some_and(|arrival| arrival < first));
        let entries = self.watch.users.iter().filter(|(entry, _)| has_room(entry) && is_before(entry));
        let mut users: HashMap<usize, HashSet<usize>> = HashMap::new();
        let voting = self.voting();
        for (client, at) in entries.flat_map(|(_, users)| users) {
            let slot = &self.processes[*client].slots[*at];
            if slot.name == name && slot.is_waiting() && self.can_be_granted(slot) && self.is_reliable(*client, &voting) {
                users.entry(*client).or_default().insert(*at);
            }
        }
        users
    }

    /// An operation of a client was done: what room it has taken is not there any more.
    pub(super) fn room_is_taken(&mut self, client: usize, op: &Op, reply: &Reply) {
        let Some(name) = op.keys().and_then(|keys| self.name_of(keys.lock())) else { return };
        if reply.verdict == Verdict::Vote {
            self.watch.rooms.remove(&(name, client));
        }
        if self.watch.rooms.keys().any(|(of, _)| *of == name) {
            self.keep_rooms(name);
        }
    }

    /// Keeps the rooms of a lock that are still open for the same waiters; gives those that are open.
    fn keep_rooms(&mut self, name: usize) -> HashMap<usize, HashSet<usize>> {
        let open = self.may_enter(name);
        let is_kept = |client: &usize, waiters: &HashSet<usize>| open.get(client).is_some_and(|open| waiters.is_subset(open));
        self.watch.rooms.retain(|(of, client), (_, waiters)| *of != name || is_kept(client, waiters));
        open
    }

    /// Room beside those inside, for which a client waits, doesn't stay open.
    ///
    /// One waiter of a client looks within a second, whatever messages were lost. It enters then, or the room becomes that of waiters before
    /// it, and if they don't come, it is this one's when their claims are over.
    pub(super) fn look_for_open_rooms(&mut self, name: usize) {
        if !self.plan.is_shared {
            return;
        }
        for (client, waiters) in self.keep_rooms(name) {
            self.watch.rooms.entry((name, client)).or_insert((self.now, waiters));
        }
        let limit = LOOK + ms(CLAIM_MS) + self.moment() + EVERY;
        let late = self.watch.rooms.iter().filter(|((of, _), (since, _))| *of == name && since + limit < self.now);
        if let Some(((_, client), (since, _))) = late.min_by_key(|(at, _)| **at) {
            self.violate(format!("l{name} has had room for a waiter of c{client} since {since}, and that doesn't enter"));
        }
    }
}
