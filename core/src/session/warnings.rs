//! Warnings that a client emits once, however many of its acquisitions notice the cause.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::quoted::quoted;
use crate::event::{EventKind, LockEvent};
use crate::name::{Keys, Kind};
use crate::protocol::{Jump, Jumps};
use crate::session::Session;
use crate::sync::Mutex;

#[derive(Default)]
pub(super) struct Warnings {
    /// Whether the warning about a wake-up that could not be published was emitted.
    unpublished: AtomicBool,
    jumps: Mutex<Jumps>,
    /// The semaphores of which others ask for another number of permits.
    limits: Mutex<HashSet<Box<str>>>,
}

/// About so many semaphores a client warns.
const SEMAPHORES: usize = 100;

impl Session {
    /// Warns about a lock.
    pub(super) fn warn(&self, keys: &Keys, message: String) {
        self.emit(&LockEvent { message: Some(message), ..LockEvent::of(EventKind::Warning, keys) });
    }

    /// Warns that a release could not publish the wake-up of the next waiter. One warning is enough: the next release will fail
    /// alike.
    pub(super) fn warn_unpublished(&self, keys: &Keys, why: &str) {
        if !self.warnings.unpublished.swap(true, Ordering::Relaxed) {
            let why = quoted(why);
            self.warn(keys, format!("the next waiter is not notified of a release, and finds out within a second: {why}"));
        }
    }

    /// Warns that others ask for another number of permits, once for each semaphore.
    pub(super) fn warn_of_other_limit(&self, keys: &Keys, theirs: u32) {
        let Kind::Semaphore(ours) = keys.kind() else { return };
        let mut limits = self.warnings.limits.lock();
        let is_news = limits.len() < SEMAPHORES && limits.insert(keys.lock().into());
        drop(limits);
        if is_news {
            let message = format!(
                "the semaphore {:?} has {ours} permits here, and others that hold it ask for {theirs}: at most the larger number hold it",
                keys.name()
            );
            self.warn(keys, message);
        }
    }

    /// Warns that a server's clock jumped, once for each jump.
    pub(super) fn warn_of_jump(&self, jump: &Jump) {
        if self.warnings.jumps.lock().is_news(jump) {
            let message = format!(
                "this server's clock jumped forward by {:.3} s, and its keys expire so much earlier; it counts again for a hold once \
                 it has confirmed it on the new clock",
                jump.by.as_secs_f64()
            );
            self.warn_about(jump.server, message);
        }
    }
}
