//! Events: changes of locks and servers, as one stream.
//!
//! Every event goes to `tracing` (target `locktender`) and to the client's [`Sink`]. Through the sink the bindings reach
//! `logging` and `EventEmitter`. A sink is called on the thread that made the event, and must not block.

pub(crate) mod callback;
pub(crate) mod emitter;
pub(crate) mod line_protocol;
mod points;
pub(crate) mod queue;

pub use self::points::{Points, PointsBuilder};

use std::sync::Arc;
use std::time::Duration;

use crate::clock::millis;
use crate::error::LossReason;
use crate::name::{Keys, LockKind};
use crate::wording::words;

words! {
    /// The kind of an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum EventKind, pub(crate) ALL;
    /// The kind's name, the same in every language.
    fn as_str;
    /// An acquire starts a round.
    Round = "round",
    /// The lock is held; the acquire waits.
    Busy = "busy",
    /// The lock is held, and the acquire was a single attempt: it ends.
    NotAcquired = "not_acquired",
    /// The acquire waits in the queue; see the rank.
    Queued = "queued",
    /// A waiter was notified that the lock is free or kept for it.
    Notified = "notified",
    /// This client has the lock; `notified_ago` says how long ago the waiter was notified.
    Acquired = "acquired",
    /// The wait of an acquire is over, and the lock is still held.
    TimedOut = "timed_out",
    /// An acquire was cancelled by its caller, or its client was closed.
    Cancelled = "cancelled",
    /// An acquire failed; see the message.
    AcquireFailed = "acquire_failed",
    /// A renewal was confirmed.
    Renewed = "renewed",
    /// A user's extension was confirmed.
    Extended = "extended",
    /// The lock was released.
    Released = "released",
    /// The holder has handed the lock over: another process may adopt it.
    HandedOver = "handed_over",
    /// The lock was released after its key had expired.
    Expired = "expired",
    /// The hold was lost; see the reason.
    Lost = "lost",
    /// An overlap is proved: another hold began before this client released the lock.
    Overlapped = "overlapped",
    /// The handle of a hold was dropped without a release: the lock is no longer renewed, and its key expires by itself.
    Dropped = "dropped",
    /// A job is done: this client's attempt did it (with its owner value), or an earlier one (without).
    Done = "done",
    /// An attempt of a job failed, and another one may follow; see the message.
    Retry = "retry",
    /// A job is dead: its last attempt failed or died; see the message.
    Dead = "dead",
    /// Nothing runs for a job's scheduled time; see the message: `running`, `missed`, `too_late` or `too_early`.
    Skipped = "skipped",
    /// An observer of an election has seen who leads, or that it changed: see the holder and its fence, which is the term.
    /// Without a holder nobody leads, or that is unknown; see the message.
    Leader = "leader",
    /// This client has ended a hold that is another's, by [`force_release`](crate::Lock::force_release); see the holder.
    ForceReleased = "force_released",
    /// A server does not answer, or gives a wrong answer.
    ServerFailed = "server_failed",
    /// The server answers again.
    ServerRecovered = "server_recovered",
    /// Another node answers for a server, or its node was restarted. Locks that were granted last may be lost.
    FailedOver = "failed_over",
    /// Something that a person should check; see the message.
    Warning = "warning",
}

/// How an acquire ends.
pub(crate) const ACQUIRE_ENDS: [EventKind; 8] = [
    EventKind::Acquired,
    EventKind::NotAcquired,
    EventKind::TimedOut,
    EventKind::Cancelled,
    EventKind::AcquireFailed,
    EventKind::Done,
    EventKind::Dead,
    EventKind::Skipped,
];

/// How a hold ends.
pub(crate) const HOLD_ENDS: [EventKind; 6] =
    [EventKind::Released, EventKind::HandedOver, EventKind::Expired, EventKind::Overlapped, EventKind::Lost, EventKind::Dropped];

impl EventKind {
    /// Whether such an event ends an acquire that has no hold yet.
    #[doc(hidden)]
    #[must_use]
    pub fn ends_acquire(self) -> bool {
        ACQUIRE_ENDS.contains(&self)
    }

    /// Whether such an event ends a hold.
    #[doc(hidden)]
    #[must_use]
    pub fn ends_hold(self) -> bool {
        HOLD_ENDS.contains(&self)
    }

