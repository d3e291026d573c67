//! Values: the plain results of operations.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::{LockEvent as CoreEvent, LossReason};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::arguments::texts;
use crate::events::level_of;
use crate::members::missing;
use crate::seconds::{in_seconds, measured};
use crate::visit::Visit;

/// A class whose fields Python reads, and whose `repr` shows them: `Class(field=value, ...)`. Behind the class its other methods may follow.
macro_rules! value {
    (
        $(#[$about:meta])*
        pub(crate) struct $class:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }
        $($methods:tt)*
    ) => {
        $(#[$about])*
        pub(crate) struct $class { $($(#[$doc])* $field: $type,)* }

        #[pymethods]
        impl $class {
            $($methods)*

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                $crate::values::shown(slf, &[$(stringify!($field)),*])
            }
        }
    };
}
pub(crate) use value;

value! {
    /// How a release ended.
    #[pyclass(module = "locktender", frozen, get_all)]
    #[derive(PartialEq)]
    pub(crate) struct Release {
        /// ``released``; ``expired`` if the lock had run out and is free, no server could be asked until its ttl was over, or one of its
        /// keys holds what no lock writes there; ``taken`` if another owner has it, or had it in between.
        outcome: &'static str,
        /// With ``taken``: the owner value of the next holder, which has it now or had it in between; ``None`` if that is unknown.
        next_owner: Option<String>,
        /// With ``taken``: the fence of the latest hold that came between, if the servers show it. It is about the microsecond in
        /// which it was issued, so it also says since when.
        next_fence: Option<u64>,
        /// How many seconds after the end of its validity it was released, by our clock.
        overrun: f64,
        /// With ``released``: for how many seconds the lock stays taken, because of its ``min_hold``.
        kept: f64,
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }
}

impl From<locktender::Release> for Release {
    fn from(release: locktender::Release) -> Self {
        let locktender::Release { outcome, next_owner, next_fence, overrun, kept, .. } = release;
        let (overrun, kept) = (in_seconds(overrun), in_seconds(kept));
        Self { outcome: outcome.as_str(), next_owner, next_fence, overrun, kept }
    }
}

value! {
    /// How a lock was lost. The fields are those of :exc:`LockLostError`.
    #[pyclass(module = "locktender", frozen, get_all)]
    #[derive(PartialEq)]
    pub(crate) struct Loss {
        /// Why: its validity ran out; its key is gone, is or was another owner's, has a newer fence, or holds what no lock writes;
        /// ``max_hold``; the client was closed; what was to be adopted has ended, or was adopted before.
        reason: &'static str,
        /// The owner value of the next holder, if that is known.
        next_owner: Option<String>,
        /// The fence of the hold of ``next_owner``, or of one that came between, if the servers show it.
        next_fence: Option<u64>,
        /// How many seconds the holder continued after the end of its validity.
        overrun: f64,
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }
}

impl From<locktender::Loss> for Loss {
    fn from(loss: locktender::Loss) -> Self {
        let locktender::Loss { reason, next_owner, next_fence, overrun, .. } = loss;
        Self { reason: reason.as_str(), next_owner, next_fence, overrun: in_seconds(overrun) }
    }
}

value! {
    /// What one server really guarantees.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct ServerReport {
        /// Its address, without credentials.
        server: String,
        /// Why it didn't answer; the rest is then ``None``.
        failure: Option<String>,
        /// The product and its version.
        version: Option<String>,
        /// ``master`` or ``slave``, as the server calls itself.
        role: Option<String>,
        /// ``aof``, ``rdb`` or ``none``.
        persistence: Option<String>,
        /// The eviction policy; anything but ``noeviction`` may evict a lock.
        eviction: Option<String>,
        /// How far its clock is ahead of this machine's, in seconds; negative if it is slow.
        clock_offset: Option<f64>,
        /// What locks need and this client's user may not do, one line each; ``None`` if that is unknown.
        denied: Option<Vec<String>>,
        /// What needs attention, one sentence each.
        warnings: Vec<String>,
    }
}

impl From<locktender::ServerReport> for ServerReport {
    fn from(report: locktender::ServerReport) -> Self {
        Self {
            server: report.server,
            failure: report.failure.map(|error| error.message),
            version: report.version,
            role: report.role,
            persistence: report.persistence,
            eviction: report.eviction,
            clock_offset: report.clock_offset_ms.map(|ms| ms as f64 / 1e3),
            denied: report.denied,
            warnings: report.warnings,
        }
    }
}

impl ServerReport {
    pub(crate) fn all(reports: Vec<locktender::ServerReport>) -> Vec<Self> {
        reports.into_iter().map(Self::from).collect()
    }
}

/// So many characters of another client's value stand in a log's line.
const SHOWN_OF_A_VALUE: usize = 200;

/// Names, as a tuple.
pub(crate) struct Names(Arc<[Arc<str>]>);

impl<'py> IntoPyObject<'py> for Names {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyTuple::new(py, self.0.iter().map(|name| &**name))
    }
}

/// A field of an event as Python has it: its type, or its value, by its kind.
macro_rules! field {
    (type Text) => { Option<&str> };
    (type Texts) => { Option<Names> };
    (type Word) => { Option<&'static str> };
    (type Number) => { Option<u64> };
    (type $time:ident) => { Option<f64> };
    (Text $value:expr) => { $value.as_deref() };
    (Texts $value:expr) => { $value.clone().map(Names) };
    (Word $value:expr) => { $value.map(|word| word.as_str()) };
    (Number $value:expr) => { $value.map(u64::from) };
    (Time $value:expr) => { $value.map(in_seconds) };
    (Measured $value:expr) => { $value.map(measured) };
}

macro_rules! event {
    ($event:ident: $($(#[$doc:meta])* $field:ident($kind:ident)),*) => {
        /// Something that happened to a lock or a server. Fields that don't apply are ``None``.
        #[pyclass(module = "locktender", frozen)]
        pub(crate) struct $event {
            core: CoreEvent,
            /// When it happened, by this machine's clock: seconds since 1970.
            #[pyo3(get)]
            at: f64,
        }

        #[pymethods]
        impl $event {
            /// What happened.
            #[getter]
            fn kind(&self) -> &'static str {
                self.core.kind.as_str()
            }

            /// As in ``logging``.
            #[getter]
            fn level(&self) -> u8 {
                level_of(&self.core)
            }

            $(
                $(#[$doc])*
                #[getter]
                fn $field(&self) -> field!(type $kind) {
                    field!($kind self.core.$field)
                }
            )*

            #[classattr]
            fn _fields() -> Vec<&'static str> {
                vec![$(stringify!($field)),*]
            }

            /// The event as one line of InfluxDB's line protocol, with these tags besides its own: see :mod:`locktender.influxdb`.
            ///
            ///     client = Client("memory://example", on_event=lambda event: print(event.line_protocol(app="billing")))
            #[pyo3(signature = (**tags))]
            fn line_protocol(&self, tags: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
                self.line(tags)
            }

            /// One line for a log.
            fn __str__(&self) -> String {
                self.shown()
            }

            fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
                missing(slf, name)
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                shown(slf, &["kind", $(stringify!($field),)* "at"])
            }
        }
    };
}

event! { LockEvent:
    /// The lock's name.
    lock_name(Text),

    /// The names of all locks that are acquired together, for an event of one of them. For one of the acquire of all ``lock_name`` has
    /// all names, with commas between them.
    names(Texts),

    /// The lock's whole key on the servers: the prefix and the name.
    key(Text),

    /// What the lock is for: ``lock``, ``job``, ``cron_job``, ``election``, ``semaphore``, ``read_lock`` or ``multi_lock``.
    lock_kind(Word),

    /// The lock's category: see :meth:`Client.lock`.
    category(Text),

    /// Our owner value.
    owner(Text),

    /// Our fence.
    fence(Number),

    /// The owner value of the holder, for ``busy``, ``not_acquired``, ``timed_out`` and a ``warning``; of the leader, for
    /// ``leader``; of whose hold was ended, for ``force_released``.
    holder(Text),

    /// The fence of that hold, if the servers show it.
    holder_fence(Number),

    /// The owner value of the next holder, for ``lost``, ``overlapped`` and a ``warning``: the value in the key, or what the
    /// history shows.
    next_owner(Text),

    /// The fence of that hold, if the servers show it.
    next_fence(Number),

    /// The owner value of the last attempt of a job, for ``done``, ``dead`` and ``skipped``.
    last_owner(Text),

    /// Why the lock was lost.
    reason(Word),

    /// How many seconds it took: the wait of an acquire and the time of a hold, however they ended, the round trip of a renewal or an
    /// extension.
    took(Measured),

    /// For ``acquired``, if the acquire waited: how many seconds ago it was notified that the lock is free or kept for it.
    notified_ago(Measured),

    /// For ``expired``, ``lost`` and ``overlapped``: how many seconds after the end of its validity the hold was released, or its loss was
    /// noticed.
    overrun(Time),

    /// For ``renewed`` and ``extended``: how many seconds of validity were left when the confirmation came.
    remaining(Time),

    /// How many wait before us, for ``queued``.
    rank(Number),

    /// The number of the attempt, of a job.
    attempt(Number),

    /// The server, for ``server_failed``, ``server_recovered`` and ``failed_over``, and for a ``warning`` about one.
    server(Text),

    /// The address of the node that answers now, for ``failed_over``.
    address(Text),

    /// The replication id of the node before, for ``failed_over``.
    old_replication_id(Text),

    /// The replication id of the node that answers now, for ``failed_over``.
    new_replication_id(Text),

    /// One sentence more.
    message(Text)
}

impl LockEvent {
    pub(crate) fn new(core: CoreEvent, at: SystemTime) -> Self {
        Self { core, at: at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() }
    }

    fn line(&self, tags: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
        let tags = texts("tag", tags)?;
        let tags: Vec<_> = tags.iter().map(|(name, value)| (&**name, &**value)).collect();
        Ok(self.core.line_protocol(&tags, UNIX_EPOCH + Duration::from_secs_f64(self.at)))
    }

    fn shown(&self) -> String {
        let event = &self.core;
        let seconds = |seconds: f64| format!("{seconds:.3}");
        let quoted = |value: Option<&str>| value.map(|value| format!("{value:?}"));
        // A lock's name is the application's own; other owner values are from any client that can write there.
        let shortened = |value: &Option<String>| {
            let value = value.as_deref()?;
            let end = value.char_indices().nth(SHOWN_OF_A_VALUE);
            Some(end.map_or_else(|| value.to_owned(), |(end, _)| format!("{}…", &value[..end])))
        };
        let mut line = event.kind.as_str().to_owned();
        // An acquire of several locks has no key of its own.
        let names = event.names.as_ref().filter(|_| event.key.is_none());
        for (name, value) in [
            ("key", quoted(event.key.as_deref())),
            ("names", names.map(|names| format!("{names:?}"))),
            ("fence", event.fence.map(|fence| fence.to_string())),
            ("took", event.took.map(measured).map(seconds)),
            ("overrun", event.overrun.map(in_seconds).filter(|overrun| *overrun > 0.0).map(seconds)),
            ("server", quoted(event.server.as_deref())),
            ("address", quoted(event.address.as_deref())),
            ("holder", quoted(shortened(&event.holder).as_deref())),
            ("next_owner", quoted(shortened(&event.next_owner).as_deref())),
            ("last_owner", quoted(shortened(&event.last_owner).as_deref())),
        ] {
            line.extend(value.map(|value| format!(" {name}={value}")));
        }
        for part in [event.reason.map(LossReason::as_str), event.message.as_deref()].into_iter().flatten() {
            line.push_str(&format!(": {part}"));
        }
        line
    }
}

/// `Class(field=value, ...)`.
pub(crate) fn shown<T: PyClass>(value: &Bound<'_, T>, fields: &[&str]) -> PyResult<String> {
    let _visit = Visit::begin(value.py())?;
    let value = value.as_any();
    let field = |name: &&str| Ok(format!("{name}={}", value.getattr(*name)?.repr()?));
    let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{}({})", value.get_type().name()?, fields.join(", ")))
}
