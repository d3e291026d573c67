//! Events on their way to JavaScript.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use locktender::event::Level;
use locktender::{Event, LossReason, Sink};
use napi_derive::napi;

use crate::error::ms;
use crate::queue::{Item, Queue};

/// One event.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct LockEvent {
    pub kind: String,
    pub lock_name: Option<String>,
    pub key: Option<String>,
    pub owner: Option<String>,
    pub fence: Option<f64>,
    pub rival: Option<String>,
    pub rival_fence: Option<f64>,
    pub reason: Option<String>,
    pub took_ms: Option<f64>,
    pub rank: Option<f64>,
    pub attempt: Option<u32>,
    pub server: Option<String>,
    pub address: Option<String>,
    pub old_era: Option<String>,
    pub new_era: Option<String>,
    pub message: Option<String>,
}

impl From<Event> for LockEvent {
    fn from(event: Event) -> Self {
        Self {
            kind: event.kind.as_str().to_owned(),
            lock_name: event.lock,
            key: event.key,
            owner: event.owner,
            fence: event.fence.map(|fence| fence as f64),
            rival: event.rival,
            rival_fence: event.rival_fence.map(|fence| fence as f64),
            reason: event.reason.map(LossReason::as_str).map(str::to_owned),
            took_ms: event.took.map(ms),
            rank: event.rank.map(|rank| rank as f64),
            attempt: event.attempt,
            server: event.server,
            address: event.address,
            old_era: event.old_era,
            new_era: event.new_era,
            message: event.message,
        }
    }
}

/// Puts a client's events into its environment's queue. Events of a normal hold are put there only if there are listeners.
pub(crate) struct Forward {
    pub(crate) queue: Weak<Queue>,
    pub(crate) client: u32,
    pub(crate) heard: Arc<AtomicBool>,
}

impl Sink for Forward {
    fn event(&self, event: &Event) {
        let wanted = event.kind.level() >= Level::Warning || self.heard.load(Ordering::Relaxed);
        if let Some(queue) = self.queue.upgrade().filter(|_| wanted) {
            queue.push(Item::Event(self.client, Box::new(event.clone())));
        }
    }
}
