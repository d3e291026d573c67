//! Task: a connection to one node, which listens.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, sleep_until};

use super::channels::{Moved, Order, REFUSED};
use super::pub_sub::{PubSub, Push};
use super::{NodeMap, notify, place_channels, send};
use crate::clock::Tick;
use crate::op::{Failure, FailureKind, Redirect};
use crate::server::redis::address::Address;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::failure::{broke_by, no_answer};
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::connect::connect;
use crate::server::redis::transport::socket::OpenSocket;
use crate::server::redis::transport::stream::Limit;

/// The time between two looks for channels that nobody listens to.
const SWEEP: Duration = Duration::from_secs(5);

/// Takes what a node reports.
fn deliver<M: NodeMap>(map: &Arc<M>, node: &Address, events: Vec<Push>) {
    let (mut out, mut moved) = (Vec::new(), Vec::new());
    {
        let mut channels = map.listening().channels.lock();
        for events in events {
            match events {
                Push::Subscribed(name) => channels.subscribed(node, &name, &mut out),
                Push::Message(name, message) => channels.message(node, &name, message, &mut out),
                Push::Ended(name) => {
                    channels.ended(node, &name);
                    moved.push(Moved::Nothing);
                }
                Push::Refused(name, failure) => match failure.redirect.as_deref() {
                    Some(Redirect::Moved { slot, host, port }) if map.moved(*slot, node, (host, *port)) => {
                        channels.ended(node, &name);
                        moved.push(Moved::Slot(*slot));
                    }
                    _ => channels.refused(node, &name, &map.about(node, failure), Tick::now(), &mut out),
                },
            }
        }
    }
    notify(out);
    if !moved.is_empty() {
        map.look_again();
    }
    moved.dedup();
    for moved in moved {
        place_channels(map, moved);
    }
}

/// Forgets channels that are no longer needed. Returns whether a node has one left; else its connection has ended.
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
    let (mut backoff, mut in_vain) = (Backoff::default(), 0_u32);
    loop {
        let begun = Tick::now();
        let Broken { failure, is_refusal } = match listen_until_it_breaks(&map, &node, &mut inbox).await {
            Ok(End::NotNeeded) => return,
            Ok(End::Again) => continue,
            Err(broken) => broken,
        };
        let Some(here) = map.upgrade() else { return };
        let (failure, useful) = (here.about(&node, failure), here.listening().connect_timeout);
        let mut out = Vec::new();
        here.listening().channels.lock().disconnected(&node, &failure, &mut out);
        notify(out);
        here.look_again();
        let now = Tick::now();
        backoff.broke(now, now.since(begun) > useful, fastrand::f64());
        drop(here);
        in_vain = if is_refusal { in_vain + 1 } else { 0 };
        // What hangs up once may have restarted.
        let pause = if in_vain > 1 { REFUSED } else { backoff.until(Tick::default()).since(now) };
        sleep(pause).await;
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
    /// The next one leads to another node.
    Again,
}

/// Why there is no connection.
struct Broken {
    failure: Failure,
    /// Whether the node refuses the login, or hangs up when asked to subscribe.
    is_refusal: bool,
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self { failure, is_refusal: false }
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<(OpenSocket, Buffers), Failure>> + Send>>;

/// Opens a socket, and names the client.
fn open(settings: &Arc<Settings>) -> Opening {
    let settings = Arc::clone(settings);
    Box::pin(async move {
        let limit = Limit::new(settings.connect_timeout);
        limit.keep(FailureKind::Timeout, "no answer", connect(&settings)).await?
    })
}

/// The subscriptions to all channels of a node, on a socket that is open. What was ordered before is among them. With it: whether
/// there are other credentials since then.
fn subscribe_to_all<M: NodeMap>(
    map: &Arc<M>,
    node: &Address,
    buffers: Buffers,
    inbox: &mut UnboundedReceiver<Order>,
) -> (PubSub, bool) {
    let (mut pub_sub, mut has_others) = (PubSub::new(buffers, map.listening().response_timeout), false);
    let channels = map.listening().channels.lock();
    while let Ok(order) = inbox.try_recv() {
        has_others |= order == Order::LogIn;
    }
    channels.at(node).into_iter().for_each(|channel| pub_sub.subscribe(channel, Tick::now()));
    (pub_sub, has_others)
}

/// One connection, until it breaks or ends.
async fn listen_until_it_breaks<M: NodeMap>(
    map: &Weak<M>,
    node: &Address,
    inbox: &mut UnboundedReceiver<Order>,
) -> Result<End, Broken> {
    let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
    let (settings, response_timeout, replid) = (here.settings_of(node)?, here.listening().response_timeout, here.replid());
    drop(here);
    let (mut socket, buffers) = open(&settings).await.map_err(|failure| {
        // With a provider others may be given soon.
        let is_refusal = failure.kind == FailureKind::Denied && settings.provided.is_none();
        Broken { failure, is_refusal }
    })?;
    let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
    let (mut pub_sub, has_others) = subscribe_to_all(&here, node, buffers, inbox);
    if here.replid() != replid {
        return Ok(End::Again);
    }
    drop(here);
    // With subscriptions, only a new connection can send other credentials. It takes the place of this one.
    let mut next = has_others.then(|| open(&settings));
    let mut sweep_at = Tick::now().after(SWEEP);
    loop {
        let wake_at = Instant::now() + pub_sub.wake_at().min(sweep_at).since(Tick::now());
        let opened = async { if let Some(next) = &mut next { next.await } else { pending().await } };
        tokio::select! {
            biased;
            count = socket.read(&mut pub_sub.buffers) => {
                let events = count.map_err(broke_by).and_then(|count| pub_sub.read(count, Tick::now()));
                let events = events.map_err(|failure| Broken { failure, is_refusal: !pub_sub.has_answered() })?;
                let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
                deliver(&here, node, events);
            }
            order = inbox.recv() => match order {
                Some(Order::Subscribe(channel)) => pub_sub.subscribe(channel, Tick::now()),
                Some(Order::Unsubscribe(channel)) => pub_sub.unsubscribe(&channel, Tick::now()),
                Some(Order::LogIn) => next = Some(open(&settings)),
                Some(Order::Wake) => {
                    if map.upgrade().is_some_and(|map| map.replid() != replid) {
                        return Ok(End::Again);
                    }
                }
                None => return Ok(End::NotNeeded),
            },
            opened = opened => {
                next = None;
                let Some(here) = map.upgrade() else { return Ok(End::NotNeeded) };
                // Else the connection continues with the earlier ones, and the provider is asked again.
                if let Ok((opened, buffers)) = opened {
                    let (subscribed, has_others) = subscribe_to_all(&here, node, buffers, inbox);
                    (socket, pub_sub, next) = (opened, subscribed, has_others.then(|| open(&settings)));
                    if here.replid() != replid {
                        return Ok(End::Again);
                    }
                }
            }
            () = sleep_until(wake_at) => {
                if pub_sub.wake(Tick::now()) {
                    return Err(no_answer(response_timeout).into());
                }
                if Tick::now() >= sweep_at {
                    sweep_at = Tick::now().after(SWEEP);
                    let Some(here) = map.upgrade().filter(|map| is_listened_to(map, node)) else { return Ok(End::NotNeeded) };
                    // A failover may come without a report.
                    if here.replid() != replid {
                        return Ok(End::Again);
                    }
                }
            }
        }
    }
}