    /// Whether the event belongs to a normal hold: a client with the option `log_holds` has it at level info.
    pub(crate) const fn is_of_a_hold(self) -> bool {
        matches!(self, Self::Acquired | Self::Extended | Self::Released | Self::HandedOver)
    }

    /// The level, unless the client's options change it.
    #[doc(hidden)]
    #[must_use]
    pub const fn level(self) -> Level {
        match self {
            Self::Round | Self::Busy | Self::NotAcquired | Self::Queued | Self::Notified => Level::Debug,
            Self::Cancelled | Self::Renewed | Self::Acquired | Self::Extended | Self::Released | Self::HandedOver => Level::Debug,
            Self::TimedOut | Self::ServerRecovered | Self::Done | Self::Skipped | Self::Leader => Level::Info,
            Self::Retry | Self::AcquireFailed | Self::Expired | Self::Overlapped | Self::Dropped => Level::Warning,
            Self::ForceReleased | Self::ServerFailed | Self::FailedOver | Self::Warning => Level::Warning,
            Self::Lost | Self::Dead => Level::Error,
        }
    }
}

/// The level of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// For a person who looks for a fault.
    Debug,
    /// Normal operation.
    Info,
    /// A problem that a person should check.
    Warning,
    /// A lost hold.
    Error,
}

/// What a field of an event holds, if it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Field<'a> {
    /// A text.
    Text(Option<&'a str>),
    /// A number.
    Number(Option<u64>),
    /// A time, of which whole milliseconds matter.
    Time(Option<Duration>),
    /// A time that was measured, and may be shorter than a millisecond.
    Measured(Option<Duration>),
    /// Several texts.
    Texts(Option<&'a [Arc<str>]>),
}

/// A field of an event, by the kind of it.
macro_rules! field {
    (Text $value:expr) => {
        Field::Text($value.as_deref())
    };
    (Texts $value:expr) => {
        Field::Texts($value.as_deref())
    };
    (Word $value:expr) => {
        Field::Text($value.map(|word| word.as_str()))
    };
    (Number $value:expr) => {
        Field::Number($value.map(u64::from))
    };
    ($kind:ident $value:expr) => {
        Field::$kind($value)
    };
}

macro_rules! event {
    ($($(#[$doc:meta])* $field:ident($kind:ident): $type:ty;)*) => {
        /// One event. Fields that don't apply are empty.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct LockEvent {
            /// The kind.
            pub kind: EventKind,
            /// The level.
            pub level: Level,
            $($(#[$doc])* pub $field: Option<$type>,)*
            /// For `expired`: whether it is certain that no other hold came between.
            pub(crate) is_excluded: bool,
            pub(crate) self_wait: bool,
            pub(crate) refused: bool,
            pub(crate) trace: u64,
        }

        impl LockEvent {
            pub(crate) fn new(kind: EventKind) -> Self {
                Self {
                    kind,
                    level: kind.level(),
                    $($field: None,)*
                    is_excluded: false,
                    self_wait: false,
                    refused: false,
                    trace: 0,
                }
            }

            /// All fields but the kind and the level, with their names.
            #[doc(hidden)]
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, Field<'_>)> {
                vec![$((stringify!($field), field!($kind self.$field)),)*]
            }
        }
    };
}

event! {
    /// The lock's name.
    lock_name(Text): Arc<str>;
    /// The names of all locks that are acquired together, for an event of one of them; for one of their acquire the lock's name has all
    /// names, with commas between them.
    names(Texts): Arc<[Arc<str>]>;
    /// The lock's whole key on the servers: the prefix and the name.
    key(Text): Arc<str>;
    /// What the lock is for.
    lock_kind(Word): LockKind;
    /// The lock's [category](crate::Lock::category).
    category(Text): Arc<str>;
    /// This client's owner value.
    owner(Text): Arc<str>;
    /// The fence of this hold.
    fence(Number): u64;
    /// The owner value of who holds the lock, for `busy`, `not_acquired`, `timed_out` and a `warning`; of who leads, for `leader`; of
    /// whose hold was ended, for `force_released`.
    holder(Text): String;
    /// The fence of that hold, if the servers show it.
    holder_fence(Number): u64;
    /// The owner value of who had the lock next, for `lost`, `overlapped` and a `warning`: the value in the key, or what the history shows.
    next_owner(Text): String;
    /// The fence of that hold, if the servers show it.
    next_fence(Number): u64;
    /// The owner value of the last attempt of a job, for `done`, `dead` and `skipped`.
    last_owner(Text): String;
    /// The reason why the lock was lost.
    reason(Word): LossReason;
    /// A time: the wait of an acquire with any end, the duration of a hold with any end, or the round trip of a renewal or extension.
    took(Measured): Duration;
    /// For `acquired`, if the acquire waited: the time since it was notified that the lock is free or kept for it.
    notified_ago(Measured): Duration;
    /// For `expired`, `lost` and `overlapped`: how long after the end of its validity the hold was given back, or its loss was noticed.
    overrun(Time): Duration;
    /// For `renewed` and `extended`: the validity that was left when the confirmation came.
    remaining(Time): Duration;
    /// The number of waiters before this one, for `queued`.
    rank(Number): u64;
    /// The number of the attempt, of a job.
    attempt(Number): u32;
    /// The server, for `server_failed`, `server_recovered` and `failed_over`, and for a `warning` about one.
    server(Text): String;
    /// The address of the node that answers now, for `failed_over`.
    address(Text): String;
    /// The replication id of the node before, for `failed_over`.
    old_replication_id(Text): String;
    /// The replication id of the node that answers now, for `failed_over`.
    new_replication_id(Text): String;
    /// One more sentence.
    message(Text): String;
}

impl LockEvent {
    /// Whether this is the warning of an acquire that waits without an end for a lock which its own client holds. If the holder
    /// waits for that acquire, both wait without end.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_self_wait(&self) -> bool {
        self.self_wait
    }

    /// Whether this is the end of an acquire that was refused before it asked a server: only for the binding that follows it.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.refused
    }

    /// The number by which a binding follows the acquire and its hold; 0 if none does.
    #[doc(hidden)]
    #[must_use]
    pub const fn trace(&self) -> u64 {
        self.trace
    }

    /// An event of the lock with these keys.
    pub(crate) fn of(kind: EventKind, keys: &Keys) -> Self {
        let ((lock_name, key), label) = (keys.shared(), keys.label());
        Self {
            lock_name: Some(lock_name),
            names: keys.together().cloned(),
            key: Some(key).filter(|_| keys.parts().is_empty()),
            lock_kind: Some(label.kind),
            category: Some(Arc::clone(&label.category)),
            ..Self::new(kind)
        }
    }
}

/// A sink: it receives a client's events.
pub trait Sink: Send + Sync + 'static {
    /// Takes one event. It is called on any thread, with the events of one lock in their order, and must not block. A panic ends
    /// here, and the first one is reported to `tracing`.
    fn event(&self, event: &LockEvent);
}

