//! Events on their way to JavaScript.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::event::Level;
use locktender::host::Point;
use locktender::{Event, LossReason, Sink};
use napi_derive::napi;

use crate::error::{measured_ms, ms};
use crate::item::Item;
use crate::queue::Queue;

/// One event.
#[napi(object, use_nullable = true)]
pub struct LockEvent {
    pub kind: String,
    pub lock_name: Option<String>,
    pub key: Option<String>,
    pub lock_kind: Option<String>,
    pub family: Option<String>,
    pub owner: Option<String>,
    pub fence: Option<f64>,
    pub rival: Option<String>,
    pub rival_fence: Option<f64>,
    pub reason: Option<String>,
    pub took_ms: Option<f64>,
    pub overrun_ms: Option<f64>,
    pub remaining_ms: Option<f64>,
    pub rank: Option<f64>,
    pub attempt: Option<u32>,
    pub server: Option<String>,
    pub address: Option<String>,
    pub old_era: Option<String>,
    pub new_era: Option<String>,
    pub message: Option<String>,
    pub at_ms: f64,
}

/// The event as one line of InfluxDB's line protocol.
#[napi]
pub fn line_protocol(event: LockEvent, tags: Vec<Vec<String>>) -> String {
    let tags: Vec<_> = tags.iter().filter_map(|pair| Some((&**pair.first()?, &**pair.get(1)?))).collect();
    let whole = |number: Option<f64>| number.map(|number| number as u64);
    let time = |ms: Option<f64>| ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
    let point = Point {
        kind: &event.kind,
        family: event.family.as_deref(),
        lock_kind: event.lock_kind.as_deref(),
        reason: event.reason.as_deref(),
        server: event.server.as_deref(),
        lock: event.lock_name.as_deref(),
        owner: event.owner.as_deref(),
        rival: event.rival.as_deref(),
        address: event.address.as_deref(),
        old_era: event.old_era.as_deref(),
        new_era: event.new_era.as_deref(),
        message: event.message.as_deref(),
        fence: whole(event.fence),
        rival_fence: whole(event.rival_fence),
        rank: whole(event.rank),
        attempt: event.attempt,
        took: time(event.took_ms),
        overrun: time(event.overrun_ms),
        remaining: time(event.remaining_ms),
    };
    point.line(&tags, UNIX_EPOCH + time(Some(event.at_ms)).unwrap_or_default())
}

impl LockEvent {
    /// An event that happened at `at`.
    pub(crate) fn new(event: Event, at: SystemTime) -> Self {
        Self {
            kind: event.kind.as_str().to_owned(),
            lock_name: event.lock.as_deref().map(str::to_owned),
            key: event.key.as_deref().map(str::to_owned),
            lock_kind: event.lock_kind.map(|kind| kind.as_str().to_owned()),
            family: event.family.as_deref().map(str::to_owned),
            owner: event.owner.as_deref().map(str::to_owned),
            fence: event.fence.map(|fence| fence as f64),
            rival: event.rival,
            rival_fence: event.rival_fence.map(|fence| fence as f64),
            reason: event.reason.map(LossReason::as_str).map(str::to_owned),
            took_ms: event.took.map(measured_ms),
            overrun_ms: event.overrun.map(ms),
            remaining_ms: event.remaining.map(ms),
            rank: event.rank.map(|rank| rank as f64),
            attempt: event.attempt,
            server: event.server,
            address: event.address,
            old_era: event.old_era,
            new_era: event.new_era,
            message: event.message,
            at_ms: at.duration_since(UNIX_EPOCH).map_or(0.0, measured_ms),
        }
    }
}

/// Puts a client's events into its environment's queue. Events of a normal hold are put there only if there are listeners.
pub(crate) struct Forward {
    pub(crate) queue: Weak<Queue>,
    pub(crate) client: u32,
    pub(crate) heard: Arc<AtomicBool>,
    /// How many of its events were dropped, because the program was too far behind.
    pub(crate) dropped: Arc<AtomicU64>,
}

impl Sink for Forward {
    fn event(&self, event: &Event) {
        let wanted = event.kind.level() >= Level::Warning || event.trace() != 0 || self.heard.load(Ordering::Relaxed);
        if let Some(queue) = self.queue.upgrade().filter(|_| wanted) {
            queue.push(Item::Event(self.client, Box::new(event.clone()), SystemTime::now(), Arc::clone(&self.dropped)));
        }
    }
}
