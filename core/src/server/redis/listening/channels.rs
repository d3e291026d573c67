//! Channels: what this process listens to, and at which node. Pure.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::name::slot::slot_of;
use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::listening::listener::{ChannelListener, Notices};
use crate::server::redis::listening::pub_sub::{Channel, Kind};
use crate::server::{Listener, Notice};

/// For so long a channel is kept that nobody listens to: a lock that was waited for is waited for again.
const KEPT: Duration = Duration::from_secs(60);

/// After so long a node is asked again that has refused a subscription. Rights are given by people.
pub(super) const REFUSED: Duration = Duration::from_secs(30);

/// The most channels at one node. Who waits beyond that polls.
const MOST: usize = 4_096;

/// What to send to a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    Subscribe(Channel),
    Unsubscribe(Channel),
    /// There are new credentials: with subscriptions, only a new connection can send them.
    LogIn,
    /// The server may have another replication id.
    Wake,
}

/// A channel, and who listens.
struct Known {
    channel: Channel,
    slot: u16,
    /// At least one, though it may be over.
    listeners: Vec<ChannelListener>,
    /// The node that was asked for it.
    node: Option<Address>,
    /// Whether its messages arrive.
    listens: bool,
    /// Since when nobody listens.
    idle_since: Option<Tick>,
    /// The node has refused the subscription, and is asked again from then on.
    refused_until: Option<Tick>,
}

impl Known {
    fn is_over(&self) -> bool {
        self.listeners.iter().all(ChannelListener::is_over)
    }

    fn not_listening(&mut self, failure: &Failure, out: &mut Notices) {
        self.listeners.iter_mut().for_each(|listener| listener.not_listening(failure, out));
    }
}

/// Which channels may have to go to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// Only those without a node that are new, or that a node has ended.
    Nothing,
    /// Those of a slot, too.
    Slot(u16),
    /// Any of them: there is another map.
    Map,
}

/// The channels of one client. Who listens to one more must not cost a look at all others: a client may wait for thousands of
/// locks.
#[derive(Default)]
pub(super) struct Channels {
    known: HashMap<Arc<str>, Known>,
    by_slot: HashMap<u16, Vec<Arc<str>>>,
    /// How many are at each node.
    counts: HashMap<Address, usize>,
    /// Those that have to be placed.
    unplaced: Vec<Arc<str>>,
    /// Those for which there was no node, or no room.
    left_out: HashSet<Arc<str>>,
    /// The nodes at which each channel had a listener, at the last look.
    full: HashSet<Address>,
}

impl Channels {
    /// One more listens to a channel from now on. One that is known gets the notices again.
    pub(super) fn listen(&mut self, channel: Channel, of: &Listener, out: &mut Notices) {
        let mut listener = ChannelListener::new(of);
        let name = Arc::clone(&channel.name);
        if let Some(known) = self.known.get_mut(&name) {
            if known.listens {
                listener.listening(out);
            }
            known.listeners.retain(|other| !other.is_over() && !other.is(of));
            known.listeners.push(listener);
            known.idle_since = None;
            if known.node.is_none() {
                self.unplaced.push(name);
            }
            return;
        }
        let slot = slot_of(&name);
        self.by_slot.entry(slot).or_default().push(Arc::clone(&name));
        self.unplaced.push(Arc::clone(&name));
        self.known.insert(
            name,
            Known { channel, slot, listeners: vec![listener], node: None, listens: false, idle_since: None, refused_until: None },
        );
    }

    /// Gives what to send to whom, so that each channel is at the node that serves its slot.
    pub(super) fn place(
        &mut self,
        moved: Moved,
        owner: impl Fn(u16) -> Option<Address>,
        out: &mut Notices,
    ) -> Vec<(Address, Order)> {
        let mut names = mem::take(&mut self.unplaced);
        match moved {
            Moved::Nothing => (),
            Moved::Slot(slot) => names.extend(self.by_slot.get(&slot).into_iter().flatten().cloned()),
            Moved::Map => {
                self.left_out.clear();
                names = self.known.keys().cloned().collect();
            }
        }
        let mut orders = Vec::new();
        for name in names {
            let Some(known) = self.known.get(&name) else { continue };
            let owner = owner(known.slot);
            if known.node.is_some() && (owner.is_none() || known.node == owner) {
                continue;
            }
            let Some(owner) = owner else {
                self.left_out.insert(name);
                continue;
            };
            if self.count(&owner) >= MOST && !self.gives_one_up(&owner, &mut orders) {
                let why = format!("this client listens to {MOST} channels of {owner} already");
                if let Some(known) = self.known.get_mut(&name) {
                    known.not_listening(&Failure::not_applied(FailureKind::Closed, why), out);
                }
                self.left_out.insert(name);
                continue;
            }
            orders.extend(self.unsubscribed(&name));
            if let Some(known) = self.known.get_mut(&name) {
                *self.counts.entry(owner.clone()).or_default() += 1;
                (known.node, known.listens) = (Some(owner.clone()), false);
                orders.push((owner, Order::Subscribe(known.channel.clone())));
            }
        }
        orders
    }

