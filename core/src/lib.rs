//! Distributed locks on Redis. The core renews every held lock, notifies its holder at once when the lock is lost, and numbers every
//! hold with a fencing token.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use std::time::Duration;
//! use locktender::Client;
//!
//! let client = Client::open("memory://docs")?; // redis://localhost is a real server
//! let lock = client.lock("orders:42").ttl(Duration::from_secs(10)).wait(Duration::from_secs(5));
//!
//! let hold = lock.acquire().await?; // ACQUIRE_TIMEOUT after 5 s
//! println!("write with fence {}", hold.fence()); // the resource refuses smaller ones
//! hold.release().await?;
//!
//! let rows = lock.with(async |hold| hold.check().map(|()| hold.fence())).await?; // released on every way out
//! # assert!(rows > 0);
//! # Ok::<(), locktender::Error>(())
//! # }).unwrap();
//! ```
//!
//! A server's URL is `redis://host`, `rediss://host` (TLS), `unix:///path`, `redis+sentinel://host,host/service`,
//! `redis+cluster://host,host` or `memory://name`, see [`ClientBuilder::url`]. Several URLs are a quorum.
//!
//! Which method should you use?
//!
//! * [`Lock::with`]: the lock is held while a closure runs. [`Lock::acquire`]: you release it. [`Lock::try_acquire`]: busy is
//!   an answer (`None`), not an error. Each has a `_blocking` twin for code without an executor.
//! * A [`Hold`] is renewed in the background, so a short `ttl` is right also for long work: a process that dies blocks the
//!   others for one ttl, not for the length of the job.
//! * [`Hold::is_valid`] and [`Hold::remaining`] need no I/O and are never wrong on the unsafe side; [`Hold::lost`] reports a loss.
//!
//! # Modules
//!
//! | module | inside |
//! | --- | --- |
//! | `api` | the types at the top of this crate: [`Client`] makes [`Lock`]s, a [`Lock`] makes [`Hold`]s, their verbs are [`Call`]s |
//! | `session` | a client's running parts: the registry of acquisitions, an actor around each, wake-ups |
//! | `protocol` | one acquisition over N servers, as a pure state machine |
//! | `wait` | the waiters of this process, and when each tries again |
//! | `op` | operations on one server, and their answers |
//! | `machine` | the rules of one server, as pure functions: the specification of the scripts |
//! | `server` | the trait of a lock server, and the servers: Redis, in memory, scripted, your own |
//! | `io` | the I/O thread, timers, the reactor of blocked threads |
//! | `error`, `event` | errors with their [`Code`], and [`LockEvent`]s |
//! | [`influxdb`] | events as points, sent in batches |
//! | `testing` | with the feature `testing`: servers for tests, and a clock that they can move |
//!
//! # Features
//!
//! * `tls`, on by default: `rediss://` and the sentinels of `redis+sentinel://` with TLS, by rustls. A provider of cryptography that the
//!   process has installed is used, else `ring`.
//! * `metrics`: what a client counts goes to the recorder of the crate `metrics`, too.
//! * `testing`: servers in memory and scripted ones, and a clock that tests can move.
//! * `unstable-server`: the trait of a lock server, its operations and its rules, for a server of your own. These may change in every
//!   release: an operation gets a field, an answer a case, a rule a key. A minor version says in its changelog what changed.
//!
//! `docs/architecture.md` in the repository shows how they work together.
#![forbid(unsafe_code)]

mod api;
mod clock;
mod credentials;
mod deadline;
mod entropy;
mod error;
mod event;
#[doc(hidden)]
pub mod host;
#[doc(hidden)]
pub mod internals;
mod io;
#[cfg(feature = "unstable-server")]
pub mod machine;
#[cfg(not(feature = "unstable-server"))]
#[allow(dead_code, unused_imports, reason = "servers of other crates use it")]
mod machine;
pub mod metrics;
mod mutant;
mod name;
#[cfg(feature = "unstable-server")]
pub mod op;
#[cfg(not(feature = "unstable-server"))]
#[allow(dead_code, unused_imports, reason = "servers of other crates use it")]
mod op;
mod options;
mod owner;
mod per_server;
mod process;
mod protocol;
#[cfg(feature = "unstable-server")]
pub mod server;
#[cfg(not(feature = "unstable-server"))]
#[allow(dead_code, unused_imports, reason = "servers of other crates use it")]
mod server;
mod session;
mod stack_text;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod validity;
mod wait;
mod wording;

/// Events as points of InfluxDB's line protocol, passed on in batches.
pub mod influxdb {
    pub use crate::event::{Points, PointsBuilder};
}

pub use api::{Attempt, Begun, Job, JobOutcome, JobResult, NotRunReason};
pub use api::{Call, Cancel, Client, ClientBuilder, Hold, IntoServer, IntoUrls, Lock, MultiHold, MultiLock};
pub use api::{Election, Grant, HoldInfo, Leadership, Observer};
pub use credentials::{Credentials, CredentialsFuture, CredentialsProvider, SharedProvider};
pub use error::{Code, Error, Holder, Loss, LossReason, Remaining, RunError, ServerFailure};
pub use event::{EventKind, Level, LockEvent, Sink};
pub use name::{LockKind, safe_name};
pub use op::{FailureKind, HoldState};
pub use options::{ClientOptions, Failover, LockOptions, Overlap, Wait};
pub use owner::OwnerFields;
pub use protocol::{JobState, JobStatus, Leader, LockInfo, Observation, Outcome, Release, ServerReport};

/// The Rust code of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The Rust code of the crate's README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;

/// The Rust code of the page on servers, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../docs/servers.md")]
struct PageOnServers;

/// The tutorial for Rust: each step runs.
#[cfg(doctest)]
#[doc = include_str!("../../docs/tutorials/rust.md")]
struct Tutorial;

/// The Rust code of the page on testing, compiled.
#[cfg(all(doctest, feature = "testing"))]
#[doc = include_str!("../../docs/testing.md")]
struct PageOnTesting;
