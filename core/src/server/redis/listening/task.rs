//! Task: a connection to one node, which listens.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, sleep_until};

use super::channels::{Moved, Order};
use super::pub_sub::{PubSub, Said};
use super::{NodeMap, place_channels, send, tell};
use crate::clock::Tick;
use crate::op::{Failure, FailureKind, Redirect};
use crate::server::redis::address::Address;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::failure::{broke_by, no_answer};
use crate::server::redis::transport::connect::{connect, read};
use crate::server::redis::transport::stream::Limit;

/// The time between two looks for channels that nobody listens to.
const SWEEP: Duration = Duration::from_secs(5);

/// Takes what a node says.
fn heard<M: NodeMap>(map: &Arc<M>, node: &Address, said: Vec<Said>) {
    let (mut out, mut moved) = (Vec::new(), Vec::new());
    {
        let mut channels = map.listening().channels.lock();
        for said in said {
            match said {
                Said::Subscribed(name) => channels.subscribed(node, &name, &mut out),
                Said::Message(name, message) => channels.message(node, &name, message, &mut out),
                Said::Ended(name) => {
                    channels.ended(node, &name);
                    moved.push(Moved::Nothing);
                }
                Said::Refused(name, failure) => match failure.redirect.as_deref() {
                    Some(Redirect::Moved { slot, host, port }) => {
                        map.moved(*slot, node, (host, *port));
                        channels.ended(node, &name);
                        moved.push(Moved::Slot(*slot));
                    }
                    _ => channels.refused(node, &name, &map.about(node, failure), Tick::now(), &mut out),
                },
            }
        }
    }
    tell(out);
    if !moved.is_empty() {
        map.look_again();
    }
    moved.dedup();
    for moved in moved {
        place_channels(map, moved);
    }
}

/// Forgets channels that are no longer needed. Says whether a node has one left; else its connection has ended.
fn is_listened_to<M: NodeMap>(map: &Arc<M>, node: &Address) -> bool {
    let orders = map.listening().channels.lock().sweep(Tick::now());
    send(map, orders);
    place_channels(map, Moved::Nothing);
    let mut connections = map.listening().connections.lock();
    let is_needed = map.listening().channels.lock().is_at(node);
    if !is_needed && let Some(connections) = &mut *connections {
        connections.remove(node);
    }
    is_needed
}

/// Listens at a node as long as there is a channel for it.
pub(super) async fn run<M: NodeMap>(map: Weak<M>, node: Address, mut inbox: UnboundedReceiver<Order>) {
    let mut backoff = Backoff::default();
    loop {
        let begun = Tick::now();
        let failure = match heard_until_it_breaks(&map, &node, &mut inbox).await {
            Ok(End::NotNeeded) => return,
            Ok(End::Anew) => continue,
            Err(failure) => failure,
        };
        let Some(here) = map.upgrade() else { return };
        let (failure, useful) = (here.about(&node, failure), here.listening().connect_timeout);
        let mut out = Vec::new();
        here.listening().channels.lock().disconnected(&node, &failure, &mut out);
        tell(out);
        here.look_again();
        let now = Tick::now();
        backoff.broke(now, now.since(begun) > useful, fastrand::f64());
        drop(here);
        sleep(backoff.until(Tick::default()).since(now)).await;
        let is_needed = map.upgrade().is_some_and(|map| is_listened_to(&map, &node));
        if !is_needed {
            return;
        }
    }
}

/// How a connection ends that has not broken.
enum End {
    /// There is no channel left for it.
    NotNeeded,
    /// The next one tells other credentials, or leads to another node.
    Anew,
}

/// One connection, until it breaks or ends.
async fn heard_until_it_breaks<M: NodeMap>(
    map: &Weak<M>,
    node: &Address,
    inbox: &mut UnboundedReceiver<Order>,
) -> Result<End, Failure> {
    let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
    let (settings, response_timeout, era) = (here.settings_of(node)?, here.listening().response_timeout, here.era());
    drop(here);
    let limit = Limit::new(settings.connect_timeout);
    let (mut socket, buffers) = limit.keep(FailureKind::Timeout, "no answer", connect(&settings)).await??;
    let mut pub_sub = PubSub::new(buffers, response_timeout);
    {
        let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
        if here.era() != era {
            return Ok(End::Anew);
        }
        // What was ordered meanwhile is among the channels.
        let channels = here.listening().channels.lock();
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
                let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
                heard(&here, node, said);
            }
            order = inbox.recv() => match order {
                Some(Order::Subscribe(channel)) => pub_sub.subscribe(channel, Tick::now()),
                Some(Order::Unsubscribe(channel)) => pub_sub.unsubscribe(&channel, Tick::now()),
                Some(Order::LogIn) => return Ok(End::Anew),
                Some(Order::Wake) => {
                    if map.upgrade().is_some_and(|map| map.era() != era) {
                        return Ok(End::Anew);
                    }
                }
                None => return Ok(End::NotNeeded),
            },
            () = sleep_until(wake_at) => {
                if pub_sub.wake(Tick::now()) {
                    return Err(no_answer(response_timeout));
                }
                if Tick::now() >= sweep_at {
                    sweep_at = Tick::now().after(SWEEP);
                    let is_needed = map.upgrade().is_some_and(|map| is_listened_to(&map, node));
                    if !is_needed {
                        return Ok(End::NotNeeded);
                    }
                }
            }
        }
    }
}