    fn count(&self, node: &Address) -> usize {
        self.counts.get(node).copied().unwrap_or_default()
    }

    /// Whether there is a channel at a node.
    pub(super) fn is_at(&self, node: &Address) -> bool {
        self.count(node) > 0
    }

    /// Takes a channel from its node; gives what to send to it.
    fn unsubscribed(&mut self, name: &str) -> Option<(Address, Order)> {
        let known = self.known.get_mut(name)?;
        let node = known.node.take()?;
        (known.listens, known.refused_until) = (false, None);
        if let Some(count) = self.counts.get_mut(&node) {
            *count = count.saturating_sub(1);
        }
        Some((node, Order::Unsubscribe(known.channel.clone())))
    }

    /// Forgets a channel at a node to which nobody listens, if there is one.
    fn gives_one_up(&mut self, node: &Address, orders: &mut Vec<(Address, Order)>) -> bool {
        if self.full.contains(node) {
            return false;
        }
        let idle = self.known.iter().find(|(_, known)| known.node.as_ref() == Some(node) && known.is_over());
        let Some(name) = idle.map(|(name, _)| Arc::clone(name)) else {
            self.full.insert(node.clone());
            return false;
        };
        orders.extend(self.unsubscribed(&name));
        self.forget(&name);
        true
    }

    fn forget(&mut self, name: &Arc<str>) {
        let Some(known) = self.known.remove(name) else { return };
        if let Some(names) = self.by_slot.get_mut(&known.slot) {
            names.retain(|other| other != name);
            if names.is_empty() {
                self.by_slot.remove(&known.slot);
            }
        }
    }

    /// Forgets the channels that nobody has listened to for long. Those for which there was no room are tried again.
    pub(super) fn sweep(&mut self, now: Tick) -> Vec<(Address, Order)> {
        let mut over = Vec::new();
        for (name, known) in self.known.iter_mut().filter(|(_, known)| known.is_over()) {
            let idle_since = *known.idle_since.get_or_insert(now);
            // Only a lock is waited for again.
            if known.node.is_none() || known.channel.kind != Kind::Sharded || now >= idle_since.after(KEPT) {
                over.push(Arc::clone(name));
            }
        }
        let mut orders: Vec<_> = over.iter().filter_map(|name| self.unsubscribed(name)).collect();
        over.iter().for_each(|name| self.forget(name));
        for known in self.known.values_mut().filter(|known| known.refused_until.is_some_and(|until| now >= until)) {
            known.refused_until = None;
            orders.extend(known.node.clone().map(|node| (node, Order::Subscribe(known.channel.clone()))));
        }
        self.full.clear();
        self.unplaced.extend(self.left_out.drain());
        orders
    }

    /// The channels at a node.
    pub(super) fn at(&self, node: &Address) -> Vec<Channel> {
        let here = self.known.values().filter(|known| known.node.as_ref() == Some(node));
        here.map(|known| known.channel.clone()).collect()
    }

    fn known_at(&mut self, node: &Address, name: &str) -> Option<&mut Known> {
        self.known.get_mut(name).filter(|known| known.node.as_ref() == Some(node))
    }

    /// The messages of a channel arrive from now on. Earlier ones may be lost.
    pub(super) fn subscribed(&mut self, node: &Address, name: &str, out: &mut Notices) {
        if let Some(known) = self.known_at(node, name) {
            (known.listens, known.refused_until) = (true, None);
            known.listeners.iter_mut().for_each(|listener| listener.listening(out));
        }
    }

    /// The node sends no messages of a channel any more: another node will.
    pub(super) fn ended(&mut self, node: &Address, name: &str) {
        let Some(known) = self.known_at(node, name) else { return };
        let name = Arc::clone(&known.channel.name);
        // It has reported so itself.
        let _ = self.unsubscribed(&name);
        self.unplaced.push(name);
    }

    /// The node refuses the subscription.
    pub(super) fn refused(&mut self, node: &Address, name: &str, failure: &Failure, now: Tick, out: &mut Notices) {
        let Some(known) = self.known_at(node, name) else { return };
        (known.listens, known.refused_until) = (false, Some(now.after(REFUSED)));
        known.not_listening(failure, out);
    }

    /// There is no connection to a node.
    pub(super) fn disconnected(&mut self, node: &Address, failure: &Failure, out: &mut Notices) {
        for known in self.known.values_mut().filter(|known| known.node.as_ref() == Some(node)) {
            known.listens = false;
            known.not_listening(failure, out);
        }
    }

    pub(super) fn message(&self, node: &Address, name: &str, message: String, out: &mut Notices) {
        // A message of the node that has lost the slot counts, too: it was sent before.
        if let Some(known) = self.known.get(name).filter(|known| known.node.is_none() || known.node.as_ref() == Some(node)) {
            known.listeners.iter().for_each(|listener| listener.notify(Notice::Message(message.clone()), out));
        }
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
