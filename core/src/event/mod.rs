//! What happens to locks, as one stream of events.
//!
//! Every event goes to `tracing` (target `locktender`) and to the client's [`Sink`], from which the bindings feed
//! `logging` and `EventEmitter`. A sink is called on whatever thread made the event and must not block.

pub(crate) mod callback;
pub(crate) mod emitter;

use std::time::Duration;

use crate::error::LossReason;
use crate::name::Keys;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An acquire starts a round.
    Attempt,
    /// The lock is somebody's; the acquire waits or gives up.
    Busy,
    /// The acquire waits in line; see the rank.
    Queued,
    /// A waiter was told that its turn has come.
    Notified,
    /// The lock is ours.
    Acquired,
    /// The waiter that had been told has the lock; `took` is from then to the grant.
    Woken,
    /// The wait of an acquire is over, and somebody else has the lock.
    TimedOut,
    /// An acquire was given up: its caller is gone, or the client was closed.
    Cancelled,
    /// An acquire failed; see the message.
    Failed,
    /// A beat of the heartbeat was confirmed.
    Renewed,
    /// A user's extension was confirmed.
    Extended,
    /// The lock was given back.
    Released,
    /// The holder has handed the lock over: another process may adopt it.
    HandedOver,
    /// The lock was given back after its key had expired.
    Expired,
    /// The lock is no longer ours; see the reason.
    Lost,
    /// An overlap is proved: a rival held the lock before we let go.
    Race,
    /// A server stopped answering, or answers what it shouldn't.
    ServerFailed,
    /// The server answers again.
    ServerRecovered,
    /// Something a person should look at; see the message.
    Warning,
}

impl EventKind {
    /// The kind as it is spelled in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempt => "attempt",
            Self::Busy => "busy",
            Self::Queued => "queued",
            Self::Notified => "notified",
            Self::Acquired => "acquired",
            Self::Woken => "woken",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Renewed => "renewed",
            Self::Extended => "extended",
            Self::Released => "released",
            Self::HandedOver => "handed_over",
            Self::Expired => "expired",
            Self::Lost => "lost",
            Self::Race => "race",
            Self::ServerFailed => "server_failed",
            Self::ServerRecovered => "server_recovered",
            Self::Warning => "warning",
        }
    }

    /// Whether it is the normal life of a hold: at level info for a client with the option `log_holds`.
    pub(crate) const fn is_of_a_hold(self) -> bool {
        matches!(self, Self::Acquired | Self::Extended | Self::Released | Self::HandedOver)
    }

    /// How loud it is, unless the client's options say something else.
    #[must_use]
    pub const fn level(self) -> Level {
        match self {
            Self::Attempt | Self::Busy | Self::Queued | Self::Notified | Self::Woken | Self::Cancelled | Self::Renewed => {
                Level::Debug
            }
            Self::Acquired | Self::Extended | Self::Released | Self::HandedOver => Level::Debug,
            Self::TimedOut | Self::ServerRecovered => Level::Info,
            Self::Failed | Self::Expired | Self::Race | Self::ServerFailed | Self::Warning => Level::Warning,
            Self::Lost => Level::Error,
        }
    }
}

/// How loud an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For somebody who looks for a fault.
    Debug,
    /// Normal life.
    Info,
    /// Worth a look.
    Warning,
    /// Something was lost.
    Error,
}

/// One event. Fields that don't apply are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// How loud it is.
    pub level: Level,
    /// The lock's name.
    pub lock: Option<String>,
    /// The lock's whole key on the servers: the prefix and the name.
    pub key: Option<String>,
    /// Our owner value.
    pub owner: Option<String>,
    /// Our fence.
    pub fence: Option<u64>,
    /// The value of whoever holds the key instead.
    pub rival: Option<String>,
    /// The fence of the latest hold that came between, if the servers show it.
    pub rival_fence: Option<u64>,
    /// Why the lock was lost.
    pub reason: Option<LossReason>,
    /// How long it took: the wait of an acquire however it ended, the hold of a release or a hand-over, the overrun of a race.
    pub took: Option<Duration>,
    /// How many wait before us, for `queued`.
    pub rank: Option<u64>,
    /// The server, for `server_failed` and `server_recovered`.
    pub server: Option<String>,
    /// One sentence more.
    pub message: Option<String>,
    pub(crate) self_wait: bool,
}

impl Event {
    pub(crate) fn new(kind: EventKind) -> Self {
        Self {
            kind,
            level: kind.level(),
            lock: None,
            key: None,
            owner: None,
            fence: None,
            rival: None,
            rival_fence: None,
            reason: None,
            took: None,
            rank: None,
            server: None,
            message: None,
            self_wait: false,
        }
    }

    /// Whether it is the warning of an acquire that waits without an end for a lock which its own client holds. If the holder
    /// waits for that acquire, both wait for ever.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_self_wait(&self) -> bool {
        self.self_wait
    }

    /// An event of the lock with these keys.
    pub(crate) fn of(kind: EventKind, keys: &Keys) -> Self {
        Self { lock: Some(keys.name().to_owned()), key: Some(keys.lock().to_owned()), ..Self::new(kind) }
    }
}

/// Receives a client's events.
pub trait Sink: Send + Sync + 'static {
    /// Takes one event. Called on any thread, in the order of what happened to one lock; must not block. A panic in it ends there,
    /// and the first one is told to `tracing`.
    fn event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Sink for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}

/// Writes an event to `tracing`.
pub(crate) fn trace(event: &Event) {
    macro_rules! write {
        ($level:ident) => {
            tracing::event!(
                target: "locktender",
                tracing::Level::$level,
                kind = event.kind.as_str(),
                lock = event.lock.as_deref(),
                key = event.key.as_deref(),
                owner = event.owner.as_deref(),
                fence = event.fence,
                rival = event.rival.as_deref(),
                rival_fence = event.rival_fence,
                reason = event.reason.map(LossReason::as_str),
                took_ms = event.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
                rank = event.rank,
                server = event.server.as_deref(),
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
