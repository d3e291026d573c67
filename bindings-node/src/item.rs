//! Item: what comes out of the queue, a result or news.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use locktender::host::{Queued, Record};
use locktender::{Begun, Error, Grant, Hold, JobStatus, Leadership, LockEvent, LockInfo, Observation, Release, ServerReport};

/// An item of the queue.
pub(crate) enum Item {
    /// A call ended.
    Settled(i64, Result<Value, Error>),
    /// The watched hold with this number ended, by this loss or without one.
    Ended(i64, Option<Error>),
    /// An event of the client with this number, when it happened, and the counter of those that were dropped.
    Event(u32, Box<LockEvent>, SystemTime, Arc<AtomicU64>),
    /// What is to be recorded of an acquire that is followed, and the counter of events that were dropped.
    Followed(Box<Record>, Arc<AtomicU64>),
    /// The client with this number is asked for credentials: the number of the question, and the server's address.
    Asked(u32, i64, String),
}

impl Item {
    /// Undoes the grant of a lock that no caller gets.
    pub(crate) fn undo(self) {
        match self {
            Self::Settled(_, Ok(Value::Held(held))) => held.undo(),
            Self::Settled(_, Ok(Value::Led(leadership))) => leadership.undo(),
            _ => (),
        }
    }
}

impl Queued for Item {
    /// Spans are never dropped.
    fn counter(&self) -> Option<&AtomicU64> {
        match self {
            Self::Event(_, _, _, dropped) => Some(dropped),
            Self::Followed(record, dropped) if record.span.is_none() => Some(dropped),
            _ => None,
        }
    }
}

/// The result of a call.
pub(crate) enum Value {
    Nothing,
    /// The client is closed.
    Closed,
    Held(Box<Hold>),
    Begun(Box<Begun>),
    Led(Box<Leadership>),
    Observed(Box<Observation>),
    Released(Release),
    Info(Box<LockInfo>),
    Locks(Vec<LockInfo>),
    Grants(Vec<Grant>),
    Status(Box<JobStatus>),
    /// Whether a job was reset.
    Reset(bool),
    Reports(Vec<ServerReport>),
    /// The end of a hold: its loss, or none.
    Ended(Option<Error>),
}

impl Value {
    /// The term of a leader, if there is one.
    pub(crate) fn led(leadership: Option<Leadership>) -> Self {
        leadership.map_or(Self::Nothing, |leadership| Self::Led(Box::new(leadership)))
    }
}
