//! Channels: what this process listens to in a cluster, and at which node. Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::cluster::slot::slot_of;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::listener::ChannelListener;
use crate::server::redis::connection::pub_sub::Channel;
use crate::server::{Listener, Notice};

/// For so long a channel is kept that nobody listens to: a lock that was waited for is waited for again.
const KEPT: Duration = Duration::from_secs(60);

/// The most channels at one node. Who waits beyond that polls.
const MOST: usize = 1_000;

/// What to say to a node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Order {
    Subscribe(Channel),
    Unsubscribe(Channel),
    /// There are new credentials: with subscriptions, only a new connection can tell them.
    LogIn,
}

/// A channel, and who listens.
struct Known {
    channel: Channel,
    slot: u16,
    listener: ChannelListener,
    /// The node that was asked for it.
    node: Option<Address>,
    /// Whether its messages arrive.
    listens: bool,
    /// Since when nobody listens.
    idle_since: Option<Tick>,
}

/// The channels of one client.
#[derive(Default)]
pub(super) struct Channels {
    known: HashMap<Arc<str>, Known>,
}

impl Channels {
    /// Somebody listens to a channel from now on, in the place of whoever did before.
    pub(super) fn listen(&mut self, channel: Channel, listener: &Listener, out: &mut Vec<Effect>) {
        let mut listener = ChannelListener::new(&channel.name, listener);
        if let Some(known) = self.known.get_mut(&channel.name) {
            if known.listens {
                listener.listening(out);
            }
            (known.listener, known.idle_since) = (listener, None);
            return;
        }
        let (name, slot) = (Arc::clone(&channel.name), slot_of(&channel.name));
        self.known.insert(name, Known { channel, slot, listener, node: None, listens: false, idle_since: None });
    }

    /// Gives what to say to whom, so that each channel is at the node that serves its slot.
    pub(super) fn place(&mut self, owner: impl Fn(u16) -> Option<Address>, out: &mut Vec<Effect>) -> Vec<(Address, Order)> {
        let mut counts: HashMap<Address, usize> = HashMap::new();
        for node in self.known.values().filter_map(|known| known.node.as_ref()) {
            *counts.entry(node.clone()).or_default() += 1;
        }
        let mut orders = Vec::new();
        for known in self.known.values_mut() {
            let Some(owner) = owner(known.slot) else { continue };
            if known.node.as_ref() == Some(&owner) {
                continue;
            }
            let count = counts.entry(owner.clone()).or_default();
            if *count >= MOST {
                let why = format!("this client listens to {MOST} channels of {owner} already");
                known.listener.not_listening(&Failure::not_applied(FailureKind::Closed, why), out);
                continue;
            }
            *count += 1;
            if let Some(before) = known.node.replace(owner.clone()) {
                orders.push((before, Order::Unsubscribe(known.channel.clone())));
            }
            known.listens = false;
            orders.push((owner, Order::Subscribe(known.channel.clone())));
        }
        orders
    }

    /// Forgets the channels that nobody has listened to for long.
    pub(super) fn sweep(&mut self, now: Tick) -> Vec<(Address, Order)> {
        let mut orders = Vec::new();
        self.known.retain(|_, known| {
            if !known.listener.is_over() {
                return true;
            }
            let idle_since = *known.idle_since.get_or_insert(now);
            let is_kept = now < idle_since.after(KEPT);
            if !is_kept && let Some(node) = known.node.take() {
                orders.push((node, Order::Unsubscribe(known.channel.clone())));
            }
            is_kept
        });
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
    pub(super) fn subscribed(&mut self, node: &Address, name: &str, out: &mut Vec<Effect>) {
        if let Some(known) = self.known_at(node, name) {
            known.listens = true;
            known.listener.listening(out);
        }
    }

    /// The node sends no messages of a channel any more. With a failure it won't for long; else another node will.
    pub(super) fn ended(&mut self, node: &Address, name: &str, failure: Option<&Failure>, out: &mut Vec<Effect>) {
        if let Some(known) = self.known_at(node, name) {
            known.listens = false;
            match failure {
                Some(failure) => known.listener.not_listening(failure, out),
                None => known.node = None,
            }
        }
    }

    /// There is no connection to a node.
    pub(super) fn disconnected(&mut self, node: &Address, failure: &Failure, out: &mut Vec<Effect>) {
        for known in self.known.values_mut().filter(|known| known.node.as_ref() == Some(node)) {
            known.listens = false;
            known.listener.not_listening(failure, out);
        }
    }

    pub(super) fn message(&self, node: &Address, name: &str, message: String, out: &mut Vec<Effect>) {
        // A message of the node that has lost the slot counts, too: it was said before.
        if let Some(known) = self.known.get(name).filter(|known| known.node.is_none() || known.node.as_ref() == Some(node)) {
            known.listener.tell(Notice::Message(message), out);
        }
    }
}

#[cfg(test)]
#[path = "channels_tests.rs"]
mod tests;
