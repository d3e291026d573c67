//! Inner: the data that a client's clones share. These are its servers, its options, and the session that the first operation
//! makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use crate::api::sources::{Source, Sources, memory_name};
use crate::clock::millis;
use crate::error::Error;
use crate::event::emitter::Emitter;
use crate::event::{EventKind, LockEvent, Sink};
use crate::io::reactor::LazyReactor;
use crate::io::runtime::Runtime;
use crate::metrics::Metrics;
use crate::metrics::meter::{Meters, ServerMeter};
use crate::metrics::reading::Reading;
use crate::op::QuorumConfig;
use crate::options::{ClientOptions, Failover};
use crate::server::Server;
use crate::server::memory::MemoryServer;
use crate::server::own::OwnServer;
use crate::server::redis::{self, ClusterServer, RedisServer, ServerState};
use crate::session::{Registry, Session};

/// Where a client's events go.
#[derive(Clone, Default)]
pub(crate) struct Sinks {
    pub(crate) sink: Option<Arc<dyn Sink>>,
    /// The number of events that a listener behind the sink never got. The sink counts them.
    pub(crate) dropped: Arc<AtomicU64>,
}

/// The data that a client's clones share.
pub(crate) struct Inner {
    sources: Sources,
    pub(crate) options: Arc<ClientOptions>,
    pub(crate) emitter: Emitter,
    pub(super) session: ArcSwapOption<Session>,
    closed: AtomicBool,
    /// Whether the session is closed, or there was none.
    ended: AtomicBool,
}

