//! Listening: a connection to each node that has a channel of this client, beside the connections for operations.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, sleep_until};

use crate::clock::Tick;
use crate::op::{Failure, FailureKind, Redirect};
use crate::server::Listener;
use crate::server::redis::address::Address;
use crate::server::redis::cluster::asking::{connect, read};
use crate::server::redis::cluster::channels::{Moved, Order};
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::ears::Ear;
use crate::server::redis::cluster::nodes::{Stage, about};
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::failure::{broke_by, no_answer};
use crate::server::redis::connection::pub_sub::{Channel, PubSub, Said};
use crate::server::redis::connection::subscription::Kind;
use crate::server::redis::transport::stream::Limit;

/// The time between two looks for channels that nobody listens to.
const SWEEP: Duration = Duration::from_secs(5);

impl Cluster {
    /// Has the listener hear a channel, at the node of the channel's slot; says whether the cluster is open.
    pub(super) fn listen(self: &Arc<Self>, channel: &str, kind: Kind, listener: &Listener) -> bool {
        if self.nodes.stage() == Stage::Closed {
            return false;
        }
        let mut out = Vec::new();
        self.channels.lock().listen(Channel { name: channel.into(), kind }, listener, &mut out);
        tell(out);
        if self.mapping.lock().primaries().is_none() {
            self.refresh();
        }
        self.place_channels(Moved::Nothing);
        true
    }

    /// Has each channel be at the node that serves its slot.
    pub(super) fn place_channels(self: &Arc<Self>, moved: Moved) {
        let mut out = Vec::new();
        let orders = {
            let mut channels = self.channels.lock();
            let mapping = self.mapping.lock();
            channels.place(moved, |slot| mapping.primary_of(slot), &mut out)
        };
        tell(out);
        self.order(orders);
    }

    fn order(self: &Arc<Self>, orders: Vec<(Address, Order)>) {
        if orders.is_empty() {
            return;
        }
        let mut ears = self.ears.lock();
        if self.nodes.stage() == Stage::Closed {
            return;
        }
        for (address, order) in orders {
            let is_subscription = matches!(order, Order::Subscribe(_));
            let heard = ears.0.get(&address).is_some_and(|ear| ear.orders.send(order).is_ok());
            // A new connection begins with all channels of its node.
            if !heard && is_subscription {
                let (sender, inbox) = unbounded_channel();
                let task = self.host.spawn(hear(Arc::downgrade(self), address.clone(), inbox)).abort_handle();
                ears.0.insert(address, Ear { orders: sender, task });
            }
        }
    }

    /// Has every connection tell the newest credentials.
    pub(super) fn log_in(&self) {
        self.nodes.all().iter().for_each(|node| node.routes.log_in());
        for ear in self.ears.lock().0.values() {
            // One that has ended begins with the newest ones.
            let _ = ear.orders.send(Order::LogIn);
        }
    }

    /// Ends all connections that listen.
    pub(super) fn stop_listening(&self) {
        self.ears.lock().0.drain().for_each(|(_, ear)| ear.task.abort());
    }

    /// Takes what a node says.
    fn heard(self: &Arc<Self>, node: &Address, said: Vec<Said>) {
        let (mut out, mut moved) = (Vec::new(), Vec::new());
        {
            let mut channels = self.channels.lock();
            for said in said {
                match said {
                    Said::Subscribed(name) => channels.subscribed(node, &name, &mut out),
                    Said::Message(name, message) => channels.message(node, &name, message, &mut out),
                    Said::Ended(name) => {
                        channels.ended(node, &name, None, &mut out);
                        moved.push(Moved::Nothing);
                    }
                    Said::Refused(name, failure) => match failure.redirect.as_deref() {
                        Some(Redirect::Moved { slot, host, port }) => {
                            self.mapping.lock().moved(*slot, &node.elsewhere(host, *port));
                            channels.ended(node, &name, None, &mut out);
                            moved.push(Moved::Slot(*slot));
                        }
                        _ => channels.ended(node, &name, Some(&about(node, failure)), &mut out),
                    },
                }
            }
        }
        tell(out);
        if !moved.is_empty() {
            self.refresh();
        }
        moved.dedup();
        for moved in moved {
            self.place_channels(moved);
        }
    }

