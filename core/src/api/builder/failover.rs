//! The options about failovers of a [`ClientBuilder`].

use std::time::Duration;

use super::ClientBuilder;
use crate::api::setters::setters;
use crate::options::Failover;

setters! { ClientBuilder, configure:
    /// What the client does when another node answers for its only server: it confirms every hold, or it also keeps the new node in
    /// quarantine. Default [`Failover::Confirm`]. A quorum has its own quarantine.
    ///
    /// ```
    /// # use locktender::{Client, Failover};
    /// let client = Client::builder().url("redis://primary.example").failover(Failover::Quarantine).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    failover(failover: Failover) |options| options.failover = failover;

    /// How many replicas of a server have to confirm a grant, and every extension, before it counts. Default 0; at most 100.
    ///
    /// Then a replica that is promoted knows the lock, if it is one of those that confirmed it: so name all replicas that a failover may
    /// choose, or use [`Failover::Quarantine`]. The confirmed write is in the memory of the replicas, and not yet on their disks. While
    /// fewer replicas than that are connected, nothing is granted (`UNAVAILABLE`), and no hold is extended. The user needs the right
    /// `+wait` for it.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("redis://primary.example").min_replicas(2).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    min_replicas(min_replicas: u32) |options| options.min_replicas = min_replicas;

    /// How long a server waits for its [`min_replicas`](ClientBuilder::min_replicas) to confirm a write. Default 100 ms; from 1 ms
    /// to 366 days. If one of them is down or slow, each grant and each extension takes that long, and fails.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let client = Client::builder().url("redis://primary.example").min_replicas(1).replicas_timeout(Duration::from_millis(20)).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    replicas_timeout(span: Duration) |options| options.replicas_timeout = span;
}