impl<F: Fn(&LockEvent) + Send + Sync + 'static> Sink for F {
    fn event(&self, event: &LockEvent) {
        self(event);
    }
}

/// Writes an event to `tracing`.
pub(crate) fn trace(event: &LockEvent) {
    macro_rules! write {
        ($level:ident) => {
            tracing::event!(
                target: "locktender",
                tracing::Level::$level,
                kind = event.kind.as_str(),
                lock_name = event.lock_name.as_deref(),
                names = event.names.as_deref().map(|names| names.join(", ")),
                key = event.key.as_deref(),
                lock_kind = event.lock_kind.map(LockKind::as_str),
                category = event.category.as_deref(),
                owner = event.owner.as_deref(),
                fence = event.fence,
                holder = event.holder.as_deref(),
                holder_fence = event.holder_fence,
                next_owner = event.next_owner.as_deref(),
                next_fence = event.next_fence,
                last_owner = event.last_owner.as_deref(),
                reason = event.reason.map(LossReason::as_str),
                took_ms = event.took.map(millis),
                notified_ago_ms = event.notified_ago.map(millis),
                overrun_ms = event.overrun.map(millis),
                remaining_ms = event.remaining.map(millis),
                rank = event.rank,
                attempt = event.attempt,
                server = event.server.as_deref(),
                address = event.address.as_deref(),
                old_replication_id = event.old_replication_id.as_deref(),
                new_replication_id = event.new_replication_id.as_deref(),
                message = event.message.as_deref().unwrap_or(event.kind.as_str()),
            )
        };
    }
    match event.level {
        Level::Debug => write!(DEBUG),
        Level::Info => write!(INFO),
        Level::Warning => write!(WARN),
        Level::Error => write!(ERROR),
    }
}