    /// Forgets channels that are no longer needed. Says whether a node has one left; else its connection has ended.
    fn is_listened_to(self: &Arc<Self>, node: &Address) -> bool {
        let orders = self.channels.lock().sweep(Tick::now());
        self.order(orders);
        self.place_channels(Moved::Nothing);
        let mut ears = self.ears.lock();
        let is_needed = self.channels.lock().is_at(node);
        if !is_needed {
            ears.0.remove(node);
        }
        is_needed
    }
}

/// Listens at a node as long as there is a channel for it.
async fn hear(cluster: Weak<Cluster>, node: Address, mut inbox: UnboundedReceiver<Order>) {
    let mut backoff = Backoff::default();
    loop {
        let begun = Tick::now();
        let failure = match heard_until_it_breaks(&cluster, &node, &mut inbox).await {
            Ok(End::NotNeeded) => return,
            Ok(End::LogsIn) => continue,
            Err(failure) => about(&node, failure),
        };
        let Some(here) = cluster.upgrade() else { return };
        let mut out = Vec::new();
        here.channels.lock().disconnected(&node, &failure, &mut out);
        tell(out);
        here.refresh();
        let now = Tick::now();
        backoff.broke(now, now.since(begun) > here.options.connect_timeout, fastrand::f64());
        drop(here);
        sleep(backoff.until(Tick::default()).since(now)).await;
        let is_needed = cluster.upgrade().is_some_and(|cluster| cluster.is_listened_to(&node));
        if !is_needed {
            return;
        }
    }
}

/// How a connection ends that has not broken.
enum End {
    /// There is no channel left for it.
    NotNeeded,
    /// The next one tells other credentials.
    LogsIn,
}

/// One connection, until it breaks or ends.
async fn heard_until_it_breaks(
    cluster: &Weak<Cluster>,
    node: &Address,
    inbox: &mut UnboundedReceiver<Order>,
) -> Result<End, Failure> {
    let Some(here) = cluster.upgrade() else { return Ok(End::NotNeeded) };
    let (settings, response_timeout) = (Arc::new(here.settings(node)?), here.response_timeout);
    drop(here);
    let limit = Limit::new(settings.connect_timeout);
    let (mut socket, buffers) = limit.keep(FailureKind::Timeout, "no answer", connect(&settings)).await??;
    let mut pub_sub = PubSub::new(buffers, response_timeout);
    {
        let Some(here) = cluster.upgrade() else { return Ok(End::NotNeeded) };
        // What was ordered meanwhile is among the channels.
        let channels = here.channels.lock();
        while inbox.try_recv().is_ok() {}
        channels.at(node).into_iter().for_each(|channel| pub_sub.subscribe(channel, Tick::now()));
    }
    let mut sweep_at = Tick::now().after(SWEEP);
    loop {
        let wake_at = Instant::now() + pub_sub.wake_at().min(sweep_at).since(Tick::now());
        tokio::select! {
            biased;
            count = read(&mut socket, &mut pub_sub.buffers) => {
                let said = pub_sub.read(count.map_err(broke_by)?, Tick::now())?;
                let Some(here) = cluster.upgrade() else { return Ok(End::NotNeeded) };
                here.heard(node, said);
            }
            order = inbox.recv() => match order {
                Some(Order::Subscribe(channel)) => pub_sub.subscribe(channel, Tick::now()),
                Some(Order::Unsubscribe(channel)) => pub_sub.unsubscribe(&channel, Tick::now()),
                Some(Order::LogIn) => return Ok(End::LogsIn),
                None => return Ok(End::NotNeeded),
            },
            () = sleep_until(wake_at) => {
                if pub_sub.wake(Tick::now()) {
                    return Err(no_answer(response_timeout));
                }
                if Tick::now() >= sweep_at {
                    sweep_at = Tick::now().after(SWEEP);
                    let is_needed = cluster.upgrade().is_some_and(|cluster| cluster.is_listened_to(node));
                    if !is_needed {
                        return Ok(End::NotNeeded);
                    }
                }
            }
        }
    }
}

fn tell(out: Vec<Effect>) {
    for effect in out {
        if let Effect::Tell(listener, notice) = effect {
            listener(notice);
        }
    }
}