impl Inner {
    pub(crate) fn new(sources: Sources, options: ClientOptions, sinks: Sinks) -> Self {
        let Sinks { sink, dropped } = sinks;
        Self {
            sources,
            emitter: Emitter::new(sink, options.log_holds, dropped),
            options: Arc::new(options),
            session: ArcSwapOption::const_empty(),
            closed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    pub(super) fn sources(&self) -> Result<&[Source], Error> {
        self.sources.known(&self.options)
    }

    pub(super) fn server_count(&self) -> usize {
        self.sources().map_or(1, <[_]>::len)
    }

    /// The quorum, `None` with a single server. It is also `None` as long as no servers are named.
    pub(crate) fn quorum_config(&self) -> Option<QuorumConfig> {
        let servers = u32::try_from(self.server_count()).unwrap_or(u32::MAX);
        // A single server in quarantine is a quorum of one.
        let has_marker = servers > 1 || self.options.failover == Failover::Quarantine;
        has_marker.then(|| QuorumConfig { servers, max_ttl_ms: millis(self.options.max_ttl) })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether the servers are named, so that what depends on their number stays as it is.
    pub(crate) fn has_servers(&self) -> bool {
        self.sources().is_ok()
    }

    /// This process's session, if there is one; not that of the process that it was forked from.
    pub(crate) fn own_session(&self) -> Option<Arc<Session>> {
        let session = self.session.load_full()?;
        if session.is_inherited() {
            // Dropping it here would close the connections that the parent uses.
            std::mem::forget(session);
            return None;
        }
        Some(session)
    }

    /// The metrics at this moment.
    pub(super) fn metrics(&self) -> Metrics {
        let mut reading = Reading::new(&self.options.app_name().unwrap_or_default());
        if let Some(session) = self.own_session() {
            session.read(&mut reading);
        }
        reading.client(self.emitter.warnings(), self.emitter.dropped());
        reading.done()
    }

    /// This process's servers and holds, made by the first operation.
    pub(crate) fn session(&self, lock: Option<&str>) -> Result<Arc<Session>, Error> {
        if self.is_closed() {
            return Err(Error::closed(lock));
        }
        if let Some(session) = self.own_session() {
            return Ok(session);
        }
        let made = Arc::new(self.make_session()?);
        let previous = self.session.rcu(|current| match current {
            Some(session) if !session.is_inherited() => Arc::clone(session),
            _ => Arc::clone(&made),
        });
        #[cfg(feature = "testing")]
        crate::testing::note(&made);
        std::mem::forget(previous.filter(|session| session.is_inherited()));
        let session = self.session.load_full().ok_or_else(|| Error::closed(lock))?;
        if self.is_closed() {
            // The close may have come before there was a session to close.
            self.end_session(&session, || ());
            return Err(Error::closed(lock));
        }
        Ok(session)
    }

    /// Closes the client; calls `done` when it is closed.
    pub(super) fn close(&self, done: impl FnOnce() + Send + 'static) {
        self.closed.store(true, Ordering::SeqCst);
        match self.session.load_full().filter(|session| !session.is_inherited()) {
            Some(session) => self.end_session(&session, done),
            None => done(),
        }
    }

    /// Closes this process's session, the first time; calls `done` then, or at once.
    fn end_session(&self, session: &Arc<Session>, done: impl FnOnce() + Send + 'static) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return done();
        }
        let closed = Arc::clone(session);
        session.runtime().handle().spawn(async move {
            closed.close().await;
            done();
        });
    }

    /// The session of this process: its servers, and nothing held yet.
    fn make_session(&self) -> Result<Session, Error> {
        let runtime = Runtime::current()?;
        let quorum_config = self.quorum_config();
        let reactor = Arc::default();
        let registry = Arc::new(Registry::default());
        let addresses = self.sources()?.iter().map(Source::address);
        let meters = Arc::new(Meters::new(&self.options.app_name().unwrap_or_default(), addresses));
        let connect = |(number, source)| {
            let confirm = confirm_on(&runtime, &registry, number);
            let meter = Arc::clone(&meters.servers[number]);
            self.connect(source, &runtime, &reactor, (meter, confirm))
        };
        let servers = self.sources()?.iter().enumerate().map(connect).collect::<Result<Vec<_>, Error>>()?;
        Ok(Session::new(runtime, servers, Arc::clone(&self.options), quorum_config, (self.emitter.clone(), meters), registry))
    }

    /// A server of the client. `confirm` is called for each failover of the server, with the address of its node.
    fn connect(
        &self,
        source: &Source,
        runtime: &Runtime,
        reactor: &Arc<LazyReactor>,
        (meter, confirm): (Arc<ServerMeter>, impl Fn(Option<String>) + Send + Sync + 'static),
    ) -> Result<Arc<dyn Server>, Error> {
        match source {
            Source::Own(server) => Ok(Arc::new(OwnServer::new(Arc::clone(server), self.emitter.clone()))),
            Source::Url(url) => match memory_name(url) {
                Some(name) => Ok(MemoryServer::named(name)),
                None => {
                    let (emitter, address) = (self.emitter.clone(), redis::redacted(url));
                    let (quorum_config, host) = (self.quorum_config(), runtime.handle());
                    let timeout = self.options.response_timeout_for(self.server_count() == 1);
                    let on_state = move |state: ServerState| {
                        let failed_over = match &state {
                            ServerState::FailedOver(failover) => Some(failover.address.clone()),
                            _ => None,
                        };
                        let event = server_event(&address, state);
                        meter.note(event.kind);
                        emitter.emit(&event);
                        if let Some(address) = failed_over {
                            confirm(address);
                        }
                    };
                    if redis::is_of_cluster(url) {
                        return Ok(ClusterServer::new(url, &self.options, timeout, host, reactor, on_state)?);
                    }
                    Ok(RedisServer::driven(url, &self.options, timeout, quorum_config, host, reactor, on_state)?)
                }
            },
        }
    }
}

fn server_event(address: &str, state: ServerState) -> LockEvent {
    let mut event = match state {
        ServerState::Failed(failure) => LockEvent { message: Some(failure.message), ..LockEvent::new(EventKind::ServerFailed) },
        ServerState::Warning(message) => LockEvent { message: Some(message), ..LockEvent::new(EventKind::Warning) },
        ServerState::Recovered => LockEvent::new(EventKind::ServerRecovered),
        ServerState::FailedOver(failover) => LockEvent {
            message: Some(
                "another node answers for this server, or its node was restarted: every hold is confirmed now".to_owned(),
            ),
            address: failover.address,
            old_replication_id: Some(failover.old_replid.to_string()),
            new_replication_id: Some(failover.new_replid.to_string()),
            ..LockEvent::new(EventKind::FailedOver)
        },
    };
    event.server = Some(address.to_owned());
    event
}

/// Has the I/O thread confirm every hold that the node at an address serves, all in one write: the connection of renewals is there.
fn confirm_on(runtime: &Runtime, registry: &Arc<Registry>, server: usize) -> impl Fn(Option<String>) + Send + Sync + 'static {
    let (host, registry) = (runtime.handle().clone(), Arc::downgrade(registry));
    move |address| {
        if let Some(registry) = registry.upgrade() {
            drop(host.spawn(async move { registry.confirm(server, address.as_deref()) }));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a forked child a session of the parent stays the parent's.
        if let Some(session) = self.session.swap(None).filter(|session| session.is_inherited()) {
            std::mem::forget(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Client;

    #[test]
    fn a_first_operation_that_races_the_close_leaves_nothing_held() {
        for round in 0..300 {
            let client = Client::open(format!("memory://first-and-close-{round}").as_str()).unwrap();
            let lock = client.lock("x");
            let first = std::thread::spawn(move || lock.acquire_blocking());
            client.close_blocking().unwrap();
            let held = first.join().unwrap();
            // The close may have found the hold, or come before it.
            assert!(held.is_err() || held.is_ok_and(|held| !held.is_valid()));
        }
    }
}
