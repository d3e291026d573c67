//! Item: what comes out of the queue, a result or news.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use locktender::host::{Queued, Record};
use locktender::{Begun, Error, Hold, Leadership, LockEvent, Release};
use napi::bindgen_prelude::{Array, ToNapiValue};

use crate::any_hold::AnyHold;

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
        if let Self::Settled(_, Ok(Value::Held(held))) = self {
            held.undo();
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

/// Puts data at the end of an array of JavaScript.
type Put = Box<dyn FnOnce(&mut Array<'_>) -> napi::Result<()> + Send>;

/// The result of a call.
pub(crate) enum Value {
    Nothing,
    /// The client is closed.
    Closed,
    Held(Box<AnyHold>),
    Begun(Box<Begun>),
    Released(Release),
    /// Data.
    Data(Put),
}

impl Value {
    pub(crate) fn data<T: ToNapiValue + Send + 'static>(result: T) -> Self {
        Self::Data(Box::new(|array| array.insert(result)))
    }

    pub(crate) fn list<T, Of: From<T> + ToNapiValue + Send + 'static>(found: Vec<T>) -> Self {
        Self::data(found.into_iter().map(Of::from).collect::<Vec<_>>())
    }

    pub(crate) fn held(hold: Option<Hold>) -> Self {
        hold.map_or(Self::Nothing, |hold| Self::Held(Box::new(AnyHold::Lock(hold))))
    }

    /// The term of a leader, if there is one.
    pub(crate) fn led(leadership: Option<Leadership>) -> Self {
        leadership.map_or(Self::Nothing, |leadership| Self::Held(Box::new(AnyHold::Leadership(leadership))))
    }
}
