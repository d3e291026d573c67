//! Inner: the data that a client's clones share. These are its servers, its options, and the session that the first operation
//! makes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwapOption;

use crate::api::sources::{Source, Sources, memory_name};
use crate::clock::millis;
use crate::error::Error;
use crate::event::emitter::Emitter;
use crate::event::{Event, EventKind, Sink};
use crate::io::reactor::LazyReactor;
use crate::io::runtime::Runtime;
use crate::op::QuorumConfig;
use crate::options::ClientOptions;
use crate::server::Server;
use crate::server::memory::MemoryServer;
use crate::server::own::OwnServer;
use crate::server::redis::{self, RedisServer, ServerState};
use crate::session::Session;

/// The data that a client's clones share.
pub(crate) struct Inner {
    sources: Sources,
    pub(super) options: Arc<ClientOptions>,
    pub(super) emitter: Emitter,
    pub(super) session: ArcSwapOption<Session>,
    pub(super) closed: AtomicBool,
}

impl Inner {
    pub(crate) fn new(sources: Sources, options: ClientOptions, sink: Option<Arc<dyn Sink>>) -> Self {
        Self {
            sources,
            emitter: Emitter::new(sink, options.log_holds),
            options: Arc::new(options),
            session: ArcSwapOption::const_empty(),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn sources(&self) -> Result<&[Source], Error> {
        self.sources.known(&self.options)
    }

    pub(super) fn server_count(&self) -> usize {
        self.sources().map_or(1, <[_]>::len)
    }

    pub(super) fn quorum_config(&self) -> Option<QuorumConfig> {
        let servers = u32::try_from(self.server_count()).unwrap_or(u32::MAX);
        (servers > 1).then(|| QuorumConfig { servers, max_ttl_ms: millis(self.options.max_ttl) })
    }

    /// The session of this process: its servers, and nothing held yet.
    pub(super) fn make_session(&self) -> Result<Session, Error> {
        let runtime = Runtime::current()?;
        let quorum_config = self.quorum_config();
        let reactor = Arc::default();
        let servers = self.sources()?.iter().map(|source| self.connect(source, &runtime, &reactor));
        let servers = servers.collect::<Result<Vec<_>, Error>>()?;
        Ok(Session::new(runtime, servers, Arc::clone(&self.options), quorum_config, self.emitter.clone()))
    }

    fn connect(&self, source: &Source, runtime: &Runtime, reactor: &Arc<LazyReactor>) -> Result<Arc<dyn Server>, Error> {
        match source {
            Source::Own(server) => Ok(Arc::new(OwnServer::new(Arc::clone(server), self.emitter.clone()))),
            Source::Url(url) => match memory_name(url) {
                Some(name) => Ok(MemoryServer::named(name)),
                None => {
                    let (emitter, address) = (self.emitter.clone(), redis::redacted(url));
                    let (quorum_config, host) = (self.quorum_config(), runtime.handle());
                    let timeout = self.options.response_timeout_for(quorum_config.is_none());
                    let tell = move |state: ServerState| emitter.emit(&server_event(&address, state));
                    let server = RedisServer::driven(url, &self.options, timeout, quorum_config, host, reactor, tell)?;
                    Ok(server)
                }
            },
        }
    }
}

fn server_event(address: &str, state: ServerState) -> Event {
    let (kind, message) = match state {
        ServerState::Failed(failure) => (EventKind::ServerFailed, Some(failure.message)),
        ServerState::Recovered => (EventKind::ServerRecovered, None),
    };
    let mut event = Event::new(kind);
    event.server = Some(address.to_owned());
    event.message = message;
    event
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a forked child a session of the parent stays the parent's.
        if let Some(session) = self.session.swap(None).filter(|session| session.is_inherited()) {
            std::mem::forget(session);
        }
    }
}
