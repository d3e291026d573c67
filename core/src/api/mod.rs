//! API: the types that a program uses. A [`Client`] makes [`Lock`]s, a [`Lock`] makes [`Hold`]s, and each of their verbs is a
//! [`Call`].
//!
//! Nothing is decided here: a verb starts an acquisition in the client's session, or brings it an input.

pub(crate) mod builder;
pub(crate) mod client;
pub(crate) mod election;
pub(crate) mod hold;
pub(crate) mod job;
pub(crate) mod lock;
mod setters;
pub(crate) mod sources;
pub(crate) mod urls;

pub use crate::io::call::{Call, Cancel};
pub use builder::ClientBuilder;
pub use client::{Client, Grant, HoldInfo};
pub use election::{Election, Leadership, Observer};
pub use hold::Hold;
pub use hold::multi::MultiHold;
pub use job::{Attempt, Begun, Job, JobOutcome, JobResult, NotRunReason};
pub use lock::Lock;
pub use lock::multi::MultiLock;
pub use urls::{IntoServer, IntoUrls};
