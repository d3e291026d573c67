//! Announcements: the observers of an election are notified that a candidate leads, or that none does. Each of them looks then; one
//! that gets nothing looks from time to time.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::event::{EventKind, LockEvent};
use crate::name::{Keys, LEADERS, LockKind};
use crate::op::Op;
use crate::server::{Completion, Request, Server};

/// The channel on which the observers of an election are notified.
pub(crate) fn channel(keys: &Keys) -> String {
    format!("{LEADERS}{}", keys.lock())
}

/// Announces what has happened to the leader of an election; any other lock has no observers.
pub(super) fn announce(servers: &[Arc<dyn Server>], timeout: Duration, keys: &Keys, event: &LockEvent) {
    if keys.label().kind != LockKind::Election {
        return;
    }
    let message: Arc<str> = match (event.kind, &event.owner, event.fence) {
        (EventKind::Acquired, Some(owner), Some(term)) => format!("lead {term} {owner}").into(),
        (EventKind::Released | EventKind::Expired | EventKind::Overlapped | EventKind::Lost, ..) => "lead none".into(),
        _ => return,
    };
    let channel: Arc<str> = channel(keys).into();
    for server in servers {
        let op = Op::Publish { channel: Arc::clone(&channel), message: Arc::clone(&message) };
        // In the background: the caller may not wait for anything any more.
        server.submit(Request::new(op, Tick::now().after(timeout)), Completion::new(|_| ()));
    }
}
